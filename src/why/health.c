#include "why/health.h"

#include "base/strbuf.h"
#include "out/field.h"
#include "why/health_rules.h"

#include <stdio.h>
#include <string.h>

enum { SUMMARY_MAX = 512 };

/* Appends a part, cut at the end of the text. */
static void add(char *text, size_t size, const char *separator, const char *part)
{
    size_t n = strlen(text);
    (void)snprintf(text + n, size - n, "%s%s", n > 0 ? separator : "", part);
}

/* The steps that doctor shows for it. */
static void add_cure(struct gp_why_case *c, const struct gp_device *device, enum gp_cure cure)
{
    char gpu[16];
    (void)snprintf(gpu, sizeof(gpu), "%u", device->index);
    const struct gp_health_cure *step;
    for (size_t at = 0; (step = gp_health_cure_next(cure, &at));) {
        struct gp_strbuf sb = GP_STRBUF_INIT(SUMMARY_MAX);
        if (step->command)
            gp_strbuf_addf(&sb, step->command, gpu);
        if (step->note[0])
            gp_strbuf_addf(&sb, step->command ? " (%s)" : "%s", step->note);
        add(c->cure, sizeof(c->cure), "; ", sb.buf ? sb.buf : "");
        gp_strbuf_fini(&sb);
    }
}

/* "the memory had an uncorrectable error (ecc.errors… is 3)" */
static void add_fault(struct gp_why_case *c, const struct gp_snapshot *s,
                      const struct gp_device *device, const struct gp_health_rule *rule)
{
    const struct gp_field field = {.metric = rule->metric};
    struct gp_strbuf sb = GP_STRBUF_INIT(SUMMARY_MAX);
    gp_strbuf_addf(&sb, "%s (%s is ", rule->summary, GP_METRIC_NAME(rule->metric));
    gp_field_format(&sb, &field, gp_snapshot_value(s, device, NULL, rule->metric), GP_STYLE_HUMAN);
    gp_strbuf_addc(&sb, ')');
    add(c->fault, sizeof(c->fault), "; ", sb.buf ? sb.buf : "");
    gp_strbuf_fini(&sb);
}

static void look_at_silence(struct gp_why_case *c, const struct gp_device *device)
{
    for (size_t i = 0; i < gp_health_silence_count; i++) {
        const struct gp_health_silence *silence = &gp_health_silences[i];
        if (silence->status != device->status || silence->grade != GP_HEALTH_FAIL)
            continue;
        c->is_failed = true;
        add(c->fault, sizeof(c->fault), "", silence->summary);
        add_cure(c, device, gp_health_silence_cure(silence, device));
    }
}

/* The faults of a grade. What to do is said for the first of all. */
static void look_at_values(struct gp_why_case *c, const struct gp_snapshot *s,
                           const struct gp_device *device, enum gp_health_grade grade)
{
    for (size_t i = 0; i < gp_health_rule_count; i++) {
        const struct gp_health_rule *rule = &gp_health_rules[i];
        if (!rule->is_fault || rule->grade != grade ||
            gp_health_rule_of(device, rule->check) != rule)
            continue;
        if (!c->fault[0])
            add_cure(c, device, rule->cure);
        add_fault(c, s, device, rule);
    }
}

void gp_why_health_look(struct gp_why_case *c, const struct gp_snapshot *s,
                        const struct gp_device *device)
{
    const struct gp_device *gpu = device;
    for (size_t i = 0; device->is_mig && i < s->device_count; i++)
        if (!s->devices[i].is_mig && s->devices[i].index == device->index)
            gpu = &s->devices[i];
    c->is_failed = false;
    c->fault[0] = c->cure[0] = '\0';
    if (gpu->status != GP_STATUS_OK) {
        look_at_silence(c, gpu);
        return;
    }
    look_at_values(c, s, gpu, GP_HEALTH_FAIL);
    c->is_failed = c->fault[0] != '\0';
    look_at_values(c, s, gpu, GP_HEALTH_WARN);
}
