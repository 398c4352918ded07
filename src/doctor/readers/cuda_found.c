#include "doctor/readers/cuda_found.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- cuDNN ---- */

unsigned gp_cudnn_of_name(const char *name)
{
    static const char start[] = "libcudnn.so.";
    return strncmp(name, start, sizeof(start) - 1) == 0
               ? (unsigned)strtoul(name + sizeof(start) - 1, NULL, 10)
               : 0;
}

bool gp_cudnn_is_in(struct gp_exam *exam, const char *folder, unsigned wanted, unsigned *ret_other)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    bool is_found = false;
    for (long i = 0; i < n; i++) {
        unsigned have = gp_cudnn_of_name(names[i]);
        is_found = is_found || have == wanted;
        *ret_other = have && have != wanted ? have : *ret_other;
    }
    return is_found;
}

bool gp_cudnn_is_found(struct gp_exam *exam, const struct gp_pyenv *env, unsigned wanted,
                       unsigned *ret_other, bool *ret_is_known)
{
    const char *const folders[] = {gp_exam_text(exam, "%s/nvidia/cudnn/lib", env->site),
                                   gp_exam_text(exam, "%s/torch/lib", env->site),
                                   gp_exam_text(exam, "%s/lib", env->prefix)};
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache = {.count = 0};
    bool is_found = false;
    *ret_is_known = gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        is_found = gp_cudnn_is_in(exam, folders[i], wanted, ret_other) || is_found;
    while (gp_search_path_next(&list, ":;", folder))
        is_found =
            (folder[0] == '/' && gp_cudnn_is_in(exam, folder, wanted, ret_other)) || is_found;
    for (size_t i = 0; *ret_is_known && i < cache.count; i++) {
        unsigned have = gp_cudnn_of_name(gp_ldcache_at(&cache, i).name);
        is_found = is_found || have == wanted;
        *ret_other = have && have != wanted ? have : *ret_other;
    }
    return is_found || gp_pyenv_package_like(env, "nvidia-cudnn-cu") ||
           gp_pyenv_package(env, "cudnn");
}

/* "8.4.1" of the file that a name leads to; "". */
static const char *version_of_file(struct gp_exam *exam, const char *path)
{
    char real[GP_PATH_SIZE];
    const char *version =
        gp_files_real(&exam->files, path, real) ? gp_library_version(strrchr(real, '/') + 1) : "";
    return strchr(version, '.') ? gp_exam_text(exam, "%s", version) : "";
}

const char *gp_cudnn_loaded(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                            const char **ret_path)
{
    const char *name = gp_exam_text(exam, "libcudnn.so.%u", major);
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    const char *own = gp_exam_text(exam, "%s/lib/%s", env->prefix, name);
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    *ret_path = "";
    while (!(*ret_path)[0] && gp_search_path_next(&list, ":;", folder)) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, name);
        if (folder[0] == '/' && gp_files_exist(&exam->files, path))
            *ret_path = path;
    }
    if (!(*ret_path)[0] && gp_files_exist(&exam->files, own))
        *ret_path = own;
    if (!(*ret_path)[0] && gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0 &&
        gp_ldcache_find(&cache, name, exam->machine.arch, &from, &library))
        *ret_path = gp_exam_text(exam, "%s", library.path);
    return (*ret_path)[0] ? version_of_file(exam, *ret_path) : "";
}

/* ---- cuBLAS ---- */

/* "12" of "libcublas.so.12"; "": another name. */
static const char *cublas_number(const char *name)
{
    static const char start[] = "libcublas.so.";
    return strncmp(name, start, sizeof(start) - 1) == 0 ? name + sizeof(start) - 1 : "";
}

static bool is_cublas(const char *name, unsigned major)
{
    const char *number = cublas_number(name);
    return number[0] && strtoul(number, NULL, 10) == major;
}

static bool has_cublas_in(struct gp_exam *exam, const char *folder, unsigned major)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (is_cublas(names[i], major))
            return true;
    return false;
}

bool gp_cuda_is_found(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                      const char **ret_other)
{
    static const char *const numbered[] = {"cudatoolkit", "nvidia-cublas", "libcublas",
                                           "cuda-cudart"}; /* as CUDA itself */
    const struct gp_toolkits *toolkits = gp_toolkits_of(exam);
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache = {.count = 0};
    bool is_found = gp_pyenv_package(env, gp_exam_text(exam, "nvidia-cublas-cu%u", major)) ||
                    has_cublas_in(exam, gp_exam_text(exam, "%s/lib", env->prefix), major) ||
                    has_cublas_in(exam, gp_exam_text(exam, "%s/torch/lib", env->site), major);
    *ret_other = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(numbered); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, numbered[i]);
        is_found = is_found || (package && gp_version_major(package->version) == major);
        *ret_other = package ? package->version : *ret_other;
    }
    for (size_t i = 0; i < toolkits->count; i++) {
        is_found = is_found || gp_version_major(toolkits->list[i].version) == major;
        *ret_other = toolkits->list[i].version;
    }
    while (gp_search_path_next(&list, ":;", folder))
        is_found = is_found || (folder[0] == '/' && has_cublas_in(exam, folder, major));
    if (gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0)
        for (size_t i = 0; i < cache.count; i++) {
            const char *name = gp_ldcache_at(&cache, i).name, *number = cublas_number(name);
            is_found = is_found || is_cublas(name, major);
            if (!(*ret_other)[0] && number[0])
                *ret_other = gp_exam_text(exam, "%.*s", (int)strcspn(number, "."), number);
        }
    return is_found;
}

