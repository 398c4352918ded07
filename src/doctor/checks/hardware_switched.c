/* A GPU that fell off the bus because a laptop's tool turned it off and on, or that
 * optimus-manager has taken off it. */
#include "doctor/checks/driver.h"
#include "doctor/checks/hardware.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

static const char bbswitch[] = "/proc/acpi/bbswitch";
static const char optimus_settings[] = "/etc/optimus-manager/optimus-manager.conf";

struct setting {
    const char *value;
    const char *where; /* "file:line" */
};

/* A line "key=value" of this file; false: it has none. */
static bool find_setting(struct gp_exam *exam, const char *path, const char *key,
                         struct setting *ret)
{
    enum { MOST = 1 << 14 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    size_t n = strlen(key);
    unsigned number = 1;
    for (const char *line = text; line; line = strchr(line, '\n'), number++) {
        line += *line == '\n';
        size_t space = strncmp(line, key, n) == 0 ? strspn(line + n, " \t") : 0;
        if (strncmp(line, key, n) != 0 || line[n + space] != '=')
            continue;
        const char *value = line + n + space + 1;
        value += strspn(value, " \t");
        ret->value = gp_exam_text(exam, "%.*s", (int)strcspn(value, " \t\r\n"), value);
        ret->where = gp_exam_text(exam, "%s:%u", path, number);
        return true;
    }
    return false;
}

/* What optimus-manager does: the user's file, then its own, which has the defaults. */
static bool find_optimus(struct gp_exam *exam, const char *key, struct setting *ret)
{
    return find_setting(exam, optimus_settings, key, ret) ||
           find_setting(exam, "/usr/share/optimus-manager.conf", key, ret);
}

static void set_reset(struct gp_exam *exam)
{
    struct setting mine;
    const char *text = gp_files_text(&exam->files, &exam->arena, optimus_settings, 1 << 14, NULL);
    if (find_setting(exam, optimus_settings, "pci_reset", &mine))
        gp_exam_command(exam, "do not reset the GPU",
                        "sudo sed -i 's/^pci_reset.*/pci_reset=no/' %s", optimus_settings);
    else if (text && strstr(text, "[optimus]"))
        gp_exam_command(exam, "do not reset the GPU",
                        "sudo sed -i '/^\\[optimus\\]/a pci_reset=no' %s", optimus_settings);
    else
        gp_exam_command(exam, "do not reset the GPU",
                        "printf '[optimus]\\npci_reset=no\\n' | sudo tee -a %s", optimus_settings);
}

/* optimus-manager unloads bbswitch and resets the GPU on the bus before it loads the module, which
 * takes some GPUs that bbswitch has just turned on off the bus (its issue 41). */
static bool fix_reset(struct gp_exam *exam)
{
    struct setting method, reset;
    if (!gp_files_exist(&exam->files, "/usr/bin/optimus-manager") ||
        !find_optimus(exam, "switching", &method) || strcmp(method.value, "bbswitch") != 0 ||
        !find_optimus(exam, "pci_reset", &reset) || strcmp(reset.value, "no") == 0)
        return false;
    gp_exam_evidence(exam, method.where, "switching=%s", method.value);
    gp_exam_evidence(exam, reset.where, "pci_reset=%s", reset.value);
    gp_exam_why(exam, "optimus-manager turns the GPU on with bbswitch, then resets it on the bus "
                      "before it loads the module: with bbswitch, the GPU is lost in this reset.");
    set_reset(exam);
    gp_exam_advice(exam, "then power the machine off and on");
    gp_exam_advice(exam, "or use switching=none or switching=nouveau in place of bbswitch");
    return true;
}

/* Since 4.8 the kernel turns off the port above the GPU by itself, and bbswitch knows nothing of
 * that (its issue 140). */
static bool fix_bbswitch(struct gp_exam *exam)
{
    char line[4096];
    if (!gp_files_exist(&exam->files, bbswitch) ||
        gp_version_compare(exam->machine.kernel, "4.8") < 0)
        return false;
    bool is_off = gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) &&
                  strstr(line, "pcie_port_pm=off");
    gp_exam_evidence(exam, bbswitch, "present: bbswitch turns the GPU off and on");
    gp_exam_why(exam, "bbswitch turns the GPU off and on, and the kernel does so with the PCIe "
                      "port above it: together they can lose the GPU.");
    gp_exam_advice(exam,
                   "power the machine off and on: a warm reboot often does not bring it back");
    gp_exam_advice(exam, "remove bbswitch, and what uses it (Bumblebee, nvidia-xrun): current "
                         "kernels and drivers save power by themselves; use PRIME render offload");
    if (!is_off)
        gp_exam_advice(exam, "or keep bbswitch, and add pcie_port_pm=off to the kernel command "
                             "line");
    return true;
}

bool gp_hardware_fix_switched(struct gp_exam *exam)
{
    return fix_reset(exam) || fix_bbswitch(exam);
}

/* Whether optimus-manager removes the GPU at boot: only its daemon does so, and only in the mode in
 * which the session runs on the other GPU. */
static bool removes_at_boot(struct gp_exam *exam)
{
    struct setting mode;
    bool is_kept = find_optimus(exam, "startup_mode", &mode) &&
                   (strcmp(mode.value, "nvidia") == 0 || strcmp(mode.value, "hybrid") == 0);
    return gp_hardware_is_started(exam, "optimus-manager.service") &&
           (!is_kept || gp_hardware_left_function(exam));
}

bool gp_hardware_report_optimus(struct gp_exam *exam)
{
    struct setting removes;
    if (!gp_files_exist(&exam->files, "/usr/bin/optimus-manager") ||
        !find_optimus(exam, "pci_remove", &removes) || strcmp(removes.value, "yes") != 0 ||
        !removes_at_boot(exam))
        return false;
    /* without another part of the card nothing says that it was there at this boot */
    gp_exam_report(exam, gp_hardware_is_missed(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "optimus-manager %s NVIDIA's GPU off the bus",
                   gp_hardware_left_function(exam) ? "has taken" : "may have taken");
    gp_exam_evidence(exam, removes.where, "pci_remove=yes");
    gp_exam_why(exam, "It does so to save power, while the session runs on the other GPU.");
    gp_exam_command(exam, "use it instead of the other GPU; this ends the session",
                    "optimus-manager --switch nvidia");
    return true;
}
