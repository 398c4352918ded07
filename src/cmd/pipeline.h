/* A pipeline: commands that run on GPUs of their own, one after another or side by side, from an
 * INI file.
 *
 *   [pipeline]
 *   name = im2elevation
 *
 *   [size]
 *   fit-batch = python train.py --epochs 1 --batch-size {}
 *
 *   [train]
 *   command = python train.py --epochs 5 --batch-size {batch}
 *   mem = 9GiB
 *   env = PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
 *
 *   [test]
 *   after = train
 *   command = python test.py
 *
 *   [export]
 *   after = train
 *   command = python export.py
 *
 * Every other section is a step. One without `after` starts when all sections above it have
 * succeeded. What it may have besides command, fit-batch, after, env and folder are options of
 * gpulse run or gpulse fit-batch, by their names. */
#ifndef GP_CMD_PIPELINE_H
#define GP_CMD_PIPELINE_H

#include "base/io.h"
#include "jobs/placeholder.h"
#include "jobs/steps.h"

struct gp_err;

enum {
    GP_STEP_OPTIONS = 32, /* as own_options has bits */
    GP_STEP_VARIABLES = 64,
    GP_STEP_AFTER_SIZE = 4096,
};

struct gp_step {
    char name[GP_STEP_NAME_SIZE];
    char command[8192]; /* for sh -c */
    bool is_fit;        /* gpulse fit-batch finds the number for its {} */
    char folder[GP_PATH_SIZE];
    char *options[GP_STEP_OPTIONS]; /* "--mem=9GiB" */
    size_t option_count;
    uint32_t own_options;               /* a bit for each of them that gpulse run does not have */
    char *variables[GP_STEP_VARIABLES]; /* "NAME=VALUE" */
    size_t variable_count;
    char after[GP_STEP_AFTER_SIZE]; /* as it stands in the file */
    bool has_after;
    unsigned after_line, batch_line; /* of the file; 0: none */
    uint64_t hash;                   /* of all that stands in the file about it */
};

struct gp_pipeline {
    char path[GP_PATH_SIZE];   /* of the file, whole */
    char name[128];            /* safe to be shown */
    char folder[GP_PATH_SIZE]; /* of the file: where steps run that name none */
    struct gp_step steps[GP_STEPS_MAX];
    struct gp_steps graph; /* of the steps, by their numbers */
};

/* GP_EIO; GP_EFORMAT names the file and the line. */
int gp_pipeline_load(struct gp_pipeline **ret, const char *path, struct gp_err *err) GP_MUST_CHECK;
void gp_pipeline_free(struct gp_pipeline *pipeline);

/* The number of a step; GP_STEPS_MAX: there is none of that name. */
size_t gp_pipeline_find(const struct gp_pipeline *pipeline, const char *name);

/* The fit-batch step that a placeholder in a step means: the one of that name, or with "" the only
 * one that it comes after. GP_STEPS_MAX: there is none, or there are several. */
size_t gp_pipeline_fit_of(const struct gp_pipeline *pipeline, size_t step, const char *name);

/* The value of one of its options, as "0,1" of gpu-ids; NULL: it has none. */
const char *gp_step_option(const struct gp_step *step, const char *option);

#endif
