/* A machine by hand, with a GPU in every state: what the views are tested on. */
#ifndef GP_TESTS_SNAPSHOT_FIXTURE_H
#define GP_TESTS_SNAPSHOT_FIXTURE_H

#include "model/reading.h"
#include "model/snapshot.h"

enum {
    FIXTURE_WELL,   /* everything there, two processes */
    FIXTURE_POOR,   /* many values unsupported or refused, no list of processes */
    FIXTURE_SILENT, /* does not answer; last values 12.5 s old */
    FIXTURE_LOST,   /* only its name is left */
    FIXTURE_SLICED, /* in MIG mode, followed by two instances, of which the first has a process */
    FIXTURE_MIG_0,
    FIXTURE_MIG_1,
    FIXTURE_ASLEEP,
    FIXTURE_DEVICES,
    FIXTURE_PROCESSES = 3,
};

#define FIXTURE_NOW_NS (100 * GP_NS_PER_S)

struct fixture {
    struct gp_snapshot snapshot;
    struct gp_device devices[FIXTURE_DEVICES];
    struct gp_process processes[FIXTURE_PROCESSES];
    struct gp_value process_values[FIXTURE_PROCESSES][GP_PROCESS__COUNT];
};

static inline struct gp_value *fixture_value(struct fixture *f, int device, enum gp_metric m)
{
    return gp_device_value(f->devices[device].values, m);
}

static inline struct gp_value fixture_text(const char *s)
{
    struct gp_value v;
    gp_value_set_text(&v, s, FIXTURE_NOW_NS);
    return v;
}

static inline struct gp_value fixture_int(int64_t i)
{
    struct gp_value v;
    gp_value_set_int(&v, i, FIXTURE_NOW_NS);
    return v;
}

static inline struct gp_value fixture_real(double f)
{
    struct gp_value v;
    gp_value_set_real(&v, f, FIXTURE_NOW_NS);
    return v;
}

static inline struct gp_value fixture_absent(enum gp_status status)
{
    struct gp_value v;
    gp_value_set_absent(&v, status, NULL, FIXTURE_NOW_NS);
    return v;
}

static inline struct gp_value *fixture_process(struct fixture *f, int process, enum gp_metric m)
{
    return &f->process_values[process][m - GP_PROCESS__FIRST];
}

/* A GPU that answers everything with numbers made of its index. */
static inline void fixture_fill_device(struct fixture *f, int device, unsigned index,
                                       const char *name)
{
    struct gp_device *d = &f->devices[device];
    *d = (struct gp_device){.index = index,
                            .status = GP_STATUS_OK,
                            .status_text = "",
                            .processes_status = GP_STATUS_OK};
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        *fixture_value(f, device, (enum gp_metric)m) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_value(f, device, GP_INDEX) = fixture_int(index);
    *fixture_value(f, device, GP_STATUS) = fixture_text("ok");
    *fixture_value(f, device, GP_STATUS_TEXT) = fixture_text("ok");
    *fixture_value(f, device, GP_NAME) = fixture_text(name);
    *fixture_value(f, device, GP_UUID) = fixture_text("GPU-11111111-2222-3333-4444-555555555555");
    *fixture_value(f, device, GP_MEMORY_TOTAL) = fixture_int(INT64_C(80) << 30);
    *fixture_value(f, device, GP_MEMORY_USED) = fixture_int((INT64_C(70) << 30) + 1);
    *fixture_value(f, device, GP_UTILIZATION_GPU) = fixture_int(97 - (int64_t)index);
    *fixture_value(f, device, GP_UTILIZATION_ENCODER) = fixture_int(5);
    *fixture_value(f, device, GP_UTILIZATION_DECODER) = fixture_int(50);
    *fixture_value(f, device, GP_TEMPERATURE_GPU) = fixture_int(58 + (int64_t)index);
    *fixture_value(f, device, GP_POWER_DRAW) = fixture_real(612.9);
    *fixture_value(f, device, GP_POWER_LIMIT_ENFORCED) = fixture_real(700);
    *fixture_value(f, device, GP_FAN_SPEED) = fixture_int(30);
    *fixture_value(f, device, GP_REASONS_ACTIVE) = fixture_int(0x104);
}

