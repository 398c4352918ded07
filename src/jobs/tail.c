#include "jobs/tail.h"

#include <string.h>

void gp_tail_add(struct gp_tail *tail, const char *bytes, size_t size)
{
    if (size >= sizeof(tail->bytes)) {
        memcpy(tail->bytes, bytes + size - sizeof(tail->bytes), sizeof(tail->bytes));
        tail->size = sizeof(tail->bytes);
        return;
    }
    size_t room = sizeof(tail->bytes) - tail->size;
    size_t old = size > room ? size - room : 0;
    memmove(tail->bytes, tail->bytes + old, tail->size - old);
    memcpy(tail->bytes + tail->size - old, bytes, size);
    tail->size += size - old;
}
