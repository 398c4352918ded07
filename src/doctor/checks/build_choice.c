#include "doctor/checks/build_choice.h"

#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <string.h>

/* Whether there is a build for this Python. The tables begin with Python 3: PyTorch ended 2.7 with
 * 1.4, TensorFlow with 2.1. */
static bool fits_python(const struct gp_build *build, const char *python)
{
    static const char *const ends[GP_FRAMEWORK__COUNT] = {
        [GP_FRAMEWORK_TORCH] = "1.5", [GP_FRAMEWORK_TENSORFLOW] = "2.2", [GP_FRAMEWORK_JAX] = "0"};
    if (strcmp(python, "2.7") == 0)
        return gp_version_compare(build->version, ends[build->framework]) < 0;
    return !python[0] ||
           (gp_version_compare(python, build->first_python) >= 0 &&
            (!build->last_python[0] || gp_version_compare(python, build->last_python) <= 0));
}

bool gp_framework_build_for(const struct gp_pyenv *env, const struct gp_nvidia *nv,
                            enum gp_framework framework, const char *version, struct gp_build *ret)
{
    struct gp_build_target target = gp_nvidia_target(nv);
    struct gp_build build;
    unsigned capability;
    bool is_found = false;
    const char *post = strstr(version, ".post"); /* of conda-forge: "2.1.0.post104" */
    size_t base = post ? (size_t)(post - version) : strcspn(version, "+");
    for (size_t i = 0; gp_build_at(framework, i, &build); i++) {
        bool is_same = strlen(build.version) == base && strncmp(build.version, version, base) == 0;
        if ((base > 0 && !is_same) || !fits_python(&build, env->python) ||
            gp_build_judge(&build, &target, &capability).fit != GP_FIT_WORKS)
            continue;
        int order = is_found ? gp_version_compare(build.version, ret->version) : 1;
        if (order > 0 || (order == 0 && build.rank >= ret->rank)) {
            *ret = build;
            is_found = true;
        }
    }
    return is_found;
}
