#include "doctor/advise/advise_framework.h"

#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/version.h"

#include <string.h>

static struct gp_build_target target_of(const struct gp_client *client)
{
    return (struct gp_build_target){client->driver, client->capabilities, client->count,
                                    client->version};
}

static const char *build_words(struct gp_exam *exam, const struct gp_build *build)
{
    return gp_exam_text(exam, "%s %s for CUDA %s", gp_framework_name(build->framework),
                        build->version, build->cuda);
}

static void command_torch(struct gp_exam *exam, const struct gp_build *build)
{
    gp_exam_command(exam, "with pip", "pip install %s",
                    gp_torch_request(
                        exam, gp_torch_release(exam, build->version), " torchvision",
                        gp_exam_text(exam, "https://download.pytorch.org/whl/%s", build->variant)));
    gp_exam_command(exam, "or with uv", "uv pip install torch==%s torchvision --torch-backend=%s",
                    build->version, build->variant);
}

/* GPUs that newer libraries no longer support. */
static bool has_old_gpu(const struct gp_client *client)
{
    return client->count > 0 && client->capabilities[0] > 0 && client->capabilities[0] < 75;
}

/* The cuDNN 9 that pip would install is newer than the last one with code for Volta and older. */
static const char *cudnn_pin(const struct gp_build *build, const struct gp_client *client)
{
    bool is_nine = gp_version_major(build->cudnn) == 9 || strcmp(build->variant, "cuda12") == 0;
    return is_nine && has_old_gpu(client) ? " 'nvidia-cudnn-cu12<9.11'" : "";
}

static void command_tensorflow(struct gp_exam *exam, const struct gp_build *build,
                               const struct gp_client *client)
{
    const char *pin = cudnn_pin(build, client);
    gp_exam_command(exam, "with pip", "pip install '%s==%s'%s", build->variant, build->version,
                    pin);
    gp_exam_command(exam, "or with uv", "uv pip install '%s==%s'%s", build->variant, build->version,
                    pin);
    if (!strchr(build->variant, '['))
        gp_exam_evidence(exam, "needs", "CUDA %s and cuDNN %s, which this wheel does not include",
                         build->cuda, build->cudnn);
}

static void command_jax(struct gp_exam *exam, const struct gp_build *build,
                        const struct gp_client *client)
{
    const char *place = gp_jax_place(build);
    const char *pin = cudnn_pin(build, client);
    gp_exam_command(exam, "with pip", "pip install 'jax[%s]==%s'%s%s", build->variant,
                    build->version, pin, place);
    gp_exam_command(exam, "or with uv", "uv pip install 'jax[%s]==%s'%s%s", build->variant,
                    build->version, pin, place);
}

/* conda-forge has its own builds, for CUDA 12 and newer, with the newest cuDNN. */
static void command_conda(struct gp_exam *exam, const struct gp_build *build,
                          const struct gp_client *client)
{
    static const char *const packages[] = {
        [GP_FRAMEWORK_TORCH] = "pytorch-gpu",
        [GP_FRAMEWORK_TENSORFLOW] = "tensorflow-gpu",
        [GP_FRAMEWORK_JAX] = "jax 'jaxlib=*=*cuda*'",
    };
    unsigned major = gp_version_major(build->cuda);
    if (major >= 12 && !has_old_gpu(client))
        gp_exam_command(exam, "or conda-forge's own build, which may be older",
                        "conda install -c conda-forge %s %s", packages[build->framework],
                        gp_conda_cuda(exam, client->capabilities, client->count, build->cuda));
}

static void add_commands(struct gp_exam *exam, const struct gp_build *build,
                         const struct gp_client *client)
{
    if (build->framework == GP_FRAMEWORK_TORCH)
        command_torch(exam, build);
    else if (build->framework == GP_FRAMEWORK_TENSORFLOW)
        command_tensorflow(exam, build, client);
    else
        command_jax(exam, build, client);
    if (!client->version)
        command_conda(exam, build, client);
}

/* ---- a framework ---- */

