/* The capacity protocol of the driver's lists: the caller passes the room in entries, the driver
 * returns the number of entries. A list may grow between two calls. */
#include "source/nvml/internal.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 6 };

static bool reserve(struct nvml_buffer *buffer, unsigned capacity)
{
    if (capacity <= buffer->capacity)
        return true;
    void *larger = calloc(capacity, buffer->entry_bytes);
    if (!larger)
        return false;
    free(buffer->entries);
    buffer->entries = larger;
    buffer->capacity = capacity;
    buffer->count = 0;
    return true;
}

nvmlReturn_t nvml_fetch(struct nvml_device *device, struct nvml_buffer *buffer, unsigned room,
                        nvml_ask_fn ask, const void *ctx)
{
    nvmlReturn_t rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (int try = 0; try < TRIES && rc == NVML_ERROR_INSUFFICIENT_SIZE; try++) {
        if (!reserve(buffer, room))
            return NVML_ERROR_MEMORY;
        /* If the driver announces more entries than it writes, the rest are zero. Only those of the
         * last call are not yet. */
        memset(buffer->entries, 0, (size_t)buffer->count * buffer->entry_bytes);
        unsigned count = buffer->capacity;
        rc = ask(device, &count, buffer->entries, ctx);
        buffer->count = count < buffer->capacity ? count : buffer->capacity;
        unsigned more = count > buffer->capacity ? count : buffer->capacity;
        room = more > NVML_LIST_MAX / 2 - 8 ? NVML_LIST_MAX : 2 * more + 8;
    }
    return rc;
}
