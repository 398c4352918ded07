/* gpulse explain: the errors in a log. */
#ifndef GP_CMD_EXPLAIN_LOG_H
#define GP_CMD_EXPLAIN_LOG_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/explanation.h"
#include "jobs/incident.h"

struct gp_doctor_options;
struct gp_err;

enum { GP_EXPLAIN_KNOWN_MAX = 512 };

/* An error that gpulse doctor knows, each once in a log. */
struct gp_explain_known {
    struct gp_explanation explanation;
    const char *line;
    uint64_t line_number, repeats, repeat_line;
};

/* Explaining some logs and records. */
struct gp_explain_run {
    const struct gp_doctor_options *options;
    const char *name;     /* of the log */
    struct gp_strbuf sb;  /* text output */
    json_t *list, *other; /* JSON output: failures, and other errors */
    size_t found;
    struct gp_incident last;       /* not printed yet: it may be repeated */
    bool is_told;                  /* how a job ended is printed already */
    bool has_last, has_incidents;  /* those in the log are known already */
    uint64_t repeats, repeat_line; /* how often, and the line of the last repetition */
    /* of one log */
    uint64_t line_number;
    struct gp_arena arena;
    struct gp_explain_known known[GP_EXPLAIN_KNOWN_MAX];
    size_t known_count;
};

/* Explains what an open file contains, e->name is its name. GP_EIO. */
int gp_explain_read_log(struct gp_explain_run *e, int fd, struct gp_err *err) GP_MUST_CHECK;
/* "-": standard input. */
int gp_explain_read_file(struct gp_explain_run *e, const char *path,
                         struct gp_err *err) GP_MUST_CHECK;

/* Adds the object of a failure, which it takes, to a list, with the name of the log. */
void gp_explain_add_place(struct gp_explain_run *e, json_t *object, json_t *list, uint64_t repeats);

#endif
