/* Commands that change a Python environment: with its own pip, with uv, or with conda. */
#include "doctor/checks/pyinstall.h"

#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool gp_env_is_of_uv(struct gp_exam *exam, const struct gp_pyenv *env)
{
    char path[GP_PATH_SIZE], text[2048];
    return env->kind == GP_PYENV_VENV &&
           snprintf(path, sizeof(path), "%s/pyvenv.cfg", env->prefix) < GP_PATH_SIZE &&
           gp_files_read(&exam->files, path, text, sizeof(text)) > 0 && strstr(text, "\nuv = ");
}

/* The project whose lock file an environment of uv follows; NULL: none. */
static const char *project_of_uv(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *slash = strrchr(env->prefix, '/');
    if (!slash || strcmp(slash, "/.venv") != 0)
        return NULL;
    const char *project = gp_exam_text(exam, "%.*s", (int)(slash - env->prefix), env->prefix);
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/uv.lock", project)) ? project : NULL;
}

/* What `uv pip` has changed, `uv run` and `uv sync` change back, unless the project says so. */
static void keep_in_project(struct gp_exam *exam, const char *project, const char *packages)
{
    static const char option[] = "--index-url ", mark[] = "/whl/";
    const char *index = strstr(packages, option), *name = index ? strstr(index, mark) : NULL;
    if (!name || strncmp(packages, "torch", 5) != 0) {
        gp_exam_advice(exam,
                       "and the same versions in %s/pyproject.toml: otherwise uv sync "
                       "changes it back",
                       project);
        return;
    }
    name += sizeof(mark) - 1;
    gp_exam_advice(exam,
                   "and in %s/pyproject.toml, as otherwise uv sync changes it back: an "
                   "[[tool.uv.index]] with name = \"pytorch-%s\", url = \"%s\" and explicit = "
                   "true; in [tool.uv.sources] torch = { index = \"pytorch-%s\" }, and so for "
                   "torchvision and torchaudio",
                   project, name, index + sizeof(option) - 1, name);
    gp_exam_link(exam, "https://docs.astral.sh/uv/guides/integration/pytorch/");
}

static const char of_poetry[] = "/pypoetry/virtualenvs/";

/* Whether an environment is that of a project: Poetry names it by the project's name, in lower
 * case, a hash and the version of Python: "x-Ab3dE_9k-py3.10". */
static bool is_named_for(struct gp_exam *exam, const char *base, const char *project)
{
    enum { HASH = 8, MOST_NAME = 42, MOST_TEXT = 1 << 16 };
    static const char key[] = "\nname = \"";
    const char *path = gp_exam_text(exam, "%s/pyproject.toml", project);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL);
    const char *name = text ? strstr(text, key) : NULL, *end = strstr(base, "-py");
    for (const char *p = end; p; p = strstr(p + 1, "-py"))
        end = p;
    if (!name || !end)
        return false;
    name += sizeof(key) - 1;
    size_t n = strcspn(name, "\"\n");
    n = n < MOST_NAME ? n : MOST_NAME;
    return (size_t)(end - base) == n + 1 + HASH && base[n] == '-' &&
           strncasecmp(base, name, n) == 0;
}

/* The project whose lock file an environment of Poetry follows: around it, or where the user works.
 * NULL: none. */
static const char *project_of_poetry(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *project = gp_machine_variable(&exam->machine, "PWD");
    const char *slash = strrchr(env->prefix, '/');
    if (slash && strcmp(slash, "/.venv") == 0)
        project = gp_exam_text(exam, "%.*s", (int)(slash - env->prefix), env->prefix);
    else if (!strstr(env->prefix, of_poetry) || !project || !is_named_for(exam, slash + 1, project))
        return NULL;
    bool is_locked =
        project && gp_files_exist(&exam->files, gp_exam_text(exam, "%s/poetry.lock", project));
    return is_locked ? project : NULL;
}

/* What pip has changed, `poetry install` changes back. `packages` are pip's: "torch==2.6.0
 * torchvision --index-url https://…". */