/* Why this version: it is the newest, or what rules out the newest. */
static void explain_build(struct gp_exam *exam, const struct gp_build *build,
                          const struct gp_build_target *target)
{
    struct gp_build newest;
    unsigned capability;
    char words[256];
    (void)gp_build_newest(build->framework, NULL, &newest);
    if (gp_build_is_same(build, &newest)) {
        gp_exam_why(exam,
                    "This is the newest version, and everything built for CUDA %u runs with driver "
                    "%s or newer.",
                    gp_version_major(build->cuda), gp_cuda_floor(build->cuda));
        return;
    }
    struct gp_judgement j = gp_build_judge(&newest, target, &capability);
    gp_judgement_words(&j, capability, words, sizeof(words));
    gp_exam_why(exam, "%s %s; this is the newest version that works.", build_words(exam, &newest),
                words);
}

/* What a different driver would allow. */
static void add_better(struct gp_exam *exam, const struct gp_build *build,
                       const struct gp_build_target *target)
{
    struct gp_build_target any = *target;
    struct gp_build better;
    unsigned capability;
    any.driver = "";
    if (!target->driver[0] || !gp_build_best(build->framework, &any, &better) ||
        gp_build_is_same(build, &better))
        return;
    struct gp_judgement j = gp_build_judge(&better, target, &capability);
    if (j.fit == GP_FIT_NEEDS_DRIVER)
        gp_exam_evidence(exam, "newer", "with driver %s or newer: %s", j.driver,
                         build_words(exam, &better));
}

/* The oldest driver for this build on these GPUs; a GPU can be newer than what the build needs. */
static const char *needed_driver(struct gp_exam *exam, const struct gp_build *build,
                                 const struct gp_client *client)
{
    const char *needed = gp_cuda_floor(build->cuda);
    unsigned first, last;
    for (size_t i = 0; i < client->count; i++)
        if (gp_code_for(build->archs, client->capabilities[i]) == GP_CODE_PTX)
            needed = gp_cuda_own_driver(build->cuda);
    gp_client_branches(client, &first, &last);
    return first > gp_version_major(needed) ? gp_exam_text(exam, "%u", first) : needed;
}

static void add_facts(struct gp_exam *exam, const struct gp_build *build,
                      const struct gp_client *client)
{
    for (size_t i = 0; i < client->count; i++) {
        unsigned capability = client->capabilities[i];
        if (gp_code_for(build->archs, capability) != GP_CODE_PTX)
            continue;
        gp_exam_evidence(exam, "note",
                         "for compute capability %u.%u it has only PTX: the driver compiles it on "
                         "first use, which can take many minutes",
                         capability / 10, capability % 10);
    }
    gp_exam_evidence(exam, "needs", "driver %s or newer; Python %s%s%s",
                     needed_driver(exam, build, client), build->first_python,
                     build->last_python[0] ? " to " : " or newer", build->last_python);
    if (client->is_here && strcmp(exam->machine.arch, "x86_64") != 0)
        gp_exam_evidence(exam, "note",
                         "based on the x86_64 wheels; those for %s may support fewer GPUs",
                         exam->machine.arch);
    if (!client->driver[0] && client->is_here)
        gp_exam_evidence(exam, "note", "no NVIDIA driver is loaded: run gpulse doctor");
}

static bool advise_build(struct gp_exam *exam, enum gp_framework framework,
                         const struct gp_client *client, const char *for_whom)
{
    struct gp_build_target target = target_of(client);
    struct gp_build build;
    if (!gp_build_best(framework, &target, &build))
        return false;
    gp_exam_report(exam, GP_VERDICT_INFO, "%s%s", build_words(exam, &build), for_whom);
    explain_build(exam, &build, &target);
    add_commands(exam, &build, client);
    add_facts(exam, &build, client);
    add_better(exam, &build, &target);
    gp_exam_evidence(exam, "source", "%s", build.source);
    return true;
}

/* How to ask for the driver that these GPUs need. */
static const char *driver_question(struct gp_exam *exam, const struct gp_client *client)
{
    return gp_exam_text(exam, "gpulse doctor advise driver%s",
                        gp_client_options(exam, client, false));
}

/* Why no build works: the one that would with another driver, or else the newest. Returns whether
 * another driver helps. */
