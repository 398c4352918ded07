/* gpulse ps --env: the environments that processes were started with. They may hold secrets, so
 * they are read only on request, and for nothing else. */
#ifndef GP_CMD_PS_ENV_H
#define GP_CMD_PS_ENV_H

#include "base/util.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;
struct gp_strbuf;

/* Appends the environment of each row that is a process: as text, or as a document of the schema
 * gpulse.environment/1. GP_ETIMEOUT: a process hangs, and a thread is stuck on it. */
int gp_ps_add_environments(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                           const struct gp_procs *procs, bool json,
                           struct gp_err *err) GP_MUST_CHECK;

#endif
