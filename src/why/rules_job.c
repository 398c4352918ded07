/* The rules about jobs: those that do not run, those that their GPU waits for, and others beside
 * them. */
#include "why/rule.h"

/* Limits. Percent as the driver reports them, shares from 0 to 1. jobstats (Princeton) calls a mean
 * utilization below 15 and 25 low; a loop that keeps a GPU supplied stays above 80. */
static const double busy_thread = 0.9, sleeping_cpus = 0.3, idle_sure_s = 600;
static const double read_much = 10e6, pressure_high = 0.1;
static const double disk_share = 0.3, majors_many = 100, swap_majors = 20, swap_least = 64 << 20;
static const double turn_least = 0.2, turns_most = 1.3;
static const double cores_full = 0.9, queue_long = 0.3, others_used = 10;

/* ---- what was seen ---- */

static bool is_unused(const struct gp_why_case *c)
{
    return gp_why_most(c, GP_WHY_UTILIZATION) <= GP_WHY_HARDLY;
}

/* The GPU is used, and has nothing to do for a good part of the time. */
static bool waits(const struct gp_why_case *c)
{
    return gp_why_mean(c, GP_WHY_UTILIZATION) < GP_WHY_WAITS_BELOW && c->host.is_known &&
           (gp_why_is_used(c) || c->host.cpus >= sleeping_cpus);
}

/* The main thread runs, or would if it had a CPU. */
static bool is_main_busy(const struct gp_tasks_use *h)
{
    return h->knows_threads && h->main + (h->queue > 0 ? h->queue : 0) >= busy_thread;
}

/* The main thread and others take turns: together they are busy all the time, as those of PyTorch
 * that start the kernels of the forward and the backward pass. */
static bool take_turns(const struct gp_tasks_use *h)
{
    double both = h->main + h->others;
    return h->knows_threads && h->main >= turn_least && h->others >= turn_least &&
           both >= busy_thread && both <= turns_most;
}

/* How many times as fast, if the GPU were busy all the time. */
static double gain_of_waiting(const struct gp_why_case *c)
{
    double busy = gp_why_mean(c, GP_WHY_UTILIZATION);
    return busy >= 1 ? 100 / busy : 0;
}

/* ---- the job does not run ---- */

bool gp_why_suspended(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!c->is_suspended && !(c->host.is_known && c->host.stopped > 0.5))
        return false;
    v->sure = GP_WHY_CERTAIN;
    if (c->is_suspended) {
        gp_why_put(v->seen, "its GPU memory was moved to host memory");
        gp_why_put(v->advice, "gpulse resume %s", gp_why_pid(c).text);
        return true;
    }
    gp_why_put(v->seen, "process %s was stopped (state T) in %.0f %% of the looks",
               gp_why_pid(c).text, 100 * c->host.stopped);
    gp_why_put(v->advice, "kill -CONT %s, or fg in the shell that started it", gp_why_pid(c).text);
    return true;
}

bool gp_why_swapped(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || (double)h->swapped_bytes < swap_least || h->majors_per_s < swap_majors)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put(v->seen,
               "%.1f GiB of its memory are in swap; %.0f page faults a second needed a disk",
               (double)h->swapped_bytes / 0x1p30, h->majors_per_s);
    gp_why_put(v->advice, "free host memory: fewer workers, smaller buffers, or another machine");
    return true;
}

bool gp_why_unused(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!is_unused(c) || c->job_gpus_busy == 0)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = (double)c->job_gpus / c->job_gpus_busy;
    gp_why_put(v->seen, "it was as good as unused, while the job used %u of its %u GPUs",
               c->job_gpus_busy, c->job_gpus);
    gp_why_put(v->advice,
               "check the rank and device of each process (LOCAL_RANK, torch.cuda.set_device), "
               "or give the GPU back");
    return true;
}