static bool explain_misfit(struct gp_exam *exam, enum gp_framework framework,
                           const struct gp_client *client, struct gp_build *ret)
{
    struct gp_build_target target = target_of(client), any = target;
    unsigned capability;
    char words[256];
    any.driver = "";
    bool is_driver = gp_build_best(framework, &any, ret);
    if (!is_driver)
        (void)gp_build_newest(framework, client->version, ret);
    struct gp_judgement j = gp_build_judge(ret, &target, &capability);
    gp_judgement_words(&j, capability, words, sizeof(words));
    /* one requirement: the build may need more than the GPU */
    bool is_old = is_driver && client->driver[0] &&
                  !gp_driver_reaches(client->driver, needed_driver(exam, ret, client));
    unsigned first, last;
    gp_client_branches(client, &first, &last);
    if (is_old && gp_version_major(client->driver) < first)
        gp_exam_why(exam,
                    "Driver %s is too old for these GPUs, which need %u or newer; %s needs %s or "
                    "newer.",
                    client->driver, first, build_words(exam, ret),
                    needed_driver(exam, ret, client));
    else if (is_old)
        gp_exam_why(exam, "%s needs driver %s or newer.", build_words(exam, ret),
                    needed_driver(exam, ret, client));
    else
        gp_exam_why(exam, "%s %s.", build_words(exam, ret), words);
    return is_driver;
}

static void advise_nothing(struct gp_exam *exam, enum gp_framework framework,
                           const struct gp_client *client)
{
    struct gp_build build;
    gp_exam_report(exam, GP_VERDICT_WARN, "no known version of %s works with %s and %s",
                   gp_framework_name(framework), gp_client_gpus(exam, client),
                   gp_client_driver(exam, client));
    if (explain_misfit(exam, framework, client, &build))
        gp_exam_command(exam, "find the right driver", "%s", driver_question(exam, client));
}

static void advise_other_gpus(struct gp_exam *exam, enum gp_framework framework)
{
    const struct gp_machine *m = &exam->machine;
    if (framework != GP_FRAMEWORK_TORCH)
        return;
    if (m->amd_count > 0 && gp_torch_rocm_count > 0) {
        const struct gp_torch_rocm *row = &gp_torch_rocms[gp_torch_rocm_count - 1];
        gp_exam_report(exam, GP_VERDICT_INFO, "PyTorch %s for ROCm %s, for the AMD GPU", row->torch,
                       row->rocm);
        gp_exam_command(exam, "with pip",
                        "pip install 'torch==%s.*' --index-url "
                        "https://download.pytorch.org/whl/rocm%s",
                        row->torch, row->rocm);
        gp_exam_evidence(exam, "note", "supports the GPUs that ROCm supports");
        gp_exam_evidence(exam, "source", "%s", row->source);
    }
    if (m->intel_count > 0) {
        gp_exam_report(exam, GP_VERDICT_INFO, "PyTorch for XPU, for the Intel GPU");
        gp_exam_command(exam, "with pip",
                        "pip install torch --index-url https://download.pytorch.org/whl/xpu");
        gp_exam_evidence(exam, "note", "supports Arc and newer, not older graphics");
        gp_exam_evidence(exam, "source", "PyTorch installation page; unverified");
    }
}

/* "7.5 to 12.1": the compute capabilities that a list has code for, except those of Jetson. */
static const char *range_words(struct gp_exam *exam, const char *list)
{
    unsigned first = 0, last = 0;
    for (size_t i = 0; i < gp_arch_count; i++) {
        if (gp_archs[i].is_integrated ||
            gp_code_for(list, gp_archs[i].compute_capability) < GP_CODE_PTX)
            continue;
        last = gp_archs[i].compute_capability;
        first = first ? first : last;
    }
    return gp_exam_text(exam, "%u.%u to %u.%u", first / 10, first % 10, last / 10, last % 10);
}

/* The CPU build, and the requirements of the newest CUDA builds. */
static void advise_without_gpu(struct gp_exam *exam, enum gp_framework framework)
{
    static const char *const commands[] = {
        [GP_FRAMEWORK_TORCH] =
            "pip install torch torchvision --index-url https://download.pytorch.org/whl/cpu",
        [GP_FRAMEWORK_TENSORFLOW] = "pip install tensorflow",
        [GP_FRAMEWORK_JAX] = "pip install jax",
    };
    struct gp_build newest, build;
    (void)gp_build_newest(framework, NULL, &newest);
    gp_exam_report(exam, GP_VERDICT_INFO, "%s",
                   exam->machine.is_wsl ? "under WSL no file identifies the GPU"
                                        : "this machine has no NVIDIA GPU");
    gp_exam_why(exam,
                "Use --gpu and --driver to ask about another machine: gpulse doctor advise %s "
                "--gpu \"RTX 4090\" --driver 550.54.15.",
                gp_framework_word(framework));
    gp_exam_command(exam, "for the CPU", "%s", commands[framework]);
    for (size_t i = 0; gp_build_at(framework, i, &build); i++)
        if (strcmp(build.version, newest.version) == 0)
            gp_exam_evidence(exam, "needs",
                             "%s: driver %s or newer, a GPU with compute capability %s",
                             build_words(exam, &build), gp_cuda_floor(build.cuda),
                             range_words(exam, build.archs));
    gp_exam_evidence(exam, "source", "%s", newest.source);
    advise_other_gpus(exam, framework);
}

