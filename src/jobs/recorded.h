/* Reading the records of jobs (jobs/record). Another user may have prepared a directory: its files
 * are opened without following links, nothing in it blocks, and its texts are not sanitized. */
#ifndef GP_JOBS_RECORDED_H
#define GP_JOBS_RECORDED_H

#include "base/io.h"

#include <jansson.h>

struct gp_err;
struct gp_strbuf;

enum gp_recorded_state {
    GP_RECORDED_RUNNING,
    GP_RECORDED_ABANDONED, /* its gpulse run was killed, and the job with it */
    GP_RECORDED_ENDED,
};

/* Strings belong to `document`. */
struct gp_recorded {
    char folder[GP_PATH_SIZE];
    json_t *document; /* run.json */
    enum gp_recorded_state state;
    int64_t pid;         /* of gpulse run */
    unsigned status;     /* if ended: of the job */
    const char *stopped; /* what ended it: a limit of gpulse run; NULL: nothing */
    const char *told;    /* the signal that gpulse run got, as in "TERM"; NULL: none */
    const char *started; /* RFC 3339, or "" */
    double seconds;      /* how long it ran; */
    bool is_least;       /* at least: its end is not recorded */
    double memory_peak;  /* bytes, the highest on a GPU; 0: none was seen */
    double rss_peak;     /* bytes of host memory, of its largest process; 0: unknown */
};

/* GP_EIO: the directory is not a record. */
int gp_recorded_read(const char *folder, struct gp_recorded *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_recorded_fini(struct gp_recorded *recorded);

/* Why gpulse run ended the job, and what to do, as a sentence each; NULL: it did not. */
const char *gp_recorded_reason(const struct gp_recorded *recorded, const char **ret_advice);
/* Its name, or "". */
const char *gp_recorded_name(const struct gp_recorded *recorded);

/* Opens a regular file of the record; -1: there is none. */
int gp_recorded_open(const struct gp_recorded *recorded, const char *name);

/* "sh -c 'exit 3'": its command, as a shell reads it, sanitized and shortened. */
void gp_recorded_add_command(struct gp_strbuf *sb, const struct gp_recorded *recorded);
/* "0,3": the indices of its GPUs. */
void gp_recorded_add_gpus(struct gp_strbuf *sb, const struct gp_recorded *recorded);

/* How it ended and what it was, as documented in docs/schema.md; NULL if out of memory. */
json_t *gp_recorded_json(const struct gp_recorded *recorded);

/* Calls `take` with each record of this user that can be read, the newest first, until it returns
 * false. The steps of a pipeline are records of their own, those that failed before the others. The
 * record is valid during the call. */
void gp_recorded_each(bool (*take)(void *context, const struct gp_recorded *recorded),
                      void *context);

/* Appends a line for each of these records, below a heading, or the document gpulse.explain.list/1
 * and a newline. Returns how many there are. Without any, the text is empty, but the document is
 * complete. */
size_t gp_recorded_add_list(struct gp_strbuf *sb, bool as_json);

#endif
