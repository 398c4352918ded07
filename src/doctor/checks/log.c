/* What the kernel log says about the GPUs since boot. */
#include "doctor/readers/log.h"
#include "doctor/checks/amd.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/hardware.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/explain/explain_line.h"
#include "doctor/readers/gpuset.h"
#include "doctor/tables.h"
#include "model/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    STORIES = 12, /* the most incidents reported; the rest are only counted */
    COMPANIONS = 4,
};

/* ---- can it be read ---- */

static bool has_gpus(struct gp_exam *exam)
{
    return exam->machine.gpu_count > 0 || exam->machine.is_driver_loaded;
}

static bool has_log(struct gp_exam *exam)
{
    return has_gpus(exam) && gp_log_of(exam)->path;
}

/* Where there is none, as in containers and images, nothing was missed. */
static bool is_log_there(struct gp_exam *exam)
{
    return has_gpus(exam) && gp_log_of(exam)->error != -ENOENT;
}

static void check_readable(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    static const char *const journals[] = {"/var/log/journal", "/run/log/journal", NULL};
    bool is_forbidden = log->error == -EACCES || log->error == -EPERM;
    if (log->path) {
        gp_exam_report(exam, GP_VERDICT_OK, "the kernel log can be read%s",
                       log->is_cut ? ", but only its end" : "");
        gp_exam_evidence(exam, log->path, "%zu line%s about GPUs", log->count,
                         log->count == 1 ? "" : "s");
        return;
    }
    gp_exam_report(exam, GP_VERDICT_SKIP, "the kernel log cannot be read: %s",
                   strerror(-log->error));
    if (is_forbidden) {
        gp_exam_command(exam, "", "sudo gpulse doctor --only log");
        if (gp_files_first(&exam->files, journals))
            gp_exam_command(exam, "or let this user read the journal, after the next login",
                            "sudo usermod -aG systemd-journal \"$USER\"");
    }
}

/* What the driver now reports about the GPU at this address, taken from a log line. */
static bool is_recovered(const struct gp_exam *exam, const char *bus_id)
{
    const struct gp_device *gpu = gp_gpuset_device_at(exam, bus_id);
    return gpu && strcmp(gp_device_text(gpu, GP_RECOVERY_ACTION, ""), "None") == 0;
}

/* The details of a line, in which a GPU that the driver lists has its number: "GPU 2, process 71
 * (python)". */
static const char *details_of(struct gp_exam *exam, const struct gp_kmsg *k,
                              const struct gp_explanation *e)
{
    const struct gp_device *gpu = gp_gpuset_device_at(exam, k->bus_id);
    const char *address = gp_exam_text(exam, "GPU %s", k->bus_id);
    return gpu && strncmp(e->details, address, strlen(address)) == 0
               ? gp_exam_text(exam, "GPU %u%s", gpu->index, e->details + strlen(address))
               : e->details;
}

/* ---- bursts ---- */

/* Xids with short gaps between them: one incident, and what it caused. */
struct burst {
    const struct gp_log_line *lines; /* the first and the last are Xids; others may be between */
    size_t count;
    const struct gp_log_line *worst; /* among equally severe ones, the first */
};

/* Bursts with the same incident on the same GPU. */
struct story {
    struct burst last;
    const struct gp_log_line *first; /* the worst of the first burst */
    size_t bursts;
    unsigned long long times; /* occurrences in the log */
};

static bool belongs(const struct gp_log_line *line, uint64_t last_ns, enum gp_kmsg_clock clock)
{
    return line->kmsg.clock != clock || clock == GP_KMSG_NO_CLOCK ||
           line->kmsg.time_ns <= last_ns + GP_LOG_SILENCE_NS;
}

/* The burst that begins at the line, or after it; false: there is none. */
static bool next_burst(const struct gp_log_line *lines, size_t count, struct burst *ret)
{
    uint64_t last_ns = 0;
    *ret = (struct burst){NULL};
    for (size_t i = 0; i < count; i++) {
        const struct gp_log_line *line = &lines[i];
        if (line->kmsg.kind != GP_KMSG_XID)
            continue;
        if (!ret->lines)
            ret->lines = ret->worst = line;
        else if (!belongs(line, last_ns, ret->worst->kmsg.clock))
            break;
        else if (gp_log_show_verdict(&line->kmsg) > gp_log_show_verdict(&ret->worst->kmsg))
            ret->worst = line;
        if (line->last_ns > last_ns)
            last_ns = line->last_ns;
        ret->count = (size_t)(line - ret->lines) + 1;
    }
    return ret->lines != NULL;
}

