/* Options that select processes, combined into one filter. */
#ifndef GP_CMD_PROC_CHOICE_H
#define GP_CMD_PROC_CHOICE_H

#include "base/util.h"

struct gp_err;

struct gp_proc_choice {
    bool mine;
    const char *user, *pid, *ns_pid, *type, *container, *job; /* comma lists; NULL: not given */
};

/* clang-format off */
#define GP_PROC_CHOICE_ROWS(type_of, field)                                                        \
    {'u', "user", NULL, GP_OPT_STRING, "NAMES", .offset = offsetof(type_of, field.user),           \
     .group = "Select", .help = "only processes of these users"},                                  \
    {0, "mine", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.mine), .excludes = "user",    \
     .help = "only my own processes"},                                                             \
    {'p', "pid", NULL, GP_OPT_STRING, "PIDS", .offset = offsetof(type_of, field.pid),              \
     .help = "only these processes"},                                                              \
    {0, "ns-pid", NULL, GP_OPT_STRING, "PIDS", .offset = offsetof(type_of, field.ns_pid),          \
     .help = "only processes with these pids inside their container"},                             \
    {0, "type", NULL, GP_OPT_STRING, "TYPES", .offset = offsetof(type_of, field.type),             \
     .help = "only these types: C compute, G graphics, M MPS, S suspended"},                       \
    {0, "job", NULL, GP_OPT_STRING, "IDS", .offset = offsetof(type_of, field.job),                 \
     .help = "only processes of these Slurm or PBS jobs"},                                         \
    {0, "container", NULL, GP_OPT_STRING, "NAMES", .offset = offsetof(type_of, field.container),   \
     .help = "only processes whose container, pod or service name contains one of NAMES"}
/* clang-format on */

/* Whether any of them was given. */
bool gp_proc_choice_any(const struct gp_proc_choice *choice);

/* Adds words with blanks between, NULL for none, to such a filter as the next. */
int gp_proc_choice_add_words(const char *words, char *filter, size_t size,
                             struct gp_err *err) GP_MUST_CHECK;

/* Appends the selection to a filter for gp_procs_matches(), in a buffer of `size` bytes. GP_EUSAGE
 * names an invalid list. */
int gp_proc_choice_add(const struct gp_proc_choice *choice, char *filter, size_t size,
                       struct gp_err *err) GP_MUST_CHECK;

#endif
