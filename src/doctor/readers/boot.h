/* When the machine was started. */
#ifndef GP_DOCTOR_READERS_BOOT_H
#define GP_DOCTOR_READERS_BOOT_H

#include "base/util.h"

struct gp_exam;

/* In seconds since 1970, read once; 0: unknown. */
long long gp_boot_time(struct gp_exam *exam);

/* Whether the machine was booted before a file was written: otherwise, it may tell of what has
 * changed. False: not, or that is unknown. */
bool gp_boot_is_before(struct gp_exam *exam, const char *path);

/* Whether it is known that the file was last written before the machine was booted. */
bool gp_boot_is_after(struct gp_exam *exam, const char *path);

#endif
