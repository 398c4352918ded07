/* What multi-GPU programs depend on, as far as the driver and the kernel report it. */
#include "doctor/checks/health.h"

#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"
#include "doctor/tables.h"

#include <stdio.h>
#include <string.h>

/* ---- peer to peer ---- */

static const struct gp_value *peer_value(const struct gp_entry *entry, enum gp_metric m)
{
    return &entry->values[m - GP_PEER__FIRST];
}

static const struct gp_entries *peers_of(const struct gp_exam *exam)
{
    return &exam->snapshot->lists[gp_list_index(GP_SCOPE_PEER)];
}

/* In MIG mode there is no path between GPUs, and none is expected. */
static bool is_whole(const struct gp_device *gpu)
{
    return !gpu->is_mig && gpu->status == GP_STATUS_OK &&
           strcmp(gp_device_text(gpu, GP_MIG_MODE, ""), "Enabled") != 0;
}

static bool is_whole_peer(const struct gp_exam *exam, int64_t index)
{
    for (size_t i = 0; i < exam->snapshot->device_count; i++)
        if (!exam->snapshot->devices[i].is_mig && exam->snapshot->devices[i].index == index)
            return is_whole(&exam->snapshot->devices[i]);
    return true; /* not queried */
}

static bool is_told(const struct gp_exam *exam, const struct gp_entry *entry)
{
    return is_whole(&exam->snapshot->devices[entry->device]) &&
           gp_value_is_present(peer_value(entry, GP_PEER_READ)) &&
           gp_value_is_present(peer_value(entry, GP_PEER_NUMBER)) &&
           is_whole_peer(exam, peer_value(entry, GP_PEER_NUMBER)->i);
}

bool gp_health_has_peers(struct gp_exam *exam)
{
    for (size_t i = 0; exam->snapshot && i < peers_of(exam)->count; i++)
        if (is_told(exam, &peers_of(exam)->entries[i]))
            return true;
    return false;
}

/* The meaning of the codes in peers.p2p.read. */
static const char *reason_of(const char *code)
{
    static const char *const reasons[][2] = {
        {"CNS", "the chipset does not support it"},
        {"GNS", "the GPU does not support it"},
        {"TNS", "the topology does not support it"},
        {"DR", "disabled by a driver setting"},
        {"NS", "not supported"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(reasons); i++)
        if (strcmp(reasons[i][0], code) == 0)
            return reasons[i][1];
    return "reason unknown";
}

struct pairs {
    size_t all, cut, linked; /* linked: no access although NVLinks connect them */
    const struct gp_entry *first;
};

static struct pairs count_pairs(const struct gp_exam *exam)
{
    struct pairs pairs = {0};
    for (size_t i = 0; i < peers_of(exam)->count; i++) {
        const struct gp_entry *entry = &peers_of(exam)->entries[i];
        const struct gp_value *links = peer_value(entry, GP_PEER_LINKS);
        if (!is_told(exam, entry) || peer_value(entry, GP_PEER_NUMBER)->i <=
                                         (int64_t)exam->snapshot->devices[entry->device].index)
            continue; /* each pair once */
        pairs.all++;
        if (strcmp(peer_value(entry, GP_PEER_READ)->s, "OK") == 0)
            continue;
        bool is_linked = gp_value_is_present(links) && links->i > 0;
        if (pairs.cut == 0 || (is_linked && pairs.linked == 0))
            pairs.first = entry;
        pairs.cut++;
        pairs.linked += is_linked;
    }
    return pairs;
}

void gp_health_run_peers(struct gp_exam *exam)
{
    struct pairs pairs = count_pairs(exam);
    if (pairs.cut == 0)
        return;
    const struct gp_device *gpu = &exam->snapshot->devices[pairs.first->device];
    const char *code = peer_value(pairs.first, GP_PEER_READ)->s;
    gp_exam_report(exam, pairs.linked > 0 ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   pairs.linked > 0
                       ? "%zu of %zu pairs of GPUs cannot read each other's memory, although "
                         "NVLinks connect them"
                       : "%zu of %zu pairs of GPUs cannot read each other's memory directly",
                   pairs.linked > 0 ? pairs.linked : pairs.cut, pairs.all);
    gp_exam_evidence(exam, gp_gpuset_label(exam, gpu), "%s to GPU %lld is %s: %s",
                     GP_METRIC_NAME(GP_PEER_READ),
                     (long long)peer_value(pairs.first, GP_PEER_NUMBER)->i, code, reason_of(code));
    gp_exam_why(exam, "NCCL and others copy through host memory instead, which is slower. Most "
                      "GeForce boards have no other way.");
    if (pairs.linked > 0)
        gp_exam_advice(exam, "look for settings that disable it (NCCL_P2P_DISABLE, NVreg_ "
                             "options), and for NVLink errors in the kernel log");
}

/* ---- RDMA ---- */

static const char folder[] = "/sys/class/infiniband";

/* By the driver, or, if it was not asked, by the PCI ids. */
static bool has_server_board(const struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    const struct gp_machine *m = &exam->machine;
    gp_gpuset_answered(&gpus, exam);
    for (size_t i = 0; i < gpus.count; i++)
        if (strncmp(gp_device_text(gpus.gpus[i], GP_BRAND, ""), "GeForce", 7) != 0)
            return true;
    for (size_t i = 0; gpus.count == 0 && m->is_driver_loaded && i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_NVIDIA && m->gpus[i].chip &&
            !strstr(m->gpus[i].chip->name, "GeForce"))
            return true;
    return false;
}

bool gp_health_has_rdma(struct gp_exam *exam)
{
    char **names;
    return has_server_board(exam) && gp_files_list(&exam->files, &exam->arena, folder, &names) > 0;
}

struct ports {
    size_t active;
    const char *first_active;
};

static void look_at_port(struct gp_exam *exam, const char *adapter, const char *port,
                         struct ports *ports)
{
    char state[32], layer[32];
    const char *at = gp_exam_text(exam, "%s/%s/ports/%s", folder, adapter, port);
    const char *state_path = gp_exam_text(exam, "%s/state", at);
    if (!gp_files_line(&exam->files, state_path, state, sizeof(state)) ||
        !gp_files_line(&exam->files, gp_exam_text(exam, "%s/link_layer", at), layer, sizeof(layer)))
        return;
    if (strstr(state, "ACTIVE")) {
        ports->first_active = ports->active++ == 0 ? state_path : ports->first_active;
    } else if (strstr(state, "INIT") && strcmp(layer, "InfiniBand") == 0) {
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "port %s of the InfiniBand adapter %s is waiting for a subnet manager", port,
                       adapter);
        gp_exam_evidence(exam, state_path, "%s", state);
        gp_exam_why(exam, "The cable is connected, but no subnet manager has assigned an address "
                          "to the port: no data passes.");
        gp_exam_advice(exam,
                       "run a subnet manager in the fabric: on a switch, or opensm on a machine");
    }
}

