/* Enclosures for external GPUs that are not connected as they should be. */
#include "doctor/checks/hardware.h"
#include "doctor/readers/log.h"

#include <stdio.h>
#include <string.h>

static const char top[] = "/sys/bus/thunderbolt/devices";

/* What the names of enclosures for GPUs have in them. The first ones are also names of their USB
 * devices, for lights or fans, which any cable and port of USB-C connects. */
static const char *const marks[] = {"eGPU",   "eGFX", "Razer Core", "GAMING BOX",   "XG Station",
                                    "Core X", "Node", "Breakaway",  "Graphics Dock"};
enum { USB_MARKS = 5 };

static bool is_enclosure(const char *name, size_t mark_count)
{
    for (size_t i = 0; i < mark_count; i++)
        if (strcasestr(name, marks[i]))
            return true;
    return false;
}

bool gp_hardware_fix_enclosure(struct gp_exam *exam, bool is_installed)
{
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
            (!is_installed && !is_enclosure(name, GP_ARRAY_LEN(marks))))
            continue;
        if (!is_installed)
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

/* ---- a cable or port without Thunderbolt ---- */

/* Devices of Thunderbolt or USB4: "0-1", where the machine's own controller is "0-0", and
 * "0-0:1.1" a part of a cable. */
static bool has_thunderbolt_device(struct gp_exam *exam, bool *ret_has_controller)
{
    char **names, rest;
    unsigned domain, route;
    bool has_device = false;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    *ret_has_controller = false;
    for (long i = 0; i < n; i++) {
        *ret_has_controller = *ret_has_controller || strncmp(names[i], "domain", 6) == 0;
        has_device =
            has_device || (sscanf(names[i], "%u-%x%c", &domain, &route, &rest) == 2 && route != 0);
    }
    return has_device;
}

/* The enclosure's device on the USB; false: none is there now. */
static bool find_usb(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    static const char folder[] = "/sys/bus/usb/devices";
    char **names, line[96];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        *ret_where = gp_exam_text(exam, "%s/%s/product", folder, names[i]);
        if (!gp_files_line(&exam->files, *ret_where, line, sizeof(line)) ||
            !is_enclosure(line, USB_MARKS))
            continue;
        *ret_text = gp_exam_text(exam, "%s", line);
        return true;
    }
    return false;
}

/* How often the kernel has found such a device since boot, and the first time. */
static uint64_t count_arrivals(struct gp_exam *exam, const struct gp_log_line **ret_first)
{
    const struct gp_log *log = gp_log_of(exam);
    uint64_t times = 0;
    *ret_first = NULL;
    for (size_t i = 0; i < log->count; i++) {
        if (log->lines[i].kmsg.kind != GP_KMSG_EGPU_USB)
            continue;
        *ret_first = *ret_first ? *ret_first : &log->lines[i];
        times += 1 + log->lines[i].repeats;
    }
    return times;
}

/* What was found once, and is gone, may have been unplugged. Without a controller of Thunderbolt
 * its firmware may connect the GPU, and OCuLink does so beside USB: one of several GPUs may be the
 * enclosure's, as may one of NVIDIA. */
static bool is_certain(const struct gp_exam *exam, bool is_here, uint64_t times,
                       bool has_controller)
{
    const struct gp_machine *m = &exam->machine;
    bool is_there = m->gpu_count > 1 || (m->gpu_count == 1 && m->gpus[0].vendor == GP_PCI_NVIDIA);
    return has_controller && !is_there && (is_here || times > 1);
}

bool gp_hardware_report_cable(struct gp_exam *exam)
{
    const char *where = NULL, *text = NULL;
    const struct gp_log_line *first;
    bool has_controller;
    uint64_t times = count_arrivals(exam, &first);
    bool is_here = find_usb(exam, &where, &text);
    if ((!is_here && times == 0) || has_thunderbolt_device(exam, &has_controller) ||
        gp_log_find(exam, GP_KMSG_TB_DEVICE) || exam->machine.container ||
        (!has_controller && exam->machine.gpu_count > 1))
        return false;
    bool is_sure = is_certain(exam, is_here, times, has_controller);
    gp_exam_report(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the enclosure of an external GPU %s connected by USB only, without Thunderbolt",
                   is_here || times > 1 ? "is" : "was");
    if (is_here)
        gp_exam_evidence(exam, where, "%s", text);
    if (times > 1)
        gp_exam_evidence(exam, first->where, "%s, found %llu times", first->kmsg.body,
                         (unsigned long long)times);
    else if (times == 1)
        gp_exam_evidence(exam, first->where, "%s", first->kmsg.body);
    gp_exam_evidence(exam, top,
                     has_controller ? "no device but the machine's own controller"
                                    : "missing: no controller of Thunderbolt is seen");
    gp_exam_why(exam,
                "Only the enclosure's USB device is connected. Its GPU comes by PCIe, which a "
                "cable or port of USB-C without Thunderbolt or USB4 does not carry.");
    gp_exam_advice(exam, "connect it with a cable for Thunderbolt 3 or 4, or USB4 (marked with a "
                         "lightning bolt or 40, at most 0.8 m long if it is passive), at a port "
                         "that has it, too");
    if (!has_controller)
        gp_exam_advice(exam, "the machine needs a port of Thunderbolt or USB4, which is turned on "
                             "in the firmware settings");
    gp_exam_command(exam, "then: it must be listed",
                    "cat /sys/bus/thunderbolt/devices/*-*/device_name");
    gp_exam_advice(exam,
                   "if it is, but the GPU still is not on the bus: authorize it, with boltctl "
                   "enroll and the enclosure's UUID by boltctl list (the package bolt)");
    return true;
}
