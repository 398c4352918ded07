/* Commands that change the PyTorch of an environment, together with what was compiled for it. */
#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <ctype.h>
#include <string.h>

const char *gp_torch_index(struct gp_exam *exam, const char *cuda)
{
    const char *dot = strchr(cuda, '.');
    if (!cuda[0])
        return "https://download.pytorch.org/whl/cpu";
    return gp_exam_text(exam, "https://download.pytorch.org/whl/cu%u%.*s", gp_version_major(cuda),
                        dot ? (int)strcspn(dot + 1, ".") : 1, dot ? dot + 1 : "0");
}

const char *gp_torch_release(struct gp_exam *exam, const char *version)
{
    return gp_exam_text(exam, "torch==%.*s", (int)strcspn(version, "+"), version);
}

const char *gp_torch_companions(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"torchvision", "torchaudio"};
    const char *words = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_pyenv_package(env, names[i]))
            words = gp_exam_text(exam, "%s %s", words, names[i]);
    return words;
}

/* Whether the build of a conda package names the PyTorch that it is for: "py37_cu102_pyt160",
 * "py310_cu11.6_pyt1.13", "py38_torch_1.10.0_cu113". */
static bool is_bound(const char *build)
{
    static const char *const marks[] = {"_pyt", "_torch_", "_torch"};
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++) {
        const char *found = strstr(build, marks[i]);
        if (found && isdigit((unsigned char)found[strlen(marks[i])]))
            return true;
    }
    return false;
}

/* The names of such packages, each after a space, and their first file, which shows the build. */
static const char *bound_names(struct gp_exam *exam, const struct gp_pyenv *env,
                               const char **ret_entry)
{
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], build[GP_PYPACKAGE_VERSION];
    char **entries;
    const char *words = "";
    long n = env->kind == GP_PYENV_CONDA
                 ? gp_files_list(&exam->files, &exam->arena,
                                 gp_exam_text(exam, "%s/conda-meta", env->prefix), &entries)
                 : 0;
    *ret_entry = "";
    for (long i = 0; i < n; i++) {
        if (!gp_pypackage_split_conda(entries[i], name, version, build) || !is_bound(build))
            continue;
        words = gp_exam_text(exam, "%s %s", words, name);
        if (!**ret_entry)
            *ret_entry = entries[i];
    }
    return words;
}

void gp_torch_release_bound(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *entry, *names = bound_names(exam, env, &entry);
    if (!names[0])
        return;
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix),
                     "%s: built for this PyTorch only", entry);
    gp_exam_command(exam, "built for the present PyTorch, which conda would keep for it",
                    "%s remove -p %s%s", gp_conda_program(exam, env),
                    gp_exam_quoted(exam, env->prefix), names);
}

void gp_torch_return_bound(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *entry, *names = bound_names(exam, env, &entry);
    if (names[0])
        gp_exam_advice(exam,
                       "then install%s again, in a build for the new PyTorch and its CUDA: from "
                       "its channel if it has one, otherwise compiled from its source; and the "
                       "same versions in a file that describes the environment",
                       names);
}

/* Whether the wheel has the name of its CUDA in its version, as those that are not PyPI's. */
static bool has_suffix(const char *version, const char *variant)
{
    for (size_t i = 0; i < gp_torch_build_count; i++)
        if (strcmp(gp_torch_builds[i].torch, version) == 0 &&
            strcmp(gp_torch_builds[i].build, variant) == 0)
            return !gp_torch_builds[i].is_default;
    return false;
}

/* Of what these need, the index has at most the newest, for newer versions of Python: they come
 * with PyPI next to it. What is there under the same version, for another CUDA, has no suffix. */
