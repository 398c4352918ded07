#include "cmd/proc_select.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/proc_list.h"
#include "proc/lease.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- arguments ---- */

static int add_named(struct gp_proc_select *select, const char *text, size_t n, struct gp_err *err)
{
    char digits[24];
    uint64_t pid;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)(n < sizeof(digits) ? n : 0), text);
    if (!gp_parse_u64(digits, &pid) || pid > INT32_MAX)
        return gp_err_set(err, GP_EUSAGE, "'%.*s' is not a process id", (int)(n < 60 ? n : 60),
                          text);
    if (select->named_count == GP_PROC_NAMED_MAX)
        return gp_err_set(err, GP_EUSAGE, "at most %d pids can be given", (int)GP_PROC_NAMED_MAX);
    select->named[select->named_count++] = (int64_t)pid;
    return 0;
}

/* "1,2,3" */
static int add_list(struct gp_proc_select *select, const char *list, struct gp_err *err)
{
    int r = 0;
    for (const char *p = list; r == 0 && *p;) {
        size_t n = strcspn(p, ",");
        if (n > 0)
            r = add_named(select, p, n, err);
        p += n + (p[n] == ',');
    }
    return r;
}

/* An option with an empty value, such as an empty variable of a script, would select everything. */
static int check_given(const struct gp_proc_select *o, char *const *arguments, int count,
                       struct gp_err *err)
{
    const struct {
        const char *option, *value;
    } given[] = {{"--pid", o->choice.pid}, {"--name", o->name}, {"--filter", o->filter}};
    for (size_t i = 0; i < GP_ARRAY_LEN(given); i++)
        if (given[i].value && !given[i].value[strspn(given[i].value, " ,")])
            return gp_err_set(err, GP_EUSAGE, "%s is empty", given[i].option);
    for (int i = 0; i < count; i++)
        if (!arguments[i][strspn(arguments[i], " ,")])
            return gp_err_set(err, GP_EUSAGE, "an argument is empty");
    return 0;
}

bool gp_proc_select_any(const struct gp_proc_select *select)
{
    return gp_proc_choice_any(&select->choice) || select->filter || select->name || select->all ||
           select->idle_ns;
}

int gp_proc_select_parse(struct gp_proc_select *select, char *const *arguments, int count,
                         struct gp_err *err)
{
    struct gp_proc_choice choice = select->choice;
    int r = check_given(select, arguments, count, err);
    choice.pid = NULL; /* compared as numbers */
    for (int i = 0; r == 0 && i < count; i++)
        r = strspn(arguments[i], "0123456789,") == strlen(arguments[i])
                ? add_list(select, arguments[i], err)
                : gp_proc_choice_add_words(arguments[i], select->words, sizeof(select->words), err);
    if (r == 0 && select->choice.pid)
        r = add_list(select, select->choice.pid, err);
    if (r == 0)
        r = gp_proc_choice_add_words(select->filter, select->words, sizeof(select->words), err);
    if (r == 0)
        r = gp_proc_choice_add(&choice, select->words, sizeof(select->words), err);
    bool chosen = select->name || select->words[0] || select->named_count > 0;
    if (r == 0 && !chosen && !select->all && !select->idle_ns)
        r = gp_err_set(err, GP_EUSAGE,
                       "no processes selected; give pids, --mine, --user, --job, --container, "
                       "--name, --idle, or --all%s",
                       gp_common()->id ? " (for all processes on the GPUs of -i)" : "");
    if (r == 0 && chosen && select->all)
        r = gp_err_set(err, GP_EUSAGE, "--all cannot be combined with other selections than --id");
    return r;
}

void gp_proc_select_want(const struct gp_proc_select *select, struct gp_want *want)
{
    if (select->idle_ns)
        gp_idle_want(&want->metrics);
    if (strstr(select->words, "ns_pid"))
        gp_metric_set_add(&want->metrics, GP_PROCESS_NS_PID);
}

/* ---- matching processes ---- */

/* A smaller pid is rather meant to be the number of a GPU. */
enum { GPUS_MOST = 16 };

