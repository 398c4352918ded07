#include "why/rules.h"

#include <math.h>

/* Limits of the rules. Percent as the driver reports them, shares from 0 to 1. Their sources:
 *   waits: jobstats (Princeton) calls a mean below 15 and 25 low; a loop that keeps a GPU supplied
 *     stays above 80;
 *   link: what a copy reaches is 80 to 85 percent of a link's rate;
 *   dram: a copy reaches 85 to 93 percent of the data sheet's bandwidth, kernels that are limited
 * by it stay above 60; tensor: a training in bf16 on an H100 keeps them busy for 30 to 60 percent
 * of the time. */
static const double waits_below = 75, hardly = 1.5;
static const double busy_thread = 0.9, sleeping_cpus = 0.3, idle_cpus = 0.05;
static const double disk_share = 0.3, majors_many = 100, swap_majors = 20, swap_least = 64 << 20;
static const double cores_full = 0.9, queue_long = 0.3;
static const double limited_often = 0.1, capped_often = 0.5, clock_low = 0.85;
static const double link_full = 0.6, link_used = 0.3, link_far = 0.1;
static const double dram_full = 60, controller_full = 80, tensor_idle = 10, tensor_used = 40;
static const double memory_full = 0.95, others_used = 10, far_away = 0.8;

/* ---- what was seen ---- */

static bool is_used(const struct gp_why_case *c)
{
    return gp_why_most(c, GP_WHY_UTILIZATION) > hardly;
}

static bool is_unused(const struct gp_why_case *c)
{
    return gp_why_most(c, GP_WHY_UTILIZATION) <= hardly;
}

/* The GPU is used, and has nothing to do for a good part of the time. */
static bool waits(const struct gp_why_case *c)
{
    return gp_why_mean(c, GP_WHY_UTILIZATION) < waits_below && c->host.is_known &&
           (is_used(c) || c->host.cpus >= sleeping_cpus);
}

/* The main thread runs, or would if it had a CPU. */
static bool is_main_busy(const struct gp_tasks_use *h)
{
    return h->knows_threads && h->main + (h->queue > 0 ? h->queue : 0) >= busy_thread;
}

/* How many times as fast, if the GPU were busy all the time. */
static double gain_of_waiting(const struct gp_why_case *c)
{
    double busy = gp_why_mean(c, GP_WHY_UTILIZATION);
    return busy >= 1 ? 100 / busy : 0;
}

/* ---- the job does not run ---- */

static bool suspended(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!c->is_suspended && !(c->host.is_known && c->host.stopped > 0.5))
        return false;
    v->sure = GP_WHY_CERTAIN;
    if (c->is_suspended) {
        gp_why_put(v->seen, "its GPU memory was moved to host memory");
        gp_why_put(v->advice, "gpulse resume %u", c->pid);
        return true;
    }
    gp_why_put(v->seen, "process %u was stopped (state T) in %.0f %% of the looks", c->pid,
               100 * c->host.stopped);
    gp_why_put(v->advice, "kill -CONT %u, or fg in the shell that started it", c->pid);
    return true;
}

static bool swapped(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!h->is_known || (double)h->swapped_bytes < swap_least || h->majors_per_s < swap_majors)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put(v->seen,
               "%.1f GiB of its memory are in swap; %.0f page faults a second needed a disk",
               (double)h->swapped_bytes / 0x1p30, h->majors_per_s);
    gp_why_put(v->advice, "free host memory: fewer workers, smaller buffers, or another machine");
    return true;
}

static bool unused(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!is_unused(c) || c->job_gpus_busy == 0)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = c->job_gpus_busy > 0 ? (double)c->job_gpus / c->job_gpus_busy : 0;
    gp_why_put(v->seen, "no kernel ran here, while the job used %u of its %u GPUs",
               c->job_gpus_busy, c->job_gpus);
    gp_why_put(v->advice,
               "check the rank and device of each process (LOCAL_RANK, torch.cuda.set_device), "
               "or give the GPU back");
    return true;
}

static bool idle(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (c->pid == 0 || !is_unused(c) || (c->host.is_known && c->host.cpus >= idle_cpus))
        return false;
    v->sure = c->host.is_known ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    gp_why_put(v->seen, "no kernel ran, and the job used no CPU; it holds %.1f GiB",
               gp_why_mean(c, GP_WHY_MEMORY) / 0x1p30);
    gp_why_put(v->advice, "if it is finished or forgotten: gpulse kill %u", c->pid);
    return true;
}

/* ---- the GPU waits ---- */

static bool storage(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || (h->disk < disk_share && h->majors_per_s < majors_many))
        return false;
    v->sure = h->disk >= 2 * disk_share ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
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

