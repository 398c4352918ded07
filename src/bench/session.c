#include "bench/session.h"

#include "base/err.h"
#include "base/parse.h"
#include "bench/peak.h"
#include "bench/ptx.h"
#include "bench/watch.h"
#include "model/snapshot.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void gp_bench_session_init(struct gp_bench_session *session)
{
    *session = (struct gp_bench_session){0};
    (void)pthread_mutex_init(&session->bench.lock, NULL);
    gp_reserve_init(&session->reserve);
    gp_bench_origin_of_host(&session->origin);
}

static void add_device(struct gp_bench *bench, struct gp_bench_device *device, const char *name,
                       const char *model)
{
    size_t i = bench->count++;
    bench->devices[i] = device;
    bench->cards[i] = gp_bench_card_of(model);
    (void)snprintf(bench->names[i], sizeof(bench->names[i]), "%s", name);
}

/* ---- CUDA ---- */

void gp_bench_session_want(struct gp_want *want)
{
    gp_bench_watch_want(want);
    gp_metric_set_add(&want->metrics, GP_NAME);
    gp_metric_set_add(&want->metrics, GP_MIG_MODE);
    gp_metric_set_add(&want->metrics, GP_DRIVER_VERSION);
}

static void on_grant(void *context, const struct gp_device *device)
{
    struct gp_bench_session *session = context;
    if (session->granted_count == GP_BENCH_DEVICES)
        return;
    struct granted *g = &session->granted[session->granted_count++];
    (void)snprintf(g->uuid, sizeof(g->uuid), "%s", gp_device_text(device, GP_UUID, ""));
    (void)snprintf(g->name, sizeof(g->name), "%s", gp_device_text(device, GP_NAME, ""));
    g->index = device->index;
}

/* Without a reservation: the GPUs that the request could get if nobody used them. */
static int on_pick(void *context, const struct gp_snapshot *snapshot, const struct gp_pick *pick,
                   struct gp_err *err)
{
    struct gp_bench_session *session = context;
    const struct gp_pick_request *request = &session->plan.request;
    (void)snapshot;
    (void)err;
    for (size_t i = 0; i < pick->count; i++)
        if (pick->units[i].state != GP_PICK_NEVER &&
            (request->is_all || session->granted_count < request->count))
            on_grant(context, pick->units[i].device);
    return 0;
}

static int choose(struct gp_bench_session *session, bool shared, struct gp_sampler *sampler,
                  struct gp_err *err)
{
    static char bench_word[] = "gpulse bench";
    char *const words[] = {bench_word};
    if (!shared) {
        session->plan.on_grant = on_grant;
        session->plan.context = session;
        return gp_reserve_open(&session->reserve, &session->plan, sampler, words, 1, err);
    }
    const struct gp_job_choice choice = {.request = &session->plan.request,
                                         .accepts_later = true,
                                         .show = on_pick,
                                         .context = session};
    return gp_job_choose(sampler, &choice, err);
}

/* What cannot be measured is said, if all GPUs were wanted. */
static int skip_partitioned(struct gp_bench_session *session, const struct gp_snapshot *snapshot,
                            struct gp_err *err)
{
    const struct gp_pick_request *request = &session->plan.request;
    for (size_t i = 0; request->is_all && i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        char name[16];
        if (device->is_mig || strcmp(gp_device_text(device, GP_MIG_MODE, ""), "Enabled") != 0 ||
            (request->only && !gp_pick_matches(request->only, device)))
            continue;
        (void)snprintf(name, sizeof(name), "%u", device->index);
        struct gp_bench_result *result =
            gp_bench_results_add(&session->bench.results, session->test, "-", name);
        if (!result)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        result->unit = "";
        result->outcome = GP_BENCH_SKIPPED;
        (void)snprintf(result->note, sizeof(result->note),
                       "it is partitioned (MIG): instances are not measured");
    }
    return 0;
}

static int read_driver(struct gp_bench_session *session, struct gp_sampler *sampler,
                       struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    const struct gp_value *driver = gp_snapshot_value(snapshot, NULL, NULL, GP_DRIVER_VERSION);
    if (driver->status == GP_STATUS_OK)
        (void)snprintf(session->origin.driver, sizeof(session->origin.driver), "%s", driver->s);
    r = skip_partitioned(session, snapshot, err);
    gp_snapshot_free(snapshot);
    return r;
}

