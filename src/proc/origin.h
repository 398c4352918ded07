/* What a process was started in, from its environment: a rank of a distributed job, a notebook, a
 * terminal, a login. */
#ifndef GP_PROC_ORIGIN_H
#define GP_PROC_ORIGIN_H

#include "base/util.h"

enum { GP_PROC_ORIGIN_SIZE = 256 };

/* Fills ret with what is known of these, in this order, with ", " between:
 *
 *   rank 3/8              RANK and WORLD_SIZE of torchrun, accelerate; those of Slurm or Open MPI
 *   notebook NAME         the notebook of a Jupyter kernel; without NAME where it does not tell
 *   ray JOB               a worker of Ray
 *   tmux %3, screen NAME  the pane or session
 *   ssh 192.0.2.7         where the login came from
 *
 * `environment` is the file environ: KEY=VALUE with NUL behind each, n bytes of it. The text is
 * safe to show, "" where there is nothing of all that. The environment is a claim: users set it, so
 * nothing is decided by it. */
void gp_proc_origin(const char *environment, size_t n, char ret[GP_PROC_ORIGIN_SIZE]);

#endif
