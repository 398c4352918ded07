/* Compiled modules that are linked with libraries of CUDA or of PyTorch which the loader does not
 * find: they were made for another CUDA, or for another PyTorch. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pymodules.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- where libraries are ---- */

/* Whether a directory has a library, or a copy of it with a hash in its name, as PyTorch's packages
 * have: "libcudart-d0da41ae.so.11.0". */
static bool has_library(struct gp_exam *exam, const char *folder, const char *name)
{
    const char *end = strstr(name, ".so");
    struct gp_arena scratch = {0};
    char **names;
    bool is_found = false;
    long n = gp_files_list(&exam->files, &scratch, folder, &names);
    for (long i = 0; i < n && end && !is_found; i++) {
        const char *rest = strstr(names[i], ".so");
        size_t stem = (size_t)(end - name);
        is_found = strcmp(names[i], name) == 0 ||
                   (rest && strcmp(rest, end) == 0 && strncmp(names[i], name, stem) == 0 &&
                    names[i][stem] == '-');
    }
    gp_arena_fini(&scratch);
    return is_found;
}

/* In the packages of NVIDIA or in PyTorch's: what uses them loads them first. */
static bool is_in_packages(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *nvidia = gp_exam_text(exam, "%s/nvidia", env->site);
    char **folders;
    long n = gp_files_list(&exam->files, &exam->arena, nvidia, &folders);
    for (long i = 0; i < n; i++)
        if (has_library(exam, gp_exam_text(exam, "%s/%s/lib", nvidia, folders[i]), name))
            return true;
    return has_library(exam, gp_exam_text(exam, "%s/torch/lib", env->site), name) ||
           has_library(exam, gp_exam_text(exam, "%s/lib", env->prefix), name);
}

/* Whether a virtual environment was made to see the packages of another one's Python. */
static bool is_base(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_pyenv *base)
{
    char text[2048] = "";
    const char *path = gp_exam_text(exam, "%s/pyvenv.cfg", env->prefix);
    if (env->kind != GP_PYENV_VENV || gp_files_read(&exam->files, path, text, sizeof(text)) <= 0 ||
        !strcasestr(text, "include-system-site-packages = true"))
        return false;
    const char *home = gp_exam_text(exam, "home = %s/bin", base->prefix), *at = strstr(text, home);
    return at && strchr("\r\n", at[strlen(home)]);
}

/* Also those that the Python shares: the user's, and the distribution's. */
static bool is_in_environments(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *e = &envs->list[i];
        bool is_shared = e->kind == GP_PYENV_USER || e->kind == GP_PYENV_SYSTEM ||
                         env->kind == GP_PYENV_USER || is_base(exam, env, e);
        if ((e == env || (is_shared && strcmp(e->python, env->python) == 0)) && !e->error &&
            is_in_packages(exam, e, name))
            return true;
    }
    return false;
}

/* In the directories that a module names, "$ORIGIN/../../../..", or those of its package. */
static bool is_near(struct gp_exam *exam, const struct gp_pyenv *env,
                    const struct gp_pymodule *module, const char *name)
{
    const char *slash = strrchr(module->path, '/');
    const char *const folders[] = {gp_exam_text(exam, "%s/%s", env->site, module->top),
                                   gp_exam_text(exam, "%s/%s/lib", env->site, module->top),
                                   gp_exam_text(exam, "%s/%s.libs", env->site, module->top)};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (has_library(exam, folders[i], name))
            return true;
    return gp_run_path_has(exam, module->shared,
                           gp_exam_text(exam, "%.*s", (int)(slash - module->path), module->path),
                           name);
}

/* In a directory that the user's shells add to LD_LIBRARY_PATH, whatever this process has: sudo
 * drops it, and a desktop sets another. */
static bool is_in_shells(struct gp_exam *exam, const char *name)
{
    return gp_assignments_reach(exam, "LD_LIBRARY_PATH", name, gp_library_folder(exam, name));
}

/* ---- what modules lack ---- */

enum { PACKAGES_MAX = 32, MISSING_MAX = 12, ANSWERS_MAX = 64 };

/* The modules of a package: one of them, and what it lacks. */
struct compiled {
    const char *top;
    const char *path; /* NULL: all modules find their libraries */
    const char *missing[MISSING_MAX];
    size_t count;
    enum gp_pylibrary kind; /* the most telling of what is missing */
    const char *first;      /* one of it */
    bool is_torch;          /* that module is linked with PyTorch */
    bool is_single;         /* not in a directory */
    bool has_whole;         /* it has a module that finds all */
    bool is_reported;
    bool is_owned;
    bool is_spare;             /* as far as known, no package fails without it */
    struct gp_pypackage owner; /* if not owned, only the name */
};

