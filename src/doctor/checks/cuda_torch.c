/* The toolkit that builds extensions of PyTorch: it must be found, and be of PyTorch's CUDA. */
#include "doctor/checks/cuda.h"

#include "doctor/builds.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

bool gp_cuda_torch(struct gp_exam *exam, struct gp_torch *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    size_t count = 0;
    for (size_t i = 0; i < envs->count; i++) {
        if (!gp_pyenv_torch(exam, &envs->list[i], &torch) || !torch.cuda[0])
            continue;
        *ret = torch;
        if (envs->list[i].is_active)
            return true;
        count++;
    }
    return count == 1;
}

/* The directory that the user is in, if it has the source of a PyTorch extension; NULL. */
static const char *source_tree(struct gp_exam *exam)
{
    static const char part[] = "[build-system]";
    const char *folder = gp_machine_variable(&exam->machine, "PWD");
    if (!folder || folder[0] != '/')
        return NULL;
    const char *path = gp_exam_text(exam, "%s/pyproject.toml", folder);
    const char *project = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *needs = project ? strstr(project, part) : NULL;
    const char *end = needs ? strstr(needs, "\n[") : NULL;
    const char *setup = gp_files_text(&exam->files, &exam->arena,
                                      gp_exam_text(exam, "%s/setup.py", folder), 1 << 18, NULL);
    const char *torch = needs ? strstr(needs, "\"torch") : NULL;
    bool is_built_with = torch && (!end || torch < end);
    return setup && (is_built_with || strstr(setup, "CUDAExtension")) ? folder : NULL;
}

/* Whether DeepSpeed was installed with operators that are compiled: "installed_ops={'async_io':
 * True".
 */
static bool has_operators(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char key[] = "installed_ops=";
    const char *line =
        strstr(gp_pyenv_text(exam, env, "deepspeed/git_version_info_installed.py"), key);
    return line && memmem(line, strcspn(line, "\n"), ": True", 6);
}

/* A program that uses DeepSpeed, which compiles its operators when they are first used, or a script
 * that starts one with it; NULL. */
static const char *deepspeed_user(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char name[] = "deepspeed";
    static const char *const starts[] = {"\ndeepspeed ", "--deepspeed", "--use_deepspeed", NULL};
    const char *skip = gp_machine_variable(&exam->machine, "DS_SKIP_CUDA_CHECK");
    if (!gp_pyenv_package(env, name) || (skip && strcmp(skip, "1") == 0) ||
        has_operators(exam, env))
        return NULL;
    const char *program = gp_project_program_with(exam, env, name, false);
    return program ? program : gp_project_script(exam, env, starts, true);
}

/* The toolkit that PyTorch builds extensions with, and what makes it so; NULL: there is none, or
 * nothing says that extensions are built. */
static const struct gp_toolkit_found *builder(struct gp_exam *exam, const struct gp_toolkits *all,
                                              const struct gp_pyenv *env, const char **ret_where,
                                              const char **ret_words)
{
    const char *home = gp_machine_variable(&exam->machine, "CUDA_HOME");
    const struct gp_toolkit_found *used = gp_toolkit_used(all);
    char real[GP_PATH_SIZE];
    *ret_where = home ? "CUDA_HOME" : source_tree(exam);
    *ret_words = home ? home : "the source of a PyTorch extension";
    if (!*ret_where && (*ret_where = deepspeed_user(exam, env)))
        *ret_words = "uses DeepSpeed, which compiles its operators";
    if (!home)
        return used && used->has_compiler && *ret_where ? used : NULL;
    for (size_t i = 0; i < all->count && gp_files_real(&exam->files, home, real); i++)
        if (strcmp(all->list[i].path, home) == 0 || strcmp(all->list[i].path, real) == 0)
            return &all->list[i];
    return NULL;
}

/* The release of this PyTorch for the CUDA that is there. */
static void propose_release(struct gp_exam *exam, const struct gp_torch *torch,
                            const struct gp_toolkit_found *toolkit)
{
    const struct gp_pypackage *package = gp_pyenv_package(torch->env, "torch");
    size_t n = strcspn(torch->version, "+");
    struct gp_build build;
    for (size_t i = 0; package && !package->is_conda && gp_build_at(GP_FRAMEWORK_TORCH, i, &build);
         i++)
        if (strlen(build.version) == n && strncmp(build.version, torch->version, n) == 0 &&
            gp_version_major(build.cuda) == gp_version_major(toolkit->version) &&
            gp_version_minor(build.cuda) == gp_version_minor(toolkit->version))
            gp_exam_torch(
                exam, torch->env,
                gp_exam_text(exam, "or keep that toolkit: the PyTorch for CUDA %s", build.cuda),
                gp_torch_release(exam, build.version), gp_torch_index(exam, build.cuda));
}

