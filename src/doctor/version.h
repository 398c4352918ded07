/* Versions: numbers with dots between them, as "580.65.06" or "12.8". */
#ifndef GP_DOCTOR_VERSION_H
#define GP_DOCTOR_VERSION_H

/* Below, equal to or above 0, as a is older than, as old as or newer than b. What is missing at the
 * end counts as 0; what stands behind the numbers ("-1ubuntu2", "+cu128") is not looked at. */
int gp_version_compare(const char *a, const char *b);

/* The number before the first dot, and the one behind it; 0: there is none. */
unsigned gp_version_major(const char *version);
unsigned gp_version_minor(const char *version);

#endif
