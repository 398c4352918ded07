/* Why the bus has no NVIDIA GPU, although the machine seems to have one: laptops can turn it off.
 */
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/hardware.h"
#include "doctor/readers/install.h"

#include <stdio.h>
#include <string.h>

/* A udev rule that removes NVIDIA GPUs from the bus; laptop power tools write such rules. */
static const char *removing_rule(struct gp_exam *exam)
{
    static const char *const folders[] = {"/etc/udev/rules.d", "/usr/lib/udev/rules.d",
                                          "/lib/udev/rules.d"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++) {
            char text[4096];
            const char *path = gp_exam_text(exam, "%s/%s", folders[f], names[i]);
            if (!strstr(names[i], "nvidia") ||
                gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
                continue;
            const char *removes = strstr(text, "ATTR{remove}=\"1\"");
            if (removes && strstr(text, "0x10de"))
                return path;
        }
    }
    return NULL;
}

/* prime-select keeps its choice here. */
static bool is_prime_on(struct gp_exam *exam)
{
    char line[64];
    return gp_files_line(&exam->files, "/etc/prime-discrete", line, sizeof(line)) && line[0] &&
           strcmp(line, "off") != 0;
}

/* The tool that wrote the rule may also have kept the module from being loaded. */
static void fix_block(struct gp_exam *exam)
{
    const struct gp_block *block = &gp_install_of(exam)->nvidia;
    const char *colon = block->where ? strrchr(block->where, ':') : NULL;
    if (block->kind == GP_BLOCK_NONE || !colon)
        return;
    const char *file = gp_exam_text(exam, "%.*s", (int)(colon - block->where), block->where);
    gp_exam_evidence(exam, block->where, "%s", block->text);
    if (strstr(file, "blacklist-nvidia"))
        gp_exam_command(exam, "it keeps the module from being loaded", "sudo rm %s",
                        gp_exam_quoted(exam, file));
    else
        gp_exam_command(exam, "it keeps the module from being loaded; the original is kept",
                        "sudo sed -i.before '/nvidia/s/^/#/' %s", gp_exam_quoted(exam, file));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

static bool report_rule(struct gp_exam *exam)
{
    const char *rule = removing_rule(exam);
    if (!rule)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "a rule removes NVIDIA's GPU from the bus");
    gp_exam_evidence(exam, rule, "ATTR{remove}=\"1\"");
    gp_exam_why(exam, "A tool that switches between a laptop's GPUs created it to save power.");
    bool is_of_prime = exam->machine.distro == GP_DISTRO_UBUNTU && strncmp(rule, "/etc/", 5) != 0 &&
                       strstr(rule, "pm-nvidia");
    if (is_of_prime && !is_prime_on(exam)) {
        gp_exam_remedy(exam, GP_REMEDY_PRIME_ON_DEMAND, NULL, NULL);
        gp_exam_command(exam, "if the file is still there: an older version left it", "sudo rm %s",
                        gp_exam_quoted(exam, rule));
    } else if (!is_of_prime && gp_files_exist(&exam->files, "/usr/bin/envycontrol")) {
        gp_exam_command(exam, "turn the GPU on again", "sudo envycontrol -s hybrid");
    } else {
        gp_exam_command(exam, is_of_prime ? "left over: prime-select has the GPU on" : "",
                        "sudo rm %s", gp_exam_quoted(exam, rule));
        fix_block(exam);
    }
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Tools that keep their choice in a file. */
static const struct {
    const char *path, *words, *command, *note;
} switches[] = {
    {"/etc/supergfxd.conf", "\"mode\": \"Integrated\"", "supergfxctl -m Hybrid",
     "then log out, or reboot"},
    {"/sys/devices/platform/asus-nb-wmi/dgpu_disable", "1",
     "echo 0 | sudo tee /sys/devices/platform/asus-nb-wmi/dgpu_disable", "then reboot"},
    {"/proc/acpi/bbswitch", "OFF", "echo ON | sudo tee /proc/acpi/bbswitch",
     "until the next boot; current drivers do without bbswitch"},
};

static bool report_switch(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(switches); i++) {
        char text[4096];
        if (gp_files_read(&exam->files, switches[i].path, text, sizeof(text)) < 0 ||
            !strstr(text, switches[i].words))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "NVIDIA's GPU is turned off to save power");
        gp_exam_evidence(exam, switches[i].path, "%s", switches[i].words);
        gp_exam_command(exam, switches[i].note, "%s", switches[i].command);
        return true;
    }
    return false;
}

