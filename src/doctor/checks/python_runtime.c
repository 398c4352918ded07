/* Packages that compute with the wheels of CUDA's runtime, which is newer than the driver runs. A
 * finding of python.others. */
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static const char runtime_name[] = "nvidia-cuda-runtime";

/* The CUDA of an installed runtime: in the package's name until 12, "nvidia-cuda-runtime-cu12",
 * since then in its version; 0: it is another package. */
static unsigned cuda_of_runtime(const char *name, const char *version)
{
    enum { FIRST_WITHOUT = 13 };
    size_t n = sizeof(runtime_name) - 1;
    unsigned major = version[0] ? gp_version_major(version) : 0;
    if (strncmp(name, runtime_name, n) != 0)
        return 0;
    if (strncmp(name + n, "-cu", 3) == 0)
        return (unsigned)strtoul(name + n + 3, NULL, 10);
    return name[n] == '\0' && major >= FIRST_WITHOUT ? major : 0;
}

/* The newest runtime that pip has installed, if the driver runs none of them; NULL. */
static const struct gp_pypackage *refused_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                                                  const struct gp_nvidia *nv, unsigned *ret_cuda)
{
    const struct gp_pypackage *found = NULL;
    *ret_cuda = 0;
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *p = &env->packages[i];
        unsigned cuda = p->is_conda ? 0 : cuda_of_runtime(p->name, p->version);
        const char *floor = cuda ? gp_cuda_floor(gp_exam_text(exam, "%u", cuda)) : "";
        if (!floor[0])
            continue;
        if (gp_driver_reaches(nv->driver, floor))
            return NULL;
        if (cuda > *ret_cuda) {
            *ret_cuda = cuda;
            found = p;
        }
    }
    return found;
}

/* Those that other checks compare with the driver; what they require is not asked for otherwise. */
static bool is_framework(const char *name)
{
    static const char *const starts[] = {"torch",      "jax",          "tensorflow",
                                         "tf-nightly", "paddlepaddle", NULL};
    return gp_lines_starts_any(name, starts);
}

static bool is_judged_elsewhere(const char *name)
{
    static const char *const starts[] = {"nvidia-",  "cuda-", "cupy", "triton",
                                         "tensorrt", "numba", NULL};
    const char *suffix = strstr(name, "-cu");
    return gp_lines_starts_any(name, starts) || is_framework(name) ||
           (suffix && suffix[3] >= '0' && suffix[3] <= '9');
}

/* A package that uses a build of its own, in this folder, if there is one; the variable with which
 * pip builds it; and the argument by which programs have it use a GPU. */
static const struct {
    const char *name, *folder, *variable, *argument;
} own_build = {"ctransformers", "ctransformers/lib/local", "CT_CUBLAS=1", "gpu_layers"};

static bool is_built_here(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    char path[GP_PATH_SIZE];
    return strcmp(name, own_build.name) == 0 && gp_pyenv_path(env, own_build.folder, path) &&
           gp_files_exist(&exam->files, path);
}

/* A program of the project that has this package use a GPU; NULL: none is seen to. */
static const char *gpu_program(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    bool is_known = strcmp(name, own_build.name) == 0;
    const char *path =
        is_known ? gp_project_program_with(exam, env, own_build.argument, true) : NULL;
    const char *text = path ? gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL) : NULL;
    const char *found = text ? strstr(text, own_build.argument) : NULL;
    if (!found)
        return NULL;
    found += strlen(own_build.argument);
    return found[strspn(found, " =")] == '0' ? NULL : path;
}

/* A package, and how it requires the runtime: with an extra only, "package[cuda]", it may do
 * without, and the runtime may be what another package has left. */
struct user {
    const char *name, *version, *entry;
    bool is_extra;
};

static bool wants_runtime(struct gp_exam *exam, const struct gp_pyenv *env, const char *entry,
                          const char *runtime, bool *ret_is_extra)
{
    struct gp_requirement wanted;
    const char *text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", entry));
    bool is_wanted = false;
    *ret_is_extra = true;
    while ((text = gp_requirement_next(text, &wanted)))
        if (!wanted.is_elsewhere && strcmp(wanted.name, runtime) == 0) {
            is_wanted = true;
            *ret_is_extra = *ret_is_extra && wanted.is_extra;
        }
    return is_wanted;
}

