/* JAX: jax, jaxlib and the plugins, and the GPUs and the driver. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

struct jax {
    const struct gp_pypackage *jaxlib;
    const struct gp_pypackage *plugin; /* "jax-cuda12-plugin"; NULL */
    const struct gp_pypackage *pjrt;   /* "jax-cuda12-pjrt"; NULL */
};

static struct jax jax_of(const struct gp_pyenv *env)
{
    struct jax jax = {.jaxlib = gp_pyenv_package(env, "jaxlib")};
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *package = &env->packages[i];
        if (strncmp(package->name, "jax-cuda", 8) != 0)
            continue;
        if (strstr(package->name, "-plugin"))
            jax.plugin = package;
        else if (strstr(package->name, "-pjrt"))
            jax.pjrt = package;
    }
    return jax;
}

/* "12" of "jax-cuda12-plugin", or of an old jaxlib's "0.4.20+cuda12.cudnn89"; 0: for the CPU. */
static unsigned jax_cuda(const struct jax *jax)
{
    const char *at = jax->plugin ? jax->plugin->name + 4 : strstr(jax->jaxlib->version, "cuda");
    unsigned number = at ? (unsigned)strtoul(at + 4, NULL, 10) : 0;
    return number >= 100 ? number / 10 : number; /* once with the minor version: "cuda112" */
}

/* The cuDNN that a build before the plugins was compiled with, by its name: "8.2" of
 * "0.3.14+cuda11.cudnn82"; "": unknown. Those that do not name it have the first cuDNN for their
 * CUDA. */
static const char *cudnn_of(struct gp_exam *exam, const struct jax *jax)
{
    static const char mark[] = ".cudnn", first[] = "+cuda112";
    const char *at = strstr(jax->jaxlib->version, mark);
    if (!at)
        return strstr(jax->jaxlib->version, first) ? "8.1.0" : "";
    at += sizeof(mark) - 1;
    size_t n = strspn(at, "0123456789");
    return n == 3   ? gp_exam_text(exam, "%c.%c.%c", at[0], at[1], at[2])
           : n == 2 ? gp_exam_text(exam, "%c.%c", at[0], at[1])
                    : "";
}

static void mend_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, const char *path,
                       const char *built, unsigned cuda)
{
    unsigned major = gp_version_major(built);
    bool is_packaged = strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/lib", 4) == 0 ||
                       strncmp(path, env->prefix, strlen(env->prefix)) == 0;
    if (is_packaged) /* copied files would be mixed with the next update of the package */
        gp_exam_advice(exam,
                       "update cuDNN to version %s or a newer %u.x for CUDA %u, with the package "
                       "manager that installed %s",
                       built, major, cuda, path);
    else
        gp_exam_advice(exam,
                       "replace it by version %s or a newer %u.x for CUDA %u, from "
                       "developer.nvidia.com/cudnn-archive: its libraries into %.*s",
                       built, major, cuda, (int)(strrchr(path, '/') - path), path);
}

/* XLA refuses a cuDNN with a lower minor version than the one that it was compiled with; the patch
 * version does not count. */
static void check_cudnn(struct gp_exam *exam, const struct gp_case *c, const struct jax *jax)
{
    const char *built = jax->plugin ? "" : cudnn_of(exam, jax);
    unsigned major = gp_version_major(built);
    const char *path = "", *loaded = built[0] ? gp_cudnn_loaded(exam, c->env, major, &path) : "";
    if (!loaded[0] || gp_version_minor(loaded) >= gp_version_minor(built) ||
        gp_pyenv_package_like(c->env, "nvidia-cudnn-cu"))
        return;
    gp_exam_report(exam,
                   gp_framework_aside(exam, c->env, GP_FRAMEWORK_JAX) ? GP_VERDICT_INFO
                                                                      : GP_VERDICT_WARN,
                   "JAX %s in %s was built with cuDNN %s, but finds %s", c->version, c->env->prefix,
                   built, loaded);
    gp_exam_evidence(exam, path, "version %s", loaded);
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_JAX);
    gp_exam_why(exam, "\"Loaded runtime CuDNN library … but source was compiled with\": operations "
                      "on the GPU fail.");
    mend_cudnn(exam, c->env, path, built, jax_cuda(jax));
}

