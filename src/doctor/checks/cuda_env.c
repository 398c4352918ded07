/* The user's environment variables: which GPUs CUDA sees, what slows it down, which libraries are
 * loaded. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/variable_fix.h"

#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "jobs/visible.h"
#include "model/snapshot.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- visible GPUs ---- */

/* The UUIDs of all GPUs; false if one is unknown. */
static bool read_uuids(struct gp_exam *exam, struct gp_visible_gpu *gpus, size_t count)
{
    const char *uuids[GP_NVIDIA_UUIDS];
    size_t n = gp_nvidia_uuids(exam, uuids);
    for (size_t i = 0; i < n && n == count; i++)
        gpus[i].uuid = uuids[i];
    return n > 0 && n == count;
}

/* The device files of GPUs: a container has those of its own only, or more than it may use. */
static size_t count_files(struct gp_exam *exam)
{
    char **names;
    size_t count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, "/dev", &names);
    for (long i = 0; i < n; i++)
        count += strncmp(names[i], "nvidia", 6) == 0 && isdigit((unsigned char)names[i][6]);
    return count;
}

/* How many GPUs a program sees with this value; false if that is unknown. */
static bool count_visible(struct gp_exam *exam, const struct gp_nvidia *nv, const char *mask,
                          size_t *ret)
{
    if (exam->snapshot) {
        const struct gp_device *rows[GP_VISIBLE_MAX];
        *ret = gp_visible_rows(exam->snapshot, mask, rows);
        return true;
    }
    bool is_uuid = strncmp(mask, "GPU-", 4) == 0 || strncmp(mask, "MIG-", 4) == 0;
    if (!is_uuid && *mask && *mask != '-' && !isspace((unsigned char)*mask) &&
        !isdigit((unsigned char)*mask)) {
        *ret = 0; /* a word such as "all" or "cuda:0" */
        return true;
    }
    const bool is_container = exam->machine.container;
    size_t there = is_container ? count_files(exam) : nv->gpu_count;
    if (strncmp(mask, "MIG-", 4) == 0 || (is_container && (is_uuid || there == 0)))
        return false; /* not every GPU on PCI need be available here, and their UUIDs are unknown */
    struct gp_visible_gpu gpus[GP_MACHINE_GPUS];
    struct gp_visible visible;
    size_t count = there < GP_MACHINE_GPUS ? there : GP_MACHINE_GPUS;
    for (size_t i = 0; i < count; i++)
        gpus[i] = (struct gp_visible_gpu){.uuid = ""};
    if (is_uuid && !read_uuids(exam, gpus, count))
        return false;
    gp_visible_resolve(mask, gpus, count, &visible);
    *ret = visible.count;
    return true;
}

bool gp_cuda_mask_is_empty(struct gp_exam *exam, const char *mask)
{
    struct gp_nvidia nv;
    size_t seen;
    gp_nvidia_read(&nv, exam);
    return count_visible(exam, &nv, mask, &seen) && seen == 0;
}

static size_t count_entries(const char *mask)
{
    size_t count = 0;
    char entry[GP_PATH_SIZE];
    while (gp_search_path_next(&mask, ",", entry))
        count += entry[strspn(entry, " ")] != '\0';
    return count;
}

/* An empty list, or "-1". */
static bool is_hiding(const char *mask, size_t entries)
{
    return entries == 0 || (mask[0] == '-' && entries == 1);
}

/* What a scheduler sets for a job without GPUs; the second is Slurm's word. */
static bool is_refusal(const char *mask)
{
    return !mask[0] || strcmp(mask, "NoDevFiles") == 0;
}

