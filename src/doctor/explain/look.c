#include "doctor/explain/look.h"

#include "base/strbuf.h"
#include "doctor/exam.h"
#include "doctor/explain/log_errors.h"
#include "doctor/report.h"

#include <string.h>

enum { LABEL = 7 };

const struct gp_exam *gp_look_for(const struct gp_known_errors *errors, gp_look *look)
{
    struct gp_strbuf list = GP_STRBUF_INIT(1 << 20);
    const struct gp_exam *exam = NULL;
    for (size_t i = 0; look && i < errors->count; i++) {
        const char *checks = errors->all[i].explanation.look;
        gp_strbuf_addf(&list, "%s%s", list.len > 0 && checks[0] ? "," : "", checks);
    }
    if (list.len > 0 && !list.error)
        exam = look(list.buf);
    gp_strbuf_fini(&list);
    return exam;
}

static void add_finding(struct gp_strbuf *sb, const struct gp_finding *finding)
{
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&text, "%s: %s", finding->check->id, finding->summary);
    gp_doctor_add_labeled(sb, "here", LABEL, text.buf);
    gp_doctor_add_fixes(sb, finding, "", LABEL);
    gp_strbuf_fini(&text);
}

void gp_look_add_text(struct gp_strbuf *sb, const struct gp_exam *exam, const char *checks)
{
    size_t problems = 0, passed = 0, skipped = 0;
    char text[200];
    if (!exam)
        return;
    for (const struct gp_finding *f = exam->findings; f; f = f->next) {
        if (!gp_exam_is_listed(checks, f->check->id))
            continue;
        problems += f->verdict >= GP_VERDICT_WARN;
        skipped += f->verdict == GP_VERDICT_SKIP;
        passed += f->verdict < GP_VERDICT_SKIP;
        if (f->verdict >= GP_VERDICT_WARN)
            add_finding(sb, f);
    }
    if (problems > 0 || passed + skipped == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "no such problem on this machine: %zu check%s passed, %zu could not be made "
                   "(gpulse doctor --only %.80s -v)",
                   passed, passed == 1 ? "" : "s", skipped, checks);
    gp_doctor_add_labeled(sb, "here", LABEL, text);
}

json_t *gp_look_json(const struct gp_exam *exam, const char *checks)
{
    if (!exam || !checks[0])
        return json_null();
    json_t *list = json_array();
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (gp_exam_is_listed(checks, f->check->id))
            (void)json_array_append_new(list,
                                        json_pack("{s:s, s:s, s:o}", "check", f->check->id,
                                                  "status", gp_verdict_word(f->verdict), "summary",
                                                  gp_doctor_json_text(f->summary)));
    return list;
}
