#include "why/health_rules.h"

#include "source/nvml/nvml.h"

#include <string.h>

/* ---- tests ---- */

static bool is_word(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    return strcmp(gp_device_text(gpu, rule->metric, ""), rule->word) == 0;
}

static bool is_other_word(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    const char *text = gp_device_text(gpu, rule->metric, "");
    return text[0] && strcmp(text, rule->word) != 0;
}

static bool differs(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    const char *now = gp_device_text(gpu, rule->metric, "");
    const char *then = gp_device_text(gpu, rule->other, "");
    return now[0] && then[0] && strcmp(now, then) != 0;
}

/* It is off, although its default is on. */
static bool is_turned_off(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    return strcmp(gp_device_text(gpu, rule->metric, ""), "Disabled") == 0 &&
           strcmp(gp_device_text(gpu, rule->other, ""), "Enabled") == 0;
}

/* The metric, or the sum of both, if known. */
static bool is_at_least(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    double a = 0, b = 0;
    bool has_a = gp_device_number(gpu, rule->metric, &a);
    bool has_b = rule->other && gp_device_number(gpu, rule->other, &b);
    return (has_a || has_b) && a + b >= rule->number;
}

static bool is_at_most(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    double a;
    return gp_device_number(gpu, rule->metric, &a) && a <= rule->number;
}

/* A threshold of 0 means none. */
static bool reaches_other(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    double a, b;
    return gp_device_number(gpu, rule->metric, &a) && gp_device_number(gpu, rule->other, &b) &&
           b > 0 && a >= b;
}

static bool falls_to_other(const struct gp_device *gpu, const struct gp_health_rule *rule)
{
    double a, b;
    return gp_device_number(gpu, rule->metric, &a) && gp_device_number(gpu, rule->other, &b) &&
           a <= b;
}

static bool is_below_other(const struct gp_device *gpu, const struct gp_health_rule *rule)
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

