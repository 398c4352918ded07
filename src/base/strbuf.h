/* A growing byte string with a size limit.
 *
 * Invariants: `buf` is never NULL and always NUL-terminated; `len` excludes the NUL. An append that
 * would exceed `max`, or that runs out of memory, leaves the content unchanged and sets `error`,
 * which is sticky: a sequence of appends is checked once, at its end. GP_STRBUF_INIT and
 * GP_STRBUF_ON need no allocation. */
#ifndef GP_BASE_STRBUF_H
#define GP_BASE_STRBUF_H

#include "base/util.h"

struct gp_strbuf {
    char *buf;
    size_t len;
    size_t cap; /* 0 while buf is the shared empty string */
    size_t max; /* limit of len in bytes */
    char *lent; /* the caller's array that it begins in, never freed here; NULL: none */
    int error;  /* 0, GP_ENOMEM or GP_ETOOBIG */
};

extern char gp_strbuf_empty[1];

#define GP_STRBUF_INIT(ceiling)                                                                    \
    {                                                                                              \
        .buf = gp_strbuf_empty, .max = (ceiling)                                                   \
    }

/* Begins in an array of the caller's that holds "", and moves to the heap if it grows beyond it. */
#define GP_STRBUF_ON(array, ceiling)                                                               \
    {                                                                                              \
        .buf = (array), .cap = sizeof(array), .max = (ceiling), .lent = (array)                    \
    }

void gp_strbuf_init(struct gp_strbuf *sb, size_t max);
/* Frees the storage; the buffer is then that of GP_STRBUF_INIT. */
void gp_strbuf_fini(struct gp_strbuf *sb);
/* Empties it for reuse; keeps the storage, clears the error. */
void gp_strbuf_reset(struct gp_strbuf *sb);

void gp_strbuf_add(struct gp_strbuf *sb, const void *data, size_t len);
void gp_strbuf_adds(struct gp_strbuf *sb, const char *s);
void gp_strbuf_addc(struct gp_strbuf *sb, char c);
void gp_strbuf_fill(struct gp_strbuf *sb, char c, size_t count);
void gp_strbuf_addf(struct gp_strbuf *sb, const char *fmt, ...) GP_PRINTF(2, 3);
/* In decimal, like %ld, which takes ten times as long. */
void gp_strbuf_add_int(struct gp_strbuf *sb, long n);

/* Truncates the content to `len` bytes, if it is longer. */
void gp_strbuf_truncate(struct gp_strbuf *sb, size_t len);

/* Makes room for `extra` more bytes after the content; false, with `error` set, on failure. */
bool gp_strbuf_reserve(struct gp_strbuf *sb, size_t extra) GP_MUST_CHECK;

#endif
