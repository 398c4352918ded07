#include "doctor/health_rules.h"

#include "doctor/health.h"

#include <string.h>

struct rule {
    const char *check;
    bool (*holds)(const struct gp_device *gpu, const struct rule *rule);
    enum gp_metric metric, other; /* TIMESTAMP, which no GPU has: there is no other */
    const char *word;
    double number;
    enum gp_verdict verdict;
    enum gp_cure cure;
    const char *summary; /* behind "GPU 3: " */
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

/* It is off, though its default is on. */
static bool is_turned_off(const struct gp_device *gpu, const struct rule *rule)
{
    return strcmp(gp_device_text(gpu, rule->metric, ""), "Disabled") == 0 &&
           strcmp(gp_device_text(gpu, rule->other, ""), "Enabled") == 0;
}

/* The metric, or both together, where one of them is known. */
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

/* A threshold of 0 is none. */
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

/* Limits without a source beside them are of data/tables and of NVIDIA's DCGM (limits of the field
 * diagnostic): 512 rows, 63 pages; four errors on the chip are what operators go by. */
enum { ROWS_MOST = 512, PAGES_MOST = 63, DOUBLE_BIT_MOST = 16, SRAM_MOST = 5 };
#define HOURS_US(n) ((n)*3600.0e6)

static const struct rule rules[] = {
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reset", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_RESET, .summary = "the driver asks for a reset of the GPU",
     .why = "After an error that it cannot mend itself it refuses new work until then."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reboot", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REBOOT, .summary = "the driver asks for a reboot of the machine",
     .why = "A reset of the GPU would not be enough."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain P2P",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_DRAIN,
     .summary = "the driver asks that all work between GPUs ends",
     .why = "The connection to other GPUs is not reliable any more."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain and Reset",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_DRAIN,
     .summary = "the driver asks for a reset as soon as the GPU's work is done",
     .why = "What runs may go on, but the GPU has less of its memory or of its parts until then."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Recover IMEX Domain",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_IMEX,
     .summary = "the driver asks for a restart of the IMEX domain",
     .why = "The memory that machines share over NVLink is in disorder."},
    {"health.recovery", is_other_word, GP_RECOVERY_ACTION, .word = "None",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REBOOT,
     .summary = "the driver asks for a recovery of the GPU"},
    {"health.recovery", is_word, GP_RESET_REQUIRED, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_RESET, .summary = "the driver asks for a reset of the GPU"},
    {"health.recovery", is_word, GP_RESET_DRAIN, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_DRAIN,
     .summary = "the driver asks for a reset as soon as the GPU's work is done"},

    {"health.remap", is_word, GP_REMAPPED_FAILURE, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE, .summary = "a broken row of the memory could not be replaced",
     .why = "The bank has no spare row left, or the spare row is broken too: the next error there "
            "ends programs again."},
    {"health.remap", is_at_least, GP_REMAPPED_UNCORRECTABLE, .number = ROWS_MOST,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REPLACE,
     .summary = "so many rows of the memory were replaced that the GPU counts as broken"},
    {"health.remap", is_word, GP_REMAPPED_PENDING, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a broken row of the memory waits for its replacement",
     .why = "The row is not used meanwhile. It is replaced when the GPU is reset, at a time that "
            "suits you."},
    {"health.remap", is_at_least, GP_HISTOGRAM_NONE, .number = 1, .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_REPLACE, .summary = "a bank of the memory has no spare rows left",
     .why = "The next broken row in it cannot be replaced."},

    {"health.retired", is_at_least, GP_RETIRED_SBE, GP_RETIRED_DBE, .number = PAGES_MOST,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_REPLACE,
     .summary = "no more pages of the memory can be retired",
     .why = "The board keeps a list of 64 broken pages, and it is full."},
    {"health.retired", is_word, GP_RETIRED_PENDING, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a broken page of the memory is not retired yet",
     .why = "Until the GPU is reset the page is still used, and an error in it ends programs."},
    {"health.retired", is_at_least, GP_RETIRED_DBE, .number = DOUBLE_BIT_MOST,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_REPLACE,
     .summary = "many pages of the memory were retired for double-bit errors",
     .why = "If it is still more than one a week, the board is about to fail."},

    {"health.sram", is_word, GP_ECC_SRAM_THRESHOLD, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE,
     .summary = "the memories on the chip had more errors than a sound GPU has",
     .why = "The driver itself says that the limit of NVIDIA's field diagnostic is passed."},
    {"health.sram", is_at_least, GP_ECC_SRAM_AGGREGATE_PARITY, GP_ECC_SRAM_AGGREGATE_SECDED,
     .number = SRAM_MOST, .verdict = GP_VERDICT_WARN, .cure = GP_CURE_REPLACE,
     .summary = "the memories on the chip had several errors that could not be corrected"},