static bool is_alike(const struct gp_log_line *a, const struct gp_log_line *b)
{
    return a->kmsg.code == b->kmsg.code && strcmp(a->kmsg.bus_id, b->kmsg.bus_id) == 0 &&
           gp_log_show_verdict(&a->kmsg) == gp_log_show_verdict(&b->kmsg);
}

/* How many there are; beyond STORIES they are only counted. */
static size_t collect(const struct gp_log *log, struct story stories[STORIES])
{
    const struct gp_log_line *lines = log->lines, *end = log->lines + log->count;
    struct burst burst;
    size_t count = 0;
    for (; next_burst(lines, (size_t)(end - lines), &burst); lines = burst.lines + burst.count) {
        size_t i = 0, kept = count < STORIES ? count : STORIES;
        while (i < kept && !is_alike(stories[i].first, burst.worst))
            i++;
        if (i == kept)
            count++;
        if (i == STORIES)
            continue;
        if (i == kept)
            stories[i] = (struct story){.first = burst.worst};
        stories[i].last = burst;
        stories[i].bursts++;
        stories[i].times += burst.worst->repeats + 1;
    }
    return count;
}

/* ---- what is reported of them ---- */

/* The first thing to do about a line that a user may have written. */
static void add_doubt(struct gp_exam *exam, enum gp_verdict verdict)
{
    const struct gp_log *log = gp_log_of(exam);
    if (log->is_shared && verdict >= GP_VERDICT_WARN)
        gp_exam_advice(exam,
                       "first look for this line in journalctl -k: users can write to %s, too "
                       "(logger -t kernel)",
                       log->path);
}

static void add_companions(struct gp_exam *exam, const struct burst *burst)
{
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < burst->count; i++) {
        const struct gp_log_line *line = &burst->lines[i];
        if (line == burst->worst || line->kmsg.kind != GP_KMSG_XID)
            continue;
        if (shown < COMPANIONS)
            gp_log_show_line(exam, line);
        else
            more++;
        shown++;
    }
    if (more)
        gp_exam_evidence(exam, "", "and %zu more Xids", more);
    if (shown)
        gp_exam_why(exam, "The other Xids logged around that time are usually consequences of it.");
}

/* Whether differently named programs caused it on this GPU, and none on another GPU. */
static bool is_hardware_in_doubt(const struct gp_exam *exam, const struct gp_kmsg *k)
{
    const char *name = k->process;
    bool is_several = false;
    for (size_t i = 0; i < exam->log->count; i++) {
        const struct gp_kmsg *other = &exam->log->lines[i].kmsg;
        if (other->kind != GP_KMSG_XID || other->code != k->code)
            continue;
        if (strcmp(other->bus_id, k->bus_id) != 0)
            return false;
        is_several |= other->process[0] && strcmp(other->process, name) != 0;
    }
    return is_several && name[0] && exam->machine.nvidia_count > 1;
}

enum { OFF_THE_BUS = 79 };