/* Why no build of the version works, and what to do. `build`: one of that version. */
static void explain_no(struct gp_exam *exam, const struct gp_build *build,
                       const struct gp_client *client)
{
    struct gp_build_target target = target_of(client);
    struct gp_build other;
    if (explain_misfit(exam, build->framework, client, &other))
        gp_exam_command(exam, "find the right driver", "%s", driver_question(exam, client));
    target.version = NULL;
    if (gp_build_best(build->framework, &target, &other))
        gp_exam_evidence(exam, "or", "%s works: gpulse doctor advise %s%s shows how to install it",
                         build_words(exam, &other), gp_framework_word(build->framework),
                         gp_client_options(exam, client, true));
    gp_exam_evidence(exam, "source", "%s", build->source);
}

/* Whether one version works: yes, and which of its builds; or no, why, and what to do. */
static void advise_version(struct gp_exam *exam, enum gp_framework framework,
                           const struct gp_client *client)
{
    struct gp_build_target target = target_of(client);
    struct gp_build build;
    const char *name = gp_framework_name(framework);
    const char *machine = gp_exam_text(exam, "%s and %s", gp_client_gpus(exam, client),
                                       gp_client_driver(exam, client));
    if (gp_build_best(framework, &target, &build)) {
        if (!client->driver[0])
            machine =
                gp_exam_text(exam, "%s, with driver %s or newer", gp_client_gpus(exam, client),
                             needed_driver(exam, &build, client));
        gp_exam_report(exam, GP_VERDICT_INFO, "yes: %s works with %s", build_words(exam, &build),
                       machine);
        add_commands(exam, &build, client);
        add_facts(exam, &build, client);
        gp_exam_evidence(exam, "source", "%s", build.source);
    } else if (gp_build_newest(framework, client->version, &build)) {
        gp_exam_report(exam, GP_VERDICT_WARN, "no: %s %s does not work with %s", name,
                       client->version, machine);
        explain_no(exam, &build, client);
    } else {
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s is not in gpulse's tables", name,
                       client->version);
        (void)gp_build_newest(framework, NULL, &build);
        gp_exam_why(exam, "The newest version in them is %s.", build.version);
    }
}

void gp_advise_framework(struct gp_exam *exam, enum gp_framework framework,
                         const struct gp_client *client)
{
    if (client->is_here && exam->machine.is_jetson) {
        gp_exam_report(exam, GP_VERDICT_INFO, "NVIDIA's build of %s for Jetson",
                       gp_framework_name(framework));
        gp_exam_why(exam, "The PyPI wheels have no code for Jetson GPUs.");
        gp_exam_advice(exam, "download the wheel for this JetPack from NVIDIA's Jetson pages");
        return;
    }
    if (client->count == 0) {
        advise_without_gpu(exam, framework);
        return;
    }
    if (client->version) {
        advise_version(exam, framework, client);
        return;
    }
    if (advise_build(exam, framework, client, ""))
        return;
    if (client->count == 1) {
        advise_nothing(exam, framework, client);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN, "no build of %s runs on all of these GPUs",
                   gp_framework_name(framework));
    gp_exam_why(exam, "Each GPU needs its own environment.");
    for (size_t i = 0; i < client->count; i++) {
        struct gp_client one = {.driver = client->driver, .is_here = client->is_here};
        gp_client_add(&one, client->capabilities[i]);
        if (!advise_build(exam, framework, &one,
                          gp_exam_text(exam, ", for %s", gp_client_gpus(exam, &one))))
            advise_nothing(exam, framework, &one);
    }
}