static void keep_in_poetry(struct gp_exam *exam, const char *project, const char *packages)
{
    static const char option[] = " --index-url ", mark[] = "/whl/";
    const char *index = strstr(packages, option), *name = index ? strstr(index, mark) : NULL;
    if (!name || strncmp(packages, "torch", 5) != 0) {
        gp_exam_advice(exam,
                       "and the same versions in %s/pyproject.toml: otherwise poetry install "
                       "changes it back",
                       project);
        return;
    }
    name += sizeof(mark) - 1;
    const char *quoted = gp_exam_quoted(exam, project);
    gp_exam_command(exam, "or with Poetry, as otherwise poetry install changes it back",
                    "cd %s && poetry source add --priority=explicit pytorch-%s %s", quoted, name,
                    index + sizeof(option) - 1);
    gp_exam_command(exam, "", "cd %s && poetry add --source pytorch-%s %.*s", quoted, name,
                    (int)(index - packages), packages);
}

/* A container's packages below /usr/local: those of its image, which pip has installed. */
static bool is_of_image(const struct gp_exam *exam, const struct gp_pyenv *env)
{
    return exam->machine.container && env->python[0] && strcmp(env->prefix, "/usr/local") == 0;
}

/* The option by which pip changes them, where the distribution has marked its Python. */
static const char *despite_mark(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *mark = gp_exam_text(exam, "/usr/lib/python%s/EXTERNALLY-MANAGED", env->python);
    return gp_files_exist(&exam->files, mark) ? " --break-system-packages" : "";
}

void gp_exam_pip(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_pip how,
                 const char *note, const char *packages)
{
    static const char *const of_pip[] = {"install", "install --force-reinstall", "uninstall -y"};
    static const char *const of_uv[] = {"install", "install --reinstall", "uninstall"};
    if (env->kind == GP_PYENV_SYSTEM && is_of_image(exam, env)) {
        gp_exam_command(exam, note, "python%s -m pip %s%s %s", env->python, of_pip[how],
                        despite_mark(exam, env), packages);
    } else if (env->kind == GP_PYENV_SYSTEM) {
        if (how == GP_PIP_REMOVE)
            return; /* the new environment does not have it */
        bool is_apart = gp_machine_has_apt(&exam->machine);
        bool is_2 = env->python[0] == '2';
        if (is_apart)
            gp_exam_command(exam, "", "sudo apt install %s", is_2 ? "virtualenv" : "python3-venv");
        gp_exam_command(
            exam, "a separate environment: the distribution's stays unchanged", "%s ~/gpu",
            is_2 ? gp_exam_text(exam, "virtualenv -p python%s", env->python) : "python3 -m venv");
        gp_exam_command(exam, note, "~/gpu/bin/pip install %s", packages);
    } else if (env->kind == GP_PYENV_USER) {
        gp_exam_command(exam, note, "python%s -m pip %s%s%s %s", env->python[0] ? env->python : "3",
                        of_pip[how], how == GP_PIP_REMOVE ? "" : " --user", despite_mark(exam, env),
                        packages);
    } else if (gp_env_is_of_uv(exam, env)) {
        gp_exam_command(exam, note, "uv pip %s --python %s %s", of_uv[how],
                        gp_exam_quoted(exam, env->prefix), packages);
        const char *project = how == GP_PIP_REMOVE ? NULL : project_of_uv(exam, env);
        if (project)
            keep_in_project(exam, project, packages);
    } else {
        gp_exam_command(exam, note, "%s -m pip %s %s",
                        gp_exam_quoted(exam, gp_exam_text(exam, "%s/bin/python", env->prefix)),
                        of_pip[how], packages);
        const char *project = how == GP_PIP_REMOVE ? NULL : project_of_poetry(exam, env);
        if (project)
            keep_in_poetry(exam, project, packages);
        else if (how != GP_PIP_REMOVE && strstr(env->prefix, of_poetry))
            gp_exam_advice(exam, "and the same versions in its project's pyproject.toml: otherwise "
                                 "poetry install changes it back");
    }
}

static bool is_program(struct gp_exam *exam, const char *folder, const char *name)
{
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name));
}

