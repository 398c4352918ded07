/* Time: monotonic nanoseconds inside, RFC 3339 with zone outside. */
#ifndef GP_BASE_CLOCK_H
#define GP_BASE_CLOCK_H

#include "base/util.h"

#include <time.h>

uint64_t gp_clock_mono_ns(void);
uint64_t gp_clock_wall_ns(void);

/* CLOCK_MONOTONIC moment as a timespec, for pthread_cond_timedwait and ppoll. */
struct timespec gp_clock_timespec(uint64_t ns);

/* "2026-11-20T15:04:05.123+01:00": local time with its zone, milliseconds. */
enum { GP_RFC3339_SIZE = 40 };
void gp_clock_rfc3339(uint64_t wall_ns, char out[GP_RFC3339_SIZE]);

/* The moment that such a text means, of 1970 or later; false, with *ret untouched, for another one.
 * Much quicker than sscanf() and timegm(). */
bool gp_clock_parse_rfc3339(const char *text, uint64_t *ret_wall_ns) GP_MUST_CHECK;

/* The same for people: "2026-11-20 15:04:05.123". */
void gp_clock_plain(uint64_t wall_ns, char out[GP_RFC3339_SIZE]);

/* The time of the clock on the wall at a monotonic moment of the past. */
uint64_t gp_clock_wall_at(uint64_t mono_ns);

#endif
