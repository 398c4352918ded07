/* Compiled modules that take functions from PyTorch which the installed one does not have: they
 * were compiled for another release, or for another C++ ABI. */
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

/* A module takes some ten of these functions, and has less than a megabyte of names. */
enum {
    PACKAGES_MAX = 32,
    MODULES_MAX = 128,
    BYTES_MAX = 128 << 20,
    LOOKUPS_MAX = 1 << 16,
    NAME_LENGTH_MAX = 1024,
    LACKING_MAX = 4, /* of a package; some may be left over */
    SYMBOL_BYTES = 24
};

/* ---- the C++ ABI: functions that take a std::string have other names in the other one ---- */

/* The wheels for PyTorch's releases before 2.7 have the older one, its builds by NVIDIA and
 * conda-forge the newer. */
enum abi { ABI_UNKNOWN, ABI_OLD, ABI_NEW };

static const char config[] = "torch/share/cmake/Torch/TorchConfig.cmake";

/* As the installed PyTorch tells programs that are built with it. */
static enum abi abi_of_torch(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char key[] = "_GLIBCXX_USE_CXX11_ABI=";
    const char *at = strstr(gp_pyenv_text(exam, env, config), key);
    char digit = at ? at[sizeof(key) - 1] : '\0';
    return digit == '0' ? ABI_OLD : digit == '1' ? ABI_NEW : ABI_UNKNOWN;
}

static enum abi abi_of_name(const char *name)
{
    if (strnlen(name, NAME_LENGTH_MAX) == NAME_LENGTH_MAX)
        return ABI_UNKNOWN;
    return strstr(name, "7__cxx11")                                         ? ABI_NEW
           : strstr(name, "RKSs") || strstr(name, "NS_14SourceLocationESs") ? ABI_OLD
                                                                            : ABI_UNKNOWN;
}

static bool is_other_abi(const char *name, enum abi wanted)
{
    enum abi abi = wanted == ABI_UNKNOWN ? ABI_UNKNOWN : abi_of_name(name);
    return abi != ABI_UNKNOWN && abi != wanted;
}

/* ---- the modules ---- */

/* PyTorch's libraries that are small enough to be searched, and what only they define: other names
 * of the same namespace are also in libtorch_cpu.so, and those of c10::hip also in libtorch_hip.so.
 * C++ names begin with their namespaces. */
enum library { OF_C10, OF_CUDA, LIBRARIES };

static const char *const files[LIBRARIES] = {"libc10.so", "libc10_cuda.so"};

static const struct {
    enum library library;
    const char *start;
} names[] = {
    {OF_CUDA, "_ZN3c104cuda"},
    {OF_C10, "_ZN3c105ErrorC"},
    {OF_C10, "_ZN3c106detail14torchCheckFail"},
    {OF_C10, "_ZN3c106detail23torchInternalAssertFail"},
    {OF_C10, "_ZN3c1015SmallVectorBase"},
    {OF_C10, "_ZNK3c1010TensorImpl"},
    {OF_C10, "_ZN3c1010TensorImpl"},
    {OF_C10, "_ZNK3c106SymInt"},
    {OF_C10, "_ZN3c107Warning"},
};

/* A module, and the first function that it lacks. */
struct lacking {
    const char *path, *name;
    enum library library; /* LIBRARIES: told by the ABI */
};

/* The modules of a package. */
struct package {
    const char *top;
    struct lacking lacking[LACKING_MAX];
    size_t count;
    bool has_whole; /* another one has all that it takes */
};

struct scan {
    struct gp_exam *exam;
    struct gp_elf_exports torch[LIBRARIES];
    bool is_read[LIBRARIES];
    enum abi wanted;
    struct package list[PACKAGES_MAX];
    size_t count, modules, bytes, lookups; /* `lookups`: how many are left */
};

static struct package *package_of(struct scan *s, const char *top)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->list[i].top, top) == 0)
            return &s->list[i];
    if (s->count == PACKAGES_MAX)
        return NULL;
    s->list[s->count] = (struct package){.top = gp_exam_text(s->exam, "%s", top)};
    return &s->list[s->count++];
}

/* Whether it loads one of PyTorch's libraries: another one's functions may come from elsewhere. */
static bool is_of_torch(const struct gp_elf *shared)
{
    const char *name;
    size_t from = 0;
    while ((name = gp_elf_needed(shared, &from)))
        if (gp_pylibrary_of(name) == GP_PYLIBRARY_TORCH)
            return true;
    return false;
}