/* Whether the name of a Thunderbolt device says that it is an enclosure for GPUs. */
static bool is_enclosure(const char *name)
{
    static const char *const marks[] = {"eGPU",          "eGFX",       "Core X",
                                        "Razer Core",    "Node",       "Breakaway",
                                        "Graphics Dock", "GAMING BOX", "XG Station"};
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
        if (strcasestr(name, marks[i]))
            return true;
    return false;
}

/* A Thunderbolt device, such as the enclosure of an external GPU, that nobody has authorized: what
 * is in it is not on the bus. With no driver for such a GPU its name must say what it is, and it is
 * a finding by itself. True if there is one. */
static bool fix_enclosure(struct gp_exam *exam, bool has_driver)
{
    static const char top[] = "/sys/bus/thunderbolt/devices";
    char **names, line[8], name[96], id[64];
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", top, names[i]);
        const char *path = gp_exam_text(exam, "%s/authorized", folder);
        if (!gp_files_line(&exam->files, path, line, sizeof(line)) || strcmp(line, "0") != 0 ||
            !gp_files_line(&exam->files, gp_exam_text(exam, "%s/device_name", folder), name,
                           sizeof(name)) ||
            !gp_files_line(&exam->files, gp_exam_text(exam, "%s/unique_id", folder), id,
                           sizeof(id)) ||
            (!has_driver && !is_enclosure(name)))
            continue;
        if (!has_driver)
            gp_exam_report(exam, GP_VERDICT_WARN, "the external GPU is not connected");
        gp_exam_evidence(exam, path, "0: the Thunderbolt device \"%s\" is not authorized", name);
        gp_exam_why(exam, "A Thunderbolt device is connected only after it was authorized: an "
                          "external GPU in it is not on the bus before.");
        gp_exam_command(exam, "if it is yours: authorize it, now and in future",
                        "sudo boltctl enroll %s", gp_exam_quoted(exam, id));
        return true;
    }
    return false;
}

/* The first Surface Book has a switch for the GPU in its base, which is off at each boot. True if
 * there is one. */
static bool fix_base(struct gp_exam *exam)
{
    static const char path[] = "/sys/bus/platform/devices/MSHW0041:00/dgpu_power";
    if (!gp_files_exist(&exam->files, path))
        return false;
    gp_exam_evidence(exam, path, "present: the switch of the GPU in the base");
    gp_exam_why(exam, "This Surface Book has its GPU turned off until it is turned on there; it is "
                      "on the bus only then.");
    gp_exam_command(exam, "turn it on; with the base attached, and after each boot",
                    "echo 1 | sudo tee %s", path);
    gp_exam_command(exam, "", "sudo modprobe nvidia");
    return true;
}

/* The driver was installed for this kernel, so there was such a GPU, or there should be one. */
static bool report_driver(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (!in->module[0] || !gp_install_library(in) || exam->machine.container ||
        !exam->machine.is_pci_readable)
        return false;
    const struct gp_machine *m = &exam->machine;
    bool is_of_image = gp_machine_is_ostree(m) && m->amd_count + m->intel_count > 0;
    gp_exam_report(exam, is_of_image ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "NVIDIA's driver is installed, but the bus has no NVIDIA GPU");
    gp_exam_evidence(exam,
                     gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
                     "present");
    gp_exam_evidence(exam, "/sys/bus/pci/devices", "no device of NVIDIA");
    if (is_of_image) {
        gp_exam_why(exam, "The system's image has the driver, whether or not the machine has a GPU "
                          "for it.");
        gp_exam_advice(exam, "if it never had one: rebase to the variant of the image without "
                             "NVIDIA's driver (rpm-ostree rebase)");
        return true;
    }
    if (fix_base(exam) || fix_enclosure(exam, true))
        return true;
    gp_exam_why(exam, "The GPU is turned off or not assigned to this machine, its slot or power "
                      "has failed, or it was removed.");
    gp_exam_advice(exam,
                   "look for it with lspci -d 10de:; power the machine off and on; check its "
                   "seating and power cables, and the firmware settings (hybrid graphics, \"Above "
                   "4G Decoding\"); a virtual machine needs a GPU assigned by its host");
    return true;
}

bool gp_hardware_report_gone(struct gp_exam *exam)
{
    return report_rule(exam) || report_switch(exam) || report_driver(exam) ||
           fix_enclosure(exam, false);
}
