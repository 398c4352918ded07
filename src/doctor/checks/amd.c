/* AMD GPUs: the kernel driver, ROCm, and permissions to compute. */
#include "doctor/checks/amd.h"

#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/unbound.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/torch.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static bool has_amd(struct gp_exam *exam)
{
    return exam->machine.amd_count > 0;
}

/* Also a link that leads nowhere. */
static bool has_rocm_link(struct gp_exam *exam)
{
    struct stat st;
    return has_amd(exam) && gp_files_stat_link(&exam->files, "/opt/rocm", &st) == 0;
}

/* Whether none of the AMD GPUs has its driver, although they are meant for computing: without it
 * there is nothing to compute on. */
static bool is_needed(struct gp_exam *exam)
{
    return !gp_amd_drives(exam) && gp_amd_wants_rocm(exam);
}

/* Cards that radeon drives: up to GCN 2, by the ranges of its table of ids. */
static bool is_of_radeon(unsigned device)
{
    static const unsigned ranges[][2] = {{0x3150, 0x65ff}, {0x6600, 0x669f}, {0x6700, 0x67bf},
                                         {0x6800, 0x685f}, {0x6880, 0x68ff}, {0x7100, 0x7300},
                                         {0x9400, 0x986f}, {0x9900, 0x9aff}, {0x1304, 0x131d}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ranges); i++)
        if (device >= ranges[i][0] && device <= ranges[i][1])
            return true;
    return false;
}

/* The card's own driver was turned off, but amdgpu leaves such old cards to it. */
static bool explain_radeon(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    if (gpu->driver[0] || !is_of_radeon(gpu->device) ||
        !gp_unbound_explain(exam, gpu, "radeon", "amd,modules"))
        return false;
    gp_exam_why(exam, "The driver radeon is blocked, and amdgpu takes cards of this age only with "
                      "the arguments below.");
    gp_exam_advice(exam, "or have amdgpu drive it: amdgpu.si_support=1 amdgpu.cik_support=1 on the "
                         "kernel command line, with a kernel that was built for it");
    return true;
}

/* Those of them that amdgpu can drive, too: GCN 1 and 2. */
static bool is_of_both(unsigned device)
{
    static const unsigned ranges[][2] = {
        {0x6600, 0x666f}, {0x6780, 0x67bf}, {0x6800, 0x683f}, {0x9830, 0x985f}, {0x1304, 0x131d}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ranges); i++)
        if (device >= ranges[i][0] && device <= ranges[i][1])
            return true;
    return false;
}

/* A program that needs Vulkan or computes, or an argument for amdgpu; NULL: radeon may do. */
static const char *needs_amdgpu(struct gp_exam *exam)
{
    static const char *const paths[] = {"/opt/rocm",
                                        "/usr/bin/clinfo",
                                        "/usr/bin/darktable",
                                        "/usr/bin/steam",
                                        "/usr/games/steam",
                                        "/usr/bin/vulkaninfo",
                                        "/usr/bin/rocminfo",
                                        "/usr/bin/blender",
                                        "/usr/bin/pcsx2-qt",
                                        "/usr/bin/rpcs3",
                                        "/usr/bin/lutris",
                                        "/usr/bin/gamescope",
                                        "/usr/lib/amdvlk64.so",
                                        NULL};
    const char *found = gp_files_first(&exam->files, paths);
    char line[4096];
    if (found)
        return found;
    return gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) &&
                   (strstr(line, "amdgpu.si_support=1") || strstr(line, "amdgpu.cik_support=1"))
               ? "/proc/cmdline"
               : NULL;
}

/* Both modules need the option, as radeon otherwise takes the card first. */
static void hand_over(struct gp_exam *exam)
{
    gp_exam_module_setting(exam, "let radeon leave such cards", "gcn-radeon.conf",
                           "options radeon si_support=0 cik_support=0");
    gp_exam_module_setting(exam, "and amdgpu take them", "gcn-amdgpu.conf",
                           "options amdgpu si_support=1 cik_support=1");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
    gp_exam_advice(exam, "or on the kernel command line, all four: radeon.si_support=0 "
                         "radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1");
}

