/* The lines of a text that need not be NUL-terminated: a mapped file. */
#ifndef GP_DOCTOR_LINES_H
#define GP_DOCTOR_LINES_H

#include "base/util.h"

#include <string.h>

struct gp_lines {
    const char *at, *end;
    size_t number; /* of the last returned line, from 1 */
};

static inline struct gp_lines gp_lines_of(const char *text, size_t length)
{
    return (struct gp_lines){.at = text, .end = text + length};
}

/* The next line, without its newline; false after the last. */
static inline bool gp_lines_next(struct gp_lines *lines, const char **ret, size_t *ret_length)
{
    if (lines->at >= lines->end)
        return false;
    size_t left = (size_t)(lines->end - lines->at);
    const char *stop = memchr(lines->at, '\n', left);
    size_t length = stop ? (size_t)(stop - lines->at) : left;
    *ret = lines->at;
    *ret_length = length > 0 && lines->at[length - 1] == '\r' ? length - 1 : length;
    lines->at += length + (stop != NULL);
    lines->number++;
    return true;
}

/* The next word of a line, up to a space; false at its end. */
static inline bool gp_lines_word(const char **at, const char *end, const char **ret,
                                 size_t *ret_length)
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
    *ret = *at;
    while (*at < end && **at != ' ' && **at != '\t')
        ++*at;
    *ret_length = (size_t)(*at - *ret);
    return *ret_length > 0;
}

static inline bool gp_lines_is(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* Whether a text ends so, behind something else: ".conf" is no name of a file. */
static inline bool gp_lines_ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* Whether a text begins with one of these; NULL is behind the last. */
static inline bool gp_lines_starts_any(const char *text, const char *const *starts)
{
    while (*starts && strncmp(text, *starts, strlen(*starts)) != 0)
        starts++;
    return *starts;
}

/* Whether a line has one of these words; NULL is behind the last. */
static inline bool gp_lines_has_any(const char *line, size_t length, const char *const *words)
{
    while (*words && !memmem(line, length, *words, strlen(*words)))
        words++;
    return *words;
}

/* Whether a comma list, "alice,bob", has exactly this word. */
static inline bool gp_lines_list_has(const char *list, const char *word)
{
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (gp_lines_is(list, strcspn(list, ","), word))
            return true;
    return false;
}

#endif