/* Whether the scheduler says that it gave the job GPUs: the value that hides them is another's. */
static bool has_gpus_of_job(const struct gp_exam *exam)
{
    static const struct {
        const char *variable;
        bool is_number; /* of GPUs; otherwise it lists them */
    } given[] = {
        {"SLURM_JOB_GPUS"}, {"SLURM_STEP_GPUS"}, {"SLURM_GPUS_ON_NODE", true}, {"PBS_NGPUS", true}};
    for (size_t i = 0; i < GP_ARRAY_LEN(given); i++) {
        const char *value = gp_machine_variable(&exam->machine, given[i].variable);
        if (value && value[0] && !(given[i].is_number && strcmp(value, "0") == 0))
            return true;
    }
    return false;
}

/* How to request a GPU from the scheduler whose job this is (Slurm: by its word); NULL: it is in
 * none. */
static const char *request_of_job(const struct gp_exam *exam, bool is_slurm)
{
    static const struct {
        const char *job, *advice;
    } schedulers[] = {
        {"SLURM_JOB_ID", "Slurm gave this job no GPU: request one, with --gres=gpu:1 or --gpus=1"},
        {"PBS_JOBID", "PBS gave this job no GPU: request one, with qsub -l select=1:ngpus=1 "
                      "(Torque: -l nodes=1:gpus=1)"},
        {"LSB_JOBID", "LSF gave this job no GPU: request one, with bsub -gpu \"num=1\""},
        {"SGE_TASK_ID", "Grid Engine gave this job no GPU: request one, with qsub -l gpu=1 (the "
                        "resource's name is the cluster's)"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(schedulers); i++)
        if ((i == 0 && is_slurm) || gp_machine_variable(&exam->machine, schedulers[i].job))
            return schedulers[i].advice;
    return NULL;
}

static void report_mask(struct gp_exam *exam, const char *mask, size_t entries, size_t seen)
{
    bool is_all = is_hiding(mask, entries);
    if (is_all)
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "CUDA_VISIBLE_DEVICES hides all GPUs from programs started in this shell");
    else if (seen == 0)
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "CUDA_VISIBLE_DEVICES names no GPU of this machine: programs see none");
    else
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "CUDA_VISIBLE_DEVICES has %zu entries, of which CUDA uses the first %s",
                       entries, seen == 1 ? "only" : gp_exam_text(exam, "%zu only", seen));
    gp_exam_evidence(exam, "CUDA_VISIBLE_DEVICES", "\"%s\"", mask);
    gp_exam_assignments(exam, "CUDA_VISIBLE_DEVICES");
    if (!is_all)
        gp_exam_why(exam, "CUDA reads the list up to the first entry that names no GPU; a "
                          "duplicate entry hides all GPUs.");
    bool is_slurm = strcmp(mask, "NoDevFiles") == 0;
    bool is_given = !is_slurm && has_gpus_of_job(exam);
    const char *request = is_refusal(mask) && !is_given ? request_of_job(exam, is_slurm) : NULL;
    if (request)
        gp_exam_advice(exam, "%s", request);
    if (!is_slurm)
        gp_exam_command(exam,
                        request    ? "only if the GPUs of this machine are not shared by jobs"
                        : is_given ? "only if nvidia-smi -L lists no other job's GPUs"
                                   : "show all GPUs",
                        "unset CUDA_VISIBLE_DEVICES");
}

/* ---- Slurm ---- */

/* The settings by which Slurm gives a job only its own devices; NULL: it does not. */
static const char *constraint_of(struct gp_exam *exam)
{
    static const char *const paths[] = {
        "/etc/slurm/cgroup.conf", "/etc/slurm-llnl/cgroup.conf", "/usr/local/etc/slurm/cgroup.conf",
        "/run/slurm/conf/cgroup.conf", "/var/spool/slurmd/conf-cache/cgroup.conf"};
    static const char key[] = "\nconstraindevices=yes";
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 16, NULL);
        if (text && strcasestr(gp_exam_text(exam, "\n%s", text), key))
            return paths[i];
    }
    return NULL;
}

