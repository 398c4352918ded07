/* What the kernel logged about GPUs before the machine was last started: whoever asks after a crash
 * asks in the next boot. */
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/explain/explain_line.h"
#include "doctor/readers/log.h"

#include <string.h>

enum { SHOWN = 4 };

static bool has_journal(struct gp_exam *exam)
{
    return exam->machine.gpu_count > 0 && !exam->machine.container &&
           gp_log_earlier(exam)->error == 0;
}

/* What an Xid 154 says has to be done has been done, or is lost. */
static bool is_fatal(const struct gp_kmsg *k)
{
    enum { RECOVERY = 154 };
    return k->kind == GP_KMSG_GSP_SILENT || (k->kind == GP_KMSG_XID && k->code != RECOVERY &&
                                             gp_log_show_verdict(k) == GP_VERDICT_FAIL);
}

static bool is_fatal_of(const struct gp_log_line *line, const char *bus_id)
{
    return is_fatal(&line->kmsg) && strcmp(line->kmsg.bus_id, bus_id) == 0;
}

/* Whether a GPU has failed in the lines from this one on. */
static bool has_failed(const struct gp_log *log, size_t from, const char *bus_id)
{
    for (size_t i = from; i < log->count; i++)
        if (is_fatal_of(&log->lines[i], bus_id))
            return true;
    return false;
}

/* The first of the failures of a GPU that this one belongs to: the later ones follow from it. */
static const struct gp_log_line *first_of(const struct gp_log *log, size_t place)
{
    const struct gp_log_line *first = &log->lines[place];
    for (size_t i = place; i > 0; i--) {
        const struct gp_log_line *line = &log->lines[i - 1];
        if (first->kmsg.time_ns > line->last_ns + GP_LOG_SILENCE_NS)
            break;
        if (is_fatal_of(line, first->kmsg.bus_id))
            first = line;
    }
    return first;
}

static void tell(struct gp_exam *exam, const struct gp_log_line *line)
{
    struct gp_explanation e;
    if (!gp_explain_kmsg(&exam->arena, &line->kmsg, &e))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "before the machine was last started: %s%s%s: %s",
                   e.title, e.details[0] ? " of " : "", e.details, e.words);
    gp_exam_can_wait(exam);
    gp_log_show_line(exam, line);
    if (e.note[0])
        gp_exam_why(exam, "%s", e.note);
    gp_exam_advice(exam, "if it happens again: %s", e.advice);
}

/* Of each GPU the last failure, unless it has failed since. */
static void check_earlier(struct gp_exam *exam)
{
    const struct gp_log *now = gp_log_of(exam), *log = gp_log_earlier(exam);
    size_t shown = 0;
    for (size_t i = log->count; i > 0 && shown < SHOWN; i--) {
        const struct gp_kmsg *k = &log->lines[i - 1].kmsg;
        if (!is_fatal(k) || has_failed(log, i, k->bus_id) || has_failed(now, 0, k->bus_id))
            continue;
        tell(exam, first_of(log, i - 1));
        shown++;
    }
}

const struct gp_check gp_checks_earlier[] = {
    {"log.earlier",
     "the kernel logged no failure of a GPU in the day before the machine was started",
     {NULL},
     has_journal,
     check_earlier},
    {0},
};
