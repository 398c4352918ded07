#include "base/when.h"

#include "base/clock.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400 };

/* Digits, `count` of them; −1: they are not there. Moves *s behind them. */
static int read_digits(const char **s, size_t count)
{
    int n = 0;
    for (size_t i = 0; i < count; i++, ++*s) {
        if (!isdigit((unsigned char)**s))
            return -1;
        n = n * 10 + (**s - '0');
    }
    return n;
}

/* "03:10" or "03:10:05", up to the end. */
static bool read_time(const char *s, struct tm *tm)
{
    tm->tm_hour = read_digits(&s, *s && isdigit((unsigned char)s[1]) ? 2 : 1);
    if (tm->tm_hour < 0 || *s++ != ':')
        return false;
    tm->tm_min = read_digits(&s, 2);
    tm->tm_sec = 0;
    if (*s == ':') {
        s++;
        tm->tm_sec = read_digits(&s, 2);
    }
    return !*s && tm->tm_hour < 24 && tm->tm_min >= 0 && tm->tm_min < 60 && tm->tm_sec >= 0 &&
           tm->tm_sec < 60;
}

/* "2026-11-26", up to what follows. */
static const char *read_date(const char *s, struct tm *tm)
{
    const int year = read_digits(&s, 4);
    if (year < 1970 || *s++ != '-')
        return NULL;
    const int month = read_digits(&s, 2);
    if (month < 1 || month > 12 || *s++ != '-')
        return NULL;
    const int day = read_digits(&s, 2);
    if (day < 1 || day > 31)
        return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return s;
}

/* Local time; daylight saving is found out. */
static bool to_ns(struct tm tm, uint64_t *ret_ns)
{
    tm.tm_isdst = -1;
    const int day = tm.tm_mday;
    const time_t t = mktime(&tm);
    if (t < 0 || (day > 28 && tm.tm_mday != day)) /* 30 February */
        return false;
    *ret_ns = (uint64_t)t * GP_NS_PER_S;
    return true;
}

static struct tm day_of(uint64_t ns)
{
    const time_t t = (time_t)(ns / GP_NS_PER_S);
    struct tm tm;
    (void)localtime_r(&t, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    return tm;
}

/* "1h30m", "2d", "4w", "1y": a year has 365 days. */
static bool read_length(const char *s, size_t len, uint64_t *ret_ns)
{
    char word[32];
    uint64_t n;
    if (len == 0 || len >= sizeof(word))
        return false;
    memcpy(word, s, len);
    word[len] = '\0';
    if (gp_parse_duration(word, ret_ns))
        return !isdigit((unsigned char)word[len - 1]); /* a unit is needed */
    const uint64_t days = word[len - 1] == 'w' ? 7 : word[len - 1] == 'y' ? 365 : 0;
    word[len - 1] = '\0';
    if (!days || !gp_parse_u64(word, &n) || n > 1000)
        return false;
    *ret_ns = n * days * DAY_S * GP_NS_PER_S;
    return true;
}

static bool before(uint64_t now_ns, uint64_t length_ns, uint64_t *ret_ns)
{
    if (length_ns > now_ns)
        return false;
    *ret_ns = now_ns - length_ns;
    return true;
}

/* A day by its name; what follows it, or NULL. */
static const char *read_day(const char *s, uint64_t now_ns, struct tm *tm)
{
    static const struct {
        const char *name;
        int ago;
    } days[] = {{"today", 0}, {"yesterday", 1}};
    for (size_t i = 0; i < GP_ARRAY_LEN(days); i++) {
        const size_t len = strlen(days[i].name);
        if (strncmp(s, days[i].name, len) != 0)
            continue;
        *tm = day_of(now_ns);
        tm->tm_mday -= days[i].ago;
        tm->tm_isdst = -1;
        (void)mktime(tm); /* the day before the first */
        return s + len;
    }
    return read_date(s, tm);
}

/* The last time it was that late. */
static bool last_time(struct tm time, uint64_t now_ns, uint64_t *ret_ns)
{
    for (int ago = 0; ago < 2; ago++) {
        struct tm tm = day_of(now_ns);
        uint64_t ns;
        tm.tm_mday -= ago;
        tm.tm_hour = time.tm_hour;
        tm.tm_min = time.tm_min;
        tm.tm_sec = time.tm_sec;
        tm.tm_isdst = -1;
        const time_t t = mktime(&tm);
        ns = t < 0 ? 0 : (uint64_t)t * GP_NS_PER_S;
        if (ns > now_ns)
            continue;
        *ret_ns = ns;
        return true;
    }
    return false;
}

bool gp_parse_time(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
    static const char ago[] = " ago";
    const size_t len = strlen(text);
    struct tm tm = {0};
    uint64_t length_ns;
    if (strcmp(text, "now") == 0) {
        *ret_ns = now_ns;
        return true;
    }
    if (len > strlen(ago) && strcmp(text + len - strlen(ago), ago) == 0)
        return read_length(text, len - strlen(ago), &length_ns) &&
               before(now_ns, length_ns, ret_ns);
    if (read_time(text, &tm))
        return last_time(tm, now_ns, ret_ns);
    if (gp_clock_parse_rfc3339(text, ret_ns))
        return true;
    tm = (struct tm){0};
    const char *rest = read_day(text, now_ns, &tm);
    if (!rest)
        return false;
    if (*rest && ((*rest != ' ' && *rest != 'T') || !read_time(rest + 1, &tm)))
        return false;
    return to_ns(tm, ret_ns);
}

bool gp_parse_since(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
    uint64_t length_ns;
    return read_length(text, strlen(text), &length_ns) ? before(now_ns, length_ns, ret_ns)
                                                       : gp_parse_time(text, now_ns, ret_ns);
}
