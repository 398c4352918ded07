#include "doctor/explain/look.h"

#include "base/strbuf.h"
#include "doctor/exam.h"
#include "doctor/explain/explain.h"
#include "doctor/explain/log_errors.h"
#include "doctor/lines.h"
#include "doctor/report.h"

#include <ctype.h>
#include <string.h>

enum { LABEL = 7 };

static const char known_check[] = "log.known"; /* errors in logs that no other check reports */

const struct gp_exam *gp_look_for(const struct gp_known_errors *errors, gp_look_at *look,
                                  void *context)
{
    struct gp_strbuf list = GP_STRBUF_INIT(1 << 20);
    const struct gp_exam *exam = NULL;
    for (size_t i = 0; look && i < errors->count; i++) {
        const char *checks = errors->all[i].explanation.look;
        gp_strbuf_addf(&list, "%s%s", list.len > 0 && checks[0] ? "," : "", checks);
    }
    if (look && !list.error)
        exam = look(context, list.buf ? list.buf : "");
    gp_strbuf_fini(&list);
    return exam;
}

static void add_finding(struct gp_strbuf *sb, const struct gp_finding *finding, const char *label,
                        bool has_fixes)
{
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&text, "%s: %s", finding->check->id, finding->summary);
    gp_doctor_add_labeled(sb, label, LABEL, text.buf ? text.buf : "");
    if (has_fixes)
        gp_doctor_add_fixes(sb, finding, "", LABEL);
    gp_strbuf_fini(&text);
}

static bool is_problem(const struct gp_finding *f)
{
    return f->verdict >= GP_VERDICT_WARN;
}

/* What is harmless to most programs, but has a remedy: with such a line it is the problem. */
static bool is_cause(const struct gp_finding *f)
{
    return is_problem(f) || (f->verdict < GP_VERDICT_SKIP && !f->is_empty && f->fixes);
}

/* What is no problem by itself can be why the line was printed. */
static bool is_note(const struct gp_finding *f)
{
    return f->verdict == GP_VERDICT_INFO && !f->is_empty;
}

static bool is_unseen(const struct gp_finding *f)
{
    return f->verdict == GP_VERDICT_SKIP || (f->verdict < GP_VERDICT_SKIP && f->is_empty);
}

static bool is_passed(const struct gp_finding *f)
{
    return !is_problem(f) && !is_unseen(f);
}

/* Whether the list has the check. Its group stands for it unless it is about settings, which are
 * no reason for most errors, or about any error in the logs. */
static bool is_listed(const char *list, const char *id)
{
    static const char alone[] = "driver.params,driver.persistence,driver.power,log.known";
    return gp_exam_is_listed(list, id) &&
           (!gp_exam_is_listed(alone, id) || gp_lines_list_has(list, id));
}

/* What the line is about: a problem of its checks, or what only such a line makes one. */
static bool is_shown(const struct gp_finding *f, const struct gp_explanation *explanation)
{
    return is_listed(explanation->look, f->check->id) &&
           (is_problem(f) ||
            (explanation->found && is_listed(explanation->found, f->check->id) && is_cause(f)));
}

/* The length of the word where the text has it, in any case, and whatever marks either has between
 * letters: pip writes "flash-attn", Python "flash_attn". 0: it is not there. */
static size_t match_word(const char *text, const char *word, size_t n)
{
    size_t i = 0, at = 0;
    for (; i < n && text[at]; at++) {
        i += word[i] == '-' || word[i] == '_';
        if (i < n && tolower((unsigned char)text[at]) == tolower((unsigned char)word[i]))
            i++;
        else if (at == 0 || (text[at] != '-' && text[at] != '_'))
            return 0;
    }
    return i >= n && !isalnum((unsigned char)text[at]) ? at : 0;
}

/* Whether the line has what the finding's first word names: a package. */
static bool is_named(const struct gp_finding *f, const char *line)
{
    size_t n = strcspn(f->summary, " /"); /* 0: it is a path */
    for (const char *at = line; n > 0 && at && *at; at++)
        if ((at == line || !isalnum((unsigned char)at[-1])) && match_word(at, f->summary, n))
            return true;
    return false;
}

/* A check may be about many packages of Python: where a finding is about one that the line names,
 * those about others are not. */
static bool is_of_another(const struct gp_exam *exam, const struct gp_finding *finding,
                          const char *line)
{
    bool has_own = false;
    if (strncmp(finding->check->id, "python.", 7) != 0 || finding->summary[0] == '/')
        return false;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        has_own = has_own || (f->check == finding->check && is_problem(f) && is_named(f, line));
    return has_own && !is_named(finding, line);
}

