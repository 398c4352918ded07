#include "cmd/job_request.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/watch.h"
#include "model/select.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MOST = GP_LEASE_GPUS, GPUS_SIZE = 8192 };

/* Static, because the request points to them. */
static struct gp_selection only, prefer, avoid;

static int take_ids(const char *ids, const char *option, struct gp_pick_request *request,
                    struct gp_err *err)
{
    if (request->only)
        return gp_err_set(err, GP_EUSAGE, "%s names GPUs, and so does --id; use only one of them",
                          option);
    request->is_all = true;
    return gp_selection_parse_any(ids, &only, &request->only, err);
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
        .is_ascending = !o->order,
        .ticket = UINT64_MAX,
    };
    if (o->order)
        (void)gp_pick_find_order(o->order, &ret->order); /* one of the choices */
    int r = gp_selection_parse_any(gp_common()->id, &only, &ret->only, err);
    gp_common()->id = NULL;
    if (r == 0)
        r = take_number(o, ret, err);
    if (ret->is_all && !o->order)
        ret->order = GP_PICK_INDEX;
    if (r == 0)
        r = gp_selection_parse_any(o->prefer, &prefer, &ret->prefer, err);
    return r < 0 ? r : gp_selection_parse_any(o->avoid, &avoid, &ret->avoid, err);
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

int gp_job_open(const struct gp_pick_request *request, const struct gp_want *besides,
                struct gp_sampler **ret, struct gp_err *err)
{
    static const struct gp_want nothing;
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = besides ? *besides : nothing;
    gp_job_want(request, &want);
    const uint32_t lists = want.lists;
    want.lists = 0;
    int r = gp_app_open(&want, &loop, ret, err);
    if (r < 0 || !lists)
        return r;
    r = gp_job_tick_without_lists(*ret, lists, err);
    if (r < 0)
        gp_app_close(*ret);
    return r;
}

int gp_job_suggest_wait(int r, struct gp_err *err)
{
    const struct gp_err busy = *err;
    if (r == GP_EBUSY)
        (void)gp_err_set(err, r, "%s; use --wait to wait for free GPUs", busy.text);
    return r;
}

int gp_job_preview(const struct gp_job_options *options, bool waits, gp_job_show *show,
                   void *context, struct gp_err *err)
{
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    int r = gp_job_request(options, &request, err);
    if (r == 0)
        r = gp_job_open(&request, NULL, &sampler, err);
    if (r < 0)
        return r;
    const struct gp_job_choice choice = {.request = &request,
                                         .ignore_mask = options->ignore_mask,
                                         .accepts_later = waits,
                                         .show = show,
                                         .context = context};
    r = gp_job_choose(sampler, &choice, err);
    gp_app_close(sampler);
    return gp_job_suggest_wait(r, err);
}

void gp_job_print(const struct gp_watch *watch, enum gp_watch_topic topic, const char *text)
{
    char who[100] = "gpulse";
    if (topic == GP_WATCH_OF_JOB && watch->label)
        (void)snprintf(who, sizeof(who), "gpulse: %.80s", watch->label);
    if (topic == GP_WATCH_MORE)
        (void)!gp_io_write_all(STDERR_FILENO, text, strlen(text));
    else
        gp_io_print_note(who, text);
}

int gp_job_reserve(struct gp_run *run, struct gp_run_plan *plan, const struct gp_job_options *o,
                   char *const *argv, int argc, struct gp_sampler **ret_sampler, struct gp_err *err)
{
    const struct gp_want want = gp_run_want(plan);
    struct gp_sampler *sampler;
    run->watch.tell = gp_job_print;
    plan->gpus.ignore_mask = o->ignore_mask;
    plan->gpus.uuid = o->uuid;
    int r = gp_job_request(o, &plan->gpus.request, err);
    if (r == 0)
        r = gp_run_begin(run, plan, err);
    if (r == 0)
        r = gp_job_open(&plan->gpus.request, &want, &sampler, err);
    if (r < 0)
        return r;
    *ret_sampler = sampler;
    return gp_job_suggest_wait(gp_run_reserve(run, sampler, argv, argc, err), err);
}

void gp_job_release(struct gp_run *run, struct gp_sampler *sampler)
{
    gp_run_close(run);
    if (sampler)
        gp_app_close(sampler);
}
