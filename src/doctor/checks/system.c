/* The environment of GPU jobs: shared memory, limits, control groups, stale MPS files. */
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include "proc/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_gpu(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->nvidia_count > 0 || m->amd_count > 0 || m->is_wsl || m->is_jetson;
}

/* ---- shared memory ---- */

enum { SHARED_LEAST_MIB = 1024 };

/* The size= option of the last mount on /dev/shm in the text of /proc/self/mounts, in MiB; −1: not
 * set, so it is half of the host memory. */
static long shared_mib(const char *mounts)
{
    long mib = -1;
    for (const char *line = mounts; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strcspn(line, "\n");
        const char *place = strstr(line, " /dev/shm ");
        if (!place || place > line + length)
            continue;
        const char *size = strstr(place, "size=");
        char *unit;
        mib = -1;
        if (!size || size > line + length)
            continue;
        long number = strtol(size + 5, &unit, 10);
        mib = *unit == 'k'   ? number / 1024
              : *unit == 'm' ? number
              : *unit == 'g' ? number * 1024
                             : -1;
    }
    return mib;
}

/* What exchanges data through it: PyTorch's and MXNet's data loaders, NCCL, and what is built on
 * these; NULL: nothing of that is installed. */
static const char *user_of_shared(struct gp_exam *exam)
{
    static const char *const names[] = {"nvidia-nccl", "mxnet", "vllm", "sglang", "dask-cu"};
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        if (envs->list[i].has_torch)
            return gp_exam_text(exam, "PyTorch in %s", envs->list[i].prefix);
        for (size_t k = 0; k < GP_ARRAY_LEN(names); k++) {
            const struct gp_pypackage *found = gp_pyenv_package_like(&envs->list[i], names[k]);
            if (found)
                return gp_exam_text(exam, "%s in %s", found->name, envs->list[i].prefix);
        }
    }
    return gp_system_library(exam, "", "libnccl.so.2") ? "libnccl.so.2" : NULL;
}

static void check_shared_memory(struct gp_exam *exam)
{
    static const char path[] = "/proc/self/mounts";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
    if (!text) {
        gp_exam_unreadable(exam, path, -errno);
        return;
    }
    long mib = shared_mib(text);
    if (mib < 0 || mib >= SHARED_LEAST_MIB)
        return;
    const char *user = user_of_shared(exam);
    gp_exam_report(exam, user ? GP_VERDICT_WARN : GP_VERDICT_INFO, "/dev/shm has only %ld MiB",
                   mib);
    gp_exam_evidence(exam, path, "/dev/shm is mounted with a size of %ld MiB", mib);
    if (user)
        gp_exam_evidence(exam, "", "%s uses it", user);
    gp_exam_why(exam, "PyTorch's data loaders and NCCL exchange data through it: when it is full "
                      "they fail with a bus error, or NCCL cannot write to shm.");
    const char *container = exam->machine.container;
    if (container && strcmp(container, "kubernetes") == 0)
        gp_exam_advice(exam, "mount an emptyDir with medium: Memory on /dev/shm in the pod");
    else if (container)
        gp_exam_advice(exam, "start the container with --shm-size=16g, or with --ipc=host");
    else
        gp_exam_command(exam, "until the next boot", "sudo mount -o remount,size=50%% /dev/shm");
}

/* ---- limits ---- */

static bool has_rdma(struct gp_exam *exam)
{
    char **names;
    return has_gpu(exam) &&
           gp_files_list(&exam->files, &exam->arena, "/sys/class/infiniband", &names) > 0;
}

/* "Max locked memory         8388608              8388608              bytes" */
static void check_locked_memory(struct gp_exam *exam)
{
    static const char path[] = "/proc/self/limits", mark[] = "Max locked memory";
    char text[8192];
    long n = gp_files_read(&exam->files, path, text, sizeof(text));
    const char *line = n < 0 ? NULL : strstr(text, mark);
    if (!line) {
        gp_exam_unreadable(exam, path, n < 0 ? (int)n : -ENODATA);
        return;
    }
    line += sizeof(mark) - 1;
    line += strspn(line, " ");
    if (strncmp(line, "unlimited", 9) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "only %ld MiB of memory may be locked, but the machine has RDMA",
                   strtol(line, NULL, 10) / 1048576);
    gp_exam_evidence(exam, path, "%s %.*s", mark, (int)strcspn(line, " \n"), line);
    gp_exam_why(exam, "Network adapters read locked memory: NCCL fails to register its buffers.");
    if (exam->machine.container)
        gp_exam_advice(exam, "start the container with --ulimit memlock=-1");
    else
        gp_exam_command(exam, "then log in again; services need LimitMEMLOCK=infinity",
                        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/"
                        "99-rdma.conf");
}