/* Whether Slurm started this process, in a job or a step with GPUs. */
static bool has_granted(const struct gp_exam *exam)
{
    static const char *const variables[] = {
        "SLURM_JOB_GPUS",        "SLURM_STEP_GPUS",     "SLURM_GPUS",
        "SLURM_GPUS_ON_NODE",    "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK",
        "SLURM_GPUS_PER_SOCKET", "GPU_DEVICE_ORDINAL"};
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(&exam->machine, variables[i]))
            return true;
    return false;
}

/* A job without GPUs on a node that has some: opening them is refused. */
static void check_slurm(struct gp_exam *exam)
{
    const char *job = gp_machine_variable(&exam->machine, "SLURM_JOB_ID");
    bool is_on_node = job && gp_machine_variable(&exam->machine, "SLURMD_NODENAME");
    const char *constraint = is_on_node && !has_granted(exam) ? constraint_of(exam) : NULL;
    if (!constraint || (exam->snapshot && exam->snapshot->device_count > 0))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "Slurm gave this job no GPU: it did not request any");
    gp_exam_evidence(exam, "SLURM_JOB_ID", "%s, without SLURM_JOB_GPUS or SLURM_GPUS_ON_NODE", job);
    gp_exam_evidence(exam, constraint, "ConstrainDevices=yes");
    gp_exam_why(exam, "Slurm lets a job open only the devices that it has requested: CUDA finds "
                      "no GPU, although the node has some.");
    gp_exam_command(exam, "request one", "srun --gpus=1 …");
    gp_exam_advice(exam, "in a batch script: #SBATCH --gpus=1; with an older Slurm --gres=gpu:1");
}

/* PyTorch 1.13 counts the GPUs through NVML, and takes no part of one for a GPU. */
static void check_parts(struct gp_exam *exam, const char *mask)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    for (size_t i = 0; mask && strncmp(mask, "MIG-", 4) == 0 && i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.cuda[0] ||
            strncmp(torch.version, "1.13.", 5) != 0)
            continue;
        gp_exam_report(exam, gp_pyenv_verdict(env, false),
                       "PyTorch %s in %s does not understand a MIG device in CUDA_VISIBLE_DEVICES",
                       torch.version, env->prefix);
        gp_exam_evidence(exam, "CUDA_VISIBLE_DEVICES", "\"%s\"", mask);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", env->site), "PyTorch %s",
                         torch.version);
        gp_exam_why(exam, "torch.cuda.device_count() is 0, although CUDA works: only 1.13 is so.");
        gp_exam_pip(exam, env, GP_PIP_ADD, "the next version, for the same CUDA",
                    gp_exam_text(exam, "torch==2.0.1%s", gp_torch_companions(exam, env)));
        gp_exam_link(exam, "https://github.com/pytorch/pytorch/pull/92315");
    }
}

/* A container with several parts of GPUs, of which CUDA enumerates only the first. */
static void check_instances(struct gp_exam *exam)
{
    static const char name[] = "NVIDIA_VISIBLE_DEVICES";
    const char *given = gp_machine_variable(&exam->machine, name);
    size_t count = 0;
    for (const char *p = given; p && (p = strstr(p, "MIG-")); p++)
        count++;
    if (!exam->machine.container || count < 2)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a CUDA program uses only one of this container's %zu MIG instances", count);
    gp_exam_evidence(exam, name, "%s", given);
    gp_exam_evidence(exam, "CUDA_VISIBLE_DEVICES", "not set");
    gp_exam_why(exam,
                "CUDA enumerates a single MIG instance for each process. Programs for several "
                "GPUs, such as torchrun with two processes, fail on the second.");
    gp_exam_command(exam, "choose one for each process; nvidia-smi -L lists them",
                    "export CUDA_VISIBLE_DEVICES=MIG-…");
    gp_exam_link(exam, "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/");
}

