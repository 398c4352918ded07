#include "bench/device.h"

#include "base/clock.h"

#include <unistd.h>

enum { GIVEN_UP = 1 }; /* in place of a time */

void gp_bench_wait_begin(struct gp_bench_device *device)
{
    if (device->waits++ == 0)
        device->waits_since_ns = gp_clock_mono_ns();
}

void gp_bench_wait_end(struct gp_bench_device *device)
{
    if (--device->waits > 0 || atomic_exchange(&device->waits_since_ns, 0) != GIVEN_UP)
        return;
    for (;;)
        (void)pause();
}

uint64_t gp_bench_waits_ns(const struct gp_bench_device *device, uint64_t now_ns)
{
    const uint64_t since_ns = device->waits_since_ns;
    return since_ns > GIVEN_UP && now_ns > since_ns ? now_ns - since_ns : 0;
}

bool gp_bench_give_up(struct gp_bench_device *device)
{
    uint64_t since_ns = device->waits_since_ns;
    return since_ns > GIVEN_UP &&
           atomic_compare_exchange_strong(&device->waits_since_ns, &since_ns, GIVEN_UP);
}

void gp_bench_devices_close(struct gp_bench_devices *devices)
{
    if (devices->close)
        devices->close(devices);
    *devices = (struct gp_bench_devices){0};
}