/* A GPU that fell off the bus may not have come back from sleep. */
static void add_awake(struct gp_exam *exam, const struct gp_kmsg *k)
{
    char control[16];
    const char *path = gp_exam_text(exam, "/sys/bus/pci/devices/%s/power/control", k->bus_id);
    if (k->code != OFF_THE_BUS || exam->machine.container ||
        !gp_files_line(&exam->files, path, control, sizeof(control)) ||
        strcmp(control, "auto") != 0)
        return;
    gp_exam_evidence(exam, path, "auto: the GPU is suspended while it is idle");
    gp_exam_module_setting(exam, "if it happened while the GPU was idle: keep it awake",
                           "zz-gpu-awake.conf", "options nvidia NVreg_DynamicPowerManagement=0x00");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

enum { GSP_TIMEOUT = 119, GSP_ERROR = 120 };

/* Only the proprietary modules can do without the GPU's firmware, and only on GPUs that do not need
 * the open ones. */
static void add_without_firmware(struct gp_exam *exam, const struct gp_kmsg *k)
{
    if ((k->code != GSP_TIMEOUT && k->code != GSP_ERROR) || exam->machine.container ||
        gp_driver_wish(exam).needs_open || !exam->machine.is_flavour_known)
        return;
    if (exam->machine.is_driver_open) {
        gp_exam_advice(exam, "if it returns, and there is no newer driver:");
        gp_driver_fix_proprietary(exam);
        return;
    }
    gp_exam_module_setting(exam, "if it returns: let the driver work without that firmware",
                           "zz-gpu-firmware.conf", "options nvidia NVreg_EnableGpuFirmware=0");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

static void add_fix(struct gp_exam *exam, const struct gp_kmsg *k, const struct gp_explanation *e)
{
    static const struct {
        const char *action; /* in NVIDIA's catalog */
        const char *command, *note;
    } commands[] = {
        {"RESET_GPU", "sudo nvidia-smi --gpu-reset -i %s",
         "once nothing uses the GPU; if the reset is refused, reboot"},
        {"WORKFLOW_XID_48", "sudo nvidia-smi --gpu-reset -i %s", "when nothing uses it any more"},
        {"RESTART_BM", "sudo reboot", ""},
    };
    if (e->advice[0])
        gp_exam_advice(exam, "%s", e->advice);
    add_awake(exam, k);
    for (size_t i = 0; i < GP_ARRAY_LEN(commands) && !exam->machine.container; i++)
        if (strcmp(e->action, commands[i].action) == 0 && k->bus_id[0])
            gp_exam_command(exam, commands[i].note, commands[i].command, k->bus_id);
    add_without_firmware(exam, k);
    if (k->code == OFF_THE_BUS)
        gp_hardware_advise_cable(exam, k->bus_id);
}

/* Whether the driver could not set a faulty piece of memory aside. */
static bool is_beyond_repair(const struct burst *burst)
{
    enum { NOT_RETIRED = 64 };
    for (size_t i = 0; i < burst->count; i++)
        if (burst->lines[i].kmsg.kind == GP_KMSG_XID && burst->lines[i].kmsg.code == NOT_RETIRED)
            return true;
    return false;
}

/* Whether memory keeps failing, in several incidents since the machine was started: remapping one
 * row after the other does not keep up. */
static bool is_memory_failing(const struct story *story)
{
    enum { DOUBLE_BIT = 48, TOO_MANY = 3 };
    return story->first->kmsg.code == DOUBLE_BIT && story->bursts > 1 && story->times >= TOO_MANY;
}

static void tell(struct gp_exam *exam, const struct story *story)
{
    const struct gp_log_line *worst = story->last.worst;
    const struct gp_kmsg *k = &worst->kmsg;
    enum gp_verdict verdict = gp_log_show_verdict(k);
    struct gp_explanation e;
    if (!gp_explain_kmsg(&exam->arena, k, &e))
        return;
    bool is_past = verdict == GP_VERDICT_FAIL && is_recovered(exam, k->bus_id);
    bool is_doubtful = strcmp(e.fault, "application") == 0 && is_hardware_in_doubt(exam, k);
    if (is_past || (is_doubtful && verdict < GP_VERDICT_WARN))
        verdict = GP_VERDICT_WARN;
    gp_exam_report(
        exam, verdict, "%s%s%s%s: %s", e.title, e.details[0] ? " of " : "", details_of(exam, k, &e),
        story->times > 1 ? gp_exam_text(exam, ", the last of %llu", story->times) : "", e.words);
    if (story->bursts > 1)
        gp_log_show_line(exam, story->first);
    gp_log_show_line(exam, worst);
    add_companions(exam, &story->last);
    if (is_past)
        gp_exam_why(
            exam, "The driver reports that the GPU needs no action now: it has been reset since.");
    else if (is_doubtful)
        gp_exam_why(exam, "Different programs hit this on this GPU, and none on another: the GPU "
                          "may be at fault, not the programs.");
    else if (e.note[0])
        gp_exam_why(exam, "%s", e.note);
    add_doubt(exam, verdict);
    if (is_doubtful)
        gp_exam_advice(exam, "run the programs on another GPU; if they fail only on this one, have "
                             "it tested (dcgmi diag -r 3)");
    else if (!is_past) {
        if (is_beyond_repair(&story->last))
            gp_exam_advice(exam, "have the GPU replaced: it could not set the faulty memory aside "
                                 "(Xid 64); take it out of use until then");
        else if (is_memory_failing(story))
            gp_exam_advice(exam, "the errors return: take the GPU out of use, and have the "
                                 "vendor test and replace it");
        add_fix(exam, k, &e);
    }
}

/* Whether the GPU does not respond on the bus, which explains everything else. */
static bool is_told(struct gp_exam *exam, const struct gp_kmsg *k)
{
    const struct gp_device *gpu = gp_gpuset_device_at(exam, k->bus_id);
    const char *name = gpu ? gp_exam_text(exam, "GPU %u (", gpu->index) : k->bus_id;
    return name[0] && (gp_exam_has_failed(exam, "hardware.bus_lost", name) ||
                       gp_exam_has_failed(exam, "hardware.wakes", name));
}

static void check_xids(struct gp_exam *exam)
{
    struct story stories[STORIES];
    size_t count = collect(gp_log_of(exam), stories);
    for (size_t i = 0; i < count && i < STORIES; i++)
        if (!is_told(exam, &stories[i].last.worst->kmsg))
            tell(exam, &stories[i]);
    if (count > STORIES)
        gp_exam_report(exam, GP_VERDICT_WARN, "and %zu more kinds of incidents, listed by %s",
                       count - STORIES, gp_log_of(exam)->path);
}

/* ---- other lines ---- */

/* What is reported for lines by kind. Lines that the driver checks look for are not here, nor are
 * PCIe errors, which hardware.errors counts. */
static const struct {
    enum gp_kmsg_kind kind;
    enum gp_verdict verdict;
} rows[] = {
    {GP_KMSG_GSP_SILENT, GP_VERDICT_FAIL},  {GP_KMSG_HMM, GP_VERDICT_FAIL},
    {GP_KMSG_AMD_TIMEOUT, GP_VERDICT_WARN}, {GP_KMSG_AMD_RESET, GP_VERDICT_WARN},
    {GP_KMSG_INTEL_HANG, GP_VERDICT_WARN},  {GP_KMSG_KFD_UNSUPPORTED, GP_VERDICT_INFO},
    {GP_KMSG_NCCL_CRASH, GP_VERDICT_INFO},  {GP_KMSG_PEERMEM, GP_VERDICT_INFO},
    {GP_KMSG_OOM, GP_VERDICT_INFO},         {GP_KMSG_WAKE_FAILED, GP_VERDICT_WARN},
    {GP_KMSG_BAR_SMALL, GP_VERDICT_WARN},
};

static unsigned long long count_kind(const struct gp_log *log, enum gp_kmsg_kind kind)
{
    unsigned long long count = 0;
    for (size_t i = 0; i < log->count; i++)
        if (log->lines[i].kmsg.kind == kind)
            count += log->lines[i].repeats + 1;
    return count;
}

static void tell_line(struct gp_exam *exam, enum gp_verdict verdict, const struct gp_log_line *line,
                      unsigned long long times)
{
    struct gp_explanation e;
    if (!gp_explain_line(&exam->arena, line->text, &e))
        return;
    const char *details = details_of(exam, &line->kmsg, &e);
    gp_exam_report(exam, verdict, "%s%s%s", e.words,
                   details[0] ? gp_exam_text(exam, " (%s)", details) : "",
                   times > 1 ? gp_exam_text(exam, ", %llu times", times) : "");
    gp_log_show_line(exam, line);
    add_doubt(exam, verdict);
    if (e.advice[0])
        gp_exam_advice(exam, "%s", e.advice);
    if (line->kmsg.kind == GP_KMSG_AMD_TIMEOUT)
        gp_amd_suspect_gfxoff(exam, line->kmsg.bus_id);
}

/* PCIe errors of a GPU whose counters, which hardware.errors reads, are not there. */
static void tell_pcie(struct gp_exam *exam, enum gp_kmsg_kind kind, unsigned long long least)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const char *bus_id = m->gpus[i].bus_id;
        const char *counters = gp_exam_text(exam, "/sys/bus/pci/devices/%s/aer_dev_fatal", bus_id);
        const struct gp_log_line *line = gp_log_find_for(exam, kind, bus_id);
        if (!line || strcmp(line->kmsg.bus_id, bus_id) != 0 || line->repeats + 1 < least ||
            gp_files_exist(&exam->files, counters))
            continue;
        tell_line(exam, GP_VERDICT_WARN, line, count_kind(gp_log_of(exam), kind));
        return;
    }
}

