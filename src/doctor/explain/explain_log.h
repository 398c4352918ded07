/* Why a program failed, from its log: the errors in it as text or JSON. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_LOG_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_LOG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "doctor/explain/look.h"

#include <jansson.h>

struct gp_explain_options {
    bool as_json;
    bool has_soft;    /* also messages that only look like a failure */
    gp_look_at *look; /* looks at this machine; NULL: it is not looked at */
    void *look_context;
    /* For programs that must not wait: "-" and "last" are no files, and nothing is opened that is
     * neither a file nor a directory, such as a FIFO that others have put there. */
    bool never_waits;
    /* Takes the next piece of the output. After an error, which is passed on, it is not called
     * again. */
    int (*write)(void *context, const struct gp_strbuf *text, struct gp_err *err);
    void *context;
};

/* Explaining some logs and records. Zero-initialize. */
struct gp_explain_run {
    const struct gp_explain_options *options;
    const char *name;     /* of the log */
    struct gp_strbuf sb;  /* text output */
    json_t *list, *other; /* JSON output: failures, other errors, */
    json_t *jobs;         /* and the records that are explained, */
    json_t *document;     /* in which they are */
    size_t found;
    bool is_told;       /* how a job ended is printed already */
    bool has_incidents; /* the failures in the log are known already */
    int r;              /* of writing the output */
    struct gp_err err;
    struct gp_arena arena;
};

/* Explains what an open file contains, e->name is its name. GP_EIO. */
int gp_explain_read_log(struct gp_explain_run *e, int fd, struct gp_err *err) GP_MUST_CHECK;
/* "-": standard input, unless options.never_waits. */
int gp_explain_read_file(struct gp_explain_run *e, const char *path,
                         struct gp_err *err) GP_MUST_CHECK;

/* Adds the object of a failure, which it takes, to a list, with the name of the log. */
void gp_explain_add_place(struct gp_explain_run *e, json_t *object, json_t *list, uint64_t repeats);

#endif
