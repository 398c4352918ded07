/* Checks of GPUs that the driver cannot use: hardware.wakes, hardware.regions. */
#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/hardware.h"
#include "doctor/readers/gpuset.h"
#include "doctor/readers/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gp_hardware_path(struct gp_exam *exam, const char *bus_id, const char *name)
{
    return gp_exam_text(exam, "/sys/bus/pci/devices/%s/%s", bus_id, name);
}

static void read_word(struct gp_exam *exam, const char *bus_id, const char *name, char ret[32])
{
    if (!gp_files_line(&exam->files, gp_hardware_path(exam, bus_id, name), ret, 32))
        ret[0] = '\0';
}

bool gp_hardware_is_asleep(struct gp_exam *exam, const char *bus_id)
{
    char state[32], status[32], line[64];
    read_word(exam, bus_id, "power_state", state);
    read_word(exam, bus_id, "power/runtime_status", status);
    if (strcmp(state, "D3cold") == 0 || strncmp(status, "suspend", 7) == 0)
        return true;
    return gp_files_line(&exam->files, "/proc/acpi/bbswitch", line, sizeof(line)) &&
           strncmp(line, bus_id, strlen(bus_id)) == 0 && strstr(line, " OFF");
}

/* ---- waking ---- */

/* A line about a GPU that did not come back: the kernel's, or the driver's afterwards. */
static const struct gp_log_line *find_failure(struct gp_exam *exam, const char *bus_id)
{
    enum { OFF_THE_BUS = 79 };
    const struct gp_log_line *line = gp_log_find_for(exam, GP_KMSG_WAKE_FAILED, bus_id);
    if (!line)
        line = gp_log_find_for(exam, GP_KMSG_BUS_LOST, bus_id);
    return line ? line : gp_log_xid(exam, bus_id, OFF_THE_BUS);
}

/* The option that keeps a driver from suspending its GPU, with its module. */
static const char *awake_option(struct gp_exam *exam, const char *driver)
{
    static const struct {
        const char *driver, *option;
    } options[] = {{"nvidia", "NVreg_DynamicPowerManagement=0x00"},
                   {"nouveau", "runpm=0"},
                   {"amdgpu", "runpm=0"},
                   {"vfio-pci", "disable_idle_d3=1"}};
    const char *module =
        strcmp(driver, "nvidia") == 0 ? gp_exam_quoted(exam, gp_driver_module_name(exam)) : driver;
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++)
        if (strcmp(driver, options[i].driver) == 0)
            return gp_exam_text(exam, "%s %s", module, options[i].option);
    return NULL;
}

/* The file that sets how the driver saves power; another file would not override it. */
static const char *power_setting(struct gp_exam *exam)
{
    static const char folder[] = "/etc/modprobe.d";
    char **names, text[8192];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (gp_files_read(&exam->files, path, text, sizeof(text)) > 0 &&
            strstr(text, "NVreg_DynamicPowerManagement="))
            return path;
    }
    return NULL;
}

static void fix_wake(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *option = awake_option(exam, gpu->driver);
    const char *setting = strcmp(gpu->driver, "nvidia") == 0 ? power_setting(exam) : NULL;
    if (setting) {
        gp_exam_command(exam, "keep the GPU from being suspended while it is idle",
                        "sudo sed -i.before 's/NVreg_DynamicPowerManagement=[0-9a-fx]*/"
                        "NVreg_DynamicPowerManagement=0x00/' %s",
                        gp_exam_quoted(exam, setting));
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    } else if (option) {
        gp_exam_module_setting(exam, "keep the GPU from being suspended while it is idle",
                               "gpu-awake.conf", gp_exam_text(exam, "options %s", option));
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    }
    gp_exam_command(exam, "then switch it on again: only this brings the GPU back",
                    "sudo poweroff");
    gp_exam_advice(exam, "a firmware (BIOS) update of the machine often fixes the cause; without "
                         "the option the GPU saves power again");
}

