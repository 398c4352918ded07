#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
    const char *name;
    double factor;
};

/* Reads a decimal number and returns what follows it, or NULL if there is none. strtod() would
 * depend on the locale and accept "nan" and "0x1p3". */
static const char *read_decimal(const char *p, double *ret)
{
    double number = 0;
    double place = 1;
    bool digits = false;
    for (; isdigit((unsigned char)*p); p++, digits = true)
        number = number * 10 + (*p - '0');
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++, digits = true)
            number += (*p - '0') * (place /= 10);
    *ret = number;
    return digits ? p : NULL;
}

static bool scale(double number, const char *name, const struct suffix *suffixes, size_t count,
                  double *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, suffixes[i].name) != 0)
            continue;
        *ret = number * suffixes[i].factor;
        return true;
    }
    return false;
}

static bool to_whole(double number, uint64_t *ret)
{
    if (number >= 9e18)
        return false;
    *ret = (uint64_t)(number + 0.5);
    return true;
}

static bool parse_scaled(const char *s, const struct suffix *suffixes, size_t count, uint64_t *ret)
{
    double number;
    const char *end = read_decimal(s, &number);
    return end && scale(number, end, suffixes, count, &number) && to_whole(number, ret);
}

/* "1:30:00", as schedulers write it: hours, minutes and seconds. */
static bool read_clock(const char *s, uint64_t *ret_ns)
{
    enum { HOURS_MOST = 1000000 };
    double hours = 0;
    double minutes = 0;
    double seconds = 0;
    if (strchr(s, '.') && strchr(s, '.') < strrchr(s, ':')) /* only seconds have a fraction */
        return false;
    s = read_decimal(s, &hours);
    s = s && *s == ':' ? read_decimal(s + 1, &minutes) : NULL;
    s = s && *s == ':' ? read_decimal(s + 1, &seconds) : NULL;
    if (!s || *s || hours >= HOURS_MOST || minutes >= 60 || seconds >= 60)
        return false;
    *ret_ns = (uint64_t)((hours * 3600 + minutes * 60 + seconds) * 1e9 + 0.5);
    return true;
}

bool gp_parse_duration(const char *s, uint64_t *ret_ns)
{
    static const struct suffix suffixes[] = {
        {"",    1e9    },
        {"ns",  1      },
        {"us",  1e3    },
        {"ms",  1e6    },
        {"s",   1e9    },
        {"m",   60e9   },
        {"min", 60e9   },
        {"h",   3600e9 },
        {"d",   86400e9},
    };
    const uint64_t most_ns = UINT64_C(9000000000000000000);
    uint64_t sum_ns = 0;
    const char *rest = s;
    if (strchr(s, ':'))
        return read_clock(s, ret_ns);
    do {
        char unit[4];
        double number;
        uint64_t part_ns;
        const char *end = read_decimal(rest, &number);
        const size_t n = end ? strcspn(end, "0123456789.") : sizeof(unit);
        if (n >= sizeof(unit) || (n == 0 && rest > s))
            return false;
        memcpy(unit, end, n);
        unit[n] = '\0';
        if (!scale(number, unit, suffixes, GP_ARRAY_LEN(suffixes), &number) ||
            !to_whole(number, &part_ns) || part_ns >= most_ns - sum_ns)
            return false;
        sum_ns += part_ns;
        rest = end + n;
    } while (*rest);
    *ret_ns = sum_ns;
    return true;
}

/* alone: the unit of a bare number */
static bool parse_bytes(const char *s, double alone, uint64_t *ret_bytes)
{
    const struct suffix suffixes[] = {
        {"",    alone },
        {"B",   1     },
        {"k",   0x1p10},
        {"K",   0x1p10},
        {"KiB", 0x1p10},
        {"kB",  1e3   },
        {"M",   0x1p20},
        {"MiB", 0x1p20},
        {"MB",  1e6   },
        {"G",   0x1p30},
        {"GiB", 0x1p30},
        {"GB",  1e9   },
        {"T",   0x1p40},
        {"TiB", 0x1p40},
        {"TB",  1e12  },
    };
    return parse_scaled(s, suffixes, GP_ARRAY_LEN(suffixes), ret_bytes);
}

bool gp_parse_size(const char *s, uint64_t *ret_bytes)
{
    return parse_bytes(s, 1, ret_bytes);
}

bool gp_parse_memory(const char *s, uint64_t *ret_bytes)
{
    return parse_bytes(s, 0x1p20, ret_bytes);
}

bool gp_parse_power(const char *s, uint64_t *ret_mw)
{
    static const struct suffix suffixes[] = {{"", 1e3}, {"W", 1e3}, {"kW", 1e6}, {"mW", 1}};
    return parse_scaled(s, suffixes, GP_ARRAY_LEN(suffixes), ret_mw);
}

bool gp_parse_number(const char *s, double *ret)
{
    static const struct suffix suffixes[] = {
        {"",  1   },
        {"k", 1e3 },
        {"K", 1e3 },
        {"m", 1e6 },
        {"M", 1e6 },
        {"b", 1e9 },
        {"B", 1e9 },
        {"t", 1e12},
        {"T", 1e12},
    };
    double number;
    size_t suffix_count = GP_ARRAY_LEN(suffixes);
    const char *end = read_decimal(s, &number);
    if (!end)
        return false;
    if ((*end == 'e' || *end == 'E') && isdigit((unsigned char)end[1])) {
        int exponent = *++end - '0';
        if (isdigit((unsigned char)*++end))
            exponent = exponent * 10 + (*end++ - '0');
        for (; exponent > 0; exponent--)
            number *= 10;
        suffix_count = 1;
    }
    if (!scale(number, end, suffixes, suffix_count, &number) || !isfinite(number))
        return false;
    *ret = number;
    return true;
}

bool gp_parse_count(const char *s, uint64_t *ret)
{
    double number;
    return gp_parse_number(s, &number) && to_whole(number, ret);
}

bool gp_parse_u64(const char *s, uint64_t *ret)
{
    if (!isdigit((unsigned char)*s))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(s, &end, 10);
    if (errno || *end)
        return false;
    *ret = value;
    return true;
}

bool gp_parse_word(const char **list, char separator, char *ret, size_t size)
{
    const char *word = *list;
    if (!*word)
        return false;
    const char *end = strchrnul(word, separator);
    const size_t length = (size_t)(end - word);
    const size_t kept = length < size ? length : size - 1;
    memcpy(ret, word, kept);
    ret[kept] = '\0';
    *list = *end ? end + 1 : end;
    return true;
}
