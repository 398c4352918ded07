/* The GPUs' health, as the driver reports it. */
#include "doctor/checks/health.h"
#include "doctor/checks/health_values.h"
#include "doctor/readers/services.h"
#include "source/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

/* ---- does the driver respond ---- */

/* An earlier failure in a lower layer is most probably why the driver does not respond. */
static const struct gp_check *cause_of_silence(const struct gp_exam *exam)
{
    static const char *const layers[] = {"platform.", "hardware.", "driver.", "container."};
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        for (size_t i = 0; f->verdict == GP_VERDICT_FAIL && i < GP_ARRAY_LEN(layers); i++)
            if (strncmp(f->check->id, layers[i], strlen(layers[i])) == 0)
                return f->check;
    return NULL;
}

static void report_silence(struct gp_exam *exam)
{
    const struct gp_check *cause = cause_of_silence(exam);
    if (cause) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "the driver does not respond, because %s failed",
                       cause->id);
        if (exam->last)
            exam->last->because = cause;
        exam->outcomes[exam->place].root_cause = cause;
        return;
    }
    gp_exam_report(exam, GP_VERDICT_FAIL, "the driver does not respond");
    gp_exam_evidence(exam, "NVML", "%s", exam->driver_words);
    gp_exam_why(exam, "nvidia-smi, gpulse and the frameworks query the GPUs through this library.");
    gp_exam_command(exam, "look there for the driver's messages",
                    "sudo dmesg | grep -i -e nvrm -e nvidia");
}

static void set_by_status(struct gp_gpuset *set, const struct gp_exam *exam, enum gp_status status)
{
    set->count = 0;
    for (size_t i = 0; i < exam->snapshot->device_count; i++)
        if (!exam->snapshot->devices[i].is_mig && exam->snapshot->devices[i].status == status)
            gp_gpuset_add(set, &exam->snapshot->devices[i]);
}

/* GPUs bound to the kernel module that the driver does not count: they failed to start, or the
 * module was set to exclude them. */
static void run_count(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_value *count = gp_snapshot_value(exam->snapshot, NULL, NULL, GP_COUNT);
    const struct gp_value *excluded = gp_snapshot_value(exam->snapshot, NULL, NULL, GP_EXCLUDED);
    int64_t driven = 0;
    for (size_t i = 0; i < m->gpu_count; i++)
        driven += strcmp(m->gpus[i].driver, "nvidia") == 0;
    if (gp_value_is_present(excluded) && strcmp(excluded->s, "None") != 0) {
        gp_exam_report(exam, GP_VERDICT_INFO, "the kernel module is set to exclude GPUs");
        gp_exam_evidence(exam, "NVML", "%s: %s", GP_METRIC_NAME(GP_EXCLUDED), excluded->s);
        return;
    }
    if (!gp_value_is_present(count) || driven <= count->i)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the driver started only %lld of %lld GPUs",
                   (long long)count->i, (long long)driven);
    gp_exam_evidence(exam, "NVML", "count is %lld", (long long)count->i);
    for (size_t i = 0; i < m->gpu_count; i++)
        if (strcmp(m->gpus[i].driver, "nvidia") == 0 &&
            !gp_gpuset_device_at(exam, m->gpus[i].bus_id))
            gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s", m->gpus[i].bus_id),
                             "bound to nvidia, but did not respond");
    gp_exam_command(exam, "look there for the reason", "sudo dmesg | grep -i nvrm");
    gp_exam_command(exam, "often brings it back; if not, reseat or replace the board",
                    "sudo reboot");
}

static bool has_count(struct gp_exam *exam)
{
    return gp_health_is_expected(exam) && !exam->machine.container;
}

static void run_driver(struct gp_exam *exam)
{
    struct gp_gpuset asleep;
    if (!exam->snapshot) {
        report_silence(exam);
        return;
    }
    set_by_status(&asleep, exam, GP_STATUS_ASLEEP);
    if (asleep.count > 0)
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "%s: asleep, not woken for this check, so its health is unknown",
                       gp_gpuset_names(exam, &asleep));
}

