#include "doctor/checks/health_values.h"

#include "doctor/checks/health.h"

#include <string.h>

enum { REFUSED_MAX = 64 };

static bool is_of(const struct gp_health_rule *rule, const struct gp_exam *exam)
{
    return strcmp(rule->check, exam->check->id) == 0;
}

static enum gp_status status_of(const struct gp_exam *exam, const struct gp_device *gpu,
                                enum gp_metric m)
{
    return gp_snapshot_value(exam->snapshot, gpu, NULL, m)->status;
}

/* Whether the driver knows the metric at all, even if it did not report it. */
static bool is_supported(enum gp_status status)
{
    return status != GP_STATUS_NONE && status != GP_STATUS_UNSUPPORTED;
}

static bool is_refused(enum gp_status status)
{
    return is_supported(status) && status != GP_STATUS_OK && status != GP_STATUS_STALE;
}

bool gp_health_has_rules(struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    gp_gpuset_answered(&gpus, exam);
    for (size_t r = 0; r < gp_health_rule_count; r++)
        for (size_t i = 0; is_of(&gp_health_rules[r], exam) && i < gpus.count; i++)
            if (is_supported(status_of(exam, gpus.gpus[i], gp_health_rules[r].metric)))
                return true;
    return !exam->snapshot && gp_health_is_expected(exam);
}

static void report(struct gp_exam *exam, const struct gp_health_rule *rule,
                   const struct gp_gpuset *set)
{
    const enum gp_metric metrics[] = {rule->metric, rule->other};
    gp_exam_report(exam, gp_health_verdict(rule->grade), "%s: %s", gp_gpuset_names(exam, set),
                   rule->summary);
    gp_gpuset_evidence(exam, set, metrics, rule->other ? 2 : 1);
    if (rule->why)
        gp_exam_why(exam, "%s", rule->why);
    gp_health_prescribe(exam, rule->cure, set);
}

/* The metrics of this check that the driver refused to report for a GPU; their number. */
static size_t refused_of(const struct gp_exam *exam, const struct gp_device *gpu,
                         enum gp_metric metrics[REFUSED_MAX])
{
    size_t count = 0;
    for (size_t r = 0; r < gp_health_rule_count; r++) {
        bool is_again = count > 0 && metrics[count - 1] == gp_health_rules[r].metric;
        if (count < REFUSED_MAX && is_of(&gp_health_rules[r], exam) && !is_again &&
            is_refused(status_of(exam, gpu, gp_health_rules[r].metric)))
            metrics[count++] = gp_health_rules[r].metric;
    }
    return count;
}

/* A value that the driver did not report is not passed. Returns whether there is one. */
static bool report_refused(struct gp_exam *exam, const struct gp_gpuset *gpus)
{
    enum gp_metric metrics[REFUSED_MAX];
    struct gp_gpuset set = {.count = 0};
    for (size_t i = 0; i < gpus->count; i++)
        if (refused_of(exam, gpus->gpus[i], metrics) > 0)
            gp_gpuset_add(&set, gpus->gpus[i]);
    if (set.count == 0)
        return false;
    size_t count = refused_of(exam, set.gpus[0], metrics);
    gp_exam_report(exam, GP_VERDICT_SKIP,
                   "%s: the driver does not report the values this check needs",
                   gp_gpuset_names(exam, &set));
    gp_gpuset_evidence(exam, &set, metrics, count);
    return true;
}

void gp_health_run_rules(struct gp_exam *exam)
{
    const struct gp_health_rule *held[GP_GPUSET_MAX] = {NULL};
    struct gp_gpuset gpus;
    bool found = false;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        held[i] = gp_health_rule_of(gpus.gpus[i], exam->check->id);
    for (size_t r = 0; r < gp_health_rule_count; r++) {
        struct gp_gpuset set = {.count = 0};
        for (size_t i = 0; i < gpus.count; i++)
            if (held[i] == &gp_health_rules[r])
                gp_gpuset_add(&set, gpus.gpus[i]);
        if (set.count > 0)
            report(exam, &gp_health_rules[r], &set);
        found = found || set.count > 0;
    }
    found = report_refused(exam, &gpus) || found;
    size_t silent = 0;
    for (size_t i = 0; exam->snapshot && i < exam->snapshot->device_count; i++)
        silent += exam->snapshot->devices[i].status != GP_STATUS_OK;
    if (!found && silent > 0)
        gp_exam_report(exam, GP_VERDICT_OK, "%s (%s; the others do not respond)",
                       exam->check->title, gp_gpuset_names(exam, &gpus));
}
