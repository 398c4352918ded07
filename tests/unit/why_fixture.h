/* What was seen of a job, by hand: what the rules and the advice are tested on. */
#ifndef GP_TESTS_WHY_FIXTURE_H
#define GP_TESTS_WHY_FIXTURE_H

#include "why/case.h"

static inline void why_set(struct gp_why_case *c, enum gp_why_series series, double value)
{
    c->values[series] = (struct gp_why_values){
        .count = 40, .sum = 40 * value, .most = value, .first = value, .last = value};
}

/* A training that keeps an H100 busy. */
static inline struct gp_why_case why_healthy(void)
{
    struct gp_why_case c = {
        .gpu = "0",
        .name = "NVIDIA H100 80GB HBM3",
        .pid = 4711,
        .command = "python train.py",
        .user = "mia",
        .age_s = 3600,
        .seconds = 20,
        .samples = 41,
        .limit_samples = 41,
        .others_sm = 0,
        .job_gpus = 1,
        .job_gpus_busy = 1,
        .host =
            {
                .is_known = true,
                .knows_threads = true,
                .seconds = 20,
                .looks = 41,
                .processes = 1,
                .workers = 4,
                .workers_active = 4,
                .threads = 60,
                .cpus = 2.1,
                .main = 0.5,
                .others = 0.1,
                .workers_cpus = 1.5,
                .queue = 0.01,
                .allowed = 64,
                .read_bytes_per_s = 2e8,
                .remote = 0.1,
                .pressure_io = 0.01,
                .pressure_cpu = 0.01,
            },
    };
    static const struct {
        enum gp_why_series series;
        double value;
    } values[] = {
        {GP_WHY_UTILIZATION, 97},    {GP_WHY_CONTROLLER, 50},  {GP_WHY_SM, 90},
        {GP_WHY_OCCUPANCY, 40},      {GP_WHY_TENSOR, 55},      {GP_WHY_DRAM, 58},
        {GP_WHY_FP32, 20},           {GP_WHY_POWER, 650},      {GP_WHY_POWER_LIMIT, 700},
        {GP_WHY_POWER_DEFAULT, 700}, {GP_WHY_TEMPERATURE, 62}, {GP_WHY_CLOCK, 1900},
        {GP_WHY_CLOCK_MAX, 1980},    {GP_WHY_PCIE_TX, 1e9},    {GP_WHY_PCIE_RX, 2e9},
        {GP_WHY_PCIE_GEN, 5},        {GP_WHY_PCIE_GEN_MAX, 5}, {GP_WHY_PCIE_WIDTH, 16},
        {GP_WHY_PCIE_WIDTH_MAX, 16}, {GP_WHY_NVLINK_TX, 0},    {GP_WHY_MEMORY, 70e9},
        {GP_WHY_MEMORY_TOTAL, 80e9}, {GP_WHY_CORRECTED, 3},    {GP_WHY_REPLAYS, 150},
        {GP_WHY_HOST_CPU, 5},        {GP_WHY_HOST_CPUS, 64},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(values); i++)
        why_set(&c, values[i].series, values[i].value);
    return c;
}

/* The GPU has nothing to do for much of the time, and draws little. */
static inline void why_starve(struct gp_why_case *c)
{
    why_set(c, GP_WHY_UTILIZATION, 38);
    why_set(c, GP_WHY_SM, 35);
    why_set(c, GP_WHY_TENSOR, 20);
    why_set(c, GP_WHY_DRAM, 22);
    why_set(c, GP_WHY_POWER, 300);
}

#endif
