#include "bench/device.h"

#include "base/clock.h"

void gp_bench_wait_begin(struct gp_bench_device *device)
{
    if (device->waits++ == 0)
        device->waits_since_ns = gp_clock_mono_ns();
}

void gp_bench_wait_end(struct gp_bench_device *device)
{
    if (--device->waits == 0)
        device->waits_since_ns = 0;
}

uint64_t gp_bench_waits_ns(const struct gp_bench_device *device, uint64_t now_ns)
{
    const uint64_t since_ns = device->waits_since_ns;
    return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

void gp_bench_devices_close(struct gp_bench_devices *devices)
{
    if (devices->close)
        devices->close(devices);
    *devices = (struct gp_bench_devices){0};
}
