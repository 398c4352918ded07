/* bitsandbytes: whether it has a library for PyTorch's CUDA, and finds CUDA's. */
#include "doctor/checks/framework.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

static const char runtime[] = "libcudart.so";

/* ---- releases that look for CUDA's runtime by itself ---- */

/* Its file that names what it looks for, if that is only the plain name, as in old releases. Later
 * ones have a list, CUDA_RUNTIME_LIBS, or ask PyTorch. NULL: it is one of those. */
static const char *plain_name_file(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const files[] = {"bitsandbytes/cuda_setup/paths.py",
                                        "bitsandbytes/cuda_setup/main.py"};
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        const char *text = gp_pyenv_text(exam, env, files[i]);
        if (strstr(text, "CUDA_RUNTIME_LIB: str = \"libcudart.so\""))
            return files[i];
    }
    return NULL;
}

static bool is_in(struct gp_exam *exam, const char *folder)
{
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, runtime));
}

static bool is_in_variable(struct gp_exam *exam, const char *name)
{
    const char *list = gp_machine_variable(&exam->machine, name);
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder))
        if (folder[0] == '/' && is_in(exam, folder))
            return true;
    return false;
}

/* Whether conda sets the list when the environment is activated (conda env config vars). */
static bool sets_list(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { MOST_TEXT = 1 << 16 };
    size_t length;
    const char *path = gp_exam_text(exam, "%s/conda-meta/state", env->prefix);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, &length);
    return text && strstr(text, "LD_LIBRARY_PATH");
}

/* The places in which these releases look: those of conda, and of any variable with a path. */
static bool finds_runtime(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *conda = gp_machine_variable(&exam->machine, "CONDA_PREFIX");
    return is_in(exam, gp_exam_text(exam, "%s/lib", env->prefix)) ||
           (conda && is_in(exam, gp_exam_text(exam, "%s/lib", conda))) ||
           is_in_variable(exam, "LD_LIBRARY_PATH") || is_in_variable(exam, "LIBRARY_PATH") ||
           is_in(exam, "/usr/local/cuda/lib64") || sets_list(exam, env) ||
           gp_assignments_reach(exam, "LD_LIBRARY_PATH", runtime,
                                gp_library_folder(exam, runtime) != NULL);
}

/* The runtime of PyTorch's packages, which has only its number: "libcudart.so.11.0"; "": none. */
static const char *numbered_in(struct gp_exam *exam, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], runtime, sizeof(runtime) - 1) == 0 && names[i][sizeof(runtime) - 1])
            return names[i];
    return "";
}

static void mend_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const char *wheel, const char *numbered)
{
    const char *toolkit = gp_library_folder(exam, runtime);
    const char *folder = numbered[0] ? wheel : toolkit;
    if (numbered[0])
        gp_exam_command(exam, "give it that name", "ln -s %s %s", gp_exam_quoted(exam, numbered),
                        gp_exam_quoted(exam, gp_exam_text(exam, "%s/%s", wheel, runtime)));
    if (folder)
        gp_exam_command(exam, "in the script that starts it, or in the shell's startup file",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                        gp_exam_quoted(exam, folder));
    else if (env->kind == GP_PYENV_CONDA && gp_version_major(torch->cuda) == 11)
        gp_exam_command(exam, "CUDA's libraries", "%s install -p %s -c conda-forge cudatoolkit=%s",
                        gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix),
                        torch->cuda);
    else
        gp_exam_advice(exam,
                       "install the libraries of CUDA %s, and have LD_LIBRARY_PATH lead to %s",
                       torch->cuda, runtime);
    gp_exam_advice(exam, "or, if the program works with it, use bitsandbytes 0.43 or newer, which "
                         "uses PyTorch's libraries");
}

static void check_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_torch *torch, const struct gp_pypackage *package)
{
    const char *file = exam->machine.nvidia_count > 0 ? plain_name_file(exam, env) : NULL;
    if (!file || finds_runtime(exam, env))
        return;
    const char *wheel = gp_exam_text(exam, "%s/nvidia/cuda_runtime/lib", env->site);
    const char *numbered = numbered_in(exam, wheel);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s %s in %s does not find %s, and computes on the CPU: it looks for it without "
                   "a number",
                   package->name, package->version, env->prefix, runtime);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, file),
                     "CUDA_RUNTIME_LIB = \"%s\"", runtime);
    if (numbered[0])
        gp_exam_evidence(exam, wheel, "only %s", numbered);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "leads to no %s", runtime);
    gp_exam_why(exam, "It looks in LD_LIBRARY_PATH, in lib of conda's environment and in "
                      "/usr/local/cuda/lib64, then takes its library for the CPU: \"compiled "
                      "without GPU support\". PyTorch itself finds its libraries.");
    mend_runtime(exam, env, torch, wheel, numbered);
    gp_exam_link(exam, "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/156");
}

/* It has a library for each CUDA version, and loads the one that matches PyTorch. */
void gp_check_bitsandbytes(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch)
{
    char path[GP_PATH_SIZE];
    const char *dot = strchr(torch->cuda, '.');
    const struct gp_pypackage *package = gp_pyenv_package(env, "bitsandbytes");
    if (!dot || !package || !gp_pyenv_path(env, "bitsandbytes", path) ||
        !gp_files_exist(&exam->files, path))
        return;
    const char *name =
        gp_exam_text(exam, "libbitsandbytes_cuda%u%s.so", gp_version_major(torch->cuda), dot + 1);
    if (!gp_pyenv_path(env, gp_exam_text(exam, "bitsandbytes/%s", name), path))
        return;
    if (gp_files_exist(&exam->files, path)) {
        check_runtime(exam, env, torch, package);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "bitsandbytes in %s has no library for CUDA %s, which PyTorch is built with",
                   env->prefix, torch->cuda);
    gp_exam_evidence(exam, path, "missing");
    gp_exam_pip(exam, env, GP_PIP_ADD, "", "--upgrade bitsandbytes");
}
