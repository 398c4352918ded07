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

#include <string.h>

/* A module takes some ten of these functions, and has less than a megabyte of names. */
enum {
    PACKAGES_MAX = 32,
    MODULES_MAX = 128,
    BYTES_MAX = 128 << 20,
    LOOKUPS_MAX = 1 << 16,
    SYMBOL_BYTES = 24
};

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

/* The modules of a package. */
struct lacking {
    const char *top, *path; /* NULL: none lacks a function */
    const char *name;
    enum library library;
    bool has_whole; /* another one has all that it takes */
};

struct scan {
    struct gp_exam *exam;
    struct gp_elf_exports torch[LIBRARIES];
    bool is_read[LIBRARIES];
    struct lacking list[PACKAGES_MAX];
    size_t count, modules, bytes, lookups; /* `lookups`: how many are left */
};

static struct lacking *package_of(struct scan *s, const char *top)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->list[i].top, top) == 0)
            return &s->list[i];
    if (s->count == PACKAGES_MAX)
        return NULL;
    s->list[s->count] = (struct lacking){.top = gp_exam_text(s->exam, "%s", top)};
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

/* The first function that a module lacks, and of which library; NULL: none is known. */
static const char *lacking_in(struct scan *s, const struct gp_elf *shared,
                              enum library *ret_library)
{
    const char *name = NULL;
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
    struct lacking *package = is_of_torch(module->shared) ? package_of(s, module->top) : NULL;
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
        if (name && !package->path) {
            package->path = gp_exam_text(s->exam, "%s", module->path);
            package->name = gp_exam_text(s->exam, "%s", name);
            package->library = library;
        }
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

static void report(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                   const struct lacking *l, const struct gp_pypackage *owner)
{
    bool is_caught = gp_compiled_is_spare(owner->name) || l->has_whole;
    bool is_late = is_nested(env, l->path);
    gp_exam_report(exam, is_caught || is_late ? GP_VERDICT_INFO : gp_pyenv_verdict(env, false),
                   "%s %s in %s was compiled for another PyTorch than %s, which is installed",
                   owner->name, owner->version, env->prefix, torch->version);
    gp_exam_evidence(exam, l->path, "needs the function %s", l->name);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/lib/%s", env->site, files[l->library]),
                     "does not have it");
    gp_exam_why(exam, "%s: \"undefined symbol: %s\".",
                is_late     ? "What imports this module fails"
                : is_caught ? "Its import can fail, and then it computes without its own kernels"
                            : "The import fails",
                l->name);
    gp_compiled_fix(exam, env, owner, torch);
    if (strcmp(owner->name, "flash-attn") == 0 && torch->cuda[0]) {
        gp_exam_advice(exam, "if that wheel has the same fault: put "
                             "FLASH_ATTENTION_FORCE_BUILD=TRUE before the command, which then "
                             "compiles it here");
        gp_exam_link(exam, "https://github.com/Dao-AILab/flash-attention/releases");
    }
}

void gp_check_compiled_symbols(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch)
{
    struct scan *s = gp_arena_alloc(&exam->arena, 1, sizeof(*s));
    size_t budget = 256 << 20;       /* bytes of the packages' lists of files */
    struct gp_arena libraries = {0}; /* PyTorch's, not kept: there may be many environments */
    bool is_any = false;
    if (!s)
        return;
    s->exam = exam;
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
    for (size_t i = 0; i < s->count; i++) {
        const struct lacking *l = &s->list[i];
        struct gp_pypackage owner;
        /* What no package lists may be left over. */
        if (l->path && gp_pymodule_owner(exam, env, l->top, &budget, &owner) == GP_PYOWNER_FOUND &&
            !gp_pymodule_is_left(exam, env, &owner, l->path) &&
            !gp_python_is_reported(exam, env, owner.name))
            report(exam, env, torch, l, &owner);
    }
}