/* The old driver can show pictures, but has neither Vulkan nor computing. */
static bool report_radeon(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                          enum gp_verdict verdict)
{
    if (strcmp(gpu->driver, "radeon") != 0)
        return false;
    bool is_newer = is_of_both(gpu->device);
    const char *user = needs_amdgpu(exam);
    if (!is_newer && verdict != GP_VERDICT_FAIL)
        return true; /* its only driver */
    gp_exam_report(exam, user || verdict == GP_VERDICT_FAIL ? verdict : GP_VERDICT_INFO,
                   is_newer ? "AMD GPU %s is driven by radeon: it has no Vulkan and cannot compute"
                            : "AMD GPU %s is too old for amdgpu, and cannot compute",
                   gpu->bus_id);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                     "radeon");
    if (user)
        gp_exam_evidence(exam, user, is_newer ? "needs amdgpu" : "present");
    if (is_newer)
        hand_over(exam);
    else
        gp_exam_advice(exam, "ROCm needs a newer GPU; this one can still show a screen");
    return true;
}

static void propose_loading(struct gp_exam *exam)
{
    if (gp_files_exist(&exam->files, "/sys/module/amdgpu"))
        gp_exam_command(exam, "amdgpu is loaded; the kernel log says why it left this GPU out",
                        "sudo dmesg | grep -i amdgpu");
    else
        gp_exam_command(exam, "load it; the kernel log says why it was not loaded automatically",
                        "sudo modprobe amdgpu");
}

static void check_driver(struct gp_exam *exam)
{
    static const char *const modules[] = {"amdgpu", "radeon", NULL};
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        bool is_driven = strcmp(gpu->driver, "amdgpu") == 0;
        if (gpu->vendor == GP_PCI_AMD && is_driven)
            gp_amd_check_firmware(exam, gpu);
        if (gpu->vendor != GP_PCI_AMD || is_driven)
            continue;
        bool is_passed = strcmp(gpu->driver, "vfio-pci") == 0;
        enum gp_verdict verdict = is_needed(exam) ? GP_VERDICT_FAIL : GP_VERDICT_WARN;
        if (report_radeon(exam, gpu, verdict) || gp_unbound_report_age(exam, gpu, verdict) ||
            gp_unbound_report_unknown(exam, gpu, verdict, modules,
                                      gp_gfx_kernel_of_chip(gpu->device)[0]))
            continue;
        gp_exam_report(exam, is_passed ? GP_VERDICT_INFO : verdict,
                       is_passed ? "AMD GPU %s is reserved for a virtual machine"
                                 : "AMD GPU %s is not bound to amdgpu",
                       gpu->bus_id);
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver[0] ? gpu->driver : "no driver is bound");
        if (!is_passed && !explain_radeon(exam, gpu) &&
            !gp_unbound_explain(exam, gpu, "amdgpu",
                                exam->machine.nvidia_count ? "amd" : "amd,modules") &&
            !gp_unbound_no_module(exam, (const char *const[]){"amdgpu", NULL}) && !gpu->driver[0])
            propose_loading(exam);
    }
}

/* The link to the current release leads to one that was removed. */
static void report_gone(struct gp_exam *exam)
{
    char **names, target[GP_PATH_SIZE];
    const char *left = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, "/opt", &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "rocm-", 5) == 0 &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "/opt/%s/lib", names[i])))
            left = gp_exam_text(exam, "/opt/%s", names[i]);
    gp_exam_report(exam, GP_VERDICT_WARN, "/opt/rocm leads to a ROCm that is not there");
    if (gp_files_link(&exam->files, "/opt/rocm", target))
        gp_exam_evidence(exam, "/opt/rocm", "-> %s", target);
    if (left)
        gp_exam_evidence(exam, left, "present");
    gp_exam_why(exam, "Programs that are built with ROCm do not find its libraries "
                      "(libamdhip64.so: cannot open shared object file).");
    if (left && gp_files_stat_link(&exam->files, "/etc/alternatives/rocm", &(struct stat){0}) == 0)
        gp_exam_command(exam, "choose the one that is installed",
                        "sudo update-alternatives --install /opt/rocm rocm %s 100",
                        gp_exam_quoted(exam, left));
    else if (left)
        gp_exam_command(exam, "lead it to the one that is installed", "sudo ln -sfn %s /opt/rocm",
                        gp_exam_quoted(exam, left));
    else
        gp_exam_advice(exam, "install ROCm again, or remove the link");
}

