#include "doctor/checks/framework.h"

#include "doctor/checks/build_choice.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/torch_stack.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

/* ---- the judgement ---- */

void gp_case_judge(struct gp_case *c, const struct gp_nvidia *nv)
{
    static const enum gp_trouble troubles[] = {
        [GP_FIT_NO_CODE] = GP_TROUBLE_NO_CODE,
        [GP_FIT_NEEDS_DRIVER] = GP_TROUBLE_NEEDS_DRIVER,
        [GP_FIT_NO_DRIVER] = GP_TROUBLE_NO_DRIVER,
    };
    size_t working = 0;
    for (size_t i = 0; i < nv->count; i++) {
        struct gp_judgement j = gp_judge(nv->driver, c->cuda, c->archs, nv->gpus[i].capability);
        working += j.fit == GP_FIT_WORKS;
        enum gp_trouble trouble =
            j.fit < GP_ARRAY_LEN(troubles) ? troubles[j.fit] : GP_TROUBLE_NONE;
        if (trouble == GP_TROUBLE_NONE || c->trouble == GP_TROUBLE_NO_CODE)
            continue; /* another check reports problems between a GPU and its driver */
        c->trouble = trouble;
        c->judgement = j;
        c->gpu = &nv->gpus[i];
    }
    c->is_partial = working > 0;
    if (c->trouble == GP_TROUBLE_NONE && nv->count > 0 &&
        (!c->archs[0] || !gp_cuda_floor(c->cuda)[0]))
        c->trouble = GP_TROUBLE_UNKNOWN;
}

enum gp_verdict gp_pyenv_verdict(const struct gp_pyenv *env, bool is_only)
{
    return env->is_active || env->is_named || is_only ? GP_VERDICT_FAIL : GP_VERDICT_WARN;
}

/* ---- the remedy ---- */

const char *gp_jax_place(const struct gp_build *build)
{
    return strstr(build->variant, "_pip") || strcmp(build->variant, "cuda") == 0
               ? " -f https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"
               : "";
}

static const char *packages_of(struct gp_exam *exam, const struct gp_build *build)
{
    return build->framework == GP_FRAMEWORK_TENSORFLOW
               ? gp_exam_text(exam, "'%s==%s'", build->variant, build->version)
               : gp_exam_text(exam, "'jax[%s]==%s'%s", build->variant, build->version,
                              gp_jax_place(build));
}

/* Whether conda installed it, so that conda must change it. */
static const struct gp_pypackage *conda_package(const struct gp_case *c)
{
    static const char *const names[] = {[GP_FRAMEWORK_TORCH] = "pytorch",
                                        [GP_FRAMEWORK_TENSORFLOW] = "tensorflow",
                                        [GP_FRAMEWORK_JAX] = "jaxlib"};
    if (strchr(c->version, '+')) /* pip has replaced it: conda's have no such version */
        return NULL;
    for (size_t i = 0; i < c->env->count; i++)
        if (c->env->packages[i].is_conda &&
            strcmp(c->env->packages[i].name, names[c->framework]) == 0)
            return &c->env->packages[i];
    return NULL;
}

/* JAX uses any plugin it finds: one for another CUDA must be removed first. */
static void remove_plugin(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_build *build)
{
    const char *names = "";
    const char *kept = gp_exam_text(exam, "jax-%s-", build->variant);
    for (size_t i = 0; build->framework == GP_FRAMEWORK_JAX && i < env->count; i++)
        if (strncmp(env->packages[i].name, "jax-cuda", 8) == 0 &&
            strncmp(env->packages[i].name, kept, strlen(kept)) != 0)
            names = gp_exam_text(exam, "%s%s%s", names, *names ? " " : "", env->packages[i].name);
    if (*names)
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", names);
}

/* The oldest CUDA for which conda-forge has builds of PyTorch for GPUs (believed). */
enum { CONDA_FORGE_CUDA = 11 };

/* conda's package that keeps PyTorch on builds for the CPU; NULL: it is not installed. */
static const struct gp_pypackage *cpu_only(const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "cpuonly");
    return package && package->is_conda ? package : NULL;
}

/* PyTorch's own package that asks for a CUDA, next to a PyTorch of conda-forge, which does not heed
 * it; NULL: none. */
static const struct gp_pypackage *other_channel(const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "pytorch-cuda");
    bool is_other = package && package->is_conda && !gp_pyenv_package(env, "pytorch-mutex");
    return is_other ? package : NULL;
}

