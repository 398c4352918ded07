/* Which processes a command acts on: those selected by its arguments and options. */
#ifndef GP_CMD_PROC_SELECT_H
#define GP_CMD_PROC_SELECT_H

#include "cmd/proc_choice.h"
#include "cmd/proc_idle.h"
#include "out/procs.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;

enum { GP_PROC_NAMED_MAX = 1024 };

struct gp_proc_select {
    struct gp_proc_choice choice; /* the options */
    const char *filter, *name;
    bool all;
    uint64_t idle_ns;
    char words[4096];                 /* options and arguments combined: a filter, */
    int64_t named[GP_PROC_NAMED_MAX]; /* and pids; none: any process that matches the filter */
    size_t named_count;
};

/* clang-format off */
#define GP_PROC_SELECT_ROWS(type_of, field)                                                        \
    GP_PROC_CHOICE_ROWS(type_of, field.choice),                                                    \
    {0, "name", NULL, GP_OPT_STRING, "TEXT", .offset = offsetof(type_of, field.name),              \
     .help = "only processes with TEXT in their command line"},                                    \
    {0, "filter", NULL, GP_OPT_STRING, "WORDS", .offset = offsetof(type_of, field.filter),         \
     .help = "only processes that match all WORDS, as in gpulse ps"},                              \
    {'a', "all", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.all),                        \
     .help = "all processes on the selected GPUs"},                                                \
    GP_IDLE_ROW(type_of, field.idle_ns)
/* clang-format on */

/* Reads the arguments (pids and words of a filter) and the options. GP_EUSAGE: they select nothing,
 * or are invalid; errors of gp_idle_take_id(). */
int gp_proc_select_parse(struct gp_proc_select *select, char *const *arguments, int count,
                         struct gp_err *err) GP_MUST_CHECK;

/* Whether an option that selects processes was given. */
bool gp_proc_select_any(const struct gp_proc_select *select);

/* What else the sampler must collect. */
void gp_proc_select_want(const struct gp_proc_select *select, struct gp_want *want);

/* gp_proc_selection_find() for the options. */
int gp_proc_select_find(const struct gp_proc_select *select, struct gp_sampler *sampler,
                        struct gp_snapshot **ret_snapshot, struct gp_procs *ret,
                        struct gp_err *err) GP_MUST_CHECK;

/* Prints the matching rows in these columns. GP_EIO. */
int gp_proc_select_show(const struct gp_procs *procs, const enum gp_proc_column *columns,
                        size_t count, struct gp_err *err) GP_MUST_CHECK;

#endif
