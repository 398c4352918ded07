/* Choosing and reserving GPUs. */
#include "lib/lib.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/request.h"
#include "jobs/reserve.h"
#include "model/snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL_FLAGS = 2 * GPULSE_UUIDS - 1 };

struct gpulse_grant {
    pid_t pid; /* of the process that owns it */
    struct gpulse_request request;
    struct gp_selection only, avoid, prefer;
    struct gp_reserve_plan plan;
    struct gp_reserve gpus; /* those chosen; its reservation is only used by gpulse_reserve() */
    char uuids[GP_LEASE_GPUS][GP_LEASE_UUID_SIZE];
    size_t count;
};

/* ---- the request ---- */

static int check(const struct gpulse_request *request, struct gp_err *err)
{
    const unsigned most = GP_LEASE_GPUS;
    int r = gp_lib_check_size(request->size, "gpulse_request", err);
    if (r < 0)
        return r;
    if (request->count > most || request->at_most > most)
        return gp_err_set(err, GP_EUSAGE, "count and at_most can be at most %u", most);
    if (request->flags & ~(unsigned)ALL_FLAGS)
        return gp_err_set(err, GP_EUSAGE, "unknown flags");
    if ((request->flags & GPULSE_SHARE) && !request->memory)
        return gp_err_set(err, GP_EUSAGE,
                          "sharing GPUs needs the memory that the program will use");
    return 0;
}

static int read_request(gpulse_grant *grant, const struct gpulse_options *options,
                        struct gp_err *err)
{
    const struct gpulse_request *from = &grant->request;
    struct gp_pick_request *to = &grant->plan.request;
    int r = check(from, err);
    if (r < 0)
        return r;
    *to = (struct gp_pick_request){
        .count = from->count ? from->count : 1,
        .is_all = from->flags & GPULSE_ALL,
        .is_shared = from->flags & GPULSE_SHARE,
        .bytes = from->memory,
        .total_bytes = from->total_memory,
        .most_load = from->most_load ? (double)from->most_load : -1,
        .most_celsius = from->most_celsius ? (double)from->most_celsius : -1,
        .no_display = from->flags & GPULSE_NO_DISPLAY,
        .same_node = from->flags & GPULSE_SAME_NODE,
        .nvlink = from->flags & GPULSE_NVLINK,
        .is_ascending = !from->order,
        .ticket = UINT64_MAX,
    };
    to->order = to->is_all ? GP_PICK_INDEX : GP_PICK_DEFAULT;
    if (from->order && !gp_pick_find_order(from->order, &to->order))
        return gp_err_set(err, GP_EUSAGE, "unknown order '%.40s'", from->order);
    r = gp_selection_parse_any(options->gpus, &grant->only, &to->only, err);
    if (r == 0)
        r = gp_selection_parse_any(from->avoid, &grant->avoid, &to->avoid, err);
    return r < 0 ? r : gp_selection_parse_any(from->prefer, &grant->prefer, &to->prefer, err);
}

/* ---- what was chosen ---- */

static void add_gpu(void *context, const struct gp_device *device)
{
    gpulse_grant *grant = context;
    (void)snprintf(grant->uuids[grant->count++], GP_LEASE_UUID_SIZE, "%s",
                   gp_device_text(device, GP_UUID, ""));
}

static int note_picked(void *context, const struct gp_snapshot *snapshot,
                       const struct gp_pick *pick, struct gp_err *err)
{
    gpulse_grant *grant = context;
    grant->gpus.plan = &grant->plan;
    return gp_reserve_note(&grant->gpus, snapshot, pick, err);
}

static bool is_cancelled(void *context)
{
    const gpulse_grant *grant = context;
    return grant->request.is_cancelled && grant->request.is_cancelled(grant->request.context);
}

static void on_wait(void *context, const char *why)
{
    const gpulse_grant *grant = context;
    if (grant->request.on_wait)
        grant->request.on_wait(grant->request.context, why);
}

/* ---- choosing and reserving ---- */

static int pick(gpulse_grant *grant, struct gp_sampler *sampler, struct gp_err *err)
{
    const struct gp_job_choice choice = {
        .request = &grant->plan.request,
        .ignore_mask = grant->plan.ignore_mask,
        .at_most = grant->request.at_most,
        .wait_ns = grant->plan.wait_ns,
        .show = note_picked,
        .on_wait = on_wait,
        .is_cancelled = is_cancelled,
        .context = grant,
    };
    return gp_job_choose(sampler, &choice, err);
}

/* What others see of this process: its command line. */
static void read_command(char ret[sizeof(((struct gp_lease *)0)->command)])
{
    const size_t size = sizeof(((struct gp_lease *)0)->command);
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);
    if (fd >= 0)
        (void)close(fd);
    ret[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i + 1 < n; i++)
        if (!ret[i])
            ret[i] = ' ';
}

static int reserve(gpulse_grant *grant, struct gp_sampler *sampler, struct gp_err *err)
{
    char command[sizeof(grant->gpus.lease.command)];
    char *const words[] = {command};
    read_command(command);
    return gp_reserve_open(&grant->gpus, &grant->plan, sampler, words, 1, err);
}