/* A build for CUDA has no libraries of its own: they come as packages, by an extra of jax, or from
 * the machine. */
static void check_libraries(struct gp_exam *exam, const struct gp_case *c, const struct jax *jax)
{
    static const char first_9[] = "0.4.31", first_extra[] = "0.4.7";
    unsigned cuda = jax_cuda(jax), other = 0;
    unsigned major = jax->plugin && gp_version_compare(jax->plugin->version, first_9) >= 0 ? 9 : 8;
    bool is_known = false;
    if (gp_pyenv_package_like(c->env, "nvidia-cudnn-cu") || cuda < 11 ||
        gp_cudnn_is_found(exam, c->env, major, &other, &is_known) || !is_known || other ||
        gp_pyenv_package(c->env, "cudnn"))
        return;
    gp_exam_report(
        exam,
        gp_framework_aside(exam, c->env, GP_FRAMEWORK_JAX) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
        "JAX %s in %s needs cuDNN %u, but none is installed", c->version, c->env->prefix, major);
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_evidence(exam, gp_exam_text(exam, "libcudnn.so.%u", major),
                     "not in any library directory");
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_JAX);
    gp_exam_why(exam, "\"Unable to load cuDNN. Is it installed?\": it falls back to the CPU.");
    int n = (int)strcspn(c->version, "+");
    if (jax->plugin)
        gp_exam_pip(exam, c->env, GP_PIP_ADD, "the libraries of CUDA as packages",
                    gp_exam_text(exam, "'jax[cuda%u]==%.*s'", cuda, n, c->version));
    else if (gp_version_compare(c->version, first_extra) >= 0)
        gp_exam_pip(exam, c->env, GP_PIP_ADD, "the libraries of CUDA as packages",
                    gp_exam_text(exam,
                                 "'jax[cuda%u_pip]==%.*s' -f "
                                 "https://storage.googleapis.com/jax-releases/"
                                 "jax_cuda_releases.html",
                                 cuda, n, c->version));
    else
        gp_exam_advice(exam, "install CUDA %u and cuDNN %s, and have LD_LIBRARY_PATH lead to them",
                       cuda, *cudnn_of(exam, jax) ? cudnn_of(exam, jax) : "8");
}

/* Whether conda's build of it is one for the CPU, in the environment that the user means. */
static bool is_conda_cpu(const struct gp_pyenv *env, const struct gp_pypackage *jaxlib)
{
    const char *build = strrchr(jaxlib->entry, '-');
    return env->is_active && build && strncmp(build, "-cpu_", 5) == 0;
}

/* Conda's build with conda's cuDNN in the environment that the user means. No file says which cuDNN
 * it was compiled with: that passes, but is what XLA's message about it is about. */
static void note_conda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *jaxlib = NULL, *cudnn = gp_pyenv_package(env, "libcudnn");
    for (size_t i = 0; i < env->count; i++)
        if (env->packages[i].is_conda && strcmp(env->packages[i].name, "jaxlib") == 0)
            jaxlib = &env->packages[i];
    const char *build = jaxlib ? strrchr(jaxlib->entry, '-') : NULL;
    cudnn = cudnn ? cudnn : gp_pyenv_package(env, "cudnn");
    if (!env->is_active || !cudnn || !cudnn->is_conda || !build ||
        strncmp(build, "-cuda", 5) != 0 ||
        strcmp(gp_pyenv_package(env, "jaxlib")->version, jaxlib->version) != 0)
        return;
    const char *program = gp_conda_program(exam, env), *prefix = gp_exam_quoted(exam, env->prefix);
    gp_exam_report(exam, GP_VERDICT_OK,
                   "conda's jaxlib %s in %s uses conda's cuDNN %s, whose minor version may not be "
                   "lower than the one that jaxlib was compiled with",
                   jaxlib->version, env->prefix, cudnn->version);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix), "%s, %s",
                     jaxlib->entry, cudnn->entry);
    gp_exam_command(exam, "a newer build of jaxlib, for the cuDNN that conda-forge has",
                    "%s update -p %s -c conda-forge jaxlib", program, prefix);
    gp_exam_advice(exam,
                   "if that changes nothing, and the GPU is a Turing or newer: install the cuDNN "
                   "that the message names as compiled with, or a newer one of the same major "
                   "version: %s install -p %s -c conda-forge 'libcudnn>=VERSION'",
                   program, prefix);
    gp_exam_advice(exam,
                   "or, in an environment of its own: pip install 'jax[cuda12]', which brings "
                   "its cuDNN with it");
}

