/* Numbers as people type them: durations, sizes, plain integers. The whole string must match. */
#ifndef GP_BASE_PARSE_H
#define GP_BASE_PARSE_H

#include "base/util.h"

/* "250ms", "1.5", "30s", "5m", "1h30m", "1:30:00", "2d"; a bare number is in seconds.
 * Nanoseconds. */
bool gp_parse_duration(const char *s, uint64_t *ret_ns);

/* "20GiB", "512M", "500k", "1.5G"; a bare number is in bytes; k K M G T are binary, kB MB GB TB
 * decimal, as in coreutils. */
bool gp_parse_size(const char *s, uint64_t *ret_bytes);
/* The same for memory: a bare number is in MiB, as nvidia-smi prints it. */
bool gp_parse_memory(const char *s, uint64_t *ret_bytes);

/* "350", "350.5", "350W", "1.4kW"; a bare number is in watts. Milliwatts. */
bool gp_parse_power(const char *s, uint64_t *ret_mw);

/* "7B", "350M", "1.3e9": a finite number, and a count; k M B T are decimal, in either case. */
bool gp_parse_number(const char *s, double *ret);
bool gp_parse_count(const char *s, uint64_t *ret);

/* Decimal, no sign, no spaces. */
bool gp_parse_u64(const char *s, uint64_t *ret);

/* The next word of a list such as "1,2,3", shortened to fit into `size` bytes. *list moves behind
 * it. False: there are no more; a separator at the end adds no empty word. */
bool gp_parse_word(const char **list, char separator, char *ret, size_t size);

#endif