const char *gp_torch_request(struct gp_exam *exam, const char *torch, const char *companions,
                             const char *index)
{
    static const char mark[] = "/whl/", start[] = "torch==";
    static const char first[] = "1.4", last[] = "2.0"; /* before 1.4, names are not regular */
    const char *variant = strstr(index, mark);
    const char *version =
        strncmp(torch, start, sizeof(start) - 1) == 0 ? torch + sizeof(start) - 1 : "";
    bool is_build = variant && (strncmp(variant + sizeof(mark) - 1, "cu", 2) == 0 ||
                                strncmp(variant + sizeof(mark) - 1, "rocm", 4) == 0);
    bool is_old = is_build && version[0] && gp_version_compare(version, first) >= 0 &&
                  gp_version_compare(version, last) < 0;
    if (!is_old)
        return gp_exam_text(exam, "%s%s --index-url %s", torch, companions, index);
    variant += sizeof(mark) - 1;
    bool is_named = has_suffix(version, variant);
    return gp_exam_text(exam, "%s%s%s%s --extra-index-url %s", torch, is_named ? "+" : "",
                        is_named ? variant : "", companions, index);
}

/* Reinstalling brings the newest of all that they depend on; NumPy is torchvision's. Packages that
 * were compiled for NumPy 1.x do not bear the newest; if PyTorch is removed first, it stays. */
static bool keeps_numpy(const struct gp_pyenv *env)
{
    static const char first_python[] = "3.9"; /* of NumPy 2 */
    const struct gp_pypackage *numpy = gp_pyenv_package(env, "numpy");
    return numpy && gp_pyenv_package(env, "torchvision") && gp_version_major(numpy->version) == 1 &&
           (!env->python[0] || gp_version_compare(env->python, first_python) >= 0);
}

const char *gp_torch_conda_forge(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *words = "pytorch-gpu";
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *package = &env->packages[i];
        if (package->is_conda &&
            (strcmp(package->name, "torchvision") == 0 || strcmp(package->name, "torchaudio") == 0))
            words = gp_exam_text(exam, "%s %s", words, package->name);
    }
    return words;
}

bool gp_torch_is_of_channel(const struct gp_pyenv *env)
{
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *package = &env->packages[i];
        const char *build = strrchr(package->entry, '-');
        /* "pytorch-2.3.1-py3.10_cpu_0.json"; conda-forge's: "…-cpu_generic_py310…" */
        if (package->is_conda && strcmp(package->name, "pytorch") == 0 && build &&
            (strncmp(build, "-py3.", 5) == 0 || gp_pyenv_package(env, "pytorch-mutex")))
            return true;
    }
    return false;
}

/* pip would overwrite conda's files, which conda would then remove or restore. */
static bool leave_channel(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"pytorch",     "pytorch-cuda", "pytorch-mutex",
                                        "torchvision", "torchaudio",   "torchtriton"};
    const struct gp_pypackage *torch = gp_pyenv_package(env, "torch");
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], build[GP_PYPACKAGE_VERSION];
    char **entries;
    const char *words = "";
    if (!gp_torch_is_of_channel(env) ||
        (torch && !gp_pyenv_is_of_conda(env, "pytorch", torch->version)))
        return false;
    long n = gp_files_list(&exam->files, &exam->arena,
                           gp_exam_text(exam, "%s/conda-meta", env->prefix), &entries);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(names); k++)
            if (gp_pypackage_split_conda(entries[i], name, version, build) &&
                strcmp(name, names[k]) == 0)
                words = gp_exam_text(exam, "%s %s", words, name);
    gp_exam_command(exam, "conda's, whose channel ended with 2.5; what is built on it goes, too",
                    "%s remove -p %s%s", gp_conda_program(exam, env),
                    gp_exam_quoted(exam, env->prefix), words);
    gp_exam_link(exam, "https://github.com/pytorch/pytorch/issues/138506");
    return true;
}

void gp_exam_torch_with(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                        const char *torch, const char *others, const char *index)
{
    const char *companions = gp_torch_companions(exam, env);
    bool is_left = leave_channel(exam, env), is_kept = keeps_numpy(env);
    if (is_kept && !is_left)
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", gp_exam_text(exam, "torch%s", companions));
    gp_exam_pip(
        exam, env, is_kept || is_left ? GP_PIP_ADD : GP_PIP_AGAIN, note,
        gp_torch_request(exam, torch, gp_exam_text(exam, "%s%s", companions, others), index));
    if (is_left)
        gp_torch_return_bound(exam, env);
}

void gp_exam_torch(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                   const char *torch, const char *index)
{
    gp_exam_torch_with(exam, env, note, torch, "", index);
}
