/* Packages that are made for one PyTorch: torchvision, vLLM, xformers and others. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/checks/torch_stack.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/torch.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same version, of any build. */
static bool is_same(const char *a, const char *b)
{
    return gp_version_compare(a, b) == 0;
}

/* Suggests the xformers for the installed PyTorch, unless vLLM needs that of xformers. */
static bool fix_xformers(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const struct gp_pypackage *package)
{
    if (strcmp(package->name, "xformers") != 0 || gp_pyenv_package(env, "vllm"))
        return false;
    const struct gp_torch_stack *row = gp_torch_stack_for("xformers", torch->version);
    if (!row)
        return false;
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "the one for this PyTorch",
                gp_exam_text(exam, "--no-deps xformers==%s --index-url %s", row->version,
                             gp_torch_index(exam, torch->cuda)));
    return true;
}

/* Whether a PyTorch has builds, of which none runs on these GPUs. */
static bool is_too_old(const struct gp_exam *exam, const char *version)
{
    struct gp_nvidia nv;
    struct gp_build build;
    unsigned capability;
    bool is_known = false;
    gp_nvidia_read(&nv, exam);
    struct gp_build_target target = gp_nvidia_target(&nv);
    for (size_t i = 0; target.count > 0 && gp_build_at(GP_FRAMEWORK_TORCH, i, &build); i++) {
        if (!is_same(build.version, version))
            continue;
        struct gp_judgement judgement = gp_build_judge(&build, &target, &capability);
        if (judgement.fit != GP_FIT_NO_CODE)
            return false;
        is_known = true;
    }
    return is_known;
}

/* What a package requires in exactly one version besides PyTorch, and what is compiled for a
 * PyTorch, too: it changes together with that, " xformers==0.0.23.post1". */
static const char *others_for(struct gp_exam *exam, const struct gp_pyenv *env,
                              const struct gp_pypackage *package)
{
    static const char xformers[] = "xformers";
    const char *words = "";
    struct gp_requirement wanted;
    const char *text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry));
    const struct gp_pypackage *other = gp_pyenv_package(env, xformers);
    while (other && !other->is_conda && (text = gp_requirement_next(text, &wanted)))
        if (strcmp(wanted.name, xformers) == 0 && wanted.version[0] && !wanted.is_extra &&
            !is_same(other->version, wanted.version))
            words = gp_exam_text(exam, " %s==%s", xformers, wanted.version);
    return words;
}

/* Packages that belong to PyTorch must match it; for packages built on it, PyTorch must match them:
 * `wanted`, for the CUDA of the installed one. */
static void fix_pin(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                    const struct gp_pypackage *package, const char *wanted)
{
    if (strncmp(package->name, "torch", 5) == 0)
        gp_exam_torch(exam, env, "the version for this PyTorch",
                      gp_torch_release(exam, torch->version), gp_torch_index(exam, torch->cuda));
    else if (fix_xformers(exam, env, torch, package))
        return;
    else if (is_too_old(exam, wanted)) /* the installed one is what runs on the GPU */
        gp_torch_stack_update(
            exam, env, package, torch,
            gp_exam_text(exam, "PyTorch %s has no kernels for this GPU: a newer version", wanted));
    else if (gp_build_is_there(GP_FRAMEWORK_TORCH, wanted, torch->cuda))
        gp_exam_torch_with(exam, env, "the PyTorch that it needs", gp_torch_release(exam, wanted),
                           others_for(exam, env, package), gp_torch_index(exam, torch->cuda));
    else
        gp_exam_pip(exam, env, GP_PIP_ADD, "with the PyTorch that it needs",
                    gp_exam_text(exam, "%s==%.*s", package->name,
                                 (int)strcspn(package->version, "+"), package->version));
}

/* The PyTorch of a torchvision or torchaudio whose metadata do not name it: 0.22.1 is for 2.7, and
 * 0.14 for 1.13; torchaudio has PyTorch's own numbers since 2.0. "": unknown. */
