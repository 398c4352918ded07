/* What was seen of one GPU, and of the job on it, over some time: the input of the rules. Filled by
 * gather.c; a test fills it by hand. */
#ifndef GP_WHY_CASE_H
#define GP_WHY_CASE_H

#include "model/snapshot.h"
#include "proc/tasks.h"

#include <string.h>

/* Values that are sampled, and their names in JSON.
 * X(id, metric, JSON name) */
#define GP_WHY_SERIES(X)                                                                           \
    X(UTILIZATION, UTILIZATION_GPU, "utilization.gpu")                                             \
    X(CONTROLLER, UTILIZATION_MEMORY, "utilization.memory")                                        \
    X(SM, GPM_SM, "gpm.sm.active")                                                                 \
    X(OCCUPANCY, GPM_SM_OCCUPANCY, "gpm.sm.occupancy")                                             \
    X(TENSOR, GPM_TENSOR, "gpm.tensor.active")                                                     \
    X(DRAM, GPM_DRAM, "gpm.dram.active")                                                           \
    X(FP32, GPM_FP32, "gpm.fp32.active")                                                           \
    X(POWER, POWER_DRAW, "power.draw")                                                             \
    X(POWER_LIMIT, POWER_LIMIT_ENFORCED, "enforced.power.limit")                                   \
    X(POWER_DEFAULT, POWER_LIMIT_DEFAULT, "power.default_limit")                                   \
    X(TEMPERATURE, TEMPERATURE_GPU, "temperature.gpu")                                             \
    X(CLOCK, CLOCK_SM, "clocks.current.sm")                                                        \
    X(CLOCK_MAX, CLOCK_MAX_SM, "clocks.max.sm")                                                    \
    X(PCIE_TX, PCIE_TX, "pcie.throughput.tx")                                                      \
    X(PCIE_RX, PCIE_RX, "pcie.throughput.rx")                                                      \
    X(PCIE_GEN, PCIE_GEN, "pcie.link.gen.current")                                                 \
    X(PCIE_GEN_MAX, PCIE_GEN_MAX, "pcie.link.gen.max")                                             \
    X(PCIE_WIDTH, PCIE_WIDTH, "pcie.link.width.current")                                           \
    X(PCIE_WIDTH_MAX, PCIE_WIDTH_MAX, "pcie.link.width.max")                                       \
    X(NVLINK_TX, GPM_NVLINK_TX, "gpm.nvlink.tx")                                                   \
    X(MEMORY, MEMORY_USED, "memory.used")                                                          \
    X(MEMORY_TOTAL, MEMORY_TOTAL, "memory.total")                                                  \
    X(CORRECTED, ECC_CORRECTED_VOLATILE, "ecc.errors.corrected.volatile.total")                    \
    X(REPLAYS, PCIE_REPLAYS, "pcie.replay_counter")                                                \
    X(HOST_CPU, HOST_CPU, "host.cpu.utilization")                                                  \
    X(HOST_CPUS, HOST_CPU_COUNT, "host.cpu.count")

enum gp_why_series {
#define X(id, metric, name) GP_WHY_##id,
    GP_WHY_SERIES(X)
#undef X
        GP_WHY_SERIES__COUNT,
};

/* Why the clocks were lower than they could be.
 * X(id, bits of clocks_event_reasons.active, JSON name) */
#define GP_WHY_LIMITS(X)                                                                           \
    X(THERMAL, 0x20 | 0x40, "thermal") /* by the driver, by the hardware */                        \
    X(BRAKE, 0x80, "power_brake")                                                                  \
    X(POWER_CAP, 0x04, "power_cap")                                                                \
    X(CLOCK_SETTING, 0x02, "clock_setting")

enum gp_why_limit {
#define X(id, bits, name) GP_WHY_LIMIT_##id,
    GP_WHY_LIMITS(X)
#undef X
        GP_WHY_LIMIT__COUNT,
};

/* Percent of the time: a GPU that was busy for less of it was as good as unused. */
#define GP_WHY_HARDLY 1.5

