#include "cmd/ps_holders.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "proc/holders.h"
#include "proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_S = 10 };

void gp_ps_want_explained(struct gp_metric_set *metrics)
{
    static const enum gp_metric wanted[] = {
        GP_NAME,         GP_MINOR_NUMBER,     GP_PCI_BUS_ID,
        GP_MEMORY_TOTAL, GP_MEMORY_USED,      GP_MEMORY_RESERVED,
        GP_MEMORY_FREE,  GP_MEMORY_PROCESSES, GP_MEMORY_UNATTRIBUTED,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(metrics, wanted[i]);
}

int gp_ps_find_holders(struct gp_holders *ret, struct gp_err *err)
{
    const char *root = gp_app_root();
    int r = gp_account_find_holders(root && *root ? root : NULL,
                                    gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S), ret, err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    return r;
}

int gp_ps_explain(struct gp_strbuf *sb, const struct gp_snapshot *snapshot, bool json,
                  struct gp_err *err)
{
    struct gp_holders holders;
    struct gp_account *accounts = NULL;
    size_t count = 0;
    int r = gp_ps_find_holders(&holders, err);
    if (r < 0)
        return r;
    r = gp_accounts_make(snapshot, &holders, &accounts, &count);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    if (r == 0 && json)
        gp_accounts_json(sb, snapshot, accounts, count);
    for (size_t i = 0; r == 0 && !json && i < count; i++)
        gp_account_add(sb, &accounts[i], false);
    gp_accounts_free(accounts, count);
    gp_holders_fini(&holders);
    return r;
}

/* ---- holders as rows ---- */

/* The state letter from the kernel, as text. */
static const char *state_text(char state)
{
    static const char *const states[] = {"R", "S", "D", "Z", "T", "t", "X", "I"};
    for (size_t i = 0; i < GP_ARRAY_LEN(states); i++)
        if (states[i][0] == state)
            return states[i];
    return NULL;
}

struct gp_proc_row gp_ps_row(const struct gp_proc_info *info, uint64_t wall_ns)
{
    return (struct gp_proc_row){
        .pid = info->pid,
        .ppid = info->ppid,
        .user = info->texts->user,
        .command = info->texts->command,
        .container = info->texts->container,
        .container_name = info->texts->container_name,
        .state = state_text(info->state),
        .age_s = {(double)(wall_ns - info->start_ns) / 1e9,
                  info->start_ns > 0 && wall_ns > info->start_ns, false},
        .rss = {(double)info->rss_bytes, info->state != 0, false},
    };
}

int gp_ps_add_holders(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                      const struct gp_holders *holders, struct gp_err *err)
{
    struct gp_proc_row *rows =
        realloc(procs->rows, (procs->count + holders->count + 1) * sizeof(*rows));
    if (!rows)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    procs->rows = rows;
    procs->room = procs->count + holders->count + 1;
    for (size_t i = 0; i < holders->count; i++) {
        const struct gp_holder *holder = &holders->list[i];
        const struct gp_proc_info *info = holder->info;
        struct gp_proc_row row = gp_ps_row(info, snapshot->wall_ns);
        for (size_t d = 0; d < snapshot->device_count; d++)
            if (gp_account_has_open(&snapshot->devices[d], holder))
                gp_proc_row_add_gpu(&row, &snapshot->devices[d]);
        if (row.gpus[0] && !gp_snapshot_lists(snapshot, info->pid))
            procs->rows[procs->count++] = row;
    }
    return 0;
}
