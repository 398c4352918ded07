/* What a compiled extension of PyTorch needs to fit the PyTorch that is installed. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

bool gp_compiled_is_spare(const char *name)
{
    return gp_lines_list_has("torchao,xformers,auto-gptq,autoawq,autoawq-kernels,apex", name);
}

/* Packages that pip builds from the source in PyPI for what is installed. */
static bool is_built_by_pip(const char *name)
{
    static const char names[] = "flash-attn,causal-conv1d,mamba-ssm,deepspeed,pycuda,torch-scatter,"
                                "torch-sparse,torch-cluster,torch-spline-conv";
    return gp_lines_list_has(names, name);
}

/* Where their projects are, if they are not in PyPI. */
static const struct {
    const char *name, *source;
} sources[] = {
    {"detectron2", "git+https://github.com/facebookresearch/detectron2.git"},
    {"pytorch3d", "git+https://github.com/facebookresearch/pytorch3d.git"},
    {"pyg-lib", "git+https://github.com/pyg-team/pyg-lib.git"},
};

static const char *source_of(const struct gp_pypackage *package)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(sources); i++)
        if (strcmp(package->name, sources[i].name) == 0)
            return sources[i].source;
    return NULL;
}

void gp_compiled_again(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_pypackage *package)
{
    static const char options[] = "--no-deps --no-build-isolation --no-cache-dir";
    const char *source = source_of(package);
    const char *what = source ? gp_exam_quoted(exam, source)
                       : is_built_by_pip(package->name)
                           ? gp_exam_text(exam, "%s==%.*s", package->name,
                                          (int)strcspn(package->version, "+"), package->version)
                           : NULL;
    if (what) {
        gp_exam_pip(exam, env, GP_PIP_AGAIN,
                    "compile it for what is installed; needs the CUDA toolkit",
                    gp_exam_text(exam, "%s %s", options, what));
        return;
    }
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
    gp_exam_advice(exam,
                   "install the build of %s for the installed PyTorch and CUDA, or compile it "
                   "again: in its source, pip install --no-build-isolation --no-cache-dir .",
                   package->name);
}

const char *gp_torch_pyg_page(struct gp_exam *exam, const struct gp_torch *torch)
{
    return gp_exam_text(exam, "https://data.pyg.org/whl/torch-%u.%u.0+cu%u%u.html",
                        gp_version_major(torch->version), gp_version_minor(torch->version),
                        gp_version_major(torch->cuda), gp_version_minor(torch->cuda));
}

/* MMCV has builds for each PyTorch and CUDA. */
static void fix_mmcv(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package, const struct gp_torch *torch)
{
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
    gp_exam_pip(exam, env, GP_PIP_ADD, "its build for this PyTorch and CUDA",
                gp_exam_text(exam,
                             "%s -f https://download.openmmlab.com/mmcv/dist/cu%u%u/torch%u.%u.0/"
                             "index.html",
                             package->name, gp_version_major(torch->cuda),
                             gp_version_minor(torch->cuda), gp_version_major(torch->version),
                             gp_version_minor(torch->version)));
    gp_exam_advice(exam, "if there is none for them, pip compiles it, which needs the CUDA "
                         "toolkit; what uses it may need another version: its page says which");
}

void gp_compiled_fix(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package, const struct gp_torch *torch)
{
    static const char pyg[] = "torch-scatter,torch-sparse,torch-cluster,torch-spline-conv,pyg-lib";
    const char *name = package->name;
    if (package->is_conda || !torch->cuda[0])
        gp_exam_advice(exam, "install the build of %s for PyTorch %s", name, torch->version);
    else if (gp_lines_list_has("mmcv,mmcv-full", name))
        fix_mmcv(exam, env, package, torch);
    else if (gp_lines_list_has(pyg, name) && !gp_version_is_between(torch->version))
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "the build for this PyTorch",
                    gp_exam_text(exam, "--no-deps %s -f %s", name, gp_torch_pyg_page(exam, torch)));
    else if (strcmp(name, "torchvision") == 0 || strcmp(name, "torchaudio") == 0)
        gp_exam_torch(exam, env, "all of them for the same CUDA",
                      gp_torch_release(exam, torch->version), gp_torch_index(exam, torch->cuda));
    else
        gp_compiled_again(exam, env, package);
}
