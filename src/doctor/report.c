#include "doctor/report.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "doctor/exam.h"
#include "doctor/tables.h"
#include "doctor/tables_load.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <stdint.h>
#include <string.h>

#define RESET "\033[0m"

static const char *const colors[] = {
    [GP_VERDICT_OK] = "\033[32m",   [GP_VERDICT_INFO] = "\033[36m",   [GP_VERDICT_SKIP] = "\033[2m",
    [GP_VERDICT_WARN] = "\033[33m", [GP_VERDICT_FAIL] = "\033[1;31m",
};

enum { INDENT = 6, LABEL = 10, CHECK = 23 };

void gp_doctor_add_safe(struct gp_strbuf *sb, const char *text)
{
    gp_utf8_add_safe(sb, text, strlen(text), SIZE_MAX);
}

/* ---- text ---- */

void gp_doctor_add_prose(struct gp_strbuf *sb, const char *text, size_t indent)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(1 << 20);
    size_t columns = gp_io_columns();
    gp_doctor_add_safe(&safe, text);
    bool fits = safe.len == 0 || indent + gp_utf8_width(safe.buf) <= columns;
    gp_utf8_add_wrapped(sb, safe.buf, safe.len, indent, fits ? 0 : columns);
    gp_strbuf_fini(&safe);
}

void gp_doctor_add_labeled(struct gp_strbuf *sb, const char *label, size_t width, const char *text)
{
    gp_strbuf_addf(sb, "%*s%-*s", INDENT, "", (int)width, label);
    gp_doctor_add_prose(sb, text, INDENT + width);
}

/* Each line of a comment begins with "# ", so that it can be pasted into a shell. */
static void add_comment(struct gp_strbuf *sb, const char *text, const char *label, size_t width,
                        size_t columns)
{
    struct gp_strbuf lines = GP_STRBUF_INIT(1 << 20);
    size_t used = INDENT + width + strlen("# ");
    gp_utf8_add_wrapped(&lines, text, strlen(text), 0, columns > used ? columns - used : 1);
    for (const char *p = lines.buf; p && *p; label = "") {
        size_t n = strcspn(p, "\n");
        gp_strbuf_addf(sb, "%*s%-*s# %.*s\n", INDENT, "", (int)width, label, (int)n, p);
        p += n + 1;
    }
    gp_strbuf_fini(&lines);
}

/* A command is never wrapped. Its note is next to it if there is space, otherwise above it. */
static void add_command(struct gp_strbuf *sb, const struct gp_fix *fix, const char *label,
                        size_t width)
{
    static const char before_note[] = "   # ";
    size_t columns = gp_io_columns();
    struct gp_strbuf note = GP_STRBUF_INIT(1 << 20);
    gp_doctor_add_safe(&note, fix->note);
    bool is_above = fix->note[0] && columns > 0 &&
                    INDENT + width + gp_utf8_width(fix->command) + strlen(before_note) +
                            gp_utf8_width(fix->note) >
                        columns;
    if (is_above)
        add_comment(sb, note.buf ? note.buf : "", label, width, columns);
    gp_strbuf_addf(sb, "%*s%-*s", INDENT, "", (int)width, is_above ? "" : label);
    gp_doctor_add_safe(sb, fix->command);
    if (fix->note[0] && !is_above)
        gp_strbuf_addf(sb, "%s%s", before_note, note.buf ? note.buf : "");
    gp_strbuf_addc(sb, '\n');
    gp_strbuf_fini(&note);
}

void gp_doctor_add_fixes(struct gp_strbuf *sb, const struct gp_finding *finding, const char *label,
                         size_t width)
{
    for (const struct gp_fix *fix = finding->fixes; fix; fix = fix->next, label = "") {
        if (fix->command)
            add_command(sb, fix, label, width);
        else
            gp_doctor_add_labeled(sb, label, width, fix->note);
    }
}

void gp_doctor_add_pair(struct gp_strbuf *sb, const char *before, const char *text, size_t indent)
{
    struct gp_strbuf pair = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_addf(&pair, "%s%s%s", before, before[0] && text[0] ? ": " : "", text);
    gp_doctor_add_prose(sb, pair.buf ? pair.buf : "", indent);
    gp_strbuf_fini(&pair);
}