struct scan {
    struct gp_exam *exam;
    const struct gp_pyenv *env;
    bool is_torch_known; /* PyTorch's libraries are where they are looked for */
    struct compiled list[PACKAGES_MAX];
    size_t count;
    struct answer {
        const char *name;
        bool is_found;
    } answers[ANSWERS_MAX]; /* most modules ask for the same libraries */
    size_t answer_count;
};

static struct compiled *compiled_of(struct scan *s, const char *top)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->list[i].top, top) == 0)
            return &s->list[i];
    if (s->count == PACKAGES_MAX)
        return NULL;
    s->list[s->count] = (struct compiled){.top = gp_exam_text(s->exam, "%s", top)};
    return &s->list[s->count++];
}

/* Whether all modules of the environment find a library. */
static bool is_found(struct scan *s, const char *name)
{
    for (size_t i = 0; i < s->answer_count; i++)
        if (strcmp(s->answers[i].name, name) == 0)
            return s->answers[i].is_found;
    bool is_found = gp_library_is_loadable(s->exam, s->env, name) ||
                    is_in_environments(s->exam, s->env, name) || is_in_shells(s->exam, name);
    if (s->answer_count < ANSWERS_MAX)
        s->answers[s->answer_count++] =
            (struct answer){gp_exam_text(s->exam, "%s", name), is_found};
    return is_found;
}

static bool is_missing(struct scan *s, const struct gp_pymodule *module, const char *name,
                       enum gp_pylibrary kind)
{
    if (kind == GP_PYLIBRARY_NONE || (kind == GP_PYLIBRARY_TORCH && !s->is_torch_known))
        return false;
    return !is_found(s, name) && !is_near(s->exam, s->env, module, name);
}

static void note_missing(struct scan *s, struct compiled *c, const char *name,
                         enum gp_pylibrary kind)
{
    const char *kept = gp_exam_text(s->exam, "%s", name);
    bool is_runtime = strncmp(name, "libcudart.", 10) == 0 && c->kind == kind;
    if (c->count < MISSING_MAX)
        c->missing[c->count++] = kept;
    if (kind > c->kind || is_runtime) {
        c->kind = kind;
        c->first = kept;
    }
}

static void look_at(void *data, const struct gp_pymodule *module)
{
    struct scan *s = data;
    struct compiled *c = compiled_of(s, module->top);
    const char *name;
    size_t from = 0, count = 0;
    bool is_torch = false;
    if (!c || (c->path && c->kind > GP_PYLIBRARY_PART))
        return;  /* one example is enough */
    if (c->path) /* of which only a part was missing */
        *c = (struct compiled){.top = c->top, .has_whole = c->has_whole};
    c->is_single = module->is_single;
    while ((name = gp_elf_needed(module->shared, &from))) {
        enum gp_pylibrary kind = gp_pylibrary_of(name);
        is_torch = is_torch || kind == GP_PYLIBRARY_TORCH;
        if (!is_missing(s, module, name, kind))
            continue;
        note_missing(s, c, name, kind);
        count++;
    }
    if (count > 0) {
        c->path = gp_exam_text(s->exam, "%s", module->path);
        c->is_torch = is_torch;
    } else {
        c->has_whole = true;
    }
}

/* ---- whether it is reported ---- */

/* The CUDA of a library by its name, "10.1" of "libcudart.so.10.1"; "": the name has its own
 * numbers. */
static const char *cuda_of(struct gp_exam *exam, const char *name)
{
    const char *version = gp_library_version(name);
    bool has_number = strncmp(name, "libcudart.", 10) == 0 || strncmp(name, "libcublas", 9) == 0 ||
                      (strncmp(name, "libnvrtc.", 9) == 0 && gp_version_major(version) < 11);
    unsigned major = gp_version_major(version);
    if (!has_number || major == 0)
        return "";
    return major >= 11 ? gp_exam_text(exam, "%u", major)
                       : gp_exam_text(exam, "%u.%u", major, gp_version_minor(version));
}

/* On clusters, `module load` adds CUDA to the loader's path when it is needed. */
static bool has_modules(const struct gp_exam *exam)
{
    static const char *const names[] = {"LMOD_CMD", "MODULESHOME", "SPACK_ROOT"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_machine_variable(&exam->machine, names[i]))
            return true;
    return false;
}

