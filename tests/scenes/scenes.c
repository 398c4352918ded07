/* scenes OUT [NAME=VALUE …]: records GPUs at work as gpulse record would, with invented clocks and
 * a moving load: for tests of what reads recordings. A second takes some microseconds.
 *
 * The same seed gives the same recording. What a test plants in it, such as clock=0.97, is in the
 * table below. */
#include "base/clock.h"
#include "base/err.h"
#include "model/event.h"
#include "model/reading.h"
#include "model/snapshot.h"
#include "tape/recorder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS = 8 };

#define S INT64_C(1000000)

static struct {
    double seed, seconds, interval, gpus, start; /* start: seconds since 1970 */
    double clock, power, memory, sm;             /* times what is usual */
    double noise;                                /* of the clocks, relative */
    double cold;                                 /* 1: begins at room temperature */
    double phases;                               /* 0: under load all the time */
    double idle;                                 /* 1: without load all the time */
    double limit;                                /* power limit in watts */
    double errors;                               /* Xid errors an hour, of each GPU */
    double throttled;                            /* share of time slowed down by temperature */
    double machine;                              /* other GPUs have other UUIDs */
    double keep;                                 /* seconds that samples are kept for */
    double driver;                               /* its version */
} o = {1, 1800, 1, 2, 1795800000, 1, 1, 1, 1, 0.02, 0, 1, 0, 700, 0, 0, 1, 0, 580};

static const struct {
    const char *name;
    double *value;
} names[] = {
    {"seed", &o.seed},           {"seconds", &o.seconds}, {"interval", &o.interval},
    {"gpus", &o.gpus},           {"start", &o.start},     {"clock", &o.clock},
    {"power", &o.power},         {"memory", &o.memory},   {"sm", &o.sm},
    {"noise", &o.noise},         {"cold", &o.cold},       {"phases", &o.phases},
    {"idle", &o.idle},           {"limit", &o.limit},     {"errors", &o.errors},
    {"throttled", &o.throttled}, {"machine", &o.machine}, {"keep", &o.keep},
    {"driver", &o.driver},
};

static uint64_t chance_state;

/* Between 0 and 1. */
static double chance(void)
{
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return ((double)(chance_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(chance())) * cos(6.283185307179586 * chance());
}

/* Noise that resembles that of the second before. */
static void move(double *x, double resembles)
{
    *x = resembles * *x + sqrt(1 - resembles * resembles) * normal();
}

struct gpu {
    char uuid[64];
    double left_s; /* of the phase */
    bool is_busy;
    double celsius, clock, power, sm, link, throttle;
};

static struct gpu gpus[GPUS];
static struct gp_device devices[GPUS];
static struct gp_process processes[GPUS];
static struct gp_value process_values[GPUS][GP_PROCESS__COUNT];
static struct gp_snapshot snapshot;
static struct gp_axis_clocks clocks;
static char driver[32];

static struct gp_value *value(size_t gpu, enum gp_metric m)
{
    return gp_device_value(devices[gpu].values, m);
}

static void set_int(struct gp_value *v, double n)
{
    gp_value_set_int(v, llround(n), snapshot.mono_ns);
}

static void set_real(struct gp_value *v, double n)
{
    gp_value_set_real(v, n, snapshot.mono_ns);
}

static void set_text(struct gp_value *v, const char *text)
{
    gp_value_set_text(v, text, snapshot.mono_ns);
}

static void make_process(size_t i)
{
    struct gp_value *v = process_values[i];
    for (size_t m = 0; m < GP_PROCESS__COUNT; m++)
        gp_value_set_absent(&v[m], GP_STATUS_UNSUPPORTED, NULL, 0);
    processes[i] = (struct gp_process){.device = (uint32_t)i, .cells = v};
    set_int(&v[GP_PID - GP_PROCESS__FIRST], 4242 + (double)i);
    set_text(&v[GP_PROCESS_TYPE - GP_PROCESS__FIRST], "C");
    set_text(&v[GP_PROCESS_NAME - GP_PROCESS__FIRST], "python");
    set_text(&v[GP_PROCESS_USER - GP_PROCESS__FIRST], "alice");
}

static void make_gpu(size_t i)
{
    struct gp_device *d = &devices[i];
    *d = (struct gp_device){.index = (unsigned)i,
                            .status = GP_STATUS_OK,
                            .status_text = "",
                            .processes_status = GP_STATUS_OK,
                            .first_process = i,
                            .process_count = 1};
    gpus[i] = (struct gpu){.celsius = o.cold > 0 ? 35 : 70, .is_busy = true};
    (void)snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "GPU-%08d-0000-0000-0000-%012zu",
                   (int)o.machine, i);
    gpus[i].left_s = 60 + 120 * chance();
    gpus[i].clock = normal();
    gpus[i].power = normal();
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        gp_value_set_absent(value(i, (enum gp_metric)m), GP_STATUS_UNSUPPORTED, NULL, 0);
    set_int(value(i, GP_INDEX), (double)i);
    set_text(value(i, GP_STATUS), "ok");
    set_text(value(i, GP_NAME), "NVIDIA H100 80GB HBM3");
    set_text(value(i, GP_UUID), gpus[i].uuid);
    set_text(value(i, GP_VBIOS_VERSION), "96.00.61.00.01");
    set_text(value(i, GP_ECC_MODE), "Enabled");
    set_int(value(i, GP_MEMORY_TOTAL), 80.0 * (1 << 30));
    set_real(value(i, GP_POWER_LIMIT), o.limit);
    set_real(value(i, GP_POWER_LIMIT_ENFORCED), o.limit);
    make_process(i);
}

