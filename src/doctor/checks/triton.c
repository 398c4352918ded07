/* Triton compiles a small program at run time, and links it with the driver's library. */
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

/* The first version that links with libcuda.so.1: triton-lang/triton#8668. */
static const char first_without[] = "3.6";

const struct gp_pypackage *gp_triton_of(const struct gp_pyenv *env)
{
    const struct gp_pypackage *triton = gp_pyenv_package(env, "triton");
    return triton ? triton : gp_pyenv_package(env, "pytorch-triton");
}

static bool has_name(struct gp_exam *exam, const char *folder)
{
    return folder[0] == '/' &&
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/libcuda.so", folder));
}

/* Whether the linker finds libcuda.so: in its own directories, or in those of these variables. */
static bool is_found(struct gp_exam *exam)
{
    static const char *const variables[] = {"TRITON_LIBCUDA_PATH", "LIBRARY_PATH",
                                            "LD_LIBRARY_PATH"};
    char folder[GP_PATH_SIZE];
    if (gp_system_library(exam, "", "libcuda.so"))
        return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++) {
        const char *list = gp_machine_variable(&exam->machine, variables[i]);
        while (gp_search_path_next(&list, ":;", folder))
            if (has_name(exam, folder))
                return true;
    }
    return false;
}

/* The directory of the libcuda.so.1 that the loader finds, where the name is missing; NULL: there
 * is none, or it has the name. */
static const char *bare_folder(struct gp_exam *exam)
{
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    const char *bare = NULL;
    if (gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0)
        return NULL;
    while (gp_ldcache_find(&cache, "libcuda.so.1", exam->machine.arch, &from, &library)) {
        const char *folder = gp_exam_text(
            exam, "%.*s", (int)(strrchr(library.path, '/') - library.path), library.path);
        if (has_name(exam, folder))
            return NULL;
        bare = bare ? bare : folder;
    }
    return bare;
}

/* Whether Triton may compile for one of the GPUs: since version 2 for Volta and newer. */
static bool has_usable_gpu(const struct gp_nvidia *nv)
{
    enum { VOLTA = 70 };
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability == 0 || nv->gpus[i].capability >= VOLTA)
            return true;
    return nv->count == 0;
}

/* The Triton that PyTorch requires by its metadata; "": none in particular. */
static const char *wanted_by_torch(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *torch = gp_pyenv_package(env, "torch");
    struct gp_requirement wanted;
    const char *text =
        torch && !torch->is_conda
            ? gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", torch->entry))
            : NULL;
    while (text && (text = gp_requirement_next(text, &wanted)))
        if (strcmp(wanted.name, "triton") == 0 && wanted.version[0] && !wanted.is_extra &&
            (!wanted.machine[0] || strcmp(wanted.machine, exam->machine.arch) == 0))
            return gp_exam_text(exam, "%s", wanted.version);
    return "";
}

/* PyTorch uses internal functions of Triton, which change between its releases. */
static void check_release(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *triton = gp_pyenv_package(env, "triton");
    const struct gp_pypackage *torch = gp_pyenv_package(env, "torch");
    const char *wanted = triton && !triton->is_conda ? wanted_by_torch(exam, env) : "";
    if (!wanted[0] || (gp_version_major(triton->version) == gp_version_major(wanted) &&
                       gp_version_minor(triton->version) == gp_version_minor(wanted)))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Triton %s in %s is not the %s that PyTorch %s was made for", triton->version,
                   env->prefix, wanted, torch->version);
    gp_exam_evidence(exam, env->site, "%s, %s", triton->entry, torch->entry);
    gp_exam_why(exam, "torch.compile can fail, as with \"cannot import name 'AttrsDescriptor'\" or "
                      "\"'triton_key'\".");
    gp_exam_pip(exam, env, GP_PIP_ADD, "", gp_exam_text(exam, "triton==%s", wanted));
}

/* The package that compiles with Triton, without requiring it: it comes with PyTorch. vLLM does so
 * for each model since its engine V1; cuEquivariance's operators for PyTorch have kernels in it
 * (NVIDIA/cuEquivariance#165). NULL: none. */
static const struct gp_pypackage *known_user(const struct gp_pyenv *env)
{
    static const struct {
        const char *name, *first;
    } users[] = {{"vllm", "0.8"},
                 {"sglang", "0.1"},
                 {"unsloth", "2024"},
                 {"sageattention", "1"},
                 {"cuequivariance-ops-torch-cu12", "0.4"},
                 {"cuequivariance-ops-torch-cu13", "0.4"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, users[i].name);
        if (package && gp_version_compare(package->version, users[i].first) >= 0)
            return package;
    }
    return NULL;
}