/* ---- RDMA ---- */

/* NCCL's version and place: the older of the wheels' and the system's; "" : there is none. */
static const char *oldest_nccl(struct gp_exam *exam, const char **ret_place)
{
    static const char start[] = "libnccl.so.";
    char real[GP_PATH_SIZE];
    const char *oldest = "", *path = gp_system_library(exam, "", "libnccl.so.2");
    const char *name = path && gp_files_real(&exam->files, path, real) ? strstr(real, start) : NULL;
    if (name && strchr(name + sizeof(start) - 1, '.')) {
        oldest = gp_exam_text(exam, "%s", name + sizeof(start) - 1);
        *ret_place = path;
    }
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pypackage *wheel = gp_pyenv_package_like(&envs->list[i], "nvidia-nccl");
        if (!wheel || (oldest[0] && gp_version_compare(wheel->version, oldest) >= 0))
            continue;
        oldest = wheel->version;
        *ret_place = envs->list[i].site;
    }
    return oldest;
}

/* Whether nvidia-peermem is loaded without the folder by which older releases of NCCL find it. */
static bool has_new_peermem(struct gp_exam *exam)
{
    return has_rdma(exam) && gp_files_exist(&exam->files, "/sys/module/nvidia_peermem") &&
           !gp_files_exist(&exam->files, "/sys/kernel/mm/memory_peers");
}

static void check_peermem(struct gp_exam *exam)
{
    static const char first[] = "2.23.4";
    const char *place = "", *version = oldest_nccl(exam, &place);
    if (!version[0] || gp_version_compare(version, first) >= 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "NCCL %s does not see nvidia-peermem, which is loaded for it", version);
    gp_exam_evidence(exam, place, "NCCL %s", version);
    gp_exam_evidence(exam, "/sys/module/nvidia_peermem", "loaded");
    gp_exam_evidence(exam, "/sys/kernel/mm/memory_peers", "missing: NCCL looks for it there");
    gp_exam_why(exam,
                "Unless it can use DMA-BUF instead, it logs \"GPU Direct RDMA Disabled\", and "
                "copies between machines through host memory, which is slower.");
    gp_exam_advice(exam,
                   "use NCCL %s or newer, which looks for the module itself: a newer framework, or "
                   "libnccl2 of the system",
                   first);
}

/* ---- control groups ---- */

/* Of a container: the root group of a machine does not count them. */
static const char memory_events[] = "/sys/fs/cgroup/memory.events";

static bool has_memory_events(struct gp_exam *exam)
{
    return has_gpu(exam) && gp_files_exist(&exam->files, memory_events);
}

static void check_killed(struct gp_exam *exam)
{
    static const char mark[] = "\noom_kill ", *const path = memory_events;
    char text[1024], most[64];
    long n = gp_files_read(&exam->files, path, text, sizeof(text));
    if (n < 0) {
        gp_exam_unreadable(exam, path, (int)n);
        return;
    }
    const char *line = strstr(text, mark);
    long killed = line ? strtol(line + sizeof(mark) - 1, NULL, 10) : 0;
    if (killed <= 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%ld process%s killed here because host memory ran out",
                   killed, killed == 1 ? " was" : "es were");
    gp_exam_evidence(exam, path, "oom_kill %ld", killed);
    if (gp_files_line(&exam->files, "/sys/fs/cgroup/memory.max", most, sizeof(most)))
        gp_exam_evidence(exam, "/sys/fs/cgroup/memory.max", "%s", most);
    gp_exam_why(exam, "The memory of the machine or container ran out, not that of a GPU: a job is "
                      "then killed with signal 9 and prints nothing.");
    gp_exam_advice(exam, "give the container or job more memory, or use fewer data loader workers");
}

static void check_quota(struct gp_exam *exam)
{
    static const char path[] = "/sys/fs/cgroup/cpu.max";
    char line[64], *end;
    if (!gp_files_line(&exam->files, path, line, sizeof(line)))
        return;
    double quota = strtod(line, &end), period = strtod(end, NULL);
    double gpus = (double)(exam->machine.nvidia_count + exam->machine.amd_count);
    if (end == line || period <= 0 || gpus <= 0 || quota / period >= 2 * gpus)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "only %.3g CPU%s may be used with %.0f GPU%s",
                   quota / period, quota > period ? "s" : "", gpus, gpus > 1 ? "s" : "");
    gp_exam_evidence(exam, path, "%s", line);
    gp_exam_why(exam, "Loading data takes a few CPUs per GPU: the GPUs may have to wait.");
}

/* ---- MPS ---- */

static const char *pipe_folder(const struct gp_exam *exam)
{
    const char *folder = gp_machine_variable(&exam->machine, "CUDA_MPS_PIPE_DIRECTORY");
    return folder && *folder ? folder : "/tmp/nvidia-mps";
}

