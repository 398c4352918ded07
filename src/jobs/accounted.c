#include "jobs/accounted.h"

#include "base/clock.h"
#include "model/snapshot.h"

static size_t known(const struct gp_accounted_pids *pids)
{
    return pids->count < GP_ACCOUNTED_PIDS ? pids->count : GP_ACCOUNTED_PIDS;
}

static bool has(const struct gp_accounted_pids *pids, int64_t pid)
{
    for (size_t i = 0; i < known(pids); i++)
        if (pids->pids[i] == pid)
            return true;
    return false;
}

void gp_accounted_add(struct gp_accounted_pids *pids, uint32_t pid)
{
    if (!has(pids, pid))
        pids->pids[pids->count++ % GP_ACCOUNTED_PIDS] = pid;
}

/* The value of an account; NULL if it is unknown. */
static const struct gp_value *cell(const struct gp_entry *account, enum gp_metric m)
{
    const struct gp_value *value = &account->values[m - GP_APP__FIRST];
    return value->status == GP_STATUS_OK ? value : NULL;
}

/* Accounts report time in milliseconds. */
static bool began_since(const struct gp_entry *account, uint64_t since_wall_ns)
{
    const struct gp_value *start = cell(account, GP_APP_START);
    uint64_t start_ns;
    return start && gp_clock_parse_rfc3339(start->s, &start_ns) &&
           start_ns >= since_wall_ns - since_wall_ns % GP_NS_PER_MS;
}

bool gp_accounted_peak(const struct gp_snapshot *snapshot, const struct gp_device *device,
                       const struct gp_accounted_pids *pids, uint64_t since_wall_ns,
                       double *ret_bytes)
{
    const struct gp_entries *accounts = &snapshot->lists[gp_list_index(GP_SCOPE_APP)];
    double most = -1;
    for (size_t i = 0; i < accounts->count; i++) {
        const struct gp_entry *account = &accounts->entries[i];
        const struct gp_value *pid = cell(account, GP_APP_PID);
        const struct gp_value *bytes = cell(account, GP_APP_MAX_MEMORY);
        if (&snapshot->devices[account->device] == device && pid && bytes && has(pids, pid->i) &&
            began_since(account, since_wall_ns) && (double)bytes->i > most)
            most = (double)bytes->i;
    }
    if (most < 0)
        return false;
    *ret_bytes = most;
    return true;
}