static bool cores(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    bool has_more = h->workers > 0 || (h->knows_threads && h->others > 0.1);
    bool is_full = h->allowed > 0 && h->cpus + h->wanted >= cores_full * h->allowed && has_more;
    bool queues = h->queue >= queue_long;
    if (!waits(c) || !(is_full || queues))
        return false;
    bool is_pinned = h->allowed < gp_why_mean(c, GP_WHY_HOST_CPUS);
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put(v->seen, "; the job kept %.1f of %u CPU%s busy", h->cpus, h->allowed,
               h->allowed == 1 ? "" : "s");
    if (queues)
        gp_why_put(v->seen, "; its main thread waited %.0f %% of the time for a CPU",
                   100 * h->queue);
    gp_why_put(v->advice,
               is_pinned
                   ? "the job may run on %u of %.0f CPUs only: check taskset, --cpus-per-task, "
                     "OMP_PROC_BIND and the container's cpuset"
                   : "more CPUs for the job; move work to the GPU, or prepare the data beforehand "
                     "(%u of %.0f CPUs)",
               h->allowed, gp_why_mean(c, GP_WHY_HOST_CPUS));
    return true;
}

static bool loader(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    bool has_workers = h->workers_busy > 0 && 2 * h->workers_busy >= h->workers;
    bool has_threads = h->knows_threads && h->workers == 0 && h->others >= busy_thread;
    if (!waits(c) || is_main_busy(h) || !(has_workers || has_threads))
        return false;
    double free = h->allowed > 0 ? h->allowed - h->cpus : (double)NAN;
    v->sure = has_workers ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    if (has_threads)
        gp_why_put(v->seen, "; its other threads %.1f CPUs", h->others);
    if (free >= 1)
        gp_why_put(v->advice, "more workers (num_workers), %.0f CPUs are free; ", free);
    gp_why_put(v->advice, "persistent_workers=True, cheaper transforms, or transforms on the GPU");
    return true;
}

static bool main_thread(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    const struct gp_tasks_use *h = &c->host;
    if (!waits(c) || !is_main_busy(h) || h->workers_busy > 0)
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    gp_why_put(
        v->advice,
        h->workers == 0
            ? "load data in workers (num_workers=4, pin_memory=True): the default of 0 loads it in "
              "the main thread; fewer .item() and print(); py-spy top --pid %u shows the lines"
            : "larger batches, torch.compile or CUDA graphs, fewer .item() and print(); "
              "py-spy top --pid %u shows the lines",
        c->pid);
    return true;
}

static bool waiting(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!waits(c) || !is_used(c) || c->host.cpus >= sleeping_cpus)
        return false;
    v->sure = GP_WHY_POSSIBLE;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    gp_why_put_host(c, v->seen);
    gp_why_put(v->seen, "; neither CPU nor disk was busy for it");
    gp_why_put(v->advice,
               "look for sleeps, locks, remote storage, requests that do not come, or another "
               "machine: py-spy dump --pid %u",
               c->pid);
    return true;
}

/* It waits, but what for is not visible: the program is another user's or in a container, or shares
 * its time between several of the reasons above. */
static bool low_use(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_mean(c, GP_WHY_UTILIZATION) < waits_below) || !is_used(c))
        return false;
    v->sure = GP_WHY_LIKELY;
    v->gain = gain_of_waiting(c);
    gp_why_put_busy(c, v->seen);
    if (c->host.is_known)
        gp_why_put_host(c, v->seen);
    gp_why_put(v->advice,
               "a server: more requests at a time, or share the GPU (gpulse run --share); a "
               "training: larger batches; py-spy dump --pid %u shows what it does",
               c->pid);
    return true;
}

/* ---- others ---- */

static bool wrong_gpu(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (c->reserved_by == 0 || c->pid == 0)
        return false;
    v->sure = GP_WHY_CERTAIN;
    gp_why_put(v->seen, "the GPU is reserved by process %u, and process %u does not belong to it",
               c->reserved_by, c->pid);
    gp_why_put(v->advice, "start the job with gpulse run, which chooses a free GPU");
    return true;
}

static bool shared(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    bool is_measured = c->others_sm >= others_used;
    bool is_likely = c->others_sm < 0 && gp_why_mean(c, GP_WHY_UTILIZATION) >= waits_below;
    if (c->others == 0 || !(is_measured || is_likely))
        return false;
    v->sure = is_measured ? GP_WHY_CERTAIN : GP_WHY_POSSIBLE;
    gp_why_put(v->seen, "%u other process%s", c->others, c->others == 1 ? "" : "es");
    if (is_measured) {
        gp_why_put(v->seen, " used the GPU %.0f %% of the time", c->others_sm);
        v->gain = c->others_sm < 95 ? 100 / (100 - c->others_sm) : 0;
    }
    if (c->other_pid)
        gp_why_put(v->seen, ", most of it process %u", c->other_pid);
    gp_why_put(v->advice,
               "another GPU for one of them (gpulse pick), or MPS, which runs their kernels at "
               "the same time");
    return true;
}

