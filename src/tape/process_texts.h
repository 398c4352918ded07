/* The texts that are kept with a process and not in samples. */
#ifndef GP_TAPE_PROCESS_TEXTS_H
#define GP_TAPE_PROCESS_TEXTS_H

#include "tape/private.h"

struct gp_store;

/* What this user may see of them: NULL otherwise, and where nothing is known. They are not
 * sanitized, and valid until the next call. GP_EIO, GP_EFORMAT; GP_ENOMEM. */
int gp_process_texts(struct gp_store *store, uint64_t id,
                     const char *ret[GP_PRIVATE__COUNT]) GP_MUST_CHECK;

#endif
