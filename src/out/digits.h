/* Fixed-point formatting. A frame has hundreds of numbers, and printf takes ten times as long for a
 * double as for an integer. */
#ifndef GP_OUT_DIGITS_H
#define GP_OUT_DIGITS_H

#include "base/strbuf.h"

static inline long gp_whole(double n)
{
    return (long)(n < 0 ? n - 0.5 : n + 0.5);
}

static inline void gp_add_whole(struct gp_strbuf *sb, double n)
{
    gp_strbuf_add_int(sb, gp_whole(n));
}

/* One decimal; for numbers of at least 0. */
static inline void gp_add_tenths(struct gp_strbuf *sb, double n)
{
    const long tenths = gp_whole(n * 10);
    gp_strbuf_add_int(sb, tenths / 10);
    gp_strbuf_addc(sb, '.');
    gp_strbuf_add_int(sb, tenths % 10);
}

#endif
