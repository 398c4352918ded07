#include "verify/report.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "doctor/bundle/redact.h"
#include "doctor/bundle/words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const form_words[] = {
#define X(id, word) word,
    GP_PRINTED_FORMS(X)
#undef X
};

struct gp_verify_report {
    struct gp_verify_head head;
    struct gp_verify_counts forms[GP_PRINTED__FORMS];
    json_t *different, *known;
    char driver[64];
    struct gp_redactor redactor; /* large */
    bool is_short_of_memory;
};

struct gp_verify_report *gp_verify_report_new(const struct gp_verify_head *head)
{
    struct gp_verify_report *report = calloc(1, sizeof(*report));
    if (!report)
        return NULL;
    report->head = *head;
    report->different = json_array();
    report->known = json_array();
    report->redactor.known = gp_words_known;
    if (!report->different || !report->known) {
        gp_verify_report_free(report);
        return NULL;
    }
    return report;
}

void gp_verify_report_free(struct gp_verify_report *report)
{
    if (!report)
        return;
    json_decref(report->different);
    json_decref(report->known);
    free(report);
}

/* ---- identities ---- */

/* Values that identify a machine or a person, by the last part of their names; UUIDs and addresses
 * are recognized by their form. */
static bool is_identity(const char *name)
{
    static const char *const parts[] = {"Serial Number",
                                        "serial",
                                        "Chassis Serial Number",
                                        "platform.chassis_serial_number",
                                        "GPU PDI",
                                        "pdi",
                                        "Bus",
                                        "pci.bus",
                                        "Board ID",
                                        "Hostname",
                                        "hostname",
                                        "GPU Fabric GUID",
                                        "platform.gpu_fabric_guid",
                                        "Process ID",
                                        "Name"};
    const char *part = name;
    for (const char *next; (next = strstr(part, " / "));)
        part = next + 3;
    size_t n = strcspn(part, "#"); /* "Name #2" */
    n -= n > 0 && part[n] == '#' && part[n - 1] == ' ';
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++)
        if (strlen(parts[i]) == n && strncmp(part, parts[i], n) == 0)
            return true;
    return false;
}

/* "00000000:53:00.0" */
static size_t bus_id_at(const char *p)
{
    static const char form[] = "hhhh:hh:hh.h";
    size_t domain = strspn(p, "0123456789abcdefABCDEF");
    if (domain < 4 || domain > 8)
        return 0;
    for (size_t i = 4; form[i]; i++) {
        char c = p[domain - 4 + i];
        if (form[i] == 'h' ? !isxdigit((unsigned char)c) : c != form[i])
            return 0;
    }
    return domain - 4 + sizeof(form) - 1;
}

static void add_without_bus_ids(struct gp_strbuf *sb, const char *text)
{
    bool in_word = false;
    while (*text) {
        size_t n = in_word ? 0 : bus_id_at(text);
        if (n > 0)
            gp_strbuf_adds(sb, "ADDRESS");
        else
            gp_strbuf_addc(sb, *text);
        in_word = n == 0 && isalnum((unsigned char)*text);
        text += n > 0 ? n : 1;
    }
}

/* A new reference; null if there is no text. */
static json_t *publish(struct gp_verify_report *report, const char *name, const char *text)
{
    if (!text)
        return json_null();
    if (report->head.shows_identities)
        return json_string(text);
    if (is_identity(name) && *text && strcmp(text, "N/A") != 0 && strcmp(text, "[N/A]") != 0)
        return json_string("(hidden)");
    struct gp_strbuf plain = GP_STRBUF_INIT(1 << 20);
    struct gp_strbuf redacted = GP_STRBUF_INIT(1 << 20);
    add_without_bus_ids(&plain, text);
    gp_redact_add(&report->redactor, &redacted, plain.buf, plain.len);
    json_t *value = plain.error || redacted.error ? NULL : json_string(redacted.buf);
    gp_strbuf_fini(&plain);
    gp_strbuf_fini(&redacted);
    return value;
}

/* ---- what was found ---- */

static void add_value(void *ctx, const struct gp_compared *c, const struct gp_compared_value *value)
{
    struct gp_verify_report *report = ctx;
    struct gp_verify_counts *counts = &report->forms[c->form];
    counts->compared++;
    counts->equal += value->agreement == GP_AGREE_EQUAL || value->agreement == GP_AGREE_MOVING;
    counts->moving += value->agreement == GP_AGREE_MOVING;
    counts->known += value->agreement == GP_AGREE_KNOWN;
    counts->different += value->agreement == GP_AGREE_NOT;
    if (value->agreement == GP_AGREE_EQUAL || value->agreement == GP_AGREE_MOVING)
        return;
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o}", "of", form_words[c->form], "name", value->name,
                  "nvidia_smi", publish(report, value->name, value->theirs), "gpulse",
                  publish(report, value->name, value->ours));
    if (value->why && object)
        (void)json_object_set_new(object, "why", json_string(value->why));
    json_t *list = value->agreement == GP_AGREE_KNOWN ? report->known : report->different;
    if (!object || json_array_append_new(list, object) != 0)
        report->is_short_of_memory = true;
}

