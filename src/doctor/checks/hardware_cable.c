/* A GPU at the end of a cable or an adapter (OCuLink, Thunderbolt, a riser, an M.2 slot), and what
 * to try if such a GPU falls off the bus. */
#include "doctor/checks/hardware.h"

#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/unbound.h"
#include "doctor/readers/log.h"
#include "doctor/tables.h"

#include <stdlib.h>
#include <string.h>

static bool is_removable(struct gp_exam *exam, const char *bus_id, const char **ret_where)
{
    char line[16];
    *ret_where = gp_hardware_path(exam, bus_id, "removable");
    return gp_files_line(&exam->files, *ret_where, line, sizeof(line)) &&
           strcmp(line, "removable") == 0;
}

bool gp_hardware_is_wired(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *where, *code = gpu->chip ? gpu->chip->name : "";
    size_t n = strcspn(code, " ");
    return !is_removable(exam, gpu->bus_id, &where) &&
           ((n > 0 && code[n - 1] == 'M') || gp_machine_is_laptop(&exam->files));
}

static long lanes(struct gp_exam *exam, const char *path)
{
    char line[16];
    return gp_files_line(&exam->files, path, line, sizeof(line)) ? strtol(line, NULL, 10) : 0;
}

/* Four lanes or fewer of a card's 8 or 16 are those of a cable or an adapter, or of a board's
 * second slot. What a lost GPU had is in the log. */
static bool is_narrow(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char **ret_where,
                      const char **ret_text)
{
    enum { CABLE = 4, CARD = 8, LOST = 63 };
    long most = gp_hardware_lanes_of(
        gpu, lanes(exam, gp_hardware_path(exam, gpu->bus_id, "max_link_width")));
    *ret_where = gp_hardware_path(exam, gpu->bus_id, "current_link_width");
    long now = lanes(exam, *ret_where);
    const struct gp_log_line *line = gp_log_find_for(exam, GP_KMSG_PCIE_LIMITED, gpu->bus_id);
    const char *told = line ? strstr(line->kmsg.body, "PCIe x") : NULL;
    told = line && !told ? strstr(line->kmsg.body, "GT/s x") : told; /* before Linux 5.7 */
    if ((now <= 0 || now >= LOST) && told && strcmp(line->kmsg.bus_id, gpu->bus_id) == 0) {
        *ret_where = line->where;
        *ret_text = line->kmsg.body;
        now = strtol(told + 6, NULL, 10);
        bool is_wide = strstr(told, "x8 link)") || strstr(told, "x16 link)"); /* the card */
        return now > 0 && now <= CABLE && is_wide && !gp_hardware_is_wired(exam, gpu);
    }
    *ret_text =
        gp_exam_text(exam, "%ld of %ld lanes, as over OCuLink, a riser or an adapter", now, most);
    return now > 0 && now <= CABLE && most >= CARD && most < LOST &&
           !gp_hardware_is_wired(exam, gpu);
}

/* The services of ports are errors, hotplug and wakeups. Linux leaves them to the firmware unless
 * that hands them over. Servers keep some of them by design. */
static void advise_arguments(struct gp_exam *exam)
{
    static const char native[] = "pcie_ports=native", awake[] = "pcie_aspm=off";
    const bool is_server = gp_machine_is_server(&exam->files);
    /* "compat" counts wherever it stands. */
    const bool is_tried = is_server || gp_unbound_has_argument(exam, native) ||
                          gp_unbound_has_argument(exam, "pcie_ports=compat");
    if (!is_tried) {
        gp_exam_advice(exam,
                       "if it happens again with good power and cables, try the kernel argument "
                       "%s (not on servers): Linux then handles hotplug and errors of the PCIe "
                       "ports, even if the firmware keeps them to itself. It has helped over "
                       "OCuLink",
                       native);
        gp_cmdline_fix(exam, native, "then power off and on");
    }
    gp_exam_advice(exam,
                   "%s one at a time: %sa lower PCIe generation for its port in the firmware "
                   "settings, a shorter cable, another adapter",
                   is_tried ? "if it happens again, try" : "if that does not help, try",
                   is_server || gp_unbound_has_argument(exam, awake)
                       ? ""
                       : "the kernel argument pcie_aspm=off, ");
}

void gp_hardware_advise_cable(struct gp_exam *exam, const char *bus_id)
{
    const struct gp_machine *m = &exam->machine;
    /* A virtual machine sees neither the real ports nor their cables. */
    if (m->container || gp_machine_is_virtual(&exam->files))
        return;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const char *where, *text = "removable: the GPU is outside of the machine";
        if (strcmp(m->gpus[i].bus_id, bus_id) != 0 ||
            (!is_removable(exam, bus_id, &where) && !is_narrow(exam, &m->gpus[i], &where, &text)))
            continue;
        gp_exam_evidence(exam, where, "%s", text);
        advise_arguments(exam);
        if (m->gpus[i].vendor == GP_PCI_NVIDIA)
            gp_exam_link(exam, "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1247");
        return;
    }
}