static void check_mask(struct gp_exam *exam, const struct gp_nvidia *nv)
{
    const char *mask = gp_machine_variable(&exam->machine, "CUDA_VISIBLE_DEVICES");
    size_t seen = 0, entries = mask ? count_entries(mask) : 0;
    if (!mask) {
        check_slurm(exam);
        check_instances(exam);
    }
    check_parts(exam, mask);
    if (!mask || (!is_hiding(mask, entries) && !count_visible(exam, nv, mask, &seen)))
        return;
    if (seen == 0 || seen < entries)
        report_mask(exam, mask, entries, seen);
}

/* This shell has not read the files that hide all GPUs from others, as with sudo. */
static void check_startup_files(struct gp_exam *exam)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    const char *place, *mask = gp_machine_variable(&exam->machine, name)
                                   ? NULL
                                   : gp_assignment_last(exam, name, &place);
    if (!mask || strchr(mask, '$') || !is_hiding(mask, count_entries(mask)))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s hides all GPUs from programs of a new shell", name);
    gp_exam_evidence(exam, place, "%s=%s", name, mask);
    gp_exam_evidence(exam, "this shell", "%s is not set", name);
    gp_exam_advice(exam, "delete that line, and log in again");
}

/* If the GPUs differ, CUDA and nvidia-smi may number them differently. */
static void check_order(struct gp_exam *exam, const struct gp_nvidia *nv)
{
    const char *mask = gp_machine_variable(&exam->machine, "CUDA_VISIBLE_DEVICES");
    const char *order = gp_machine_variable(&exam->machine, "CUDA_DEVICE_ORDER");
    if (nv->count < 2 || !mask || !isdigit((unsigned char)*mask) ||
        (order && strcmp(order, "PCI_BUS_ID") == 0))
        return;
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        "CUDA_VISIBLE_DEVICES may select different GPUs than nvidia-smi shows under these numbers");
    gp_exam_evidence(exam, "CUDA_VISIBLE_DEVICES", "\"%s\"", mask);
    for (size_t i = 0; i < nv->count; i++)
        gp_exam_evidence(exam, "", "%s", nv->gpus[i].name);
    gp_exam_why(exam, "CUDA puts the fastest GPU first; nvidia-smi orders by PCI bus.");
    gp_exam_command(exam, "use the same order for both", "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

/* ---- other variables ---- */

/* The value that makes the row match; NULL: anything but "" and "0". */
static const struct {
    const char *name;
    const char *value;
    enum gp_verdict verdict;
    const char *summary;
    const char *why;
} variables[] = {
    {"CUDA_LAUNCH_BLOCKING", NULL, GP_VERDICT_WARN, "every CUDA call waits for the GPU",
     "Useful for locating an error, but it slows programs down."},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", NULL, GP_VERDICT_WARN,
     "a CUDA program that fails hangs and waits for a debugger", ""},
    {"CUDA_FORCE_PTX_JIT", NULL, GP_VERDICT_WARN,
     "the driver recompiles all kernels at each program start", ""},
    {"CUDA_DISABLE_PTX_JIT", NULL, GP_VERDICT_WARN,
     "programs without code for exactly this GPU cannot start", ""},
    {"CUDA_CACHE_DISABLE", NULL, GP_VERDICT_WARN,
     "kernels that the driver compiles are recompiled at each program start", ""},
    {"CUDA_MODULE_LOADING", "EAGER", GP_VERDICT_INFO,
     "programs load all kernels when they start, which costs time and memory", ""},
    {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", NULL, GP_VERDICT_INFO,
     "a CUDA program that fails dumps the GPU's memory", ""},
    {"NSIGHT_CUDA_DEBUGGER", NULL, GP_VERDICT_WARN, "CUDA programs run under a debugger", ""},
    {"CUDA_PROFILE", NULL, GP_VERDICT_WARN, "CUDA programs run under the old profiler", ""},
    {"COMPUTE_PROFILE", NULL, GP_VERDICT_WARN, "CUDA programs run under the old profiler", ""},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, GP_VERDICT_WARN,
     "PyTorch asks the driver for every allocation, which is slow", ""},
    {"NVIDIA_TF32_OVERRIDE", "0", GP_VERDICT_WARN,
     "no library uses TF32, which multiplies matrices several times faster", ""},
    {"JAX_PLATFORMS", "cpu", GP_VERDICT_WARN, "JAX computes on the CPU", ""},
    {"JAX_PLATFORM_NAME", "cpu", GP_VERDICT_WARN, "JAX computes on the CPU", ""},
    {"ACCELERATE_USE_CPU", "true", GP_VERDICT_WARN, "Hugging Face's programs compute on the CPU",
     ""},
};

