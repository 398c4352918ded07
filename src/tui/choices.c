#include "tui/choices.h"

#include <string.h>

const char *gp_choice_at(const char *words, int at, size_t *ret_n)
{
    words += strspn(words, " ");
    for (; at > 0 && *words; at--) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    *ret_n = strcspn(words, " ");
    return words;
}

int gp_choices_count(const char *words)
{
    int count = 0;
    size_t n;
    while (gp_choice_at(words, count, &n), n > 0)
        count++;
    return count;
}

int gp_choices_find(const char *words, const char *word, size_t n)
{
    const char *at;
    size_t length;
    for (int i = 0; at = gp_choice_at(words, i, &length), length > 0; i++)
        if (length == n && strncmp(at, word, n) == 0)
            return i;
    return -1;
}
