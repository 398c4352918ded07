#include "doctor/checks/health_rules.h"

#include "doctor/checks/health.h"

#include <string.h>

struct rule {
    const char *check;
    bool (*holds)(const struct gp_device *gpu, const struct rule *rule);
    enum gp_metric metric, other; /* TIMESTAMP, which no GPU has: no other metric */
    const char *word;
    double number;
    enum gp_verdict verdict;
    enum gp_cure cure;
    const char *summary; /* after "GPU 3: " */
    const char *why;
};

/* ---- tests ---- */

static bool is_word(const struct gp_device *gpu, const struct rule *rule)
{
    return strcmp(gp_device_text(gpu, rule->metric, ""), rule->word) == 0;
}

static bool is_other_word(const struct gp_device *gpu, const struct rule *rule)
{
    const char *text = gp_device_text(gpu, rule->metric, "");
    return text[0] && strcmp(text, rule->word) != 0;
}

static bool differs(const struct gp_device *gpu, const struct rule *rule)
{
    const char *now = gp_device_text(gpu, rule->metric, "");
    const char *then = gp_device_text(gpu, rule->other, "");
    return now[0] && then[0] && strcmp(now, then) != 0;
}

/* It is off, although its default is on. */
static bool is_turned_off(const struct gp_device *gpu, const struct rule *rule)
{
    return strcmp(gp_device_text(gpu, rule->metric, ""), "Disabled") == 0 &&
           strcmp(gp_device_text(gpu, rule->other, ""), "Enabled") == 0;
}

/* The metric, or the sum of both, if known. */
static bool is_at_least(const struct gp_device *gpu, const struct rule *rule)
{
    double a = 0, b = 0;
    bool has_a = gp_device_number(gpu, rule->metric, &a);
    bool has_b = rule->other && gp_device_number(gpu, rule->other, &b);
    return (has_a || has_b) && a + b >= rule->number;
}

static bool is_at_most(const struct gp_device *gpu, const struct rule *rule)
{
    double a;
    return gp_device_number(gpu, rule->metric, &a) && a <= rule->number;
}

/* A threshold of 0 means none. */
static bool reaches_other(const struct gp_device *gpu, const struct rule *rule)
{
    double a, b;
    return gp_device_number(gpu, rule->metric, &a) && gp_device_number(gpu, rule->other, &b) &&
           b > 0 && a >= b;
}

static bool falls_to_other(const struct gp_device *gpu, const struct rule *rule)
{
    double a, b;
    return gp_device_number(gpu, rule->metric, &a) && gp_device_number(gpu, rule->other, &b) &&
           a <= b;
}

static bool is_below_other(const struct gp_device *gpu, const struct rule *rule)
{
    double a, b;
    return gp_device_number(gpu, rule->metric, &a) && gp_device_number(gpu, rule->other, &b) &&
           a < b - rule->number;
}

/* ---- the rules ---- */

/* Limits without a source next to them are from data/tables and from NVIDIA's DCGM (the limits of
 * the field diagnostic): 512 rows, 63 pages; operators use four on-chip errors. */
enum { ROWS_MOST = 512, PAGES_MOST = 63, DOUBLE_BIT_MOST = 16, SRAM_MOST = 5 };
#define HOURS_US(n) ((n)*3600.0e6)

