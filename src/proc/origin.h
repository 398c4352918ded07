/* Where a process was started, from its environment: a rank of a distributed job, a notebook, a
 * terminal, a login. */
#ifndef GP_PROC_ORIGIN_H
#define GP_PROC_ORIGIN_H

#include "base/util.h"

enum { GP_PROC_ORIGIN_SIZE = 256 };

/* Fills ret with what is known of these, in this order, separated by ", ":
 *
 *   rank 3/8              RANK and WORLD_SIZE of torchrun, accelerate; those of Slurm or Open MPI
 *   notebook NAME         the notebook of a Jupyter kernel; without NAME if it is unknown
 *   ray JOB               a worker of Ray
 *   tmux %3, screen NAME  the pane or session
 *   ssh 192.0.2.7         the origin of the login
 *
 * `environment` is the content of the file environ: n bytes of NUL-terminated KEY=VALUE. The text
 * is safe to show, and "" if none of these is known. Users can set their environment to anything,
 * so it must not be used for decisions. */
void gp_proc_origin(const char *environment, size_t n, char ret[GP_PROC_ORIGIN_SIZE]);

#endif