/* A failure from which something follows that is shown, or was not looked at for it. */
static bool is_root(const struct gp_exam *exam, const struct gp_finding *root,
                    const struct gp_explanation *explanation)
{
    if (root->verdict != GP_VERDICT_FAIL)
        return false;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->because == root->check && is_listed(explanation->look, f->check->id) &&
            (is_shown(f, explanation) || f->verdict == GP_VERDICT_SKIP))
            return true;
    return false;
}

/* Whether what repairs its cause repairs the finding, too: both are of one group. */
static bool is_repaired(const struct gp_finding *f)
{
    const char *id = f->check->id;
    return f->because && strncmp(id, f->because->id, strcspn(id, ".") + 1) == 0;
}

/* Whether the evidence of a problem has the very line, or a part of it. */
static bool is_cited(const struct gp_finding *f, const char *line)
{
    enum { TELLING = 24 }; /* shorter texts can be anywhere */
    bool is = false;
    for (const struct gp_evidence *e = f->evidence; e && line && is_problem(f); e = e->next)
        is = is || (strlen(line) >= TELLING && strstr(e->text, line)) ||
             (strlen(e->text) >= TELLING && strstr(line, e->text));
    return is && strcmp(f->check->id, known_check) != 0;
}

static bool is_cause_of(const struct gp_exam *exam, const struct gp_finding *f,
                        const struct gp_known_error *known)
{
    const struct gp_explanation *e = &known->explanation;
    bool is_shown_here = is_shown(f, e) && !is_of_another(exam, f, known->line);
    return ((is_shown_here || is_cited(f, known->line)) && !is_repaired(f)) || is_root(exam, f, e);
}

static bool has_cause(const struct gp_exam *exam, const struct gp_known_error *known)
{
    const struct gp_finding *f = exam->findings;
    while (f && !is_cause_of(exam, f, known))
        f = f->next;
    return f;
}

static void add_causes(struct gp_strbuf *sb, const struct gp_exam *exam,
                       const struct gp_known_error *known)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (is_cause_of(exam, f, known))
            add_finding(sb, f, f->because ? "then" : "here", true);
}

static size_t count(const struct gp_exam *exam, const char *checks,
                    bool (*is_one)(const struct gp_finding *f))
{
    size_t n = 0;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        n += is_listed(checks, f->check->id) && is_one(f);
    return n;
}

static void add_findings(struct gp_strbuf *sb, const struct gp_exam *exam, const char *checks,
                         bool (*is_one)(const struct gp_finding *f), const char *label)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (is_listed(checks, f->check->id) && is_one(f))
            add_finding(sb, f, label, true);
}

/* What was not looked at, each once. */
static void add_unseen(struct gp_strbuf *sb, const struct gp_exam *exam, const char *checks)
{
    enum { SHOWN = 4 };
    size_t shown = 0;
    for (const struct gp_finding *f = exam->findings; f && shown < SHOWN; f = f->next) {
        struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
        if (!is_listed(checks, f->check->id) || !is_unseen(f))
            continue;
        gp_strbuf_addf(&text, "%s: %s", f->check->id, f->summary);
        for (const struct gp_evidence *e = f->is_empty ? f->evidence : NULL; e; e = e->next)
            gp_strbuf_addf(&text, "; %s %s", e->where, e->text);
        gp_doctor_add_labeled(sb, "", LABEL, text.buf ? text.buf : "");
        gp_strbuf_fini(&text);
        shown++;
    }
}

/* Why no check of the list looks at this machine. */
static const char *no_check_words(const struct gp_exam *exam)
{
    static const char *const words[] = {
        [GP_PRESENCE_SOME] = "no check for this applies to this machine",
        [GP_PRESENCE_NONE] = "this machine has no GPU",
        [GP_PRESENCE_UNKNOWN] = "its GPUs are unknown, as /sys/bus/pci/devices cannot be read",
    };
    return words[gp_exam_presence(exam)];
}

/* Whether the finding only says that the error is in this machine's log. */
static bool is_logged(const struct gp_finding *f, const struct gp_explanation *explanation)
{
    return strcmp(f->check->id, known_check) == 0 &&
           strncmp(f->summary, explanation->words, strlen(explanation->words)) == 0;
}

static bool has_logged(const struct gp_exam *exam, const struct gp_explanation *explanation)
{
    const struct gp_finding *f = exam->findings;
    while (f && !is_logged(f, explanation))
        f = f->next;
    return f;
}

/* What the doctor would have fixed first; NULL: nothing, or only what can wait. */
static const struct gp_finding *urgent(const struct gp_exam *exam)
{
    const struct gp_finding *first = gp_exam_first(exam);
    return first && !first->can_wait ? first : NULL;
}