static const struct rule rules[] = {
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reset", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_RESET, .summary = "the driver requests a reset of the GPU",
     .why = "After an error that it cannot recover from, it refuses new work until the reset."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reboot", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REBOOT, .summary = "the driver requests a reboot of the machine",
     .why = "A reset of the GPU would not suffice."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain P2P",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_DRAIN,
     .summary = "the driver requests that all work between GPUs stop",
     .why = "The connection to other GPUs is no longer reliable."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain and Reset",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_DRAIN,
     .summary = "the driver requests a reset once the GPU's work has finished",
     .why =
         "Running programs may continue, but until then the GPU has less memory or fewer units."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Recover IMEX Domain",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_IMEX,
     .summary = "the driver requests a restart of the IMEX domain",
     .why = "The state of the memory that machines share over NVLink is inconsistent."},
    {"health.recovery", is_other_word, GP_RECOVERY_ACTION, .word = "None",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REBOOT,
     .summary = "the driver requests a recovery of the GPU"},
    {"health.recovery", is_word, GP_RESET_REQUIRED, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_RESET, .summary = "the driver requests a reset of the GPU"},
    {"health.recovery", is_word, GP_RESET_DRAIN, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_DRAIN,
     .summary = "the driver requests a reset once the GPU's work has finished"},

    {"health.remap", is_word, GP_REMAPPED_FAILURE, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE, .summary = "a faulty memory row could not be remapped",
     .why = "The bank has no spare row left, or the spare row is faulty too: the next error there "
            "kills programs again."},
    {"health.remap", is_at_least, GP_REMAPPED_UNCORRECTABLE, .number = ROWS_MOST,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REPLACE,
     .summary = "so many memory rows were remapped that the GPU counts as faulty"},
    {"health.remap", is_word, GP_REMAPPED_PENDING, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a faulty memory row is waiting to be remapped",
     .why = "The row is not used until then. It is remapped when the GPU is reset, at a time of "
            "your choice."},
    {"health.remap", is_at_least, GP_HISTOGRAM_NONE, .number = 1, .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_REPLACE, .summary = "a memory bank has no spare rows left",
     .why = "The next faulty row in it cannot be remapped."},

    {"health.retired", is_at_least, GP_RETIRED_SBE, GP_RETIRED_DBE, .number = PAGES_MOST,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REPLACE,
     .summary = "no more memory pages can be retired",
     .why = "The board's list of 64 faulty pages is full."},
    {"health.retired", is_word, GP_RETIRED_PENDING, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a faulty memory page is not retired yet",
     .why = "Until the GPU is reset the page is still used, and an error in it kills programs."},
    {"health.retired", is_at_least, GP_RETIRED_DBE, .number = DOUBLE_BIT_MOST,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_REPLACE,
     .summary = "many memory pages were retired for double-bit errors",
     .why = "If pages are still retired at more than one a week, the board is about to fail."},

    {"health.sram", is_word, GP_ECC_SRAM_THRESHOLD, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE, .summary = "the on-chip memories had too many errors",
     .why = "The driver reports that the limit of NVIDIA's field diagnostic is exceeded."},
    {"health.sram", is_at_least, GP_ECC_SRAM_AGGREGATE_PARITY, GP_ECC_SRAM_AGGREGATE_SECDED,
     .number = SRAM_MOST, .verdict = GP_VERDICT_WARN, .cure = GP_CURE_REPLACE,
     .summary = "the on-chip memories had several uncorrectable errors"},

    {"health.ecc", is_word, GP_ECC_UNREPAIRABLE, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE, .summary = "the memory has unrepairable errors"},
    {"health.ecc", is_at_least, GP_ECC_UNCORRECTED_VOLATILE, .number = 1,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_RESET,
     .summary = "the memory had an uncorrectable error",
     .why = "The affected program was killed (Xid 48, 94 or 95 in the kernel log). Errors are "
            "counted from the time the driver was loaded."},
    {"health.ecc", is_word, GP_ECC_CHANNEL_REPAIR, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a memory channel is waiting to be repaired"},
    {"health.ecc", is_word, GP_ECC_TPC_REPAIR, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a unit of the chip is waiting to be repaired"},
    {"health.ecc", differs, GP_ECC_MODE, GP_ECC_MODE_PENDING, .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a pending ECC mode change needs a reset"},
    {"health.ecc", is_turned_off, GP_ECC_MODE, GP_ECC_MODE_DEFAULT, .verdict = GP_VERDICT_INFO,
     .cure = GP_CURE_ECC_ON, .summary = "ECC was turned off: memory errors go unnoticed"},

    {"health.throttle", is_word, GP_REASON_HW_THERMAL, .word = "Active", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_COOL, .summary = "the hardware throttles the GPU because of heat",
     .why = "It runs at half its clock or less to prevent damage."},
    {"health.throttle", is_word, GP_REASON_HW_POWER_BRAKE, .word = "Active",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_SUPPLY,
     .summary = "the hardware throttles the GPU because of the power supply",
     .why = "The power supply or the board asserted the power brake: the GPU runs at half its "
            "clock or less."},
    {"health.throttle", is_word, GP_REASON_HW_SLOWDOWN, .word = "Active",
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_SUPPLY,
     .summary = "the hardware throttles the GPU, because of heat or power"},
    {"health.throttle", is_word, GP_REASON_SW_THERMAL, .word = "Active", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_COOL, .summary = "the driver throttles the GPU because of heat",
     .why = "The chip or its memory is above the temperature for continuous operation."},
    {"health.throttle", is_at_least, GP_COUNTER_HW_THERMAL, GP_COUNTER_HW_POWER_BRAKE,
     .number = HOURS_US(1), .verdict = GP_VERDICT_INFO, .cure = GP_CURE_NONE,
     .summary = "the hardware has throttled the GPU for more than an hour in total",
     .why = "It is not throttled now. Time is counted from when the driver was loaded."},

    {"health.temperature", falls_to_other, GP_TEMPERATURE_TLIMIT, GP_TLIMIT_SLOWDOWN,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COOL,
     .summary = "at the temperature where the hardware slows down"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_SLOWDOWN,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COOL,
     .summary = "at the temperature where the hardware slows down"},
    {"health.temperature", is_at_most, GP_TEMPERATURE_TLIMIT, .number = 0,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL,
     .summary = "above the temperature for continuous operation"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_GPU_MAX,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL,
     .summary = "above the temperature for continuous operation"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_MEMORY, GP_THRESHOLD_MEMORY_MAX,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL,
     .summary = "the memory is so hot that it slows down"},

    {"health.power", is_word, GP_POWER_SOURCE, .word = "Undersized", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_SUPPLY, .summary = "the power supply is insufficient"},
    {"health.power", is_below_other, GP_POWER_LIMIT, GP_POWER_LIMIT_DEFAULT, .number = 1,
     .verdict = GP_VERDICT_INFO, .cure = GP_CURE_POWER_LIMIT,
     .summary = "the power limit is below the default"},

    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Prohibited",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COMPUTE,
     .summary = "the compute mode blocks CUDA programs"},
    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Exclusive_Process",
     .verdict = GP_VERDICT_INFO, .cure = GP_CURE_COMPUTE,
     .summary = "the compute mode allows only one process at a time"},

    {"health.inforom", is_word, GP_INFOROM_CHECKSUM, .word = "invalid", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_FLASH, .summary = "the board's InfoROM is damaged",
     .why = "It stores settings and the record of memory errors."},

    {"health.fabric", is_other_word, GP_FABRIC_STATE, GP_FABRIC_STATUS, .word = "Completed",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "not part of the NVLink fabric yet",
     .why = "Until it is, CUDA fails with error 802, system not yet initialized, although "
            "nvidia-smi reports no problem. In a virtual machine the host must fix this."},
    {"health.fabric", is_other_word, GP_FABRIC_STATUS, .word = "Success",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "the registration with the NVLink fabric failed",
     .why = "CUDA fails with error 802, system not yet initialized."},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Unhealthy", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_FABRIC, .summary = "the connection to the NVLink fabric is not healthy"},
    {"health.fabric", is_other_word, GP_FABRIC_CONFIGURATION, .word = "None",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric is misconfigured"},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Limited Capacity",
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric does not provide its full bandwidth"},
    {"health.fabric", is_word, GP_FABRIC_BANDWIDTH, .word = "Degraded", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_FABRIC, .summary = "the NVLink fabric does not provide its full bandwidth"},
};

void gp_health_rules_want(struct gp_metric_set *metrics)
{
    for (size_t r = 0; r < GP_ARRAY_LEN(rules); r++) {
        gp_metric_set_add(metrics, rules[r].metric);
        if (rules[r].other)
            gp_metric_set_add(metrics, rules[r].other);
    }
}

/* ---- evaluation ---- */

static bool is_of(const struct rule *rule, const struct gp_exam *exam)
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
    for (size_t r = 0; r < GP_ARRAY_LEN(rules); r++)
        for (size_t i = 0; is_of(&rules[r], exam) && i < gpus.count; i++)
            if (is_supported(status_of(exam, gpus.gpus[i], rules[r].metric)))
                return true;
    return !exam->snapshot && gp_health_is_expected(exam);
}

