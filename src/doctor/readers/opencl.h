/* How OpenCL's loader finds the drivers: by files that name their libraries. */
#ifndef GP_DOCTOR_READERS_OPENCL_H
#define GP_DOCTOR_READERS_OPENCL_H

#include "base/util.h"

struct gp_exam;

#define GP_OPENCL_VENDORS "/etc/OpenCL/vendors"

/* Whether one of the files has a library with this word in its name; also true if the user has the
 * loader look elsewhere, or if they cannot be read: then *ret_error is set, to −errno. */
bool gp_opencl_knows(struct gp_exam *exam, const char *word, int *ret_error);

/* The file of them that names a library with this word; NULL: none, or the loader looks elsewhere.
 */
const char *gp_opencl_file(struct gp_exam *exam, const char *word);

/* The first installed program that does little without OpenCL; NULL: none. */
const char *gp_opencl_program(struct gp_exam *exam);

#endif
