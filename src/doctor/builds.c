#include "doctor/builds.h"

#include "doctor/version.h"

#include <string.h>

const char *gp_framework_word(enum gp_framework framework)
{
    static const char *const words[] = {
#define X(id, word, name) word,
        GP_FRAMEWORKS(X)
#undef X
    };
    return words[framework];
}

const char *gp_framework_name(enum gp_framework framework)
{
    static const char *const names[] = {
#define X(id, word, name) name,
        GP_FRAMEWORKS(X)
#undef X
    };
    return names[framework];
}

/* The build that "pip install torch" selects is the best tested. */
static unsigned torch_rank(const struct gp_torch_build *row)
{
    return row->is_default ? 2 : strcmp(row->status, "stable") == 0;
}

static bool torch_at(size_t place, struct gp_build *ret)
{
    if (place >= gp_torch_build_count)
        return false;
    const struct gp_torch_build *row = &gp_torch_builds[place];
    *ret = (struct gp_build){.version = row->torch,
                             .variant = row->build,
                             .cuda = row->cuda,
                             .archs = row->archs,
                             .cudnn = row->cudnn,
                             .first_python = row->first_python,
                             .last_python = row->last_python,
                             .source = row->source,
                             .rank = torch_rank(row)};
    return true;
}

static bool tensorflow_at(size_t place, struct gp_build *ret)
{
    if (place >= gp_tensorflow_build_count)
        return false;
    const struct gp_tensorflow_build *row = &gp_tensorflow_builds[place];
    *ret = (struct gp_build){.version = row->tensorflow,
                             .variant = row->package,
                             .cuda = row->cuda,
                             .archs = row->archs,
                             .cudnn = row->cudnn,
                             .first_python = row->first_python,
                             .last_python = row->last_python,
                             .source = row->source};
    return true;
}

static bool jax_at(size_t place, struct gp_build *ret)
{
    if (place >= gp_jax_build_count)
        return false;
    const struct gp_jax_build *row = &gp_jax_builds[place];
    *ret = (struct gp_build){.version = row->jax,
                             .variant = row->extra,
                             .cuda = row->cuda,
                             .archs = row->archs,
                             .cudnn = "",
                             .first_python = row->first_python,
                             .last_python = "",
                             .source = row->source};
    return true;
}

bool gp_build_at(enum gp_framework framework, size_t place, struct gp_build *ret)
{
    static bool (*const tables[])(size_t place, struct gp_build * ret) = {
        [GP_FRAMEWORK_TORCH] = torch_at,
        [GP_FRAMEWORK_TENSORFLOW] = tensorflow_at,
        [GP_FRAMEWORK_JAX] = jax_at,
    };
    if (!tables[framework](place, ret))
        return false;
    ret->framework = framework;
    return true;
}

bool gp_build_is_there(enum gp_framework framework, const char *version, const char *cuda)
{
    struct gp_build build;
    for (size_t i = 0; gp_build_at(framework, i, &build); i++)
        if (gp_version_compare(build.version, version) == 0 &&
            gp_version_major(build.cuda) == gp_version_major(cuda) &&
            gp_version_minor(build.cuda) == gp_version_minor(cuda))
            return true;
    return false;
}

static bool is_better(const struct gp_build *a, const struct gp_build *b)
{
    int order = gp_version_compare(a->version, b->version);
    if (order == 0 && a->rank != b->rank)
        return a->rank > b->rank;
    return order > 0 || (order == 0 && gp_version_compare(a->cuda, b->cuda) > 0);
}

struct gp_judgement gp_build_judge(const struct gp_build *build,
                                   const struct gp_build_target *target, unsigned *ret_capability)
{
    struct gp_judgement judgement = {.fit = GP_FIT_WORKS, .driver = ""};
    *ret_capability = 0;
    for (size_t i = 0; i < target->count && judgement.fit == GP_FIT_WORKS; i++) {
        unsigned capability = target->capabilities[i];
        judgement = gp_judge(target->driver, build->cuda, build->archs, capability);
        if (judgement.fit == GP_FIT_WORKS && capability > 0 && judgement.code == GP_CODE_UNKNOWN)
            judgement.fit = GP_FIT_UNKNOWN;
        *ret_capability = capability;
    }
    return judgement;
}

/* PTX runs on newer GPUs, but the libraries of an older CUDA have no code for a GPU that came
 * later: such a build starts, and fails later. */
static bool has_libraries(const struct gp_build *build, const struct gp_build_target *target)
{
    for (size_t i = 0; i < target->count; i++) {
        const struct gp_arch *arch = gp_arch_find(target->capabilities[i]);
        if (arch && gp_version_major(build->cuda) < gp_version_major(arch->first_cuda))
            return false;
    }
    return true;
}

static bool is_version(const char *version, const char *asked)
{
    size_t n = asked ? strlen(asked) : 0;
    return !asked || (strncmp(version, asked, n) == 0 && (!version[n] || version[n] == '.'));
}

bool gp_build_best(enum gp_framework framework, const struct gp_build_target *target,
                   struct gp_build *ret)
{
    struct gp_build build;
    unsigned capability;
    bool is_found = false;
    for (size_t i = 0; gp_build_at(framework, i, &build); i++) {
        if ((is_found && !is_better(&build, ret)) || !is_version(build.version, target->version) ||
            !has_libraries(&build, target) ||
            gp_build_judge(&build, target, &capability).fit != GP_FIT_WORKS)
            continue;
        *ret = build;
        is_found = true;
    }
    return is_found;
}

bool gp_build_newest(enum gp_framework framework, const char *version, struct gp_build *ret)
{
    const struct gp_build_target any = {.driver = "", .version = version};
    return gp_build_best(framework, &any, ret);
}

bool gp_build_is_same(const struct gp_build *a, const struct gp_build *b)
{
    return a->framework == b->framework && strcmp(a->version, b->version) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

bool gp_build_known(enum gp_framework framework, const char *version, const char *word,
                    struct gp_build *ret)
{
    struct gp_build build;
    bool is_found = false;
    for (size_t i = 0; gp_build_at(framework, i, &build); i++)
        if (gp_version_compare(build.version, version) <= 0 && strstr(build.variant, word)) {
            *ret = build;
            is_found = true;
        }
    return is_found;
}