static void check_variables(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++) {
        const char *value = gp_machine_variable(&exam->machine, variables[i].name);
        if (!value || (variables[i].value ? strcmp(value, variables[i].value) != 0
                                          : !*value || strcmp(value, "0") == 0))
            continue;
        gp_exam_report(exam, variables[i].verdict, "%s is set: %s", variables[i].name,
                       variables[i].summary);
        gp_exam_evidence(exam, variables[i].name, "\"%s\"", value);
        gp_exam_assignments(exam, variables[i].name);
        gp_exam_why(exam, "%s", variables[i].why);
        gp_exam_command(exam, "", "unset %s", variables[i].name);
    }
}

/* "/usr/local/cuda:/usr/local/cuda-11.8", or ":/usr/local/cuda", as for PATH. */
static void report_list(struct gp_exam *exam, const char *name, const char *value)
{
    char folder[GP_PATH_SIZE] = "";
    const char *list = value, *right = "";
    while (gp_search_path_next(&list, ":", folder))
        if (folder[0] == '/' && gp_files_exist(&exam->files, folder))
            right = gp_exam_text(exam, "%s", folder);
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is a list of directories; it must be one", name);
    gp_exam_evidence(exam, name, "\"%s\"", value);
    gp_exam_assignments(exam, name);
    gp_exam_why(exam, "Numba, CuPy and builds take it for a single path, and do not find CUDA.");
    if (right[0])
        gp_exam_command(exam, "", "export %s=%s", name, gp_exam_quoted(exam, right));
    else
        gp_exam_command(exam, "", "unset %s", name);
}

/* Variables that name a file or directory that should exist. */
static void check_paths(struct gp_exam *exam)
{
    static const struct {
        const char *name, *use;
    } paths[] = {{"CUDA_INJECTION64_PATH", "CUDA loads it into every program"},
                 {"CUDA_HOME", "builds look for the toolkit there"},
                 {"CUDA_PATH", "builds look for the toolkit there"},
                 {"NUMBAPRO_NVVM", "Numba loads its compiler from there"},
                 {"NUMBAPRO_LIBDEVICE", "Numba looks for its compiler's library there"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *value = gp_machine_variable(&exam->machine, paths[i].name);
        if (value && strchr(value, ':')) {
            report_list(exam, paths[i].name, value);
            continue;
        }
        if (!value || *value != '/' || gp_files_exist(&exam->files, value))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s names something that does not exist: %s",
                       paths[i].name, value);
        gp_exam_evidence(exam, paths[i].name, "%s", paths[i].use);
        gp_exam_unset(exam, paths[i].name, "");
    }
}

/* XLA looks for its compiler's library and ptxas there. */
static void check_xla(struct gp_exam *exam)
{
    static const char name[] = "XLA_FLAGS", key[] = "--xla_gpu_cuda_data_dir=";
    const char *value = gp_machine_variable(&exam->machine, name);
    const char *found = value ? strstr(value, key) : NULL;
    if (!found)
        return;
    found += sizeof(key) - 1;
    const char *folder = gp_exam_text(exam, "%.*s", (int)strcspn(found, " \t"), found);
    if (folder[0] != '/' || gp_files_exist(&exam->files, folder))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s names a directory that does not exist: %s", name,
                   folder);
    gp_exam_evidence(exam, name, "%s", value);
    gp_exam_assignments(exam, name);
    gp_exam_why(exam, "JAX and TensorFlow look for ptxas and libdevice there: \"Can't find "
                      "libdevice directory\", and compilation on the GPU fails.");
    gp_exam_command(exam, "they then use their own", "unset %s", name);
}