const struct gp_health_rule gp_health_rules[] = {
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reset", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_RESET, .summary = "the driver requests a reset of the GPU",
     .why = "After an error that it cannot recover from, it refuses new work until the reset."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Reboot", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_REBOOT,
     .summary = "the driver requests a reboot of the machine",
     .why = "A reset of the GPU would not suffice."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain P2P", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_DRAIN,
     .summary = "the driver requests that all work between GPUs stop",
     .why = "The connection to other GPUs is no longer reliable."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Drain and Reset",
     .grade = GP_HEALTH_FAIL, .is_fault = true, .cure = GP_CURE_DRAIN,
     .summary = "the driver requests a reset once the GPU's work has finished",
     .why =
         "Running programs may continue, but until then the GPU has less memory or fewer units."},
    {"health.recovery", is_word, GP_RECOVERY_ACTION, .word = "Recover IMEX Domain",
     .grade = GP_HEALTH_FAIL, .is_fault = true, .cure = GP_CURE_IMEX,
     .summary = "the driver requests a restart of the IMEX domain",
     .why = "The state of the memory that machines share over NVLink is inconsistent."},
    {"health.recovery", is_other_word, GP_RECOVERY_ACTION, .word = "None", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_REBOOT,
     .summary = "the driver requests a recovery of the GPU"},
    {"health.recovery", is_word, GP_RESET_REQUIRED, .word = "Yes", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_RESET, .summary = "the driver requests a reset of the GPU"},
    {"health.recovery", is_word, GP_RESET_DRAIN, .word = "Yes", .grade = GP_HEALTH_WARN,
     .is_fault = true, .cure = GP_CURE_DRAIN,
     .summary = "the driver requests a reset once the GPU's work has finished"},

    {"health.remap", is_word, GP_REMAPPED_FAILURE, .word = "Yes", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_REPLACE,
     .summary = "a faulty memory row could not be remapped",
     .why = "The bank has no spare row left, or the spare row is faulty too: the next error there "
            "kills programs again."},
    {"health.remap", is_at_least, GP_REMAPPED_UNCORRECTABLE, .number = ROWS_MOST,
     .grade = GP_HEALTH_FAIL, .is_fault = true, .cure = GP_CURE_REPLACE,
     .summary = "so many memory rows were remapped that the GPU counts as faulty"},
    {"health.remap", is_word, GP_REMAPPED_PENDING, .word = "Yes", .grade = GP_HEALTH_WARN,
     .is_fault = true, .cure = GP_CURE_RESET,
     .summary = "a faulty memory row is waiting to be remapped",
     .why = "The row is not used until then. It is remapped when the GPU is reset, at a time of "
            "your choice."},
    {"health.remap", is_at_least, GP_HISTOGRAM_NONE, .number = 1, .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_REPLACE, .summary = "a memory bank has no spare rows left",
     .why = "The next faulty row in it cannot be remapped."},

    {"health.retired", is_at_least, GP_RETIRED_SBE, GP_RETIRED_DBE, .number = PAGES_MOST,
     .grade = GP_HEALTH_FAIL, .is_fault = true, .cure = GP_CURE_REPLACE,
     .summary = "no more memory pages can be retired",
     .why = "The board's list of 64 faulty pages is full."},
    {"health.retired", is_word, GP_RETIRED_PENDING, .word = "Yes", .grade = GP_HEALTH_WARN,
     .is_fault = true, .cure = GP_CURE_RESET, .summary = "a faulty memory page is not retired yet",
     .why = "Until the GPU is reset the page is still used, and an error in it kills programs."},
    {"health.retired", is_at_least, GP_RETIRED_DBE, .number = DOUBLE_BIT_MOST,
     .grade = GP_HEALTH_WARN, .cure = GP_CURE_REPLACE,
     .summary = "many memory pages were retired for double-bit errors",
     .why = "If pages are still retired at more than one a week, the board is about to fail."},

    {"health.sram", is_word, GP_ECC_SRAM_THRESHOLD, .word = "Yes", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_REPLACE,
     .summary = "the on-chip memories had too many errors",
     .why = "The driver reports that the limit of NVIDIA's field diagnostic is exceeded."},
    {"health.sram", is_at_least, GP_ECC_SRAM_AGGREGATE_PARITY, GP_ECC_SRAM_AGGREGATE_SECDED,
     .number = SRAM_MOST, .grade = GP_HEALTH_WARN, .cure = GP_CURE_REPLACE,
     .summary = "the on-chip memories had several uncorrectable errors"},

    {"health.ecc", is_word, GP_ECC_UNREPAIRABLE, .word = "Yes", .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_REPLACE, .summary = "the memory has unrepairable errors"},
    {"health.ecc", is_at_least, GP_ECC_UNCORRECTED_VOLATILE, .number = 1, .grade = GP_HEALTH_FAIL,
     .is_fault = true, .cure = GP_CURE_RESET, .summary = "the memory had an uncorrectable error",
     .why = "The affected program was killed (Xid 48, 94 or 95 in the kernel log). Errors are "
            "counted from the time the driver was loaded."},
    {"health.ecc", is_word, GP_ECC_CHANNEL_REPAIR, .word = "Yes", .grade = GP_HEALTH_WARN,
     .is_fault = true, .cure = GP_CURE_RESET,
     .summary = "a memory channel is waiting to be repaired"},
    {"health.ecc", is_word, GP_ECC_TPC_REPAIR, .word = "Yes", .grade = GP_HEALTH_WARN,
     .is_fault = true, .cure = GP_CURE_RESET,
     .summary = "a unit of the chip is waiting to be repaired"},
    {"health.ecc", differs, GP_ECC_MODE, GP_ECC_MODE_PENDING, .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_RESET, .summary = "a pending ECC mode change needs a reset"},
    {"health.ecc", is_turned_off, GP_ECC_MODE, GP_ECC_MODE_DEFAULT, .grade = GP_HEALTH_INFO,
     .cure = GP_CURE_ECC_ON, .summary = "ECC was turned off: memory errors go unnoticed"},

    {"health.throttle", is_word, GP_REASON_HW_THERMAL, .word = "Active", .grade = GP_HEALTH_FAIL,
     .cure = GP_CURE_COOL, .summary = "the hardware throttles the GPU because of heat",
     .why = "It runs at half its clock or less to prevent damage."},
    {"health.throttle", is_word, GP_REASON_HW_POWER_BRAKE, .word = "Active",
     .grade = GP_HEALTH_FAIL, .cure = GP_CURE_SUPPLY,
     .summary = "the hardware throttles the GPU because of the power supply",
     .why = "The power supply or the board asserted the power brake: the GPU runs at half its "
            "clock or less."},
    {"health.throttle", is_word, GP_REASON_HW_SLOWDOWN, .word = "Active", .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_SUPPLY, .summary = "the hardware throttles the GPU, because of heat or power"},
    {"health.throttle", is_word, GP_REASON_SW_THERMAL, .word = "Active", .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_COOL, .summary = "the driver throttles the GPU because of heat",
     .why = "The chip or its memory is above the temperature for continuous operation."},
    {"health.throttle", is_at_least, GP_COUNTER_HW_THERMAL, GP_COUNTER_HW_POWER_BRAKE,
     .number = HOURS_US(1), .grade = GP_HEALTH_INFO, .cure = GP_CURE_NONE,
     .summary = "the hardware has throttled the GPU for more than an hour in total",
     .why = "It is not throttled now. Time is counted from when the driver was loaded."},

    {"health.temperature", falls_to_other, GP_TEMPERATURE_TLIMIT, GP_TLIMIT_SLOWDOWN,
     .grade = GP_HEALTH_FAIL, .cure = GP_CURE_COOL,
     .summary = "at the temperature where the hardware slows down"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_SLOWDOWN,
     .grade = GP_HEALTH_FAIL, .cure = GP_CURE_COOL,
     .summary = "at the temperature where the hardware slows down"},
    {"health.temperature", is_at_most, GP_TEMPERATURE_TLIMIT, .number = 0, .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_COOL, .summary = "above the temperature for continuous operation"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_GPU, GP_THRESHOLD_GPU_MAX,
     .grade = GP_HEALTH_WARN, .cure = GP_CURE_COOL,
     .summary = "above the temperature for continuous operation"},
    {"health.temperature", reaches_other, GP_TEMPERATURE_MEMORY, GP_THRESHOLD_MEMORY_MAX,
     .grade = GP_HEALTH_WARN, .cure = GP_CURE_COOL,
     .summary = "the memory is so hot that it slows down"},

    {"health.power", is_word, GP_POWER_SOURCE, .word = "Undersized", .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_SUPPLY, .summary = "the power supply is insufficient"},
    {"health.power", is_below_other, GP_POWER_LIMIT, GP_POWER_LIMIT_DEFAULT, .number = 1,
     .grade = GP_HEALTH_INFO, .cure = GP_CURE_POWER_LIMIT,
     .summary = "the power limit is below the default"},

    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Prohibited", .grade = GP_HEALTH_FAIL,
     .cure = GP_CURE_COMPUTE, .summary = "the compute mode blocks CUDA programs"},
    {"health.compute_mode", is_word, GP_COMPUTE_MODE, .word = "Exclusive_Process",
     .grade = GP_HEALTH_INFO, .cure = GP_CURE_COMPUTE,
     .summary = "the compute mode allows only one process at a time"},

    {"health.inforom", is_word, GP_INFOROM_CHECKSUM, .word = "invalid", .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_FLASH, .summary = "the board's InfoROM is damaged",
     .why = "It stores settings and the record of memory errors."},

    {"health.fabric", is_other_word, GP_FABRIC_STATE, GP_FABRIC_STATUS, .word = "Completed",
     .grade = GP_HEALTH_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "not part of the NVLink fabric yet",
     .why = "Until it is, CUDA fails with error 802, system not yet initialized, although "
            "nvidia-smi reports no problem. In a virtual machine the host must fix this."},
    {"health.fabric", is_other_word, GP_FABRIC_STATUS, .word = "Success", .grade = GP_HEALTH_FAIL,
     .cure = GP_CURE_FABRIC, .summary = "the registration with the NVLink fabric failed",
     .why = "CUDA fails with error 802, system not yet initialized."},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Unhealthy", .grade = GP_HEALTH_FAIL,
     .cure = GP_CURE_FABRIC, .summary = "the connection to the NVLink fabric is not healthy"},
    {"health.fabric", is_other_word, GP_FABRIC_CONFIGURATION, .word = "None",
     .grade = GP_HEALTH_FAIL, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric is misconfigured"},
    {"health.fabric", is_word, GP_FABRIC_HEALTH, .word = "Limited Capacity",
     .grade = GP_HEALTH_WARN, .cure = GP_CURE_FABRIC,
     .summary = "the NVLink fabric does not provide its full bandwidth"},
    {"health.fabric", is_word, GP_FABRIC_BANDWIDTH, .word = "Degraded", .grade = GP_HEALTH_WARN,
     .cure = GP_CURE_FABRIC, .summary = "the NVLink fabric does not provide its full bandwidth"},
};

