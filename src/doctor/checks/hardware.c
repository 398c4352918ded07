/* The GPUs as PCI reports them, which needs no driver. */
#include "doctor/checks/hardware.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/tables.h"
#include "model/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char pci_devices[] = "/sys/bus/pci/devices";

/* The number in a device's file; −1: it cannot be read, or is not a number. */
static long device_number(struct gp_exam *exam, const char *bus_id, const char *name)
{
    char line[64], *end;
    if (!gp_files_line(&exam->files, gp_hardware_path(exam, bus_id, name), line, sizeof(line)))
        return -1;
    long number = strtol(line, &end, 10);
    return end == line ? -1 : number;
}

/* ---- present ---- */

/* What would be left of a GPU that is on no bus: a driver, and device files. */
static void show_traces(struct gp_exam *exam)
{
    static const char *const modules[] = {"nvidia", "nouveau", "amdgpu", "radeon", "i915", "xe"};
    static const char *const files[] = {"/dev/nvidiactl", "/dev/kfd", "/dev/dri/renderD128", NULL};
    const char *loaded = "", *file = gp_files_first(&exam->files, files);
    for (size_t i = 0; i < GP_ARRAY_LEN(modules); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "/sys/module/%s", modules[i])))
            loaded = gp_exam_text(exam, "%s%s%s", loaded, *loaded ? ", " : "", modules[i]);
    gp_exam_evidence(exam, "/sys/module", "%s", *loaded ? loaded : "no driver of a GPU is loaded");
    gp_exam_evidence(exam, "/dev", "%s", file ? file : "no device file of a GPU");
}

static void report_none(struct gp_exam *exam)
{
    bool has_pci = gp_files_exist(&exam->files, pci_devices);
    if (gp_hardware_report_gone(exam))
        return;
    if (gp_exam_presence(exam) == GP_PRESENCE_UNKNOWN) {
        gp_exam_unreadable(exam, pci_devices, has_pci ? -EACCES : -ENOENT);
        return;
    }
    bool is_played = exam->snapshot && exam->snapshot->device_count > 0; /* by a simulated driver */
    gp_exam_report(exam, is_played ? GP_VERDICT_OK : GP_VERDICT_INFO,
                   "this machine has no GPU: Linux finds none from NVIDIA, AMD or Intel");
    gp_exam_evidence(exam, pci_devices, "%s",
                     has_pci ? "no display controller or accelerator from these vendors"
                             : "missing: this kernel has no PCI");
    show_traces(exam);
    gp_exam_why(exam, "CUDA, ROCm and other programs that need a GPU fail here, and frameworks "
                      "compute on the CPU. The other checks of GPUs do not apply.");
    gp_exam_advice(exam, "if there should be one: look for it with lspci, then check its seating "
                         "and power cables, and \"Above 4G Decoding\" in the firmware settings; a "
                         "virtual machine needs a GPU assigned by its host");
    gp_exam_advice(exam, "to try gpulse without a GPU: gpulse --sim h100x8");
}

/* PyTorch and CUDA imply NVIDIA; AMD and Intel have their own groups. */
static void check_present(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *list = "";
    if (m->gpu_count == 0 && m->is_driver_loaded) {
        gp_exam_report(exam, GP_VERDICT_SKIP,
                       "the driver is loaded, but the list of PCI devices is hidden");
        gp_exam_evidence(exam, pci_devices, "lists no GPU");
        return;
    }
    if (m->gpu_count == 0) {
        report_none(exam);
        return;
    }
    if (gp_hardware_report_gone(exam))
        return;
    for (size_t i = 0; i < m->gpu_count; i++)
        list = gp_exam_text(exam, "%s%s%s", list, i ? ", " : "",
                            gp_driver_gpu_words(exam, &m->gpus[i]));
    gp_exam_report(exam, GP_VERDICT_OK, "%zu GPU%s: %.600s", m->gpu_count,
                   m->gpu_count == 1 ? "" : "s", list);
    if (m->gpus_left_out > 0)
        gp_exam_report(exam, GP_VERDICT_SKIP,
                       "only the first %d GPUs are examined, %zu more are not", GP_MACHINE_GPUS,
                       m->gpus_left_out);
}

