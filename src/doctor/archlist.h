/* The list of GPU architectures in a library of PyTorch: text of the library, as
 * "sm_75 sm_80 sm_90 compute_90", so that nothing has to be imported. */
#ifndef GP_DOCTOR_ARCHLIST_H
#define GP_DOCTOR_ARCHLIST_H

#include "base/util.h"

struct gp_files;

enum { GP_ARCHLIST_SIZE = 512 };

/* The first list of three or more in the bytes; one at their end counts only if nothing follows
 * (`is_end`), for else it may go on. False: there is none. */
bool gp_archlist_find(const char *data, size_t size, bool is_end, char ret[GP_ARCHLIST_SIZE]);

/* The list in a library: in its read-only data, or in all of what is no ELF file. It reads
 * `budget` bytes at most, and subtracts what it has read. */
bool gp_archlist_read(const struct gp_files *files, const char *path, uint64_t *budget,
                      char ret[GP_ARCHLIST_SIZE]);

#endif