static void add_finding(struct gp_strbuf *sb, const struct gp_finding *finding, bool in_color)
{
    gp_strbuf_addf(sb, "%s%-5s%s ", in_color ? colors[finding->verdict] : "",
                   gp_verdict_word(finding->verdict), in_color ? RESET : "");
    gp_doctor_add_pair(sb, finding->check->id, finding->summary, INDENT);
    const char *label = "evidence";
    for (const struct gp_evidence *e = finding->evidence; e; e = e->next, label = "") {
        gp_strbuf_addf(sb, "%*s%-*s", INDENT, "", LABEL, label);
        gp_doctor_add_pair(sb, e->where, e->text, INDENT + LABEL);
    }
    if (finding->why[0])
        gp_doctor_add_labeled(sb, "why", LABEL, finding->why);
    gp_doctor_add_fixes(sb, finding, "fix", LABEL);
    if (finding->link[0])
        gp_doctor_add_labeled(sb, "see", LABEL, finding->link);
}

/* The checks that were skipped because another one failed, one line for each cause. */
static void add_consequences(struct gp_strbuf *sb, const struct gp_exam *exam)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next) {
        bool is_first = f->because;
        for (const struct gp_finding *g = exam->findings; g != f; g = g->next)
            is_first = is_first && g->because != f->because;
        if (!is_first)
            continue;
        struct gp_strbuf skipped = GP_STRBUF_INIT(1 << 16);
        gp_strbuf_addf(&skipped, "because %s failed:", f->because->id);
        for (const struct gp_finding *g = f; g; g = g->next)
            if (g->because == f->because)
                gp_strbuf_addf(&skipped, " %s", g->check->id);
        gp_strbuf_adds(sb, "skip  ");
        gp_doctor_add_prose(sb, skipped.buf ? skipped.buf : "", INDENT);
        gp_strbuf_fini(&skipped);
    }
}

void gp_doctor_add_tables(struct gp_strbuf *sb)
{
    const struct gp_tables_state *tables = gp_tables_state();
    long days = gp_tables_age_days();
    struct gp_strbuf line = GP_STRBUF_INIT(16 << 10);
    if (!tables->folder[0] && days <= GP_TABLES_OLD_DAYS)
        return;
    gp_strbuf_addf(&line, "tables of %s, %s%s", tables->date,
                   tables->folder[0] ? "in " : "built in", tables->folder);
    if (days > GP_TABLES_OLD_DAYS)
        gp_strbuf_addf(&line, ": %ld days old; update %s for newer facts", days,
                       tables->folder[0] ? "them" : "gpulse");
    gp_doctor_add_prose(sb, line.buf ? line.buf : "", 0);
    gp_strbuf_fini(&line);
}

const char *gp_doctor_machine_option(const struct gp_exam *exam)
{
    return exam->files.is_here ? "" : exam->is_simulated ? " --sim NAME" : " --root DIR";
}

/* Whether there is a note with a remedy: it is no problem for most. */
static bool has_note(const struct gp_exam *exam)
{
    const struct gp_finding *f = exam->findings;
    while (f && !(f->verdict == GP_VERDICT_INFO && !f->is_empty && f->fixes))
        f = f->next;
    return f;
}

/* No problem was found. */
static void add_what_next(struct gp_strbuf *sb, const struct gp_exam *exam)
{
    static const char *const words[] = {
        [GP_PRESENCE_NONE] = "this machine has none",
        [GP_PRESENCE_UNKNOWN] = "the list of PCI devices cannot be read",
    };
    enum gp_presence presence = gp_exam_presence(exam);
    if (presence == GP_PRESENCE_SOME)
        gp_strbuf_addf(sb,
                       "If a program fails all the same%sgpulse%s explain \"its error message\"\n",
                       has_note(exam) ? ", see what info says above, or ask:\n" : ": ",
                       gp_doctor_machine_option(exam));
    else
        gp_strbuf_addf(sb, "no GPU was examined: %s\n", words[presence]);
}

void gp_doctor_add_whose(struct gp_strbuf *sb, const struct gp_exam *exam)
{
    if (exam->files.is_here)
        return;
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&text, "These commands are for the ");
    if (exam->is_simulated)
        gp_strbuf_adds(&text, "simulated machine");
    else
        gp_strbuf_addf(&text, "machine whose files are in %s", exam->files.root);
    gp_strbuf_adds(&text, ", not for this one.");
    gp_strbuf_addc(sb, '\n');
    gp_doctor_add_prose(sb, text.buf ? text.buf : "", 0);
    gp_strbuf_fini(&text);
}