bool gp_why_idle(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!is_unused(c) || (c->host.is_known && c->host.cpus >= sleeping_cpus))
        return false;
    v->sure = c->host.is_known && c->seconds >= idle_sure_s ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    gp_why_put(v->seen, "the GPU was as good as unused for %.0f s", c->seconds);
    if (c->host.is_known)
        gp_why_put(v->seen, ", and the job kept %.2f CPUs busy", c->host.cpus);
    if (gp_why_is_known(gp_why_mean(c, GP_WHY_MEMORY)))
        gp_why_put(v->seen, "; %.1f GiB are in use", gp_why_mean(c, GP_WHY_MEMORY) / 0x1p30);
    gp_why_put(
        v->advice,
        "a server may be waiting for requests; if it is finished or forgotten: gpulse kill %s",
        gp_why_pid(c).text);
    return true;
}

/* ---- the GPU waits ---- */

bool gp_why_storage(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || (h->disk < disk_share && h->majors_per_s < majors_many))
        return false;
    /* Threads also wait like that inside of a driver. */
    bool is_seen = h->read_bytes_per_s >= read_much || h->majors_per_s >= majors_many ||
                   h->pressure_io >= pressure_high;
    v->sure = h->disk >= disk_share && is_seen ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put(v->seen, "; a thread waited for a disk in %.0f %% of the looks", 100 * h->disk);
    if (h->read_bytes_per_s >= 0)
        gp_why_put(v->seen, "; %.0f MB/s read", h->read_bytes_per_s / 1e6);
    if (h->majors_per_s >= 1)
        gp_why_put(v->seen, "; %.0f page faults a second needed a disk", h->majors_per_s);
    gp_why_put(v->advice,
               "keep the data on a local SSD or in memory; few large files instead of many small "
               "ones");
    return true;
}

/* Whether the job keeps all CPUs busy on which it may run, and does not only have one thread. */
static bool are_cores_full(const struct gp_tasks_use *h)
{
    bool has_more = h->workers > 0 || h->processes > 1 || (h->knows_threads && h->others > 0.1);
    return h->is_known && h->allowed > 0 && h->cpus + h->wanted >= cores_full * gp_why_cpus(h) &&
           has_more;
}

bool gp_why_cores(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    /* CPUs that one rank may use belong to all of them, unless each is bound to its own. */
    const struct gp_tasks_use *h = are_cores_full(&c->host) ? &c->host : &c->job;
    bool queues = c->host.queue >= queue_long;
    if (!waits(c) || !(are_cores_full(h) || queues))
        return false;
    bool is_pinned = h->allowed < gp_why_mean(c, GP_WHY_HOST_CPUS);
    bool has_quota = gp_why_cpus(h) < h->allowed;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    if (h->allowed > 0)
        gp_why_put(v->seen, "; the job kept %.1f of its %.3g CPU%s busy", h->cpus, gp_why_cpus(h),
                   h->allowed == 1 ? "" : "s");
    if (queues)
        gp_why_put(v->seen, "; its main thread waited %.0f %% of the time for a CPU",
                   100 * c->host.queue);
    if (has_quota)
        gp_why_put(
            v->advice,
            "its control group has a quota of %.3g CPUs: docker run --cpus, resources.limits "
            "of the pod, or CPUQuota= of the unit",
            h->quota);
    else if (is_pinned && h->allowed > 0)
        gp_why_put(v->advice,
                   "the job may run on %u of %.0f CPUs only: check taskset, --cpus-per-task, "
                   "OMP_PROC_BIND and the container's cpuset",
                   h->allowed, gp_why_mean(c, GP_WHY_HOST_CPUS));
    else
        gp_why_put(v->advice, "more CPUs for the job; move work to the GPU, or prepare the data "
                              "beforehand");
    return true;
}

bool gp_why_loader(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || is_main_busy(h) || h->workers_busy == 0 ||
        2 * h->workers_busy < h->workers_active)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    if (gp_why_free_cpus(c) >= 2)
        gp_why_put(v->advice, "more workers (num_workers), up to %.0f CPUs are free; ",
                   gp_why_free_cpus(c));
    gp_why_put(v->advice, "persistent_workers=True, cheaper transforms, or transforms on the GPU");
    return true;
}

