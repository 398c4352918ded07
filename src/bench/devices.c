#include "bench/device.h"

void gp_bench_devices_close(struct gp_bench_devices *devices)
{
    if (devices->close)
        devices->close(devices);
    *devices = (struct gp_bench_devices){0};
}