/* Why a pid is not among the selected processes. */
static int refuse_named(int64_t pid, struct gp_err *err)
{
    struct gp_leases leases = {.items = NULL};
    int r = gp_leases_read(&leases, err);
    for (size_t i = 0; r == 0 && i < leases.count; i++) {
        const struct gp_lease *lease = &leases.items[i];
        if (lease->pid != (uint32_t)pid)
            continue;
        r = gp_err_set(err, GP_EFAIL,
                       lease->state == GP_LEASE_HELD
                           ? "process %lld is a gpulse run that has reserved GPUs; to end it and "
                             "its job: kill %lld"
                           : "process %lld is a gpulse run that waits in line; cancel it with: "
                             "kill %lld",
                       (long long)pid, (long long)pid);
    }
    gp_leases_fini(&leases);
    if (r < 0)
        return r;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
        return gp_err_set(err, GP_ENODEV, "no process %lld on the GPUs", (long long)pid);
    if (pid < GPUS_MOST)
        return gp_err_set(err, GP_EFAIL,
                          "process %lld is not on the GPUs; for all processes on GPU %lld: -i %lld "
                          "--all",
                          (long long)pid, (long long)pid, (long long)pid);
    return gp_err_set(
        err, GP_EFAIL,
        "process %lld is not on the selected GPUs or does not match all conditions; gpulse "
        "ps lists processes, gpulse ps --holders those that the driver does not list",
        (long long)pid);
}

/* A named pid that does not match is an error: a wrong number must not be ignored. */
static int check_named(const struct gp_proc_select *select, const struct gp_procs *procs,
                       struct gp_err *err)
{
    for (size_t i = 0; i < select->named_count; i++) {
        bool found = false;
        for (size_t j = 0; j < procs->count; j++)
            found = found || procs->rows[j].pid == select->named[i];
        if (!found)
            return refuse_named(select->named[i], err);
    }
    return 0;
}

static void keep_named(const struct gp_proc_select *select, struct gp_procs *procs)
{
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        if ((select->named_count == 0 ||
             gp_procs_has_pid(select->named, select->named_count, row->pid)) &&
            (!select->name || (row->command && strstr(row->command, select->name))))
            procs->rows[kept++] = *row;
    }
    procs->count = kept;
}

int gp_proc_select_find(const struct gp_proc_select *select, struct gp_sampler *sampler,
                        struct gp_snapshot **ret_snapshot, struct gp_procs *ret, struct gp_err *err)
{
    const struct gp_procs_options rows = {
        .order = {.by = {{GP_PROC_MEMORY_COLUMN, false}}, .count = 1},
        .filter = select->words,
        .gpu = -1,
    };
    struct gp_idle idle = {NULL, 0};
    *ret_snapshot = NULL;
    *ret = (struct gp_procs){.rows = NULL};
    int r = select->idle_ns
                ? gp_idle_watch(sampler, select->words, select->idle_ns, &idle, ret_snapshot, err)
                : gp_sampler_tick(sampler, ret_snapshot, err);
    if (r < 0)
        return r;
    r = gp_procs_build(ret, *ret_snapshot, &rows);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    if (r == 0)
        r = check_named(select, ret, err);
    const bool is_unmatched = select->words[0] && ret->count == 0;
    keep_named(select, ret);
    if (select->idle_ns)
        gp_idle_keep(&idle, ret);
    gp_idle_fini(&idle);
    if (r == 0 && (*ret_snapshot)->partial && ret->count == 0) {
        gp_app_explain_partial(*ret_snapshot, err);
        r = GP_EPARTIAL;
    }
    if (r == 0 && is_unmatched)
        r = gp_proc_choice_report_empty(select->words, *ret_snapshot, err);
    return r;
}

int gp_proc_select_show(const struct gp_procs *procs, const enum gp_proc_column *columns,
                        size_t count, struct gp_err *err)
{
    const struct gp_proc_list list = {
        .columns = columns,
        .column_count = count,
        .header = true,
        .room = gp_io_columns(),
    };
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    gp_proc_list_add(&sb, &list, procs);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}
