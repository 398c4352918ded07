#include "doctor/checks/torch_stack.h"

#include "doctor/checks/build_choice.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/torch.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <jansson.h>
#include <string.h>

/* ---- which releases fit ---- */

const struct gp_torch_stack *gp_torch_stack_for(const char *package, const char *torch)
{
    for (size_t i = 0; i < gp_torch_stack_count; i++)
        if (strcmp(gp_torch_stacks[i].package, package) == 0 &&
            gp_version_compare(gp_torch_stacks[i].torch, torch) == 0)
            return &gp_torch_stacks[i];
    return NULL;
}

/* Such a package has no release for some versions of PyTorch, so that a command with one of these
 * could fail. */
static bool is_in_table(const char *package)
{
    for (size_t i = 0; i < gp_torch_stack_count; i++)
        if (strcmp(gp_torch_stacks[i].package, package) == 0)
            return true;
    return false;
}

bool gp_torch_oldest_from(const struct gp_pyenv *env, const struct gp_nvidia *nv, const char *least,
                          struct gp_build *ret)
{
    struct gp_build build;
    for (size_t i = 0; gp_build_at(GP_FRAMEWORK_TORCH, i, &build); i++)
        if (gp_version_compare(build.version, least) >= 0 &&
            gp_framework_build_for(env, nv, GP_FRAMEWORK_TORCH, build.version, ret))
            return true;
    return false;
}

/* Whether a release fits the environment's Python, and its PyTorch has a build that runs here. */
static bool fits(const struct gp_torch_stack *row, const char *package, const struct gp_pyenv *env,
                 const struct gp_nvidia *nv, struct gp_build *ret)
{
    bool is_for_python = !row->last_python[0] || !env->python[0] ||
                         gp_version_compare(env->python, row->last_python) <= 0;
    return strcmp(row->package, package) == 0 && is_for_python &&
           gp_framework_build_for(env, nv, GP_FRAMEWORK_TORCH, row->torch, ret);
}

/* The nearest release of a package that runs here: for the installed PyTorch, a newer one, or else
 * an older one. Programs change least with it. NULL: the table has none. */
static const struct gp_torch_stack *nearest(const struct gp_pyenv *env, const struct gp_nvidia *nv,
                                            const char *package, const char *version,
                                            const char *torch, struct gp_build *ret)
{
    const struct gp_torch_stack *row = gp_torch_stack_for(package, torch);
    if (row && fits(row, package, env, nv, ret))
        return row;
    for (size_t i = 0; i < gp_torch_stack_count; i++)
        if (gp_version_compare(gp_torch_stacks[i].version, version) >= 0 &&
            fits(&gp_torch_stacks[i], package, env, nv, ret))
            return &gp_torch_stacks[i];
    for (size_t i = gp_torch_stack_count; i > 0; i--)
        if (gp_version_compare(gp_torch_stacks[i - 1].version, version) < 0 &&
            fits(&gp_torch_stacks[i - 1], package, env, nv, ret))
            return &gp_torch_stacks[i - 1];
    return NULL;
}

/* ---- what keeps the PyTorch ---- */

struct pin {
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION];
    const char *entry, *text; /* its directory; its metadata */
    char allowed[GP_PYPACKAGE_SPECIFIER];
    bool is_cut;   /* there is more of it */
    bool is_below; /* another one requires it, and changes it when it is updated */
};

enum { PINS_MAX = 16 };

struct pins {
    struct pin list[PINS_MAX];
    size_t count;
};