/* Whether a line follows from another one, or from what another check has reported. */
static bool is_consequence(struct gp_exam *exam, const struct gp_log_line *line, bool has_gsp_xid)
{
    switch (line->kmsg.kind) {
    case GP_KMSG_GSP_SILENT:
        return has_gsp_xid;
    case GP_KMSG_AMD_RESET: /* the driver's answer to work that hangs */
        return gp_log_find_for(exam, GP_KMSG_AMD_TIMEOUT, line->kmsg.bus_id);
    case GP_KMSG_WAKE_FAILED:
        return is_told(exam, &line->kmsg);
    default:
        return false;
    }
}

static void check_messages(struct gp_exam *exam)
{
    enum { MANY = 10 };
    const struct gp_log *log = gp_log_of(exam);
    bool has_gsp_xid = false;
    for (size_t i = 0; i < log->count; i++)
        has_gsp_xid |=
            log->lines[i].kmsg.kind == GP_KMSG_XID &&
            (log->lines[i].kmsg.code == GSP_TIMEOUT || log->lines[i].kmsg.code == GSP_ERROR);
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_log_line *line = gp_log_find(exam, rows[i].kind);
        if (line && !is_consequence(exam, line, has_gsp_xid))
            tell_line(exam, rows[i].verdict, line, count_kind(log, rows[i].kind));
    }
    tell_pcie(exam, GP_KMSG_AER_FATAL, 1);
    tell_pcie(exam, GP_KMSG_AER_NONFATAL, 1);
    tell_pcie(exam, GP_KMSG_AER_CORRECTED, MANY);
}

