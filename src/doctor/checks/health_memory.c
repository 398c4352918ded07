/* MIG instances, and GPU memory that belongs to no process. */
#include "doctor/checks/health.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "proc/holders.h"

#include <stdio.h>
#include <string.h>

/* ---- MIG ---- */

static bool is_on(const struct gp_device *gpu, enum gp_metric m)
{
    return strcmp(gp_device_text(gpu, m, ""), "Enabled") == 0;
}

bool gp_health_has_mig(struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (is_on(gpus.gpus[i], GP_MIG_MODE) || is_on(gpus.gpus[i], GP_MIG_MODE_PENDING))
            return true;
    return false;
}

static bool has_instance(const struct gp_exam *exam, const struct gp_device *gpu)
{
    const struct gp_snapshot *s = exam->snapshot;
    return gpu + 1 < s->devices + s->device_count && gpu[1].is_mig;
}

/* The kernel module's view: it includes instances that this user may not use. */
enum parts { PARTS_UNKNOWN, PARTS_NONE, PARTS_GPU_INSTANCES, PARTS_WHOLE };

static enum parts parts_of(struct gp_exam *exam, const struct gp_device *gpu)
{
    char path[96], **names, **parts;
    double minor = gpu->index;
    (void)gp_device_number(gpu, GP_MINOR_NUMBER, &minor);
    int n = snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%.0f/mig", minor);
    long count = gp_files_list(&exam->files, &exam->arena, path, &names);
    enum parts found = count < 0 ? PARTS_UNKNOWN : PARTS_NONE;
    for (long i = 0; i < count; i++) {
        if (strncmp(names[i], "gi", 2) != 0)
            continue;
        found = found == PARTS_WHOLE ? found : PARTS_GPU_INSTANCES;
        (void)snprintf(path + n, sizeof(path) - (size_t)n, "/%.16s", names[i]);
        long inner = gp_files_list(&exam->files, &exam->arena, path, &parts);
        for (long p = 0; p < inner; p++)
            if (strncmp(parts[p], "ci", 2) == 0)
                found = PARTS_WHOLE;
    }
    return found;
}

static void report_empty(struct gp_exam *exam, const struct gp_gpuset *set, enum parts parts)
{
    static const enum gp_metric metrics[] = {GP_MIG_MODE};
    const char *list = gp_gpuset_list(exam, set);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   parts == PARTS_GPU_INSTANCES
                       ? "%s: GPU instances without compute instances, so CUDA finds no device"
                       : "%s: MIG mode is on without an instance, so CUDA finds no device",
                   gp_gpuset_names(exam, set));
    gp_gpuset_evidence(exam, set, metrics, 1);
    gp_exam_why(exam, "In MIG mode programs use instances, never the whole GPU.");
    if (parts == PARTS_GPU_INSTANCES) {
        gp_exam_command(exam, "add the compute instances", "sudo nvidia-smi mig -cci -i %s", list);
        return;
    }
    gp_exam_command(exam, "to use the whole GPU", "sudo gpulse set mig-mode=off -i %s", list);
    gp_exam_command(exam, "or partition it; gpulse query --rows mig_profiles lists the profiles",
                    "sudo gpulse set mig-instances=PROFILE,… -i %s", list);
}

void gp_health_run_mig(struct gp_exam *exam)
{
    static const enum gp_metric modes[] = {GP_MIG_MODE, GP_MIG_MODE_PENDING};
    struct gp_gpuset gpus, empty[PARTS_WHOLE] = {{.count = 0}}, pending = {.count = 0};
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct gp_device *gpu = gpus.gpus[i];
        if (is_on(gpu, GP_MIG_MODE) && !has_instance(exam, gpu)) {
            enum parts parts = parts_of(exam, gpu);
            if (parts != PARTS_WHOLE)
                gp_gpuset_add(&empty[parts == PARTS_UNKNOWN ? PARTS_NONE : parts], gpu);
        }
        if (gp_device_text(gpu, GP_MIG_MODE_PENDING, "")[0] &&
            is_on(gpu, GP_MIG_MODE) != is_on(gpu, GP_MIG_MODE_PENDING))
            gp_gpuset_add(&pending, gpu);
    }
    for (int parts = PARTS_NONE; parts < PARTS_WHOLE; parts++)
        if (empty[parts].count > 0)
            report_empty(exam, &empty[parts], (enum parts)parts);
    if (pending.count == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s: a pending MIG mode change needs a reset",
                   gp_gpuset_names(exam, &pending));
    gp_gpuset_evidence(exam, &pending, modes, GP_ARRAY_LEN(modes));
    gp_health_prescribe(exam, GP_CURE_RESET, &pending);
}

