#include "cmd/proc_select.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/proc_selection.h"
#include "out/proc_list.h"

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
    if (r == 0 && select->idle_ns)
        r = gp_idle_take_id(select->words, sizeof(select->words), err);
    return r;
}

static struct gp_proc_selection selection_of(const struct gp_proc_select *select)
{
    return (struct gp_proc_selection){
        .filter = select->words,
        .named = select->named,
        .named_count = select->named_count,
        .name = select->name,
        .idle_ns = select->idle_ns,
        .progress = gp_idle_count_down,
    };
}

void gp_proc_select_want(const struct gp_proc_select *select, struct gp_want *want)
{
    const struct gp_proc_selection selection = selection_of(select);
    gp_proc_selection_want(&selection, want);
}

int gp_proc_select_find(const struct gp_proc_select *select, struct gp_sampler *sampler,
                        struct gp_snapshot **ret_snapshot, struct gp_procs *ret, struct gp_err *err)
{
    const struct gp_proc_selection selection = selection_of(select);
    *ret_snapshot = NULL;
    *ret = (struct gp_procs){.rows = NULL};
    return gp_proc_selection_find(&selection, sampler, ret_snapshot, ret, err);
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
