/* A pipeline: commands that run on GPUs of their own, in sequence or in parallel, from an INI file.
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
 * Every other section is a step. A step without `after` starts when all sections above it have
 * succeeded. Besides command, fit-batch, after, env and folder, a step may have options of gpulse
 * run or gpulse fit-batch, by their long names. */
#ifndef GP_JOBS_PIPELINE_H
#define GP_JOBS_PIPELINE_H

#include "base/io.h"
#include "jobs/placeholder.h"
#include "jobs/steps.h"

struct gp_err;

enum {
    GP_STEP_OPTIONS = 32, /* a bit as in own_options */
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
    uint32_t own_options;               /* one bit for each option used that gpulse run does not
                                           have */
    char *variables[GP_STEP_VARIABLES]; /* "NAME=VALUE" */
    size_t variable_count;
    char after[GP_STEP_AFTER_SIZE]; /* as written in the file */
    bool has_after;
    unsigned after_line, batch_line; /* in the file; 0: none */
    uint64_t hash;                   /* of its section in the file */
};

struct gp_pipeline {
    char path[GP_PATH_SIZE];   /* absolute path of the file */
    char name[128];            /* safe to print */
    char folder[GP_PATH_SIZE]; /* of the file: working directory of steps that name none */
    struct gp_step steps[GP_STEPS_MAX];
    struct gp_steps graph; /* of the steps, by number */
};

/* GP_EIO; GP_EFORMAT names the file and the line. */
int gp_pipeline_load(struct gp_pipeline **ret, const char *path, struct gp_err *err) GP_MUST_CHECK;
void gp_pipeline_free(struct gp_pipeline *pipeline);

/* The number of the step with this name; GP_STEPS_MAX: there is none. */
size_t gp_pipeline_find(const struct gp_pipeline *pipeline, const char *name);

/* The fit-batch step that a placeholder in a step refers to: the one with that name or, with "",
 * the only one that it runs after. GP_STEPS_MAX: none, or several. */
size_t gp_pipeline_fit_of(const struct gp_pipeline *pipeline, size_t step, const char *name);

/* The value of one of its options, such as "0,1" of gpu-ids; NULL: not given. */
const char *gp_step_option(const struct gp_step *step, const char *option);

#endif