/* ---- memory without a process ---- */

enum { TIMEOUT_S = 2 };
static const double least_bytes = 0x1p30; /* smaller amounts are contexts of the driver */

bool gp_health_has_unattributed(struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    double rest;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (gp_device_number_now(gpus.gpus[i], GP_MEMORY_UNATTRIBUTED, &rest))
            return !exam->is_simulated || !exam->files.is_here;
    return false;
}

static bool is_needed(const struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    double rest;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (gp_device_number_now(gpus.gpus[i], GP_MEMORY_UNATTRIBUTED, &rest) &&
            rest >= least_bytes)
            return true;
    return false;
}

/* The verdicts that are fixable or surprising; the others explain themselves. */
static void report_account(struct gp_exam *exam, const struct gp_account *account)
{
    static const enum gp_metric metrics[] = {GP_MEMORY_UNATTRIBUTED, GP_MEMORY_USED};
    struct gp_gpuset set = {.gpus = {account->device}, .count = 1};
    bool is_wrong =
        account->verdict == GP_ACCOUNT_LEFTOVERS || account->verdict == GP_ACCOUNT_DRIVER;
    if ((!is_wrong && account->verdict != GP_ACCOUNT_HOLDERS) || account->rest.n < least_bytes)
        return;
    gp_exam_report(exam, is_wrong ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s: no process that the driver lists accounts for %.1f GiB of used GPU memory",
                   gp_gpuset_names(exam, &set), account->rest.n / 0x1p30);
    gp_gpuset_evidence(exam, &set, metrics, GP_ARRAY_LEN(metrics));
    for (size_t i = 0; i < account->suspect_count && i < GP_GPUSET_SHOWN; i++)
        gp_exam_evidence(exam, gp_exam_text(exam, "/proc/%u", account->suspects[i].holder->pid),
                         "has the GPU open");
    if (account->verdict == GP_ACCOUNT_LEFTOVERS) {
        gp_exam_why(exam, "A finished job left processes running.");
        gp_exam_command(exam, "terminate them", "gpulse reclaim -i %u", account->device->index);
    } else if (account->verdict == GP_ACCOUNT_HOLDERS) {
        gp_exam_command(exam, "show who has the GPU open", "gpulse ps --explain -i %u",
                        account->device->index);
    } else {
        gp_exam_why(exam, "No process has the GPU open: the driver did not release the memory.");
        gp_health_prescribe(exam, GP_CURE_RESET, &set);
    }
}

void gp_health_run_unattributed(struct gp_exam *exam)
{
    struct gp_holders holders;
    struct gp_account *accounts = NULL;
    size_t count = 0;
    struct gp_err err = {0};
    if (!is_needed(exam))
        return;
    int r = gp_account_find_holders(exam->files.is_here ? NULL : exam->files.root,
                                    TIMEOUT_S * GP_NS_PER_S, &holders, &err);
    exam->is_stuck = exam->is_stuck || r == GP_ETIMEOUT;
    if (r < 0) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "unknown who has the GPUs open: %s", err.text);
        return;
    }
    if (gp_accounts_make(exam->snapshot, &holders, &accounts, &count) < 0)
        gp_exam_report(exam, GP_VERDICT_SKIP, "unknown who has the GPUs open: %s",
                       gp_err_text(GP_ENOMEM));
    for (size_t i = 0; i < count; i++)
        report_account(exam, &accounts[i]);
    gp_accounts_free(accounts, count);
    gp_holders_fini(&holders);
}