const size_t gp_health_rule_count = GP_ARRAY_LEN(gp_health_rules);

const struct gp_health_rule *gp_health_rule_of(const struct gp_device *gpu, const char *check)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gp_health_rules); i++) {
        const struct gp_health_rule *rule = &gp_health_rules[i];
        if (strcmp(rule->check, check) == 0 && rule->holds(gpu, rule))
            return rule;
    }
    return NULL;
}

void gp_health_want_rules(struct gp_metric_set *metrics, bool only_faults)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gp_health_rules); i++) {
        const struct gp_health_rule *rule = &gp_health_rules[i];
        if (only_faults && !rule->is_fault)
            continue;
        gp_metric_set_add(metrics, rule->metric);
        if (rule->other)
            gp_metric_set_add(metrics, rule->other);
    }
}

/* ---- GPUs without values ---- */

const struct gp_health_silence gp_health_silences[] = {
    {GP_STATUS_LOST, GP_HEALTH_FAIL, GP_CURE_REBOOT, "lost: the driver cannot reach it",
     "It has fallen off the bus, or stopped permanently. Possible causes are an error (Xid 79 in "
     "the kernel log), a loose board or cable, heat, or insufficient power."},
    {GP_STATUS_TIMEOUT, GP_HEALTH_FAIL, GP_CURE_LOOK, "no response in time",
     "A driver call hangs, and programs that use the GPU will hang too. If this persists, the GPU "
     "needs a reboot."},
    {GP_STATUS_ERROR, GP_HEALTH_FAIL, GP_CURE_LOOK, "the driver reports only an error", NULL},
    {GP_STATUS_NO_PERMISSION, GP_HEALTH_WARN, GP_CURE_NONE, "not accessible to this user",
     "This happens if the GPU was not given to this container, or is assigned to a virtual "
     "machine."},
};