static int match(struct gp_bench_session *session, struct gp_err *err)
{
    for (size_t g = 0; g < session->granted_count; g++) {
        const struct granted *granted = &session->granted[g];
        char name[16];
        size_t before = session->bench.count;
        (void)snprintf(name, sizeof(name), "%u", granted->index);
        for (size_t d = 0; d < session->devices.count; d++)
            if (strcmp(session->devices.list[d].uuid, granted->uuid) == 0)
                add_device(&session->bench, &session->devices.list[d], name, granted->name);
        const struct gp_bench_device *added =
            session->bench.count > before ? session->bench.devices[before] : NULL;
        if (added && added->capability < GP_PTX_CAPABILITY)
            return gp_err_set(err, GP_ENODEV,
                              "GPU %u has compute capability %u.%u; bench needs 5.0 or later",
                              granted->index, added->capability / 10, added->capability % 10);
        if (!added)
            return gp_err_set(err, GP_ENODEV,
                              "CUDA does not see GPU %u (%s); gpulse doctor examines why",
                              granted->index, granted->uuid);
    }
    return 0;
}

static void share_capability(const struct gp_bench *bench)
{
    unsigned least = UINT_MAX;
    for (size_t i = 0; i < bench->count; i++)
        if (bench->devices[i]->capability < least)
            least = bench->devices[i]->capability;
    for (size_t i = 0; i < bench->count; i++)
        bench->devices[i]->least_capability = least;
}

int gp_bench_session_cuda(struct gp_bench_session *session, const struct gp_pick_request *request,
                          bool shared, const char *cuda, struct gp_sampler *sampler,
                          struct gp_err *err)
{
    session->plan.request = *request;
    session->origin.is_shared = shared;
    session->origin.is_reserved = !shared;
    int r = choose(session, shared, sampler, err);
    if (r < 0)
        return r;
    r = read_driver(session, sampler, err);
    r = r < 0 ? r : gp_bench_cuda_open(cuda, &session->devices, err);
    r = r < 0 ? r : match(session, err);
    if (r == 0)
        share_capability(&session->bench);
    return r;
}

int gp_bench_session_watch(struct gp_bench_session *session, struct gp_sampler *sampler,
                           struct gp_bench_log *log, struct gp_err *err)
{
    return gp_bench_watch_start(&session->bench, sampler,
                                session->origin.is_reserved ? &session->reserve : NULL, log,
                                &session->bench.watch, err);
}

/* ---- OpenCL ---- */

/* Whether "0,2" contains a number; NULL contains all. */
static bool has_id(const char *ids, size_t id)
{
    char number[24];
    char word[24];
    (void)snprintf(number, sizeof(number), "%zu", id);
    for (const char *p = ids; p && gp_parse_word(&p, ',', word, sizeof(word));)
        if (strcmp(word, number) == 0)
            return true;
    return !ids;
}

static int check_ids(const char *ids, size_t count, struct gp_err *err)
{
    char word[24];
    uint64_t id;
    for (const char *p = ids; p && gp_parse_word(&p, ',', word, sizeof(word));)
        if (!gp_parse_u64(word, &id) || id >= count)
            return gp_err_set(err, GP_EUSAGE, "no OpenCL device '%s'; there %s %zu, counted from 0",
                              word, count == 1 ? "is" : "are", count);
    return 0;
}

int gp_bench_session_opencl(struct gp_bench_session *session, bool all, const char *ids,
                            struct gp_err *err)
{
    int r = gp_bench_opencl_open(all, &session->devices, err);
    r = r < 0 ? r : check_ids(ids, session->devices.count, err);
    for (size_t i = 0; r == 0 && i < session->devices.count; i++) {
        struct gp_bench_device *device = &session->devices.list[i];
        char name[16];
        (void)snprintf(name, sizeof(name), "%zu", i);
        if (has_id(ids, i))
            add_device(&session->bench, device, name, device->name);
        session->origin.is_shared |= device->is_gpu && has_id(ids, i);
    }
    return r;
}

void gp_bench_session_end_watch(struct gp_bench_session *session)
{
    gp_bench_watch_stop(session->bench.watch);
    if (session->bench.watch)
        gp_bench_watch_lost(session->bench.watch, session->origin.lost,
                            sizeof(session->origin.lost));
    gp_bench_watch_free(session->bench.watch);
    session->bench.watch = NULL;
}

void gp_bench_session_close(struct gp_bench_session *session)
{
    gp_bench_session_end_watch(session);
    gp_bench_devices_close(&session->devices);
    gp_reserve_close(&session->reserve);
    gp_bench_results_fini(&session->bench.results);
    (void)pthread_mutex_destroy(&session->bench.lock);
}