static inline void fixture_set_all(struct fixture *f, int device, enum gp_status status)
{
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++) {
        struct gp_value *v = fixture_value(f, device, (enum gp_metric)m);
        if (m == GP_INDEX || m == GP_STATUS || m == GP_STATUS_TEXT || m == GP_NAME)
            continue;
        if (status != GP_STATUS_STALE)
            *v = fixture_absent(status);
        else if (v->status == GP_STATUS_OK) {
            v->status = GP_STATUS_STALE;
            gp_value_set_time(v, FIXTURE_NOW_NS - 12 * GP_NS_PER_S - GP_NS_PER_S / 2);
        }
    }
}

static inline void fixture_set_status(struct fixture *f, int device, enum gp_status status,
                                      const char *text)
{
    f->devices[device].status = status;
    f->devices[device].processes_status = status;
    f->devices[device].status_text = text;
    *fixture_value(f, device, GP_STATUS) = fixture_text(gp_device_state(status));
    *fixture_value(f, device, GP_STATUS_TEXT) = fixture_text(text);
}

static inline void fixture_fill_process(struct fixture *f, int process, int device, int64_t pid)
{
    struct gp_device *d = &f->devices[device];
    if (d->process_count++ == 0)
        d->first_process = (size_t)process;
    f->processes[process].device = (uint32_t)device;
    f->processes[process].cells = f->process_values[process];
    for (int m = GP_PROCESS__FIRST; m < GP_PROCESS__FIRST + GP_PROCESS__COUNT; m++)
        *fixture_process(f, process, (enum gp_metric)m) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_process(f, process, GP_PID) = fixture_int(pid);
    *fixture_process(f, process, GP_PROCESS_TYPE) = fixture_text("C");
}

static inline void fixture_fill_mig(struct fixture *f, int device, unsigned mig_index)
{
    fixture_fill_device(f, device, 4, "NVIDIA A100-SXM4-80GB MIG 1g.20gb");
    f->devices[device].is_mig = true;
    f->devices[device].mig_index = mig_index;
    *fixture_value(f, device, GP_MIG_INDEX) = fixture_int(mig_index);
    *fixture_value(f, device, GP_MIG_PROFILE) = fixture_text("1g.20gb");
    *fixture_value(f, device, GP_MIG_GPU_UUID) =
        fixture_text("GPU-11111111-2222-3333-4444-555555555555");
    *fixture_value(f, device, GP_MEMORY_TOTAL) = fixture_int(INT64_C(19968) << 20);
    *fixture_value(f, device, GP_MEMORY_USED) = fixture_int(INT64_C(12) << 20);
}

