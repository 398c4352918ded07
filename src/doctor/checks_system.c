/* What surrounds jobs on GPUs: shared memory, limits, control groups, leftovers of MPS. */
#include "doctor/exam.h"

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

/* The option size= of the last mount on /dev/shm in a text of /proc/self/mounts, in MiB; −1: it
 * has none, and is then half of the main memory. */
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
    gp_exam_report(exam, GP_VERDICT_WARN, "/dev/shm has only %ld MiB", mib);
    gp_exam_evidence(exam, path, "/dev/shm is mounted with a size of %ld MiB", mib);
    gp_exam_why(exam, "PyTorch's data loaders and NCCL hand data over there: when it is full they "
                      "end with a bus error, or NCCL cannot write shm.");
    const char *container = exam->machine.container;
    if (container && strcmp(container, "kubernetes") == 0)
        gp_exam_advice(exam, "mount an emptyDir with medium: Memory on /dev/shm in the pod");
    else if (container)
        gp_exam_advice(exam, "start the container with --shm-size=16g, or with --ipc=host");
    else
        gp_exam_command(exam, "until the next start", "sudo mount -o remount,size=50%% /dev/shm");
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
    gp_exam_report(exam, GP_VERDICT_WARN, "only %ld MiB of memory may be locked, and there is RDMA",
                   strtol(line, NULL, 10) / 1048576);
    gp_exam_evidence(exam, path, "%s %.*s", mark, (int)strcspn(line, " \n"), line);
    gp_exam_why(exam, "Network cards read memory that is locked: NCCL fails to register its "
                      "buffers.");
    if (exam->machine.container)
        gp_exam_advice(exam, "start the container with --ulimit memlock=-1");
    else
        gp_exam_command(exam, "then log in again; services need LimitMEMLOCK=infinity",
                        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/"
                        "99-rdma.conf");
}

/* ---- control groups ---- */

/* Of a container: the topmost group of a machine does not count them. */
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
    gp_exam_report(exam, GP_VERDICT_WARN, "%ld process%s killed here for lack of main memory",
                   killed, killed == 1 ? " was" : "es were");
    gp_exam_evidence(exam, path, "oom_kill %ld", killed);
    if (gp_files_line(&exam->files, "/sys/fs/cgroup/memory.max", most, sizeof(most)))
        gp_exam_evidence(exam, "/sys/fs/cgroup/memory.max", "%s", most);
    gp_exam_why(exam, "It is the memory of the machine or the container that was at an end, not "
                      "that of a GPU: a job then ends with signal 9 and says nothing.");
    gp_exam_advice(exam, "give the container or job more memory, or let fewer data loaders run");
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
    gp_exam_report(exam, GP_VERDICT_INFO, "only %.3g processor%s may be used beside %.0f GPU%s",
                   quota / period, quota > period ? "s" : "", gpus, gpus > 1 ? "s" : "");
    gp_exam_evidence(exam, path, "%s", line);
    gp_exam_why(exam,
                "Loading data takes a few processors for each GPU: the GPUs may wait for it.");
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

static void check_mps(struct gp_exam *exam)
{
    const char *folder = pipe_folder(exam);
    struct stat st;
    bool is_foreign = gp_files_stat_link(&exam->files, folder, &st) == 0 && st.st_uid != 0 &&
                      st.st_uid != geteuid();
    if (is_foreign) {
        gp_exam_report(exam, GP_VERDICT_WARN, "the folder of MPS belongs to another user, uid %u",
                       (unsigned)st.st_uid);
        gp_exam_evidence(exam, folder, "uid %u has made it", (unsigned)st.st_uid);
        gp_exam_why(exam, "Whoever owns it decides what CUDA programs of others talk to, and keeps "
                          "an MPS of root's from starting.");
        gp_exam_advice(exam, "if that user is not meant to serve MPS to all, remove it as root");
        return;
    }
    if (gp_machine_runs(&exam->files, "nvidia-cuda-mps-control"))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "MPS has left its pipes behind, and does not run");
    gp_exam_evidence(exam, folder, "is there, but no process nvidia-cuda-mps-control");
    gp_exam_why(exam,
                "CUDA programs try to reach it and may fail with error 805, MPS client failed "
                "to connect.");
    gp_exam_command(exam, "starts it again", "nvidia-cuda-mps-control -d");
    gp_exam_advice(exam, "or, if it is not wanted, remove the pipes in that folder and unset "
                         "CUDA_MPS_PIPE_DIRECTORY");
}

const struct gp_check gp_checks_system[] = {
    {"system.shm", "there is shared memory for data loaders", {NULL}, has_gpu, check_shared_memory},
    {"system.memlock", "RDMA may lock memory", {NULL}, has_rdma, check_locked_memory},
    {"system.oom",
     "nothing was killed for lack of main memory",
     {NULL},
     has_memory_events,
     check_killed},
    {"system.cpu", "there are processors for the GPUs' data", {NULL}, has_gpu, check_quota},
    {"system.mps", "MPS has left nothing behind", {NULL}, has_mps_folder, check_mps},
    {0},
};
