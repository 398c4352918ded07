/* The cache consists of a header, entries of fixed size, and the strings that these point to. Its
 * numbers have the machine's byte order; all machines with a GPU driver are little-endian. */
#include "doctor/readers/ldcache.h"

#include "doctor/files.h"

#include <errno.h>
#include <string.h>

static const char old_magic[] = "ld.so-1.7.0";
static const char new_magic[] = "glibc-ld.so.cache1.1";

enum {
    OLD_HEADER = 16, /* the magic and a count */
    OLD_ENTRY = 12,
    NEW_HEADER = 48,
    NEW_ENTRY = 24,
    AT_COUNT = 20,
    AT_STRINGS_SIZE = 24,
    AT_BYTE_ORDER = 28,
    BIG_ENDIAN_CACHE = 3,
    CACHE_MAX = 16 << 20,
};

static uint32_t number_at(const char *p)
{
    const unsigned char *byte = (const unsigned char *)p;
    return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

/* The section for old versions of glibc comes first; the other follows, aligned. */
static size_t new_part(const char *data, size_t size)
{
    if (size < OLD_HEADER || memcmp(data, old_magic, sizeof(old_magic) - 1) != 0)
        return 0;
    size_t end = OLD_HEADER + (size_t)number_at(data + 12) * OLD_ENTRY;
    return (end + 7) / 8 * 8;
}

bool gp_ldcache_init(struct gp_ldcache *cache, const void *data, size_t size)
{
    size_t start = new_part(data, size);
    if (start > size || size - start < NEW_HEADER)
        return false;
    const char *base = (const char *)data + start;
    size -= start;
    if (memcmp(base, new_magic, sizeof(new_magic) - 1) != 0 ||
        base[AT_BYTE_ORDER] == BIG_ENDIAN_CACHE)
        return false;
    size_t count = number_at(base + AT_COUNT);
    size_t strings = NEW_HEADER + count * NEW_ENTRY;
    size_t strings_size = number_at(base + AT_STRINGS_SIZE);
    if (strings > size || strings_size > size - strings)
        return false;
    /* The last string's terminator bounds the others too. */
    if (count > 0 && (strings_size == 0 || base[strings + strings_size - 1] != '\0'))
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *entry = base + NEW_HEADER + i * NEW_ENTRY;
        size_t name = number_at(entry + 4), path = number_at(entry + 8);
        if (name < strings || name >= strings + strings_size || path < strings ||
            path >= strings + strings_size)
            return false;
    }
    *cache = (struct gp_ldcache){.base = base, .entries = base + NEW_HEADER, .count = count};
    return true;
}

struct gp_library gp_ldcache_at(const struct gp_ldcache *cache, size_t index)
{
    const char *entry = cache->entries + index * NEW_ENTRY;
    return (struct gp_library){.name = cache->base + number_at(entry + 4),
                               .path = cache->base + number_at(entry + 8),
                               .flags = number_at(entry)};
}

bool gp_ldcache_find(const struct gp_ldcache *cache, const char *name, const char *arch,
                     size_t *from, struct gp_library *ret)
{
    for (size_t i = *from; i < cache->count; i++) {
        struct gp_library library = gp_ldcache_at(cache, i);
        if (strcmp(library.name, name) != 0 || !gp_library_is_for(&library, arch))
            continue;
        *ret = library;
        *from = i + 1;
        return true;
    }
    *from = cache->count;
    return false;
}

bool gp_library_is_for(const struct gp_library *library, const char *arch)
{
    static const struct {
        const char *arch;
        unsigned flags; /* whose second byte is the program type */
    } kinds[] = {{"x86_64", 0x03}, {"aarch64", 0x0a}, {"ppc64le", 0x05},
                 {"i686", 0x00},   {"armv7l", 0x09},  {"riscv64", 0x10}};
    for (size_t i = 0; arch && i < GP_ARRAY_LEN(kinds); i++)
        if (strcmp(arch, kinds[i].arch) == 0)
            return (library->flags >> 8 & 0xff) == kinds[i].flags;
    return true;
}

int gp_ldcache_read(struct gp_ldcache *cache, const struct gp_files *files, struct gp_arena *arena)
{
    size_t size;
    char *data = gp_files_text(files, arena, "/etc/ld.so.cache", CACHE_MAX, &size);
    if (!data)
        return errno ? -errno : -ENOMEM;
    return gp_ldcache_init(cache, data, size) ? 0 : -EBADMSG;
}