/* A package that computes with this runtime, as far as its metadata tells: one that requires it, or
 * the first that does so with an extra, if no framework can have brought it. */
static bool find_user(struct gp_exam *exam, const struct gp_pyenv *env, const char *runtime,
                      struct user *ret)
{
    enum { MOST = 1024 };
    char **names, name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION];
    bool is_alone = true, is_extra;
    *ret = (struct user){0};
    long n = gp_files_list(&exam->files, &exam->arena, env->site, &names);
    for (size_t i = 0; i < env->count; i++)
        is_alone = is_alone && !is_framework(env->packages[i].name);
    for (long i = 0; i < n && i < MOST; i++) {
        if (!strstr(names[i], ".dist-info") || !gp_pypackage_split(names[i], name, version) ||
            is_judged_elsewhere(name) || is_built_here(exam, env, name) ||
            gp_python_is_reported(exam, env, name) ||
            !wants_runtime(exam, env, names[i], runtime, &is_extra) ||
            (is_extra && (ret->name || !is_alone)))
            continue;
        *ret = (struct user){.name = gp_exam_text(exam, "%s", name),
                             .version = gp_exam_text(exam, "%s", version),
                             .entry = names[i],
                             .is_extra = is_extra};
        if (!is_extra)
            break;
    }
    return ret->name != NULL;
}

/* The build that pip makes for the toolkit that is installed, if the driver runs that one's CUDA.
 */
static void fix_build(struct gp_exam *exam, const struct gp_pyenv *env, const struct user *package,
                      const struct gp_nvidia *nv)
{
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    const char *floor = toolkit && toolkit->has_compiler ? gp_cuda_floor(toolkit->version) : "";
    if (strcmp(package->name, own_build.name) != 0 || !floor[0] ||
        !gp_driver_reaches(nv->driver, floor))
        return;
    gp_exam_advice(exam, "or have it built for CUDA %s, which is installed:", toolkit->version);
    if (!toolkit->is_on_path)
        gp_exam_command(exam, "the build must find nvcc", "export PATH=%s/bin:$PATH",
                        gp_exam_quoted(exam, toolkit->path));
    gp_exam_command(exam, "in the same shell", "export %s", own_build.variable);
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "the same release",
                gp_exam_text(exam, "--no-deps --no-cache-dir --no-binary %s %s==%s", package->name,
                             package->name, package->version));
}

void gp_check_python_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                             const struct gp_nvidia *nv)
{
    unsigned cuda;
    struct user user;
    const struct gp_pypackage *runtime =
        nv->driver[0] ? refused_runtime(exam, env, nv, &cuda) : NULL;
    if (!runtime || !find_user(exam, env, runtime->name, &user))
        return;
    const char *floor = gp_cuda_floor(gp_exam_text(exam, "%u", cuda));
    const char *program = user.is_extra ? gpu_program(exam, env, user.name) : NULL;
    gp_exam_report(exam,
                   !user.is_extra ? gp_pyenv_verdict(env, false)
                   : program      ? GP_VERDICT_WARN
                                  : GP_VERDICT_INFO,
                   "%s %s in %s %s CUDA %u, which needs driver %s or newer; this machine has %s",
                   user.name, user.version, env->prefix,
                   user.is_extra && !program ? "may use" : "uses", cuda, floor, nv->driver);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/METADATA", env->site, user.entry),
                     "requires %s%s", runtime->name, user.is_extra ? ", with an extra" : "");
    gp_exam_evidence(exam, env->site, "%s", runtime->entry);
    if (program)
        gp_exam_evidence(exam, program, "%s", own_build.argument);
    gp_exam_why(exam, "CUDA's runtime is in the environment, whatever toolkit is installed: \"CUDA "
                      "driver version is insufficient for CUDA runtime version\" (error 35).");
    gp_driver_fix_at_least(exam, floor);
    fix_build(exam, env, &user, nv);
}
