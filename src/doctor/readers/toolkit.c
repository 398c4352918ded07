#include "doctor/readers/toolkit.h"

#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- versions ---- */

static bool take_version(const char *p, char version[GP_TOOLKIT_VERSION])
{
    size_t n = strspn(p, "0123456789.");
    while (n > 0 && p[n - 1] == '.')
        n--;
    if (n == 0 || n >= GP_TOOLKIT_VERSION || !memchr(p, '.', n))
        return false;
    memcpy(version, p, n);
    version[n] = '\0';
    return true;
}

/* Removes a third number that is a date. */
static void cut_day(char version[GP_TOOLKIT_VERSION])
{
    enum { DAY_DIGITS = 6 };
    char *dot = strchr(version, '.');
    dot = dot ? strchr(dot + 1, '.') : NULL;
    if (dot && strspn(dot + 1, "0123456789") >= DAY_DIGITS)
        *dot = '\0';
}

bool gp_toolkit_read_json(const char *text, char version[GP_TOOLKIT_VERSION])
{
    json_t *document = json_loads(text, 0, NULL);
    const char *said =
        json_string_value(json_object_get(json_object_get(document, "cuda"), "version"));
    bool is_said = said && take_version(said, version);
    if (is_said)
        cut_day(version);
    json_decref(document);
    return is_said;
}

bool gp_toolkit_read_text(const char *text, char version[GP_TOOLKIT_VERSION])
{
    static const char mark[] = "CUDA Version ";
    const char *at = strstr(text, mark);
    return at && take_version(at + sizeof(mark) - 1, version);
}

/* The number after "#define NAME"; −1: there is none. */
static long defined(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(text, name); p; p = strstr(p + 1, name)) {
        const char *value = p + n + strspn(p + n, " \t");
        if (value > p + n && isdigit((unsigned char)*value))
            return strtol(value, NULL, 10);
    }
    return -1;
}

/* "13.0" of 13000. */
static bool take_number(long number, char version[GP_TOOLKIT_VERSION])
{
    if (number < 1000 || number > 1000000)
        return false;
    (void)snprintf(version, GP_TOOLKIT_VERSION, "%ld.%ld", number / 1000, number % 1000 / 10);
    return true;
}

bool gp_toolkit_read_header(const char *text, char version[GP_TOOLKIT_VERSION])
{
    return take_number(defined(text, "#define CUDA_VERSION"), version);
}

bool gp_runtime_read_header(const char *text, char version[GP_TOOLKIT_VERSION])
{
    return take_number(defined(text, "#define CUDART_VERSION"), version);
}

bool gp_toolkit_read_name(const char *path, char version[GP_TOOLKIT_VERSION])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return take_version(strncmp(name, "cuda-", 5) == 0 ? name + 5 : name, version);
}

bool gp_cudnn_read_header(const char *text, char version[GP_TOOLKIT_VERSION])
{
    long major = defined(text, "#define CUDNN_MAJOR");
    long minor = defined(text, "#define CUDNN_MINOR");
    long patch = defined(text, "#define CUDNN_PATCHLEVEL");
    if (major < 0 || minor < 0 || patch < 0 || major > 999 || minor > 999 || patch > 999)
        return false;
    (void)snprintf(version, GP_TOOLKIT_VERSION, "%ld.%ld.%ld", major, minor, patch);
    return true;
}

const char *gp_library_version(const char *name)
{
    const char *at = strstr(name, ".so.");
    return at ? at + 4 : "";
}

/* ---- on the disk ---- */

static const char *keep(struct gp_exam *exam, const char *text)
{
    const char *kept = gp_arena_strdup(&exam->arena, text);
    return kept ? kept : "";
}

