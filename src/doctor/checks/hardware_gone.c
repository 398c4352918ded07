/* Why the bus has no NVIDIA GPU, although the machine seems to have one: laptops can turn it off.
 */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/hardware.h"
#include "doctor/readers/install.h"
#include "doctor/readers/services.h"

#include <stdio.h>
#include <string.h>

/* Whether a rule removes GPUs of NVIDIA, and not only the USB ports or the sound of their cards. */
static bool removes_gpu(const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        const char *class = memmem(line, length, "ATTR{class}==", 13);
        if (line[strspn(line, " \t")] != '#' && memmem(line, length, "ATTR{remove}=\"1\"", 16) &&
            memmem(line, length, "0x10de", 6) && (!class || strncmp(class + 13, "\"0x03", 5) == 0))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

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
            if (strstr(names[i], "nvidia") &&
                gp_files_read(&exam->files, path, text, sizeof(text)) >= 0 && removes_gpu(text))
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
    else if (strncmp(file, "/usr/", 5) == 0 || strncmp(file, "/lib/", 5) == 0)
        gp_exam_command(exam, "override the file that keeps the module from being loaded",
                        "sudo ln -s /dev/null /etc/modprobe.d/%s",
                        gp_exam_quoted(exam, strrchr(file, '/') + 1));
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
        gp_exam_remedy(exam, GP_REMEDY_PRIME_ON_DEMAND, gp_driver_prime_mode(exam), NULL);
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

/* ---- what has removed it since the kernel found it ---- */

static bool has_driver(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    return in->module[0] && gp_install_library(in) && !exam->machine.container &&
           exam->machine.is_pci_readable;
}

static void show_left(struct gp_exam *exam)
{
    const char *left = gp_hardware_left_function(exam);
    if (left)
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s", left),
                         "a part of NVIDIA's card, whose GPU was removed from the bus");
}

/* Services that take the GPU off the bus at boot, of programs that turn it on only when it is used.
 */
static const struct {
    const char *unit, *program;
    const char *use;     /* the tool's own way to the GPU */
    const char *word;    /* of a release that has the command; NULL: none has one */
    const char *command; /* turns it on until the next boot */
} removers[] = {
    {"nvx.service", "nvidia-exec", "nvx start PROGRAM", "off-boot", "sudo nvx on"},
    {"nvidia-xrun-pm.service", "nvidia-xrun", "nvidia-xrun PROGRAM, on a text console", NULL, NULL},
};

/* The device that a command removes from the bus, "0000:01:00.0"; false: it removes none, or brings
 * back what it has removed: a reset, after which only a fault keeps the GPU away. */
static bool find_removed(const char *command, char *ret, size_t size)
{
    static const char place[] = "/sys/bus/pci/devices/", mark[] = "/remove";
    size_t n = 0;
    const char *at = strstr(command, place);
    if (!at || strstr(command, "/rescan"))
        return false;
    for (at += strlen(place); *at && *at != '/' && n + 1 < size; at++)
        if (*at != '\\')
            ret[n++] = *at;
    ret[n] = '\0';
    return n > 2 && strncmp(at, mark, strlen(mark)) == 0;
}

/* Whether a service is about NVIDIA's GPU by its name; "gpu" alone may mean another one. */
static bool is_named(const char *service, const char *id)
{
    bool is_gpu = strcasestr(service, "gpu") && !strcasestr(service, "amd") &&
                  !strcasestr(service, "radeon") && strcmp(id + strlen(id) - 2, ".0") == 0;
    return is_gpu || strcasestr(service, "nvidia");
}

/* Whether the command of a service removes NVIDIA's GPU: the device has no file now, and was of the
 * card of which a part is left; without one, the service is about that GPU by its name. */
static bool is_removal(struct gp_exam *exam, const struct gp_service_setting *command)
{
    char id[16];
    if (!find_removed(command->value, id, sizeof(id)))
        return false;
    const char *left = gp_hardware_left_function(exam);
    bool is_of_card =
        left ? strncmp(left, id, strlen(id) - 1) == 0 : is_named(command->service, id);
    return is_of_card &&
           !gp_files_exist(&exam->files, gp_exam_text(exam, "/sys/bus/pci/devices/%s", id)) &&
           gp_hardware_is_started(exam, command->service);
}

static void fix_service(struct gp_exam *exam, const char *unit, const char *command)
{
    gp_exam_why(exam, "This saves power. Until the GPU is back, no program can use it, nor "
                      "the screens at its ports: on many laptops HDMI is one of them.");
    if (command) {
        gp_exam_command(exam, "turn it on until the next boot; then log out and in", "%s", command);
    } else {
        gp_exam_command(exam, "turn it on until the next boot; then log out and in",
                        "echo 1 | sudo tee /sys/bus/pci/rescan");
        gp_exam_command(exam, "", "sudo modprobe nvidia_drm");
    }
    gp_exam_command(exam, "or, for good: leave it on at boot", "sudo systemctl disable %s",
                    gp_exam_quoted(exam, unit));
    fix_block(exam);
    gp_driver_fix_reboot(exam, "");
}

