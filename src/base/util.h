/* Small helpers that every layer needs: attributes, arrays and lists, checked products. */
#ifndef GP_BASE_UTIL_H
#define GP_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GP_MUST_CHECK __attribute__((warn_unused_result))

#define GP_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define GP_NS_PER_US UINT64_C(1000)
#define GP_NS_PER_MS UINT64_C(1000000)
#define GP_NS_PER_S UINT64_C(1000000000)

static inline bool gp_mul_overflows(size_t a, size_t b, size_t *ret)
{
    return __builtin_mul_overflow(a, b, ret);
}

/* A list with room for twice as many elements, or for `first` if *room is 0; sets *room. NULL if
 * out of memory: the list and *room are as before. */
static inline void *gp_grown(void *list, size_t *room, size_t first, size_t size)
{
    size_t more = *room ? 2 * *room : first;
    size_t bytes;
    void *grown = gp_mul_overflows(more, size, &bytes) ? NULL : realloc(list, bytes);
    if (grown)
        *room = more;
    return grown;
}

static inline int64_t gp_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* For qsort() and bsearch(): numbers in ascending order. */
static inline int gp_compare_u32(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* The value of a name in a list of "NAME=VALUE"; NULL: it is not there. */
static inline const char *gp_list_value(const char *const *list, size_t count, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (strncmp(list[i], name, n) == 0 && list[i][n] == '=')
            return list[i] + n + 1;
    return NULL;
}

/* FNV-1a, to derive a file name from a text; starts with GP_HASH_INIT. */
#define GP_HASH_INIT UINT64_C(0xcbf29ce484222325)

static inline uint64_t gp_hash(uint64_t hash, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        hash = (hash ^ *p) * UINT64_C(0x100000001b3);
    return (hash ^ '\n') * UINT64_C(0x100000001b3);
}

#endif
