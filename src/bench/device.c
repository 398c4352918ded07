#include "bench/device.h"

void gp_bench_wait_begin(struct gp_bench_device *device)
{
    if (device->waits++ == 0)
        device->wait = ++device->waits_begun;
}

void gp_bench_wait_end(struct gp_bench_device *device)
{
    if (--device->waits == 0)
        device->wait = 0;
}

void gp_bench_devices_close(struct gp_bench_devices *devices)
{
    if (devices->close)
        devices->close(devices);
    *devices = (struct gp_bench_devices){0};
}