/* Counts checks by their verdict, but every warning and failure: a check can have several. */
static void add_end(struct gp_strbuf *sb, const struct gp_exam *exam, bool verbose)
{
    size_t counts[GP_VERDICT_FAIL + 1] = {0}, all = 0;
    for (size_t i = 0; gp_check_at(exam->checks, i); i++)
        if (exam->outcomes[i].is_run) {
            counts[exam->outcomes[i].verdict]++;
            all++;
        }
    counts[GP_VERDICT_WARN] = counts[GP_VERDICT_FAIL] = 0;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        counts[f->verdict] += f->verdict >= GP_VERDICT_WARN;
    size_t passed = counts[GP_VERDICT_OK] + counts[GP_VERDICT_INFO];
    if (all == 0) {
        gp_strbuf_adds(sb, "none of these checks applies to this machine\n");
        return;
    }
    gp_strbuf_addf(sb, "%zu passed", passed);
    if (counts[GP_VERDICT_SKIP])
        gp_strbuf_addf(sb, ", %zu skipped", counts[GP_VERDICT_SKIP]);
    gp_strbuf_addf(sb, ", %zu warning%s, %zu failed%s\n", counts[GP_VERDICT_WARN],
                   counts[GP_VERDICT_WARN] == 1 ? "" : "s", counts[GP_VERDICT_FAIL],
                   verbose || passed == 0 ? "" : " (-v lists all)");
    gp_doctor_add_tables(sb);
    const struct gp_finding *first = gp_exam_first(exam);
    if (!first) {
        add_what_next(sb, exam);
        return;
    }
    struct gp_strbuf advice = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_addf(&advice, "Fix this first: %s (%s)", first->summary, first->check->id);
    gp_strbuf_addc(sb, '\n');
    gp_doctor_add_prose(sb, advice.buf ? advice.buf : "", 0);
    gp_strbuf_fini(&advice);
    if (counts[GP_VERDICT_WARN] + counts[GP_VERDICT_FAIL] >
        1) /* otherwise it is printed right above */
        gp_doctor_add_fixes(sb, first, "", LABEL);
    gp_doctor_add_whose(sb, exam);
}

static void add_machine(struct gp_strbuf *sb, const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&line, m->distro_name[0] ? m->distro_name : "an unknown distribution");
    if (m->kernel[0]) {
        gp_strbuf_adds(&line, ", kernel ");
        gp_strbuf_adds(&line, m->kernel);
    }
    gp_strbuf_addf(&line, ", %s", m->arch);
    if (m->container)
        gp_strbuf_addf(&line, ", in a container (%s)", m->container);
    if (m->driver[0]) {
        gp_strbuf_adds(&line, ", NVIDIA driver ");
        gp_strbuf_adds(&line, m->driver);
    }
    if (exam->is_simulated)
        gp_strbuf_adds(&line, "; simulated driver");
    gp_doctor_add_prose(sb, line.buf ? line.buf : "", 0);
    gp_strbuf_fini(&line);
}

void gp_doctor_add_text(struct gp_strbuf *sb, const struct gp_exam *exam, bool verbose,
                        bool in_color)
{
    add_machine(sb, exam);
    gp_strbuf_addc(sb, '\n');
    /* failures first, then the others as they were found */
    for (int is_failure = 1; is_failure >= 0; is_failure--)
        for (const struct gp_finding *f = exam->findings; f; f = f->next)
            if ((f->verdict == GP_VERDICT_FAIL) == is_failure && !f->because &&
                (verbose || f->verdict != GP_VERDICT_OK))
                add_finding(sb, f, in_color);
    add_consequences(sb, exam);
    add_end(sb, exam, verbose);
}

void gp_doctor_add_checks(struct gp_strbuf *sb, const struct gp_check_list *list)
{
    const struct gp_check *check;
    for (size_t i = 0; (check = gp_check_at(list, i)); i++) {
        gp_strbuf_addf(sb, "%-*s", CHECK, check->id);
        gp_doctor_add_prose(sb, check->title, CHECK);
    }
}

