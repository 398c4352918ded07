/* The recording of a job: a directory with run.json, samples.csv, and a text for each incident. A
 * job does not depend on it. */
#ifndef GP_JOBS_RECORD_H
#define GP_JOBS_RECORD_H

#include "base/outfile.h"

struct dirent;
struct gp_err;

/* The end of the output of a job that failed, if not all of it is kept. */
#define GP_RECORD_OUTPUT_END "output-end.log"

enum { GP_RECORDS_KEPT = 100 };

struct gp_record {
    char path[GP_PATH_SIZE]; /* "": nothing is recorded */
    char samples_path[GP_PATH_SIZE];
    struct gp_outfile samples;
    bool has_samples, has_failed; /* samples cannot be written: stop writing them */
};

/* Creates the directory `dir`; NULL: a new one in $XDG_STATE_HOME/gpulse/runs or
 * ~/.local/state/gpulse/runs, where the newest GP_RECORDS_KEPT are kept. GP_EIO, GP_EPERM,
 * GP_EFAIL: nothing is recorded; without `dir`, the error says so, and the job is to run anyway. */
int gp_record_open(struct gp_record *record, const char *dir, uint64_t wall_ns,
                   struct gp_err *err) GP_MUST_CHECK;

/* That place; false: it has none, or another user could have prepared it. */
bool gp_record_find_runs(char ret[GP_PATH_SIZE]) GP_MUST_CHECK;
/* Whether the name of a directory in it is that of a record: 20261122-210311-4242. For scandir. */
int gp_record_is(const struct dirent *entry);

/* Writes a whole text to the file NAME in the directory. GP_EIO. */
int gp_record_write(struct gp_record *record, const char *name, const char *text, size_t size,
                    struct gp_err *err) GP_MUST_CHECK;

/* Appends lines to samples.csv. GP_EIO. */
int gp_record_add_samples(struct gp_record *record, const char *lines, size_t size,
                          struct gp_err *err) GP_MUST_CHECK;

void gp_record_close(struct gp_record *record);

#endif
