/* gp_terminate_run() for the command line: lists the matching processes, asks for confirmation,
 * terminates them, waits until their memory is freed, and reports the result for each. */
#ifndef GP_CMD_PROC_END_H
#define GP_CMD_PROC_END_H

#include "model/metric.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;

struct gp_end_options {
    bool yes, dry_run, tree;
    const char *first; /* word of the first signal; NULL: the mildest */
    uint64_t grace_ns; /* 0: not given; the next one likewise */
    uint64_t wait_ns;
};

/* clang-format off */
#define GP_END_ROWS(type_of, field)                                                                \
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.yes), .group = "Act",        \
     .help = "do not ask for confirmation"},                                                       \
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.dry_run),                  \
     .help = "print what would be terminated, and do nothing"},                                    \
    {0, "tree", NULL, GP_OPT_FLAG, .offset = offsetof(type_of, field.tree),                        \
     .help = "include child processes"},                                                           \
    {'s', "signal", NULL, GP_OPT_CHOICE, "NAME", .choices = "int term kill",                       \
     .offset = offsetof(type_of, field.first),                                                     \
     .help = "the first signal to send (default int); also as -9, -KILL"},                         \
    {0, "grace", NULL, GP_OPT_DURATION, "TIME", .offset = offsetof(type_of, field.grace_ns),       \
     .help = "wait up to TIME after each signal (default 10s)"},                                   \
    {0, "wait", NULL, GP_OPT_DURATION, "TIME", .offset = offsetof(type_of, field.wait_ns),         \
     .help = "wait up to TIME for the GPU memory to be freed (default 30s)"}
/* clang-format on */

/* Terminates the processes of these rows, which are in the snapshot or have one of its GPUs open;
 * those in `named` (count of them) were given by pid. The sampler is the one that took the
 * snapshot. `ret_ended`: false if it only showed what would be terminated. GP_EFAIL if some still
 * run, or if their memory was not freed; GP_EPERM if none may be terminated; GP_EUSAGE if
 * confirmation is needed but impossible. */
int gp_end_processes(struct gp_sampler *sampler, const struct gp_snapshot *snapshot,
                     const struct gp_procs *procs, const int64_t *named, size_t named_count,
                     const struct gp_end_options *options, bool *ret_ended,
                     struct gp_err *err) GP_MUST_CHECK;

#endif