static bool has_pci_gpus(struct gp_exam *exam)
{
    return exam->machine.gpu_count > 0;
}

/* Whether a GPU's file may not be read; this is reported, as the result is then unknown. */
static bool is_closed(struct gp_exam *exam, const char *name)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const char *path = gp_hardware_path(exam, exam->machine.gpus[i].bus_id, name);
        int fd = gp_files_open_file(&exam->files, path);
        if (fd == -EACCES || fd == -EPERM) {
            gp_exam_unreadable(exam, path, fd);
            return true;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    return false;
}

/* ---- off the bus ---- */

enum { WIDTH_OF_NOTHING = 63 }; /* a device that does not answer reads as all ones */

static bool is_lost(struct gp_exam *exam, const char *bus_id, const char **ret_where)
{
    char head[5];
    if (gp_hardware_is_asleep(exam, bus_id))
        return false;
    *ret_where = gp_hardware_path(exam, bus_id, "current_link_width");
    if (device_number(exam, bus_id, "current_link_width") == WIDTH_OF_NOTHING)
        return true;
    *ret_where = gp_hardware_path(exam, bus_id, "config");
    return gp_files_read(&exam->files, *ret_where, head, sizeof(head)) == 4 &&
           memcmp(head, "\xff\xff\xff\xff", 4) == 0;
}

static void check_bus_lost(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    if (is_closed(exam, "current_link_width"))
        return;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const char *where;
        if (!is_lost(exam, m->gpus[i].bus_id, &where))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL, "%s has fallen off the bus",
                       gp_driver_gpu_words(exam, &m->gpus[i]));
        gp_exam_evidence(exam, where, "reads as if the device were absent");
        const struct gp_log_line *line = gp_log_find_for(exam, GP_KMSG_BUS_LOST, m->gpus[i].bus_id);
        if (line)
            gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
        if (m->gpus[i].vendor == GP_PCI_NVIDIA &&
            (gp_hardware_fix_rcu(exam) || gp_hardware_fix_switched(exam)))
            continue;
        gp_exam_why(exam, "It no longer responds. Typical causes are power, heat, its seating or a "
                          "riser; rarely the driver. Programs that used it hang or have exited.");
        gp_exam_advice(exam, "stop the programs that use it, then power the machine off and on: a "
                             "warm reboot often does not bring it back");
        gp_exam_advice(exam,
                       "if it happens again: try another slot and power cable, a lower power "
                       "limit%s, and a newer board firmware; then contact the vendor",
                       m->gpus[i].vendor == GP_PCI_NVIDIA ? " (sudo nvidia-smi -pl)" : "");
        gp_hardware_advise_cable(exam, m->gpus[i].bus_id);
    }
    gp_hardware_check_rcu(exam);
}

/* ---- link ---- */

enum { MOST_HOPS = 16, MOST_LANES = 32 };

/* The devices from a GPU up to the root of the bus, by bus id; the GPU is first. */
static size_t read_path(struct gp_exam *exam, const char *bus_id, char hops[MOST_HOPS][16])
{
    char real[GP_PATH_SIZE];
    size_t count = 0;
    const char *path = gp_exam_text(exam, "/sys/bus/pci/devices/%s", bus_id);
    if (!gp_files_real(&exam->files, path, real))
        return 0;
    for (char *slash = strrchr(real, '/'); slash && count < MOST_HOPS; slash = strrchr(real, '/')) {
        if (!gp_is_bus_id(slash + 1)) /* "pci0000:00" ends the path */
            break;
        (void)snprintf(hops[count++], sizeof(hops[0]), "%.15s", slash + 1);
        *slash = '\0';
    }
    return count;
}

/* Which of these is at the card's edge: the GPU, or the switch on its card that AMD's newer ones
 * have. Between the two are no contacts; what they report of their link is not the slot's. */
static size_t edge_of(struct gp_exam *exam, const struct gp_pci_gpu *gpu, char hops[MOST_HOPS][16],
                      size_t count)
{
    char vendor[16];
    bool has_switch = gpu->vendor == GP_PCI_AMD && count > 3 &&
                      gp_files_line(&exam->files, gp_hardware_path(exam, hops[2], "vendor"), vendor,
                                    sizeof(vendor)) &&
                      strtoul(vendor, NULL, 16) == GP_PCI_AMD;
    return has_switch ? 2 : 0;
}

