#include "doctor/checks/log_show.h"

#include "doctor/exam.h"

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