/* ---- clocks ---- */

static double gain_of_clock(const struct gp_why_case *c)
{
    double share = gp_why_clock_share(c);
    return share > 0 && share < 1 ? 1 / share : 0;
}

/* "for 41 % of the time", and the clock. */
static void put_limit(const struct gp_why_case *c, struct gp_why_verdict *v,
                      enum gp_why_limit limit)
{
    double share = gp_why_limited(c, limit);
    if (share >= 0.995)
        gp_why_put(v->seen, "all the time; ");
    else
        gp_why_put(v->seen, "%.0f %% of the time; ", 100 * share);
    gp_why_put_clock(c, v->seen);
    v->sure = GP_WHY_CERTAIN;
    v->gain = gain_of_clock(c);
}

static bool thermal(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_THERMAL) >= limited_often))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_THERMAL);
    if (gp_why_is_known(gp_why_mean(c, GP_WHY_TEMPERATURE)))
        gp_why_put(v->seen, ", %.0f °C", gp_why_most(c, GP_WHY_TEMPERATURE));
    gp_why_put(v->advice,
               "fans, air flow, dust, neighbours in the chassis; a lower power limit keeps it "
               "cooler and often faster: gpulse set power-limit=WATTS");
    return true;
}

static bool brake(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_BRAKE) >= limited_often))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_BRAKE);
    gp_why_put(v->advice, "check power supplies and cables: the hardware asserts the power brake");
    return true;
}

static bool power_limit(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_POWER_CAP) >= capped_often) ||
        !(gp_why_clock_share(c) < clock_low))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_POWER_CAP);
    gp_why_put_power(c, v->seen);
    gp_why_put(v->advice,
               "the default power limit, if it was lowered: gpulse set power-limit=default");
    return true;
}

static bool clock_limit(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_CLOCK_SETTING) >= capped_often) ||
        !(gp_why_clock_share(c) < clock_low) || !is_used(c))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_CLOCK_SETTING);
    gp_why_put(v->advice,
               "undo the setting: gpulse set lock-gpu-clocks=reset, or application-clocks=default");
    return true;
}

/* ---- kernels and transfers ---- */

static bool transfers(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double share = gp_why_link_share(c);
    double best = gp_why_link_rate(c, GP_WHY_PCIE_GEN_MAX, GP_WHY_PCIE_WIDTH_MAX);
    double now = gp_why_link_rate(c, GP_WHY_PCIE_GEN, GP_WHY_PCIE_WIDTH);
    bool is_slow = now < best;
    if (!(share >= link_full) && !(is_slow && share >= link_used))
        return false;
    v->sure = share >= link_full ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = is_slow ? best / now : 0;
    gp_why_put(v->seen, "%.1f GB/s, %.0f %% of what PCIe %.0f x%.0f carries in one direction",
               gp_why_traffic(c) / 1e9, 100 * share, gp_why_mean(c, GP_WHY_PCIE_GEN),
               gp_why_mean(c, GP_WHY_PCIE_WIDTH));
    if (is_slow)
        gp_why_put(v->seen, "; the slot and the GPU could do PCIe %.0f x%.0f",
                   gp_why_mean(c, GP_WHY_PCIE_GEN_MAX), gp_why_mean(c, GP_WHY_PCIE_WIDTH_MAX));
    gp_why_put(v->advice,
               is_slow ? "reseat the card, check riser and BIOS setting; gpulse doctor"
                       : "keep data on the GPU, transfer smaller types, pin_memory=True with "
                         "non_blocking=True");
    return true;
}

