#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * GP_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t gp_clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t gp_clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t gp_clock_wall_at(uint64_t mono_ns)
{
    return gp_clock_wall_ns() - (gp_clock_mono_ns() - mono_ns);
}

struct timespec gp_clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / GP_NS_PER_S),
                             .tv_nsec = (long)(ns % GP_NS_PER_S)};
}

void gp_clock_rfc3339(uint64_t wall_ns, char out[GP_RFC3339_SIZE])
{
    time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    unsigned ms = (unsigned)(wall_ns % GP_NS_PER_S / GP_NS_PER_MS);
    struct tm tm;
    char zone[8] = "+0000";
    char date[24] = "1970-01-01T00:00:00";
    if (localtime_r(&seconds, &tm)) {
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
        (void)strftime(zone, sizeof(zone), "%z", &tm);
    }
    (void)snprintf(out, GP_RFC3339_SIZE, "%s.%03u%.3s:%.2s", date, ms % 1000, zone, zone + 3);
}

void gp_clock_plain(uint64_t wall_ns, char out[GP_RFC3339_SIZE])
{
    gp_clock_rfc3339(wall_ns, out);
    out[strlen("2026-11-20")] = ' ';
    out[strlen("2026-11-20 15:04:05.123")] = '\0';
}
