#include "doctor/checks/log_show.h"

#include "doctor/exam.h"
#include "doctor/tables.h"

void gp_log_show_known(struct gp_exam *exam, const struct gp_log_known *known)
{
    if (!known)
        return;
    gp_exam_evidence(exam, known->where, "%s", known->text);
    if (known->is_shared && exam->last->verdict >= GP_VERDICT_WARN)
        gp_exam_advice(exam,
                       "first see whether journalctl has this line, too, and from whom: users can "
                       "write to %s",
                       known->path);
}

bool gp_log_show_kind(struct gp_exam *exam, const enum gp_kmsg_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct gp_log_line *line = gp_log_find(exam, kinds[i]);
        if (!line)
            continue;
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
        return true;
    }
    return false;
}

enum gp_verdict gp_log_show_verdict(const struct gp_kmsg *k)
{
    enum {
        FIRST_NVLINK = 144, /* Xids whose text says whether they are fatal */
        LAST_NVLINK = 150,
        RECOVERY = 154,
    };
    struct gp_xid_row row;
    unsigned was, now;
    if (k->code >= FIRST_NVLINK && k->code <= LAST_NVLINK)
        return k->is_fatal ? GP_VERDICT_FAIL : GP_VERDICT_INFO;
    if (k->code == RECOVERY && gp_kmsg_recovery(k->message, &was, &now))
        return now ? GP_VERDICT_FAIL : GP_VERDICT_INFO;
    if (!gp_xid_row_find(k->code, &row))
        return GP_VERDICT_WARN;
    return row.verdict;
}

void gp_log_show_line(struct gp_exam *exam, const struct gp_log_line *line)
{
    const struct gp_kmsg *k = &line->kmsg;
    gp_exam_evidence(exam, line->where, "%s%.*s%s%s%s", k->stamp_length ? "[" : "",
                     (int)k->stamp_length, k->stamp_length ? k->stamp : "",
                     k->stamp_length ? "] " : "", k->body,
                     line->repeats ? gp_exam_text(exam, " (and %llu more like it)",
                                                  (unsigned long long)line->repeats)
                                   : "");
}