const size_t gp_health_silence_count = GP_ARRAY_LEN(gp_health_silences);

enum gp_cure gp_health_silence_cure(const struct gp_health_silence *silence,
                                    const struct gp_device *gpu)
{
    return gpu->driver_code == GP_NVML_RESET_REQUIRED ? GP_CURE_RESET : silence->cure;
}

/* ---- cures ---- */

static const struct gp_health_cure cures[] = {
    {GP_CURE_RESET, "sudo nvidia-smi --gpu-reset -i %s",
     "once nothing uses the GPU; if the reset is refused, reboot"},
    {GP_CURE_REBOOT, "sudo reboot", ""},
    {GP_CURE_DRAIN, NULL, "start no new work on it, and wait for running work to finish"},
    {GP_CURE_DRAIN, "sudo nvidia-smi --gpu-reset -i %s", "then; if that is refused, reboot"},
    {GP_CURE_REPLACE, NULL,
     "have the machine's maintainer run NVIDIA's field diagnostic and replace the board; until "
     "then, do not use it for important work"},
    {GP_CURE_COOL, NULL, "check fans, dust, airflow and neighboring cards"},
    {GP_CURE_COOL, "sudo gpulse set power-limit=WATTS -i %s",
     "lower power means less heat, until that is fixed"},
    {GP_CURE_SUPPLY, NULL,
     "check the power cables, the power supplies and their redundancy, and the server's BMC log"},
    {GP_CURE_FLASH, NULL, "have the board's manufacturer restore it: it is part of a VBIOS update"},
    {GP_CURE_POWER_LIMIT, "sudo gpulse set power-limit=default -i %s", "if this is not intended"},
    {GP_CURE_ECC_ON, "sudo gpulse set ecc-mode=on -i %s", "takes effect at the next reset"},
    {GP_CURE_COMPUTE, "sudo gpulse set compute-mode=default -i %s", "if this is not intended"},
    {GP_CURE_LOOK, "sudo dmesg | grep -i -e nvrm -e xid", "look there for the reason"},
    {GP_CURE_IMEX, "sudo systemctl restart nvidia-imex", "on all machines of the domain"},
    {GP_CURE_FABRIC, "systemctl status nvidia-fabricmanager",
     "and /var/log/fabricmanager.log give the reason"},
    {GP_CURE_FABRIC, "sudo systemctl restart nvidia-fabricmanager", "when nothing uses the GPUs"},
};

const struct gp_health_cure *gp_health_cure_next(enum gp_cure cure, size_t *at)
{
    while (*at < GP_ARRAY_LEN(cures)) {
        const struct gp_health_cure *step = &cures[(*at)++];
        if (step->cure == cure)
            return step;
    }
    return NULL;
}