static bool collective(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_mean(c, GP_WHY_UTILIZATION) >= 90) || c->job_gpus < 2 ||
        !(gp_why_power_share(c) < 0.6) || gp_why_mean(c, GP_WHY_SM) >= 50 ||
        gp_why_mean(c, GP_WHY_TENSOR) >= 15 || gp_why_mean(c, GP_WHY_DRAM) >= 30)
        return false;
    v->sure = gp_why_is_known(gp_why_mean(c, GP_WHY_SM)) ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    gp_why_put_busy(c, v->seen);
    gp_why_put_percent(c, v->seen, "SMs", GP_WHY_SM);
    gp_why_put_power(c, v->seen);
    gp_why_put(v->seen, "; the job has %u GPUs", c->job_gpus);
    if (c->slow_gpu[0])
        gp_why_put(v->seen, ", and GPU %s runs at %.0f %% of the clock of the others", c->slow_gpu,
                   100 * c->slow_clock);
    gp_why_put(v->advice,
               c->slow_gpu[0]
                   ? "gpulse why -i %s: all others wait for the slowest"
                   : "find the slowest rank: gpulse why on its other GPUs%s; NCCL_DEBUG=INFO "
                     "shows the links",
               c->slow_gpu);
    return true;
}

static bool tiny_kernels(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double sm = gp_why_mean(c, GP_WHY_SM);
    double busy = gp_why_mean(c, GP_WHY_UTILIZATION);
    bool is_empty = gp_why_is_known(sm) ? sm < 0.5 * busy : gp_why_power_share(c) < 0.4;
    if (!(busy >= waits_below) || !is_empty || gp_why_mean(c, GP_WHY_TENSOR) >= 15 ||
        gp_why_mean(c, GP_WHY_DRAM) >= 40 || c->is_mig)
        return false;
    v->sure = gp_why_is_known(sm) ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = sm >= 1 ? busy / sm : 0;
    gp_why_put_busy(c, v->seen);
    gp_why_put_percent(c, v->seen, "but SMs", GP_WHY_SM);
    gp_why_put_percent(c, v->seen, "occupancy", GP_WHY_OCCUPANCY);
    gp_why_put_power(c, v->seen);
    if (c->host.knows_threads)
        gp_why_put_host(c, v->seen);
    gp_why_put(v->advice, "larger batches, torch.compile or CUDA graphs, fused optimizers");
    return true;
}

static bool bandwidth(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double dram = gp_why_mean(c, GP_WHY_DRAM);
    double controller = gp_why_mean(c, GP_WHY_CONTROLLER);
    bool is_measured = dram >= dram_full && !(gp_why_mean(c, GP_WHY_TENSOR) >= tensor_used);
    if (!is_measured && (gp_why_is_known(dram) || !(controller >= controller_full)))
        return false;
    v->sure = is_measured ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    v->gain = is_measured ? 100 / dram : 0;
    gp_why_put_busy(c, v->seen);
    if (is_measured)
        gp_why_put_percent(c, v->seen, "memory bandwidth", GP_WHY_DRAM);
    else
        gp_why_put_percent(c, v->seen, "memory read or written in", GP_WHY_CONTROLLER);
    gp_why_put_percent(c, v->seen, "tensor cores", GP_WHY_TENSOR);
    gp_why_put(v->advice,
               "fuse kernels (torch.compile, flash attention), smaller types; larger batches in "
               "inference");
    return true;
}

static bool tensor(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_mean(c, GP_WHY_SM) >= 80) || !(gp_why_mean(c, GP_WHY_TENSOR) < tensor_idle) ||
        !(gp_why_mean(c, GP_WHY_FP32) >= 20))
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen, "SMs %.0f %%, tensor cores %.0f %%, FP32 units %.0f %%",
               gp_why_mean(c, GP_WHY_SM), gp_why_mean(c, GP_WHY_TENSOR),
               gp_why_mean(c, GP_WHY_FP32));
    gp_why_put(v->advice,
               "torch.autocast with bfloat16, or "
               "torch.set_float32_matmul_precision(\"high\") for TF32; sizes that are multiples "
               "of 64");
    return true;
}

/* ---- memory ---- */

static bool full_memory(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double share = gp_why_most(c, GP_WHY_MEMORY) / gp_why_mean(c, GP_WHY_MEMORY_TOTAL);
    if (!(share >= memory_full) || c->memory_drops < 2)
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen,
               "up to %.1f %% of its memory in use; it was freed and allocated again %u times",
               100 * share, c->memory_drops);
    gp_why_put(v->advice,
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, a smaller batch (gpulse "
               "fit-batch), checkpointing");
    return true;
}

static bool slice(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double share = gp_why_most(c, GP_WHY_MEMORY) / gp_why_mean(c, GP_WHY_MEMORY_TOTAL);
    bool is_full = share >= memory_full;
    bool is_busy = gp_why_mean(c, GP_WHY_SM) >= 90;
    if (!c->is_mig || !(is_full || is_busy))
        return false;
    v->sure = GP_WHY_POSSIBLE;
    if (is_busy)
        gp_why_put(v->seen, "SMs of the instance %.0f %%", gp_why_mean(c, GP_WHY_SM));
    if (is_full)
        gp_why_put(v->seen, "%s%.1f %% of its memory in use", is_busy ? ", " : "", 100 * share);
    gp_why_put(v->advice,
               "a larger instance, or a whole GPU: gpulse pick --explain shows what is free");
    return true;
}