/* The files that may state the version, the best first. */
static void read_version(struct gp_exam *exam, struct gp_toolkit_found *toolkit)
{
    static const struct {
        const char *file;
        bool (*read)(const char *text, char version[GP_TOOLKIT_VERSION]);
    } sources[] = {{"version.json", gp_toolkit_read_json},
                   {"version.txt", gp_toolkit_read_text},
                   {"include/cuda.h", gp_toolkit_read_header}};
    enum { TEXT_MAX = 64 << 10 };
    char path[GP_PATH_SIZE], version[GP_TOOLKIT_VERSION];
    char *text = malloc(TEXT_MAX);
    toolkit->version = toolkit->source = toolkit->damage = "";
    for (size_t i = 0; text && i < GP_ARRAY_LEN(sources) && !toolkit->version[0]; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", toolkit->path, sources[i].file) >= GP_PATH_SIZE ||
            gp_files_read(&exam->files, path, text, TEXT_MAX) < 0)
            continue;
        if (sources[i].read(text, version)) {
            toolkit->version = keep(exam, version);
            toolkit->source = keep(exam, path);
        } else if (i == 0) {
            toolkit->damage = keep(exam, path);
        }
    }
    /* Debian's packages have the headers apart. */
    static const char header[] = "/usr/include/cuda.h";
    if (text && !toolkit->version[0] && strncmp(toolkit->path, "/usr/lib/", 9) == 0 &&
        gp_files_read(&exam->files, header, text, TEXT_MAX) > 0 &&
        gp_toolkit_read_header(text, version)) {
        toolkit->version = keep(exam, version);
        toolkit->source = header;
    }
    free(text);
    if (!toolkit->version[0] && gp_toolkit_read_name(toolkit->path, version)) {
        toolkit->version = keep(exam, version);
        toolkit->source = "the directory name";
    }
}

static bool has(struct gp_exam *exam, const char *folder, const char *file)
{
    char path[GP_PATH_SIZE];
    return snprintf(path, sizeof(path), "%s/%s", folder, file) < GP_PATH_SIZE &&
           gp_files_exist(&exam->files, path);
}

/* A directory that is not a toolkit, for example one with only forward-compatibility libraries, has
 * no compiler, headers or version. */
static struct gp_toolkit_found *add(struct gp_exam *exam, struct gp_toolkits *all, const char *path)
{
    char real[GP_PATH_SIZE];
    if (!gp_files_real(&exam->files, path, real))
        return NULL;
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->list[i].path, real) == 0)
            return &all->list[i];
    bool has_compiler = has(exam, real, "bin/nvcc");
    if (all->count == GP_TOOLKITS ||
        !(has_compiler || has(exam, real, "version.json") || has(exam, real, "version.txt") ||
          has(exam, real, "include/cuda_runtime.h")))
        return NULL;
    struct gp_toolkit_found *toolkit = &all->list[all->count++];
    *toolkit = (struct gp_toolkit_found){.path = keep(exam, real), .has_compiler = has_compiler};
    read_version(exam, toolkit);
    return toolkit;
}

enum {
    MOST_NAMES = 64
}; /* levels of subdirectories, so that links cannot cause endless recursion */

/* The subdirectories whose names have this prefix. */
static void add_all(struct gp_exam *exam, struct gp_toolkits *all, const char *folder,
                    const char *prefix, const char *below)
{
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    char **names;
    long n = gp_files_list(&exam->files, &scratch, folder, &names);
    for (long i = 0, seen = 0; i < n && seen < MOST_NAMES; i++)
        if (strncmp(names[i], prefix, strlen(prefix)) == 0 && ++seen &&
            snprintf(path, sizeof(path), "%s/%s%s", folder, names[i], below) < GP_PATH_SIZE)
            (void)add(exam, all, path);
    gp_arena_fini(&scratch);
}

/* NVIDIA's HPC SDK has toolkits in VERSION/cuda/VERSION. */
static void add_hpc(struct gp_exam *exam, struct gp_toolkits *all)
{
    const char *folder = gp_exam_text(exam, "/opt/nvidia/hpc_sdk/Linux_%s", exam->machine.arch);
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    char **names;
    long n = gp_files_list(&exam->files, &scratch, folder, &names);
    for (long i = 0, seen = 0; i < n && seen < MOST_NAMES; i++)
        if (isdigit((unsigned char)names[i][0]) && ++seen &&
            snprintf(path, sizeof(path), "%s/%s/cuda", folder, names[i]) < GP_PATH_SIZE)
            add_all(exam, all, path, "1", "");
    gp_arena_fini(&scratch);
}