/* The other channel with the CUDA of a build in PyTorch's own channel: the default ones have only
 * some versions of cudatoolkit. */
static const char *channel_of(const char *version, const char *cuda)
{
    static const char *const elsewhere[] = {"11.1", "11.2", "11.6"};
    if (gp_version_compare(version, "1.13") >= 0)
        return "-c nvidia ";
    for (size_t i = 0; i < GP_ARRAY_LEN(elsewhere); i++)
        if (strncmp(cuda, elsewhere[i], strlen(elsewhere[i])) == 0)
            return "-c conda-forge ";
    return "";
}

/* The build of PyTorch's own channel, which has packages for each CUDA. */
static void propose_own_channel(struct gp_exam *exam, const struct gp_nvidia *nv,
                                const struct gp_case *c, const struct gp_build *build)
{
    const char *prefix = gp_exam_quoted(exam, c->env->prefix);
    const char *program = gp_conda_program(exam, c->env);
    const struct gp_pypackage *toolkit = gp_pyenv_package(c->env, "cudatoolkit");
    bool is_kept =
        toolkit && toolkit->is_conda && c->trouble == GP_TROUBLE_CPU_ONLY &&
        gp_build_is_there(GP_FRAMEWORK_TORCH, build->version, toolkit->version) &&
        (!nv->driver[0] || gp_driver_reaches(nv->driver, gp_cuda_floor(toolkit->version)));
    const char *cuda = is_kept ? toolkit->version : build->cuda;
    if (cpu_only(c->env))
        gp_exam_command(exam, "and what depends on it", "%s remove -p %s cpuonly", program, prefix);
    gp_torch_release_bound(exam, c->env);
    gp_exam_command(exam, "the build of PyTorch's own channel for these GPUs",
                    "%s install -p %s -c pytorch %s'pytorch=%s=*cuda*'%s %s=%u.%u", program, prefix,
                    channel_of(build->version, cuda), build->version,
                    gp_torch_companions(exam, c->env),
                    gp_version_compare(build->version, "1.13") < 0 ? "cudatoolkit" : "pytorch-cuda",
                    gp_version_major(cuda), gp_version_minor(cuda));
    gp_torch_return_bound(exam, c->env);
    if (other_channel(c->env))
        gp_exam_advice(exam, "in a file that describes the environment, put the channels pytorch "
                             "and nvidia before conda-forge");
}

/* Whether the environment's PyTorch is from its own channel, which ended with 2.5, or the build is
 * older than conda-forge's. */
static bool is_of_own_channel(const struct gp_case *c, const struct gp_build *build)
{
    bool is_own = gp_torch_is_of_channel(c->env) || cpu_only(c->env) || other_channel(c->env);
    return c->framework == GP_FRAMEWORK_TORCH &&
           (gp_version_major(build->cuda) < CONDA_FORGE_CUDA ||
            (is_own && gp_version_compare(build->version, "2.6") < 0));
}

/* pixi's environments follow the manifest of their project, which says that there is a GPU. */
static bool propose_pixi(struct gp_exam *exam, const struct gp_case *c, const char *package,
                         const char *cuda)
{
    const char *folder = strstr(c->env->prefix, "/.pixi/");
    if (!folder)
        return false;
    const char *project =
        gp_exam_text(exam, "%.*s", (int)(folder - c->env->prefix), c->env->prefix);
    const char *quoted = gp_exam_quoted(exam, project);
    gp_exam_advice(exam,
                   "in the manifest in %s say that there is CUDA: cuda = \"%u\" in "
                   "[system-requirements], or, in newer versions, next to the platform",
                   project, gp_version_major(cuda));
    gp_exam_command(exam, "then, for conda-forge's builds for GPUs", "cd %s && pixi add %s", quoted,
                    package);
    gp_exam_link(exam, "https://pixi.prefix.dev/latest/python/pytorch/");
    return true;
}

/* Whether pip sees that this build is not installed: it looks only at the package of this name,
 * whosever the files are. Otherwise it must reinstall, which brings the newest of all that it
 * depends on. */
static bool is_new_package(const struct gp_case *c, const struct gp_build *build)
{
    bool is_gpu = strcmp(build->variant, "tensorflow-gpu") == 0;
    const struct gp_pypackage *own =
        gp_pyenv_package(c->env, is_gpu ? "tensorflow-gpu" : "tensorflow");
    return build->framework == GP_FRAMEWORK_JAX ||
           (build->framework == GP_FRAMEWORK_TENSORFLOW &&
            (!own || strcmp(build->version, own->version) != 0));
}

