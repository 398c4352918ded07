/* bitsandbytes: whether it has a library for PyTorch's CUDA, and finds CUDA's. */
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

static const char runtime[] = "libcudart.so", library_path[] = "LD_LIBRARY_PATH";

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

static bool is_in_list(struct gp_exam *exam, const char *list)
{
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
    return text && strstr(text, library_path);
}

/* Whether a command, "/opt/env/bin/python train.py", names a program of the environment. */
static bool is_of(struct gp_exam *exam, const struct gp_pyenv *env, const char *command)
{
    return command && strstr(command, gp_exam_text(exam, "%s/", env->prefix));
}

/* Whether a program of the environment that runs has the runtime in its list. */
static bool runs_with_runtime(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { MOST_TEXT = 1 << 16 };
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    while ((process = gp_processes_next(exam, &all, "python"))) {
        size_t size = 0;
        const char *path = gp_exam_text(exam, "%s/cmdline", process);
        if (!is_of(exam, env, gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL)))
            continue;
        path = gp_exam_text(exam, "%s/environ", process);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, &size);
        for (const char *one = text; one && one < text + size; one += strlen(one) + 1)
            if (strncmp(one, library_path, sizeof(library_path) - 1) == 0 &&
                one[sizeof(library_path) - 1] == '=' &&
                is_in_list(exam, one + sizeof(library_path)))
                return true;
    }
    return false;
}

/* Whether a service that starts a program of the environment does. */
static bool is_started_with_runtime(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { MOST = 32 };
    struct gp_service_setting commands[MOST], lists[MOST];
    size_t n = gp_service_commands(exam, commands, MOST);
    size_t count = gp_service_settings(exam, library_path, lists, MOST);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < count && is_of(exam, env, commands[i].value); k++)
            if (strcmp(commands[i].service, lists[k].service) == 0 &&
                is_in_list(exam, lists[k].value))
                return true;
    return false;
}

/* The places in which these releases look: those of conda, and of any variable with a path. */
static bool finds_runtime(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *conda = gp_machine_variable(&exam->machine, "CONDA_PREFIX");
    return is_in(exam, gp_exam_text(exam, "%s/lib", env->prefix)) ||
           (conda && is_in(exam, gp_exam_text(exam, "%s/lib", conda))) ||
           is_in_list(exam, gp_machine_variable(&exam->machine, library_path)) ||
           is_in_list(exam, gp_machine_variable(&exam->machine, "LIBRARY_PATH")) ||
           is_in(exam, "/usr/local/cuda/lib64") || sets_list(exam, env) ||
           gp_assignments_reach(exam, library_path, runtime,
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

/* The directory of a toolkit whose runtime is of PyTorch's CUDA: these releases look for their
 * library by the runtime's version. NULL: there is none. */
static const char *fitting_toolkit(struct gp_exam *exam, const struct gp_pyenv *env,
                                   const struct gp_torch *torch)
{
    char path[GP_PATH_SIZE], target[GP_PATH_SIZE];
    const char *folder = gp_library_folder(exam, runtime);
    if (!folder || !gp_files_real(&exam->files, gp_exam_text(exam, "%s/%s", folder, runtime), path))
        return NULL;
    const char *number = strstr(path, "libcudart.so.");
    if (!number)
        return NULL;
    number += sizeof("libcudart.so.") - 1;
    const char *name = gp_exam_text(exam, "bitsandbytes/libbitsandbytes_cuda%u%u.so",
                                    gp_version_major(number), gp_version_minor(number));
    return gp_version_major(number) == gp_version_major(torch->cuda) &&
                   gp_pyenv_path(env, name, target) && gp_files_exist(&exam->files, target)
               ? folder
               : NULL;
}

static void mend_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const char *wheel, const char *numbered)
{
    const char *toolkit = fitting_toolkit(exam, env, torch);
    const char *folder = numbered[0] ? wheel : toolkit;
    if (numbered[0])
        gp_exam_command(exam, "give it that name", "ln -s %s %s", gp_exam_quoted(exam, numbered),
                        gp_exam_quoted(exam, gp_exam_text(exam, "%s/%s", wheel, runtime)));
    if (folder)
        gp_exam_command(exam, "in the script that starts it",
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
    if (!file || finds_runtime(exam, env) || runs_with_runtime(exam, env) ||
        is_started_with_runtime(exam, env))
        return;
    const char *wheel = gp_exam_text(exam, "%s/nvidia/cuda_runtime/lib", env->site);
    const char *numbered = numbered_in(exam, wheel);
    /* Whoever starts it may set the list, unless that is this shell. */
    gp_exam_report(exam, env->is_active ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s %s in %s finds no %s where it looks, as it looks for it without a number",
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