/* Those come along with another PyTorch, from the same index. */
static bool is_companion(const char *name)
{
    static const char *const names[] = {"torch", "torchvision", "torchaudio"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Whether metadata allow the installed PyTorch, but not another one: what does not allow the
 * installed one does not keep it. A specifier of which the end is missing may forbid any. */
static bool read_pin(struct gp_exam *exam, const struct gp_pyenv *env, const char *installed,
                     const char *other, struct pin *ret)
{
    const char *text = ret->text;
    struct gp_requirement wanted;
    while ((text = gp_requirement_next(text, &wanted))) {
        if (strcmp(wanted.name, "torch") != 0 || wanted.is_extra || wanted.is_elsewhere ||
            (wanted.machine[0] && strcmp(wanted.machine, exam->machine.arch) != 0) ||
            !gp_requirement_is_for(&wanted, env->python) ||
            !gp_requirement_allows(&wanted, installed) ||
            (gp_requirement_allows(&wanted, other) && !wanted.is_cut))
            continue;
        memcpy(ret->allowed, wanted.allowed, sizeof(ret->allowed));
        ret->is_cut = wanted.is_cut;
        return true;
    }
    return false;
}

static void find_pins(struct gp_exam *exam, const struct gp_pyenv *env, const char *installed,
                      const char *other, struct pins *ret)
{
    static const char end[] = ".dist-info";
    char **entries;
    long n = gp_files_list(&exam->files, &exam->arena, env->site, &entries);
    ret->count = 0;
    for (long i = 0; i < n && ret->count < PINS_MAX; i++) {
        struct pin *pin = &ret->list[ret->count];
        *pin = (struct pin){.entry = entries[i]};
        if (!strstr(entries[i], end) || !gp_pypackage_split(entries[i], pin->name, pin->version) ||
            is_companion(pin->name))
            continue;
        pin->text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", entries[i]));
        ret->count += read_pin(exam, env, installed, other, pin);
    }
    for (size_t i = 0; i < ret->count; i++)
        for (size_t j = 0; j < ret->count; j++)
            if (i != j && gp_requirement_is_in(ret->list[j].text, ret->list[i].name) &&
                !gp_requirement_is_in(ret->list[i].text, ret->list[j].name))
                ret->list[i].is_below = true;
}

/* ---- packages that are not from an index ---- */

/* Where a package was installed from, by PEP 610: "file:///home/user/models". "": from an index, or
 * by conda, whose packages have such a file, too. */
static const char *source_of(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                             const char *version, const char *entry)
{
    const char *file = gp_exam_text(exam, "%s/direct_url.json", entry);
    const char *text = gp_pyenv_text(exam, env, file);
    if (!text[0] || gp_pyenv_is_of_conda(env, name, version))
        return "";
    json_t *document = json_loads(text, 0, NULL);
    const char *url = json_string_value(json_object_get(document, "url"));
    const char *source = url && *url ? gp_exam_without_logins(exam, url) : file;
    json_decref(document);
    return source;
}

static const char *source_of_pin(struct gp_exam *exam, const struct gp_pyenv *env,
                                 const struct pin *pin)
{
    return source_of(exam, env, pin->name, pin->version, pin->entry);
}

static bool has_own_source(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct pins *pins)
{
    for (size_t i = 0; i < pins->count; i++)
        if (source_of_pin(exam, env, &pins->list[i])[0])
            return true;
    return false;
}

/* ---- the fix ---- */

/* How pip or uv find PyTorch's own builds next to what is only on PyPI: +cu128 is newer than the
 * same version without it. uv would take all that this index has from there. */
static const char *place_of(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_build *build)
{
    return gp_env_is_of_uv(exam, env)
               ? gp_exam_text(exam, "--torch-backend=%s", build->variant)
               : gp_exam_text(exam, "--extra-index-url https://download.pytorch.org/whl/%s",
                              build->variant);
}

static const char *with_words(struct gp_exam *exam, const char *name, const struct gp_build *build)
{
    return gp_exam_text(exam, "the release of %s with PyTorch %s, for CUDA %s", name,
                        build->version, build->cuda);
}

/* xformers is in PyTorch's index, too: both by name, from there. */
static void install_both(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch_stack *row, const struct gp_build *build)
{
    gp_exam_torch_with(exam, env, with_words(exam, row->package, build),
                       gp_torch_release(exam, build->version),
                       gp_exam_text(exam, " %s==%s", row->package, row->version),
                       gp_exam_text(exam, "https://download.pytorch.org/whl/%s", build->variant));
}

static void install_release(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_torch_stack *row, const struct gp_build *build)
{
    gp_exam_pip(
        exam, env, GP_PIP_ADD, with_words(exam, row->package, build),
        gp_exam_text(exam, "%s==%s %s", row->package, row->version, place_of(exam, env, build)));
}

/* Those that the others do not bring along, each before a space: "'unsloth-zoo>=2025.3.1' ".
 * Without the bound, pip could go back to a release that is too old to limit PyTorch. For an older
 * PyTorch it may have to go back. */
static const char *names_of(struct gp_exam *exam, const struct pins *pins, bool is_newer)
{
    const char *names = "";
    for (size_t i = 0; i < pins->count; i++) {
        const struct pin *pin = &pins->list[i];
        int n = (int)strcspn(pin->version, "+");
        if (pin->is_below)
            continue;
        names = is_newer ? gp_exam_text(exam, "%s'%s>=%.*s' ", names, pin->name, n, pin->version)
                         : gp_exam_text(exam, "%s%s ", names, pin->name);
    }
    return names;
}

/* Of packages that the table does not have, the newest for a PyTorch: pip leaves the installed one
 * if they take it, too, so that it must be named. */
static void update_all(struct gp_exam *exam, const struct gp_case *c, const struct pins *pins,
                       const struct gp_build *build)
{
    bool is_newer = gp_version_compare(build->version, c->version) > 0;
    gp_exam_pip(exam, c->env, GP_PIP_ADD,
                gp_exam_text(exam, "needs a release that takes PyTorch %s", build->version),
                gp_exam_text(exam, "--upgrade %s%s%s %s", names_of(exam, pins, is_newer),
                             gp_torch_release(exam, build->version),
                             gp_torch_companions(exam, c->env), place_of(exam, c->env, build)));
}

/* "PyTorch 2.7.0 or newer"; "PyTorch 2.7.0" if the installed one is newer. */
static const char *wanted_words(struct gp_exam *exam, const char *installed,
                                const struct gp_build *build)
{
    bool is_newer = gp_version_compare(build->version, installed) > 0;
    return gp_exam_text(exam, "PyTorch %s%s", build->version, is_newer ? " or newer" : "");
}

static void advise_release(struct gp_exam *exam, const struct gp_case *c, const char *name,
                           const struct gp_build *build)
{
    gp_exam_advice(exam, "install a release of %s that takes %s, with %s", name,
                   wanted_words(exam, c->version, build), place_of(exam, c->env, build));
}

/* Of a checkout or a private package, an index has another release, or another package, that pip
 * would put in its place. */
static void advise_sources(struct gp_exam *exam, const struct gp_case *c, const struct pins *pins,
                           const struct gp_build *build)
{
    for (size_t i = 0; i < pins->count; i++) {
        const struct pin *pin = &pins->list[i];
        const char *source = source_of_pin(exam, c->env, pin);
        if (source[0])
            gp_exam_advice(exam,
                           "change %s in its source, %s, so that it takes %s, and install it from "
                           "there again, with %s: the package of this name on PyPI may be another "
                           "one",
                           pin->name, source, wanted_words(exam, c->version, build),
                           place_of(exam, c->env, build));
        else if (!pin->is_below)
            advise_release(exam, c, pin->name, build);
    }
}

static void show_pins(struct gp_exam *exam, const struct gp_pyenv *env, const struct pins *pins)
{
    for (size_t i = 0; i < pins->count; i++)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/METADATA", env->site, pins->list[i].entry),
                         "%s %s requires torch%s%s", pins->list[i].name, pins->list[i].version,
                         pins->list[i].allowed, pins->list[i].is_cut ? ",…" : "");
}

/* The only one that nothing else requires; NULL: there are several. */
static const struct pin *top_of(const struct pins *pins)
{
    const struct pin *top = NULL;
    for (size_t i = 0; i < pins->count; i++) {
        if (pins->list[i].is_below)
            continue;
        if (top)
            return NULL;
        top = &pins->list[i];
    }
    return top;
}

static void propose(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *c,
                    const struct pins *pins, const struct gp_build *build)
{
    const struct pin *top = top_of(pins);
    struct gp_build oldest;
    bool is_own = has_own_source(exam, c->env, pins);
    const struct gp_torch_stack *row =
        top && !is_own ? nearest(c->env, nv, top->name, top->version, c->version, &oldest) : NULL;
    if (row && strcmp(row->package, "xformers") == 0) {
        install_both(exam, c->env, row, &oldest);
        return;
    }
    if (row) {
        install_release(exam, c->env, row, &oldest);
        return;
    }
    if (gp_torch_oldest_from(c->env, nv, c->version, &oldest))
        build = &oldest;
    if (is_own)
        advise_sources(exam, c, pins, build);
    else if (top && is_in_table(top->name))
        advise_release(exam, c, top->name, build);
    else
        update_all(exam, c, pins, build);
}

enum gp_stack gp_torch_stack_propose(struct gp_exam *exam, const struct gp_nvidia *nv,
                                     const struct gp_case *c, const struct gp_build *build)
{
    struct pins *pins = gp_arena_alloc(&exam->arena, 1, sizeof(*pins));
    if (!pins || c->trouble == GP_TROUBLE_BROKEN)
        return GP_STACK_FREE;
    find_pins(exam, c->env, c->version, build->version, pins);
    if (pins->count == 0)
        return GP_STACK_FREE;
    show_pins(exam, c->env, pins);
    if (c->trouble == GP_TROUBLE_NEEDS_DRIVER)
        return GP_STACK_KEPT;
    propose(exam, nv, c, pins, build);
    gp_torch_compile_again(exam, c->env);
    return GP_STACK_FIXED;
}

void gp_torch_stack_advise(struct gp_exam *exam, const struct gp_case *c,
                           const struct gp_build *build)
{
    struct pins *pins = gp_arena_alloc(&exam->arena, 1, sizeof(*pins));
    const char *names = "";
    if (!pins)
        return;
    find_pins(exam, c->env, c->version, build->version, pins);
    show_pins(exam, c->env, pins);
    for (size_t i = 0; i < pins->count; i++)
        names = gp_exam_text(exam, "%s%s%s", names, *names ? ", " : "", pins->list[i].name);
    if (*names)
        gp_exam_advice(exam,
                       "then install the release of %s for the new PyTorch, or remove it if "
                       "programs do without it",
                       names);
}

void gp_torch_stack_update(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_pypackage *package, const struct gp_torch *torch,
                           const char *note)
{
    struct gp_nvidia nv;
    struct gp_build build;
    const char *source = source_of(exam, env, package->name, package->version, package->entry);
    if (source[0]) {
        gp_exam_advice(
            exam,
            "update %s in its source, %s, to one for PyTorch %.*s, and install it from there again",
            package->name, source, (int)strcspn(torch->version, "+"), torch->version);
        return;
    }
    gp_nvidia_read(&nv, exam);
    const struct gp_torch_stack *row =
        nearest(env, &nv, package->name, package->version, torch->version, &build);
    if (row)
        gp_exam_pip(exam, env, GP_PIP_ADD, note,
                    gp_exam_text(exam, "%s==%s %s", package->name, row->version,
                                 place_of(exam, env, &build)));
    else
        gp_exam_pip(exam, env, GP_PIP_ADD, note, gp_exam_text(exam, "--upgrade %s", package->name));
}

/* Of those, no release requires a PyTorch, and pip does not compile them again by itself. */
void gp_torch_compile_again(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"flash-attn", "pytorch3d", "apex"};
    const char *words = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, names[i]);
        if (package && !package->is_conda)
            words = gp_exam_text(exam, "%s%s%s", words, *words ? ", " : "", names[i]);
    }
    if (*words)
        gp_exam_advice(exam,
                       "then install %s again, compiled for the new PyTorch (pip install with "
                       "--no-build-isolation --no-deps --force-reinstall --no-cache-dir)",
                       words);
}