/* A GPU that is suspended and healthy looks the same, except that nothing has failed to wake it. */
static void check_wake(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    char state[32], status[32];
    const struct gp_device *listed = gp_gpuset_device_at(exam, gpu->bus_id);
    read_word(exam, gpu->bus_id, "power_state", state);
    read_word(exam, gpu->bus_id, "power/runtime_status", status);
    bool is_off = strcmp(state, "D3cold") == 0;
    bool has_failed = strcmp(status, "error") == 0 || (is_off && strcmp(status, "active") == 0);
    bool is_unknown = !state[0] && !status[0]; /* of a copy of the machine's files */
    const struct gp_log_line *line = is_off || has_failed ? find_failure(exam, gpu->bus_id)
                                     : is_unknown
                                         ? gp_log_find_for(exam, GP_KMSG_WAKE_FAILED, gpu->bus_id)
                                         : NULL;
    if (is_unknown && line && strcmp(line->kmsg.bus_id, gpu->bus_id) != 0)
        line = NULL;
    if ((!has_failed && !line) || (listed && listed->status == GP_STATUS_OK))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s does not wake from its power-saving state",
                   gp_driver_gpu_words(exam, gpu));
    if (state[0])
        gp_exam_evidence(exam, gp_hardware_path(exam, gpu->bus_id, "power_state"), "%s", state);
    if (has_failed)
        gp_exam_evidence(exam, gp_hardware_path(exam, gpu->bus_id, "power/runtime_status"), "%s",
                         status);
    if (line)
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    gp_exam_why(exam, "It was suspended while idle, and did not respond when it was needed: a "
                      "fault of the firmware or of power management, rarely of the card. "
                      "Programs that use it hang or report that it has fallen off the bus.");
    fix_wake(exam, gpu);
}

void gp_hardware_check_wakes(struct gp_exam *exam)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        check_wake(exam, &exam->machine.gpus[i]);
}

/* ---- memory regions ---- */

/* Of a device's regions, by the lines of its file `resource`: start, end and flags. One with 64
 * bits takes two lines, of which the second has no flags. */
enum { REGIONS = 6, NEEDED = 2, IS_MEMORY = 0x200 };

/* The region that has no address, of the two that the driver cannot do without: a GPU's registers,
 * which come first, and a window into its memory; −1: both have one, or it is unknown. */
static int missing_region(struct gp_exam *exam, const char *bus_id)
{
    char text[2048];
    char *p = text;
    size_t needed = 0;
    if (gp_files_read(&exam->files, gp_hardware_path(exam, bus_id, "resource"), text,
                      sizeof(text)) <= 0)
        return -1;
    for (int i = 0; i < REGIONS && needed < NEEDED && *p; i++) {
        unsigned long long start = strtoull(p, &p, 16), end = strtoull(p, &p, 16);
        bool is_memory = strtoull(p, &p, 16) & IS_MEMORY;
        if (start == 0 && ((is_memory && end > 0) || i == 0))
            return i;
        needed += is_memory;
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    return -1;
}

/* The last GPU that the driver has not claimed; NULL: it has all. */
static const struct gp_pci_gpu *find_unclaimed(const struct gp_machine *m, size_t *ret_count)
{
    const struct gp_pci_gpu *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]) && strcmp(m->gpus[i].driver, "nvidia") != 0) {
            found = &m->gpus[i];
            ++*ret_count;
        }
    return found;
}

static void explain_regions(struct gp_exam *exam, const struct gp_log_line *line, int region)
{
    if (line)
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    gp_exam_why(exam, "The firmware, or a virtual machine's, found no room for the GPU's memory in "
                      "the address space; no driver can use the GPU like this.");
    if (region == 0 && !gp_machine_is_virtual(&exam->files)) {
        /* the registers have to lie below 4 GiB, where that setting makes no room */
        gp_cmdline_fix(exam, "pci=realloc", "the kernel then assigns the addresses itself; reboot");
        gp_exam_advice(exam, "if that does not help: update the firmware, and turn on \"Above 4G "
                             "Decoding\" in its settings if it has that");
        return;
    }
    gp_exam_advice(exam, "turn on \"Above 4G Decoding\" in the firmware settings, and update the "
                         "firmware; give a virtual machine a larger 64-bit window for PCI devices");
    gp_exam_advice(exam, "if that does not help: add pci=realloc to the kernel command line");
}

void gp_hardware_check_regions(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    size_t count;
    const struct gp_pci_gpu *unclaimed = find_unclaimed(m, &count);
    const struct gp_log_line *line = unclaimed ? gp_log_find(exam, GP_KMSG_BAD_BAR) : NULL;
    bool is_told = false;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        int region = gpu->vendor == GP_PCI_NVIDIA ? missing_region(exam, gpu->bus_id) : -1;
        if (region < 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL, "%s has no memory address",
                       gp_driver_gpu_words(exam, gpu));
        gp_exam_evidence(exam, gp_hardware_path(exam, gpu->bus_id, "resource"),
                         "region %d is not assigned", region);
        explain_regions(exam, line, region);
        is_told = true;
    }
    if (!line || is_told)
        return;
    /* The driver's complaint does not name the GPU in its first line. */
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s has no memory address",
                   count == 1 ? gp_driver_gpu_words(exam, unclaimed) : "a GPU");
    explain_regions(exam, line, -1);
}