/* Suggests a build that runs here; false: there is none. */
static bool propose_build(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *c)
{
    static const char *const conda[] = {[GP_FRAMEWORK_TORCH] = "pytorch-gpu",
                                        [GP_FRAMEWORK_TENSORFLOW] = "tensorflow-gpu",
                                        [GP_FRAMEWORK_JAX] = "jax 'jaxlib=*=*cuda*'"};
    struct gp_build build;
    if (exam->machine.is_jetson) {
        gp_exam_advice(exam, "install the wheel that NVIDIA builds for this JetPack: those of PyPI "
                             "are for other boards");
        return true;
    }
    bool is_same = gp_framework_build_for(c->env, nv, c->framework, c->version, &build);
    if (!is_same && !conda_package(c) && gp_propose_same_version(exam, nv, c))
        return true;
    if (!is_same && !gp_framework_build_for(c->env, nv, c->framework, "", &build))
        return false;
    if (conda_package(c) && is_of_own_channel(c, &build)) {
        propose_own_channel(exam, nv, c, &build);
        return true;
    }
    if (conda_package(c) && propose_pixi(exam, c, conda[c->framework], build.cuda))
        return true;
    bool is_torch = c->framework == GP_FRAMEWORK_TORCH;
    bool is_by_pip = !conda_package(c) || (is_torch && gp_torch_is_of_channel(c->env));
    enum gp_stack stack =
        is_torch && is_by_pip ? gp_torch_stack_propose(exam, nv, c, &build) : GP_STACK_FREE;
    if (stack != GP_STACK_FREE)
        return stack == GP_STACK_FIXED;
    if (!is_by_pip) {
        if (is_torch && cpu_only(c->env))
            gp_exam_command(exam, "and what depends on it", "%s remove -p %s cpuonly",
                            gp_conda_program(exam, c->env), gp_exam_quoted(exam, c->env->prefix));
        if (is_torch)
            gp_torch_release_bound(exam, c->env);
        gp_exam_command(exam, "conda-forge's build for these GPUs",
                        "%s install -p %s -c conda-forge %s %s", gp_conda_program(exam, c->env),
                        gp_exam_quoted(exam, c->env->prefix),
                        is_torch ? gp_torch_conda_forge(exam, c->env) : conda[c->framework],
                        gp_conda_cuda(exam, nv->capabilities, nv->count, build.cuda));
        if (is_torch) {
            gp_torch_return_bound(exam, c->env);
            gp_torch_stack_advise(exam, c, &build);
        }
        return true;
    }
    remove_plugin(exam, c->env, &build);
    if (c->framework == GP_FRAMEWORK_TENSORFLOW && gp_pyenv_package(c->env, "tensorflow-cpu"))
        gp_exam_pip(exam, c->env, GP_PIP_REMOVE, "", "tensorflow-cpu");
    if (strcmp(build.variant, "tensorflow-gpu") == 0 && gp_pyenv_package(c->env, "tensorflow"))
        gp_exam_pip(exam, c->env, GP_PIP_REMOVE, "it has the same files", "tensorflow");
    const char *note = gp_exam_text(exam, "for CUDA %s, which fits this %sGPU", build.cuda,
                                    nv->driver[0] ? "driver and " : "");
    if (is_torch)
        gp_exam_torch(exam, c->env, note, gp_torch_release(exam, build.version),
                      gp_exam_text(exam, "https://download.pytorch.org/whl/%s", build.variant));
    if (is_torch && !is_same)
        gp_torch_compile_again(exam, c->env);
    if (!is_torch)
        gp_exam_pip(exam, c->env, is_new_package(c, &build) ? GP_PIP_ADD : GP_PIP_AGAIN, note,
                    packages_of(exam, &build));
    return true;
}