    {"health.ecc", is_word, GP_ECC_UNREPAIRABLE, .word = "Yes", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_REPLACE, .summary = "the memory has errors that cannot be repaired"},
    {"health.ecc", is_at_least, GP_ECC_UNCORRECTED_VOLATILE, .number = 1,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_RESET,
     .summary = "the memory had an error that could not be corrected",
     .why = "The program that met it was ended (Xid 48, 94 or 95 in the kernel's log). The count "
            "is of the time since the driver was loaded."},
    {"health.ecc", is_word, GP_ECC_CHANNEL_REPAIR, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a channel of the memory waits for its repair"},
    {"health.ecc", is_word, GP_ECC_TPC_REPAIR, .word = "Yes", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "a part of the chip waits for its repair"},
    {"health.ecc", differs, GP_ECC_MODE, GP_ECC_MODE_PENDING, .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_RESET, .summary = "the change of the ECC mode waits for a reset"},
    {"health.ecc", is_turned_off, GP_ECC_MODE, GP_ECC_MODE_DEFAULT, .verdict = GP_VERDICT_INFO,
     .cure = GP_CURE_ECC_ON, .summary = "ECC was turned off: errors of the memory go unnoticed"},

    {"health.throttle", is_word, GP_REASON_HW_THERMAL, .word = "Active", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_COOL, .summary = "the hardware slows the GPU down for heat",
     .why = "It runs at half of its clock or less, so that it does not burn."},
    {"health.throttle", is_word, GP_REASON_HW_POWER_BRAKE, .word = "Active",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_SUPPLY,
     .summary = "the power supply has the hardware slow the GPU down",
     .why = "The supply or the board has pulled the power brake: it runs at half of its clock or "
            "less."},
    {"health.throttle", is_word, GP_REASON_HW_SLOWDOWN, .word = "Active",
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_SUPPLY,
     .summary = "the hardware slows the GPU down, for heat or for power"},
    {"health.throttle", is_word, GP_REASON_SW_THERMAL, .word = "Active", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_COOL, .summary = "the driver slows the GPU down for heat",
     .why = "The chip or its memory is above the temperature for lasting operation."},
    {"health.throttle", is_at_least, GP_COUNTER_HW_THERMAL, GP_COUNTER_HW_POWER_BRAKE,
     .number = HOURS_US(1), .verdict = GP_VERDICT_INFO, .cure = GP_CURE_NONE,
     .summary = "the hardware has slowed the GPU down for more than an hour in all",
     .why = "It does not now. The count began when the driver was loaded."},

    {"health.temperature", falls_to_other, GP_TEMPERATURE_TLIMIT, GP_TLIMIT_SLOWDOWN,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COOL,
     .summary = "as hot as where the hardware slows down"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_SLOWDOWN,
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COOL,
     .summary = "as hot as where the hardware slows down"},
    {"health.temperature", is_at_most, GP_TEMPERATURE_TLIMIT, .number = 0,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL, .summary = "hotter than it may be for long"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_GPU_MAX,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL, .summary = "hotter than it may be for long"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_MEMORY, GP_THRESHOLD_MEMORY_MAX,
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_COOL,
     .summary = "memory so hot that it slows down"},

    {"health.power", is_word, GP_POWER_SOURCE, .word = "Undersized", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_SUPPLY, .summary = "the power supply is too weak"},
    {"health.power", is_below_other, GP_POWER_LIMIT, GP_POWER_LIMIT_DEFAULT, .number = 1,
     .verdict = GP_VERDICT_INFO, .cure = GP_CURE_POWER_LIMIT,
     .summary = "the power limit was set below the default"},

    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Prohibited",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_COMPUTE,
     .summary = "the compute mode forbids CUDA programs"},
    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Exclusive_Process",
     .verdict = GP_VERDICT_INFO, .cure = GP_CURE_COMPUTE,
     .summary = "the compute mode lets only one process compute at a time"},

    {"health.inforom", is_word, GP_INFOROM_CHECKSUM, .word = "invalid", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_FLASH, .summary = "the InfoROM of the board is damaged",
     .why = "It keeps settings and the record of memory errors."},

    {"health.fabric", is_other_word, GP_FABRIC_STATE, GP_FABRIC_STATUS, .word = "Completed",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "not part of the NVLink fabric yet",
     .why = "Until it is, CUDA ends with error 802, system not yet initialized, though nvidia-smi "
            "looks well. In a virtual machine the host has to see to it."},
    {"health.fabric", is_other_word, GP_FABRIC_STATUS, .word = "Success",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "the registration with the NVLink fabric failed",
     .why = "CUDA ends with error 802, system not yet initialized."},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Unhealthy", .verdict = GP_VERDICT_FAIL,
     .cure = GP_CURE_FABRIC, .summary = "the connection to the NVLink fabric is not healthy"},
    {"health.fabric", is_other_word, GP_FABRIC_CONFIGURATION, .word = "None",
     .verdict = GP_VERDICT_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric is configured wrongly"},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Limited Capacity",
     .verdict = GP_VERDICT_WARN, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric does not give all of its bandwidth"},
    {"health.fabric", is_word, GP_FABRIC_BANDWIDTH, .word = "Degraded", .verdict = GP_VERDICT_WARN,
     .cure = GP_CURE_FABRIC, .summary = "the NVLink fabric does not give all of its bandwidth"},
};

/* ---- running them ---- */

static bool is_of(const struct rule *rule, const struct gp_exam *exam)
{
    return strcmp(rule->check, gp_check_at(exam->place)->id) == 0;
}

static enum gp_status status_of(const struct gp_exam *exam, const struct gp_device *gpu,
                                enum gp_metric m)
{
    return gp_snapshot_value(exam->snapshot, gpu, NULL, m)->status;
}

/* Whether the driver knows the metric at all, even if it did not tell it. */
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

/* The metrics of this check that the driver refused to tell of a GPU; their number. */
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

/* What the driver did not tell is not well. Returns whether there is such a thing. */
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
    gp_exam_report(exam, GP_VERDICT_SKIP, "%s: the driver does not tell what this goes by",
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
        gp_exam_report(exam, GP_VERDICT_OK, "%s (%s; the others do not answer)",
                       gp_check_at(exam->place)->title, gp_gpuset_names(exam, &gpus));
}
