#include "doctor/explain/log_errors.h"

#include "base/err.h"
#include "doctor/entries.h"
#include "doctor/explain/explain_line.h"
#include "jobs/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 65536, SAME_WORDS = 60 };

/* ---- errors that a line explains ---- */

/* Adds an error, whose explanation need not be kept; the line is explained again if it is new. */
static void note(struct gp_known_errors *errors, const char *line, uint64_t line_number,
                 const struct gp_explanation *found)
{
    struct gp_explanation kept;
    for (size_t i = 0; i < errors->count; i++) {
        struct gp_known_error *known = &errors->all[i];
        if (strcmp(known->explanation.id, found->id) == 0 &&
            strcmp(known->explanation.words, found->words) == 0) {
            known->repeats++;
            known->repeat_line = line_number;
            return;
        }
    }
    if (errors->count < GP_KNOWN_ERRORS_MAX && gp_explain_line(&errors->arena, line, &kept))
        errors->all[errors->count++] =
            (struct gp_known_error){.explanation = kept,
                                    .line = gp_arena_strdup(&errors->arena, line),
                                    .line_number = line_number};
}

void gp_known_errors_take(struct gp_known_errors *errors, const char *line, uint64_t line_number)
{
    struct gp_arena scratch = {NULL};
    struct gp_explanation found;
    const struct gp_family *family = errors->family ? NULL : gp_family_of_line(line);
    if (gp_explain_line(&scratch, line, &found))
        note(errors, line, line_number, &found);
    else if (family)
        errors->family = family->name;
    gp_arena_fini(&scratch);
}

void gp_known_errors_fini(struct gp_known_errors *errors)
{
    gp_arena_fini(&errors->arena);
    *errors = (struct gp_known_errors){.count = 0};
}

/* ---- a whole log ---- */

struct reader {
    const struct gp_log_errors_calls *calls;
    struct gp_incident last; /* not passed on yet: it may be repeated */
    bool has_last, is_stopped;
    uint64_t repeats, repeat_line, line_number;
    struct gp_known_errors known;
    char chunk[CHUNK];
};

static bool is_own(const char *line)
{
    return strncmp(line, "gpulse: ", strlen("gpulse: ")) == 0;
}

static void pass_last(struct reader *reader)
{
    const struct gp_log_errors_calls *calls = reader->calls;
    if (!reader->has_last)
        return;
    reader->has_last = false;
    gp_incident_judge(&reader->last);
    reader->is_stopped =
        reader->is_stopped ||
        !calls->failure(calls->context, &reader->last, reader->repeats, reader->repeat_line);
}

/* The line behind the time that the kernel prints. */
static const char *words_of(const struct gp_incident *incident)
{
    const char *end = incident->line[0] == '[' ? strstr(incident->line, "] ") : NULL;
    return end ? end : incident->line;
}

/* Whether two incidents are the same: on the same GPU, and with the same first words. */
static bool is_same(const struct gp_incident *a, const struct gp_incident *b)
{
    return strcmp(a->failure.id, b->failure.id) == 0 &&
           a->failure.values[GP_FAILURE_ORDINAL] == b->failure.values[GP_FAILURE_ORDINAL] &&
           strncmp(words_of(a), words_of(b), SAME_WORDS) == 0;
}

/* Lines about memory are the scan's: it reads what follows them, too. */
static bool is_of_scan(const struct gp_explanation *e)
{
    return strncmp(e->id, "failure.", strlen("failure.")) == 0;
}

/* Whether an entry says more about the line than the scan does. */
static bool is_known_better(const char *line)
{
    struct gp_arena scratch = {NULL};
    struct gp_explanation found;
    bool is_better = gp_explain_line(&scratch, line, &found) && !is_of_scan(&found);
    gp_arena_fini(&scratch);
    return is_better;
}

static void on_incident(void *context, const struct gp_incident *incident)
{
    struct reader *reader = context;
    if (!reader->calls->failure || is_own(incident->line) ||
        (incident->failure.class == GP_FAILURE_SOFT && !reader->calls->has_soft) ||
        is_known_better(incident->line))
        return;
    if (reader->has_last && is_same(&reader->last, incident)) {
        reader->repeats++;
        reader->repeat_line = incident->line_number;
        return;
    }
    pass_last(reader);
    reader->last = *incident;
    reader->has_last = true;
    reader->repeats = 0;
}

static void on_line(void *context, const char *line)
{
    struct reader *reader = context;
    struct gp_arena scratch = {NULL};
    struct gp_explanation found;
    reader->line_number++;
    if (!is_own(line) && gp_explain_line(&scratch, line, &found) && !is_of_scan(&found))
        note(&reader->known, line, reader->line_number, &found);
    gp_arena_fini(&scratch);
}

static int feed(struct gp_scan *scan, struct reader *reader, int fd, const char *name,
                struct gp_err *err)
{
    ssize_t n = 1;
    while (n != 0 && !reader->is_stopped) {
        n = read(fd, reader->chunk, sizeof(reader->chunk));
        if (n > 0)
            gp_scan_feed(scan, reader->chunk, (size_t)n);
        else if (n < 0 && errno != EINTR)
            return gp_err_system(err, errno, GP_EIO, "cannot read %s", name);
    }
    return 0;
}

int gp_log_errors_read(int fd, const char *name, const struct gp_log_errors_calls *calls,
                       struct gp_err *err)
{
    struct reader *reader = calloc(1, sizeof(*reader)); /* large */
    struct gp_scan *scan = reader ? gp_scan_new(&(struct gp_scan_calls){
                                        .found = on_incident, .line = on_line, .context = reader})
                                  : NULL;
    if (!scan) {
        free(reader);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    reader->calls = calls;
    int r = feed(scan, reader, fd, name, err);
    gp_scan_finish(scan);
    gp_scan_free(scan);
    pass_last(reader);
    if (reader->known.count > 0 && !reader->is_stopped)
        calls->known(calls->context, &reader->known);
    gp_known_errors_fini(&reader->known);
    free(reader);
    return r;
}
