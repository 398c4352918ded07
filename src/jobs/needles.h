/* Searches megabytes of text for many fixed strings at once.
 *
 * The first seven bytes of a needle contain four words of four bytes. Wherever the needle is, one
 * of them starts at a multiple of four. So only every fourth position is checked, and a filter that
 * fits in the L1 cache rejects nearly all of them. */
#ifndef GP_JOBS_NEEDLES_H
#define GP_JOBS_NEEDLES_H

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

enum {
    GP_NEEDLE_STRIDE = 4,                       /* bytes per word, and between two checks */
    GP_NEEDLE_LEAST = 2 * GP_NEEDLE_STRIDE - 1, /* bytes of the shortest needle */
    GP_NEEDLES_MAX = 128,
    GP_NEEDLE_FILTER_BITS = 1 << 16,
    GP_NEEDLE_CHAINS = 1 << 10,
};

struct gp_needles {
    uint64_t filter[GP_NEEDLE_FILTER_BITS / 64]; /* one bit per hash of a word */
    uint16_t chains[GP_NEEDLE_CHAINS];           /* the first word of a chain, counted from 1; 0:
                                                    none */
    struct gp_needle_word {
        uint32_t word;
        uint16_t next; /* in the chain */
        uint8_t needle, offset;
    } words[GP_NEEDLES_MAX * GP_NEEDLE_STRIDE];
    const char *texts[GP_NEEDLES_MAX];
    size_t lengths[GP_NEEDLES_MAX], count;
};

/* The numbers of needles, in the order in which they were added. */
struct gp_needle_set {
    uint64_t bits[GP_NEEDLES_MAX / 64];
};

/* Adds a needle of GP_NEEDLE_LEAST bytes or more to zero-initialized needles. The text must outlive
 * them. At most GP_NEEDLES_MAX; a text may be added twice. */
void gp_needles_add(struct gp_needles *needles, const char *text);

/* A needle in the first line of the text that contains one; NULL: none. No needle may contain a
 * line break. */
const char *gp_needles_find(const struct gp_needles *needles, const char *text, size_t size);

/* All needles in the text. */
struct gp_needle_set gp_needles_in(const struct gp_needles *needles, const char *text, size_t size);

static inline bool gp_needle_set_has(const struct gp_needle_set *set, size_t number)
{
    return (set->bits[number / 64] >> (number % 64)) & 1;
}

#endif
