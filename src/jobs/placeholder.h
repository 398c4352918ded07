/* "{batch}" and "{batch:NAME}" in the command of a step: the result of a fit-batch step. Other
 * braces belong to the command, including the shell's ${batch}. */
#ifndef GP_JOBS_PLACEHOLDER_H
#define GP_JOBS_PLACEHOLDER_H

#include "base/util.h"

struct gp_strbuf;

enum { GP_STEP_NAME_SIZE = 64 };

struct gp_placeholder {
    const char *at; /* its opening brace */
    size_t length;
    char name[GP_STEP_NAME_SIZE]; /* of the step; "": the preceding one */
};

/* Letters, digits, '_', '-' and '.'; neither '.' nor '-' may come first. Such a name needs no
 * quotes in a shell, a path or a list. */
bool gp_step_is_name(const char *name);

/* The next one in the text. */
bool gp_placeholder_next(const char *text, struct gp_placeholder *ret);

/* Appends the text with each placeholder replaced by a number from `batch_of`. */
void gp_placeholder_fill(struct gp_strbuf *sb, const char *text,
                         uint64_t (*batch_of)(void *context, const char *name), void *context);

#endif
