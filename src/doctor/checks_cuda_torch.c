/* CUDA toolkits and PyTorch, whose extensions are built with them. */
#include "doctor/checks_cuda.h"

#include "doctor/exam.h"
#include "doctor/framework.h"
#include "doctor/searchpath.h"
#include "doctor/toolkit.h"
#include "doctor/version.h"

#include <string.h>

const char *gp_cuda_of_torch(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const char *cuda = "";
    struct gp_torch torch;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.cuda[0])
            continue;
        if (env->is_active)
            return gp_exam_text(exam, "%s", torch.cuda);
        cuda = cuda[0] ? "" : gp_exam_text(exam, "%s", torch.cuda);
    }
    return cuda;
}

/* The last toolkit with a compiler for PyTorch's CUDA; NULL: none. */
static const struct gp_toolkit_found *fitting_toolkit(const struct gp_toolkits *all,
                                                      const char *wanted)
{
    const struct gp_toolkit_found *fitting = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].has_compiler && all->list[i].version[0] &&
            gp_version_major(all->list[i].version) == gp_version_major(wanted))
            fitting = &all->list[i];
    return fitting;
}

/* The variable for builds leads to another CUDA than PyTorch's: its extensions are not built. */
static void report_other(struct gp_exam *exam, const struct gp_toolkits *all)
{
    const char *home = gp_machine_variable(&exam->machine, "CUDA_HOME"),
               *wanted = gp_cuda_of_torch(exam);
    const struct gp_toolkit_found *used = NULL;
    char real[GP_PATH_SIZE];
    if (!home || !wanted[0] || !gp_files_real(&exam->files, home, real))
        return;
    for (size_t i = 0; i < all->count; i++) {
        const struct gp_toolkit_found *toolkit = &all->list[i];
        if (strcmp(toolkit->path, home) == 0 || strcmp(toolkit->path, real) == 0)
            used = toolkit;
    }
    if (!used || !used->version[0] || gp_version_major(used->version) == gp_version_major(wanted))
        return;
    const struct gp_toolkit_found *fitting = fitting_toolkit(all, wanted);
    gp_exam_report(exam, GP_VERDICT_WARN, "CUDA_HOME is CUDA %s, but PyTorch was built for CUDA %s",
                   used->version, wanted);
    gp_exam_evidence(exam, "CUDA_HOME", "%s", home);
    gp_exam_evidence(exam, used->source, "CUDA %s", used->version);
    gp_exam_assignments(exam, "CUDA_HOME");
    gp_exam_why(exam, "PyTorch refuses to build extensions with it: \"The detected CUDA version "
                      "mismatches the version that was used to compile PyTorch\".");
    if (fitting)
        gp_exam_command(exam, gp_exam_text(exam, "build with CUDA %s", fitting->version),
                        "export CUDA_HOME=%s", gp_exam_quoted(exam, fitting->path));
    else
        gp_exam_advice(exam, "install CUDA %s, and point CUDA_HOME at it:", wanted);
    if (!fitting)
        gp_toolkit_remedy(exam, wanted);
}

/* A toolkit that builds do not find, because nothing leads to its directory. */
static void report_hidden(struct gp_exam *exam, const struct gp_toolkits *all)
{
    static const char top[] = "/usr/local/cuda";
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "SUDO_USER"};
    const char *wanted = gp_cuda_of_torch(exam);
    const struct gp_toolkit_found *toolkit = fitting_toolkit(all, wanted);
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(&exam->machine, variables[i]))
            return;
    bool is_known = gp_machine_variable(&exam->machine, "PATH");
    if (!is_known || !wanted[0] || !toolkit || strncmp(toolkit->path, top, sizeof(top) - 1) != 0 ||
        all->nvcc[0] || gp_files_exist(&exam->files, top))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "PyTorch's extensions cannot be built: nothing leads to CUDA %s in %s",
                   toolkit->version, toolkit->path);
    gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
    gp_exam_evidence(exam, "CUDA_HOME", "not set");
    gp_exam_evidence(exam, "PATH", "no nvcc");
    gp_exam_evidence(exam, top, "missing");
    gp_exam_why(exam, "Builds look only there, and stop with \"CUDA_HOME environment variable is "
                      "not set\". PyTorch itself includes its CUDA and is not affected.");
    const char *path = gp_exam_quoted(exam, toolkit->path);
    gp_exam_command(exam, "also in the shell's startup file",
                    "export CUDA_HOME=%s PATH=%s/bin:$PATH", path, path);
}

void gp_check_cuda_torch(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    report_other(exam, all);
    report_hidden(exam, all);
}