/* nvcc in PATH, and which toolkit it is from. */
static void find_compiler(struct gp_exam *exam, struct gp_toolkits *all)
{
    const char *list = gp_machine_variable(&exam->machine, "PATH");
    char folder[GP_PATH_SIZE], path[GP_PATH_SIZE], real[GP_PATH_SIZE];
    int cuts = 0;
    all->nvcc = "";
    while (!all->nvcc[0] && gp_search_path_next(&list, ":", folder))
        if (folder[0] == '/' && snprintf(path, sizeof(path), "%s/nvcc", folder) < GP_PATH_SIZE &&
            gp_files_real(&exam->files, path, real))
            all->nvcc = keep(exam, path);
    if (!all->nvcc[0])
        return;
    for (char *slash; (slash = strrchr(real, '/')) && cuts < 2; cuts++)
        *slash = '\0';                                                     /* of …/bin/nvcc */
    const char *root = strcmp(real, "/usr") == 0 ? "/usr/lib/cuda" : real; /* Debian's package */
    struct gp_toolkit_found *toolkit = real[0] ? add(exam, all, root) : NULL;
    if (toolkit)
        toolkit->is_on_path = toolkit->has_compiler = true;
}

const struct gp_toolkits *gp_toolkits_of(struct gp_exam *exam)
{
    static const struct gp_toolkits none = {.nvcc = ""};
    static const char *const folders[] = {"/opt/cuda", "/usr/lib/cuda",
                                          "/usr/lib/nvidia-cuda-toolkit"};
    if (exam->toolkits)
        return exam->toolkits;
    struct gp_toolkits *all = gp_arena_alloc(&exam->arena, 1, sizeof(*all));
    if (all) {
        struct gp_toolkit_found *toolkit = add(exam, all, "/usr/local/cuda");
        if (toolkit)
            toolkit->is_default = true;
        add_all(exam, all, "/usr/local", "cuda-", "");
        for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
            (void)add(exam, all, folders[i]);
        add_hpc(exam, all);
        find_compiler(exam, all);
    }
    exam->toolkits = all ? all : &none;
    return exam->toolkits;
}

const struct gp_toolkit_found *gp_toolkit_used(const struct gp_toolkits *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].is_on_path)
            return &all->list[i];
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].is_default)
            return &all->list[i];
    return all->count == 1 ? &all->list[0] : NULL;
}

/* NVIDIA has repositories for the releases with long support, "ubuntu2404"; interim ones use that
 * of the one before, derivatives that of their base. */
static const char *repository_of_ubuntu(struct gp_exam *exam)
{
    static const struct {
        const char *codename, *name;
    } bases[] = {{"bionic", "ubuntu1804"},
                 {"focal", "ubuntu2004"},
                 {"jammy", "ubuntu2204"},
                 {"noble", "ubuntu2404"}};
    const struct gp_machine *m = &exam->machine;
    unsigned major = gp_version_major(m->distro_version);
    for (size_t i = 0; i < GP_ARRAY_LEN(bases); i++)
        if (strcmp(bases[i].codename, m->base_codename) == 0)
            return bases[i].name;
    return strcmp(m->distro_id, "ubuntu") == 0 ? gp_exam_text(exam, "ubuntu%u04", major - major % 2)
                                               : "";
}

const char *gp_toolkit_repository(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    unsigned major = gp_version_major(m->distro_version);
    switch (m->distro) {
    case GP_DISTRO_DEBIAN:
        return major > 0 ? gp_exam_text(exam, "debian%u", major) : "";
    case GP_DISTRO_UBUNTU:
        return repository_of_ubuntu(exam);
    case GP_DISTRO_FEDORA:
        return gp_exam_text(exam, "fedora%u", major);
    case GP_DISTRO_RHEL:
        return gp_exam_text(exam, "rhel%u", major);
    case GP_DISTRO_SUSE:
        return "opensuse15";
    default:
        return "";
    }
}