/* The last toolkit with a compiler for this CUDA; NULL: none. */
static const struct gp_toolkit_found *fitting_toolkit(const struct gp_toolkits *all,
                                                      const char *cuda)
{
    const struct gp_toolkit_found *fitting = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].has_compiler && all->list[i].version[0] &&
            gp_version_major(all->list[i].version) == gp_version_major(cuda))
            fitting = &all->list[i];
    return fitting;
}

static bool is_other(const struct gp_toolkit_found *used, const struct gp_torch *torch)
{
    return used && used->version[0] &&
           gp_version_major(used->version) != gp_version_major(torch->cuda);
}

/* Both of one CUDA. */
static void fix_other(struct gp_exam *exam, const struct gp_toolkits *all,
                      const struct gp_torch *torch, const struct gp_toolkit_found *used)
{
    const struct gp_toolkit_found *fitting = fitting_toolkit(all, torch->cuda);
    if (fitting) {
        gp_exam_command(exam, gp_exam_text(exam, "build with CUDA %s", fitting->version),
                        "export CUDA_HOME=%s", gp_exam_quoted(exam, fitting->path));
        return;
    }
    gp_exam_advice(exam, "install CUDA %s, and point CUDA_HOME at it:", torch->cuda);
    gp_cuda_fix_compiler(exam, torch->cuda);
    propose_release(exam, torch, used);
}

/* PyTorch compares the major versions, and refuses another one. */
static void report_other(struct gp_exam *exam, const struct gp_toolkits *all,
                         const struct gp_torch *torch)
{
    const char *where, *words;
    const struct gp_toolkit_found *used = builder(exam, all, torch->env, &where, &words);
    if (!is_other(used, torch))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s CUDA %s, but PyTorch was built for CUDA %s",
                   where[0] == '/' ? "nvcc is of" : "CUDA_HOME is", used->version, torch->cuda);
    gp_exam_evidence(exam, where, "%s", words);
    gp_exam_evidence(exam, used->source, "CUDA %s", used->version);
    gp_exam_assignments(exam, "CUDA_HOME");
    bool is_deepspeed = strstr(words, "DeepSpeed");
    gp_exam_why(exam, "%s refuses to build %s with it: \"%s\".",
                is_deepspeed ? "DeepSpeed" : "PyTorch",
                is_deepspeed ? "its operators" : "extensions",
                is_deepspeed ? "CUDAMismatchException"
                             : "The detected CUDA version mismatches the version that was used to "
                               "compile PyTorch");
    fix_other(exam, all, torch, used);
}

bool gp_cuda_torch_remark(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const struct gp_toolkit_found *used = gp_toolkit_used(all);
    struct gp_torch torch;
    if (!used || !used->has_compiler || !gp_cuda_torch(exam, &torch) || !is_other(used, &torch))
        return false;
    gp_exam_report(exam, GP_VERDICT_OK,
                   "nvcc is of CUDA %s and PyTorch of CUDA %s, which matters only to what is "
                   "compiled for PyTorch",
                   used->version, torch.cuda);
    fix_other(exam, all, &torch, used);
    return true;
}

/* A toolkit that builds do not find, because nothing leads to its directory. */
static void report_hidden(struct gp_exam *exam, const struct gp_toolkits *all, const char *cuda)
{
    static const char top[] = "/usr/local/cuda";
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "SUDO_USER"};
    const struct gp_toolkit_found *toolkit = fitting_toolkit(all, cuda);
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(&exam->machine, variables[i]))
            return;
    if (!gp_machine_variable(&exam->machine, "PATH") || !toolkit ||
        strncmp(toolkit->path, top, sizeof(top) - 1) != 0 || all->nvcc[0] ||
        gp_files_exist(&exam->files, top))
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
    struct gp_torch torch;
    if (!gp_cuda_torch(exam, &torch))
        return;
    report_other(exam, all, &torch);
    report_hidden(exam, all, torch.cuda);
}