/* Plugins for two versions of CUDA, which both register themselves. */
static bool check_plugins(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *older = gp_pyenv_package(env, "jax-cuda12-plugin");
    const struct gp_pypackage *newer = gp_pyenv_package(env, "jax-cuda13-plugin");
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (!older || !newer || older->is_conda || newer->is_conda)
        return false;
    bool is_13 = !nv.driver[0] || gp_driver_reaches(nv.driver, gp_cuda_floor("13"));
    gp_exam_report(exam, GP_VERDICT_WARN, "JAX in %s has plugins for CUDA 12 and for CUDA 13",
                   env->prefix);
    gp_exam_evidence(exam, env->site, "%s, %s", older->entry, newer->entry);
    gp_exam_why(
        exam, "Both register themselves, and the second one cannot: \"PJRT_Api already exists for "
              "device type cuda\".");
    gp_exam_pip(exam, env, GP_PIP_REMOVE,
                is_13 ? "keep the newer one" : "keep the one that this driver runs",
                is_13 ? "jax-cuda12-plugin jax-cuda12-pjrt" : "jax-cuda13-plugin jax-cuda13-pjrt");
    return true;
}

/* The oldest jaxlib for the installed jax, by its metadata; "": unknown. */
static const char *oldest_jaxlib(struct gp_exam *exam, const struct gp_pyenv *env,
                                 const struct gp_pypackage *jax)
{
    const char *text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", jax->entry));
    struct gp_requirement wanted;
    while ((text = gp_requirement_next(text, &wanted)))
        if (strcmp(wanted.name, "jaxlib") == 0 && wanted.least[0] && !wanted.is_extra)
            return gp_exam_text(exam, "%s", wanted.least);
    return "";
}

/* jax checks at its import that jaxlib is not newer than itself, and new enough. */
static bool check_jaxlib(struct gp_exam *exam, const struct gp_pyenv *env, const struct jax *all,
                         bool is_only)
{
    const struct gp_pypackage *jax = gp_pyenv_package(env, "jax"), *jaxlib = all->jaxlib;
    if (!jax || jax->is_conda)
        return false;
    bool is_newer = gp_version_compare(jaxlib->version, jax->version) > 0;
    const char *oldest = oldest_jaxlib(exam, env, jax);
    if (!is_newer && (!oldest[0] || gp_version_compare(jaxlib->version, oldest) >= 0))
        return false;
    gp_exam_report(exam, gp_pyenv_verdict(env, is_only),
                   "JAX in %s cannot be imported: jax is %s, jaxlib is %s", env->prefix,
                   jax->version, jaxlib->version);
    gp_exam_evidence(exam, env->site, "%s, %s", jax->entry, jaxlib->entry);
    if (is_newer)
        gp_exam_why(exam,
                    "\"jaxlib version %s is newer than and incompatible with jax version %s\".",
                    jaxlib->version, jax->version);
    else
        gp_exam_why(exam,
                    "\"jaxlib is version %s, but this version of jax requires version >= %s\".",
                    jaxlib->version, oldest);
    gp_exam_pip(exam, env, GP_PIP_ADD, "install all in the same version",
                gp_exam_text(exam, "'jax[cuda%u]==%s'", jax_cuda(all) > 0 ? jax_cuda(all) : 12,
                             jax->version));
    return true;
}

