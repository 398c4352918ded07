/* The environments that processes were started with. They may hold secrets, so they are read only
 * for this. */
#ifndef GP_JOBS_ENVIRONMENT_H
#define GP_JOBS_ENVIRONMENT_H

#include "base/util.h"

struct gp_err;
struct gp_inspect;
struct gp_procs;
struct gp_snapshot;
struct gp_strbuf;

/* Everything about a process, including its environment, for gp_inspect_free(). GP_ETIMEOUT,
 * GP_ENOMEM as below. */
int gp_environment_find(const char *root, int64_t pid, uint64_t timeout_ns, struct gp_inspect **ret,
                        struct gp_err *err) GP_MUST_CHECK;

/* Appends the environment of each row that is a process: as text, or as a document of the schema
 * gpulse.environment/1. root: prefix of /proc, NULL for none. timeout_ns: for each process.
 * GP_ETIMEOUT: one hangs; a thread is stuck on it, and this process must terminate with _exit().
 * GP_ENOMEM. Only one call at a time. */
int gp_environments_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_procs *procs, const char *root, uint64_t timeout_ns,
                        bool json, struct gp_err *err) GP_MUST_CHECK;

#endif
