#include "base/clock.h"

#include <stdlib.h>
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

/* Writes the last `count` digits of a number. */
static void put(char *out, size_t count, unsigned long n)
{
    for (; count > 0; n /= 10)
        out[--count] = (char)('0' + n % 10);
}

/* Not by strftime(), which is slow, and the monitor draws the time in each frame. */
void gp_clock_rfc3339(uint64_t wall_ns, char out[GP_RFC3339_SIZE])
{
    static const char form[] = "1970-01-01T00:00:00.000+00:00";
    time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    struct tm tm;
    memcpy(out, form, sizeof(form));
    put(out + 20, 3, wall_ns % GP_NS_PER_S / GP_NS_PER_MS);
    if (!localtime_r(&seconds, &tm))
        return;
    unsigned long zone_min = (unsigned long)labs(tm.tm_gmtoff) / 60;
    put(out, 4, (unsigned long)tm.tm_year + 1900);
    put(out + 5, 2, (unsigned long)tm.tm_mon + 1);
    put(out + 8, 2, (unsigned long)tm.tm_mday);
    put(out + 11, 2, (unsigned long)tm.tm_hour);
    put(out + 14, 2, (unsigned long)tm.tm_min);
    put(out + 17, 2, (unsigned long)tm.tm_sec);
    out[23] = tm.tm_gmtoff < 0 ? '-' : '+';
    put(out + 24, 2, zone_min / 60);
    put(out + 27, 2, zone_min % 60);
}

/* Days since 1970-01-01. The year starts in March, so that a leap day is its last day. */
static int64_t days_since_1970(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year % 400;
    int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static unsigned digits(const char *text, size_t count)
{
    unsigned n = 0;
    for (size_t i = 0; i < count; i++)
        n = 10 * n + (unsigned)(text[i] - '0');
    return n;
}

bool gp_clock_parse_rfc3339(const char *text, uint64_t *ret_wall_ns)
{
    static const char form[] = "0000-00-00T00:00:00.000+00:00";
    for (size_t i = 0; i < sizeof(form); i++)
        if (form[i] == '0' ? (unsigned)(text[i] - '0') > 9
                           : text[i] != form[i] && !(form[i] == '+' && text[i] == '-'))
            return false;
    int64_t zone_min = digits(text + 24, 2) * 60 + digits(text + 27, 2);
    int64_t seconds =
        digits(text + 11, 2) * 3600 + digits(text + 14, 2) * 60 + digits(text + 17, 2);
    seconds += 86400 * days_since_1970(digits(text, 4), digits(text + 5, 2), digits(text + 8, 2));
    seconds += text[23] == '-' ? 60 * zone_min : -60 * zone_min;
    if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / GP_NS_PER_S - 1)
        return false;
    *ret_wall_ns = (uint64_t)seconds * GP_NS_PER_S + digits(text + 20, 3) * GP_NS_PER_MS;
    return true;
}

void gp_clock_plain(uint64_t wall_ns, char out[GP_RFC3339_SIZE])
{
    gp_clock_rfc3339(wall_ns, out);
    out[strlen("2026-11-20")] = ' ';
    out[strlen("2026-11-20 15:04:05.123")] = '\0';
}
