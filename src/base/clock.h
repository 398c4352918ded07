/* Time: monotonic nanoseconds internally, RFC 3339 with zone in the output. */
#ifndef GP_BASE_CLOCK_H
#define GP_BASE_CLOCK_H

#include "base/util.h"

#include <time.h>

uint64_t gp_clock_mono_ns(void);
uint64_t gp_clock_wall_ns(void);

/* A CLOCK_MONOTONIC time as a timespec, for pthread_cond_timedwait and ppoll. */
struct timespec gp_clock_timespec(uint64_t ns);

/* "2026-11-20T15:04:05.123+01:00": local time with its zone, milliseconds. */
enum { GP_RFC3339_SIZE = 40 };
void gp_clock_rfc3339(uint64_t wall_ns, char out[GP_RFC3339_SIZE]);

/* Parses such a text from 1970 or later; returns false and leaves *ret unchanged for anything else.
 * Much faster than sscanf() and timegm(). */
bool gp_clock_parse_rfc3339(const char *text, uint64_t *ret_wall_ns) GP_MUST_CHECK;

/* The same in human-readable form: "2026-11-20 15:04:05.123". */
void gp_clock_plain(uint64_t wall_ns, char out[GP_RFC3339_SIZE]);

/* The wall-clock time at a past monotonic time. */
uint64_t gp_clock_wall_at(uint64_t mono_ns);

#endif