/* The package that requires Triton; NULL: none but PyTorch and Whisper, which do without. */
static const struct gp_pypackage *user_of(struct gp_exam *exam, const struct gp_pyenv *env)
{
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *package = &env->packages[i];
        const char *file = gp_exam_text(exam, "%s/METADATA", package->entry);
        bool is_left_out = package->is_conda || strcmp(package->name, "torch") == 0 ||
                           strcmp(package->name, "openai-whisper") == 0;
        const char *text = is_left_out ? NULL : gp_pyenv_text(exam, env, file);
        if (gp_requirement_is_in(text, "triton"))
            return package;
    }
    return NULL;
}

/* What a key of the cache tells: whether it has something that was made with the helper, or is the
 * helper; or is empty, as what failed leaves it. Returns the number of its files. */
static long look_into(struct gp_exam *exam, const char *key, bool *ret_is_linked,
                      bool *ret_is_empty)
{
    struct gp_arena scratch = {0};
    char **names;
    long n = gp_files_list(&exam->files, &scratch, key, &names);
    for (long i = 0; i < n; i++)
        *ret_is_linked = *ret_is_linked || gp_lines_ends(names[i], ".cubin") ||
                         strncmp(names[i], "cuda_utils.", strlen("cuda_utils.")) == 0;
    *ret_is_empty = *ret_is_empty || n == 0;
    gp_arena_fini(&scratch);
    return n > 0 ? n : 0;
}

/* A cache of Triton in a home directory with an empty key: the helper, which is compiled first,
 * could not be linked there. Where anything is that comes after it, it was linked with the name, or
 * with a directory that a shell gave. NULL: none. */
static const char *failed_cache(struct gp_exam *exam)
{
    enum { MOST = 64 }; /* keys and files: a cache that never worked has a key for each release */
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *failed = NULL;
    bool is_linked = false;
    long left = MOST;
    for (size_t i = 0; i < homes->count; i++) {
        const char *cache = gp_exam_text(exam, "%s/.triton/cache", homes->list[i]);
        struct gp_arena scratch = {0};
        bool is_empty = false;
        char **keys;
        long n = gp_files_list(&exam->files, &scratch, cache, &keys);
        for (long k = 0; k < n && !is_linked && left > 0; k++)
            left -= 1 + look_into(exam, gp_exam_text(exam, "%s/%s", cache, keys[k]), &is_linked,
                                  &is_empty);
        gp_arena_fini(&scratch);
        failed = is_empty && !failed ? cache : failed;
    }
    return is_linked || left <= 0 ? NULL : failed;
}

/* What compiles with Triton here; NULL: nothing is known to. It comes with each PyTorch, and most
 * programs do without. */
static const char *use_of(struct gp_exam *exam, const struct gp_pyenv *env, const char **ret_words)
{
    static const char *const words[] = {"torch.compile", "import triton", "from triton",
                                        "torch._dynamo", NULL};
    const struct gp_pypackage *known = known_user(env);
    const struct gp_pypackage *package = known ? known : user_of(exam, env);
    *ret_words = "compiles with Triton";
    if (package)
        *ret_words =
            gp_exam_text(exam, "%s %s", package->entry, known ? *ret_words : "requires triton");
    if (package)
        return env->site;
    const char *program = gp_project_program(exam, env, words);
    const char *cache = program ? NULL : failed_cache(exam);
    if (cache)
        *ret_words = "Triton was started, and has no helper there";
    return program ? program : cache;
}

/* Where the headers of the distribution's Python should be, if they are missing; NULL: they are
 * there, or it is another Python, which brings its own. */
static const char *missing_header(struct gp_exam *exam, const struct gp_pyenv *env)
{
    char real[GP_PATH_SIZE];
    const char *program = gp_exam_text(exam, "/usr/bin/python%s", env->python);
    const char *own = gp_exam_text(exam, "%s/bin/python%s", env->prefix, env->python);
    const char *header = gp_exam_text(exam, "/usr/include/python%s/Python.h", env->python);
    own =
        gp_files_exist(&exam->files, own) ? own : gp_exam_text(exam, "%s/bin/python3", env->prefix);
    if (gp_files_real(&exam->files, own, real) && strcmp(real, program) != 0)
        return NULL;
    return env->python[0] && gp_files_exist(&exam->files, program) &&
                   gp_files_exist(&exam->files, "/usr/bin/gcc") &&
                   !gp_files_exist(&exam->files, header)
               ? header
               : NULL;
}

