#include "jobs/request.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/visible.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANCESTORS_MAX = 256, IDS_SIZE = 8192 };

/* Static, because requests point to it. */
static const struct gp_device *visible[GP_VISIBLE_MAX];

/* ---- sampling ---- */

void gp_job_want(const struct gp_pick_request *request, struct gp_want *want)
{
    gp_pick_want(want, request->is_all || request->count > 1);
}

int gp_job_tick_without_lists(struct gp_sampler *sampler, uint32_t lists, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    gp_snapshot_free(snapshot);
    gp_sampler_add_lists(sampler, lists);
    return 0;
}

/* ---- the decision ---- */

static bool is_own_ancestor(uint32_t pid)
{
    struct gp_proc_stat stat;
    uint32_t at = (uint32_t)getpid();
    bool found = false;
    for (int i = 0; i < ANCESTORS_MAX && at > 1 && !found && gp_proc_stat_of(at, &stat); i++) {
        at = stat.ppid;
        found = at == pid;
    }
    return found;
}

/* The leases of this process's own job do not count. */
static void drop_own(struct gp_leases *leases)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (!gp_lease_is_local(&leases->items[i]) || !is_own_ancestor(leases->items[i].pid))
            leases->items[kept++] = leases->items[i];
    leases->count = kept;
}

static unsigned gpu_count(const struct gp_snapshot *snapshot)
{
    unsigned count = 0;
    for (size_t i = 0; i < snapshot->device_count; i++)
        count += !snapshot->devices[i].is_mig;
    return count;
}

/* All named GPUs must exist; a request for none counts as one missing. */
static int count_all(const struct gp_snapshot *snapshot, struct gp_pick_request *request,
                     struct gp_err *err)
{
    unsigned count = gp_pick_count_all(snapshot, request);
    if (count > GP_LEASE_GPUS)
        return gp_err_set(err, GP_EUSAGE, "--gpus selects %u GPUs, but at most %d can be used",
                          count, (int)GP_LEASE_GPUS);
    request->count = count ? count : 1;
    return request->only ? gp_selection_check(request->only, gpu_count(snapshot), err) : 0;
}

int gp_job_decide(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                  struct gp_pick_request *request, bool ignore_mask, struct gp_pick *ret,
                  struct gp_err *err)
{
    const char *mask = ignore_mask ? NULL : getenv("CUDA_VISIBLE_DEVICES");
    request->visible = mask ? visible : NULL;
    request->visible_count = mask ? gp_visible_rows(snapshot, mask, visible) : 0;
    int r = request->is_all ? count_all(snapshot, request, err) : 0;
    if (r < 0)
        return r;
    drop_own(leases);
    if (gp_pick_make(snapshot, leases, request, ret) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const struct gp_selection *named[] = {request->only, request->prefer, request->avoid};
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(named); i++)
        if (named[i] && !request->visible)
            r = gp_selection_check(named[i], gpu_count(snapshot), err);
    if (r < 0)
        gp_pick_fini(ret);
    return r;
}

int gp_job_refuse(enum gp_pick_state state, const char *why, bool has_waited, struct gp_err *err)
{
    if (state == GP_PICK_NEVER)
        return gp_err_set(err, GP_ENEVER, "%s", why);
    return has_waited ? gp_err_set(err, GP_EEXPIRED, "gave up waiting: %s", why)
                      : gp_err_set(err, GP_EBUSY, "%s; use --wait to wait for free GPUs", why);
}

int gp_job_choose(struct gp_sampler *sampler, struct gp_pick_request *request, bool ignore_mask,
                  bool waits,
                  int (*show)(void *context, const struct gp_snapshot *snapshot,
                              const struct gp_pick *pick, struct gp_err *err),
                  void *context, struct gp_err *err)
{
    struct gp_snapshot *snapshot = NULL;
    struct gp_leases leases = {.items = NULL};
    struct gp_pick pick = {.units = NULL};
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = gp_leases_read(&leases, err);
    if (r == 0)
        r = gp_job_decide(snapshot, &leases, request, ignore_mask, &pick, err);
    if (r == 0 && (pick.state == GP_PICK_FITS || (pick.state == GP_PICK_LATER && waits)))
        r = show(context, snapshot, &pick, err);
    else if (r == 0)
        r = gp_job_refuse(pick.state, pick.why, false, err);
    gp_pick_fini(&pick);
    gp_leases_fini(&leases);
    gp_snapshot_free(snapshot);
    return r;
}

/* ---- the chosen GPUs as text ---- */

void gp_job_add_mask(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_pick *pick, bool uuid)
{
    for (size_t i = 0; i < pick->chosen_count; i++) {
        const struct gp_device *device = pick->units[pick->chosen[i]].device;
        int index = gp_visible_index(snapshot, device);
        gp_strbuf_adds(sb, i > 0 ? "," : "");
        if (uuid || index < 0)
            gp_strbuf_adds(sb, gp_device_text(device, GP_UUID, ""));
        else
            gp_strbuf_addf(sb, "%d", index);
    }
}

void gp_job_add_ids(struct gp_strbuf *sb, const struct gp_pick *pick)
{
    for (size_t i = 0; i < pick->chosen_count; i++) {
        char label[GP_DEVICE_LABEL_SIZE];
        gp_device_label(pick->units[pick->chosen[i]].device, label);
        gp_strbuf_addf(sb, "%s%s", i > 0 ? "," : "", label);
    }
}

void gp_job_add_place(struct gp_strbuf *sb, const struct gp_pick *pick, const char *mask)
{
    const struct gp_device *devices[GP_LEASE_GPUS];
    struct gp_strbuf ids = GP_STRBUF_INIT(IDS_SIZE);
    size_t count = 0;
    for (; count < pick->chosen_count && count < GP_ARRAY_LEN(devices); count++)
        devices[count] = pick->units[pick->chosen[count]].device;
    gp_job_add_ids(&ids, pick);
    gp_pick_add_gpus(sb, devices, count);
    if (strcmp(ids.buf, mask) != 0)
        gp_strbuf_addf(sb, " (CUDA_VISIBLE_DEVICES=%s)", mask);
    gp_strbuf_fini(&ids);
}