static const char *torch_of(struct gp_exam *exam, const struct gp_torch *torch,
                            const struct gp_pypackage *package)
{
    enum { FIRST_OF_2 = 15, LAST_PAIRED = 24 };
    unsigned major = gp_version_major(package->version);
    unsigned minor = gp_version_minor(package->version);
    bool is_vision = strcmp(package->name, "torchvision") == 0;
    if (gp_version_is_between(torch->version) || gp_version_is_between(package->version))
        return "";
    if (!is_vision && (strcmp(package->name, "torchaudio") != 0 || major == 0 ||
                       (major == 2 && minor > LAST_PAIRED - FIRST_OF_2)))
        return "";
    if (!is_vision)
        return gp_exam_text(exam, "%u.%u", major, minor);
    if (major != 0 || minor < 2 || minor > LAST_PAIRED)
        return "";
    return minor >= FIRST_OF_2 ? gp_exam_text(exam, "2.%u", minor - FIRST_OF_2)
                               : gp_exam_text(exam, "1.%u", minor - 1);
}

/* Whether an installed PyTorch is of a release: "2.7" of "2.7.1+cu128". */
static bool is_release(const char *version, const char *release)
{
    return gp_version_major(version) == gp_version_major(release) &&
           gp_version_minor(version) == gp_version_minor(release);
}

/* Without metadata that name a PyTorch, the numbers of the versions tell. */
static void check_numbers(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_torch *torch, const struct gp_pypackage *package)
{
    const char *release = torch_of(exam, torch, package);
    if (!release[0] || is_release(torch->version, release))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "%s %s in %s is for PyTorch %s, but PyTorch %s is installed", package->name,
                   package->version, env->prefix, release, torch->version);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "Its compiled code does not match: the import fails, or operators are "
                      "missing (\"operator torchvision::nms does not exist\").");
    fix_pin(exam, env, torch, package, release);
}

/* conda has seen to it that they fit, whatever their numbers say. */
static bool are_of_conda(const struct gp_pyenv *env, const struct gp_torch *torch,
                         const struct gp_pypackage *package)
{
    return gp_pyenv_is_of_conda(env, "pytorch", torch->version) &&
           gp_pyenv_is_of_conda(env, package->name, package->version);
}

/* Compiled against one version of PyTorch, named in their metadata, or against the oldest one that
 * these allow. */
static void check_pins(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch)
{
    static const char *const names[] = {"torchvision", "torchaudio", "vllm",
                                        "xformers",    "lmdeploy",   "gptqmodel"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, names[i]);
        struct gp_requirement wanted;
        if (!package || package->is_conda || are_of_conda(env, torch, package))
            continue;
        bool is_said = gp_pypackage_torch(exam, env, package, &wanted);
        bool is_pinned = is_said && wanted.version[0];
        const char *version = is_pinned ? wanted.version : wanted.least;
        if (!is_pinned)
            check_numbers(exam, env, torch, package);
        if (!is_said || (is_pinned ? is_same(version, torch->version)
                                   : gp_version_compare(torch->version, version) >= 0))
            continue;
        bool is_close = is_pinned && is_release(torch->version, version);
        gp_exam_report(exam, is_close ? GP_VERDICT_INFO : gp_pyenv_verdict(env, false),
                       "%s %s in %s is for PyTorch %s%s, but PyTorch %s is installed", names[i],
                       package->version, env->prefix, version, is_pinned ? "" : " or newer",
                       torch->version);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/METADATA", env->site, package->entry),
                         "torch%s%s", is_pinned ? "==" : ">=", version);
        gp_exam_why(exam, is_close ? "Compiled code usually works with another patch release."
                                   : "Its compiled code does not match: the import fails with an "
                                     "undefined symbol, or operators are missing.");
        gp_nccl_graph_show(exam, env, torch, package);
        fix_pin(exam, env, torch, package, version);
    }
}

