/* Passes a job's output through: the bytes are forwarded unchanged and immediately, and a copy is
 * searched for failures. If this process has a terminal, the job gets a terminal too, so that
 * progress bars and colors keep working; otherwise a pipe.
 *
 * A separate thread does this, because it may block on the reader. Take its findings with
 * gp_output_take(); it sends SIGCHLD to the thread that started it when there are any. */
#ifndef GP_JOBS_OUTPUT_H
#define GP_JOBS_OUTPUT_H

#include "base/err.h"
#include "base/outfile.h"
#include "jobs/incident.h"
#include "jobs/pace.h"

struct gp_output;
struct gp_tail;

/* A file that also receives the command's output. After a failed write, nothing more is written to
 * it, and the command continues. */
struct gp_output_log {
    struct gp_outfile file;
    char path[GP_PATH_SIZE];
    bool is_open;
    struct gp_err err; /* why the file is incomplete; code 0: it is complete */
};

/* Opens DIR/output.log, and truncates it. */
void gp_output_log_open(struct gp_output_log *log, const char *folder);
void gp_output_log_close(struct gp_output_log *log);

struct gp_output_plan {
    int to;               /* one descriptor as the target of both; −1: those of this process */
    const regex_t *until; /* a line of output that is awaited; NULL: none */
    void (*on_line)(void *context,
                    const char *line); /* each line, on the thread, until gp_output_finish()
                                          returns; NULL: not called */
    void *on_line_context;
    struct gp_pace_plan pace;
    struct gp_output_log *log; /* NULL: none */
    struct gp_tail *tail;      /* keeps the end of the output; NULL: it is not kept */
    const char *label;         /* before each line, and no terminal for the job; NULL: neither */
};

/* Creates the channels for standard output and standard error, and starts the thread. If both lead
 * to one place, they share a channel. The plan must outlive it. GP_EIO. */
int gp_output_open(struct gp_output **ret, const struct gp_output_plan *plan,
                   struct gp_err *err) GP_MUST_CHECK;

/* In the child: installs the job's ends as standard output and standard error. */
void gp_output_give(const struct gp_output *output, int fds[3]);

/* In the parent, once the child runs: closes the child's ends. */
void gp_output_release(struct gp_output *output);

/* The findings since the last call. */
struct gp_output_news {
    bool began;   /* a failure is being printed: the moment to sample the GPUs */
    bool until;   /* the awaited line was printed */
    bool resized; /* its terminal was resized: signal the job */
    size_t count; /* of printed failures: complete with all of their numbers */
    struct gp_incident found[GP_FAILURE_CLASS__COUNT]; /* the newest of each class, in the order in
                                                          which the classes were first found */
};

/* False if there is nothing new. */
bool gp_output_take(struct gp_output *output, struct gp_output_news *ret);

/* The steps that were counted so far. */
struct gp_pace gp_output_pace(struct gp_output *output);

/* The job has exited: forwards what is still in transit. `is_enough` is asked from time to time
 * whether to stop waiting for the reader. Returns 0, or the errno of a failed write whose data is
 * lost. */
int gp_output_finish(struct gp_output *output, bool (*is_enough)(void));

void gp_output_free(struct gp_output *output);

#endif