bool gp_cuda_is_only_other(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                           const char **ret_other)
{
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cublas-cu");
    if (gp_cuda_is_found(exam, env, major, ret_other))
        return false;
    if (!(*ret_other)[0] && wheel)
        *ret_other = wheel->version;
    return (*ret_other)[0];
}

/* ---- single libraries ---- */

bool gp_library_is_loadable(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    while (gp_search_path_next(&list, ":;", folder)) /* an empty one is the working directory */
        if (folder[0] == '/'
                ? gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name))
                : folder[0])
            return true;
    return gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0 ||
           gp_ldcache_find(&cache, name, exam->machine.arch, &from, &library) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/lib/%s", env->prefix, name));
}

/* NVIDIA's packages put cuBLAS of 10.1 into a directory of 10.2, which is no toolkit. */
const char *gp_library_folder(struct gp_exam *exam, const char *name)
{
    static const char top[] = "/usr/local";
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const char *folder;
    char **names;
    for (size_t i = 0; i < all->count; i++) {
        folder = gp_exam_text(exam, "%s/lib64", all->list[i].path);
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)))
            return folder;
    }
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n; i++) {
        folder = gp_exam_text(exam, "%s/%s/lib64", top, names[i]);
        if (strncmp(names[i], "cuda-", 5) == 0 &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)))
            return folder;
    }
    return NULL;
}

/* Another version that the loader knows: a distribution's packages have no directory of their own.
 */
static const char *other_known(struct gp_exam *exam, const char *name, size_t stem)
{
    struct gp_ldcache cache;
    if (gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0)
        return NULL;
    for (size_t i = 0; i < cache.count; i++) {
        struct gp_library library = gp_ldcache_at(&cache, i);
        if (strncmp(library.name, name, stem) == 0 && strcmp(library.name, name) != 0)
            return gp_exam_text(exam, "%s", library.path);
    }
    return NULL;
}

const char *gp_library_other(struct gp_exam *exam, const char *name)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    size_t stem = (size_t)(strstr(name, ".so.") - name) + strlen(".so.");
    for (size_t i = 0; i < all->count; i++) {
        const char *folder = gp_exam_text(exam, "%s/lib64", all->list[i].path);
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < n; k++)
            if (strncmp(names[k], name, stem) == 0)
                return gp_exam_text(exam, "%s/%s", folder, names[k]);
    }
    return other_known(exam, name, stem);
}

static bool has_library(struct gp_exam *exam, const char *folder, const char *name)
{
    size_t n = strlen(name);
    char **names;
    long count = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < count; i++)
        if (strncmp(names[i], name, n) == 0 && (names[i][n] == '\0' || names[i][n] == '.'))
            return true;
    return false;
}

/* The names that NVIDIA's archives unpack to begin with these. */
static bool is_archive(const char *name)
{
    static const char *const starts[] = {"cuda", "cudnn", "TensorRT", "tensorrt", NULL};
    return gp_lines_starts_any(name, starts);
}

/* The directory of such an archive below this one; NULL. */
static const char *unpacked_in(struct gp_exam *exam, const char *top, const char *name)
{
    static const char *const folders[] = {"lib64", "lib", "cuda/lib64"};
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n; i++)
        for (size_t f = 0; is_archive(names[i]) && f < GP_ARRAY_LEN(folders); f++) {
            const char *folder = gp_exam_text(exam, "%s/%s/%s", top, names[i], folders[f]);
            if (has_library(exam, folder, name))
                return folder;
        }
    return NULL;
}

const char *gp_library_unpacked(struct gp_exam *exam, const char *name)
{
    static const char *const tops[] = {"/usr/local", "/opt"};
    static const char *const parts[] = {"", "/Downloads"};
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *found = NULL;
    for (size_t t = 0; t < GP_ARRAY_LEN(tops) && !found; t++)
        found = unpacked_in(exam, tops[t], name);
    for (size_t i = 0; i < homes->count * GP_ARRAY_LEN(parts) && !found; i++)
        found = unpacked_in(exam,
                            gp_exam_text(exam, "%s%s", homes->list[i / GP_ARRAY_LEN(parts)],
                                         parts[i % GP_ARRAY_LEN(parts)]),
                            name);
    return found;
}
