/* What fingers type that were trained on other tools, and how gpulse spells it. */
#ifndef GP_CMD_HABITS_H
#define GP_CMD_HABITS_H

#include "base/cli.h"

struct gp_err;

enum { GP_HABIT_SIZE = 200 };

/* The spelling for a word that `command` ("gpulse": none) does not know. `next` is the argument
 * after it, or NULL. False: no habit is known; then ret is unchanged. */
bool gp_habit_find(const char *command, const char *word, const char *next,
                   char ret[GP_HABIT_SIZE]);

/* The same for an option that the parser does not know. */
bool gp_habit_find_option(const char *command, int argc, char *const *argv,
                          const struct gp_cli_unknown *unknown, char ret[GP_HABIT_SIZE]);

/* GP_EUSAGE if a positional argument is such a word; 0 otherwise. */
int gp_habit_check_words(const char *command, int count, char *const *words,
                         struct gp_err *err) GP_MUST_CHECK;

#endif
