#include "doctor/readers/syslog.h"

#include "doctor/exam.h"
#include "doctor/readers/journal.h"

#include <string.h>

size_t gp_syslogs(struct gp_exam *exam, const char *units, struct gp_syslog ret[GP_SYSLOGS])
{
    enum { MOST_TEXT = 1 << 20 };
    static const char *const paths[] = {"/var/log/syslog", "/var/log/messages"};
    struct gp_syslog log = {
        .where = gp_exam_text(exam, "journalctl -u %.*s", (int)strcspn(units, ","), units)};
    size_t count = 0;
    log.text = gp_journal_text(exam, units, &log.length);
    if (log.text)
        ret[count++] = log;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        log = (struct gp_syslog){.where = paths[i]};
        log.text = gp_files_tail(&exam->files, &exam->arena, paths[i], MOST_TEXT, &log.length);
        if (log.text)
            ret[count++] = log;
    }
    return count;
}
