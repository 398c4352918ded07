/* The rules about GPUs: clocks, kernels and transfers, memory, the machine. */
#include "why/rule.h"

#include <string.h>

/* Limits. Percent as the driver reports them, shares from 0 to 1.
 *   link: what a copy reaches is 80 to 85 percent of a link's rate;
 *   dram: a copy reaches 85 to 93 percent of the data sheet's bandwidth, and kernels that are
 *     limited by it stay above 60;
 *   tensor: a training in bf16 on an H100 keeps them busy for 30 to 60 percent of the time. */
static const double limited_often = 0.1, capped_often = 0.5, clock_low = 0.85;
static const double link_full = 0.6, link_used = 0.3, link_far = 0.1, talk_least = 50e6;
static const double dram_full = 60, controller_full = 80, tensor_idle = 10, tensor_used = 40;
static const double memory_full = 0.95, far_away = 0.8;

/* ---- faults ---- */

bool gp_why_fault(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    v->sure = GP_WHY_CERTAIN;
    gp_why_put(v->seen, "%s", c->fault);
    gp_why_put(v->advice, "%s%sgpulse doctor shows the evidence", c->cure, c->cure[0] ? "; " : "");
    return c->fault[0] != '\0';
}

/* ---- clocks ---- */

static double gain_of_clock(const struct gp_why_case *c)
{
    double share = gp_why_clock_share(c);
    bool is_busy =
        gp_why_mean(c, GP_WHY_UTILIZATION) >= 50; /* else it is the clock of an idle GPU */
    if (!is_busy || !(share > 0))
        return 0;
    return share < 1 ? 1 / share : 1;
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

bool gp_why_thermal(const struct gp_why_case *c, struct gp_why_verdict *v)
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

bool gp_why_brake(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_BRAKE) >= limited_often))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_BRAKE);
    gp_why_put(v->advice, "check power supplies and cables: the hardware asserts the power brake");
    return true;
}

/* At the default limit this is normal for a busy GPU. */
bool gp_why_power_limit(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    bool is_lowered =
        gp_why_mean(c, GP_WHY_POWER_LIMIT) < 0.98 * gp_why_mean(c, GP_WHY_POWER_DEFAULT);
    if (!is_lowered || !(gp_why_limited(c, GP_WHY_LIMIT_POWER_CAP) >= capped_often) ||
        !(gp_why_clock_share(c) < clock_low))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_POWER_CAP);
    gp_why_put_power(c, v->seen);
    gp_why_put(v->advice,
               "the limit is below the default of %.0f W: gpulse set power-limit=default",
               gp_why_mean(c, GP_WHY_POWER_DEFAULT));
    return true;
}

bool gp_why_clock_limit(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_limited(c, GP_WHY_LIMIT_CLOCK_SETTING) >= capped_often) ||
        !(gp_why_clock_share(c) < clock_low) || !gp_why_is_used(c))
        return false;
    put_limit(c, v, GP_WHY_LIMIT_CLOCK_SETTING);
    gp_why_put(v->advice,
               "undo the setting: gpulse set lock-gpu-clocks=reset, or application-clocks=default");
    return true;
}

/* ---- kernels and transfers ---- */

bool gp_why_transfers(const struct gp_why_case *c, struct gp_why_verdict *v)
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
               gp_why_traffic(c) / 1e9, 100 * share, gp_why_most(c, GP_WHY_PCIE_GEN),
               gp_why_most(c, GP_WHY_PCIE_WIDTH));
    if (is_slow)
        gp_why_put(v->seen, "; the slot and the GPU could do PCIe %.0f x%.0f",
                   gp_why_most(c, GP_WHY_PCIE_GEN_MAX), gp_why_most(c, GP_WHY_PCIE_WIDTH_MAX));
    gp_why_put(v->advice,
               is_slow ? "reseat the card, check riser and BIOS setting; gpulse doctor"
                       : "keep data on the GPU, transfer smaller types, pin_memory=True with "
                         "non_blocking=True");
    return true;
}

/* It exchanges no data: what waits for other GPUs does, in the end. */
static bool is_silent(const struct gp_why_case *c)
{
    return gp_why_mean(c, GP_WHY_NVLINK_TX) < talk_least && gp_why_traffic(c) < talk_least;
}

/* Busy, but with hardly any work: kernels that wait for those of other GPUs do that. */
static bool seems_to_wait(const struct gp_why_case *c)
{
    return !is_silent(c) && gp_why_mean(c, GP_WHY_UTILIZATION) >= 90 && c->job_gpus_busy > 1 &&
           gp_why_power_share(c) < 0.6 && !(gp_why_mean(c, GP_WHY_SM) >= 50) &&
           !(gp_why_mean(c, GP_WHY_TENSOR) >= 15) && !(gp_why_mean(c, GP_WHY_DRAM) >= 30);
}