/* The lanes that a device and the port above it have in common, at most those of the card; 0:
 * unknown. */
static long possible_lanes(struct gp_exam *exam, const char *device, const char *port, long card)
{
    long mine = device_number(exam, device, "max_link_width");
    long above = port ? device_number(exam, port, "max_link_width") : mine;
    long least = above > 0 && above < mine ? above : mine;
    if (least > card)
        least = card;
    return least > 0 && least <= MOST_LANES ? least : 0;
}

static bool was_told(const struct gp_exam *exam, const char *device)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict == GP_VERDICT_WARN && strstr(f->summary, device))
            return true;
    return false;
}

/* Whether all of several GPUs have half of the lanes, on a desktop: its CPU has 16, which two cards
 * share. */
static bool is_shared_out(struct gp_exam *exam)
{
    enum { WHOLE = 16 };
    static const char *const servers[] = {"Xeon", "EPYC", "Opteron", "Threadripper"};
    const struct gp_machine *m = &exam->machine;
    const char *cpu = gp_files_text(&exam->files, &exam->arena, "/proc/cpuinfo", 1 << 14, NULL);
    char hops[MOST_HOPS][16];
    size_t cards = 0;
    bool is_desktop = cpu && (strstr(cpu, "Core(TM)") || strstr(cpu, "AMD"));
    for (size_t i = 0; is_desktop && i < GP_ARRAY_LEN(servers); i++)
        is_desktop = !strstr(cpu, servers[i]);
    for (size_t i = 0; is_desktop && i < m->gpu_count; i++) {
        size_t count = read_path(exam, m->gpus[i].bus_id, hops);
        size_t edge = edge_of(exam, &m->gpus[i], hops, count);
        if (count == 0 || device_number(exam, hops[edge], "max_link_width") != WHOLE)
            continue;
        cards++;
        is_desktop =
            count <= edge + 2 && device_number(exam, hops[edge], "current_link_width") == WHOLE / 2;
    }
    return is_desktop && cards == 2;
}

/* What explains a narrow link; "": it has a fault. Laptops have 8 or 4 of 16 lanes, but not 1. */
static const char *explain_width(struct gp_exam *exam, bool is_of_laptop, long now, long possible)
{
    enum { FEWEST = 4 }; /* a fourth */
    if (is_of_laptop)
        return now * FEWEST < possible ? ""
                                       : "The makers of laptops often wire fewer lanes than the "
                                         "GPU has. ";
    return is_shared_out(exam) ? "Two cards share the 16 lanes of a desktop's CPU. " : "";
}

/* A link connects a device and the port above it. A switch has an upstream and a downstream port,
 * so every second step of the path is a link. */
static void check_way(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    char hops[MOST_HOPS][16];
    size_t count = read_path(exam, gpu->bus_id, hops);
    bool is_of_laptop = gp_hardware_is_wired(exam, gpu);
    size_t first = edge_of(exam, gpu, hops, count);
    for (size_t i = first; i < count; i += 2) {
        const char *port = i + 1 < count ? hops[i + 1] : NULL;
        long now = device_number(exam, hops[i], "current_link_width");
        long card = i == first ? gp_hardware_lanes_of(gpu, MOST_LANES) : MOST_LANES;
        long possible = possible_lanes(exam, hops[i], port, card);
        if (now <= 0 || now >= possible || was_told(exam, hops[i]))
            continue;
        const char *reason =
            i == first || is_of_laptop ? explain_width(exam, is_of_laptop, now, possible) : "";
        gp_exam_report(exam, reason[0] ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       "%s%s runs on %ld of %ld lanes",
                       i > first ? gp_exam_text(exam, "the bridge %s above ", hops[i]) : "",
                       gp_driver_gpu_words(exam, gpu), now, possible);
        gp_exam_can_wait(exam); /* everything works, if slowly */
        gp_exam_evidence(exam, gp_hardware_path(exam, hops[i], "current_link_width"), "%ld", now);
        long told = device_number(exam, hops[i], "max_link_width");
        gp_exam_evidence(
            exam, gp_hardware_path(exam, hops[i], "max_link_width"), "%ld%s",
            told > card ? told : possible,
            told > card ? gp_exam_text(exam, "; cards with this chip have only %ld", card) : "");
        gp_exam_why(exam,
                    "%sCopies between host and GPU take %.2g times as long; the GPU itself "
                    "computes at full speed.",
                    reason, (double)possible / (double)now);
        if (reason[0])
            continue;
        gp_exam_advice(
            exam, "%s",
            is_of_laptop
                ? "turn the machine off, not into standby, and on again; then update its firmware: "
                  "this GPU has no slot"
                : "reseat the card and clean its contacts; check risers and cables, the slot (some "
                  "share their lanes with another slot or an SSD) and its setting in the firmware");
    }
}

