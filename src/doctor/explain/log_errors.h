/* The errors in a program's log, each once. */
#ifndef GP_DOCTOR_EXPLAIN_LOG_ERRORS_H
#define GP_DOCTOR_EXPLAIN_LOG_ERRORS_H

#include "base/arena.h"
#include "doctor/explain/explain.h"
#include "jobs/incident.h"

struct gp_err;

enum { GP_KNOWN_ERRORS_MAX = 512 };

/* ---- errors that a line explains ---- */

struct gp_known_error {
    struct gp_explanation explanation;
    const char *line; /* the first with it */
    uint64_t line_number, repeats, repeat_line;
};

/* Zero-initialize. Later errors than GP_KNOWN_ERRORS_MAX are left out. */
struct gp_known_errors {
    struct gp_arena arena; /* of the texts */
    struct gp_known_error all[GP_KNOWN_ERRORS_MAX];
    size_t count;
    size_t lines;       /* that were explained, if the caller counts them */
    const char *family; /* that the first unknown line hints at; NULL: none */
};

/* Takes a line: an error that is known already counts as its repetition. */
void gp_known_errors_take(struct gp_known_errors *errors, const char *line, uint64_t line_number);
void gp_known_errors_fini(struct gp_known_errors *errors);

/* ---- a whole log ---- */

struct gp_log_errors_calls {
    /* A failure for lack of memory, with its causes, followed by `repeats` like it, the last in
     * line `repeat_line`. False: stop reading. NULL: they are not wanted. */
    bool (*failure)(void *context, const struct gp_incident *incident, uint64_t repeats,
                    uint64_t repeat_line);
    /* The other errors; called when all is read, if there are any. */
    void (*known)(void *context, const struct gp_known_errors *errors);
    void *context;
    bool has_soft; /* also messages that only look like a failure */
};

/* Reads a log to its end. Lines of gpulse itself are explanations already, and left out. Call
 * gp_failure_prepare() first. GP_EIO: it cannot be read to the end; GP_ENOMEM. */
int gp_log_errors_read(int fd, const char *name, const struct gp_log_errors_calls *calls,
                       struct gp_err *err) GP_MUST_CHECK;

#endif
