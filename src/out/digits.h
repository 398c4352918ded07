/* Fixed-point formatting. A frame has hundreds of numbers, and printf takes ten times as long for a
 * double as for an integer. */
#ifndef GP_OUT_DIGITS_H
#define GP_OUT_DIGITS_H

static inline long gp_whole(double n)
{
    return (long)(n < 0 ? n - 0.5 : n + 0.5);
}

/* One decimal; for numbers of at least 0. */
#define GP_TENTHS "%ld.%ld"
#define GP_TENTHS_OF(n) gp_whole((n)*10) / 10, gp_whole((n)*10) % 10

#endif
