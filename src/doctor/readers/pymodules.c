#include "doctor/readers/pymodules.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/shared.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_start(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

enum gp_pylibrary gp_pylibrary_of(const char *name)
{
    /* The name up to a version or a further word: libcudart.so.10.1, but not libcudadebugger. */
    static const char *const cuda[] = {
        "libcudart.",     "libcublas.",    "libcublasLt.", "libcufft.",
        "libcurand.",     "libcusolver.",  "libcusparse.", "libnvrtc.",
        "libnvToolsExt.", "libnvJitLink.", NULL,
    };
    static const char *const torch[] = {"libtorch.", "libtorch_", "libc10.",
                                        "libc10_",   "libcaffe2", NULL};
    if (gp_lines_starts_any(name, cuda))
        return GP_PYLIBRARY_CUDA;
    if (gp_lines_starts_any(name, torch))
        return GP_PYLIBRARY_TORCH;
    return has_start(name, "libcudnn.") || has_start(name, "libnccl.") ? GP_PYLIBRARY_PART
                                                                       : GP_PYLIBRARY_NONE;
}

/* ---- finding them ---- */

enum {
    DEPTH = 3,            /* "cupy_backends/cuda/libs/nvrtc.…so" */
    FOLDERS_MAX = 4096,   /* of an environment */
    FOLDERS_OF_ONE = 64,  /* of a package */
    FILES_MAX = 512,      /* that are read */
    BYTES_MAX = 128 << 20 /* of their texts */
};

struct walk {
    struct gp_exam *exam;
    const struct gp_pyenv *env;
    void (*visit)(void *data, const struct gp_pymodule *module);
    void *data;
    const char *top;
    size_t folders, left, files, bytes; /* `left`: folders of the current package */
};

/* Packages that other checks look into, that choose their libraries themselves when they run, or
 * that have many modules and no code for CUDA. */
