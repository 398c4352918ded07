/* Whether HSA_OVERRIDE_GFX_VERSION has the AMD GPUs taken for others whose code they cannot run. */
#include "doctor/checks/amd.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/readers/gfxlist.h"
#include "doctor/readers/services.h"

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

void gp_amd_check_override(struct gp_exam *exam)
{
    enum { MOST = 16 };
    struct gp_service_setting found[MOST];
    const char *value = gp_machine_variable(&exam->machine, variable);
    size_t count = gp_service_settings(exam, variable, found, MOST);
    if (value && value[0])
        check(exam, &(struct source){value, NULL});
    for (size_t i = 0; i < count; i++)
        if (found[i].value[0])
            check(exam, &(struct source){found[i].value, &found[i]});
}