static void check_link(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *where;
    if (is_closed(exam, "current_link_width") || is_closed(exam, "max_link_width"))
        return;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (!gp_hardware_is_asleep(exam, m->gpus[i].bus_id) &&
            !is_lost(exam, m->gpus[i].bus_id, &where))
            check_way(exam, &m->gpus[i]);
    gp_hardware_check_speed(exam);
}

/* ---- link errors ---- */

/* The total of a counter file, "TOTAL_ERR_COR 12"; −1: there is none. */
static long read_errors(struct gp_exam *exam, const char *bus_id, const char *name)
{
    char text[2048];
    const char *path = gp_hardware_path(exam, bus_id, name);
    if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
        return -1;
    const char *total = strstr(text, "TOTAL_ERR_");
    return total ? strtol(total + strcspn(total, " "), NULL, 10) : -1;
}

/* Corrected errors are retransmitted and cost only time: a few per month are harmless. */
static const struct {
    const char *file, *words;
    long least;
    enum gp_verdict verdict;
} counters[] = {
    {"aer_dev_fatal", "fatal", 1, GP_VERDICT_WARN},
    {"aer_dev_nonfatal", "uncorrected", 1, GP_VERDICT_WARN},
    {"aer_dev_correctable", "corrected", 10000, GP_VERDICT_INFO},
};

static void check_errors(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t c = 0; c < GP_ARRAY_LEN(counters); c++)
        if (is_closed(exam, counters[c].file))
            return;
    for (size_t i = 0; i < m->gpu_count; i++)
        for (size_t c = 0; c < GP_ARRAY_LEN(counters); c++) {
            long count = read_errors(exam, m->gpus[i].bus_id, counters[c].file);
            if (count < counters[c].least)
                continue;
            gp_exam_report(exam, counters[c].verdict, "%ld %s PCIe error%s at %s since boot", count,
                           counters[c].words, count == 1 ? "" : "s",
                           gp_driver_gpu_words(exam, &m->gpus[i]));
            gp_exam_evidence(exam, gp_hardware_path(exam, m->gpus[i].bus_id, counters[c].file),
                             "%ld in total", count);
            gp_exam_why(exam,
                        "The signal between slot and card is bad: seating, riser, cable or slot.");
            gp_exam_advice(exam, "reseat the card or try another slot; a lower PCIe generation in "
                                 "the firmware settings (Gen 3 instead of Gen 4) is a workaround");
            break; /* the most severe kind */
        }
}

/* ---- between GPUs ---- */

enum { ACS = 0x000d, ACS_REDIRECTS = 0x1c, EXTENDED = 0x100, CONFIG_SIZE = 4096 };

static unsigned word_at(const char *config, size_t at, size_t bytes)
{
    unsigned value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | (unsigned char)config[at + i];
    return value;
}

/* Whether a bridge redirects traffic between GPUs through the root (Access Control Services): its
 * redirect bits. −1: its configuration cannot be read completely. */
static int redirects(struct gp_exam *exam, const char *bridge)
{
    char config[CONFIG_SIZE + 1];
    long n = gp_files_read(&exam->files, gp_hardware_path(exam, bridge, "config"), config,
                           sizeof(config));
    if (n < CONFIG_SIZE)
        return n == 256 ? 0 : -1; /* plain PCI has only these */
    size_t at = EXTENDED;
    for (size_t steps = 0; at >= EXTENDED && at + 8 <= CONFIG_SIZE && steps < 64; steps++) {
        unsigned head = word_at(config, at, 4);
        if ((head & 0xffff) == ACS)
            return (word_at(config, at + 6, 2) & ACS_REDIRECTS) != 0;
        at = head >> 20;
    }
    return 0;
}