struct gp_why_values {
    unsigned count; /* of samples that had a value; 0: unknown */
    double sum, most, first, last;
};

struct gp_why_case {
    /* Whose it is; texts as in a snapshot, NULL: unknown. */
    char gpu[GP_DEVICE_LABEL_SIZE];
    char name[96];
    char uuid[96];
    bool is_mig;
    uint32_t pid;      /* the job's process with the most memory on the GPU; 0: none */
    char command[256]; /* of it, like the next; "": unknown */
    char user[64];
    double age_s; /* of it, when the observation ended; below 0: unknown */

    double seconds;
    unsigned samples;
    struct gp_why_values values[GP_WHY_SERIES__COUNT];
    unsigned limited[GP_WHY_LIMIT__COUNT]; /* samples with this limit */
    unsigned limit_samples;                /* samples that tell; 0: unknown */

    bool is_failed;  /* the faults end work on the GPU, rather than wait for a repair */
    char fault[300]; /* what is broken, in its last sample; "": nothing */
    char cure[300];  /* what to do about that */
    bool persistence_off;
    unsigned starts;       /* processes that appeared on the GPU after the first sample */
    unsigned empty;        /* samples in which it had no process */
    unsigned memory_drops; /* how often its used memory fell noticeably, and rose again */
    bool is_suspended;     /* the job's memory was moved to host memory */
    bool is_contained;     /* its process is in a container, a pod, or a job of a scheduler */
    bool is_over;          /* the job has ended when this is read: texts say PID, not its number */
    uint32_t reserved_by;  /* the supervisor of another job that has reserved the GPU; 0: none */

    unsigned others;        /* compute processes of other jobs on the GPU */
    double others_sm;       /* percent of the time in which they used it; below 0: unknown */
    uint32_t other_pid;     /* the one of them that used it most */
    unsigned job_gpus;      /* GPUs on which the job has processes, with this one */
    unsigned job_gpus_busy; /* those of them that were used at all */
    char slow_gpu[GP_DEVICE_LABEL_SIZE]; /* the one with the lowest clock; "": none is slower */
    double slow_clock;                   /* its SM clock relative to the others' mean */

    struct gp_tasks_use host; /* what the job's processes on this GPU did, with their descendants */
    struct gp_tasks_use job;  /* and those on all its GPUs */
};

/* The following return NAN for what is unknown, so that any comparison with it is false. */
static inline bool gp_why_is_known(double value)
{
    return !__builtin_isnan(value);
}

/* Whether lines of Python and PyTorch's settings may help. */
static inline bool gp_why_is_python(const struct gp_why_case *c)
{
    return strstr(c->command, "python") != NULL;
}

double gp_why_mean(const struct gp_why_case *c, enum gp_why_series series);
double gp_why_most(const struct gp_why_case *c, enum gp_why_series series);
double gp_why_growth(const struct gp_why_case *c, enum gp_why_series series);
/* Share of the samples, 0 to 1. */
double gp_why_limited(const struct gp_why_case *c, enum gp_why_limit limit);
/* What a PCIe link of this generation and width carries in one direction, in bytes per second. */
double gp_why_link_rate(const struct gp_why_case *c, enum gp_why_series gen,
                        enum gp_why_series width);
/* Bytes per second over PCIe, in the direction that has more of them. */
double gp_why_traffic(const struct gp_why_case *c);
/* Traffic, power and SM clock, relative to what the link carries and to their limits. */
double gp_why_link_share(const struct gp_why_case *c);
double gp_why_power_share(const struct gp_why_case *c);
double gp_why_clock_share(const struct gp_why_case *c);
/* CPUs that a job could keep busy: those on which it may run, or its quota if that is less; 0:
 * unknown. */
double gp_why_cpus(const struct gp_tasks_use *use);
/* CPUs that the job could use besides those that it keeps busy. */
double gp_why_free_cpus(const struct gp_why_case *c);

#endif