static void move_gpu(size_t i)
{
    struct gpu *g = &gpus[i];
    struct gp_value *process = process_values[i];
    g->left_s -= o.interval;
    if (g->left_s < 0) {
        g->is_busy = !g->is_busy || o.phases <= 0;
        g->left_s = g->is_busy ? 60 + 120 * chance() : 5 + 20 * chance();
    }
    const bool is_busy = g->is_busy && o.idle <= 0;
    move(&g->clock, 0.8);
    move(&g->power, 0.8);
    move(&g->sm, 0.8);
    move(&g->link, 0.5);
    move(&g->throttle, 0.8);
    const double watts = is_busy ? 600 * o.power * (1 + 0.02 * g->power) : 70 + g->power;
    g->celsius += (30 + watts / 15 - g->celsius) * (1 - exp(-o.interval / 120));
    const double clock =
        is_busy ? 1900 * o.clock * (1 + o.noise * g->clock) - (g->celsius - 70) / 2 : 345;
    const double memory = 70.0 * (1 << 30) * o.memory;
    const double load = is_busy ? fmin(100, 96 + 2 * g->sm) : 0;
    const bool is_slowed = is_busy && o.throttled > 0 && chance() < o.throttled;
    set_int(value(i, GP_UTILIZATION_GPU), load);
    set_int(value(i, GP_UTILIZATION_MEMORY), load / 2);
    set_int(value(i, GP_CLOCK_SM), 15 * floor(clock / 15));
    set_int(value(i, GP_CLOCK_MEMORY), is_busy ? 2619 : 1593);
    set_real(value(i, GP_POWER_DRAW), watts);
    set_int(value(i, GP_TEMPERATURE_GPU), g->celsius + 0.3 * g->power);
    set_int(value(i, GP_MEMORY_USED), memory);
    set_real(value(i, GP_GPM_SM), is_busy ? 85 * o.sm * (1 + 0.03 * g->sm) : 0);
    set_real(value(i, GP_GPM_DRAM), is_busy ? 55 * (1 + 0.03 * g->sm) : 0);
    set_real(value(i, GP_PCIE_TX), is_busy ? 2e9 * exp(0.3 * g->link) : 0);
    set_real(value(i, GP_PCIE_RX), is_busy ? 5e9 * exp(0.3 * g->link) : 0);
    set_int(value(i, GP_REASONS_ACTIVE), is_slowed ? 0x20 : is_busy ? 0 : 1);
    set_int(&process[GP_PROCESS_MEMORY - GP_PROCESS__FIRST], memory - (500 << 20));
    set_int(&process[GP_PROCESS_SM - GP_PROCESS__FIRST], load);
}