/* ---- the machine ---- */

static bool numa(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!c->host.is_known || !(c->host.remote >= far_away) || !(gp_why_link_share(c) >= link_far))
        return false;
    v->sure = GP_WHY_POSSIBLE;
    gp_why_put(v->seen,
               "its threads ran on other CPUs than the nearest in %.0f %% of the looks, and moved "
               "%.1f GB/s",
               100 * c->host.remote, gp_why_traffic(c) / 1e9);
    gp_why_put(v->advice,
               "bind it: gpulse query affinity.cpu shows the nearest CPUs; taskset or numactl");
    return true;
}

static bool persistence(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!c->persistence_off || c->starts == 0 || c->empty == 0)
        return false;
    v->sure = GP_WHY_CERTAIN;
    gp_why_put(v->seen,
               "persistence mode is off; %u process%s started, and between them the GPU had none",
               c->starts, c->starts == 1 ? "" : "es");
    gp_why_put(v->advice, "sudo systemctl enable --now nvidia-persistenced, or sudo gpulse set "
                          "persistence-mode=on");
    return true;
}

static bool ecc(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double growth = gp_why_growth(c, GP_WHY_CORRECTED);
    if (!(growth > 0))
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen, "%.0f corrected errors in %.0f s", growth, c->seconds);
    gp_why_put(v->advice, "gpulse doctor; have the card checked if it continues");
    return true;
}

static bool replays(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double growth = gp_why_growth(c, GP_WHY_REPLAYS);
    if (!(growth >= 10))
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen, "%.0f repeated packets in %.0f s", growth, c->seconds);
    gp_why_put(v->advice, "reseat the card, check riser and cable; gpulse doctor");
    return true;
}

/* ---- the table ---- */

static const struct rule {
    const char *word, *title;
    int group;
    bool (*holds)(const struct gp_why_case *c, struct gp_why_verdict *v);
} rules[] = {
#define GP_WHY_RULE(id, word, title, group, holds) {word, title, group, holds},
#include "why/rules.def"
#undef GP_WHY_RULE
};

const char *gp_why_word(enum gp_why_rule rule)
{
    return rules[rule].word;
}

const char *gp_why_title(enum gp_why_rule rule)
{
    return rules[rule].title;
}

const char *gp_why_sure_word(enum gp_why_sure sure)
{
    static const char *const words[] = {"possible", "likely", "certain"};
    return words[sure];
}

/* A short look, and one at the beginning of a program, when it loads and compiles, say less. */
static enum gp_why_sure sure_after(const struct gp_why_case *c, enum gp_why_sure sure)
{
    enum { SAMPLES_ENOUGH = 10 };
    static const double seconds_enough = 10, age_enough_s = 60;
    bool is_short = c->samples < SAMPLES_ENOUGH || c->seconds < seconds_enough;
    bool is_young = c->age_s >= 0 && c->age_s < age_enough_s;
    return sure > GP_WHY_POSSIBLE && (is_short || is_young) ? sure - 1 : sure;
}

size_t gp_why_judge(const struct gp_why_case *c, struct gp_why_verdict ret[GP_WHY_RULE__COUNT])
{
    size_t count = 0;
    unsigned groups = 0; /* bits: one of their rules holds */
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++) {
        struct gp_why_verdict *v = &ret[count];
        *v = (struct gp_why_verdict){.rule = (enum gp_why_rule)i};
        if ((rules[i].group && groups >> rules[i].group & 1) || !rules[i].holds(c, v))
            continue;
        v->sure = sure_after(c, v->sure);
        groups |= 1U << rules[i].group;
        count++;
    }
    return count;
}

void gp_why_nothing(const struct gp_why_case *c, char ret[GP_WHY_TEXT_SIZE])
{
    ret[0] = '\0';
    if (c->values[GP_WHY_UTILIZATION].count > 0)
        gp_why_put_busy(c, ret);
    else
        gp_why_put(ret, "its utilization is unknown");
    gp_why_put_percent(c, ret, "SMs", GP_WHY_SM);
    gp_why_put_percent(c, ret, "tensor cores", GP_WHY_TENSOR);
    gp_why_put_percent(c, ret, "memory bandwidth", GP_WHY_DRAM);
    gp_why_put_power(c, ret);
    if (gp_why_is_known(gp_why_clock_share(c))) {
        gp_why_put(ret, ", ");
        gp_why_put_clock(c, ret);
    }
}