/* The first function of the other ABI: of libtorch_cpu.so, which is too large to be searched, and
 * of libc10.so if that cannot be. Nearly all modules take one. */
static const char *other_abi_in(struct scan *s, const struct gp_elf *shared)
{
    static const char *const starts[] = {"_ZN5torch3jit17parseSchemaOrNameE",
                                         "_ZN3c106detail14torchCheckFailE", "_ZN3c105ErrorC"};
    size_t count = s->wanted == ABI_UNKNOWN ? 0 : s->is_read[OF_C10] ? 1 : GP_ARRAY_LEN(starts);
    for (size_t i = 0; i < count; i++) {
        const char *name;
        for (size_t from = 0; (name = gp_elf_import(shared, starts[i], &from)) && s->lookups > 0;) {
            s->lookups--;
            if (is_other_abi(name, s->wanted))
                return name;
        }
    }
    return NULL;
}

/* The first function that a module lacks, and of which library; NULL: none is known. */
static const char *lacking_in(struct scan *s, const struct gp_elf *shared,
                              enum library *ret_library)
{
    const char *name = other_abi_in(s, shared);
    *ret_library = LIBRARIES;
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !name; i++) {
        *ret_library = names[i].library;
        if (s->is_read[names[i].library])
            name = gp_elf_lacks(shared, names[i].start, &s->torch[names[i].library], &s->lookups);
    }
    return name;
}

static void look_at(void *data, const struct gp_pymodule *module)
{
    struct scan *s = data;
    struct package *package = is_of_torch(module->shared) ? package_of(s, module->top) : NULL;
    struct gp_arena scratch = {0};
    struct gp_elf shared;
    if (!package || s->bytes >= BYTES_MAX || s->lookups == 0 || s->modules++ >= MODULES_MAX)
        return;
    if (gp_elf_read(&shared, &s->exam->files, &scratch, module->path) && shared.symbols) {
        enum library library;
        size_t before = s->lookups;
        const char *name = lacking_in(s, &shared, &library);
        bool takes_any = s->lookups < before; /* what takes none may be for something else */
        s->bytes += shared.strings_size + shared.symbol_count * SYMBOL_BYTES;
        if (name && package->count < LACKING_MAX)
            package->lacking[package->count++] =
                (struct lacking){gp_exam_text(s->exam, "%s", module->path),
                                 gp_exam_text(s->exam, "%s", name), library};
        package->has_whole = package->has_whole || (!name && takes_any && s->lookups > 0);
    }
    gp_arena_fini(&scratch);
}

/* Whether a module is in a directory below its package's: "deepspeed/ops/sparse_attn_op.so". Such
 * ones are often only imported when they are to be used. */
static bool is_nested(const struct gp_pyenv *env, const char *path)
{
    const char *at = path + strlen(env->site), *egg = strstr(at, ".egg/");
    at = strchr(egg ? egg + sizeof(".egg/") - 1 : at + 1, '/');
    return at && strchr(at + 1, '/');
}

/* ---- the finding ---- */

/* Whether wheels for the release of that number do not fit, as they have the other ABI. Those for
 * 2.6 can have either. */
static bool is_own_build(const struct gp_torch *torch, enum abi wanted)
{
    return gp_version_is_between(torch->version) ||
           (wanted == ABI_NEW && gp_version_compare(torch->version, "2.6") < 0);
}

static void fix_abi(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                    enum abi wanted, const struct gp_pypackage *owner)
{
    if (owner->is_conda)
        gp_exam_advice(exam, "install the build of %s for this PyTorch, from the same channel",
                       owner->name);
    else if (is_own_build(torch, wanted) && torch->cuda[0])
        gp_compiled_again(exam, env, owner);
    else
        gp_compiled_fix(exam, env, owner, torch);
    if (gp_version_is_between(torch->version))
        gp_exam_advice(
            exam,
            "or, in a virtual environment of its own, PyTorch's release %u.%u, for which "
            "the wheel was made",
            gp_version_major(torch->version), gp_version_minor(torch->version));
}