/* ---- JSON ---- */

json_t *gp_doctor_json_text(const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_doctor_add_safe(&sb, text);
    json_t *value = json_stringn(sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    return value;
}

json_t *gp_doctor_json_text_or_null(const char *text)
{
    return text && text[0] ? gp_doctor_json_text(text) : json_null();
}

json_t *gp_doctor_json_tables(void)
{
    const struct gp_tables_state *tables = gp_tables_state();
    return json_pack("{s:s, s:I, s:o}", "date", tables->date, "age_days",
                     (json_int_t)gp_tables_age_days(), "folder",
                     gp_doctor_json_text_or_null(tables->folder));
}

json_t *gp_doctor_json_evidence(const struct gp_finding *finding, const char *where)
{
    json_t *evidence = json_array();
    for (const struct gp_evidence *e = finding->evidence; e; e = e->next)
        (void)json_array_append_new(evidence,
                                    json_pack("{s:o, s:o}", where, gp_doctor_json_text(e->where),
                                              "text", gp_doctor_json_text(e->text)));
    return evidence;
}

json_t *gp_doctor_json_fixes(const struct gp_finding *finding)
{
    json_t *fixes = json_array();
    for (const struct gp_fix *fix = finding->fixes; fix; fix = fix->next)
        (void)json_array_append_new(fixes, json_pack("{s:o, s:o}", "command",
                                                     gp_doctor_json_text_or_null(fix->command),
                                                     "note", gp_doctor_json_text(fix->note)));
    return fixes;
}

static json_t *finding_of(const struct gp_exam *exam, const struct gp_finding *finding)
{
    double ms = 0;
    for (size_t i = 0; gp_check_at(exam->checks, i); i++)
        if (gp_check_at(exam->checks, i) == finding->check)
            ms = exam->outcomes[i].ms;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "check", finding->check->id,
                     "status", gp_verdict_word(finding->verdict), "summary",
                     gp_doctor_json_text(finding->summary), "evidence",
                     gp_doctor_json_evidence(finding, "where"), "why",
                     gp_doctor_json_text(finding->why), "fixes", gp_doctor_json_fixes(finding),
                     "link", gp_doctor_json_text(finding->link), "because",
                     finding->because ? json_string(finding->because->id) : json_null(), "ms", ms);
}

static json_t *gpus_of(const struct gp_machine *m)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        (void)json_array_append_new(
            gpus, json_pack("{s:o, s:i, s:i, s:o, s:o}", "bus_id", gp_doctor_json_text(gpu->bus_id),
                            "vendor", (int)gpu->vendor, "device", (int)gpu->device, "name",
                            gpu->chip ? gp_doctor_json_text(gpu->chip->name) : json_null(),
                            "driver", gp_doctor_json_text_or_null(gpu->driver)));
    }
    return gpus;
}

void gp_doctor_add_json(struct gp_strbuf *sb, const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_finding *first = gp_exam_first(exam);
    char host[256], now[GP_RFC3339_SIZE];
    gp_clock_rfc3339(gp_clock_wall_ns(), now);
    if (!gp_files_line(&exam->files, "/proc/sys/kernel/hostname", host, sizeof(host)))
        host[0] = '\0';
    json_t *document = json_pack("{s:s, s:s, s:o, s:o}", "schema", "gpulse.doctor/1", "time", now,
                                 "host", gp_doctor_json_text_or_null(host), "driver",
                                 gp_doctor_json_text_or_null(m->driver));
    json_t *findings = json_array();
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        (void)json_array_append_new(findings, finding_of(exam, f));
    json_t *machine = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o}", "distribution", gp_doctor_json_text(m->distro_name),
        "kernel", gp_doctor_json_text(m->kernel), "arch", m->arch, "container",
        m->container ? json_string(m->container) : json_null(), "driver",
        m->driver[0] ? gp_doctor_json_text(m->driver) : json_null(), "gpus", gpus_of(m));
    (void)json_object_set_new(document, "machine", machine);
    (void)json_object_set_new(document, "tables", gp_doctor_json_tables());
    (void)json_object_set_new(document, "first",
                              first ? json_string(first->check->id) : json_null());
    (void)json_object_set_new(document, "findings", findings);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
