/* Versions: numbers separated by dots, such as "580.65.06" or "12.8". */
#ifndef GP_DOCTOR_VERSION_H
#define GP_DOCTOR_VERSION_H

#include <stdbool.h>

/* Negative, 0 or positive, if a is older than, equal to or newer than b. Missing numbers at the end
 * count as 0; a suffix ("-1ubuntu2", "+cu128") is ignored. */
int gp_version_compare(const char *a, const char *b);

/* The number before the first dot, and the one after it; 0: there is none. */
unsigned gp_version_major(const char *version);
unsigned gp_version_minor(const char *version);

/* Whether it was built from a source between releases: "2.6.0a0+ecf3bae", "0.24.0.dev20250901". The
 * numbers of two such packages that fit each other can be those of two releases, as in NVIDIA's
 * images, and what is made for the release of that number need not fit. */
bool gp_version_is_between(const char *version);

#endif