static bool is_problem(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch, struct compiled *c, size_t *budget)
{
    /* Of several modules of a package, one may be for cuDNN. */
    bool is_optional = c->kind == GP_PYLIBRARY_PART && (c->has_whole || c->is_single);
    if (!c->path || is_optional || (c->is_torch && !torch) ||
        (c->is_torch && !torch->cuda[0] && !torch->hip[0]) || /* that is another problem */
        (c->kind != GP_PYLIBRARY_TORCH && has_modules(exam)))
        return false;
    enum gp_pyowner known = gp_pymodule_owner(exam, env, c->top, budget, &c->owner);
    if (known == GP_PYOWNER_UNREAD)
        return false; /* it may be left over */
    c->is_owned = known == GP_PYOWNER_FOUND;
    /* What setup.py has installed is in an egg, where pip lists no files. */
    c->is_spare = c->is_owned ? gp_compiled_is_spare(c->owner.name) : !strstr(c->path, ".egg/");
    if (!c->is_owned)
        c->owner = (struct gp_pypackage){.name = c->top, .version = "", .entry = c->path};
    bool is_left = c->is_owned && gp_pymodule_is_left(exam, env, &c->owner, c->path);
    return !is_left && !gp_python_is_reported(exam, env, c->owner.name);
}

/* ---- the remedy ---- */

/* CuPy's wheel for a CUDA; before 11.2 there is one for each. */
static const char *cupy_wheel(struct gp_exam *exam, const char *cuda)
{
    unsigned major = gp_version_major(cuda), minor = gp_version_minor(cuda);
    return gp_version_compare(cuda, "11.2") < 0 ? gp_exam_text(exam, "cupy-cuda%u%u", major, minor)
                                                : gp_exam_text(exam, "cupy-cuda%ux", major);
}

static void fix_other(struct gp_exam *exam, const struct gp_pyenv *env, const struct compiled *c)
{
    const struct gp_toolkit_found *used = gp_toolkit_used(gp_toolkits_of(exam));
    const char *folder = gp_library_folder(exam, c->first), *cuda = cuda_of(exam, c->first);
    const char *name = c->owner.name;
    bool is_wheel = strncmp(name, "cupy-cuda", 9) == 0;
    if (folder) {
        gp_exam_command(exam, "also in the shell's startup file",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                        gp_exam_quoted(exam, folder));
    } else if (c->owner.is_conda && cuda[0]) {
        gp_exam_command(exam, "the CUDA that it is built for", "%s install -p %s %s=%s %s",
                        gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix),
                        gp_version_major(cuda) < 12 ? "cudatoolkit" : "cuda-version", cuda, name);
    } else if (is_wheel && used && used->version[0]) {
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", name);
        gp_exam_pip(exam, env, GP_PIP_ADD,
                    gp_exam_text(exam, "for CUDA %s, which is installed", used->version),
                    cupy_wheel(exam, used->version));
    } else if (is_wheel || c->owner.is_conda) {
        gp_exam_advice(exam, "install the CUDA that it is built for%s%s", cuda[0] ? ": " : "",
                       cuda);
    } else {
        gp_compiled_again(exam, env, &c->owner);
    }
}

/* ---- findings ---- */

/* "flash-attn 1.0.5, dropout-layer-norm 0.1": the packages that lack the same. */
static const char *names_of(struct gp_exam *exam, struct scan *s, const struct compiled *c,
                            size_t *ret_count)
{
    const char *names = "";
    *ret_count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct compiled *other = &s->list[i];
        if (!other->is_reported || other->first != c->first)
            continue;
        names = gp_exam_text(exam, "%s%s%s%s%s", names, names[0] ? ", " : "", other->owner.name,
                             other->owner.version[0] ? " " : "", other->owner.version);
        ++*ret_count;
    }
    return names;
}

static void report_words(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, struct scan *s, const struct compiled *c)
{
    size_t count;
    const char *names = names_of(exam, s, c, &count), *was = count > 1 ? "were" : "was";
    const char *cuda = cuda_of(exam, c->first);
    enum gp_verdict verdict = c->is_spare   ? GP_VERDICT_INFO
                              : c->is_owned ? gp_pyenv_verdict(env, false)
                                            : GP_VERDICT_WARN;
    bool is_other =
        c->is_torch && cuda[0] && torch->cuda[0] &&
        (gp_version_major(cuda) != gp_version_major(torch->cuda) ||
         (gp_version_major(cuda) < 11 && gp_version_minor(cuda) != gp_version_minor(torch->cuda)));
    if (c->kind == GP_PYLIBRARY_TORCH)
        gp_exam_report(exam, verdict,
                       "%s in %s %s compiled for another PyTorch than %s, which is installed",
                       names, env->prefix, was, torch->version);
    else if (is_other)
        gp_exam_report(exam, verdict,
                       "%s in %s %s compiled for CUDA %s, but PyTorch %s is for CUDA %s", names,
                       env->prefix, was, cuda, torch->version, torch->cuda);
    else
        gp_exam_report(exam, verdict, "%s in %s %s not find %s", names, env->prefix,
                       count > 1 ? "do" : "does", c->first);
}