/* All GPUs are sampled, because CUDA counts all of them. */
static int open_sampler(const gpulse_grant *grant, const struct gpulse_options *options,
                        struct gp_selection *every, struct gp_sampler **ret, struct gp_err *err)
{
    struct gpulse_options all = *options;
    struct gp_want want = {.host_only = false};
    gp_job_want(&grant->plan.request, &want);
    const uint32_t lists = want.lists;
    want.lists = 0;
    all.gpus = NULL;
    int r = gp_lib_open(&all, every, &want, ret, err);
    if (r < 0 || !lists)
        return r;
    return gp_job_tick_without_lists(*ret, lists, err);
}

static int act_on_sample(gpulse_grant *grant, const struct gpulse_options *options,
                         int (*act)(gpulse_grant *grant, struct gp_sampler *sampler,
                                    struct gp_err *err),
                         struct gp_err *err)
{
    struct gp_selection *every = calloc(1, sizeof(*every));
    struct gp_sampler *sampler = NULL;
    int r = every ? open_sampler(grant, options, every, &sampler, err)
                  : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0)
        r = act(grant, sampler, err);
    if (!gp_sampler_free(sampler))
        gp_lib_keep(every, sampler);
    else
        free(every);
    return r;
}

static int make(gpulse_grant *grant, const struct gpulse_options *options,
                int (*act)(gpulse_grant *grant, struct gp_sampler *sampler, struct gp_err *err),
                struct gp_err *err)
{
    struct gp_strbuf note = GP_STRBUF_INIT(2 * GP_PATH_SIZE);
    int r = read_request(grant, options, err);
    if (r == 0)
        r = gp_statedir_check(&note, err);
    gp_strbuf_fini(&note);
    return r < 0 ? r : act_on_sample(grant, options, act, err);
}

static int grant_with(const struct gpulse_options *given, const struct gpulse_request *request,
                      int (*act)(gpulse_grant *grant, struct gp_sampler *sampler,
                                 struct gp_err *err),
                      gpulse_grant **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    const struct gpulse_options options = gp_lib_options(given);
    gpulse_grant *grant = calloc(1, sizeof(*grant));
    *ret = NULL;
    if (!grant)
        return gp_lib_fail(error, &err, GP_ENOMEM);
    grant->request.size = sizeof(grant->request);
    gp_lib_take(&grant->request, sizeof(grant->request), request);
    grant->pid = getpid();
    gp_reserve_init(&grant->gpus);
    grant->plan = (struct gp_reserve_plan){
        .ignore_mask = grant->request.flags & GPULSE_IGNORE_MASK,
        .uuid = grant->request.flags & GPULSE_UUIDS,
        .name = grant->request.name,
        .wait_ns = gp_lib_time_ns(grant->request.wait_ns),
        .on_wait = on_wait,
        .on_grant = add_gpu,
        .is_cancelled = is_cancelled,
        .context = grant,
    };
    int r = make(grant, &options, act, &err);
    if (r < 0) {
        gpulse_release(grant);
        return gp_lib_fail(error, &err, r);
    }
    grant->request = (struct gpulse_request){0}; /* the caller's strings may go */
    grant->plan.name = NULL;
    *ret = grant;
    return 0;
}

int gpulse_pick(const struct gpulse_options *options, const struct gpulse_request *request,
                gpulse_grant **ret, struct gpulse_error *error)
{
    return grant_with(options, request, pick, ret, error);
}

int gpulse_reserve(const struct gpulse_options *options, const struct gpulse_request *request,
                   gpulse_grant **ret, struct gpulse_error *error)
{
    return grant_with(options, request, reserve, ret, error);
}

/* ---- the result ---- */

const char *gpulse_grant_mask(const gpulse_grant *grant)
{
    return grant->gpus.mask;
}

const char *gpulse_grant_gpus(const gpulse_grant *grant)
{
    return grant->gpus.ids;
}

size_t gpulse_grant_count(const gpulse_grant *grant)
{
    return grant->count;
}

const char *gpulse_grant_uuid(const gpulse_grant *grant, size_t n)
{
    return n < grant->count ? grant->uuids[n] : NULL;
}

int gpulse_grant_keep(gpulse_grant *grant, struct gpulse_error *error)
{
    char why[GP_RESERVE_WHY_SIZE];
    if (grant->pid != getpid())
        return gp_lib_fail_fork(error);
    if (grant->gpus.held.fd < 0 || gp_reserve_keep(&grant->gpus, why))
        return 0;
    return gp_lib_fail_with(error, grant->gpus.is_lost ? GPULSE_EFAIL : GPULSE_EBUSY, why);
}

/* The file belongs to the process that has written it. */
static void forget(struct gp_lease_note *note)
{
    const int fds[] = {note->fd, note->dir};
    for (size_t i = 0; note->fd >= 0 && i < GP_ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

void gpulse_release(gpulse_grant *grant)
{
    if (!grant)
        return;
    if (grant->pid == getpid())
        gp_reserve_close(&grant->gpus);
    else
        forget(&grant->gpus.held);
    free(grant);
}