static void check_version(struct gp_exam *exam)
{
    char line[64];
    static const char path[] = "/opt/rocm/.info/version";
    struct gp_gfxlist targets;
    if (!gp_files_exist(&exam->files, "/opt/rocm")) {
        report_gone(exam);
        return;
    }
    if (!gp_files_line(&exam->files, path, line, sizeof(line))) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "%s cannot be read", path);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_OK, "ROCm %s", line);
    gp_exam_evidence(exam, path, "%s", line);
    const char *place = gp_amd_targets(exam, &targets);
    for (size_t i = 0; i < targets.count; i++)
        gp_exam_evidence(exam, place, "%s", targets.names[i]);
}

/* ---- PyTorch ---- */

static bool is_only_vendor(struct gp_exam *exam)
{
    return has_amd(exam) && exam->machine.nvidia_count == 0;
}

/* The ROCm build of the same version, so that programs need not change; otherwise the newest. */
static const struct gp_torch_rocm *build_like(const char *version)
{
    const struct gp_torch_rocm *row = &gp_torch_rocms[gp_torch_rocm_count - 1];
    for (size_t i = 0; i < gp_torch_rocm_count; i++)
        if (gp_version_major(gp_torch_rocms[i].torch) == gp_version_major(version) &&
            gp_version_minor(gp_torch_rocms[i].torch) == gp_version_minor(version))
            row = &gp_torch_rocms[i];
    return row;
}

static const char *purpose_words(struct gp_exam *exam, const struct gp_torch *torch)
{
    return torch->cuda[0]  ? gp_exam_text(exam, "CUDA %s", torch->cuda)
           : torch->xpu[0] ? "Intel's GPUs"
                           : "the CPU";
}

/* The same release for ROCm, with the packages that are built for it. */
static void propose_build(struct gp_exam *exam, const struct gp_torch *torch)
{
    static const char first_python[] = "3.8"; /* of PyTorch 2 */
    const struct gp_torch_rocm *row = build_like(torch->version);
    const struct gp_pyenv *env = torch->env;
    gp_exam_torch(exam, env, "for the GPUs that ROCm supports",
                  gp_exam_text(exam, "'torch==%s.*'", row->torch),
                  gp_exam_text(exam, "https://download.pytorch.org/whl/rocm%s", row->rocm));
    const char *gfx, *like = gp_amd_wheel_override(exam, row->torch, row->rocm, &gfx);
    if (like)
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "it has no code for a %s, but for a near relative; AMD "
                                     "does not support this",
                                     gfx),
                        "export HSA_OVERRIDE_GFX_VERSION=%s", like);
    if (!env->python[0] || gp_version_compare(env->python, first_python) >= 0)
        return;
    gp_exam_why(exam,
                "Its Python is %s, for which there are no builds of PyTorch 2, and none for ROCm "
                "after 5.2.",
                env->python);
    gp_exam_advice(exam,
                   "or, for a newer release of both, in a new environment with Python 3.10: pip "
                   "install torch torchvision --index-url "
                   "https://download.pytorch.org/whl/rocm%s",
                   build_like("2.0")->rocm);
}

/* Whether the environment is of a program that makes pictures or texts on a GPU, in whose folder it
 * is: ComfyUI, the web interfaces for Stable Diffusion and for texts. */
static bool is_of_program(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const files[] = {"comfy/model_management.py", "webui.py", "one_click.py",
                                        "modules/launch_utils.py"};
    const char *end = strrchr(env->prefix, '/');
    for (size_t i = 0; end && i < GP_ARRAY_LEN(files); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%.*s/%s", (int)(end - env->prefix),
                                                      env->prefix, files[i])))
            return true;
    return false;
}

/* One finding, however many environments have such a build. It is no problem if the GPU is not used
 * for computing. */
static void check_torch(struct gp_exam *exam)
{
    enum { SHOWN = 12 };
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    bool is_wanted = exam->pythons || gp_amd_wants_rocm(exam);
    struct gp_torch torch, first = {.env = NULL};
    size_t installed = 0, others = 0;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.version[0])
            continue;
        installed++;
        if (torch.hip[0])
            continue;
        if (others == 0) {
            first = torch;
            is_wanted = is_wanted || ((env->is_active || is_of_program(exam, env)) &&
                                      gp_gfx_has_card(&exam->machine));
            gp_exam_report(exam, is_wanted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                           "PyTorch %s in %s is not built for AMD GPUs: it computes on the CPU",
                           torch.version, env->prefix);
        }
        if (others++ < SHOWN)
            gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", env->site),
                             "PyTorch %s for %s", torch.version, purpose_words(exam, &torch));
    }
    if (installed == 0)
        gp_framework_report_none(exam, GP_FRAMEWORK_TORCH);
    if (others == 0)
        return;
    propose_build(exam, &first);
    if (others > 1)
        gp_exam_advice(exam, "and the same in the other environments");
}

