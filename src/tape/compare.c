#include "tape/compare.h"

#include <math.h>
#include <stdlib.h>

enum {
    WINDOW = 6,     /* autocorrelations count up to this many autocorrelation times */
    HALVINGS = 200, /* of an interval that contains a quantile */
};

/* ---- distributions ---- */

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    static const double tiny = 1e-300;
    double c = 1;
    double d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int i = 1; i < 10000; i++) {
        const double m = i;
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int k = 0; k < 2; k++) {
            const double term = k ? odd : even;
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            f *= c * d;
        }
        if (fabs(c * d - 1) < 1e-15)
            break;
    }
    return f;
}

/* The regularized incomplete beta function: the chance that a number with the distribution
 * Beta(a, b) is below x. */
static double beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double beta_quantile(double a, double b, double p)
{
    double low = 0;
    double high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        *(beta(a, b, middle) < p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* The chance that Student's t exceeds |t|, on both sides together. */
static double t_chance(double t, double freedom)
{
    return isinf(t) ? 0 : beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* The t that is exceeded with this chance. */
static double t_quantile(double p, double freedom)
{
    const double x = beta_quantile(freedom / 2, 0.5, p);
    return sqrt(freedom * (1 - x) / x);
}

/* ---- a mean and its error ---- */

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double covariance(const struct gp_compare_series *s, double mean, size_t lag)
{
    double sum = 0;
    for (size_t i = lag; i < s->count; i++)
        sum += (s->values[i] - mean) * (s->values[i - lag] - mean);
    return sum / (double)s->count;
}

/* The sum of the autocorrelations is cut off where it no longer grows but only gathers noise
 * (Sokal's window). */
double gp_compare_memory(const struct gp_compare_series *series)
{
    if (series->count == 0)
        return 1;
    const double mean = mean_of(series->values, series->count);
    const double variance = covariance(series, mean, 0);
    double time = 1;
    if (!(variance > 0) || !isfinite(variance))
        return 1;
    for (size_t lag = 1; lag < series->count / 2 && (double)lag < WINDOW * time; lag++)
        time += 2 * covariance(series, mean, lag) / variance;
    return time > 1 ? time : 1;
}

/* Neighboring blocks still are a little alike, so the error that follows from their means is too
 * small: by how much, if the correlation decays exponentially. */
static double correction(double memory, double block)
{
    const double phi = (memory - 1) / (memory + 1);
    const double lost = 2 * phi * (1 - pow(phi, block)) / ((1 - phi) * (1 - phi) * block);
    return memory / (memory - lost);
}

/* The variance of the means of blocks. */
static double block_variance(const double *values, size_t block, size_t blocks)
{
    const double mean = mean_of(values, block * blocks);
    double sum = 0;
    for (size_t i = 0; i < blocks; i++) {
        const double off = mean_of(values + i * block, block) - mean;
        sum += off * off;
    }
    return sum / (double)(blocks - 1);
}

struct gp_compare_mean gp_compare_mean_of(const struct gp_compare_series *series, double memory,
                                          double quantum)
{
    struct gp_compare_mean m = {.mean = 0};
    if (series->count == 0)
        return m;
    m.mean = mean_of(series->values, series->count);
    const double deviation = sqrt(covariance(series, m.mean, 0));
    const double block = ceil(GP_COMPARE_BLOCK_TIMES * memory);
    if (!isfinite(deviation) || block * GP_COMPARE_BLOCKS_LEAST > (double)series->count)
        return m;
    m.block = (size_t)block;
    if (m.block < series->count / GP_COMPARE_BLOCKS_MOST)
        m.block = series->count / GP_COMPARE_BLOCKS_MOST;
    if (m.block == 0)
        m.block = 1;
    m.blocks = series->count / m.block;
    const size_t used = m.block * m.blocks;
    const double *values = series->values + (series->count - used);
    m.mean = mean_of(values, used);
    m.error = sqrt(block_variance(values, m.block, m.blocks) / (double)m.blocks *
                   correction(memory, (double)m.block));
    const double coarse = quantum / sqrt(12);
    if (deviation < quantum && m.error < coarse)
        m.error = coarse;
    return m;
}

/* ---- tests ---- */

struct gp_compare_result gp_compare_means(const struct gp_compare_mean *before,
                                          const struct gp_compare_mean *after)
{
    const double a = before->error * before->error;
    const double b = after->error * after->error;
    const double off = after->mean - before->mean;
    if (a + b <= 0)
        return (struct gp_compare_result){fabs(off) > 0 ? 0 : 1, off, off};
    const double error = sqrt(a + b);
    const double freedom =
        (a + b) * (a + b) /
        (a * a / (double)(before->blocks - 1) + b * b / (double)(after->blocks - 1));
    const double width = error * t_quantile(0.05, freedom);
    return (struct gp_compare_result){t_chance(off / error, freedom), off - width, off + width};
}

struct gp_compare_result gp_compare_counts(uint64_t before, double time_before, uint64_t after,
                                           double time_after)
{
    const double a = (double)before;
    const double b = (double)after;
    const double share = time_after / (time_before + time_after);
    /* of a + b events, b are binomial with this share if nothing has changed */
    const double at_most = 1 - beta(b + 1, a, share);
    const double at_least = b > 0 ? beta(b, a + 1, share) : 1;
    const double p = 2 * fmin(a > 0 ? at_most : 1, at_least);
    const double low = b > 0 ? beta_quantile(b, a + 1, 0.025) : 0;
    const double high = a > 0 ? beta_quantile(b + 1, a, 0.975) : 1;
    const double ratio = time_before / time_after;
    return (struct gp_compare_result){
        .p = fmin(p, 1),
        .low = low / (1 - low) * ratio,
        .high = a > 0 ? high / (1 - high) * ratio : (double)INFINITY,
    };
}

/* ---- many tests ---- */

static int compare_pointers(const void *a, const void *b)
{
    const double x = **(double *const *)a;
    const double y = **(double *const *)b;
    return (x > y) - (x < y);
}

bool gp_compare_holm(double *p, size_t count)
{
    double **sorted = calloc(count + 1, sizeof(*sorted));
    double most = 0;
    if (!sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &p[i];
    qsort(sorted, count, sizeof(*sorted), compare_pointers);
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fmin(1, *sorted[i] * (double)(count - i)));
        *sorted[i] = most;
    }
    free(sorted);
    return true;
}