static bool is_skipped(const char *name)
{
    static const char *const names[] = {
        "torch",         "tensorflow",  "jaxlib",   "jax",        "mxnet",
        "dgl",           "paddle",      "nvidia",   "triton",     "numpy",
        "scipy",         "pandas",      "sklearn",  "matplotlib", "bin",
        "pip",           "sympy",       "pyarrow",  "skimage",    "transformers",
        "setuptools",    "onnxruntime", "share",    "PIL",        "lxml",
        "grpc",          "google",      "docutils", "tensorrt",   "tensorrt_bindings",
        "tensorrt_libs",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return has_start(name, "__");
}

/* What needs no PyTorch. */
static bool is_of_cuda(const char *name)
{
    static const char *const names[] = {"cupy", "cupy_backends", "pycuda"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether the environment's Python would import a file: "_ext.cpython-38-…so", "_C.abi3.so"; a
 * plain "_C.so" is a module of Python 2, or loaded by PyTorch. */
static bool is_module(const struct gp_pyenv *env, const char *name, bool *ret_is_plain)
{
    static const char mark[] = ".cpython-", end[] = ".so";
    const char *tag = strstr(name, mark);
    size_t n = strlen(name);
    *ret_is_plain = !tag && !strstr(name, ".abi3.") && env->python[0] != '2';
    if (n <= sizeof(end) - 1 || strcmp(name + n - (sizeof(end) - 1), end) != 0 ||
        (*ret_is_plain && has_start(name, "lib")))
        return false;
    char python[16];
    (void)snprintf(python, sizeof(python), "%u%u", gp_version_major(env->python),
                   gp_version_minor(env->python));
    return !tag || !env->python[0] ||
           strtoul(tag + sizeof(mark) - 1, NULL, 10) == strtoul(python, NULL, 10);
}

static void read_module(struct walk *w, const char *folder, const char *name, bool is_plain)
{
    struct gp_arena scratch = {0};
    struct gp_elf shared;
    char path[GP_PATH_SIZE];
    const char *library;
    size_t from = 0;
    bool is_torch = false, is_any = false;
    if (w->files >= FILES_MAX || w->bytes >= BYTES_MAX ||
        snprintf(path, sizeof(path), "%s/%s", folder, name) >= GP_PATH_SIZE)
        return;
    w->files++;
    if (gp_elf_read_libraries(&shared, &w->exam->files, &scratch, path)) {
        w->bytes += shared.strings_size;
        while ((library = gp_elf_needed(&shared, &from))) {
            enum gp_pylibrary kind = gp_pylibrary_of(library);
            is_any = is_any || kind != GP_PYLIBRARY_NONE;
            is_torch = is_torch || kind == GP_PYLIBRARY_TORCH;
        }
        char top[GP_PATH_SIZE];
        (void)snprintf(top, sizeof(top), "%.*s", (int)strcspn(name, "."), name);
        if (is_any && (is_torch || !is_plain))
            w->visit(w->data, &(struct gp_pymodule){w->top ? w->top : top, path, &shared, !w->top});
    }
    gp_arena_fini(&scratch);
}

/* The modules in a directory of a package, then those in the directories below it. */
static void walk_package(struct walk *w, const char *folder, unsigned depth)
{
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    char **names;
    bool is_plain;
    if (w->folders >= FOLDERS_MAX || w->left == 0)
        return;
    w->folders++;
    w->left--;
    long n = gp_files_list(&w->exam->files, &scratch, folder, &names);
    for (long i = 0; i < n; i++)
        if (is_module(w->env, names[i], &is_plain))
            read_module(w, folder, names[i], is_plain);
    for (long i = 0; i < n && depth > 0; i++)
        if (!strchr(names[i], '.') && !has_start(names[i], "__") && !has_start(names[i], "test") &&
            snprintf(path, sizeof(path), "%s/%s", folder, names[i]) < GP_PATH_SIZE)
            walk_package(w, path, depth - 1);
    gp_arena_fini(&scratch);
}

/* A directory that setup.py has installed: "pointnet2-0.0-py3.8-linux-x86_64.egg", if Python looks
 * into it. */
static bool is_egg(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".egg") == 0 &&
           strstr(gp_pyenv_text(exam, env, "easy-install.pth"), gp_exam_text(exam, "/%s", name));
}

static void walk_site(struct walk *w, const char *site, unsigned eggs)
{
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    char **names;
    bool is_plain;
    long n = gp_files_list(&w->exam->files, &scratch, site, &names);
    for (long i = 0; i < n; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", site, names[i]) >= GP_PATH_SIZE)
            continue;
        w->top = NULL;
        if (w->env->has_torch && is_module(w->env, names[i], &is_plain)) {
            read_module(w, site, names[i], is_plain);
        } else if (!strchr(names[i], '.') && !is_skipped(names[i]) &&
                   (w->env->has_torch || is_of_cuda(names[i]))) {
            w->top = names[i];
            w->left = FOLDERS_OF_ONE;
            walk_package(w, path, DEPTH);
        } else if (eggs > 0 && is_egg(w->exam, w->env, names[i])) {
            walk_site(w, path, eggs - 1);
        }
    }
    gp_arena_fini(&scratch);
}

void gp_pymodules_visit(struct gp_exam *exam, const struct gp_pyenv *env,
                        void (*visit)(void *data, const struct gp_pymodule *module), void *data)
{
    struct walk w = {.exam = exam, .env = env, .visit = visit, .data = data};
    if (!env->error)
        walk_site(&w, env->site, 1);
}

/* ---- their packages ---- */

/* A package's list of its files; in the arena, NULL: it has none. */
static const char *list_of(struct gp_exam *exam, struct gp_arena *arena, const struct gp_pyenv *env,
                           const char *entry, const char *name, size_t *budget)
{
    enum { TEXT_MAX = 8 << 20, OPEN_COST = 4096 };
    char path[GP_PATH_SIZE];
    size_t length = 0;
    if (*budget == 0 ||
        snprintf(path, sizeof(path), "%s/%s/%s", env->site, entry, name) >= GP_PATH_SIZE)
        return NULL;
    const char *text = gp_files_text(&exam->files, arena, path, TEXT_MAX, &length);
    length += OPEN_COST; /* small files take time, too */
    *budget -= length < *budget ? length : *budget;
    return text;
}

/* Whether a line of a list begins with this, and then a sign: "amp_C" in "amp_C.cpython-38.so,…".
 */
static bool has_line(const char *list, const char *start, const char *signs)
{
    size_t n = strlen(start);
    for (; list && *list; list += strcspn(list, "\n"), list += *list == '\n')
        if (strncmp(list, start, n) == 0 && strchr(signs, list[n]))
            return true;
    return false;
}

/* Whether a package lists a module or a directory of this name at the top; *ret_is_known: it has a
 * list. */
static bool has_file(struct gp_exam *exam, const struct gp_pyenv *env, const char *entry,
                     const char *top, size_t *budget, bool *ret_is_known)
{
    struct gp_arena scratch = {0};
    bool is_listed = has_line(list_of(exam, &scratch, env, entry, "top_level.txt", budget), top,
                              "\r\n"); /* the shorter one */
    const char *record = is_listed ? NULL : list_of(exam, &scratch, env, entry, "RECORD", budget);
    *ret_is_known = is_listed || record;
    is_listed = is_listed || has_line(record, top, "./");
    gp_arena_fini(&scratch);
    return is_listed;
}

bool gp_pymodule_is_left(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *owner, const char *path)
{
    struct gp_arena scratch = {0};
    size_t n = strlen(env->site), budget = 1; /* one file, of any size */
    const char *record = list_of(exam, &scratch, env, owner->entry, "RECORD", &budget);
    bool is_left =
        record && strncmp(path, env->site, n) == 0 && !has_line(record, path + n + 1, ",\r\n");
    gp_arena_fini(&scratch);
    return is_left;
}

/* Whether conda has installed this version of it. */
static bool is_of_conda(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                        const char *version)
{
    const char *start = gp_exam_text(exam, "%s-%s-", name, version);
    char **names;
    long n = env->kind == GP_PYENV_CONDA
                 ? gp_files_list(&exam->files, &exam->arena,
                                 gp_exam_text(exam, "%s/conda-meta", env->prefix), &names)
                 : 0;
    for (long i = 0; i < n; i++)
        if (has_start(names[i], start))
            return true;
    return false;
}

/* How well the name of a package fits: "flash-attn" is in "flash_attn_cuda", "cupy-cuda101" is
 * of "cupy". 0: not. */
static size_t likeness(const char *package, const char *top)
{
    size_t i = 0;
    if (strcmp(top, "cupy") == 0 && has_start(package, "cupy-cuda"))
        return strlen(top) + 1;
    while (package[i] && top[i] &&
           (package[i] == '-' ? top[i] == '_' || top[i] == '-' : package[i] == (top[i] | 0x20)))
        i++;
    bool is_inside = !package[i] && (!top[i] || top[i] == '_');
    return is_inside ? i + !top[i] : 0;
}

enum gp_pyowner gp_pymodule_owner(struct gp_exam *exam, const struct gp_pyenv *env, const char *top,
                                  size_t *budget, struct gp_pypackage *ret)
{
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], **names;
    const size_t whole = strlen(top) + 1; /* the likeness of the same name */
    const char *found = NULL;
    size_t best = 0;
    bool is_known;
    long n = gp_files_list(&exam->files, &exam->arena, env->site, &names);
    for (long i = 0; i < n; i++) {
        size_t fits = gp_pypackage_split(names[i], name, version) ? likeness(name, top) : 0;
        found = fits > best ? names[i] : found;
        best = fits > best ? fits : best;
    }
    for (long i = 0; i < n && best < whole; i++)
        if (gp_pypackage_split(names[i], name, version) &&
            has_file(exam, env, names[i], top, budget, &is_known)) {
            found = names[i];
            best = whole;
        }
    if (best < whole && *budget == 0)
        return GP_PYOWNER_UNREAD;
    if (found && best < whole && !has_file(exam, env, found, top, budget, &is_known) && is_known)
        return GP_PYOWNER_NONE; /* of an older version of that package, perhaps */
    if (!found || !gp_pypackage_split(found, name, version))
        return GP_PYOWNER_NONE;
    *ret = (struct gp_pypackage){.name = gp_exam_text(exam, "%s", name),
                                 .version = gp_exam_text(exam, "%s", version),
                                 .entry = found,
                                 .is_conda = is_of_conda(exam, env, name, version)};
    return GP_PYOWNER_FOUND;
}
