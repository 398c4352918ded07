/* Reading samples.csv in the record of a job, which another user may have written. */
#ifndef GP_JOBS_SAMPLES_READ_H
#define GP_JOBS_SAMPLES_READ_H

#include "jobs/recorded.h"

enum gp_job_column {
    GP_JOB_TIME, /* seconds since it started */
    GP_JOB_GPU,  /* its index */
    GP_JOB_UTILIZATION,
    GP_JOB_MEMORY_USED,
    GP_JOB_POWER,
    GP_JOB_ENERGY,
    GP_JOB_MEMORY, /* of the job */
    GP_JOB_CPU,
    GP_JOB_RSS,
    GP_JOB_STEPS,     /* that it has reported so far */
    GP_JOB_STEP_TIME, /* of the last one */
    GP_JOB_COLUMN__COUNT
};

struct gp_job_sample {
    double cells[GP_JOB_COLUMN__COUNT]; /* NaN: unknown */
};

/* Calls `take` with each sample, in the order of the file, until it returns false. Lines without a
 * time and a GPU are skipped. */
void gp_recorded_samples(const struct gp_recorded *recorded,
                         bool (*take)(void *context, const struct gp_job_sample *sample),
                         void *context);

#endif
