/* Which processes a command acts on: those that its arguments and options choose. */
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
    char words[4096];                 /* and what they and the arguments come to: a filter, */
    int64_t named[GP_PROC_NAMED_MAX]; /* and pids; none: whatever the words fit */
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

/* Reads the arguments, pids and words of a filter, and the options. GP_EUSAGE: nobody is meant by
 * them, or something else is wrong. */
int gp_proc_select_parse(struct gp_proc_select *select, char *const *arguments, int count,
                         struct gp_err *err) GP_MUST_CHECK;

/* Whether an option was given that chooses. */
bool gp_proc_select_any(const struct gp_proc_select *select);

/* What the sampler has to ask for besides. */
void gp_proc_select_want(const struct gp_proc_select *select, struct gp_want *want);

/* Takes a sample, or with --idle as many as it needs, and picks the rows that are meant, those with
 * most memory first: free both, also behind an error. GP_EFAIL: a pid that was named is not there.
 */
int gp_proc_select_find(const struct gp_proc_select *select, struct gp_sampler *sampler,
                        struct gp_snapshot **ret_snapshot, struct gp_procs *ret,
                        struct gp_err *err) GP_MUST_CHECK;

/* Prints rows in these columns: who is meant. GP_EIO. */
int gp_proc_select_show(const struct gp_procs *procs, const enum gp_proc_column *columns,
                        size_t count, struct gp_err *err) GP_MUST_CHECK;

#endif