/* Whether something is installed that copies between GPUs. */
static bool has_nccl(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        if (envs->list[i].has_torch)
            return true;
    return gp_system_library(exam, "", "libnccl.so.2");
}

/* Traffic between GeForce cards since Turing goes through host memory anyway. */
static bool has_several(struct gp_exam *exam)
{
    enum { TURING = 75 };
    const struct gp_machine *m = &exam->machine;
    size_t count = 0, older = 0;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_chip *chip = m->gpus[i].chip;
        bool is_ours = m->gpus[i].vendor == GP_PCI_NVIDIA;
        bool is_geforce = chip && strstr(chip->name, "GeForce");
        count += is_ours && !is_geforce;
        older +=
            is_ours && is_geforce && chip->compute_capability && chip->compute_capability < TURING;
    }
    return (count > 1 || (older > 1 && has_nccl(exam))) && !m->container &&
           !gp_machine_is_virtual(&exam->files);
}

/* Whether the IOMMU translates the addresses of a GPU, and the evidence. Kernels before 4.19 do not
 * say how: then the command line does. */
static bool is_translated(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                          const char **ret_where, const char **ret_seen)
{
    static const char command_line[] = "/proc/cmdline";
    char type[32], line[4096];
    *ret_where = gp_hardware_path(exam, gpu->bus_id, "iommu_group/type");
    if (gp_files_line(&exam->files, *ret_where, type, sizeof(type))) {
        *ret_seen = gp_exam_text(exam, "%s", type);
        return strncmp(type, "DMA", 3) == 0;
    }
    const char *on = gp_files_line(&exam->files, command_line, line, sizeof(line))
                         ? strstr(line, "_iommu=on")
                         : NULL;
    if (!on || strstr(line, "iommu=pt") ||
        !gp_files_exist(&exam->files, gp_hardware_path(exam, gpu->bus_id, "iommu_group")))
        return false;
    while (on > line && on[-1] != ' ')
        on--;
    *ret_where = command_line;
    *ret_seen = gp_exam_text(exam, "%.*s", (int)strcspn(on, " "), on);
    return true;
}

/* The bridges above the GPUs that redirect traffic. */
struct bridges {
    const char *first; /* NULL: none, or unknown */
    const char *all;   /* separated by spaces */
};

static struct bridges find_redirecting(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    struct bridges found = {.all = ""};
    char hops[MOST_HOPS][16];
    const char *unreadable = NULL;
    for (size_t i = 0; i < m->gpu_count; i++) {
        size_t count =
            m->gpus[i].vendor == GP_PCI_NVIDIA ? read_path(exam, m->gpus[i].bus_id, hops) : 0;
        for (size_t h = 1; h < count; h++) {
            if (strstr(found.all, hops[h])) /* above several GPUs */
                continue;
            int r = redirects(exam, hops[h]);
            if (r > 0) {
                found.all =
                    gp_exam_text(exam, "%s%s%s", found.all, found.first ? " " : "", hops[h]);
                if (!found.first)
                    found.first = gp_exam_text(exam, "%s", hops[h]);
            } else if (r < 0 && !unreadable) {
                unreadable = gp_hardware_path(exam, hops[h], "config");
            }
        }
    }
    if (unreadable && !found.first)
        gp_exam_unreadable(exam, unreadable, -EACCES);
    return found;
}

static void show_bridge(struct gp_exam *exam, const char *bridge)
{
    gp_exam_evidence(exam, gp_hardware_path(exam, bridge, "config"),
                     "Access Control Services redirect");
}

static void end_redirection(struct gp_exam *exam, const struct bridges *bridges)
{
    static const char note[] = "or, after each boot";
    if (!strchr(bridges->all, ' '))
        gp_exam_command(exam, note, "sudo setpci -s %s ECAP_ACS+6.w=0000", bridges->all);
    else
        gp_exam_command(exam, note, "for i in %s; do sudo setpci -s $i ECAP_ACS+6.w=0000; done",
                        bridges->all);
}

