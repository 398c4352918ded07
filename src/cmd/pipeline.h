/* A pipeline: commands that run one after the other, each on GPUs of its own, from an INI file.
 *
 *   [pipeline]
 *   name = im2elevation
 *
 *   [train]
 *   command = python train.py --epochs 5
 *   ids = 2
 *   mem = 9GiB
 *   env = PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
 *
 * Every other part is a step, in the order of the file. What it may have besides command, env and
 * folder are options of gpulse run, by their names. */
#ifndef GP_CMD_PIPELINE_H
#define GP_CMD_PIPELINE_H

#include "base/io.h"

struct gp_err;

enum {
    GP_PIPELINE_STEPS = 64,
    GP_STEP_OPTIONS = 32,
    GP_STEP_VARIABLES = 64,
};

struct gp_step {
    char name[64];
    char command[8192]; /* for sh -c */
    char folder[GP_PATH_SIZE];
    char *options[GP_STEP_OPTIONS]; /* "--mem=9GiB" */
    size_t option_count;
    char *variables[GP_STEP_VARIABLES]; /* "NAME=VALUE" */
    size_t variable_count;
    uint64_t hash; /* of all that stands in the file about it */
};

struct gp_pipeline {
    char path[GP_PATH_SIZE]; /* of the file, whole */
    char name[128];
    char folder[GP_PATH_SIZE]; /* of the file: where steps run that name none */
    struct gp_step steps[GP_PIPELINE_STEPS];
    size_t step_count;
};

/* GP_EIO; GP_EFORMAT names the file and the line. */
int gp_pipeline_load(struct gp_pipeline **ret, const char *path, struct gp_err *err) GP_MUST_CHECK;
void gp_pipeline_free(struct gp_pipeline *pipeline);

#endif
