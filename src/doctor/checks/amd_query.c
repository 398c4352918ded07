/* AMD GPUs: whether the kernel's amdgpu answers what newer releases of ROCm ask it. */
#include "doctor/checks/amd.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/unbound.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

/* The query for free memory (KFD 1.9) was sent to the kernel's developers in June 2022, too late
 * for 5.19: releases before the first never have it, and those from the second on always. */
#define NEVER_BEFORE "6.0"
#define ALWAYS_FROM "6.1"

/* The first release of ROCm whose HIP is known to ask the kernel. */
enum { FIRST_ROCM = 6 };

/* Releases of a module from elsewhere (amdgpu-dkms) and of some distributions' kernels are newer
 * than the kernel's number says. */
bool gp_amd_has_old_queries(struct gp_exam *exam)
{
    static const char *const modules[] = {"amdgpu", NULL};
    const char *kernel = exam->machine.kernel;
    return !exam->machine.is_wsl && kernel[0] && gp_version_compare(kernel, NEVER_BEFORE) < 0 &&
           gp_amd_drives(exam) && !gp_unbound_has_backport(exam, modules) &&
           !gp_files_exist(&exam->files, "/sys/module/amdgpu/version");
}

static const struct gp_pci_gpu *first_gpu(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_AMD && strcmp(m->gpus[i].driver, "amdgpu") == 0)
            return &m->gpus[i];
    return NULL;
}

/* PyTorch with a ROCm that asks, if one is installed. */
static bool find_torch(struct gp_exam *exam, struct gp_torch *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        if (gp_pyenv_torch(exam, &envs->list[i], ret) && gp_version_major(ret->hip) >= FIRST_ROCM)
            return true;
    return false;
}

static void fix_kernel(struct gp_exam *exam)
{
    if (exam->machine.container) {
        gp_exam_advice(exam, "on the host, boot kernel " ALWAYS_FROM " or newer, or install AMD's "
                             "amdgpu-dkms: a container uses the host's kernel");
        return;
    }
    gp_unbound_newer_kernel(exam, first_gpu(&exam->machine), ALWAYS_FROM);
    gp_exam_advice(exam, "or install AMD's own module, amdgpu-dkms, of the release of ROCm in use: "
                         "AMD tests it with the two releases before and after its own");
}

/* Programs that do not ask for it work, so without a failure nothing may be wrong. */
void gp_amd_check_queries(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_log_known *failed = gp_log_known_of(exam, "hip.free-memory");
    struct gp_torch torch;
    bool has_torch = find_torch(exam, &torch);
    if (!failed && !has_torch)
        return;
    gp_exam_report(exam, failed ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "kernel %.*s is too old for this ROCm: it does not know the query for free "
                   "memory of the GPU",
                   (int)strspn(m->kernel, "0123456789."), m->kernel);
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", m->kernel);
    gp_log_show_known(exam, failed);
    if (has_torch)
        gp_exam_evidence(exam, torch.env->site, "PyTorch %s", torch.version);
    gp_exam_why(exam, "hipMemGetInfo and torch.cuda.mem_get_info fail with \"invalid argument\", "
                      "and with them programs that ask before they load a model (Ollama, "
                      "llama.cpp, vLLM). In a container, too, the host's kernel answers.");
    fix_kernel(exam);
}