/* ---- switches ---- */

/* How often a switch has reported this number, up to this line; `ret_is_last`: no later line does.
 */
static unsigned long long count_sxid(const struct gp_log *log, size_t place, bool *ret_is_last)
{
    const struct gp_kmsg *k = &log->lines[place].kmsg;
    unsigned long long count = 0;
    *ret_is_last = true;
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_kmsg *other = &log->lines[i].kmsg;
        if (other->kind != GP_KMSG_SXID || other->code != k->code ||
            strcmp(other->bus_id, k->bus_id) != 0)
            continue;
        count += log->lines[i].repeats + 1;
        *ret_is_last = i <= place;
    }
    return count;
}

static void check_sxids(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    size_t told = 0;
    for (size_t i = 0; i < log->count && told < STORIES; i++) {
        const struct gp_log_line *line = &log->lines[i];
        struct gp_explanation e;
        bool is_last;
        if (line->kmsg.kind != GP_KMSG_SXID)
            continue;
        unsigned long long times = count_sxid(log, i, &is_last);
        if (!is_last || !gp_explain_kmsg(&exam->arena, &line->kmsg, &e))
            continue;
        enum gp_verdict verdict = line->kmsg.is_fatal ? GP_VERDICT_FAIL : GP_VERDICT_INFO;
        gp_exam_report(exam, verdict, "%s of %s%s: %s", e.title, e.details,
                       times > 1 ? gp_exam_text(exam, ", %llu times", times) : "", e.words);
        gp_log_show_line(exam, line);
        if (e.note[0])
            gp_exam_why(exam, "%s", e.note);
        add_doubt(exam, verdict);
        if (e.advice[0])
            gp_exam_advice(exam, "%s", e.advice);
        told++;
    }
}

const struct gp_check gp_checks_log[] = {
    {"log.readable", "the kernel log can be read", {NULL}, is_log_there, check_readable},
    {"log.xid", "the driver has logged no GPU errors", {NULL}, has_log, check_xids},
    {"log.sxid", "no NVSwitch has logged an error", {NULL}, has_log, check_sxids},
    {"log.licence",
     "nothing keeps a virtual GPU from its licence",
     {NULL},
     gp_licence_applies,
     gp_licence_check},
    {"log.messages", "the kernel log has no other GPU problems", {NULL}, has_log, check_messages},
    {0},
};
