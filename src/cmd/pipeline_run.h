/* One run of a pipeline: what its files have in common. */
#ifndef GP_CMD_PIPELINE_RUN_H
#define GP_CMD_PIPELINE_RUN_H

#include "cmd/pipeline.h"

#include "jobs/record.h"

#include <sys/types.h>

struct gp_strbuf;

struct gp_pipeline_run {
    struct gp_pipeline *pipeline;
    const char *gpulse;  /* the program */
    const char *gpu_ids; /* all steps choose among these; "": among all */
    bool restart, dry_run, quiet;
    char note[GP_PATH_SIZE]; /* "": none is kept */
    bool has_note_failed;
    struct gp_record record;
    pid_t pids[GP_STEPS_MAX];       /* of steps that run */
    int results[GP_STEPS_MAX];      /* descriptors of what fit-batch prints */
    uint64_t batches[GP_STEPS_MAX]; /* that fit-batch has found; 0: not known */
    uint64_t began_ns[GP_STEPS_MAX];
    double seconds[GP_STEPS_MAX];
    int statuses[GP_STEPS_MAX];
};

/* ---- what is done (pipeline_note.c) ---- */

/* Lets no second process run this pipeline until this one ends: GP_EBUSY says which one does.
 * Where nothing can be kept there is neither a note nor a lock. */
int gp_pipeline_lock(const struct gp_pipeline_run *run, struct gp_err *err) GP_MUST_CHECK;

/* Finds the place of the note. */
void gp_pipeline_find_note(struct gp_pipeline_run *run);

/* The steps that have succeeded before as they stand in the file now, and what fit-batch found. */
uint64_t gp_pipeline_read_note(struct gp_pipeline_run *run);

/* Notes which have succeeded. GP_EIO: the next run will not know it. */
int gp_pipeline_write_note(const struct gp_pipeline_run *run, struct gp_err *err) GP_MUST_CHECK;

/* ---- a step (pipeline_step.c) ---- */

/* Signals to end are handed on to all steps from now on. */
void gp_pipeline_catch_signals(void);

/* The number of the signal to end that came; 0: none. */
int gp_pipeline_signal(void);

/* Starts a step. False: no process can be made. */
bool gp_pipeline_start(struct gp_pipeline_run *run, size_t at) GP_MUST_CHECK;

/* Waits for a step that runs to end: which, and its exit status as a shell has it. */
size_t gp_pipeline_wait(struct gp_pipeline_run *run, int *ret_status);

/* Whether a step's options make sense, and which GPUs it would get now besides those of `taken`
 * ("0,1"): appends its mask, or "waits: …". Its exit status; errors are printed if `is_said`. */
int gp_pipeline_check(struct gp_pipeline_run *run, size_t at, const char *taken, bool is_said,
                      struct gp_strbuf *sb);

/* "FOLDER/1-train/run.json": a file of the record of a step; "": the folder itself.
 * Without a record the path is empty. */
void gp_pipeline_step_path(const struct gp_pipeline_run *run, size_t at, const char *name,
                           char path[GP_PATH_SIZE]);

/* ---- what is said (pipeline_report.c) ---- */

/* The table at the end, which is also the record's. */
void gp_pipeline_add_report(struct gp_strbuf *sb, const struct gp_pipeline_run *run);

/* What would be run, in which order, and on which GPUs. */
void gp_pipeline_add_plan(struct gp_strbuf *sb, struct gp_pipeline_run *run);

/* "a, b" */
void gp_pipeline_add_names(struct gp_strbuf *sb, const struct gp_pipeline *pipeline, uint64_t set);

#endif