static bool has_mps_folder(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && gp_files_exist(&exam->files, pipe_folder(exam));
}

/* By the users of the examined machine. */
static void name_owner(const struct gp_exam *exam, uid_t uid, char ret[GP_USER_TEXT_SIZE])
{
    const char *root = exam->files.is_here ? NULL : exam->files.root;
    char name[GP_USER_TEXT_SIZE - 8];
    const bool is_known = gp_proc_user_name(root, uid, name, sizeof(name));
    (void)snprintf(ret, GP_USER_TEXT_SIZE, "%s%s", is_known ? "" : "uid ", name);
}

static void check_mps(struct gp_exam *exam)
{
    const char *folder = pipe_folder(exam);
    struct stat st;
    char owner[GP_USER_TEXT_SIZE];
    bool is_foreign = gp_files_stat_link(&exam->files, folder, &st) == 0 && st.st_uid != 0 &&
                      st.st_uid != geteuid();
    if (is_foreign) {
        name_owner(exam, st.st_uid, owner);
        gp_exam_report(exam, GP_VERDICT_WARN, "the MPS directory belongs to another user, %s",
                       owner);
        gp_exam_evidence(exam, folder, "created by %s", owner);
        gp_exam_why(exam, "Its owner decides which MPS server other users' CUDA programs connect "
                          "to, and prevents root's MPS from starting.");
        gp_exam_advice(exam, "unless that user is meant to provide MPS for all, remove it as root");
        return;
    }
    if (gp_machine_runs(&exam->files, "nvidia-cuda-mps-control"))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "MPS left its pipes, but is not running");
    gp_exam_evidence(exam, folder, "present, but no process nvidia-cuda-mps-control");
    gp_exam_why(exam, "CUDA programs try to connect to it and may fail with error 805, MPS client "
                      "failed to connect.");
    gp_exam_command(exam, "restart it", "nvidia-cuda-mps-control -d");
    gp_exam_advice(exam, "or, if MPS is not wanted, remove the pipes in that directory and unset "
                         "CUDA_MPS_PIPE_DIRECTORY");
}

const struct gp_check gp_checks_system[] = {
    {"system.shm", "shared memory suffices for data loaders", {NULL}, has_gpu, check_shared_memory},
    {"system.memlock",
     "enough memory may be locked for RDMA",
     {NULL},
     has_rdma,
     check_locked_memory},
    {"system.rdma",
     "NCCL sees that network adapters can access GPU memory",
     {NULL},
     has_new_peermem,
     check_peermem},
    {"system.oom",
     "no process was killed because host memory ran out",
     {NULL},
     has_memory_events,
     check_killed},
    {"system.cpu", "there are enough CPUs to feed the GPUs", {NULL}, has_gpu, check_quota},
    {"system.mps", "no stale MPS pipes", {NULL}, has_mps_folder, check_mps},
    {"system.gres", "Slurm's settings fit the GPUs", {NULL}, gp_slurm_is_there, gp_slurm_check},
    {"system.ollama",
     "Ollama has its part for the GPUs",
     {NULL},
     gp_ollama_is_there,
     gp_ollama_check},
    {"system.services",
     "no service is kept from the GPUs",
     {NULL},
     gp_services_has_hidden,
     gp_services_check_hidden},
    {"system.groups", "the services may open the GPUs", {NULL}, gp_groups_apply, gp_groups_check},
    {"system.slices",
     "systemd lets the programs of users and slices open the GPUs",
     {NULL},
     gp_slices_apply,
     gp_slices_check},
    {"system.dkms",
     "AMD's and Intel's drivers were built for this kernel",
     {NULL},
     gp_dkms_is_there,
     gp_dkms_check},
    {"system.xorg",
     "Xorg finds the GPUs that it is configured for",
     {"driver.loaded", "driver.mismatch", "driver.gpus"},
     gp_xorg_is_there,
     gp_xorg_check},
    {"system.apt", "apt can use NVIDIA's repositories", {NULL}, gp_apt_has_nvidia, gp_apt_check},
    {"system.jellyfin",
     "Jellyfin's settings fit the GPUs",
     {NULL},
     gp_jellyfin_is_there,
     gp_jellyfin_check},
    {"system.llama", "llama.cpp was built for a GPU", {NULL}, gp_llama_is_there, gp_llama_check},
    {"system.dcgm",
     "DCGM's diagnostics know the driver's CUDA",
     {NULL},
     gp_dcgm_is_there,
     gp_dcgm_check},
    {"system.sleep",
     "the machine sleeps as deeply as it is made for",
     {NULL},
     gp_sleep_applies,
     gp_sleep_check},
    {0},
};
