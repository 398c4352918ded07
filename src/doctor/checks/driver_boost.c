/* nvidia-powerd, which raises the power limit of a laptop's GPU: a part of driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/lines.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"
#include "doctor/tables.h"

#include <stdio.h>
#include <string.h>

static const char words[] = "It moves power from the CPU to the GPU (Dynamic Boost); without it a "
                            "laptop gives the GPU only its base power.";
static const char unit[] = "nvidia-powerd.service";

static bool is_nixos(const struct gp_exam *exam)
{
    return strcmp(exam->machine.distro_id, "nixos") == 0;
}

/* ---- whether the laptop has it ---- */

enum has { NO, YES, UNKNOWN };

/* What the driver says of a GPU; releases before 530 or so do not. */
static enum has by_driver(struct gp_exam *exam, const char *bus_id)
{
    static const char key[] = "Notebook Dynamic Boost:";
    const char *path = gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/power", bus_id);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 14, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    if (!found)
        return UNKNOWN;
    found += strlen(key);
    found += strspn(found, " \t");
    return strncmp(found, "Supported", 9) == 0 ? YES
           : strncmp(found, "Not ", 4) == 0    ? NO
                                               : UNKNOWN;
}

/* What the firmware says: it describes the power budget that CPU and GPU share. */
static enum has by_firmware(struct gp_exam *exam)
{
    static const char folder[] = "/sys/bus/acpi/devices";
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/NVDA0820:00", folder)) ? YES
           : gp_files_exist(&exam->files, folder)                                     ? NO
                                                                                      : UNKNOWN;
}

/* It is for GPUs of Ampere and newer. */
static enum has find_boost(struct gp_exam *exam)
{
    enum { AMPERE = 80 };
    const struct gp_machine *m = &exam->machine;
    enum has ret = NO;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (!gp_driver_is_ours(gpu) || !gpu->chip || gpu->chip->compute_capability < AMPERE)
            continue;
        enum has said = by_driver(exam, gpu->bus_id);
        said = said == UNKNOWN ? by_firmware(exam) : said;
        ret = said == YES || ret == NO ? said : ret;
    }
    return ret;
}

/* A copy of a machine may not tell; that the user wants all of its power says that it matters. */
static bool wants_power(struct gp_exam *exam)
{
    char profile[32];
    return gp_files_line(&exam->files, "/sys/firmware/acpi/platform_profile", profile,
                         sizeof(profile)) &&
           strcmp(profile, "performance") == 0;
}

/* Some tools start it only while the machine is not on battery. */
static bool is_on_mains(struct gp_exam *exam)
{
    static const char folder[] = "/sys/class/power_supply";
    char **names, line[16];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 16; i++)
        if (gp_files_line(&exam->files, gp_exam_text(exam, "%s/%s/type", folder, names[i]), line,
                          sizeof(line)) &&
            strcmp(line, "Mains") == 0 &&
            gp_files_line(&exam->files, gp_exam_text(exam, "%s/%s/online", folder, names[i]), line,
                          sizeof(line)) &&
            strcmp(line, "1") == 0)
            return true;
    return false;
}

/* ---- what is missing ---- */

static void report_no_unit(struct gp_exam *exam, const char *program)
{
    static const char policy[] = "nvidia-dbus.conf";
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "nvidia-powerd has no service: the GPU stays at its lower power limit");
    gp_exam_evidence(exam, program, "present");
    gp_exam_evidence(exam, gp_exam_text(exam, "/usr/lib/systemd/system/%s", unit), "missing");
    gp_exam_why(exam, "%s", words);
    gp_exam_command(exam, "the driver's documentation has the unit",
                    "sudo cp /usr/share/doc/*nvidia*/%s /etc/systemd/system/", unit);
    if (!gp_files_exist(&exam->files,
                        gp_exam_text(exam, "/usr/share/dbus-1/system.d/%s", policy)) &&
        !gp_files_exist(&exam->files, gp_exam_text(exam, "/etc/dbus-1/system.d/%s", policy)))
        gp_exam_command(exam, "and the D-Bus policy that the service needs",
                        "sudo cp /usr/share/doc/*nvidia*/%s /etc/dbus-1/system.d/", policy);
    gp_exam_command(exam, "", "sudo systemctl enable --now nvidia-powerd");
}

static void report_off(struct gp_exam *exam, enum gp_verdict verdict)
{
    gp_exam_report(exam, verdict,
                   "nvidia-powerd does not run: the GPU stays at its lower power limit");
    gp_exam_why(exam, "%s", words);
}

/* ---- NixOS: an option makes the service, and it is off by default ---- */

static const char nixos[] = "/etc/nixos";

/* What the files of the configuration say. Few people have more of them, or deeper ones. */
enum { NIXOS_DEPTH = 3, NIXOS_FOLDERS = 64, NIXOS_FILES = 256, NIXOS_BYTES = 1 << 18 };

