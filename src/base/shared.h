/* Reference-counted memory, usable from several threads: the last holder frees it. It begins with a
 * struct gp_shared and must not change once a second holder exists. */
#ifndef GP_BASE_SHARED_H
#define GP_BASE_SHARED_H

#include "base/util.h"

#include <stdatomic.h>

struct gp_shared {
    atomic_uint holders;
};

/* `size` zeroed bytes with one holder; NULL if out of memory. */
void *gp_shared_new(size_t bytes) GP_MUST_CHECK;

/* Add and drop a reference; NULL is allowed. */
struct gp_shared *gp_shared_hold(struct gp_shared *shared);
void gp_shared_drop(struct gp_shared *shared);

#endif