static bool report_known_service(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(removers); i++) {
        const char *unit = removers[i].unit;
        if (!gp_hardware_is_started(exam, unit))
            continue;
        const char *start = gp_service_value(exam, unit, "ExecStart");
        bool has_command = removers[i].word && start && strstr(start, removers[i].word);
        gp_exam_report(exam, gp_hardware_is_missed(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "%s has taken NVIDIA's GPU off the bus", removers[i].program);
        gp_exam_evidence(exam, unit, "is started at boot%s%s", start ? ": " : "",
                         start ? start : "");
        show_left(exam);
        gp_exam_advice(exam, "start a program on it: %s; or", removers[i].use);
        fix_service(exam, unit, has_command ? removers[i].command : NULL);
        return true;
    }
    return false;
}

static bool report_own_service(struct gp_exam *exam)
{
    enum { MOST = 64 };
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST);
    for (size_t i = 0; i < n; i++) {
        if (!is_removal(exam, &commands[i]))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "the service %s has taken NVIDIA's GPU off the bus",
                       commands[i].service);
        gp_exam_evidence(exam, commands[i].where, "%s", commands[i].value);
        show_left(exam);
        fix_service(exam, commands[i].service, NULL);
        return true;
    }
    return false;
}

/* A tool whose file keeps the module out also takes the GPU off the bus, as system76-power does. */
static bool report_tool(struct gp_exam *exam)
{
    const struct gp_block *block = &gp_install_of(exam)->nvidia;
    const char *colon = block->where ? strrchr(block->where, ':') : NULL;
    if (block->kind == GP_BLOCK_NONE || !colon || strstr(block->where, "optimus-manager"))
        return false;
    const char *file = gp_exam_text(exam, "%.*s", (int)(colon - block->where), block->where);
    if (!gp_driver_is_of_tool(exam, file))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "NVIDIA's GPU is turned off to save power");
    gp_exam_evidence(exam, block->where, "%s", block->text);
    show_left(exam);
    gp_exam_why(exam, "The tool that wrote this file keeps the driver out, and turns the GPU off.");
    (void)gp_driver_fix_by_tool(exam, file);
    gp_driver_fix_reboot(exam, "");
    return true;
}

static bool report_removed(struct gp_exam *exam)
{
    return (has_driver(exam) || gp_hardware_left_function(exam)) &&
           (report_known_service(exam) || report_own_service(exam) ||
            gp_hardware_report_optimus(exam) || report_tool(exam));
}

/* ---- what else it may be ---- */

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

/* Something unknown has removed the GPU, and left another part of its card. */
static bool fix_removed(struct gp_exam *exam)
{
    if (!gp_hardware_left_function(exam))
        return false;
    show_left(exam);
    gp_exam_why(exam, "The kernel found the card at boot; a tool, a service or a rule has removed "
                      "the GPU since, as they do to save power.");
    gp_exam_command(exam, "turn it on until the next boot; then log out and in",
                    "echo 1 | sudo tee /sys/bus/pci/rescan");
    gp_exam_command(exam, "", "sudo modprobe nvidia_drm");
    gp_exam_advice(exam, "for good: turn off what removes it, a tool that switches between the "
                         "GPUs of a laptop, or a service or udev rule that writes to remove");
    return true;
}

/* The driver was installed for this kernel, so there was such a GPU, or there should be one. */
static bool report_driver(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (!has_driver(exam))
        return false;
    const struct gp_machine *m = &exam->machine;
    bool is_of_image = gp_machine_is_ostree(m) && m->amd_count + m->intel_count > 0;
    gp_exam_report(exam, is_of_image ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "NVIDIA's driver is installed, but the bus has no NVIDIA GPU");
    gp_exam_evidence(exam,
                     gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
                     "present");
    gp_exam_evidence(exam, "/sys/bus/pci/devices", "no GPU of NVIDIA");
    if (is_of_image) {
        gp_exam_why(exam, "The system's image has the driver, whether or not the machine has a GPU "
                          "for it.");
        gp_exam_advice(exam, "if it never had one: rebase to the variant of the image without "
                             "NVIDIA's driver (rpm-ostree rebase)");
        return true;
    }
    if (fix_base(exam) || gp_hardware_fix_enclosure(exam, true) || fix_removed(exam))
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
    bool is_without = exam->machine.nvidia_count == 0;
    return (is_without && (report_rule(exam) || report_switch(exam) || report_removed(exam) ||
                           report_driver(exam))) ||
           gp_hardware_fix_enclosure(exam, false) || gp_hardware_report_cable(exam);
}
