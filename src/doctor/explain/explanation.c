#include "doctor/explain/explanation.h"

#include "doctor/entries.h"
#include "doctor/explain/log_errors.h"
#include "doctor/explain/look.h"
#include "doctor/report.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL = 7, SHOWN = 240 };

static void add_part(struct gp_strbuf *sb, const char *label, const char *text)
{
    if (text[0])
        gp_doctor_add_labeled(sb, label, LABEL, text);
}

/* NVIDIA's words for actions, in its Xid catalog. */
static const char *meaning_of(const char *action)
{
    static const char *const words[][2] = {
        {"CONTACT_SUPPORT", "contact the vendor's support"},
        {"RESTART_APP", "restart the program"},
        {"IGNORE", "nothing needs to be done"},
        {"RESET_GPU", "reset the GPU"},
        {"RESTART_BM", "reboot the machine"},
        {"RESTART_VM", "restart the virtual machine"},
        {"UPDATE_SWFW", "update the software or firmware"},
        {"CHECK_MECHANICALS", "check how the card is seated, and its power cables"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcmp(words[i][0], action) == 0)
            return words[i][1];
    return "";
}

void gp_doctor_add_line(struct gp_strbuf *sb, const char *line)
{
    gp_utf8_add_safe(sb, line, strlen(line), SHOWN);
    gp_strbuf_addc(sb, '\n');
}

void gp_doctor_add_explanation(struct gp_strbuf *sb, const struct gp_explanation *e,
                               bool has_source)
{
    gp_doctor_add_pair(sb, e->title, e->words, 0);
    add_part(sb, "maybe", e->maybe);
    add_part(sb, "name", e->name);
    add_part(sb, "detail", e->details);
    /* no number proves it: drivers and GPUs cause the same ones */
    add_part(sb, "fault", strcmp(e->fault, "application") ? e->fault : "mostly the application");
    add_part(sb, "note", e->note);
    add_part(sb, "check", e->check);
    add_part(sb, "advice", e->advice);
    if (e->action[0]) {
        struct gp_strbuf recommends = GP_STRBUF_INIT(1 << 16);
        const char *meaning = meaning_of(e->action);
        gp_strbuf_addf(&recommends, "recommends %s%s%s", e->action, meaning[0] ? ": " : "",
                       meaning);
        add_part(sb, "NVIDIA", recommends.buf);
        gp_strbuf_fini(&recommends);
    }
    if (has_source)
        add_part(sb, "source", e->source);
}

json_t *gp_doctor_explanation_json(const struct gp_explanation *e, const char *line)
{
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "line",
        gp_doctor_json_text_or_null(line), "id", e->id, "family",
        gp_doctor_json_text_or_null(e->family), "title", gp_doctor_json_text(e->title), "words",
        gp_doctor_json_text(e->words), "maybe", gp_doctor_json_text_or_null(e->maybe), "name",
        gp_doctor_json_text_or_null(e->name), "details", gp_doctor_json_text_or_null(e->details),
        "note", gp_doctor_json_text_or_null(e->note), "fault",
        gp_doctor_json_text_or_null(e->fault), "check", gp_doctor_json_text_or_null(e->check),
        "advice", gp_doctor_json_text_or_null(e->advice), "action",
        gp_doctor_json_text_or_null(e->action), "source", gp_doctor_json_text_or_null(e->source));
}

/* ---- several ---- */

/* What to check first after an error that is not known. */
static void add_unknown(struct gp_strbuf *sb, const struct gp_known_errors *errors)
{
    const struct gp_family *family = gp_family_find(errors->family);
    gp_strbuf_adds(sb, errors->lines > 1 ? "no known error in these lines" : "unknown error");
    if (family) {
        gp_strbuf_addf(sb, "; it may be about %s\n", family->about);
        add_part(sb, "first", family->check);
    } else {
        gp_strbuf_adds(sb, "; gpulse knows messages of programs, libraries, the driver and the "
                           "kernel, and codes:\nxid 79, cuda 802, nvml 18, exit 137\n");
    }
}

void gp_known_errors_add_text(struct gp_strbuf *sb, const struct gp_known_errors *errors,
                              const struct gp_exam *exam, bool has_sources)
{
    for (size_t i = 0; i < errors->count; i++) {
        const struct gp_known_error *known = &errors->all[i];
        if (i > 0)
            gp_strbuf_addc(sb, '\n');
        if (errors->lines > 1 && known->line)
            gp_doctor_add_line(sb, known->line);
        if (known->repeats > 0)
            gp_strbuf_addf(sb, "      and %" PRIu64 " more like it\n", known->repeats);
        gp_doctor_add_explanation(sb, &known->explanation, has_sources);
        gp_look_add_text(sb, exam, known);
    }
    if (errors->count == 0)
        add_unknown(sb, errors);
    gp_look_add_end(sb, exam, errors);
}

/* What to check first after an unknown error: family and check, or null. */
static json_t *first_json(const struct gp_known_errors *errors)
{
    const struct gp_family *family = errors->count == 0 ? gp_family_find(errors->family) : NULL;
    return family ? json_pack("{s:s, s:s}", "family", family->name, "check", family->check)
                  : json_null();
}

void gp_known_errors_add_json(struct gp_strbuf *sb, const struct gp_known_errors *errors,
                              const struct gp_exam *exam)
{
    json_t *list = json_array();
    for (size_t i = 0; i < errors->count; i++) {
        const struct gp_known_error *known = &errors->all[i];
        json_t *one = gp_doctor_explanation_json(&known->explanation, known->line);
        (void)json_object_set_new(one, "here", gp_look_json(exam, known));
        (void)json_object_set_new(one, "count", json_integer((json_int_t)known->repeats + 1));
        (void)json_array_append_new(list, one);
    }
    gp_json_add(sb,
                json_pack("{s:s, s:o, s:o, s:o}", "schema", "gpulse.doctor.explain/1", "known",
                          list, "first", first_json(errors), "doctor",
                          gp_look_first_json(exam, errors)),
                2);
    gp_strbuf_addc(sb, '\n');
}

/* ---- all that is known ---- */

void gp_explain_add_stats_text(struct gp_strbuf *sb)
{
    for (size_t i = 0; i < gp_family_count; i++)
        gp_strbuf_addf(sb, "%-18s %5u  %s\n", gp_families[i].name, gp_families[i].count,
                       gp_families[i].about);
    gp_strbuf_addf(sb, "%-18s %5zu\n", "all", gp_entry_count);
}

void gp_explain_add_stats_json(struct gp_strbuf *sb)
{
    json_t *list = json_array();
    for (size_t i = 0; i < gp_family_count; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:i}", "family", gp_families[i].name, "about",
                            gp_families[i].about, "entries", (int)gp_families[i].count));
    gp_json_add(sb,
                json_pack("{s:s, s:o, s:i}", "schema", "gpulse.doctor.explain.stats/1", "families",
                          list, "entries", (int)gp_entry_count),
                2);
    gp_strbuf_addc(sb, '\n');
}
