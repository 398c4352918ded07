#include "doctor/entries.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_SIZE = 4096, ORDINARY = 1000 }; /* as in scripts/explain.py */

/* ---- by id ---- */

static int compare_id(const void *key, const void *row)
{
    return strcmp(key, ((const struct gp_error_entry *)row)->id);
}

const struct gp_error_entry *gp_entry_find(const char *id)
{
    return bsearch(id, gp_entries, gp_entry_count, sizeof(gp_entries[0]), compare_id);
}

/* ---- windows: a hash table of the patterns, by one of their windows ---- */

enum { BUCKETS = 1 << 12, FILTER_BITS = 1 << 16 };

static uint16_t heads[BUCKETS], links[GP_PATTERNS_MAX]; /* index of a pattern plus 1; 0: the end */
static uint64_t filter[FILTER_BITS / 64]; /* of all windows: it fits in the L1 cache */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t hash_of(uint64_t last)
{
    const uint64_t all = (UINT64_C(1) << 8 * GP_WINDOW) - 1;
    return (last & all) * UINT64_C(0x9e3779b97f4a7c15);
}

static size_t filter_bit(uint64_t hash)
{
    return (size_t)(hash >> 48);
}

static size_t bucket_of(uint64_t hash)
{
    return (size_t)(hash >> 52);
}

static uint64_t push(uint64_t last, char lower)
{
    return last << 8 | (unsigned char)lower;
}

static void add_windows(void)
{
    for (size_t i = 0; i < gp_pattern_count; i++) {
        uint64_t last = 0;
        for (size_t n = 0; n < GP_WINDOW; n++)
            last = push(last, gp_patterns[i].window[n]);
        uint64_t hash = hash_of(last);
        filter[filter_bit(hash) / 64] |= UINT64_C(1) << filter_bit(hash) % 64;
        links[i] = heads[bucket_of(hash)];
        heads[bucket_of(hash)] = (uint16_t)(i + 1);
    }
}

/* ---- one pattern ---- */

struct text {
    size_t length;
    char as_is[LINE_SIZE], lower[LINE_SIZE];
};

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const struct text *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text->as_is; (p = strstr(p, word)); p += n)
        if ((p == text->as_is || !is_of_word(p[-1])) && !is_of_word(p[n]))
            return true;
    return false;
}

/* The end of the first place of a piece of n bytes; where it ends a number, of the first one that
 * no digit follows. The text ends with NUL. NULL: there is none. */
static const char *end_of_piece(const char *line, const char *end, const char *piece, size_t n,
                                bool ends_number)
{
    while ((line = memmem(line, (size_t)(end - line), piece, n)) && ends_number &&
           isdigit((unsigned char)line[n]))
        line++;
    return line ? line + n : NULL;
}

/* Gaps between the pieces match anything, so the first place of each piece is as good as any. */
static bool matches(const struct gp_pattern *pattern, const struct text *text)
{
    const char *line = pattern->any_case ? text->lower : text->as_is;
    const char *end = line + text->length;
    if (pattern->is_word)
        return has_word(text, pattern->pieces);
    for (const char *piece = pattern->pieces; *piece;) {
        size_t n = strcspn(piece, "\n");
        line = end_of_piece(line, end, piece, n, pattern->ends_number && !piece[n]);
        if (!line)
            return false;
        piece += n + (piece[n] == '\n');
    }
    return true;
}

static bool is_excluded(const struct gp_error_entry *entry, const struct text *text)
{
    for (unsigned i = 0; i < entry->unless_count; i++)
        if (matches(&gp_unless[entry->first_unless + i], text))
            return true;
    return false;
}

/* ---- all of them ---- */

static void take_text(struct text *text, const char *line)
{
    text->length = strnlen(line, LINE_SIZE - 1);
    memcpy(text->as_is, line, text->length);
    for (size_t i = 0; i < text->length; i++)
        text->lower[i] = (char)tolower((unsigned char)line[i]);
    text->as_is[text->length] = text->lower[text->length] = '\0';
}

struct search {
    struct text text;
    uint64_t tried[GP_PATTERNS_MAX / 64];
    const struct gp_error_entry *best;
    unsigned weight;
};

/* Tries the patterns whose window has this hash, each once in a line. */
static void try_patterns(struct search *s, uint64_t hash)
{
    for (unsigned link = heads[bucket_of(hash)]; link > 0; link = links[link - 1]) {
        const unsigned i = link - 1;
        const struct gp_pattern *p = &gp_patterns[i];
        if (p->weight <= s->weight || (s->tried[i / 64] >> i % 64 & 1))
            continue;
        s->tried[i / 64] |= UINT64_C(1) << i % 64;
        if (!matches(p, &s->text) || is_excluded(&gp_entries[p->entry], &s->text))
            continue;
        s->weight = p->weight;
        s->best = &gp_entries[p->entry];
    }
}

const struct gp_error_entry *gp_entry_of_line(const char *line, unsigned *ret_weight)
{
    struct search s = {.weight = 0};
    uint64_t last = 0;
    (void)pthread_once(&once, add_windows);
    take_text(&s.text, line);
    for (size_t i = 0; i < s.text.length; i++) {
        last = push(last, s.text.lower[i]);
        uint64_t hash = hash_of(last);
        if (i + 1 >= GP_WINDOW && (filter[filter_bit(hash) / 64] >> filter_bit(hash) % 64 & 1))
            try_patterns(&s, hash);
    }
    *ret_weight = s.weight;
    return s.best;
}

bool gp_entry_is_generic(unsigned weight)
{
    return weight < ORDINARY;
}

/* ---- families ---- */

/* Whether a word of lower-case letters, digits and signs is in the line as a word. */
static bool hints(const char *lower, const char *word, size_t n)
{
    for (const char *p = lower; (p = memmem(p, strlen(p), word, n)); p++)
        if ((p == lower || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n]))
            return true;
    return false;
}

const struct gp_family *gp_family_of_line(const char *line)
{
    const struct gp_family *best = NULL;
    size_t best_length = 0;
    struct text text;
    take_text(&text, line);
    for (size_t i = 0; i < gp_family_count; i++) {
        const char *p = gp_families[i].words;
        for (size_t n; *p; p += n + (p[n] == ' ')) {
            n = strcspn(p, " ");
            if (n > best_length && hints(text.lower, p, n)) {
                best = &gp_families[i];
                best_length = n;
            }
        }
    }
    return best;
}

const struct gp_family *gp_family_find(const char *name)
{
    for (size_t i = 0; name && i < gp_family_count; i++)
        if (strcmp(gp_families[i].name, name) == 0)
            return &gp_families[i];
    return NULL;
}