static const struct rule *rule_of(const struct gp_exam *exam, const struct gp_device *gpu)
{
    for (size_t r = 0; r < GP_ARRAY_LEN(rules); r++)
        if (is_of(&rules[r], exam) && rules[r].holds(gpu, &rules[r]))
            return &rules[r];
    return NULL;
}

static void report(struct gp_exam *exam, const struct rule *rule, const struct gp_gpuset *set)
{
    const enum gp_metric metrics[] = {rule->metric, rule->other};
    gp_exam_report(exam, rule->verdict, "%s: %s", gp_gpuset_names(exam, set), rule->summary);
    gp_gpuset_evidence(exam, set, metrics, rule->other ? 2 : 1);
    if (rule->why)
        gp_exam_why(exam, "%s", rule->why);
    gp_health_prescribe(exam, rule->cure, set);
}

/* The metrics of this check that the driver refused to report for a GPU; their number. */
static size_t refused_of(const struct gp_exam *exam, const struct gp_device *gpu,
                         enum gp_metric metrics[GP_ARRAY_LEN(rules)])
{
    size_t count = 0;
    for (size_t r = 0; r < GP_ARRAY_LEN(rules); r++) {
        bool is_again = count > 0 && metrics[count - 1] == rules[r].metric;
        if (is_of(&rules[r], exam) && !is_again &&
            is_refused(status_of(exam, gpu, rules[r].metric)))
            metrics[count++] = rules[r].metric;
    }
    return count;
}

/* A value that the driver did not report is not passed. Returns whether there is one. */
static bool report_refused(struct gp_exam *exam, const struct gp_gpuset *gpus)
{
    enum gp_metric metrics[GP_ARRAY_LEN(rules)];
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
    const struct rule *held[GP_GPUSET_MAX] = {NULL};
    struct gp_gpuset gpus;
    bool found = false;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        held[i] = rule_of(exam, gpus.gpus[i]);
    for (size_t r = 0; r < GP_ARRAY_LEN(rules); r++) {
        struct gp_gpuset set = {.count = 0};
        for (size_t i = 0; i < gpus.count; i++)
            if (held[i] == &rules[r])
                gp_gpuset_add(&set, gpus.gpus[i]);
        if (set.count > 0)
            report(exam, &rules[r], &set);
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
