/* Points in time as people type them, in local time. */
#ifndef GP_BASE_WHEN_H
#define GP_BASE_WHEN_H

#include "base/util.h"

/* "2026-11-26T03:10:05.5+01:00", "2026-11-26 03:10", "2026-11-26", "03:10" (the last time it was
 * that late), "yesterday 03:10", "today", "yesterday", "2h ago", "1y ago", "now". A day without a
 * time is its beginning. now_ns and *ret_ns are wall-clock times. False, and *ret_ns unchanged, for
 * anything else, and for what is before 1970. */
bool gp_parse_time(const char *text, uint64_t now_ns, uint64_t *ret_ns) GP_MUST_CHECK;

/* The same, or a length of time up to now, as in --since: "1h", "7d", "4w", "1y". */
bool gp_parse_since(const char *text, uint64_t now_ns, uint64_t *ret_ns) GP_MUST_CHECK;

#endif
