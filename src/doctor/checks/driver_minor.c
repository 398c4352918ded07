/* Device files of GPUs that have the wrong number: a finding of driver.nodes. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number that the driver has given a GPU: N of /dev/nvidiaN; −1: unknown. */
static int minor_of(struct gp_exam *exam, const char *path)
{
    static const char key[] = "Device Minor:";
    char text[2048];
    const char *line =
        gp_files_read(&exam->files, path, text, sizeof(text)) > 0 ? strstr(text, key) : NULL;
    const char *number = line ? line + strlen(key) + strspn(line + strlen(key), " \t") : "";
    return number[0] >= '0' && number[0] <= '9' ? (int)strtol(number, NULL, 10) : -1;
}

static const char *information_of(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    return gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/information", gpu->bus_id);
}

static bool has_minor(struct gp_exam *exam, int minor)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]) &&
            minor_of(exam, information_of(exam, &m->gpus[i])) == minor)
            return true;
    return false;
}

/* "/dev/nvidia1", which is the file of no GPU; NULL: there is none. */
static const char *stray_file(struct gp_exam *exam)
{
    static const char start[] = "nvidia";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/dev", &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], start, strlen(start)) != 0)
            continue;
        const char *number = names[i] + strlen(start);
        size_t digits = strspn(number, "0123456789");
        if (digits > 0 && digits < 4 && !number[digits] &&
            !has_minor(exam, (int)strtol(number, NULL, 10)))
            return gp_exam_text(exam, "/dev/%s", names[i]);
    }
    return NULL;
}

/* A udev rule that names the file after the number of another device, such as the DRM card:
 * "file:line". NULL: there is none. */
static const char *numbering_rule(struct gp_exam *exam, const char **ret_file)
{
    static const char *const folders[] = {"/etc/udev/rules.d", "/run/udev/rules.d",
                                          "/usr/lib/udev/rules.d", "/lib/udev/rules.d"};
    enum { MOST = 1 << 18 };
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[f], names[i]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
            unsigned number = 1;
            for (const char *line = text; line && *line; number++) {
                size_t length = strcspn(line, "\n");
                if (line[strspn(line, " \t")] != '#' && memmem(line, length, "mknod ", 6) &&
                    memmem(line, length, "/dev/nvidia%n", 13)) {
                    *ret_file = path;
                    return gp_exam_text(exam, "%s:%u", path, number);
                }
                line += length + (line[length] == '\n');
            }
        }
    }
    return NULL;
}

/* NixOS writes the rules with each generation; its module has asked the driver for the number since
 * nixpkgs' pull request 170695, of 2022. */
static void fix_of_nixos(struct gp_exam *exam, int minor)
{
    gp_exam_command(exam,
                    "for good: take NixOS 22.11 or later, whose rule asks the driver for the "
                    "number (with flakes: nix flake update, after setting that release)",
                    "sudo nixos-rebuild boot --upgrade");
    gp_exam_advice(exam,
                   "to stay with this release: in configuration.nix, services.udev.extraRules = "
                   "''KERNEL==\"nvidia\", RUN+=\"${pkgs.runtimeShell} -c 'mknod -m 666 "
                   "/dev/nvidia%d c 195 %d'\"'';",
                   minor, minor);
}

static void fix_rule(struct gp_exam *exam, const char *file, int minor)
{
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        fix_of_nixos(exam, minor);
        return;
    }
    if (file && strncmp(file, "/etc/", 5) == 0)
        gp_exam_command(exam, "comment the rule out; the original file is kept next to it",
                        "sudo sed -i.before '/nvidia%%n/s/^/#/' %s", gp_exam_quoted(exam, file));
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_MODPROBE, NULL, NULL);
}

bool gp_driver_report_minor(struct gp_exam *exam)
{
    enum { MAJOR = 195 };
    const struct gp_machine *m = &exam->machine;
    const char *rule_file = NULL;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *path = information_of(exam, gpu);
        int minor = gp_driver_is_ours(gpu) ? minor_of(exam, path) : -1;
        const char *file = gp_exam_text(exam, "/dev/nvidia%d", minor);
        const char *stray =
            minor >= 0 && !gp_files_exist(&exam->files, file) ? stray_file(exam) : NULL;
        if (!stray)
            continue;
        const char *rule = numbering_rule(exam, &rule_file);
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the device file of %s has the wrong number: %s, not %s",
                       gp_driver_gpu_words(exam, gpu), stray, file);
        gp_exam_evidence(exam, path, "Device Minor: %d", minor);
        gp_exam_evidence(exam, file, "missing");
        gp_exam_evidence(exam, stray, "present, but no GPU has this number");
        if (rule)
            gp_exam_evidence(exam, rule,
                             "mknod /dev/nvidia%%n: after the number of another device");
        gp_exam_why(exam,
                    "The driver counts its own GPUs, the number of a DRM card (card1) counts those "
                    "of all drivers. nvidia-smi and CUDA look for %s, and find no device.",
                    file);
        gp_exam_command(exam, "create the file now, until the next boot",
                        "sudo mknod -m 666 %s c %d %d", file, MAJOR, minor);
        fix_rule(exam, rule_file, minor);
        return true;
    }
    return false;
}