/* The last PyTorch for an old GPU may be older than the environment's Python; false: it is not. */
static bool propose_older_python(struct gp_exam *exam, const struct gp_nvidia *nv,
                                 const struct gp_case *c)
{
    struct gp_pyenv any = *c->env;
    struct gp_build build;
    any.python = "";
    if (c->framework != GP_FRAMEWORK_TORCH || c->trouble != GP_TROUBLE_NO_CODE ||
        !gp_framework_build_for(&any, nv, c->framework, "", &build) || !build.last_python[0] ||
        gp_version_compare(build.version, "1.13") >= 0)
        return false;
    gp_exam_advice(exam,
                   "the last build that runs on this GPU is PyTorch %s, for Python %s to %s: in an "
                   "environment of its own, with conda:",
                   build.version, build.first_python, build.last_python);
    gp_exam_command(
        exam, "", "%s create -n gpu -c pytorch %spython=%s pytorch=%s cudatoolkit=%u.%u",
        gp_conda_program(exam, c->env), channel_of(build.version, build.cuda), build.last_python,
        build.version, gp_version_major(build.cuda), gp_version_minor(build.cuda));
    return true;
}

/* ---- findings ---- */

static const char *case_words(struct gp_exam *exam, const struct gp_case *c)
{
    return gp_exam_text(exam, "%s %s in %s", gp_framework_name(c->framework), c->version,
                        c->env->prefix);
}

/* "PyTorch 2.7.1 in /home/ada/venv", or "PyTorch in 3 environments". */
static const char *subject_words(struct gp_exam *exam, const struct gp_case *c, size_t count)
{
    return count == 1 ? case_words(exam, c)
                      : gp_exam_text(exam, "%s in %zu environments",
                                     gp_framework_name(c->framework), count);
}

static const char *summary_of(struct gp_exam *exam, const struct gp_nvidia *nv,
                              const struct gp_case *c, size_t count)
{
    const char *who = subject_words(exam, c, count);
    switch (c->trouble) {
    case GP_TROUBLE_BROKEN:
        return gp_exam_text(exam, "%s is only partly installed", who);
    case GP_TROUBLE_CPU_ONLY:
        return gp_exam_text(exam, "%s is a build without GPU support", who);
    case GP_TROUBLE_OTHER_VENDOR:
        return gp_exam_text(exam, "%s is a build for another vendor's GPUs; this machine has %s",
                            who, nv->count ? nv->gpus[0].name : "none of them");
    case GP_TROUBLE_NO_CODE:
        return gp_exam_text(exam, "%s has no kernels for %s", who,
                            gp_nvidia_gpu_words(exam, c->gpu));
    case GP_TROUBLE_UNKNOWN:
        return gp_exam_text(exam, "it is unknown which GPUs %s is built for", who);
    case GP_TROUBLE_NO_DRIVER:
        return gp_exam_text(exam, "%s needs driver %s, but support for %s ended with branch %u",
                            who, c->judgement.driver, c->gpu->name, c->judgement.branch);
    default:
        return gp_exam_text(exam, "%s needs driver %s or newer; this machine has %s", who,
                            c->judgement.driver, nv->driver);
    }
}

static const char *why_of(const struct gp_case *c)
{
    static const char *const words[GP_TROUBLE__COUNT] = {
        [GP_TROUBLE_BROKEN] = "An installation was interrupted, or two were mixed.",
        [GP_TROUBLE_CPU_ONLY] = "It computes on the CPU; if CUDA is requested, it reports that it "
                                "was not compiled with CUDA.",
        [GP_TROUBLE_OTHER_VENDOR] = "It finds no GPU that it can use.",
        [GP_TROUBLE_NO_CODE] = "It sees the GPU, but the first kernel fails with \"no kernel image "
                               "is available for execution on the device\".",
        [GP_TROUBLE_NO_DRIVER] = "No driver supports both.",
        [GP_TROUBLE_UNKNOWN] = "It is not in gpulse's tables, or the library that lists its "
                               "GPU architectures is missing.",
        [GP_TROUBLE_NEEDS_DRIVER] = "It fails with \"the NVIDIA driver on your system is too "
                                    "old\", or does not see the GPU.",
    };
    return c->trouble == GP_TROUBLE_NEEDS_DRIVER && c->judgement.code == GP_CODE_PTX
               ? "It has only PTX for this GPU, which the driver must be able to compile."
               : words[c->trouble];
}

enum { SHOWN_MAX = 12 };

