#include "doctor/bundle/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD_SIZE = 128,
    DIGITS = 7, /* of a number; longer ones may be serial numbers */
    FRACTION_DIGITS = 20,
    UNIT_LETTERS = 4,
};

static int compare(const void *key, const void *word)
{
    return strcmp(key, *(const char *const *)word);
}

/* `end`: "#" for a word followed by a number, or "". */
static bool is_word(const char *text, size_t n, const char *end)
{
    char key[WORD_SIZE + 2];
    if (n >= WORD_SIZE)
        return false;
    for (size_t i = 0; i < n; i++)
        key[i] = (char)tolower((unsigned char)text[i]);
    memcpy(key + n, end, strlen(end) + 1);
    return bsearch(key, gp_words, gp_word_count, sizeof(*gp_words), compare);
}

/* A single letter is not a name. */
static bool is_unit(const char *text, size_t n)
{
    return n == 1 || (n <= UNIT_LETTERS && is_word(text, n, ""));
}

/* "580", "80GB", "25T08", "0ubuntu1" */
static size_t known_number(const char *text, size_t n, bool is_fraction)
{
    enum { HEX_DIGITS = 8 };
    size_t digits = 0;
    size_t letters = 0;
    if (n > 2 && n <= 2 + HEX_DIGITS && text[0] == '0' && text[1] == 'x')
        return strspn(text + 2, "0123456789abcdefABCDEF") >= n - 2 ? n : 0;
    while (digits < n && isdigit((unsigned char)text[digits]))
        digits++;
    while (digits + letters < n && isalpha((unsigned char)text[digits + letters]))
        letters++;
    if (digits > (is_fraction ? FRACTION_DIGITS : DIGITS))
        return 0;
    const char *unit = text + digits;
    size_t end = digits + letters;
    size_t more = 0;
    while (end + more < n && isdigit((unsigned char)text[end + more]))
        more++;
    bool has_number = more > 0 && more <= DIGITS;
    bool is_known = letters == 0 ? more == 0
                    : has_number ? is_word(unit, letters, "#") || (letters == 1 && *unit == 'T')
                                 : more == 0 && is_unit(unit, letters);
    end += more;
    bool ends = end == n || !(isalnum((unsigned char)text[end]) || text[end] & 0x80);
    return is_known && ends ? end : 0;
}

size_t gp_words_known(const char *text, size_t n, bool is_fraction)
{
    size_t name = 0;
    if (strchr("-_+.", text[0]))
        return 1;
    while (n > 0 && strchr(".-+_", text[n - 1]))
        n--;
    if (isdigit((unsigned char)text[0]))
        return known_number(text, n, is_fraction);
    if ((n == 1 && isalpha((unsigned char)text[0])) || is_word(text, n, ""))
        return n;
    while (name < n && !isdigit((unsigned char)text[name]))
        name++;
    size_t word = name;
    while (word > 0 && strchr(".-+_", text[word - 1]))
        word--;
    bool is_named = is_word(text, word, "#") || (word == 1 && tolower((unsigned char)*text) == 'v');
    return is_named && known_number(text + name, n - name, false) > 0 ? name : 0;
}
