/* Memory that several hold, also in several threads: it is freed with the last of them. It begins
 * with a struct gp_shared and does not change once a second one holds it. */
#ifndef GP_BASE_SHARED_H
#define GP_BASE_SHARED_H

#include "base/util.h"

#include <stdatomic.h>

struct gp_shared {
    atomic_uint holders;
};

/* So many bytes, held once, zeroed; NULL if there is no memory. */
void *gp_shared_new(size_t bytes) GP_MUST_CHECK;

/* One holder more, and one less; NULL is nothing. */
struct gp_shared *gp_shared_hold(struct gp_shared *shared);
void gp_shared_drop(struct gp_shared *shared);

#endif
