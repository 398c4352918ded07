/* Whether HSA_OVERRIDE_GFX_VERSION has the AMD GPUs taken for others whose code they cannot run. */
#include "doctor/checks/amd.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/readers/gfxlist.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/services.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "HSA_OVERRIDE_GFX_VERSION";

bool gp_amd_has_override(struct gp_exam *exam)
{
    const char *value = gp_machine_variable(&exam->machine, variable);
    struct gp_service_setting found[1];
    return exam->machine.amd_count > 0 &&
           ((value && value[0]) || gp_service_settings(exam, variable, found, 1) > 0);
}

/* 10 of "gfx1030", 9 of "gfx90a": behind it are the minor version and the step, a sign each. */
static unsigned generation_of(const char *gfx)
{
    enum { BEFORE = 3, BEHIND = 2 };
    char number[GP_GFX_NAME];
    size_t n = strlen(gfx);
    if (n <= BEFORE + BEHIND)
        return 0;
    (void)snprintf(number, sizeof(number), "%.*s", (int)(n - BEFORE - BEHIND), gfx + BEFORE);
    return (unsigned)strtoul(number, NULL, 10);
}

/* GPUs for computing have instructions of their own. */
static bool is_own_kind(const char *gfx)
{
    static const char *const kinds[] = {"gfx908", "gfx90a", "gfx94", "gfx95"};
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++)
        if (strncmp(gfx, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* Whether a GPU runs the code of what it is taken for: by reports of users, within a generation. */
static bool is_close(const char *gfx, const char *taken)
{
    return strcmp(gfx, taken) == 0 ||
           (generation_of(gfx) == generation_of(taken) && !is_own_kind(gfx) && !is_own_kind(taken));
}

/* Where the variable is set: in the user's environment, or for a service. */
struct source {
    const char *value;
    const struct gp_service_setting *service; /* NULL: the environment */
};

static void mend(struct gp_exam *exam, const struct source *source)
{
    gp_exam_evidence(exam, source->service ? source->service->where : variable, "%s",
                     source->value);
    if (source->service) {
        const char *name = gp_exam_quoted(exam, source->service->service);
        gp_exam_command(exam, gp_exam_text(exam, "remove the line with %s", variable),
                        "sudo systemctl edit --full %s", name);
        gp_exam_command(exam, "", "sudo systemctl restart %s", name);
        return;
    }
    gp_exam_unset(exam, variable, "and remove it where it is set");
}

static void report_no_version(struct gp_exam *exam, const struct source *source)
{
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s is not a version: ROCm's programs stop at once",
                   variable);
    mend(exam, source);
    gp_exam_advice(exam, "a version has three numbers: 10.3.0 for gfx1030");
}

static void check(struct gp_exam *exam, const struct source *source)
{
    static const char *const masks[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
    struct gp_gfxlist targets;
    char taken[GP_GFX_NAME];
    const char *other = NULL;
    bool is_any_close = false, is_masked = false;
    if (!gp_amd_read_override(source->value, taken)) {
        report_no_version(exam, source);
        return;
    }
    const char *place = gp_amd_targets(exam, &targets);
    for (size_t i = 0; i < GP_ARRAY_LEN(masks); i++)
        is_masked = is_masked || gp_machine_variable(&exam->machine, masks[i]);
    for (size_t i = 0; i < targets.count; i++)
        if (is_close(targets.names[i], taken))
            is_any_close = true;
        else
            other = targets.names[i];
    if (!other || (is_any_close && is_masked))
        return;
    gp_exam_report(exam, is_any_close ? GP_VERDICT_WARN : GP_VERDICT_FAIL,
                   is_any_close ? "%s has all AMD GPUs taken for a %s, but one is a %s"
                                : "%s has the AMD GPU taken for a %s, but it is a %s",
                   variable, taken, other);
    gp_exam_evidence(exam, place, "%s", other);
    mend(exam, source);
    gp_exam_why(exam,
                "It holds for all GPUs. Programs then load code that this one cannot run: they "
                "crash, hang or compute wrong results.");
    if (is_any_close)
        gp_exam_advice(exam, "or, if another GPU needs it, hide this one: list the others in "
                             "ROCR_VISIBLE_DEVICES");
}

/* Whether the GPUs are of the RX 5000 series, and are taken for ones of the RX 6000 series. */
static bool is_older_taken(const struct gp_gfxlist *targets, const char *taken)
{
    for (size_t i = 0; i < targets->count; i++)
        if (strncmp(targets->names[i], "gfx101", 6) != 0)
            return false;
    return targets->count > 0 && strncmp(taken, "gfx103", 6) == 0;
}

/* PyTorch's own build for a ROCm with which that crashes, where the user computes with it. */
static bool find_crashing(struct gp_exam *exam, struct gp_torch *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if ((env->is_active || env->is_named) && gp_pyenv_torch(exam, env, ret) &&
            strstr(ret->version, "+rocm") && ret->hip[0] &&
            gp_version_compare(ret->hip, "5.3") >= 0)
            return true;
    }
    return false;
}

static void install_last(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char torch[] = "torch==1.13.1+rocm5.2", first[] = "3.7", last[] = "3.10";
    static const char index[] = "https://download.pytorch.org/whl/rocm5.2";
    if (env->python[0] &&
        (gp_version_compare(env->python, first) < 0 || gp_version_major(env->python) > 3 ||
         gp_version_minor(env->python) > gp_version_minor(last)))
        gp_exam_advice(exam,
                       "in a new environment with Python %s: pip install %s torchvision "
                       "--extra-index-url %s",
                       last, torch, index);
    else
        gp_exam_torch(exam, env, "the last one that works so; keep the variable", torch, index);
}

/* By reports of users, up to ROCm 5.2 an RX 5000 runs the code of the RX 6000 series; that of newer
 * ones crashes or hangs on it. */
static void check_older_taken(struct gp_exam *exam, const char *value)
{
    struct gp_gfxlist targets;
    struct gp_torch torch;
    char taken[GP_GFX_NAME];
    const char *place = gp_amd_targets(exam, &targets);
    if (!gp_amd_read_override(value, taken) || !is_older_taken(&targets, taken) ||
        !find_crashing(exam, &torch))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "PyTorch %s in %s does not work on a %s that is taken for a %s", torch.version,
                   torch.env->prefix, targets.names[0], taken);
    gp_exam_evidence(exam, variable, "%s", value);
    gp_exam_evidence(exam, place, "%s", targets.names[0]);
    gp_exam_evidence(exam, torch.env->site, "PyTorch %s: ROCm %s", torch.version, torch.hip);
    gp_exam_why(exam,
                "PyTorch's own builds have no code for the RX 5000 series. That for the RX 6000 "
                "series runs on it with ROCm 5.2; from 5.3 on programs crash, hang or compute "
                "wrong results.");
    install_last(exam, torch.env);
    gp_exam_advice(exam,
                   "or a PyTorch that is built for %s (from source with PYTORCH_ROCM_ARCH=%s), "
                   "without %s",
                   targets.names[0], targets.names[0], variable);
    gp_exam_link(exam, "https://github.com/ROCm/legacy-rocm-build/issues/2527");
}

void gp_amd_check_override(struct gp_exam *exam)
{
    enum { MOST = 16 };
    struct gp_service_setting found[MOST];
    const char *value = gp_machine_variable(&exam->machine, variable);
    size_t count = gp_service_settings(exam, variable, found, MOST);
    if (value && value[0]) {
        check(exam, &(struct source){value, NULL});
        check_older_taken(exam, value);
    }
    for (size_t i = 0; i < count; i++)
        if (found[i].value[0])
            check(exam, &(struct source){found[i].value, &found[i]});
}