static void head(struct gp_exam *exam, enum gp_verdict verdict, const struct gp_pyenv *env,
                 const struct gp_torch *torch, const struct gp_pypackage *owner, enum abi wanted)
{
    if (wanted == ABI_UNKNOWN)
        gp_exam_report(exam, verdict,
                       "%s %s in %s was compiled for another PyTorch than %s, which is installed",
                       owner->name, owner->version, env->prefix, torch->version);
    else
        gp_exam_report(
            exam, verdict,
            "%s %s in %s was compiled for a PyTorch with the %s C++ ABI, but PyTorch %s has the %s",
            owner->name, owner->version, env->prefix, wanted == ABI_NEW ? "old" : "new",
            torch->version, wanted == ABI_NEW ? "new" : "old");
}

/* `wanted`: the ABI that it should have; ABI_UNKNOWN: that is not what is wrong. */
static void report(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                   const struct lacking *l, bool has_whole, enum abi wanted,
                   const struct gp_pypackage *owner)
{
    bool is_caught = gp_compiled_is_spare(owner->name) || has_whole;
    bool is_late = is_nested(env, l->path);
    head(exam, is_caught || is_late ? GP_VERDICT_INFO : gp_pyenv_verdict(env, false), env, torch,
         owner, wanted);
    gp_exam_evidence(exam, l->path, "needs the function %s", l->name);
    if (l->library != LIBRARIES)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/lib/%s", env->site, files[l->library]),
                         "does not have it");
    if (wanted != ABI_UNKNOWN)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, config),
                         "_GLIBCXX_USE_CXX11_ABI=%d", wanted == ABI_NEW);
    gp_exam_why(exam, "%s: \"undefined symbol: %s\".%s",
                is_late     ? "What imports this module fails"
                : is_caught ? "Its import can fail, and then it computes without its own kernels"
                            : "The import fails",
                l->name,
                wanted != ABI_UNKNOWN && is_own_build(torch, wanted)
                    ? " This PyTorch is a build of its own, as in NVIDIA's containers: wheels for "
                      "the release of that number do not fit."
                    : "");
    if (wanted != ABI_UNKNOWN)
        fix_abi(exam, env, torch, wanted, owner);
    else
        gp_compiled_fix(exam, env, owner, torch);
    if (strcmp(owner->name, "flash-attn") == 0 && torch->cuda[0]) {
        gp_exam_advice(exam, "if that wheel has the same fault: put "
                             "FLASH_ATTENTION_FORCE_BUILD=TRUE before the command, which then "
                             "compiles it here");
        gp_exam_link(exam, "https://github.com/Dao-AILab/flash-attention/releases");
    }
}

static void report_package(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch, const struct package *package,
                           enum abi wanted, size_t *budget)
{
    struct gp_pypackage owner;
    if (package->count == 0 ||
        gp_pymodule_owner(exam, env, package->top, budget, &owner) != GP_PYOWNER_FOUND ||
        gp_python_is_reported(exam, env, owner.name))
        return;
    for (size_t i = 0; i < package->count; i++) {
        const struct lacking *l = &package->lacking[i];
        /* What no package lists may be left over. */
        if (gp_pymodule_is_left(exam, env, &owner, l->path))
            continue;
        report(exam, env, torch, l, package->has_whole,
               is_other_abi(l->name, wanted) ? wanted : ABI_UNKNOWN, &owner);
        return;
    }
}

void gp_check_compiled_symbols(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch)
{
    struct scan *s = gp_arena_alloc(&exam->arena, 1, sizeof(*s));
    size_t budget = 256 << 20;       /* bytes of the packages' lists of files */
    struct gp_arena libraries = {0}; /* PyTorch's, not kept: there may be many environments */
    if (!s)
        return;
    s->exam = exam;
    s->wanted = abi_of_torch(exam, env);
    bool is_any = s->wanted != ABI_UNKNOWN;
    s->lookups = LOOKUPS_MAX;
    for (size_t i = 0; i < LIBRARIES; i++) {
        const char *path = gp_exam_text(exam, "%s/torch/lib/%s", env->site, files[i]);
        struct gp_elf shared;
        s->is_read[i] = gp_elf_read(&shared, &exam->files, &libraries, path) &&
                        gp_elf_exports_of(&s->torch[i], &shared, &libraries);
        is_any = is_any || s->is_read[i];
    }
    if (is_any)
        gp_pymodules_visit(exam, env, look_at, s);
    gp_arena_fini(&libraries);
    for (size_t i = 0; i < s->count; i++)
        report_package(exam, env, torch, &s->list[i], s->wanted, &budget);
}