/* The module refers to functions of the adapters' driver, MLNX_OFED or DOCA, which must be there
 * when it is built; the kernel's own has none. */
static void rebuild(struct gp_exam *exam)
{
    const char *driver = exam->machine.driver, *kernel = exam->machine.kernel;
    if (!gp_files_exist(&exam->files, "/usr/bin/ofed_info") &&
        !gp_files_exist(&exam->files, "/usr/src/ofa_kernel")) {
        gp_exam_advice(exam, "install the adapters' driver for this kernel, DOCA-OFED (formerly "
                             "MLNX_OFED), and then NVIDIA's driver again, which builds "
                             "nvidia-peermem with it");
        return;
    }
    const char *release = gp_exam_quoted(exam, kernel);
    if (driver[0] && kernel[0] &&
        gp_files_exist(&exam->files, gp_exam_text(exam, "/var/lib/dkms/nvidia/%s", driver)))
        gp_exam_command(exam, "build it again, with the adapters' driver that is there now",
                        "sudo dkms build --force nvidia/%s -k %s && sudo dkms install --force "
                        "nvidia/%s -k %s",
                        driver, release, driver, release);
    else
        gp_exam_advice(exam, "install NVIDIA's driver again: it then builds nvidia-peermem with "
                             "the adapters' driver that is there now");
}

void gp_health_run_rdma(struct gp_exam *exam)
{
    char **adapters, **names;
    struct ports ports = {.first_active = ""};
    long n = gp_files_list(&exam->files, &exam->arena, folder, &adapters);
    for (long i = 0; i < n; i++) {
        const char *at = gp_exam_text(exam, "%s/%s/ports", folder, adapters[i]);
        long count = gp_files_list(&exam->files, &exam->arena, at, &names);
        for (long p = 0; p < count; p++)
            look_at_port(exam, adapters[i], names[p], &ports);
    }
    /* The open module exports memory as DMA buffers, which do not need peermem. */
    if (ports.active == 0 || exam->machine.is_driver_open || !exam->machine.is_driver_loaded ||
        gp_files_exist(&exam->files, "/sys/module/nvidia_peermem"))
        return;
    const struct gp_log_known *refused = gp_log_known_of(exam, "peermem.insert");
    gp_exam_report(exam, refused ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the network adapters cannot access GPU memory: nvidia-peermem is not loaded");
    if (refused)
        gp_log_show_known(exam, refused);
    gp_exam_evidence(exam, ports.first_active, "ACTIVE");
    gp_exam_evidence(exam, "/sys/module/nvidia_peermem", "missing");
    gp_exam_why(exam, "Between machines NCCL copies through host memory instead.");
    if (refused)
        rebuild(exam);
    gp_exam_command(exam, "until the next boot", "sudo modprobe nvidia-peermem");
}
