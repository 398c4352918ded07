/* What nvidia-smi, or gpulse in its place, printed: names and values, by the form of the output. */
#ifndef GP_VERIFY_PRINTED_H
#define GP_VERIFY_PRINTED_H

#include "base/arena.h"
#include "base/util.h"

struct gp_err;

/* X(id, word)   word: what the user types to get it */
#define GP_PRINTED_FORMS(X)                                                                        \
    X(REPORT, "-q")                                                                                \
    X(CSV, "--query-gpu")                                                                          \
    X(FIELDS, "--help-query-gpu")                                                                  \
    X(LIST, "-L")                                                                                  \
    X(TABLE, "the table")                                                                          \
    X(QUERY, "gpulse query")

enum gp_printed_form {
#define X(id, word) GP_PRINTED_##id,
    GP_PRINTED_FORMS(X)
#undef X
        GP_PRINTED__FORMS,
};

/* Names are unique within an output, and sorted by bytes: "GPU 0 / FB Memory Usage / Total", "GPU 0
 * / memory.total", "line 3". GPUs are numbered in their order. Names and values are safe to print.
 */
struct gp_printed {
    struct gp_printed_value {
        const char *name, *text;
        size_t order; /* its place in the output */
    } * values;
    size_t count;
    struct gp_arena arena; /* owns all of it */
};

/* Reads an output. `fields` names the columns of GP_PRINTED_CSV and the members of
 * GP_PRINTED_QUERY, separated by commas. GP_PRINTED_QUERY is JSON of `gpulse query`; a member that
 * is null has the text "[N/A]". GP_EFORMAT: it is nothing of this form; GP_ETOOBIG, GP_ENOMEM.
 * Free it with gp_printed_fini() in any case. */
int gp_printed_read(struct gp_printed *printed, enum gp_printed_form form, const char *text,
                    const char *fields, struct gp_err *err) GP_MUST_CHECK;

void gp_printed_fini(struct gp_printed *printed);

/* The value of this name; NULL: none. */
const struct gp_printed_value *gp_printed_find(const struct gp_printed *printed, const char *name);

#endif
