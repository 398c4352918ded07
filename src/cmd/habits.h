/* What fingers type that were trained on other tools, and how gpulse spells it. */
#ifndef GP_CMD_HABITS_H
#define GP_CMD_HABITS_H

#include "base/util.h"

struct gp_err;

enum { GP_HABIT_SIZE = 200 };

/* The spelling for a word that `command` ("gpulse": none) does not know. `next` is the argument
 * after it, or NULL. False: no habit is known; then ret is unchanged. */
bool gp_habit_find(const char *command, const char *word, const char *next,
                   char ret[GP_HABIT_SIZE]);

/* The index of the option that the parser did not know, according to its error; 0: it failed for
 * another reason. */
int gp_habit_unknown_option(int argc, char *const *argv, const struct gp_err *err);

/* Adds the spelling to the parser's error about an unknown option of this command. */
void gp_habit_explain(const char *command, int argc, char *const *argv, struct gp_err *err);

/* GP_EUSAGE if a positional argument is such a word; 0 otherwise. */
int gp_habit_check_words(const char *command, int count, char *const *words,
                         struct gp_err *err) GP_MUST_CHECK;

#endif