/* The plugin and jaxlib have different versions, so jaxlib ignores the plugin. */
static bool check_versions(struct gp_exam *exam, const struct gp_pyenv *env, const struct jax *jax,
                           bool is_only)
{
    const struct gp_pypackage *other =
        jax->plugin && strcmp(jax->plugin->version, jax->jaxlib->version) != 0 ? jax->plugin
        : jax->pjrt && strcmp(jax->pjrt->version, jax->jaxlib->version) != 0   ? jax->pjrt
                                                                               : NULL;
    if (!other)
        return false;
    const char *extra = gp_exam_text(exam, "cuda%u", jax_cuda(jax));
    gp_exam_report(exam, gp_pyenv_verdict(env, is_only),
                   "JAX in %s does not use the GPU: %s is %s, jaxlib is %s", env->prefix,
                   other->name, other->version, jax->jaxlib->version);
    gp_exam_evidence(exam, env->site, "%s, %s", other->entry, jax->jaxlib->entry);
    gp_exam_why(exam, "JAX loads a plugin only if it was built for the same version; otherwise it "
                      "falls back to the CPU.");
    gp_exam_pip(exam, env, GP_PIP_ADD, "install all in the same version",
                gp_exam_text(exam, "'jax[%s]==%.*s'", extra,
                             (int)strcspn(jax->jaxlib->version, "+"), jax->jaxlib->version));
    return true;
}

void gp_check_jax(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_case *cases = gp_arena_alloc(&exam->arena, GP_PYENVS, sizeof(*cases));
    struct gp_nvidia nv;
    struct gp_build build;
    size_t count = 0, all = 0;
    gp_nvidia_read(&nv, exam);
    gp_cuda_use_compat(exam, &nv);
    for (size_t i = 0; i < envs->count; i++)
        all += jax_of(&envs->list[i]).jaxlib != NULL;
    for (size_t i = 0; cases && i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        struct jax jax = jax_of(env);
        if (!jax.jaxlib || (jax.jaxlib->is_conda && !is_conda_cpu(env, jax.jaxlib)) ||
            check_plugins(exam, env) || check_jaxlib(exam, env, &jax, all == 1) ||
            check_versions(exam, env, &jax, all == 1))
            continue;
        unsigned major = jax_cuda(&jax);
        const char *extra = gp_exam_text(exam, "cuda%u", major);
        bool is_known =
            major > 0 && gp_build_known(GP_FRAMEWORK_JAX, jax.jaxlib->version, extra, &build);
        struct gp_case *c = &cases[count++];
        *c = (struct gp_case){.env = env,
                              .framework = GP_FRAMEWORK_JAX,
                              .version = jax.jaxlib->version,
                              .cuda = major > 0 ? gp_exam_text(exam, "%u", major) : "",
                              .archs = is_known ? build.archs : "",
                              .archs_where = "table of builds",
                              .where = env->site};
        c->seen = major > 0 ? gp_exam_text(exam, "JAX %s for CUDA %u", c->version, major)
                            : gp_exam_text(exam, "JAX %s without a CUDA plugin", c->version);
        if (major > 0)
            gp_case_judge(c, &nv);
        else
            c->trouble = GP_TROUBLE_CPU_ONLY;
        if (major > 0 && (c->trouble == GP_TROUBLE_NONE || c->trouble == GP_TROUBLE_UNKNOWN))
            check_cudnn(exam, c, &jax);
        if (c->trouble == GP_TROUBLE_NONE && !jax.jaxlib->is_conda)
            check_libraries(exam, c, &jax);
    }
    gp_cases_report(exam, &nv, cases, count);
    for (size_t i = 0; i < envs->count && !(exam->last && exam->last->check == exam->check); i++)
        note_conda(exam, &envs->list[i]);
    gp_cases_report_well(exam, GP_FRAMEWORK_JAX, cases, count);
}