/* With an NVIDIA GPU beside it, a mask may be meant for CUDA. */
static bool wants_rocm_alone(struct gp_exam *exam)
{
    return is_only_vendor(exam) && gp_amd_wants_rocm(exam);
}

/* ---- errors ---- */

/* "ue: 2\nce: 0" for each unit of a GPU that counts errors. */
static void check_card(struct gp_exam *exam, const char *card)
{
    enum { SHOWN = 12 };
    char **files, text[128];
    const char *folder = gp_exam_text(exam, "/sys/class/drm/%s/device/ras", card);
    const struct gp_finding *before = exam->last;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
    for (long i = 0, shown = 0; i < n && shown < SHOWN; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, files[i]);
        if (!strstr(files[i], "_err_count") ||
            gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        const char *found = strstr(text, "ue:");
        long errors = found ? strtol(found + 3, NULL, 10) : 0;
        if (errors <= 0)
            continue;
        if (exam->last == before)
            gp_exam_report(exam, GP_VERDICT_FAIL, "AMD GPU %s had uncorrectable errors", card);
        gp_exam_evidence(exam, path, "ue: %ld", errors);
        shown++;
    }
    if (exam->last != before)
        gp_exam_advice(
            exam, "stop the jobs on it and reset it; if the errors return, contact the vendor");
}

static void check_errors(struct gp_exam *exam)
{
    char **names;
    long cards = gp_files_list(&exam->files, &exam->arena, "/sys/class/drm", &names);
    for (long i = 0; i < cards && i < GP_MACHINE_GPUS; i++)
        if (strncmp(names[i], "card", 4) == 0 && !strchr(names[i], '-'))
            check_card(exam, names[i]);
}

const struct gp_check gp_checks_amd[] = {
    {"amd.driver", "amdgpu drives the AMD GPUs", {NULL}, has_amd, check_driver},
    {"amd.kfd", "/dev/kfd exists", {"amd.driver"}, gp_amd_wants_kfd, gp_amd_check_kfd},
    {"amd.permission",
     "you have permission to use the AMD GPUs",
     {"amd.kfd"},
     gp_amd_wants_permission,
     gp_amd_check_permission},
    {"amd.rocm", "ROCm is installed", {NULL}, has_rocm_link, check_version},
    {"amd.packages",
     "ROCm's packages are of one maker",
     {NULL},
     gp_amd_has_two_makers,
     gp_amd_check_makers},
    {"amd.opencl",
     "OpenCL has a driver for the AMD GPUs",
     {NULL},
     gp_amd_has_opencl,
     gp_amd_check_opencl},
    {"amd.torch", "PyTorch is built for AMD GPUs", {NULL}, is_only_vendor, check_torch},
    {"amd.frameworks",
     "other frameworks are built for AMD GPUs",
     {NULL},
     gp_amd_has_other_framework,
     gp_amd_check_framework},
    {"amd.code",
     "ROCm and PyTorch have code for the AMD GPUs",
     {"amd.kfd", "amd.permission"},
     gp_amd_wants_rocm,
     gp_amd_check_code},
    {"amd.env",
     "no environment variable hides the AMD GPUs",
     {NULL},
     wants_rocm_alone,
     gp_amd_check_masks},
    {"amd.ldpath",
     "LD_LIBRARY_PATH does not lead to another ROCm than PyTorch's",
     {NULL},
     gp_amd_has_ldpath,
     gp_amd_check_ldpath},
    {"amd.override",
     "the AMD GPUs are not taken for others",
     {NULL},
     gp_amd_has_override,
     gp_amd_check_override},
    {"amd.errors", "no uncorrectable errors", {"amd.driver"}, has_amd, check_errors},
    {"amd.speed",
     "nothing holds the AMD GPUs at their lowest clocks",
     {"amd.driver"},
     has_amd,
     gp_amd_check_speed},
    {"amd.queries",
     "the kernel answers ROCm's queries",
     {"amd.driver"},
     gp_amd_has_old_queries,
     gp_amd_check_queries},
    {"amd.flatpak",
     "programs from Flatpak have a ROCm",
     {"amd.kfd", "amd.permission"},
     gp_amd_has_flatpak,
     gp_amd_check_flatpak},
    {0},
};
