/* Small helpers that every layer needs: attributes, array length, checked products. */
#ifndef GP_BASE_UTIL_H
#define GP_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
