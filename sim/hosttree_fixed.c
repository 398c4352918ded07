/* What does not move on a host: its users, GPUs, driver, reservations and files. */
#include "sim/hosttree_internal.h"

#include "base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* The machine's users, then those of this computer: jobs on simulated GPUs belong to them. */
static void put_users(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    char real[65536];
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    long n = gp_io_read("/etc/passwd", real, sizeof(real));
    for (size_t i = 0; i < host->user_count; i++)
        gp_strbuf_addf(&sb, "%s:x:%" PRIu64 ":%" PRIu64 "::/home/%s:/bin/bash\n",
                       host->users[i].name, host->users[i].uid, host->users[i].uid,
                       host->users[i].name);
    gp_strbuf_add(&sb, real, n > 0 ? (size_t)n : 0);
    sim_tree_built(tree, "/etc", "passwd", &sb);
    gp_strbuf_fini(&sb);
}

static void put_gpu(struct sim_hosttree *tree, const struct sim_device *device)
{
    char address[16], folder[64], path[80];
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    const struct sim_value *name = &device->answers[SIM_NAME];
    (void)snprintf(address, sizeof(address), "%04x:%02x:%02x.0", device->pci_domain,
                   device->pci_bus, device->pci_slot);
    (void)snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", address);
    gp_strbuf_addf(&sb, "0x%04x\n", device->pci_device_id & 0xffff);
    sim_tree_built(tree, folder, "vendor", &sb);
    gp_strbuf_addf(&sb, "0x%04x\n", device->pci_device_id >> 16);
    sim_tree_built(tree, folder, "device", &sb);
    gp_strbuf_adds(&sb, "0x030200\n");
    sim_tree_built(tree, folder, "class", &sb);
    gp_strbuf_adds(&sb, "active\n");
    sim_tree_built(tree, folder, "power/runtime_status", &sb);
    gp_strbuf_adds(&sb, "on\n");
    sim_tree_built(tree, folder, "power/control", &sb);
    (void)snprintf(path, sizeof(path), "%s/driver", folder);
    sim_tree_link(tree, path, "../../drivers/nvidia");
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/drivers/nvidia/%s", address);
    (void)snprintf(folder, sizeof(folder), "../../devices/%s", address);
    sim_tree_link(tree, path, folder);
    (void)snprintf(folder, sizeof(folder), "/proc/driver/nvidia/gpus/%s", address);
    for (unsigned int minor = 0; minor <= sim_tree_minor(device); minor++) {
        (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
        sim_tree_text(tree, path, "");
    }
    gp_strbuf_addf(&sb,
                   "Model: \t\t %s\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %u\n",
                   name->code == NVML_SUCCESS ? name->text : "Unknown", device->uuid, address,
                   sim_tree_minor(device));
    sim_tree_built(tree, folder, "information", &sb);
    gp_strbuf_fini(&sb);
}

/* The kernel module, and what packages install with it. */
static void put_driver(struct sim_hosttree *tree)
{
    static const char *const empty[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/usr/bin/nvidia-smi",
                                        "/sys/module/nvidia_uvm/initstate"};
    static const char *const libraries[] = {"libcuda.so", "libnvidia-ml.so"};
    static const char module[] =
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\n";
    const char *version = tree->live->machine->driver_version;
    char path[128], name[80];
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    gp_strbuf_addf(&sb, module, version);
    sim_tree_built(tree, "/proc/driver/nvidia", "version", &sb);
    gp_strbuf_addf(&sb, "%s\n", version);
    sim_tree_built(tree, "/sys/module/nvidia", "version", &sb);
    sim_tree_text(tree, "/proc/driver/nvidia/params",
                  "DeviceFileMode: 438\nModifyDeviceFiles: 1\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(empty); i++)
        sim_tree_text(tree, empty[i], "");
    for (size_t i = 0; i < GP_ARRAY_LEN(libraries); i++) {
        (void)snprintf(name, sizeof(name), "%s.%.20s", libraries[i], version);
        sim_tree_built(tree, "/usr/lib/x86_64-linux-gnu", name, &sb);
        (void)snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/%s.1", libraries[i]);
        sim_tree_link(tree, path, name);
    }
    gp_strbuf_fini(&sb);
}

static bool is_of_job(const struct sim_host *host, unsigned int pid, uint64_t supervisor)
{
    const struct sim_host_process *process = sim_host_find(host, pid);
    return process && (process->pid == supervisor || process->ppid == supervisor);
}

/* A reservation lasts as long as its job has a workload on one of its GPUs. */
static bool is_held(const struct sim_machine *machine, const struct sim_host_lease *lease)
{
    for (size_t d = 0; d < machine->device_count && d < SIM_HOST_GPUS; d++)
        for (size_t i = 0; lease->gpus >> d & 1 && i < machine->devices[d].process_count; i++)
            if (is_of_job(&machine->host, machine->devices[d].processes[i].like_pid, lease->pid))
                return true;
    return false;
}

/* One that waits does so for GPUs that are reserved. */
static bool is_alive(const struct sim_machine *machine, const struct sim_host_lease *lease)
{
    const struct sim_host *host = &machine->host;
    if (!lease->waits_for)
        return is_held(machine, lease);
    for (size_t i = 0; i < host->lease_count; i++)
        if (!host->leases[i].waits_for && host->leases[i].gpus & lease->gpus &&
            is_held(machine, &host->leases[i]))
            return true;
    return false;
}

/* In the form of proc/lease_text.c, below a directory for each user. */
static void put_lease(struct sim_hosttree *tree, size_t index)
{
    const struct sim_machine *machine = tree->live->machine;
    const struct sim_host_lease *lease = &machine->host.leases[index];
    char folder[48], name[32];
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    uint64_t since_s = tree->boot_s + machine->host.uptime_s - lease->age_s;
    int count = __builtin_popcountll(lease->gpus);
    (void)snprintf(folder, sizeof(folder), "/run/gpulse-simulated/%" PRIu64, lease->uid);
    (void)snprintf(name, sizeof(name), "%s.%016zx", lease->waits_for ? "wait" : "held", index);
    gp_strbuf_addf(&sb, "gpulse-lease 2\nsince %" PRIu64 "\npid %" PRIu64 "\nns 0\nshared %d",
                   since_s * GP_NS_PER_S, lease->pid, lease->bytes > 0);
    if (lease->limit_s > 0)
        gp_strbuf_addf(&sb, "\nlimit %" PRIu64, lease->limit_s * GP_NS_PER_S);
    gp_strbuf_addf(&sb, "\nbytes %" PRIu64 "\nwanted %u\nname %s\ncommand %s\n", lease->bytes,
                   lease->waits_for ? (unsigned int)lease->waits_for : (unsigned int)count,
                   lease->name, lease->command);
    for (size_t d = 0; d < machine->device_count && d < SIM_HOST_GPUS; d++)
        if (lease->gpus >> d & 1)
            gp_strbuf_addf(&sb, "gpu %s\n", machine->devices[d].uuid);
    sim_tree_built(tree, folder, name, &sb);
    gp_strbuf_fini(&sb);
}

static void put_leases(struct sim_hosttree *tree)
{
    const struct sim_machine *machine = tree->live->machine;
    for (size_t i = 0; i < machine->host.lease_count; i++)
        if (is_alive(machine, &machine->host.leases[i]))
            put_lease(tree, i);
}

void sim_tree_put_fixed(struct sim_hosttree *tree)
{
    static const char *const kept[] = {"/run/gpulse", "/dev/shm", "/tmp"};
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    put_users(tree);
    if (tree->live->machine->driver_version)
        put_driver(tree);
    for (size_t i = 0; i < tree->live->machine->device_count; i++)
        put_gpu(tree, &tree->live->machine->devices[i]);
    put_leases(tree);
    gp_strbuf_addf(&sb, "%s\n", host->name);
    sim_tree_built(tree, "/proc/sys/kernel", "hostname", &sb);
    gp_strbuf_addf(&sb, "Name:\tgpulse\nUid:\t%u\t%u\t%u\t%u\n", geteuid(), geteuid(), geteuid(),
                   geteuid());
    sim_tree_built(tree, "/proc/self", "status", &sb);
    gp_strbuf_fini(&sb);
    sim_tree_link(tree, "/proc/self/ns/pid", "pid:[4026531836]");
    sim_tree_text(tree, "/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n");
    for (size_t i = 0; i < host->file_count; i++)
        sim_tree_text(tree, host->files[i].path, host->files[i].text);
    /* Last, so that no file of the machine is written through one of these links. */
    for (size_t i = 0; i < GP_ARRAY_LEN(kept); i++)
        sim_tree_link(tree, kept[i], kept[i]);
}