static int make_error(struct gp_recorder *recorder, size_t i, struct gp_err *err)
{
    struct gp_event event = {.kind = GP_EVENT_XID, .has_gpu = true, .number = 31};
    if (chance() >= o.errors * o.interval / 3600)
        return 0;
    (void)snprintf(event.uuid, sizeof(event.uuid), "%.60s", gpus[i].uuid);
    (void)snprintf(event.text, sizeof(event.text), "Xid 31");
    return gp_recorder_event(recorder, &event, err);
}

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    (void)ctx;
    *ret = clocks;
}

static int record(const char *path, struct gp_err *err)
{
    struct gp_recorder *recorder;
    const struct gp_recorder_config config = {
        .path = path,
        .interval_ns = (uint64_t)(o.interval * 1e9),
        .keep_ns = (uint64_t)(o.keep * 1e9),
        .clocks = read_clocks,
    };
    const size_t count = (size_t)o.gpus;
    int r = gp_recorder_open(&config, &recorder, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        make_gpu(i);
    for (double s = 0; r == 0 && s < o.seconds; s += o.interval) {
        snapshot.mono_ns = (uint64_t)(clocks.boottime_us * 1000);
        snapshot.wall_ns = (uint64_t)(clocks.wall_us * 1000);
        for (size_t i = 0; i < count; i++)
            move_gpu(i);
        r = gp_recorder_sample(recorder, &snapshot, err);
        for (size_t i = 0; i < count && r == 0; i++)
            r = make_error(recorder, i, err);
        const int64_t us = (int64_t)(o.interval * 1e6);
        clocks.wall_us += us;
        clocks.boottime_us += us;
    }
    int closed = gp_recorder_close(recorder, r < 0 ? NULL : err);
    return r < 0 ? r : closed;
}

static bool set(const char *word)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const size_t n = strlen(names[i].name);
        if (strncmp(word, names[i].name, n) == 0 && word[n] == '=') {
            *names[i].value = strtod(word + n + 1, NULL);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct gp_err err = {0};
    for (int i = 2; i < argc; i++)
        if (!set(argv[i]))
            argc = 0;
    if (argc < 2 || o.gpus > GPUS) {
        fputs("usage: scenes OUT [NAME=VALUE ...]\n", stderr);
        return 2;
    }
    chance_state = 88172645463325252 ^ (uint64_t)(o.seed * 7919);
    for (int i = 0; i < 20; i++)
        (void)chance();
    clocks = (struct gp_axis_clocks){(int64_t)o.start * S, (int64_t)o.start * S, "boot"};
    snapshot.devices = devices;
    snapshot.device_count = (size_t)o.gpus;
    snapshot.processes = processes;
    snapshot.process_count = (size_t)o.gpus;
    for (int m = 0; m < GP_HOST__COUNT; m++)
        gp_value_set_absent(&snapshot.host[m], GP_STATUS_UNSUPPORTED, NULL, 0);
    (void)snprintf(driver, sizeof(driver), "%.0f.95.05", o.driver);
    set_text(&snapshot.host[GP_HOST_NAME], "node1");
    set_text(&snapshot.host[GP_DRIVER_VERSION], driver);
    set_int(&snapshot.host[GP_COUNT], o.gpus);
    if (record(argv[1], &err) < 0) {
        (void)fprintf(stderr, "scenes: %s\n", err.text);
        return 1;
    }
    return 0;
}
