/* The words that may stand in a published report: those of gpulse's own texts, and of
 * data/words.txt. Any other word may be a name or a password. */
#ifndef GP_DOCTOR_WORDS_H
#define GP_DOCTOR_WORDS_H

#include "base/util.h"

/* Sorted by bytes, in lower case; a '#' at the end stands for a number. Made by scripts/words.py.
 */
extern const char *const gp_words[];
extern const size_t gp_word_count;

/* How many of the n bytes, which begin with a word or a number and have none of the characters
 * between words, are known to be harmless: all of them, those before the number in "python3.11", or
 * the first number of "580.105.08". `is_fraction`: after the point of a number. 0: none are. */
size_t gp_words_known(const char *text, size_t n, bool is_fraction);

#endif
