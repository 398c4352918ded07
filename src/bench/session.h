/* Opens what a benchmark needs: the devices of CUDA or OpenCL, reserved for it where a driver can
 * say who uses them. */
#ifndef GP_BENCH_SESSION_H
#define GP_BENCH_SESSION_H

#include "bench/report.h"
#include "jobs/reserve.h"

struct gp_bench_log;
struct gp_bench_watch;

struct gp_bench_session {
    struct gp_bench bench;
    struct gp_bench_origin origin;
    struct gp_bench_devices devices; /* of the library, which may have more than are measured */
    struct gp_reserve reserve;
    struct gp_reserve_plan plan;
    const char *test; /* for results of GPUs that cannot be measured */
    struct granted {
        char uuid[96];
        char name[128];
        unsigned index;
    } granted[GP_BENCH_DEVICES];
    size_t granted_count;
};

/* Zero-initializes it; for gp_bench_session_close() whatever happens next. */
void gp_bench_session_init(struct gp_bench_session *session);

/* GPUs of NVIDIA. Reserves those that the request wants, unless `shared`, and measures those that
 * the sampler, which gp_bench_session_want() describes, and CUDA both know. Partitioned GPUs are
 * results with the reason. `cuda`: the library to load, NULL: search for it. Errors as in
 * gp_reserve_open() and gp_bench_cuda_open(); GP_ENODEV: CUDA does not see a GPU. */
int gp_bench_session_cuda(struct gp_bench_session *session, const struct gp_pick_request *request,
                          bool shared, const char *cuda, struct gp_sampler *sampler,
                          struct gp_err *err) GP_MUST_CHECK;
void gp_bench_session_want(struct gp_want *want);

/* Observes these GPUs from now on, keeps their reservation, and writes a log, which must outlive
 * gp_bench_session_end_watch() (NULL: none). GP_ENOMEM, GP_EFAIL. */
int gp_bench_session_watch(struct gp_bench_session *session, struct gp_sampler *sampler,
                           struct gp_bench_log *log, struct gp_err *err) GP_MUST_CHECK;

/* The devices of OpenCL; nobody can tell who uses them. `all`: not only GPUs. The error of
 * gp_bench_opencl_open(); GP_EUSAGE: `ids` ("0,2"; NULL: all) names one that does not exist. */
int gp_bench_session_opencl(struct gp_bench_session *session, bool all, const char *ids,
                            struct gp_err *err) GP_MUST_CHECK;

/* Ends the observation and notes in the origin whether the reservation was lost; before the results
 * are printed. The sampler is the caller's again. */
void gp_bench_session_end_watch(struct gp_bench_session *session);

/* The same, and ends the reservation and the devices. */
void gp_bench_session_close(struct gp_bench_session *session);

#endif