/* ---- does every GPU respond ---- */

static bool has_silence(struct gp_exam *exam)
{
    return gp_health_is_expected(exam);
}

static void run_lost(struct gp_exam *exam)
{
    struct gp_gpuset set;
    for (size_t i = 0; i < gp_health_silence_count; i++) {
        const struct gp_health_silence *silence = &gp_health_silences[i];
        set_by_status(&set, exam, silence->status);
        if (set.count == 0)
            continue;
        gp_exam_report(exam, gp_health_verdict(silence->grade), "%s: %s",
                       gp_gpuset_names(exam, &set), silence->summary);
        for (size_t g = 0; g < set.count && g < GP_GPUSET_SHOWN; g++)
            gp_exam_evidence(exam, gp_gpuset_label(exam, set.gpus[g]), "%s",
                             set.gpus[g]->status_text);
        if (silence->why)
            gp_exam_why(exam, "%s", silence->why);
        gp_health_prescribe(exam, gp_health_silence_cure(silence, set.gpus[0]), &set);
    }
}

/* ---- settings of servers ---- */

static bool is_server_board(const struct gp_device *gpu)
{
    const char *brand = gp_device_text(gpu, GP_BRAND, "");
    return (strcmp(brand, "NVIDIA") == 0 || strcmp(brand, "Tesla") == 0) &&
           strcmp(gp_device_text(gpu, GP_DISPLAY_ACTIVE, ""), "Enabled") != 0;
}

static void find_impersistent(struct gp_gpuset *set, const struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    gp_gpuset_answered(&gpus, exam);
    set->count = 0;
    for (size_t i = 0; i < gpus.count; i++)
        if (is_server_board(gpus.gpus[i]) &&
            strcmp(gp_device_text(gpus.gpus[i], GP_PERSISTENCE_MODE, ""), "Disabled") == 0)
            gp_gpuset_add(set, gpus.gpus[i]);
}

static bool has_persistence(struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    gp_gpuset_answered(&gpus, exam);
    bool found = false;
    for (size_t i = 0; i < gpus.count; i++)
        found = found || is_server_board(gpus.gpus[i]);
    return found && !exam->machine.container && !exam->machine.is_wsl;
}

static void run_persistence(struct gp_exam *exam)
{
    static const enum gp_metric metrics[] = {GP_PERSISTENCE_MODE};
    struct gp_gpuset set;
    find_impersistent(&set, exam);
    if (set.count == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "%s: persistence mode is off",
                   gp_gpuset_names(exam, &set));
    gp_gpuset_evidence(exam, &set, metrics, 1);
    gp_exam_why(exam, "When the last program exits, the driver shuts the GPU down: the next "
                      "program waits seconds for it, and settings such as a power limit are lost.");
    if (gp_service_is_installed(exam, "nvidia-persistenced.service")) {
        gp_exam_command(exam, "keep the GPUs initialized from boot",
                        "sudo systemctl enable --now nvidia-persistenced");
        return;
    }
    gp_exam_command(exam, "until the next boot", "sudo gpulse set persistence-mode=on -i %s",
                    gp_gpuset_list(exam, &set));
}

/* ---- Resizable BAR ---- */

enum { BAR1_SMALL = 256 << 20 };

/* A gaming board that could expose all its memory to the CPU (Ampere and later). */
static bool could_resize(const struct gp_device *gpu)
{
    static const char *const architectures[] = {"Ampere", "Ada Lovelace", "Ada", "Blackwell"};
    const char *architecture = gp_device_text(gpu, GP_ARCHITECTURE, "");
    bool is_new = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(architectures); i++)
        is_new = is_new || strcmp(architecture, architectures[i]) == 0;
    return is_new && strcmp(gp_device_text(gpu, GP_BRAND, ""), "GeForce") == 0;
}

static bool has_bar(struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (could_resize(gpus.gpus[i]))
            return !exam->machine.is_wsl;
    return false;
}