/* What is harmless until Triton compiles: most programs with PyTorch do without. */
static void note_header(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *triton = gp_pyenv_package(env, "triton");
    const char *header = triton ? missing_header(exam, env) : NULL;
    if (!header || (exam->last && exam->last->check == exam->check))
        return;
    const struct gp_pypackage *user = known_user(env);
    gp_exam_report(exam, user ? GP_VERDICT_INFO : GP_VERDICT_OK,
                   "Triton %s in %s cannot compile its helper for GPUs without the headers of "
                   "Python %s",
                   triton->version, env->prefix, env->python);
    gp_exam_evidence(exam, header, "missing");
    if (user)
        gp_exam_evidence(exam, env->site, "%s compiles with Triton", user->entry);
    gp_exam_why(exam, "Triton needs them once, for cuda_utils.c: \"fatal error: Python.h: No such "
                      "file or directory\".");
    if (gp_machine_has_apt(&exam->machine))
        gp_exam_command(exam, "the headers of this Python", "sudo apt install python%s-dev",
                        gp_exam_quoted(exam, env->python));
    else
        gp_exam_advice(exam,
                       "install the headers of Python %s from the distribution "
                       "(python3-devel, or that of this version)",
                       env->python);
}

/* The first GPU that the assembler of CUDA 12.8 does not know; NULL: there is none. */
static const struct gp_nvidia_gpu *too_new(const struct gp_nvidia *nv)
{
    enum { B300 = 103, GB10 = 121 };
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability == B300 || nv->gpus[i].capability == GB10)
            return &nv->gpus[i];
    return NULL;
}

/* An assembler of a toolkit that knows it; NULL: there is none. */
static const char *newer_assembler(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    for (size_t i = 0; i < all->count; i++) {
        const char *path = gp_exam_text(exam, "%s/bin/ptxas", all->list[i].path);
        if (gp_version_compare(all->list[i].version, "12.9") >= 0 &&
            gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

/* Triton brings the assembler of CUDA 12.8; since this version another one besides, for Blackwell:
 * triton-lang/triton#8539. */
static const char first_with_two[] = "3.6";

static void check_assembler(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_nvidia_gpu *gpu)
{
    const char *own = gp_exam_text(exam, "%s/triton/backends/nvidia/bin/ptxas", env->site), *words;
    const struct gp_pypackage *triton = gp_triton_of(env);
    if (!triton || gp_version_compare(triton->version, first_with_two) >= 0 ||
        !gp_files_exist(&exam->files, own) ||
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s-blackwell", own)) ||
        gp_machine_variable(&exam->machine, "TRITON_PTXAS_PATH"))
        return;
    const char *use = use_of(exam, env, &words), *newer = newer_assembler(exam);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Triton %s in %s has an assembler that does not know this GPU, %s",
                   triton->version, env->prefix, gpu->name);
    gp_exam_evidence(exam, own, "of CUDA 12.8 or older; sm_%u needs 12.9", gpu->capability);
    if (use)
        gp_exam_evidence(exam, use, "%s", words);
    gp_exam_why(exam,
                "What it compiles stops with \"ptxas fatal: Value 'sm_%ua' is not defined for "
                "option 'gpu-name'\".",
                gpu->capability);
    if (newer)
        gp_exam_command(exam, "also in the program's service or the shell's startup file",
                        "export TRITON_PTXAS_PATH=%s", newer);
    gp_exam_advice(exam,
                   newer ? "or a PyTorch with Triton 3.6 or newer, which has one for Blackwell"
                         : "a PyTorch with Triton 3.6 or newer has one for Blackwell; or install "
                           "the CUDA toolkit 13, and name its ptxas in TRITON_PTXAS_PATH");
}

void gp_check_triton(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    const struct gp_nvidia_gpu *newest = too_new(&nv);
    for (size_t i = 0; newest && i < envs->count; i++)
        check_assembler(exam, &envs->list[i], newest);
    bool is_usable = !exam->machine.is_wsl && has_usable_gpu(&nv);
    const char *folder = !is_usable || is_found(exam) ? NULL : bare_folder(exam);
    for (size_t i = 0; i < envs->count; i++)
        check_release(exam, &envs->list[i]);
    for (size_t i = 0; i < envs->count && !folder && is_usable; i++)
        note_header(exam, &envs->list[i]);
    for (size_t i = 0; folder && i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        const struct gp_pypackage *triton = gp_pyenv_package(env, "triton");
        if (!triton || gp_version_compare(triton->version, first_without) >= 0)
            continue;
        const char *words, *use = use_of(exam, env, &words);
        gp_exam_report(exam, use ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "Triton %s in %s cannot link its programs: libcuda.so is missing",
                       triton->version, env->prefix);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/libcuda.so", folder),
                         "missing; only libcuda.so.1 is there");
        gp_exam_evidence(exam, env->site, "%s", triton->entry);
        if (use)
            gp_exam_evidence(exam, use, "%s", words);
        gp_exam_why(exam, "torch.compile and programs with Triton fail: \"cannot find -lcuda\", or "
                          "\"libcuda.so cannot found\".");
        const char *quoted = gp_exam_quoted(exam, folder);
        gp_exam_command(exam,
                        "the name that the linker looks for, as a link to the driver's library",
                        "sudo ln -s libcuda.so.1 %s/libcuda.so", quoted);
        return;
    }
}
