/* Numbers as bytes: seven bits in each, the lowest first; small ones take one byte. Signed numbers
 * alternate: 0, −1, 1, −2. */
#ifndef GP_TAPE_BYTES_H
#define GP_TAPE_BYTES_H

#include "base/strbuf.h"

/* What remains to be read of a text of bytes from a file. After an error, everything that is read
 * is 0: a sequence of reads is checked once, at its end. */
struct gp_bytes {
    const uint8_t *at, *end;
    bool failed; /* the bytes ended too early, or a number is too large */
};

static inline uint64_t gp_zigzag(int64_t n)
{
    return ((uint64_t)n << 1) ^ (n < 0 ? UINT64_MAX : 0);
}

static inline int64_t gp_unzigzag(uint64_t n)
{
    return (int64_t)((n >> 1) ^ (0 - (n & 1)));
}

/* a − b and a + b, wrapping around. */
static inline int64_t gp_minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t gp_plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

void gp_bytes_add(struct gp_strbuf *sb, uint64_t n);
/* Its length, then the text. */
void gp_bytes_add_text(struct gp_strbuf *sb, const char *text);

uint64_t gp_bytes_read(struct gp_bytes *bytes);
/* A number that is at most `most`; a larger one is an error. */
uint64_t gp_bytes_read_upto(struct gp_bytes *bytes, uint64_t most);
/* A text; *ret is not terminated, and points into the bytes. Returns its length. */
size_t gp_bytes_read_text(struct gp_bytes *bytes, const char **ret);

#endif