static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.snapshot = {.mono_ns = FIXTURE_NOW_NS,
                                       .wall_ns = UINT64_C(1795183445123) * GP_NS_PER_MS,
                                       .partial = true,
                                       .devices = f->devices,
                                       .device_count = FIXTURE_DEVICES,
                                       .processes = f->processes,
                                       .process_count = FIXTURE_PROCESSES}};
    struct gp_value *host = f->snapshot.host;
    for (int m = 0; m < GP_HOST__COUNT; m++)
        host[m] = fixture_absent(GP_STATUS_UNSUPPORTED);
    host[GP_TIMESTAMP] = fixture_text("2026-11-20T15:04:05.123+01:00");
    host[GP_HOST_NAME] = fixture_text("node1");
    host[GP_DRIVER_VERSION] = fixture_text("580.95.05");
    host[GP_COUNT] = fixture_int(6);
    host[GP_HOST_LOAD] = fixture_real(1.25);

    fixture_fill_device(f, FIXTURE_WELL, 0, "NVIDIA H100 80GB HBM3");

    fixture_fill_device(f, FIXTURE_POOR, 1, "Tesla \"K20\", old");
    f->devices[FIXTURE_POOR].processes_status = GP_STATUS_NO_PERMISSION;
    *fixture_value(f, FIXTURE_POOR, GP_UTILIZATION_GPU) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_value(f, FIXTURE_POOR, GP_UTILIZATION_ENCODER) = fixture_absent(GP_STATUS_NONE);
    *fixture_value(f, FIXTURE_POOR, GP_POWER_DRAW) = fixture_absent(GP_STATUS_ERROR);
    fixture_value(f, FIXTURE_POOR, GP_POWER_DRAW)->s = "impossible value";
    *fixture_value(f, FIXTURE_POOR, GP_POWER_LIMIT_ENFORCED) =
        fixture_absent(GP_STATUS_NO_PERMISSION);
    *fixture_value(f, FIXTURE_POOR, GP_FAN_SPEED) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_value(f, FIXTURE_POOR, GP_MEMORY_USED) = fixture_int(0);
    *fixture_value(f, FIXTURE_POOR, GP_MEMORY_TOTAL) = fixture_int(INT64_C(4742) << 20);

    fixture_fill_device(f, FIXTURE_SILENT, 2, "NVIDIA H100 80GB HBM3");
    fixture_set_all(f, FIXTURE_SILENT, GP_STATUS_STALE);
    fixture_set_status(f, FIXTURE_SILENT, GP_STATUS_TIMEOUT,
                       "no answer for 12 s (nvmlDeviceGetPowerUsage)");
    f->devices[FIXTURE_SILENT].silent_s = 12;

    fixture_fill_device(f, FIXTURE_LOST, 3, "NVIDIA H100 80GB HBM3");
    fixture_set_all(f, FIXTURE_LOST, GP_STATUS_LOST);
    fixture_set_status(f, FIXTURE_LOST, GP_STATUS_LOST, "GPU is lost (nvmlDeviceGetName)");

    fixture_fill_device(f, FIXTURE_SLICED, 4, "NVIDIA A100-SXM4-80GB");
    *fixture_value(f, FIXTURE_SLICED, GP_UTILIZATION_GPU) = fixture_absent(GP_STATUS_UNSUPPORTED);
    fixture_fill_mig(f, FIXTURE_MIG_0, 0);
    fixture_fill_mig(f, FIXTURE_MIG_1, 1);

    fixture_fill_device(f, FIXTURE_ASLEEP, 5, "NVIDIA GeForce RTX 3060 Laptop GPU");
    fixture_set_all(f, FIXTURE_ASLEEP, GP_STATUS_ASLEEP);
    fixture_set_status(f, FIXTURE_ASLEEP, GP_STATUS_ASLEEP,
                       "asleep to save power; gpulse does not wake it up");

    fixture_fill_process(f, 0, FIXTURE_WELL, 48448);
    *fixture_process(f, 0, GP_PROCESS_USER) = fixture_text("alice");
    *fixture_process(f, 0, GP_PROCESS_NAME) = fixture_text("python");
    *fixture_process(f, 0, GP_PROCESS_COMMAND) =
        fixture_text("/usr/bin/python train.py --name \"a, b\"");
    *fixture_process(f, 0, GP_PROCESS_MEMORY) = fixture_int((INT64_C(70112) << 20) + 1);
    *fixture_process(f, 0, GP_PROCESS_SM) = fixture_int(96);
    *fixture_process(f, 0, GP_PROCESS_CPU) = fixture_real(101.25);
    *fixture_process(f, 0, GP_PROCESS_RSS) = fixture_int(INT64_C(25) << 30);
    *fixture_process(f, 0, GP_PROCESS_START) = fixture_text("2026-11-20T09:00:00.000+01:00");
    /* gone before /proc was read, and the driver knows nothing of it */
    fixture_fill_process(f, 1, FIXTURE_WELL, 153223);
    /* gone too, but the driver remembers its name */
    fixture_fill_process(f, 2, FIXTURE_MIG_0, 4190001);
    *fixture_process(f, 2, GP_PROCESS_NAME) = fixture_text("jupyter-lab");
    *fixture_process(f, 2, GP_PROCESS_MEMORY) = fixture_int(1);
}

#endif
