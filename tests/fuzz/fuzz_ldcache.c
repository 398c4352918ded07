/* A damaged /etc/ld.so.cache is refused, or every entry of it can be read.
 * fuzz-sources: src/doctor/readers/ldcache.c src/doctor/files.c src/doctor/stall.c src/proc/mount.c
 * fuzz-sources: src/base/arena.c src/base/clock.c src/base/err.c */
#include "doctor/readers/ldcache.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gp_ldcache cache;
    char *copy = malloc(size ? size : 1); /* of exactly this size, for the sanitizer */
    if (copy && size > 0)
        memcpy(copy, data, size);
    if (copy && gp_ldcache_init(&cache, copy, size))
        for (size_t i = 0; i < cache.count; i++) {
            struct gp_library library = gp_ldcache_at(&cache, i);
            if (strlen(library.name) + strlen(library.path) > 2 * size)
                abort();
        }
    free(copy);
    return 0;
}
