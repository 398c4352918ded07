/* The recording of a job: a directory with run.json, samples.csv, and a text for each incident. A
 * job does not depend on it. */
#ifndef GP_JOBS_RECORD_H
#define GP_JOBS_RECORD_H

#include "base/outfile.h"

struct gp_err;

enum { GP_RECORDS_KEPT = 100 };

/* In the record of a job that failed: the end of its output, if not all of it is kept. */
#define GP_OUTPUT_END "output-end.log"

struct gp_record {
    char path[GP_PATH_SIZE]; /* "": nothing is recorded */
    char samples_path[GP_PATH_SIZE];
    struct gp_outfile samples;
    bool has_samples, has_failed; /* samples cannot be written: stop writing them */
};

/* Creates the directory `dir`; NULL: a new one in $XDG_STATE_HOME/gpulse/runs or
 * ~/.local/state/gpulse/runs, where the newest GP_RECORDS_KEPT are kept. GP_EIO; without a home
 * directory nothing is recorded, which is not an error. */
int gp_record_open(struct gp_record *record, const char *dir, uint64_t wall_ns,
                   struct gp_err *err) GP_MUST_CHECK;

/* The newest record of a job in that place; of a pipeline, that of its last step. False: there is
 * none. */
bool gp_record_find_last(char ret[GP_PATH_SIZE]) GP_MUST_CHECK;

/* Writes a whole text to the file NAME in the directory. GP_EIO. */
int gp_record_write(struct gp_record *record, const char *name, const char *text, size_t size,
                    struct gp_err *err) GP_MUST_CHECK;

/* Appends lines to samples.csv. GP_EIO. */
int gp_record_add_samples(struct gp_record *record, const char *lines, size_t size,
                          struct gp_err *err) GP_MUST_CHECK;

void gp_record_close(struct gp_record *record);

#endif
