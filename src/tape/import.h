/* Recordings from what other programs have written down: nvidia-smi --query-gpu as CSV, nvidia-smi
 * dmon, dcgmi dmon, gpulse query as CSV or NDJSON, and answers of Prometheus for a time range. */
#ifndef GP_TAPE_IMPORT_H
#define GP_TAPE_IMPORT_H

#include "base/util.h"

struct gp_err;

struct gp_import_config {
    const char *from; /* "-": standard input */
    const char *to;   /* the recording; its time must be before that of the file */
    /* Of a file without times: the first one, as wall-clock time, and from one to the next.
     * 0: unknown. */
    uint64_t start_ns, interval_ns;
    uint64_t size_max; /* see struct gp_recorder_config */
};

struct gp_import_result {
    const char *format; /* for people */
    uint64_t samples, values;
    size_t gpus;
    char unknown[200]; /* names of columns that are no metrics of gpulse, separated by commas */
};

/* GP_EFORMAT: the file is in none of these formats, or a line of it is damaged; GP_EUSAGE: it has
 * no times, and there is no start_ns; and as of gp_recorder_open(). */
int gp_import(const struct gp_import_config *config, struct gp_import_result *ret,
              struct gp_err *err) GP_MUST_CHECK;

#endif