/* With the IOMMU on, Linux makes bridges redirect: without it, they no longer do. */
static bool report_iommu(struct gp_exam *exam, const struct bridges *bridges)
{
    const struct gp_machine *m = &exam->machine;
    const char *where = NULL, *seen = NULL, *bridge = bridges->first;
    bool is_on = false;
    for (size_t i = 0; i < m->gpu_count && !is_on; i++)
        is_on =
            m->gpus[i].vendor == GP_PCI_NVIDIA && is_translated(exam, &m->gpus[i], &where, &seen);
    if (!is_on)
        return false;
    gp_exam_report(exam, bridge ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   bridge ? "a bridge redirects traffic between the GPUs to the IOMMU (ACS)"
                          : "the IOMMU translates traffic between the GPUs");
    gp_exam_evidence(exam, where, "%s", seen);
    if (bridge)
        show_bridge(exam, bridge);
    gp_exam_why(exam, "Direct copies between GPUs then go through the CPU: slower, and on some "
                      "machines NCCL hangs.");
    if (bridge) {
        gp_exam_advice(exam, "unless GPUs are assigned to virtual machines, turn it off: on the "
                             "kernel command line, intel_iommu=off or amd_iommu=off in place of "
                             "=on, or in the firmware settings (VT-d, AMD-Vi); then reboot");
        end_redirection(exam, bridges);
    } else
        gp_exam_advice(exam, "if NCCL is slow or hangs: add iommu=pt to the kernel command line");
    return true;
}

static void check_acs(struct gp_exam *exam)
{
    struct bridges bridges = find_redirecting(exam);
    if (report_iommu(exam, &bridges) || !bridges.first)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a bridge redirects traffic between the GPUs through the CPU");
    show_bridge(exam, bridges.first);
    gp_exam_why(exam, "Direct copies between GPUs are slow, and NCCL can hang.");
    gp_exam_advice(exam, "turn ACS off in the firmware settings, unless the GPUs are assigned to "
                         "virtual machines, which need it");
    end_redirection(exam, &bridges);
}

/* With two CPU sockets it matters which one a GPU is attached to. */
static void check_numa(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++) {
        if (m->gpus[i].vendor != GP_PCI_NVIDIA ||
            !gp_files_exist(&exam->files, "/sys/devices/system/node/node1") ||
            device_number(exam, m->gpus[i].bus_id, "numa_node") != -1 ||
            !gp_files_exist(&exam->files, gp_hardware_path(exam, m->gpus[i].bus_id, "numa_node")))
            continue;
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "the firmware does not report which CPU socket the GPUs are attached to");
        gp_exam_evidence(exam, gp_hardware_path(exam, m->gpus[i].bus_id, "numa_node"), "-1");
        gp_exam_why(exam, "Programs cannot choose the nearer CPU, and lose time with each copy.");
        gp_exam_advice(exam,
                       "look for a NUMA or SRAT setting in the firmware, or a firmware update");
        return;
    }
}

static void check_between(struct gp_exam *exam)
{
    check_numa(exam);
    check_acs(exam);
}

/* On WSL, Jetson and Apple chips the GPU is not a PCI device. */
static bool is_on_pci(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return !m->is_wsl && !m->is_jetson && !m->is_apple;
}

const struct gp_check gp_checks_hardware[] = {
    {"hardware.present", "a GPU is present", {0}, is_on_pci, check_present},
    {"hardware.wakes", "every sleeping GPU wakes", {0}, has_pci_gpus, gp_hardware_check_wakes},
    {"hardware.bus_lost", "no GPU has fallen off the bus", {0}, has_pci_gpus, check_bus_lost},
    {"hardware.regions",
     "every GPU has memory addresses",
     {0},
     has_pci_gpus,
     gp_hardware_check_regions},
    {"hardware.link", "every PCIe link has its full width", {0}, has_pci_gpus, check_link},
    {"hardware.errors", "the links have no errors", {0}, has_pci_gpus, check_errors},
    {"hardware.p2p", "GPUs reach each other directly", {0}, has_several, check_between},
    {"hardware.cpu",
     "the CPU has the instructions that GPU programs need",
     {0},
     gp_hardware_lacks_avx,
     gp_hardware_check_cpu},
    {0},
};
