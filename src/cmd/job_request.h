/* Which GPUs a job requests: the options that gpulse pick and gpulse run share, and how messages of
 * jobs are printed. */
#ifndef GP_CMD_JOB_REQUEST_H
#define GP_CMD_JOB_REQUEST_H

#include "jobs/request.h"
#include "jobs/run.h"

struct gp_err;

struct gp_job_options {
    uint64_t count; /* the same as `gpus`, under another name; 0: not given */
    const char *gpus, *gpu_ids;
    uint64_t bytes, total_bytes;
    uint64_t most_load, most_celsius; /* GP_JOB_ANY: not given */
    const char *prefer, *avoid, *order;
    bool share, no_display, same_node, nvlink, ignore_mask, uuid;
};

enum { GP_JOB_ANY = 1000000 };

#define GP_JOB_DEFAULTS                                                                            \
    {                                                                                              \
        .most_load = GP_JOB_ANY, .most_celsius = GP_JOB_ANY                                        \
    }

/* clang-format off */
#define GP_JOB_ROWS(type_of, field)                                                                \
    {'g', "gpus", NULL, GP_OPT_STRING, "N", .offset = offsetof(type_of, field.gpus),               \
     .excludes = "gpu-ids count", .group = "Select",                                               \
     .help = "number of GPUs, or all (default 1)"},                                                \
    {0, "gpu-ids", "gpu", GP_OPT_STRING, "GPUS", .offset = offsetof(type_of, field.gpu_ids),       \
     .excludes = "count", .help = "exactly these GPUs, as in -i"},                                 \
    {'n', "count", NULL, GP_OPT_U64, "N", .least = 1, .offset = offsetof(type_of, field.count)},   \
    {0, "mem", NULL, GP_OPT_SIZE, "SIZE", .least = 1 << 20, .in_mib = true,                        \
     .offset = offsetof(type_of, field.bytes), .help = "free memory needed on each GPU"},          \
    {0, "total", NULL, GP_OPT_SIZE, "SIZE", .least = 1 << 20, .in_mib = true,                      \
     .offset = offsetof(type_of, field.total_bytes),                                               \
     .help = "total memory needed on each GPU"},                                                   \
    {0, "share", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.share),                      \
     .help = "share GPUs with other jobs that leave --mem free"},                                  \
    {0, "max-load", NULL, GP_OPT_U64, "PERCENT", .offset = offsetof(type_of, field.most_load),     \
     .help = "skip GPUs whose utilization is above PERCENT"},                                      \
    {0, "max-temp", NULL, GP_OPT_U64, "CELSIUS", .offset = offsetof(type_of, field.most_celsius),  \
     .help = "skip GPUs hotter than CELSIUS"},                                                     \
    {0, "prefer", NULL, GP_OPT_STRING, "GPUS", .offset = offsetof(type_of, field.prefer),          \
     .help = "use these first, as in -i"},                                                         \
    {0, "avoid", NULL, GP_OPT_STRING, "GPUS", .offset = offsetof(type_of, field.avoid),            \
     .help = "never use these, as in -i"},                                                         \
    {0, "no-display", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.no_display),            \
     .help = "skip GPUs that drive a display"},                                                    \
    {0, "same-node", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.same_node),              \
     .help = "require all GPUs on one NUMA node"},                                                 \
    {0, "nvlink", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.nvlink),                    \
     .help = "require NVLink between all GPUs"},                                                   \
    {0, "order", NULL, GP_OPT_CHOICE, "ORDER", .choices = "default free load cool index",          \
     .offset = offsetof(type_of, field.order),                                                     \
     .help = "order in which GPUs are chosen (default: fewest processes, then most free "          \
             "memory, then the highest number)"},                                                  \
    {0, "uuid", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.uuid),                        \
     .help = "print or pass UUIDs instead of indices"},                                            \
    {0, "ignore-mask", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.ignore_mask),          \
     .help = "ignore an existing CUDA_VISIBLE_DEVICES"}
/* clang-format on */

/* The request from these options and -i. It points into static memory, so there is one per process.
 * GP_EUSAGE. Call this before opening the sampler: it consumes -i, because CUDA counts all GPUs. */
int gp_job_request(const struct gp_job_options *options, struct gp_pick_request *ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* Notes, unless quiet, that other users cannot see reservations where they are stored.
 * GP_EUSAGE. */
int gp_job_check_place(bool quiet, struct gp_err *err) GP_MUST_CHECK;

/* Opens a sampler for choosing GPUs and for what else is wanted (NULL: nothing). */
int gp_job_open(const struct gp_pick_request *request, const struct gp_want *besides,
                struct gp_sampler **ret, struct gp_err *err) GP_MUST_CHECK;

/* Adds to GP_EBUSY that --wait waits. Returns r. */
int gp_job_suggest_wait(int r, struct gp_err *err);

/* gp_job_choose() for these options; also the errors of gp_job_request() and gp_job_open(). */
int gp_job_preview(const struct gp_job_options *options, bool waits, gp_job_show *show,
                   void *context, struct gp_err *err) GP_MUST_CHECK;

/* Prints a message of a job on standard error: the `tell` of its watch. */
void gp_job_print(const struct gp_watch *watch, enum gp_watch_topic topic, const char *text);

/* Begins a run of a command of `argc` words, and reserves the GPUs that the options request, which
 * it adds to the plan. Errors as in gp_job_request(), gp_job_open(), gp_run_begin() and
 * gp_run_reserve(). Call gp_job_release() whatever it returns, with the sampler, which is left
 * unchanged (NULL) if it was not opened. */
int gp_job_reserve(struct gp_run *run, struct gp_run_plan *plan, const struct gp_job_options *o,
                   char *const *argv, int argc, struct gp_sampler **ret_sampler,
                   struct gp_err *err) GP_MUST_CHECK;
void gp_job_release(struct gp_run *run, struct gp_sampler *sampler);

#endif