/* What is wrong with PyTorch's list of options, "max_split_size_mb:128,…"; NULL: nothing known. */
static const char *mistake_in(struct gp_exam *exam, const char *list)
{
    static const char split[] = "max_split_size";
    enum { LEAST = 20 };
    char option[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ",", option)) {
        const char *colon = strchr(option, ':');
        size_t n = sizeof(split) - 1;
        bool is_split = strncmp(option, split, n) == 0;
        if (option[0] && !colon)
            return gp_exam_text(exam, "\"%s\" has no colon between name and value", option);
        if (is_split && option[n] == ':')
            return "the option is named max_split_size_mb";
        if (is_split && strtoul(colon + 1, NULL, 10) <= LEAST)
            return "max_split_size_mb must be more than 20";
    }
    return NULL;
}

static void check_allocator(struct gp_exam *exam)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        const char *mistake = value && !strchr(value, '[') ? mistake_in(exam, value) : NULL;
        if (!mistake)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "PyTorch does not accept %s: %s", names[i], mistake);
        gp_exam_evidence(exam, names[i], "\"%s\"", value);
        gp_exam_assignments(exam, names[i]);
        gp_exam_why(exam, "Its first use of the GPU fails with \"Unrecognized CachingAllocator "
                          "option\" or a similar error.");
        gp_exam_command(exam, "", "unset %s", names[i]);
    }
}

/* Extensions built now would have no code for the GPU. */
static void check_arch_list(struct gp_exam *exam, const struct gp_nvidia *nv)
{
    static const char name[] = "TORCH_CUDA_ARCH_LIST";
    const char *value = gp_machine_variable(&exam->machine, name);
    for (size_t i = 0; value && *value && i < nv->count; i++) {
        unsigned capability = nv->gpus[i].capability;
        if (gp_code_for(value, capability) != GP_CODE_NONE)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s omits %s", name,
                       gp_nvidia_gpu_words(exam, &nv->gpus[i]));
        gp_exam_evidence(exam, name, "\"%s\"", value);
        gp_exam_assignments(exam, name);
        gp_exam_why(exam,
                    "PyTorch extensions built in this shell have no kernels for it: \"no kernel "
                    "image is available for execution on the device\".");
        gp_exam_command(exam, "here, and where it is set", "export %s=%s", name,
                        gp_exam_quoted(exam, gp_exam_text(exam, "%s;%u.%u", value, capability / 10,
                                                          capability % 10)));
        gp_exam_advice(exam, "then rebuild and reinstall the extensions that were built with the "
                             "old list, as they still lack this GPU. In the source of each, with "
                             "the environment's Python: python setup.py build_ext --force && "
                             "python -m pip install --force-reinstall --no-deps --no-cache-dir "
                             "--no-build-isolation .");
    }
}

void gp_cuda_note_unset(struct gp_exam *exam)
{
    if (exam->machine.environment[0] || (exam->last && exam->last->check == exam->check))
        return;
    gp_exam_report(exam, GP_VERDICT_OK, "the variables of the user's shell are unknown");
    gp_exam_evidence(exam, "/proc/self/environ", "missing or empty");
    gp_exam_is_empty(exam);
}

void gp_check_cuda_env(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    check_mask(exam, &nv);
    check_startup_files(exam);
    gp_check_cuda_hidden(exam);
    check_order(exam, &nv);
    check_variables(exam);
    gp_check_cuda_nccl(exam);
    check_paths(exam);
    gp_check_numba_driver(exam);
    check_xla(exam);
    check_allocator(exam);
    gp_graphics_check_variables(exam);
    check_arch_list(exam, &nv);
    gp_check_cuda_network(exam);
    gp_check_cuda_hip(exam);
    gp_check_cuda_rocr(exam);
    gp_cuda_note_unset(exam);
}
