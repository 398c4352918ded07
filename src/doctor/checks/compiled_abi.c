/* Compiled modules for a PyTorch with the other C++ ABI: the names of its functions differ. The
 * wheels for its releases before 2.7 have the older one, its builds by NVIDIA and conda-forge the
 * newer. */
#include "doctor/checks/framework.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pymodules.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

enum abi { ABI_UNKNOWN, ABI_OLD, ABI_NEW };

/* As the installed PyTorch tells programs that are built with it. */
static enum abi abi_of_torch(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char file[] = "torch/share/cmake/Torch/TorchConfig.cmake";
    static const char key[] = "_GLIBCXX_USE_CXX11_ABI=";
    const char *at = strstr(gp_pyenv_text(exam, env, file), key);
    char digit = at ? at[sizeof(key) - 1] : '\0';
    return digit == '0' ? ABI_OLD : digit == '1' ? ABI_NEW : ABI_UNKNOWN;
}

/* By functions of PyTorch that nearly all extensions call with a std::string: "…jRKSs" has the old
 * one, "…jRKNSt7__cxx1112basic_stringI…" the new one. */
static enum abi abi_of_module(const struct gp_elf *shared, const char **ret_name)
{
    static const char *const starts[] = {"_ZN5torch3jit17parseSchemaOrNameE",
                                         "_ZN3c106detail14torchCheckFailE", "_ZN3c105ErrorC"};
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++) {
        size_t from = 0;
        while ((*ret_name = gp_elf_import(shared, starts[i], &from))) {
            if (strstr(*ret_name, "7__cxx11"))
                return ABI_NEW;
            if (strstr(*ret_name, "RKSs") || strstr(*ret_name, "NS_14SourceLocationESs"))
                return ABI_OLD;
        }
    }
    return ABI_UNKNOWN;
}

/* ---- the modules ---- */

enum { FILES_MAX = 64 };

struct scan {
    struct gp_exam *exam;
    enum abi wanted;
    size_t files;  /* that were read */
    struct other { /* a module; several of a package, as one may be left over */
        const char *top, *path, *name;
    } list[FILES_MAX];
    size_t count;
};

static bool is_of_torch(const struct gp_elf *shared)
{
    const char *library;
    size_t from = 0;
    while ((library = gp_elf_needed(shared, &from)))
        if (gp_pylibrary_of(library) == GP_PYLIBRARY_TORCH)
            return true;
    return false;
}

static void look_at(void *data, const struct gp_pymodule *module)
{
    struct scan *s = data;
    struct gp_arena scratch = {0};
    struct gp_elf shared;
    const char *name;
    if (s->files == FILES_MAX || !is_of_torch(module->shared))
        return;
    s->files++;
    enum abi abi = gp_elf_read(&shared, &s->exam->files, &scratch, module->path)
                       ? abi_of_module(&shared, &name)
                       : ABI_UNKNOWN;
    if (abi != ABI_UNKNOWN && abi != s->wanted)
        s->list[s->count++] = (struct other){gp_exam_text(s->exam, "%s", module->top),
                                             gp_exam_text(s->exam, "%s", module->path),
                                             gp_exam_text(s->exam, "%s", name)};
    gp_arena_fini(&scratch);
}

/* ---- the finding ---- */

static void report(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                   const struct scan *s, const struct other *other,
                   const struct gp_pypackage *owner)
{
    bool is_between = gp_version_is_between(torch->version);
    bool is_spare = gp_compiled_is_spare(owner->name);
    gp_exam_report(exam, is_spare ? GP_VERDICT_INFO : gp_pyenv_verdict(env, false),
                   "%s %s in %s was compiled for a PyTorch with the %s C++ ABI, but PyTorch %s has "
                   "the %s",
                   owner->name, owner->version, env->prefix, s->wanted == ABI_NEW ? "old" : "new",
                   torch->version, s->wanted == ABI_NEW ? "new" : "old");
    gp_exam_evidence(exam, other->path, "needs %s", other->name);
    gp_exam_evidence(exam, env->site,
                     "torch/share/cmake/Torch/TorchConfig.cmake: "
                     "_GLIBCXX_USE_CXX11_ABI=%d",
                     s->wanted == ABI_NEW);
    gp_exam_why(exam, "%s: \"undefined symbol: %s\".%s",
                is_spare ? "It catches the error, and computes without its own kernels"
                         : "The import fails",
                other->name,
                !is_between ? ""
                            : " This PyTorch is a build of its own, as in NVIDIA's containers: "
                              "wheels for the release of that number do not fit.");
    if (owner->is_conda)
        gp_exam_advice(exam, "install the build of %s for this PyTorch, from the same channel",
                       owner->name);
    else
        gp_compiled_again(exam, env, owner);
    if (is_between)
        gp_exam_advice(
            exam,
            "or, in a virtual environment of its own, PyTorch's release %u.%u, for which "
            "the wheel was made",
            gp_version_major(torch->version), gp_version_minor(torch->version));
}

void gp_check_compiled_abi(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch)
{
    size_t budget = 256 << 20; /* bytes of the packages' lists of files */
    struct scan *s = gp_arena_alloc(&exam->arena, 1, sizeof(*s));
    if (!s || !torch->cuda[0])
        return;
    s->exam = exam;
    s->wanted = abi_of_torch(exam, env);
    if (s->wanted == ABI_UNKNOWN)
        return;
    gp_pymodules_visit(exam, env, look_at, s);
    const char *done = "";
    for (size_t i = 0; i < s->count; i++) {
        const struct other *other = &s->list[i];
        struct gp_pypackage owner;
        if (strcmp(other->top, done) == 0 ||
            gp_pymodule_owner(exam, env, other->top, &budget, &owner) != GP_PYOWNER_FOUND ||
            gp_pymodule_is_left(exam, env, &owner, other->path))
            continue;
        done = other->top;
        if (!gp_python_is_reported(exam, env, owner.name))
            report(exam, env, torch, s, other, &owner);
    }
}
