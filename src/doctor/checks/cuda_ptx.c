/* PyTorch for a newer CUDA than the driver's: its programs run, but PTX is not compiled. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pymodules.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

/* An extension of PyTorch, as a project's setup.py builds it: beside the packages, and of none of
 * the projects that publish wheels, which have code for each kind of GPU. */
struct extension {
    struct gp_exam *exam;
    const char *path; /* NULL: none */
};

static void take_extension(void *data, const struct gp_pymodule *module)
{
    static const char *const published[] = {
        "flash_attn",         "torch",   "apex",    "amp_C",
        "autogptq_cuda",      "exllama", "awq_ext", "causal_conv1d_cuda",
        "selective_scan_cuda"};
    struct extension *found = data;
    for (size_t i = 0; i < GP_ARRAY_LEN(published); i++)
        if (strncmp(module->top, published[i], strlen(published[i])) == 0)
            return;
    if (!found->path && module->is_single)
        found->path = gp_exam_text(found->exam, "%s", module->path);
}

/* The oldest driver that compiles PTX of this PyTorch's CUDA; "": this one does so, or it does not
 * run the PyTorch at all, or not as a CUDA of the same major version. */
static const char *wanted_driver(const struct gp_nvidia *nv, const struct gp_torch *torch)
{
    const char *floor = gp_cuda_floor(torch->cuda), *own = gp_cuda_own_driver(torch->cuda);
    return floor[0] && own[0] && gp_driver_reaches(nv->driver, floor) &&
                   !gp_driver_reaches(nv->driver, own)
               ? own
               : "";
}

static void report(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_torch *torch,
                   const char *driver, bool is_told)
{
    const char *ceiling = gp_cuda_ceiling(nv->driver);
    struct extension built = {.exam = exam, .path = NULL};
    gp_pymodules_visit(exam, torch->env, take_extension, &built);
    gp_exam_report(exam, built.path && !is_told ? GP_VERDICT_INFO : GP_VERDICT_OK,
                   "PyTorch %s in %s is for CUDA %s, newer than the driver, which implements CUDA "
                   "%s: it runs, but the driver cannot compile its PTX",
                   torch->version, torch->env->prefix, torch->cuda, ceiling);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", torch->env->site), "CUDA %s",
                     torch->cuda);
    gp_exam_evidence(exam, "driver", "%s, for CUDA %s", nv->driver, ceiling);
    if (built.path)
        gp_exam_evidence(exam, built.path, "an extension of PyTorch");
    gp_exam_why(exam, "Extensions and compilers at run time that make PTX of this CUDA fail with "
                      "\"the provided PTX was compiled with an unsupported toolchain\" (error "
                      "222); code for exactly this GPU is not affected.");
    gp_exam_advice(exam, "only where a program fails with that:");
    gp_driver_fix_at_least(exam, driver);
    gp_exam_advice(exam, "or a PyTorch for CUDA %s or older, and its extensions built again",
                   ceiling);
}

void gp_check_cuda_ptx(struct gp_exam *exam, bool is_told)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const struct gp_torch *first = NULL;
    struct gp_torch torch, kept;
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    gp_cuda_use_compat(exam, &nv);
    for (size_t i = 0; nv.driver[0] && i < envs->count; i++) {
        if (!gp_pyenv_torch(exam, &envs->list[i], &torch) || !torch.cuda[0] ||
            !wanted_driver(&nv, &torch)[0] || (first && !envs->list[i].is_active))
            continue;
        kept = torch;
        first = &kept;
    }
    if (first)
        report(exam, &nv, first, wanted_driver(&nv, first), is_told);
}