/* torchvision for a different CUDA than PyTorch. */
static void check_vision(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch)
{
    char cuda[16] = "", path[GP_PATH_SIZE];
    const struct gp_pypackage *package = gp_pyenv_package(env, "torchvision");
    const char *text = package ? gp_pyenv_text(exam, env, "torchvision/version.py") : "";
    const char *release = package ? torch_of(exam, torch, package) : "";
    if (release[0] && !is_release(torch->version, release))
        return; /* has been reported */
    bool is_for_cpu = package && !*text && strstr(package->version, "+cpu");
    const char *suffix = package && !*text ? strstr(package->version, "+cu") : NULL;
    unsigned number = suffix ? (unsigned)strtoul(suffix + 3, NULL, 10) : 0;
    bool is_stated = gp_python_version(text, "cuda", cuda, sizeof(cuda)) || is_for_cpu;
    if (!is_stated && number >= 90)
        (void)snprintf(cuda, sizeof(cuda), "%u.%u", number / 10, number % 10);
    if ((!is_stated && !cuda[0]) || gp_version_major(cuda) == gp_version_major(torch->cuda) ||
        !gp_pyenv_path(env, "torchvision/version.py", path))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "torchvision in %s is for %s%s, PyTorch is for %s%s", env->prefix,
                   cuda[0] ? "CUDA " : "the CPU", cuda, torch->cuda[0] ? "CUDA " : "the CPU",
                   torch->cuda);
    gp_exam_evidence(exam, *text ? path : env->site, "torchvision %s", package->version);
    gp_exam_why(exam, "Its operators do not run on the GPU, or the import fails.");
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "the build for the same CUDA",
                gp_exam_text(exam, "--no-deps torchvision==%.*s --index-url %s",
                             (int)strcspn(package->version, "+"), package->version,
                             gp_torch_index(exam, torch->cuda)));
}

/* torchcodec's versions, which do not name a PyTorch: by its page. */
static const struct {
    const char *first, *torch;
} torchcodecs[] = {
    {"0.1", "2.5"}, {"0.2", "2.6"}, {"0.3", "2.7"}, {"0.6", "2.8"}, {"0.8", "2.9"}, {"0.10", ""},
};

static void check_torchcodec(struct gp_exam *exam, const struct gp_pyenv *env,
                             const struct gp_torch *torch)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "torchcodec");
    const char *release = "", *fitting = "";
    for (size_t i = 0; package && i < GP_ARRAY_LEN(torchcodecs); i++) {
        if (gp_version_compare(package->version, torchcodecs[i].first) >= 0)
            release = torchcodecs[i].torch;
        if (torchcodecs[i].torch[0] && is_release(torch->version, torchcodecs[i].torch))
            fitting = torchcodecs[i].first;
    }
    if (!release[0] || package->is_conda || is_release(torch->version, release) ||
        gp_version_is_between(torch->version) || gp_version_is_between(package->version))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "torchcodec %s in %s is for PyTorch %s, but PyTorch %s is installed",
                   package->version, env->prefix, release, torch->version);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "\"Could not load libtorchcodec\".");
    if (fitting[0])
        gp_exam_pip(exam, env, GP_PIP_ADD, "the one for this PyTorch",
                    gp_exam_text(exam, "--no-deps 'torchcodec==%s.*'", fitting));
    else
        gp_exam_advice(exam,
                       "install the version of torchcodec for this PyTorch, as its page says");
    gp_exam_link(exam, "https://github.com/meta-pytorch/torchcodec#installing-torchcodec");
}

/* transformers ignores a PyTorch that is older than it requires, in an extra. Its releases that
 * require one before 2.0 do not look. */
static void check_transformers(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "transformers");
    const char *text =
        package && !package->is_conda
            ? gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry))
            : NULL;
    struct gp_requirement wanted;
    struct gp_nvidia nv;
    struct gp_build build;
    bool is_said = false;
    while (!is_said && text && (text = gp_requirement_next(text, &wanted)))
        is_said = strcmp(wanted.name, "torch") == 0 && wanted.least[0] && !wanted.version[0];
    if (!is_said || gp_version_major(wanted.least) < 2 ||
        gp_version_compare(torch->version, wanted.least) >= 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "transformers %s in %s needs PyTorch %s or newer, but PyTorch %s is installed",
                   package->version, env->prefix, wanted.least, torch->version);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/METADATA", env->site, package->entry),
                     "torch>=%s", wanted.least);
    gp_exam_why(exam,
                "\"Disabling PyTorch because PyTorch >= %s is required\": models then say that "
                "they need PyTorch.",
                wanted.least);
    gp_nvidia_read(&nv, exam);
    if (gp_torch_oldest_from(env, &nv, wanted.least, &build))
        gp_exam_torch(exam, env, "the oldest that it takes and that runs here",
                      gp_torch_release(exam, build.version), gp_torch_index(exam, build.cuda));
    else
        gp_exam_advice(exam, "install a newer PyTorch (gpulse doctor advise torch), or an older "
                             "transformers");
}

void gp_check_torch_pins(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch)
{
    check_pins(exam, env, torch);
    check_vision(exam, env, torch);
    check_torchcodec(exam, env, torch);
    check_transformers(exam, env, torch);
}
