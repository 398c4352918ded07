/* The list of GPU architectures in a PyTorch library. It is text in the binary, such as "sm_75
 * sm_80 sm_90 compute_90", so nothing has to be imported. */
#ifndef GP_DOCTOR_READERS_ARCHLIST_H
#define GP_DOCTOR_READERS_ARCHLIST_H

#include "base/util.h"

struct gp_files;

enum { GP_ARCHLIST_SIZE = 512 };

/* The first list of three or more items. One that touches the end of the bytes counts only if
 * nothing follows (`is_end`); otherwise it may continue. False: there is none. */
bool gp_archlist_find(const char *data, size_t size, bool is_end, char ret[GP_ARCHLIST_SIZE]);

/* The list in a library: in its read-only data, or in the whole file if it is not ELF. Reads at
 * most `budget` bytes, and subtracts what it has read. */
bool gp_archlist_read(const struct gp_files *files, const char *path, uint64_t *budget,
                      char ret[GP_ARCHLIST_SIZE]);

#endif