struct option {
    struct gp_exam *exam;
    size_t folders, files; /* that were looked at */
    const char *set;       /* the file that sets it; NULL: none does */
    bool is_unsure;        /* it is off on purpose, or set in a way that is not understood */
    bool is_part;          /* not all could be read */
};

/* Those to the end of a line. */
static void blank_comments(char *text)
{
    for (char *at = strchr(text, '#'); at; at = strchr(at, '#'))
        memset(at, ' ', strcspn(at, "\n"));
}

static void look_at_text(struct option *o, const char *text, const char *path)
{
    static const char set[] = "dynamicBoost.enable = true";
    bool has_comment = strstr(text, "/*"); /* in which it may be */
    for (const char *at = text; (at = strstr(at, "dynamicBoost")); at++) {
        if (has_comment || strncmp(at, set, strlen(set)) != 0)
            o->is_unsure = true;
        else if (!o->set)
            o->set = gp_exam_text(o->exam, "%s", path);
    }
}

static void look_at_file(struct option *o, const char *path)
{
    struct gp_arena scratch = {0};
    char *text = o->files++ < NIXOS_FILES
                     ? gp_files_text(&o->exam->files, &scratch, path, NIXOS_BYTES, NULL)
                     : NULL;
    if (text) {
        blank_comments(text);
        look_at_text(o, text, path);
    }
    o->is_part = o->is_part || !text;
    gp_arena_fini(&scratch);
}

static void look_at_folder(struct option *o, const char *folder, unsigned depth)
{
    struct gp_arena scratch = {0};
    char **names;
    bool is_over = depth == NIXOS_DEPTH || o->folders++ >= NIXOS_FOLDERS;
    long n = is_over ? 0 : gp_files_list(&o->exam->files, &scratch, folder, &names);
    o->is_part = o->is_part || is_over;
    for (long i = 0; i < n; i++) {
        char path[GP_PATH_SIZE];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (names[i][0] == '.' || length < 0 || (size_t)length >= sizeof(path))
            continue;
        if (gp_lines_ends(names[i], ".nix"))
            look_at_file(o, path);
        else if (!strchr(names[i], '.'))
            look_at_folder(o, path, depth + 1);
    }
    gp_arena_fini(&scratch);
}

/* A configuration may also be elsewhere, and a file may be for another machine: what is not sure is
 * no problem. */
static void report_on_nixos(struct gp_exam *exam, const char *program)
{
    static const char line[] = "hardware.nvidia.dynamicBoost.enable = true;";
    const char *path = gp_exam_text(exam, "%s/configuration.nix", nixos);
    struct option o = {.exam = exam};
    look_at_folder(&o, nixos, 0);
    if (o.is_unsure)
        return;
    bool has_file = gp_files_exist(&exam->files, path);
    bool is_sure = o.set ? strcmp(o.set, path) == 0 : has_file && !o.is_part;
    report_off(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO);
    gp_exam_evidence(exam, program, "present");
    gp_exam_evidence(exam, gp_exam_text(exam, "/etc/systemd/system/%s", unit), "missing");
    if (o.set)
        gp_exam_evidence(exam, o.set, "enables it, which is not built yet%s",
                         is_sure ? "" : ", if this file is part of the configuration");
    else if (has_file)
        gp_exam_evidence(exam, path, "does not set hardware.nvidia.dynamicBoost.enable");
    gp_exam_command(exam,
                    o.set
                        ? ""
                        : gp_exam_text(exam, "after setting, in %s: %s",
                                       has_file ? "configuration.nix" : "the configuration", line),
                    "sudo nixos-rebuild switch");
}

void gp_driver_check_boost(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/nvidia-powerd",
                                           "/run/current-system/sw/bin/nvidia-powerd", NULL};
    const char *program = gp_files_first(&exam->files, programs);
    if (!gp_machine_is_laptop(&exam->files) || !exam->machine.is_driver_loaded || !program ||
        gp_machine_runs(&exam->files, "nvidia-powerd") || gp_service_is_masked(exam, unit))
        return;
    enum has has = find_boost(exam);
    bool is_installed = gp_service_is_installed(exam, unit);
    if (!is_installed && !is_nixos(exam)) {
        if (has != NO)
            report_no_unit(exam, program);
        return;
    }
    if (has == NO || (has == UNKNOWN && !wants_power(exam)) || !is_on_mains(exam))
        return;
    if (!is_installed) {
        report_on_nixos(exam, program);
        return;
    }
    if (gp_service_is_enabled(exam, unit) || has == UNKNOWN)
        return;
    report_off(exam, GP_VERDICT_WARN);
    gp_exam_evidence(exam, unit, "installed, but not enabled");
    gp_exam_command(exam, "", "sudo systemctl enable --now nvidia-powerd");
}