static void put_waiting(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    v->sure = gp_why_is_known(gp_why_mean(c, GP_WHY_SM)) ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
    gp_why_put_busy(c, v->seen);
    gp_why_put_percent(c, v->seen, "SMs", GP_WHY_SM);
    gp_why_put_power(c, v->seen);
    if (gp_why_mean(c, GP_WHY_NVLINK_TX) >= talk_least)
        gp_why_put(v->seen, ", NVLink %.1f GB/s", gp_why_mean(c, GP_WHY_NVLINK_TX) / 1e9);
    gp_why_put(v->seen, "; the job uses %u GPUs", c->job_gpus_busy);
}

bool gp_why_straggler(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!seems_to_wait(c) || strcmp(c->slow_gpu, c->gpu) != 0)
        return false;
    put_waiting(c, v);
    v->gain = 1 / c->slow_clock;
    gp_why_put(v->seen, ", and this one runs at %.0f %% of the clock of the others",
               100 * c->slow_clock);
    gp_why_put(v->advice, "find out why its clock is low: gpulse doctor");
    return true;
}

bool gp_why_collective(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!seems_to_wait(c))
        return false;
    put_waiting(c, v);
    if (!c->slow_gpu[0]) {
        gp_why_put(v->advice, "find the slowest rank; NCCL_DEBUG=INFO shows the links");
        return true;
    }
    gp_why_put(v->seen, ", and GPU %s runs at %.0f %% of the clock of the others", c->slow_gpu,
               100 * c->slow_clock);
    gp_why_put(v->advice, "see GPU %s: all others wait for the slowest", c->slow_gpu);
    return true;
}

bool gp_why_tiny_kernels(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double sm = gp_why_mean(c, GP_WHY_SM);
    double busy = gp_why_mean(c, GP_WHY_UTILIZATION);
    bool is_empty = gp_why_is_known(sm) ? sm < 0.5 * busy : gp_why_power_share(c) < 0.4;
    if (!(busy >= GP_WHY_WAITS_BELOW) || !is_empty || gp_why_mean(c, GP_WHY_TENSOR) >= 15 ||
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

bool gp_why_bandwidth(const struct gp_why_case *c, struct gp_why_verdict *v)
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

bool gp_why_tensor(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    if (!(gp_why_mean(c, GP_WHY_SM) >= 80) || !(gp_why_mean(c, GP_WHY_TENSOR) < tensor_idle) ||
        !(gp_why_mean(c, GP_WHY_FP32) >= 20))
        return false;
    v->sure = gp_why_is_python(c) ? GP_WHY_LIKELY : GP_WHY_POSSIBLE;
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

bool gp_why_full_memory(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double share = gp_why_most(c, GP_WHY_MEMORY) / gp_why_mean(c, GP_WHY_MEMORY_TOTAL);
    if (!(share >= memory_full) || c->memory_drops < 2 || c->others > 0 || c->starts > 0)
        return false; /* else it may be the memory of others, or of the processes that came */
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen,
               "up to %.1f %% of its memory in use; it was freed and allocated again %u times",
               100 * share, c->memory_drops);
    gp_why_put(v->advice,
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, a smaller batch (gpulse "
               "fit-batch), checkpointing");
    return true;
}

bool gp_why_slice(const struct gp_why_case *c, struct gp_why_verdict *v)
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

bool gp_why_numa(const struct gp_why_case *c, struct gp_why_verdict *v)
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

bool gp_why_persistence(const struct gp_why_case *c, struct gp_why_verdict *v)
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

bool gp_why_ecc(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double growth = gp_why_growth(c, GP_WHY_CORRECTED);
    if (!(growth > 0))
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen, "%.0f corrected errors in %.0f s", growth, c->seconds);
    gp_why_put(v->advice, "gpulse doctor; have the card checked if it continues");
    return true;
}

bool gp_why_replays(const struct gp_why_case *c, struct gp_why_verdict *v)
{
    double growth = gp_why_growth(c, GP_WHY_REPLAYS);
    if (!(growth >= 10))
        return false;
    v->sure = GP_WHY_LIKELY;
    gp_why_put(v->seen, "%.0f repeated packets in %.0f s", growth, c->seconds);
    gp_why_put(v->advice, "reseat the card, check riser and cable; gpulse doctor");
    return true;
}
