/* What a job prints, on its way to where it belongs: the bytes pass unchanged and at once, and a
 * copy is looked at for failures. Where this process has a terminal the job gets a terminal too, so
 * that its progress bars and colours stay; else a pipe.
 *
 * One thread does it, which may wait for whoever reads. What it finds is taken with
 * gp_output_take(); it sends SIGCHLD to the thread that started it when there is something. */
#ifndef GP_JOBS_OUTPUT_H
#define GP_JOBS_OUTPUT_H

#include "base/err.h"
#include "base/outfile.h"
#include "jobs/incident.h"

#include <regex.h>

struct gp_output;

/* A file that gets what the command prints, too. When something cannot be written there, nothing
 * more is, and the command goes on. */
struct gp_output_log {
    struct gp_outfile file;
    char path[GP_PATH_SIZE];
    bool is_open;
    struct gp_err err; /* why not all is kept; code 0: all is */
};

/* Opens FOLDER/output.log, and empties it. */
void gp_output_log_open(struct gp_output_log *log, const char *folder);
void gp_output_log_close(struct gp_output_log *log);

struct gp_output_plan {
    int to; /* a descriptor that both lead to; −1: where those of this process lead */
    const regex_t *until;      /* a line that is waited for; NULL: none */
    struct gp_output_log *log; /* NULL: none */
    const char *label;         /* before each line, and no terminal for the job; NULL: neither */
};

/* Makes the way for standard output and standard error, and begins; both are one if they lead to
 * one place. The plan must outlive it. GP_EIO. */
int gp_output_open(struct gp_output **ret, const struct gp_output_plan *plan,
                   struct gp_err *err) GP_MUST_CHECK;

/* Puts the job's ends in the places of its standard output and standard error. */
void gp_output_give(const struct gp_output *output, int fds[3]);

/* In the parent, when the child runs: leaves the child's ends to it. */
void gp_output_release(struct gp_output *output);

/* What was found since it was asked last. */
struct gp_output_news {
    bool began;   /* a failure is being printed: the moment to look at the GPUs */
    bool until;   /* the line that was waited for was printed */
    bool resized; /* its terminal has another size: it is to be told */
    size_t count; /* of failures that are printed: with all of their numbers */
    struct gp_incident found[GP_FAILURE_CLASS__COUNT]; /* the newest of each class, in the order in
                                                          which they were found first */
};

/* False if there is nothing. */
bool gp_output_take(struct gp_output *output, struct gp_output_news *ret);

/* The job has ended: hands on what is still on its way. `is_enough` is asked from time to time
 * whether to go on waiting for whoever reads. 0, or the errno with which something could not be
 * written, and is lost. */
int gp_output_finish(struct gp_output *output, bool (*is_enough)(void));

void gp_output_free(struct gp_output *output);

#endif
