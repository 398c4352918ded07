/* NixOS, whose loader looks into no folder of the system: where its Python finds the driver. */
#include "doctor/checks/cuda.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

static const char drivers[] = "/run/opengl-driver/lib", cuda[] = "libcuda.so.1";

/* Whether the environment was made by a Python of nixpkgs, which others' settings for foreign
 * programs (nix-ld, an FHS environment) do not concern. */
static bool is_of_nixpkgs(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char key[] = "home = ";
    static const char *const starts[] = {"/nix/store/", "/run/current-system/",
                                         "/etc/profiles/per-user/"};
    const char *path = gp_exam_text(exam, "%s/pyvenv.cfg", env->prefix);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 12, NULL);
    const char *home = text ? strstr(text, key) : NULL;
    for (size_t i = 0; home && i < GP_ARRAY_LEN(starts); i++)
        if (strncmp(home + sizeof(key) - 1, starts[i], strlen(starts[i])) == 0)
            return strncmp(env->prefix, starts[0], strlen(starts[0])) != 0;
    return false;
}

/* Whether a list of directories leads to libcuda. */
static bool leads_to_cuda(struct gp_exam *exam, const char *list)
{
    char folder[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":;", folder))
        if (folder[0] == '/' &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, cuda)))
            return true;
    return false;
}

/* The environment of the user's shell, if it has wheels for CUDA; NULL: it has none. */
static const struct gp_pyenv *active_with_cuda(struct gp_exam *exam)
{
    static const char *const wheels[] = {"nvidia-cublas", "nvidia-cuda-runtime", "nvidia-cudnn"};
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t e = 0; e < envs->count; e++)
        for (size_t i = 0; i < GP_ARRAY_LEN(wheels); i++)
            if (envs->list[e].is_active && envs->list[e].kind == GP_PYENV_VENV &&
                gp_pyenv_package_like(&envs->list[e], wheels[i]))
                return &envs->list[e];
    return NULL;
}

void gp_check_cuda_nixos(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *library = gp_exam_text(exam, "%s/%s", drivers, cuda);
    const char *preloaded = gp_machine_variable(m, "LD_PRELOAD");
    if (strcmp(m->distro_id, "nixos") != 0 || m->container || !m->is_driver_loaded ||
        !gp_files_exist(&exam->files, library) || (preloaded && strstr(preloaded, "libcuda")))
        return;
    const struct gp_pyenv *env = active_with_cuda(exam);
    if (!env || !is_of_nixpkgs(exam, env) ||
        leads_to_cuda(exam, gp_machine_variable(m, "LD_LIBRARY_PATH")))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "the Python of %s does not find the driver's libraries",
                   env->prefix);
    gp_exam_evidence(exam, library, "present");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/pyvenv.cfg", env->prefix),
                     "made by a Python of nixpkgs");
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s is not in it", drivers);
    gp_exam_why(exam, "On NixOS the loader looks into no directory of the system: wheels say that "
                      "CUDA is not available, or that libcuda.so.1 cannot be opened. Packages of "
                      "nixpkgs know the directory.");
    gp_exam_command(exam, "also in shellHook of the shell.nix or flake, if there is one",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", drivers);
}
