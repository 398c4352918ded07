/* Lists of words, separated by blanks: the values of a preference. */
#ifndef GP_TUI_CHOICES_H
#define GP_TUI_CHOICES_H

#include "base/util.h"

/* The word at this index; its length is 0 after the last one. */
const char *gp_choice_at(const char *words, int at, size_t *ret_n);

int gp_choices_count(const char *words);

/* The index of a word of n bytes; −1: it is none of them. */
int gp_choices_find(const char *words, const char *word, size_t n);

#endif