/* Another version of a library in the environment; "": none. */
static const char *other_in(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *folder = gp_exam_text(exam, "%s/lib", env->prefix), *end = strstr(name, ".so.");
    size_t stem = end ? (size_t)(end - name) + 4 : 0;
    char **names;
    long n = stem ? gp_files_list(&exam->files, &exam->arena, folder, &names) : 0;
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], name, stem) == 0)
            return gp_exam_text(exam, "%s/%s", folder, names[i]);
    return "";
}

static void show_missing(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const struct compiled *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const char *name = c->missing[i];
        bool is_torch = gp_pylibrary_of(name) == GP_PYLIBRARY_TORCH;
        const char *folder = is_torch ? NULL : gp_library_folder(exam, name);
        const char *other =
            is_torch || folder || !strstr(name, ".so.") ? "" : other_in(exam, env, name);
        const char *of_toolkit = is_torch || folder || other[0] || !strstr(name, ".so.")
                                     ? NULL
                                     : gp_library_other(exam, name);
        other = of_toolkit ? of_toolkit : other;
        if (is_torch)
            gp_exam_evidence(exam, name, "not in PyTorch %s", torch->version);
        else
            gp_exam_evidence(
                exam, name, "%s",
                folder     ? gp_exam_text(exam, "in %s, where the loader does not look", folder)
                : other[0] ? gp_exam_text(exam, "not in any library directory; there is %s", other)
                           : "not in any library directory");
    }
}

/* pip does not know it: what setup.py has not installed either is left over, or, if it is a
 * directory, perhaps a copied source. */
static void fix_unowned(struct gp_exam *exam, const struct compiled *c)
{
    if (c->is_spare)
        gp_exam_advice(exam, "if nothing imports %s, it is left over and can be deleted",
                       c->owner.name);
    if (!c->is_spare || !c->is_single)
        gp_exam_advice(exam,
                       "%scompile it again: in its source, pip install "
                       "--no-build-isolation --no-cache-dir .",
                       c->is_spare ? "otherwise " : "");
}

static void report(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                   struct scan *s, const struct compiled *c)
{
    report_words(exam, env, torch, s, c);
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].is_reported && s->list[i].first == c->first)
            gp_exam_evidence(exam, s->list[i].path, "is linked with %s", c->first);
    show_missing(exam, env, torch, c);
    gp_exam_why(exam, "%s: \"ImportError: %s: cannot open shared object file\".%s",
                c->is_owned && c->is_spare
                    ? "It catches the error, and computes without its own kernels"
                    : "The import fails",
                c->first,
                c->kind == GP_PYLIBRARY_CUDA && c->is_torch
                    ? " Another CUDA would not help: it must be the one that PyTorch has."
                    : "");
    for (size_t i = 0; i < s->count; i++) {
        const struct compiled *other = &s->list[i];
        if (!other->is_reported || other->first != c->first)
            continue;
        if (!other->is_owned)
            fix_unowned(exam, other);
        else if (other->is_spare)
            gp_exam_advice(exam,
                           "if programs need its kernels: the build of %s for the installed "
                           "PyTorch and CUDA",
                           other->owner.name);
        else if (other->is_torch)
            gp_compiled_fix(exam, env, &other->owner, torch);
        else
            fix_other(exam, env, other);
    }
}

/* Packages that lack the same library are one problem: gives them the same text. */
static bool is_new(struct scan *s, size_t index)
{
    struct compiled *c = &s->list[index];
    for (size_t i = 0; i < index; i++)
        if (s->list[i].is_reported && s->list[i].is_torch == c->is_torch &&
            s->list[i].is_spare == c->is_spare && s->list[i].is_owned == c->is_owned &&
            strcmp(s->list[i].first, c->first) == 0) {
            c->first = s->list[i].first;
            return strcmp(s->list[i].owner.name, c->owner.name) != 0;
        }
    return true;
}

void gp_check_compiled(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch)
{
    struct scan *s = gp_arena_alloc(&exam->arena, 1, sizeof(*s));
    size_t budget = 256 << 20; /* bytes of the packages' lists of files */
    if (!s)
        return;
    s->exam = exam;
    s->env = env;
    s->is_torch_known = is_found(s, "libc10.so");
    gp_pymodules_visit(exam, env, look_at, s);
    for (size_t i = 0; i < s->count; i++) {
        struct compiled *c = &s->list[i];
        c->is_reported = is_problem(exam, env, torch, c, &budget) && is_new(s, i);
    }
    for (size_t i = 0; i < s->count; i++) {
        bool is_first = s->list[i].is_reported;
        for (size_t k = 0; k < i; k++)
            is_first = is_first && s->list[k].first != s->list[i].first;
        if (is_first)
            report(exam, env, torch, s, &s->list[i]);
    }
}
