/* The last bytes of a stream. */
#ifndef GP_JOBS_TAIL_H
#define GP_JOBS_TAIL_H

#include "base/util.h"

enum { GP_TAIL_BYTES = 32768 };

struct gp_tail {
    char bytes[GP_TAIL_BYTES];
    size_t size;
};

void gp_tail_add(struct gp_tail *tail, const char *bytes, size_t size);

#endif