bool gp_why_threads(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || !h->knows_threads || is_main_busy(h) || h->others < busy_thread)
        return false;
    v->sure = GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    gp_why_put(v->seen, "; its other threads %.1f CPUs", h->others);
    gp_why_put(v->advice,
               "see what they do (py-spy dump --pid %s, perf top -p %s): layers that run on the "
               "CPU, tokenization, preprocessing",
               gp_why_pid(c).text, gp_why_pid(c).text);
    return true;
}

bool gp_why_main_thread(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    const bool is_alone = is_main_busy(h);
    if (!waits(c) || !(is_alone || take_turns(h)) || h->workers_busy > 0)
        return false;
    v->sure = is_alone ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    if (!is_alone)
        gp_why_put(v->seen, "; its other threads %.0f %%, in turn with it", 100 * h->others);
    gp_why_put(
        v->advice,
        h->workers == 0
            ? "load data in workers (num_workers=4, pin_memory=True): the default of 0 loads it in "
              "the main thread; fewer .item() and print(); py-spy top --pid %s shows the lines"
            : "larger batches, torch.compile or CUDA graphs, fewer .item() and print(); "
              "py-spy top --pid %s shows the lines",
        gp_why_pid(c).text);
    return true;
}

bool gp_why_waiting(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!waits(c) || !gp_why_is_used(c) || c->host.cpus >= sleeping_cpus)
        return false;
    v->sure = GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    gp_why_put(v->seen, "; neither CPU nor disk was busy for it");
    gp_why_put(v->advice,
               "look for sleeps, locks, remote storage, requests that do not come, or another "
               "machine: py-spy dump --pid %s",
               gp_why_pid(c).text);
    return true;
}

/* It waits, but what for is not visible: the program is another user's or in a container, or shares
 * its time between several of the reasons above. */
bool gp_why_low_use(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_mean(c, GP_WHY_UTILIZATION) < GP_WHY_WAITS_BELOW))
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    if (c->host.is_known)
        gp_why_put_host(c, v->seen);
    gp_why_put(
        v->advice,
        "a server: more requests at a time, or share the GPU (gpulse run --share --mem SIZE); a "
        "training: larger batches; py-spy dump --pid %s shows what it does",
        gp_why_pid(c).text);
    return true;
}

/* ---- others ---- */

bool gp_why_wrong_gpu(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (c->reserved_by == 0)
        return false;
    v->sure = c->is_contained ? GP_WHY_POSSIBLE : GP_WHY_LIKELY; /* docker run: it is no child */
    gp_why_put(v->seen, "the GPU is reserved by process %u, and process %s does not belong to it",
               c->reserved_by, gp_why_pid(c).text);
    gp_why_put(v->advice, "start the job with gpulse run, which chooses a free GPU");
    return true;
}

bool gp_why_shared(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    bool is_measured = c->others_sm >= others_used;
    bool is_likely = c->others_sm < 0 && gp_why_mean(c, GP_WHY_UTILIZATION) >= GP_WHY_WAITS_BELOW;
    if (c->others == 0 || !(is_measured || is_likely))
        return false;
    v->sure = is_measured ? GP_WHY_CERTAIN : GP_WHY_POSSIBLE;
    gp_why_put(v->seen, "%u other process%s", c->others, c->others == 1 ? "" : "es");
    if (is_measured) {
        gp_why_put(v->seen, " used the GPU %.0f %% of the time", c->others_sm);
        v->gain = c->others_sm < 95 ? 100 / (100 - c->others_sm) : 0;
    }
    if (c->other_pid && c->others == 1)
        gp_why_put(v->seen, ": process %u", c->other_pid);
    else if (c->other_pid && is_measured)
        gp_why_put(v->seen, ", most of it process %u", c->other_pid);
    gp_why_put(v->advice,
               "another GPU for one of them (gpulse pick), or MPS, which runs their kernels at "
               "the same time");
    return true;
}
