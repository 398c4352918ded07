/* Builds samples from single values, and records them. */
#ifndef GP_TAPE_IMPORT_ROWS_H
#define GP_TAPE_IMPORT_ROWS_H

#include "base/arena.h"
#include "model/snapshot.h"
#include "tape/import.h"
#include "tape/recorder.h"

#include <stdio.h>

struct gp_import_gpu {
    char key[96]; /* what distinguishes it in the file */
    bool is_in_sample;
};

struct gp_import_rows {
    const struct gp_import_config *config;
    struct gp_import_result *result;
    struct gp_recorder *recorder;
    struct gp_axis_clocks clocks; /* of the sample that is being built */
    bool has_sample;
    struct gp_snapshot snapshot;
    struct gp_import_gpu *gpus; /* in the order of the snapshot's devices */
    size_t room;
    unsigned long line; /* of the file, for messages */
    /* Of a file without times: that of the current sample, and the GPU that each begins with. */
    int64_t counted_us;
    char first_key[96];
};

/* The recording is opened with the first sample. */
void gp_import_rows_init(struct gp_import_rows *rows, const struct gp_import_config *config,
                         struct gp_import_result *result);
/* Records the last sample unless r is an error, and closes the recording. Returns r, or an error.
 */
int gp_import_rows_close(struct gp_import_rows *rows, int r, struct gp_err *err) GP_MUST_CHECK;

/* The row of a GPU at a time: it begins a new sample if this one has a row of the GPU already, or
 * is more than half a second old. `index` is that of a new GPU; below 0: the next. GP_ENOMEM,
 * GP_EFORMAT (too many GPUs), and as of gp_recorder_sample(). */
int gp_import_row(struct gp_import_rows *rows, int64_t wall_us, const char *key, int index,
                  struct gp_device **ret, struct gp_err *err) GP_MUST_CHECK;

/* The time of a row without one: a step later than before, if its GPU is the one that samples begin
 * with. GP_EUSAGE: nobody said when the file begins. */
int gp_import_count_time(struct gp_import_rows *rows, const char *key, int64_t *ret_wall_us,
                         struct gp_err *err) GP_MUST_CHECK;

/* Sets a value from a text such as "45", "45 %", "[N/A]"; unit: that of the column, "" for none or
 * if it follows in the text. What is no number, although it should be one, is absent. */
void gp_import_set(struct gp_import_rows *rows, struct gp_device *device, enum gp_metric m,
                   const char *text, const char *unit);
/* The same from a number in the unit of the metric. */
void gp_import_set_number(struct gp_import_rows *rows, struct gp_device *device, enum gp_metric m,
                          double number);

/* Notes the name of something that is not imported. */
void gp_import_skip(struct gp_import_rows *rows, const char *name);

/* GP_EFORMAT: what is wrong in this line. */
int gp_import_fail(const struct gp_import_rows *rows, const char *what, struct gp_err *err);

#endif