int gp_verify_report_add(struct gp_verify_report *report, const struct gp_compared *compared)
{
    const struct gp_printed_value *driver =
        compared->form == GP_PRINTED_REPORT && compared->samples > 0
            ? gp_printed_find(&compared->theirs[0], "Driver Version")
            : NULL;
    if (driver) /* from 610 on, a remark follows */
        (void)snprintf(report->driver, sizeof(report->driver), "%.*s",
                       (int)strspn(driver->text, "0123456789."), driver->text);
    int r = gp_compare(compared, add_value, report);
    return r < 0 || !report->is_short_of_memory ? r : GP_ENOMEM;
}

struct gp_verify_counts gp_verify_report_counts(const struct gp_verify_report *report)
{
    struct gp_verify_counts all = {0};
    for (size_t i = 0; i < GP_PRINTED__FORMS; i++) {
        all.compared += report->forms[i].compared;
        all.equal += report->forms[i].equal;
        all.moving += report->forms[i].moving;
        all.known += report->forms[i].known;
        all.different += report->forms[i].different;
    }
    return all;
}

/* Percent of the values that gpulse could know, rounded down: 100 only if all are equal; 0 if
 * nothing was compared. */
static double score_of(const struct gp_verify_counts *counts)
{
    size_t possible = counts->compared - counts->known;
    return possible > 0 ? floor(10000.0 * (double)counts->equal / (double)possible) / 100.0 : 0.0;
}

/* ---- text ---- */

static void add_side(struct gp_strbuf *sb, const char *who, const json_t *value)
{
    const char *text = json_string_value(value);
    gp_strbuf_addf(sb, "      %-10s  %s\n", who, text ? text : "(not printed)");
}

static void add_list(struct gp_strbuf *sb, const char *title, const json_t *list)
{
    if (json_array_size(list) == 0)
        return;
    gp_strbuf_addf(sb, "\n%s:\n", title);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *found = json_array_get(list, i);
        const char *why = json_string_value(json_object_get(found, "why"));
        gp_strbuf_addf(sb, "  %s: %s%s%s\n", json_string_value(json_object_get(found, "of")),
                       json_string_value(json_object_get(found, "name")), why ? ": " : "",
                       why ? why : "");
        add_side(sb, "nvidia-smi", json_object_get(found, "nvidia_smi"));
        add_side(sb, "gpulse", json_object_get(found, "gpulse"));
    }
}

void gp_verify_report_add_text(struct gp_strbuf *sb, const struct gp_verify_report *report)
{
    struct gp_verify_counts all = gp_verify_report_counts(report);
    gp_strbuf_addf(sb, "gpulse %s against %s, driver %s\n\n", report->head.version,
                   report->head.shows_identities ? report->head.nvidia_smi : "nvidia-smi",
                   report->driver[0] ? report->driver : "unknown");
    gp_strbuf_addf(sb, "%-18s %9s %9s %9s %9s %9s\n", "OUTPUT", "COMPARED", "EQUAL", "MOVING",
                   "DIFFERENT", "KNOWN");
    for (size_t i = 0; i < GP_PRINTED__FORMS; i++) {
        const struct gp_verify_counts *c = &report->forms[i];
        gp_strbuf_addf(sb, "%-18s %9zu %9zu %9zu %9zu %9zu\n", form_words[i], c->compared, c->equal,
                       c->moving, c->different, c->known);
    }
    add_list(sb, "Different", report->different);
    add_list(sb, "Known differences, which do not count (docs/smi.md)", report->known);
    gp_strbuf_addf(sb, "\n%.2f %%: %zu of %zu values are equal\n", score_of(&all), all.equal,
                   all.compared - all.known);
}

/* ---- JSON ---- */

static json_t *counts_json(const char *of, const struct gp_verify_counts *c)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "of", of, "compared",
                     (json_int_t)c->compared, "equal", (json_int_t)c->equal, "moving",
                     (json_int_t)c->moving, "different", (json_int_t)c->different, "known",
                     (json_int_t)c->known);
}

json_t *gp_verify_report_json(const struct gp_verify_report *report)
{
    struct gp_verify_counts all = gp_verify_report_counts(report);
    char time[GP_RFC3339_SIZE];
    json_t *outputs = json_array();
    gp_clock_rfc3339(gp_clock_wall_ns(), time);
    for (size_t i = 0; i < GP_PRINTED__FORMS; i++)
        (void)json_array_append_new(outputs, counts_json(form_words[i], &report->forms[i]));
    return json_pack("{s:s, s:s, s:n, s:s?, s:s, s:f, s:I, s:I, s:o, s:O, s:O}", "schema",
                     "gpulse.verify/1", "time", time, "host", "driver",
                     report->driver[0] ? report->driver : NULL, "gpulse", report->head.version,
                     "score", score_of(&all), "compared", (json_int_t)(all.compared - all.known),
                     "equal", (json_int_t)all.equal, "outputs", outputs, "different",
                     report->different, "known", report->known);
}
