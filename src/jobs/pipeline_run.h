/* Runs a pipeline. A note records the steps that have succeeded, so that the next run of the same
 * file continues there, however this one ended. Only gpulse-pipeline links this, because reading a
 * pipeline needs inih. */
#ifndef GP_JOBS_PIPELINE_RUN_H
#define GP_JOBS_PIPELINE_RUN_H

#include "jobs/pipeline.h"
#include "jobs/record.h"

#include <sys/types.h>

struct gp_strbuf;

struct gp_pipeline_run {
    struct gp_pipeline *pipeline;
    const char *gpulse;  /* path of the gpulse program */
    const char *gpu_ids; /* all steps choose from these; "": from all */
    bool restart, dry_run, quiet;
    /* Called with each message, one line, and with the final table. NULL: not called. */
    void (*tell)(const char *text);
    void (*show)(const char *text, size_t size);
    char note[GP_PATH_SIZE]; /* "": no record */
    bool has_note_failed;
    struct gp_record record;
    pid_t pids[GP_STEPS_MAX];       /* of running steps */
    int results[GP_STEPS_MAX];      /* descriptors for the output of fit-batch */
    uint64_t batches[GP_STEPS_MAX]; /* found by fit-batch; 0: unknown */
    uint64_t began_ns[GP_STEPS_MAX];
    double seconds[GP_STEPS_MAX];
    int statuses[GP_STEPS_MAX];
};

/* ---- the whole run (pipeline_run.c) ---- */

/* Reads the file, locks it unless this is a dry run, chooses the steps beginning with `from` ("":
 * as the note says), and checks the options of all of them. GP_EIO, GP_EFORMAT, GP_EUSAGE,
 * GP_EBUSY; an exit status above 0 if a step cannot run as written, which it has printed itself.
 * Must be closed whatever it returns. */
int gp_pipeline_open(struct gp_pipeline_run *run, const char *path, const char *from,
                     struct gp_err *err) GP_MUST_CHECK;

/* Runs the steps, with their records in `folder` ("": a new directory). Returns the exit status of
 * the step that failed first, or of the signal that ended all; GP_EIO: no record can be written. */
int gp_pipeline_run_all(struct gp_pipeline_run *run, const char *folder,
                        struct gp_err *err) GP_MUST_CHECK;

/* Tells which steps have succeeded before. */
void gp_pipeline_tell_done(const struct gp_pipeline_run *run);

void gp_pipeline_close(struct gp_pipeline_run *run);

/* ---- progress (pipeline_note.c) ---- */

/* Prevents a second process from running this pipeline: GP_EBUSY names the one that does. If
 * nothing can be stored, there is neither a note nor a lock. */
int gp_pipeline_lock(const struct gp_pipeline_run *run, struct gp_err *err) GP_MUST_CHECK;

/* Sets the path of the note. */
void gp_pipeline_find_note(struct gp_pipeline_run *run);

/* The steps that have already succeeded, unchanged since, and the results of fit-batch. */
uint64_t gp_pipeline_read_note(struct gp_pipeline_run *run);

/* Records which steps have succeeded. GP_EIO: the next run will not know it. */
int gp_pipeline_write_note(const struct gp_pipeline_run *run, struct gp_err *err) GP_MUST_CHECK;

/* ---- a step (pipeline_step.c) ---- */

/* From now on, termination signals are forwarded to all steps. */
void gp_pipeline_catch_signals(void);

/* The number of the termination signal received; 0: none. */
int gp_pipeline_signal(void);

/* Starts a step. False: no process can be created, or no file for its output. */
bool gp_pipeline_start(struct gp_pipeline_run *run, size_t at) GP_MUST_CHECK;

/* Waits for a running step to exit: which one, and its exit status as a shell reports it. */
size_t gp_pipeline_wait(struct gp_pipeline_run *run, int *ret_status);

/* Checks a step's options, and which GPUs it would get now besides those in `taken` ("0,1"):
 * appends its mask, or "must wait: …". Returns its exit status; errors are printed if `is_said`. */
int gp_pipeline_check(struct gp_pipeline_run *run, size_t at, const char *taken, bool is_said,
                      struct gp_strbuf *sb);

/* "DIR/1-train/run.json": a file of the record of a step; "": the directory itself. The path is
 * empty if there is no record. */
void gp_pipeline_step_path(const struct gp_pipeline_run *run, size_t at, const char *name,
                           char path[GP_PATH_SIZE]);

/* ---- output (pipeline_report.c) ---- */

/* The final table, which the record contains as well. */
void gp_pipeline_add_report(struct gp_strbuf *sb, const struct gp_pipeline_run *run);

/* What would run, in which order, and on which GPUs. */
void gp_pipeline_add_plan(struct gp_strbuf *sb, struct gp_pipeline_run *run);

/* "a, b" */
void gp_pipeline_add_names(struct gp_strbuf *sb, const struct gp_pipeline *pipeline, uint64_t set);

#endif