static void show_case(struct gp_exam *exam, const struct gp_case *c)
{
    const struct gp_pypackage *cpu = c->trouble == GP_TROUBLE_CPU_ONLY ? cpu_only(c->env) : NULL;
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    if (cpu)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", c->env->prefix),
                         "%s: keeps PyTorch on builds for the CPU", cpu->entry);
    const struct gp_pypackage *own = other_channel(c->env), *other = conda_package(c);
    if (c->trouble == GP_TROUBLE_CPU_ONLY && c->framework == GP_FRAMEWORK_TORCH && own && other)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", c->env->prefix),
                         "%s: of PyTorch's own channel, but %s is of another one", own->entry,
                         other->entry);
    if (c->archs[0] && (c->trouble == GP_TROUBLE_NO_CODE || c->judgement.code == GP_CODE_PTX))
        gp_exam_evidence(exam, c->archs_where, "built for %s", c->archs);
}

static bool is_shared(const struct gp_case *a, const struct gp_case *b)
{
    return a->trouble == b->trouble && a->gpu == b->gpu;
}

/* The highest driver version that one of them needs; it suffices for the others too. */
static const char *highest_driver(const struct gp_case *cases, size_t count,
                                  const struct gp_case *like)
{
    const char *driver = like->judgement.driver;
    if (like->trouble != GP_TROUBLE_NEEDS_DRIVER)
        return "";
    for (size_t i = 0; i < count; i++)
        if (is_shared(&cases[i], like) && gp_version_compare(cases[i].judgement.driver, driver) > 0)
            driver = cases[i].judgement.driver;
    return driver;
}

/* Whether the files are those of an image, which a new container begins with. */
static bool is_in_image(const struct gp_exam *exam)
{
    static const char *const engines[] = {"docker", "podman", "kubernetes"};
    const char *container = exam->machine.container;
    for (size_t i = 0; container && i < GP_ARRAY_LEN(engines); i++)
        if (strcmp(container, engines[i]) == 0)
            return !gp_files_exist(&exam->files, "/usr/bin/distrobox-export");
    return false;
}

static void fix(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *c,
                const char *driver, size_t shared)
{
    if (c->trouble == GP_TROUBLE_CPU_ONLY && is_in_image(exam))
        gp_exam_advice(exam,
                       "use the variant of this image for GPUs, if there is one (a tag such as "
                       "gpu or cuda); or build it with the following, as what is installed in "
                       "a container is lost with it:");
    bool has_build = propose_build(exam, nv, c);
    if (has_build && shared > 1)
        gp_exam_advice(exam, "and the same in the other environments");
    if (c->trouble == GP_TROUBLE_NO_CODE && c->framework == GP_FRAMEWORK_TORCH &&
        exam->machine.container && gp_pyenv_package(c->env, "vllm"))
        gp_exam_advice(exam, "or another image of vLLM, with a PyTorch for this GPU: a new "
                             "container does not have that change");
    else if (has_build && c->trouble == GP_TROUBLE_NO_CODE && is_in_image(exam))
        gp_exam_advice(exam, "make this change in the image: a new container does not have it; or "
                             "use an image with a build for this GPU");
    if (c->trouble == GP_TROUBLE_NEEDS_DRIVER) {
        if (has_build)
            gp_exam_advice(exam, "or keep it, and:");
        gp_driver_fix_at_least(exam, driver);
    } else if (!has_build && c->is_partial) {
        gp_exam_advice(exam, "hide this GPU from it: list the others in CUDA_VISIBLE_DEVICES, as "
                             "named by nvidia-smi -L");
    } else if (!has_build && !propose_older_python(exam, nv, c)) {
        gp_exam_advice(exam, c->trouble == GP_TROUBLE_NO_CODE
                                 ? "no known build of it runs on this GPU with this driver: "
                                   "compute on the CPU, or on a newer GPU"
                                 : "no known build of it runs on this GPU with this driver");
    }
}

/* Whether this problem matters only to a program that computes with the framework, and those of the
 * environment compute with another. */
static bool is_aside(struct gp_exam *exam, const struct gp_case *c)
{
    return c->trouble != GP_TROUBLE_BROKEN && c->trouble != GP_TROUBLE_UNKNOWN &&
           gp_framework_aside(exam, c->env, c->framework);
}

/* Whether it is a problem with any driver, and also where there is none yet. */
static bool is_of_build(enum gp_trouble trouble)
{
    return trouble == GP_TROUBLE_BROKEN || trouble == GP_TROUBLE_CPU_ONLY ||
           trouble == GP_TROUBLE_OTHER_VENDOR;
}

