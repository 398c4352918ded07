#include "cmd/job_request.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/visible.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MOST = GP_LEASE_GPUS, ANCESTORS_MAX = 256, GPUS_SIZE = 8192 };

/* Static, because the request points to them. */
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

static int take_ids(const char *ids, const char *option, struct gp_pick_request *request,
                    struct gp_err *err)
{
    if (request->only)
        return gp_err_set(err, GP_EUSAGE, "%s names GPUs, and so does --id; use only one of them",
                          option);
    request->is_all = true;
    return parse_gpus(ids, &only, &request->only, err);
}

/* A number as in Slurm, or docker's syntax: "all" and "device=0,1", possibly with quotes that the
 * shell did not remove. */
static int take_gpus(const struct gp_job_options *o, struct gp_pick_request *request,
                     struct gp_err *err)
{
    static const char device[] = "device=";
    char text[GPUS_SIZE];
    uint64_t count;
    size_t n = strlen(o->gpus);
    bool is_quoted = n > 1 && o->gpus[0] == '"' && o->gpus[n - 1] == '"';
    if (n >= sizeof(text))
        return gp_err_set(err, GP_EUSAGE, "the value of --gpus is too long");
    (void)snprintf(text, sizeof(text), "%.*s", (int)(is_quoted ? n - 2 : n), o->gpus + is_quoted);
    if (strncmp(text, device, strlen(device)) == 0)
        return take_ids(text + strlen(device), "--gpus", request, err);
    if (strcmp(text, "all") == 0) {
        request->is_all = true;
        return 0;
    }
    if (!gp_parse_u64(text, &count))
        return gp_err_set(
            err, GP_EUSAGE,
            text[strspn(text, "0123456789,-:")]
                ? "--gpus takes a number of GPUs, or all, not '%.200s'"
                : "--gpus takes a number of GPUs; to choose GPUs use --gpu-ids %.200s",
            text);
    if (count == 0 || count > COUNT_MOST)
        return gp_err_set(
            err, GP_EUSAGE,
            "--gpus %.20s: expected 1 to %d; to choose a GPU by index use --gpu-ids %.20s", text,
            (int)COUNT_MOST, text);
    request->count = (unsigned)count;
    return 0;
}

/* One of the three ways to say which GPUs, or how many. */
static int take_number(const struct gp_job_options *o, struct gp_pick_request *request,
                       struct gp_err *err)
{
    if (o->gpu_ids)
        return take_ids(o->gpu_ids, "--gpu-ids", request, err);
    return o->gpus ? take_gpus(o, request, err) : 0;
}

int gp_job_request(const struct gp_job_options *o, struct gp_pick_request *ret, struct gp_err *err)
{
    if (o->count > COUNT_MOST)
        return gp_err_set(err, GP_EUSAGE, "--count takes at most %d", (int)COUNT_MOST);
    if (o->share && !o->bytes)
        return gp_err_set(err, GP_EUSAGE, "--share needs --mem, the memory that the job will use");
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
        .is_ascending = !o->order,
        .ticket = UINT64_MAX,
    };
    int r = parse_gpus(gp_common()->id, &only, &ret->only, err);
    gp_common()->id = NULL;
    if (r == 0)
        r = take_number(o, ret, err);
    if (ret->is_all && !o->order)
        ret->order = GP_PICK_INDEX;
    if (r == 0)
        r = parse_gpus(o->prefer, &prefer, &ret->prefer, err);
    return r < 0 ? r : parse_gpus(o->avoid, &avoid, &ret->avoid, err);
}

int gp_job_check_place(bool quiet, struct gp_err *err)
{
    struct gp_strbuf note = GP_STRBUF_INIT(2 * GP_PATH_SIZE);
    int r = gp_statedir_check(&note, err);
    if (r == 0 && note.len > 0 && !quiet)
        gp_io_print_note("gpulse", note.buf);
    gp_strbuf_fini(&note);
    return r;
}

/* A GPU's list of peers queries the other GPUs. The first tick is made without it, because after
 * that the source knows which ones hang, and leaves those out. */
int gp_job_open(const struct gp_pick_request *request, const struct gp_want *besides,
                struct gp_sampler **ret, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    static const struct gp_want nothing;
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = besides ? *besides : nothing;
    gp_pick_want(&want, request->is_all || request->count > 1);
    const uint32_t lists = want.lists;
    want.lists = 0;
    int r = gp_app_open(&want, &loop, ret, err);
    if (r < 0 || !lists)
        return r;
    r = gp_sampler_tick(*ret, &snapshot, err);
    if (r < 0) {
        gp_app_close(*ret);
        *ret = NULL;
        return r;
    }
    gp_snapshot_free(snapshot);
    gp_sampler_add_lists(*ret, lists);
    return 0;
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

/* The leases of this process's own job do not count. */
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

/* All named GPUs must exist; a request for none counts as one missing. */
static int count_all(const struct gp_snapshot *snapshot, struct gp_pick_request *request,
                     struct gp_err *err)
{
    unsigned count = gp_pick_count_all(snapshot, request);
    if (count > COUNT_MOST)
        return gp_err_set(err, GP_EUSAGE, "--gpus selects %u GPUs, but at most %d can be used",
                          count, (int)COUNT_MOST);
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

int gp_job_preview(const struct gp_job_options *options, bool waits,
                   int (*show)(void *context, const struct gp_snapshot *snapshot,
                               const struct gp_pick *pick, struct gp_err *err),
                   void *context, struct gp_err *err)
{
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot = NULL;
    struct gp_leases leases = {.items = NULL};
    struct gp_pick pick = {.units = NULL};
    int r = gp_job_request(options, &request, err);
    if (r == 0)
        r = gp_job_open(&request, NULL, &sampler, err);
    if (r < 0)
        return r;
    r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = gp_leases_read(&leases, err);
    if (r == 0)
        r = gp_job_decide(snapshot, &leases, &request, options->ignore_mask, &pick, err);
    if (r == 0 && (pick.state == GP_PICK_FITS || (pick.state == GP_PICK_LATER && waits)))
        r = show(context, snapshot, &pick, err);
    else if (r == 0)
        r = gp_job_refuse(pick.state, pick.why, false, err);
    gp_pick_fini(&pick);
    gp_leases_fini(&leases);
    gp_snapshot_free(snapshot);
    gp_app_close(sampler);
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
    struct gp_strbuf ids = GP_STRBUF_INIT(GPUS_SIZE);
    size_t count = 0;
    for (; count < pick->chosen_count && count < GP_ARRAY_LEN(devices); count++)
        devices[count] = pick->units[pick->chosen[count]].device;
    gp_job_add_ids(&ids, pick);
    gp_pick_add_gpus(sb, devices, count);
    if (strcmp(ids.buf, mask) != 0)
        gp_strbuf_addf(sb, " (CUDA_VISIBLE_DEVICES=%s)", mask);
    gp_strbuf_fini(&ids);
}
