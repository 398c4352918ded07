#include "cmd/job_request.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/visible.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MOST = GP_LEASE_GPUS, ANCESTORS_MAX = 256 };

/* As long as the process: the request points to them. */
static struct gp_selection only, prefer, avoid;
static const struct gp_device *visible[GP_VISIBLE_MAX];

static int parse_gpus(const char *list, struct gp_selection *room, struct gp_selection **ret,
                      struct gp_err *err)
{
    *ret = list ? room : NULL;
    return list ? gp_selection_parse(list, room, err) : 0;
}

static enum gp_pick_order order_of(const char *word)
{
    static const char *const words[GP_PICK__COUNT] = {
#define X(id, word, help) [GP_PICK_##id] = word,
        GP_PICK_ORDERS(X)
#undef X
    };
    for (int i = 0; word && i < GP_PICK__COUNT; i++)
        if (strcmp(words[i], word) == 0)
            return (enum gp_pick_order)i;
    return GP_PICK_DEFAULT;
}

int gp_job_request(const struct gp_job_options *o, struct gp_pick_request *ret, struct gp_err *err)
{
    if (o->count > COUNT_MOST)
        return gp_err_set(err, GP_EUSAGE, "--count takes at most %d", (int)COUNT_MOST);
    if (o->share && !o->bytes)
        return gp_err_set(err, GP_EUSAGE, "--share needs --mem: how much the job will use");
    if (o->order && strchr(o->order, ','))
        return gp_err_set(err, GP_EUSAGE, "--order takes one of: default free load cool index");
    *ret = (struct gp_pick_request){
        .count = o->count ? (unsigned)o->count : 1,
        .is_shared = o->share,
        .bytes = o->bytes,
        .total_bytes = o->total_bytes,
        .most_load = o->most_load == GP_JOB_ANY ? -1 : (double)o->most_load,
        .most_celsius = o->most_celsius == GP_JOB_ANY ? -1 : (double)o->most_celsius,
        .no_display = o->no_display,
        .same_node = o->same_node,
        .nvlink = o->nvlink,
        .order = order_of(o->order),
        .ticket = UINT64_MAX,
    };
    int r = parse_gpus(gp_common()->id, &only, &ret->only, err);
    gp_common()->id = NULL;
    if (r == 0)
        r = parse_gpus(o->prefer, &prefer, &ret->prefer, err);
    return r < 0 ? r : parse_gpus(o->avoid, &avoid, &ret->avoid, err);
}

int gp_job_open(const struct gp_pick_request *request, const struct gp_want *besides,
                struct gp_sampler **ret, struct gp_err *err)
{
    static const struct gp_want nothing;
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = besides ? *besides : nothing;
    gp_pick_want(&want, request->count > 1);
    return gp_app_open(&want, &loop, ret, err);
}

static bool is_own_ancestor(uint32_t pid)
{
    struct gp_proc_stat stat;
    uint32_t at = (uint32_t)getpid();
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    for (int i = 0;
         proc >= 0 && i < ANCESTORS_MAX && at > 1 && !found && gp_proc_read_stat(proc, at, &stat);
         i++) {
        at = stat.ppid;
        found = at == pid;
    }
    if (proc >= 0)
        (void)close(proc);
    return found;
}

/* What this process was started in is not in its way. */
static void drop_own(struct gp_leases *leases)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].ns != gp_proc_own_ns() || !is_own_ancestor(leases->items[i].pid))
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

int gp_job_decide(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                  struct gp_pick_request *request, bool ignore_mask, struct gp_pick *ret,
                  struct gp_err *err)
{
    const char *mask = ignore_mask ? NULL : getenv("CUDA_VISIBLE_DEVICES");
    request->visible = mask ? visible : NULL;
    request->visible_count = mask ? gp_visible_rows(snapshot, mask, visible) : 0;
    drop_own(leases);
    if (gp_pick_make(snapshot, leases, request, ret) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const struct gp_selection *named[] = {request->only, request->prefer, request->avoid};
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(named); i++)
        if (named[i] && !request->visible)
            r = gp_selection_check(named[i], gpu_count(snapshot), err);
    if (r < 0)
        gp_pick_fini(ret);
    return r;
}

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