static void add_no_problem(struct gp_strbuf *sb, const struct gp_exam *exam,
                           const struct gp_explanation *explanation, bool has_notes)
{
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
    const char *checks = explanation->look;
    const char *where = has_logged(exam, explanation)
                            ? "on this machine, which has logged this error"
                            : "on this machine";
    const size_t passed = count(exam, checks, is_passed);
    const size_t unseen = count(exam, checks, is_unseen);
    if (passed > 0 && unseen == 0)
        gp_strbuf_addf(&text, "%s %s: %zu check%s passed",
                       has_notes      ? "no warning"
                       : urgent(exam) ? "none of the usual reasons was found"
                                      : "no reason found",
                       where, passed, passed == 1 ? "" : "s");
    else if (unseen == 0)
        gp_strbuf_addf(&text, "not looked for %s: %s", where, no_check_words(exam));
    else
        gp_strbuf_addf(&text,
                       "unknown %s: %zu check%s passed, but %zu had nothing to "
                       "look at or could not look",
                       where, passed, passed == 1 ? "" : "s", unseen);
    if (passed + unseen > 0)
        gp_strbuf_addf(&text, " (gpulse doctor%s --only %s -v)", gp_doctor_machine_option(exam),
                       checks);
    gp_strbuf_adds(&text, has_notes ? "; what may matter:" : "");
    gp_doctor_add_labeled(sb, "here", LABEL, text.buf ? text.buf : "");
    gp_strbuf_fini(&text);
}

void gp_look_add_text(struct gp_strbuf *sb, const struct gp_exam *exam,
                      const struct gp_known_error *known)
{
    const char *checks = known->explanation.look;
    if (exam && has_cause(exam, known)) {
        add_causes(sb, exam, known);
        return;
    }
    if (!exam || !checks[0])
        return;
    add_no_problem(sb, exam, &known->explanation, count(exam, checks, is_note) > 0);
    add_findings(sb, exam, checks, is_note, "");
    add_unseen(sb, exam, checks);
}

/* ---- what else is wrong ---- */

static const struct gp_finding *find_first(const struct gp_exam *exam,
                                           const struct gp_known_errors *errors)
{
    const struct gp_finding *first = exam ? urgent(exam) : NULL;
    for (size_t i = 0; first && i < errors->count; i++)
        if (has_cause(exam, &errors->all[i]) || is_logged(first, &errors->all[i].explanation))
            return NULL;
    return first;
}

/* The command that shows how to fix the finding. */
static void add_where(struct gp_strbuf *sb, const struct gp_exam *exam,
                      const struct gp_finding *finding)
{
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&text, "if that may be the reason: gpulse doctor%s --only %s",
                   gp_doctor_machine_option(exam), finding->check->id);
    gp_doctor_add_labeled(sb, "", LABEL, text.buf ? text.buf : "");
    gp_strbuf_fini(&text);
}

void gp_look_add_end(struct gp_strbuf *sb, const struct gp_exam *exam,
                     const struct gp_known_errors *errors)
{
    const struct gp_finding *first = find_first(exam, errors);
    /* Nobody is to repair a mere warning for an error of which it may not be the reason. */
    bool has_fix = first && first->verdict == GP_VERDICT_FAIL;
    if (first)
        add_finding(sb, first, "doctor", has_fix);
    if (first && first->fixes && !has_fix)
        add_where(sb, exam, first);
    for (size_t i = 0; exam && i < errors->count && !has_fix; i++)
        has_fix = has_cause(exam, &errors->all[i]);
    if (has_fix)
        gp_doctor_add_whose(sb, exam);
}

static json_t *finding_json(const struct gp_finding *f)
{
    return json_pack("{s:s, s:s, s:o, s:b, s:s?}", "check", f->check->id, "status",
                     gp_verdict_word(f->verdict), "summary", gp_doctor_json_text(f->summary),
                     "empty", f->is_empty, "because", f->because ? f->because->id : NULL);
}

json_t *gp_look_json(const struct gp_exam *exam, const struct gp_known_error *known)
{
    const char *checks = known->explanation.look;
    if (!exam || !(checks[0] || has_cause(exam, known)))
        return json_null();
    json_t *list = json_array();
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (is_listed(checks, f->check->id) || is_cause_of(exam, f, known))
            (void)json_array_append_new(list, finding_json(f));
    return list;
}

json_t *gp_look_first_json(const struct gp_exam *exam, const struct gp_known_errors *errors)
{
    const struct gp_finding *first = find_first(exam, errors);
    return first ? finding_json(first) : json_null();
}