const char *gp_conda_program(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"conda", "mamba", "micromamba"};
    const char *envs = strstr(env->prefix, "/envs/"), *home;
    size_t n = envs ? (size_t)(envs - env->prefix) : strlen(env->prefix);
    const char *root = gp_exam_text(exam, "%.*s", (int)n, env->prefix);
    home = gp_machine_variable(&exam->machine, "HOME");
    const char *const folders[] = {gp_exam_text(exam, "%s/bin", root),
                                   gp_exam_text(exam, "%s/condabin", root),
                                   "/bin",
                                   "/usr/bin",
                                   "/usr/local/bin",
                                   gp_exam_text(exam, "%s/.local/bin", home ? home : "/root")};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *list = gp_machine_variable(&exam->machine, "PATH");
        char folder[GP_PATH_SIZE];
        while (gp_search_path_next(&list, ":", folder))
            if (folder[0] == '/' && is_program(exam, folder, names[i]))
                return names[i];
        for (size_t k = 0; k < GP_ARRAY_LEN(folders); k++)
            if (is_program(exam, folders[k], names[i]))
                return names[i];
    }
    return names[0];
}

const char *gp_conda_cuda(struct gp_exam *exam, const unsigned *capabilities, size_t count,
                          const char *cuda)
{
    unsigned major = gp_version_major(cuda);
    const char *first = "";
    for (size_t i = 0; i < count; i++) {
        const struct gp_arch *arch = gp_arch_find(capabilities[i]);
        if (arch && gp_version_compare(arch->first_cuda, first) > 0)
            first = arch->first_cuda;
    }
    bool is_bound = gp_version_major(first) == major && gp_version_minor(first) > 0 &&
                    gp_version_compare(first, cuda) <= 0; /* an older one has PTX for them */
    return is_bound ? gp_exam_text(exam, "'cuda-version>=%s,<%u'", first, major + 1)
                    : gp_exam_text(exam, "cuda-version=%u", major);
}

/* Keeps the present value behind it: the driver's own directory may be there. */
void gp_exam_add_wheels(struct gp_exam *exam, const struct gp_pyenv *env)
{
    gp_exam_command(exam, "before it starts",
                    "export LD_LIBRARY_PATH=$(IFS=:; set -- %s/nvidia/*/lib; echo \"$*\")"
                    "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, env->site));
}

void gp_conda_set(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                  const char *value)
{
    gp_exam_command(
        exam, "then activate the environment again", "conda env config vars set -p %s %s=%s%s",
        gp_exam_quoted(exam, env->prefix), name, value,
        strcmp(name, "LD_LIBRARY_PATH") == 0 ? "\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" : "");
}

void gp_fix_part(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                 const char *cuda)
{
    enum { LAST_OF_DEFAULTS = 7 }; /* conda's own channel has no newer one for CUDA 10 */
    unsigned cudnn = gp_cudnn_of_name(name);
    const char *part = cudnn ? "cudnn" : "nccl";
    if (gp_version_major(cuda) < 11 && cudnn && env->kind == GP_PYENV_CONDA) {
        gp_exam_command(exam, gp_exam_text(exam, "cuDNN, for CUDA %s", cuda),
                        "%s install -p %s%s cudatoolkit=%u.%u cudnn=%u",
                        gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix),
                        cudnn > LAST_OF_DEFAULTS ? " -c conda-forge" : "", gp_version_major(cuda),
                        gp_version_minor(cuda), cudnn);
        return;
    }
    if (gp_version_major(cuda) < 11) {
        gp_exam_advice(exam, "install %s for CUDA %s from NVIDIA's repository",
                       cudnn ? gp_exam_text(exam, "cuDNN %u (libcudnn%u)", cudnn, cudnn)
                             : "NCCL 2 (libnccl2)",
                       cuda);
        return;
    }
    gp_exam_pip(exam, env, GP_PIP_ADD, gp_exam_text(exam, "%s as a package", name),
                cudnn
                    ? gp_exam_text(exam, "'nvidia-cudnn-cu%u==%u.*'", gp_version_major(cuda), cudnn)
                    : gp_exam_text(exam, "nvidia-nccl-cu%u", gp_version_major(cuda)));
    gp_exam_command(exam, "and let the loader find it",
                    "export LD_LIBRARY_PATH=%s/nvidia/%s/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, env->site), part);
}