/* A finding for a case and all others with the same problem. */
static void report_trouble(struct gp_exam *exam, const struct gp_nvidia *nv,
                           const struct gp_case *cases, size_t count, const struct gp_case *first)
{
    enum gp_verdict verdict = GP_VERDICT_WARN;
    const struct gp_case *worst = first;
    size_t shared = 0, shown = 0, aside = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_shared(&cases[i], first))
            continue;
        shared++;
        if (is_aside(exam, &cases[i])) {
            aside++;
            continue;
        }
        if (gp_pyenv_verdict(cases[i].env, count == 1) == GP_VERDICT_FAIL &&
            verdict != GP_VERDICT_FAIL && !cases[i].is_partial) {
            verdict = GP_VERDICT_FAIL;
            worst = &cases[i];
        }
    }
    if (shared == count && !first->is_partial) /* none of them works */
        verdict = GP_VERDICT_FAIL;
    if (first->trouble == GP_TROUBLE_CPU_ONLY && first->framework != GP_FRAMEWORK_TORCH)
        verdict = GP_VERDICT_WARN; /* these come with packages that do not need a GPU */
    if (first->trouble == GP_TROUBLE_UNKNOWN)
        verdict = GP_VERDICT_SKIP;
    if (aside == shared)
        verdict = GP_VERDICT_INFO;
    gp_exam_report(exam, verdict, "%s", summary_of(exam, nv, worst, shared));
    if (is_of_build(first->trouble))
        gp_exam_stands_alone(exam);
    for (size_t i = 0; i < count && shown < SHOWN_MAX; i++)
        if (is_shared(&cases[i], first)) {
            show_case(exam, &cases[i]);
            shown++;
        }
    if (shared > shown)
        gp_exam_evidence(exam, "", "and %zu more", shared - shown);
    if (aside == shared)
        gp_exam_aside(exam, first->env, first->framework);
    gp_exam_why(exam, "%s", why_of(worst));
    /* For the CPU on purpose, where others compute: another version could break these. */
    if (first->trouble == GP_TROUBLE_UNKNOWN ||
        (first->trouble == GP_TROUBLE_CPU_ONLY && aside == shared))
        return;
    fix(exam, nv, worst, highest_driver(cases, count, first), shared);
}

void gp_framework_report_none(struct gp_exam *exam, enum gp_framework framework)
{
    bool is_whole = gp_pyenvs_readable(gp_pyenvs_of(exam));
    gp_exam_report(exam, is_whole ? GP_VERDICT_OK : GP_VERDICT_SKIP,
                   "no Python environment%s has %s", is_whole ? "" : " that can be read",
                   gp_framework_name(framework));
    gp_python_show_places(exam);
    gp_exam_is_empty(exam);
}

void gp_cases_report(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *cases,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_first = cases[i].trouble != GP_TROUBLE_NONE;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = !is_shared(&cases[j], &cases[i]);
        if (is_first)
            report_trouble(exam, nv, cases, count, &cases[i]);
    }
}

static bool has_gpu(const struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    return nv.count > 0;
}

/* In WSL only Windows' driver names the GPU. A copy of the files leaves the comparison to its
 * reader. */
static void report_unseen(struct gp_exam *exam, const struct gp_case *cases, size_t count)
{
    gp_exam_report(exam, GP_VERDICT_SKIP, "no file names the GPU to compare with %s",
                   subject_words(exam, &cases[0], count));
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++)
        gp_exam_evidence(exam, cases[i].where, "%s%s%s", cases[i].seen,
                         cases[i].archs[0] ? ", built for " : "", cases[i].archs);
    bool is_older = cases[0].archs[0] && !strstr(cases[0].archs, "sm_120");
    gp_exam_why(exam,
                "Windows' driver names it: nvidia-smi --query-gpu=name,compute_cap --format=csv%s",
                is_older ? ". A GeForce RTX 50xx (12.0) needs sm_120." : "");
}

void gp_cases_report_well(struct gp_exam *exam, enum gp_framework framework,
                          const struct gp_case *cases, size_t count)
{
    if (exam->last && exam->last->check == exam->check)
        return; /* a problem was reported */
    if (count == 0) {
        gp_framework_report_none(exam, framework);
        return;
    }
    if (!has_gpu(exam)) {
        report_unseen(exam, cases, count);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_OK, "%s fits the GPUs and the driver",
                   subject_words(exam, &cases[0], count));
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, cases[i].where, "%s", cases[i].seen);
}