static void run_bar(struct gp_exam *exam)
{
    static const enum gp_metric metrics[] = {GP_BAR1_TOTAL, GP_MEMORY_TOTAL};
    struct gp_gpuset gpus, set = {.count = 0};
    double bar;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (could_resize(gpus.gpus[i]) && gp_device_number(gpus.gpus[i], GP_BAR1_TOTAL, &bar) &&
            bar <= BAR1_SMALL)
            gp_gpuset_add(&set, gpus.gpus[i]);
    if (set.count == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "%s: the CPU sees only a window of the GPU's memory (no Resizable BAR)",
                   gp_gpuset_names(exam, &set));
    gp_gpuset_evidence(exam, &set, metrics, 2);
    gp_exam_advice(exam, "if games or model loading matter: turn on Above 4G Decoding and "
                         "Resizable BAR in the machine's firmware");
}

/* ---- the list ---- */

#define NEEDS                                                                                      \
    {                                                                                              \
        "health.driver"                                                                            \
    }

const struct gp_check gp_checks_health[] = {
    {"health.driver", "the driver responds", {0}, gp_health_is_expected, run_driver},
    {"health.count", "the driver has all GPUs that are bound to the kernel module", NEEDS,
     has_count, run_count},
    {"health.lost", "every GPU responds", NEEDS, has_silence, run_lost},
    {"health.recovery", "no GPU needs a reset", NEEDS, gp_health_has_rules, gp_health_run_rules},
    {"health.remap", "no memory row is waiting to be remapped, and no remapping failed", NEEDS,
     gp_health_has_rules, gp_health_run_rules},
    {"health.retired", "no memory page is waiting to be retired, and there is room for more", NEEDS,
     gp_health_has_rules, gp_health_run_rules},
    {"health.sram", "the on-chip memories have no excess errors", NEEDS, gp_health_has_rules,
     gp_health_run_rules},
    {"health.ecc", "no uncorrectable memory error since the driver was loaded", NEEDS,
     gp_health_has_rules, gp_health_run_rules},
    {"health.inforom", "the InfoROMs are intact", NEEDS, gp_health_has_rules, gp_health_run_rules},
    {"health.throttle", "no GPU is throttled by heat or the power supply", NEEDS,
     gp_health_has_rules, gp_health_run_rules},
    {"health.temperature", "no GPU is too hot", NEEDS, gp_health_has_rules, gp_health_run_rules},
    {"health.power", "power limits are at their default", NEEDS, gp_health_has_rules,
     gp_health_run_rules},
    {"health.persistence", "the driver keeps the GPUs initialized", NEEDS, has_persistence,
     run_persistence},
    {"health.compute_mode", "all programs may compute", NEEDS, gp_health_has_rules,
     gp_health_run_rules},
    {"health.mig", "GPUs in MIG mode have instances", NEEDS, gp_health_has_mig, gp_health_run_mig},
    {"health.fabricmanager",
     "the fabric manager runs, in the driver's version",
     {0},
     gp_health_has_manager,
     gp_health_run_manager},
    {"health.fabric",
     "the GPUs are part of the NVLink fabric",
     {"health.driver", "health.fabricmanager"},
     gp_health_has_rules,
     gp_health_run_rules},
    {"health.nvlink",
     "the NVLinks are up",
     {"health.driver", "health.fabricmanager"},
     gp_health_has_nvlink,
     gp_health_run_nvlink},
    {"health.unattributed", "all used GPU memory belongs to processes", NEEDS,
     gp_health_has_unattributed, gp_health_run_unattributed},
    {"health.bar1", "the CPU sees all of the GPUs' memory", NEEDS, has_bar, run_bar},
    {"nccl.p2p", "GPUs read each other's memory directly", NEEDS, gp_health_has_peers,
     gp_health_run_peers},
    {"nccl.rdma", "network adapters can access GPU memory", NEEDS, gp_health_has_rdma,
     gp_health_run_rdma},
    {"health.orphans",
     "no program outlasts its session on a GPU",
     {NULL},
     gp_health_has_orphans,
     gp_health_run_orphans},
    {0},
};
