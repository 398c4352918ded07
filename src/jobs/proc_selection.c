#include "jobs/proc_selection.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/idle.h"
#include "model/snapshot.h"
#include "out/partial.h"
#include "proc/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- pids ---- */

/* A smaller pid is rather meant to be the number of a GPU. */
enum { GPUS_MOST = 16 };

/* The error that a word names a job of this user's, which is ended by the pid of its gpulse run. 0:
 * it does not. */
static int refuse_job(const char *word, struct gp_err *err)
{
    struct gp_leases leases;
    int r = 0;
    if (gp_leases_read(&leases, NULL) < 0)
        return 0;
    for (size_t i = 0; r == 0 && i < leases.count; i++) {
        const struct gp_lease *lease = &leases.items[i];
        if (lease->uid == geteuid() && gp_lease_is_visible(lease) && strcmp(lease->name, word) == 0)
            r = gp_err_set(err, GP_ENODEV,
                           "no process matches '%.63s', but a job of gpulse run has this name: "
                           "gpulse ps lists its processes on the GPUs; to end all of it, use the "
                           "shell's kill: kill %" PRIu32,
                           word, lease->pid);
    }
    gp_leases_fini(&leases);
    return r;
}

/* Why a pid is not among the selected processes. */
static int refuse_named(int64_t pid, struct gp_err *err)
{
    struct gp_leases leases = {.items = NULL};
    int r = gp_leases_read(&leases, err);
    for (size_t i = 0; r == 0 && i < leases.count; i++) {
        const struct gp_lease *lease = &leases.items[i];
        if (lease->pid != (uint32_t)pid || !gp_lease_is_visible(lease))
            continue;
        r = gp_err_set(err, GP_EFAIL,
                       lease->state == GP_LEASE_HELD
                           ? "process %lld is a gpulse run that has reserved GPUs: gpulse ps "
                             "lists its job's processes on them; to end it and its job, use the "
                             "shell's kill: kill %lld"
                           : "process %lld is a gpulse run that waits in line; cancel it with "
                             "the shell's kill: kill %lld",
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
static int check_named(const struct gp_proc_selection *selection, const struct gp_procs *procs,
                       struct gp_err *err)
{
    for (size_t i = 0; i < selection->named_count; i++) {
        bool found = false;
        for (size_t j = 0; j < procs->count; j++)
            found = found || procs->rows[j].pid == selection->named[i];
        if (!found)
            return refuse_named(selection->named[i], err);
    }
    return 0;
}

static void keep_named(const struct gp_proc_selection *selection, struct gp_procs *procs)
{
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        if ((selection->named_count == 0 ||
             gp_procs_has_pid(selection->named, selection->named_count, row->pid)) &&
            (!selection->name || (row->command && strstr(row->command, selection->name))))
            procs->rows[kept++] = *row;
    }
    procs->count = kept;
}

/* ---- the filter ---- */

static const char *user_at(const struct gp_snapshot *snapshot, size_t i)
{
    const struct gp_value *user = gp_process_value(&snapshot->processes[i], GP_PROCESS_USER);
    return user->status == GP_STATUS_OK ? user->s : "";
}

/* The users whose processes are on the GPUs, each once. */
static void list_users(const struct gp_snapshot *snapshot, char *ret, size_t size)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(size);
    for (size_t i = 0; i < snapshot->process_count; i++) {
        size_t k = 0;
        while (strcmp(user_at(snapshot, k), user_at(snapshot, i)) != 0)
            k++;
        if (k == i && *user_at(snapshot, i))
            gp_strbuf_addf(&sb, "%s%s", sb.len ? ", " : "", user_at(snapshot, i));
    }
    (void)snprintf(ret, size, "%s", sb.len ? sb.buf : "");
    gp_strbuf_fini(&sb);
}

int gp_proc_selection_refuse(const char *filter, const struct gp_snapshot *snapshot,
                             struct gp_err *err)
{
    static const char of_pid[] = "pid=", of_user[] = "user=";
    const char *pid = strncmp(filter, of_pid, strlen(of_pid)) == 0 ? filter + strlen(of_pid) : "";
    const char *user =
        strncmp(filter, of_user, strlen(of_user)) == 0 ? filter + strlen(of_user) : "";
    char users[200];
    uint64_t number;
    list_users(snapshot, users, sizeof(users));
    if (gp_parse_u64(pid, &number) && number < snapshot->device_count)
        return gp_err_set(err, GP_ENODEV, "no process %s on the GPUs; GPU %s is -i %s", pid, pid,
                          pid);
    if (gp_parse_u64(pid, &number))
        return gp_err_set(err, GP_ENODEV, "no process %s on the GPUs", pid);
    if (*users && *user && !strchr(user, ' '))
        return gp_err_set(err, GP_ENODEV,
                          "no process of %.80s on the GPUs; those there belong to %s", user, users);
    if (refuse_job(filter, err) < 0)
        return GP_ENODEV;
    if (!snapshot->process_count)
        return gp_err_set(err, GP_ENODEV, "no processes on the GPUs");
    return gp_err_set(err, GP_ENODEV, "no process on the GPUs matches '%.200s'", filter);
}

/* ---- all of it ---- */

void gp_proc_selection_want(const struct gp_proc_selection *selection, struct gp_want *want)
{
    if (selection->idle_ns)
        gp_idle_want(&want->metrics);
    if (strstr(selection->filter, "ns_pid"))
        gp_metric_set_add(&want->metrics, GP_PROCESS_NS_PID);
}

int gp_proc_selection_find(const struct gp_proc_selection *selection, struct gp_sampler *sampler,
                           struct gp_snapshot **ret_snapshot, struct gp_procs *ret,
                           struct gp_err *err)
{
    const struct gp_procs_options rows = {
        .order = {.by = {{GP_PROC_MEMORY_COLUMN, false}}, .count = 1},
        .filter = selection->filter,
        .gpu = -1,
    };
    struct gp_idle idle = {NULL, 0};
    *ret_snapshot = NULL;
    *ret = (struct gp_procs){.rows = NULL};
    int r = selection->idle_ns ? gp_idle_observe(sampler, selection->filter, selection->idle_ns,
                                                 selection->progress, &idle, ret_snapshot, err)
                               : gp_sampler_tick(sampler, ret_snapshot, err);
    if (r < 0)
        return r;
    r = gp_procs_build(ret, *ret_snapshot, &rows);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    if (r == 0)
        r = check_named(selection, ret, err);
    const bool is_unmatched = selection->filter[0] && ret->count == 0;
    keep_named(selection, ret);
    if (selection->idle_ns)
        gp_idle_keep(&idle, ret);
    gp_idle_fini(&idle);
    if (r == 0 && (*ret_snapshot)->partial && ret->count == 0) {
        gp_partial_explain(*ret_snapshot, err);
        r = GP_EPARTIAL;
    }
    const bool has_name_only = selection->name && !selection->filter[0] && !selection->idle_ns;
    if (r == 0 && has_name_only && ret->count == 0)
        r = refuse_job(selection->name, err);
    if (r == 0 && is_unmatched)
        r = gp_proc_selection_refuse(selection->filter, *ret_snapshot, err);
    return r;
}
