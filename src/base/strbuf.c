#include "base/strbuf.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char gp_strbuf_empty[1];

void gp_strbuf_init(struct gp_strbuf *sb, size_t max)
{
    *sb = (struct gp_strbuf)GP_STRBUF_INIT(max);
}

void gp_strbuf_fini(struct gp_strbuf *sb)
{
    if (sb->cap && sb->buf != sb->lent)
        free(sb->buf);
    gp_strbuf_init(sb, sb->max);
}

void gp_strbuf_reset(struct gp_strbuf *sb)
{
    sb->len = 0;
    sb->error = 0;
    if (sb->cap)
        sb->buf[0] = '\0';
}

void gp_strbuf_truncate(struct gp_strbuf *sb, size_t len)
{
    if (sb->len > len)
        sb->buf[sb->len = len] = '\0';
}

bool gp_strbuf_reserve(struct gp_strbuf *sb, size_t extra)
{
    if (sb->error)
        return false;
    /* The NUL after the content must be countable too. */
    if (extra > sb->max - sb->len || extra >= SIZE_MAX - sb->len) {
        sb->error = GP_ETOOBIG;
        return false;
    }
    size_t need = sb->len + extra + 1;
    if (need <= sb->cap)
        return true;
    size_t cap = sb->cap < 64 ? 64 : sb->cap;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    const bool is_own = sb->cap && sb->buf != sb->lent;
    char *grown = realloc(is_own ? sb->buf : NULL, cap);
    if (!grown) {
        sb->error = GP_ENOMEM;
        return false;
    }
    if (!is_own)
        memcpy(grown, sb->buf, sb->len + 1);
    sb->buf = grown;
    sb->cap = cap;
    return true;
}

void gp_strbuf_add(struct gp_strbuf *sb, const void *data, size_t len)
{
    if (len == 0 || !gp_strbuf_reserve(sb, len))
        return;
    memcpy(sb->buf + sb->len, data, len);
    sb->len += len;
    sb->buf[sb->len] = '\0';
}

void gp_strbuf_adds(struct gp_strbuf *sb, const char *s)
{
    gp_strbuf_add(sb, s, strlen(s));
}

void gp_strbuf_addc(struct gp_strbuf *sb, char c)
{
    gp_strbuf_add(sb, &c, 1);
}

void gp_strbuf_fill(struct gp_strbuf *sb, char c, size_t count)
{
    if (count == 0 || !gp_strbuf_reserve(sb, count))
        return;
    memset(sb->buf + sb->len, c, count);
    sb->len += count;
    sb->buf[sb->len] = '\0';
}

void gp_strbuf_add_int(struct gp_strbuf *sb, long n)
{
    char digits[3 * sizeof(n)];
    size_t at = sizeof(digits);
    unsigned long left = n < 0 ? 0 - (unsigned long)n : (unsigned long)n;
    do
        digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        digits[--at] = '-';
    gp_strbuf_add(sb, digits + at, sizeof(digits) - at);
}

void gp_strbuf_addf(struct gp_strbuf *sb, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) { /* only for a text longer than INT_MAX bytes */
        if (!sb->error)
            sb->error = GP_ETOOBIG;
        return;
    }
    size_t len = (size_t)n;
    if (len < sizeof(small)) {
        gp_strbuf_add(sb, small, len);
        return;
    }
    if (!gp_strbuf_reserve(sb, len))
        return;
    va_start(ap, fmt);
    (void)vsnprintf(sb->buf + sb->len, len + 1, fmt, ap);
    va_end(ap);
    sb->len += len;
}
