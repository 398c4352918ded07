/* Programs beside which the libraries of CUDA, cuDNN or TensorRT are installed, in a directory that
 * nothing searches: a part of cuda.toolkits. */
#include "doctor/checks/cuda.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

enum { PROGRAMS_MAX = 200 };

struct user {
    const char *path;    /* the program, or the file that says what it opens */
    const char *library; /* "libcublas.so.8.0" */
    const char *folder;  /* where that is */
};

/* Where it is, if neither the loader, in this environment, nor the user's shells come there; NULL.
 */
static const char *unsearched(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    static const struct gp_pyenv system = {.prefix = "/usr"};
    const char *folder = gp_library_folder(exam, name);
    folder = folder ? folder : gp_library_unpacked(exam, name);
    return folder && gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)) &&
                   !gp_library_is_loadable(exam, env ? env : &system, name) &&
                   !gp_assignments_reach(exam, "LD_LIBRARY_PATH", name, folder)
               ? folder
               : NULL;
}

static bool is_of_tensorrt(const char *name)
{
    static const char *const starts[] = {"libnvinfer", "libnvonnxparser", "libnvparsers", NULL};
    return gp_lines_starts_any(name, starts);
}

/* ---- programs that are linked with them ---- */

static bool is_of_toolkit(const char *name)
{
    static const char *const starts[] = {"libcudart.so.", "libcublas",   "libcufft",
                                         "libcurand.so.", "libcusolver", "libcusparse",
                                         "libnvrtc.",     "libcudnn",    NULL};
    return gp_lines_starts_any(name, starts) || is_of_tensorrt(name);
}

/* Whether it finds a library in the directories that it names itself, or is part of an archive
 * with it, which has a script to start it. */
static bool finds(struct gp_exam *exam, const struct gp_elf *elf, const char *folder,
                  const char *name)
{
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/lib/%s", folder, name)) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/../lib/%s", folder, name)) ||
           gp_run_path_has(exam, elf, folder, name);
}

static bool judge_program(struct gp_exam *exam, const char *folder, const char *path,
                          struct user *ret)
{
    struct gp_elf elf;
    struct stat st;
    const char *name;
    size_t from = 0;
    if (gp_files_stat(&exam->files, path, &st) != 0 || !S_ISREG(st.st_mode) ||
        !(st.st_mode & 0111) || !gp_elf_read_libraries(&elf, &exam->files, &exam->arena, path))
        return false;
    while ((name = gp_elf_needed(&elf, &from))) {
        const char *found = is_of_toolkit(name) ? unsearched(exam, NULL, name) : NULL;
        if (!found || finds(exam, &elf, folder, name))
            continue;
        *ret = (struct user){path, name, found};
        return true;
    }
    return false;
}

/* A program in the working directory, or where builds put them below it. With environment modules
 * the one that it needs may be loaded only where it runs. */
static bool find_program(struct gp_exam *exam, struct user *ret)
{
    static const char *const parts[] = {"", "/bin", "/build", "/build/bin"};
    const char *here = gp_machine_variable(&exam->machine, "PWD");
    if (gp_machine_variable(&exam->machine, "MODULEPATH"))
        return false;
    for (size_t i = 0; here && here[0] == '/' && here[1] && i < GP_ARRAY_LEN(parts); i++) {
        const char *folder = gp_exam_text(exam, "%s%s", here, parts[i]);
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < n && k < PROGRAMS_MAX; k++)
            if (judge_program(exam, folder, gp_exam_text(exam, "%s/%s", folder, names[k]), ret))
                return true;
    }
    return false;
}

/* ---- TensorFlow, built from source ---- */

/* Until 0.11 its configuration was in this file of the tree, and its programs open the libraries
 * when they run. */
static bool judge_tree(struct gp_exam *exam, const char *top, struct user *ret)
{
    static const char key[] = "\nTF_CUDA_VERSION=";
    const char *path = gp_exam_text(exam, "%s/third_party/gpus/cuda/cuda.config", top);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    char target[GP_PATH_SIZE];
    if (!found || !gp_files_link(&exam->files, gp_exam_text(exam, "%s/bazel-bin", top), target))
        return false;
    found += sizeof(key) - 1;
    found += *found == '"';
    const char *version = gp_exam_text(exam, "%.*s", (int)strspn(found, "0123456789."), found);
    const char *library = gp_exam_text(exam, "libcublas.so.%s", version);
    const char *folder = strchr(version, '.') ? unsearched(exam, NULL, library) : NULL;
    *ret = (struct user){path, library, folder};
    return folder != NULL;
}

static bool find_tree(struct gp_exam *exam, struct user *ret)
{
    const char *here = gp_machine_variable(&exam->machine, "PWD");
    const struct gp_homes *homes = gp_homes_of(exam);
    if (here && here[0] == '/' && judge_tree(exam, here, ret))
        return true;
    for (size_t i = 0; i < homes->count; i++)
        if (judge_tree(exam, gp_exam_text(exam, "%s/tensorflow", homes->list[i]), ret))
            return true;
    return false;
}

/* ---- Python's module of TensorRT ---- */

/* Whether the environment brings it: in the packages of PyPI, or by a script that sets the variable
 * when the environment is activated. */
static bool brings(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *script =
        gp_files_text(&exam->files, &exam->arena,
                      gp_exam_text(exam, "%s/bin/activate", env->prefix), 1 << 16, NULL);
    const char *hooks = gp_exam_text(exam, "%s/etc/conda/activate.d", env->prefix);
    char **names;
    if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/tensorrt_libs/%s", env->site, name)) ||
        (script && strstr(script, "LD_LIBRARY_PATH")))
        return true;
    long n = gp_files_list(&exam->files, &exam->arena, hooks, &names);
    for (long i = 0; i < n; i++) {
        script = gp_files_text(&exam->files, &exam->arena,
                               gp_exam_text(exam, "%s/%s", hooks, names[i]), 1 << 16, NULL);
        if (script && strstr(script, "LD_LIBRARY_PATH"))
            return true;
    }
    return false;
}

/* Whether something else than the shell leads its programs to it: a script of the project, or a
 * service. */
static bool is_led(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    enum { MOST = 32 };
    static const char variable[] = "LD_LIBRARY_PATH";
    static const char *const words[] = {variable, NULL};
    struct gp_service_setting found[MOST];
    char folder[GP_PATH_SIZE];
    size_t n = gp_service_settings(exam, variable, found, MOST);
    for (size_t i = 0; i < n; i++)
        for (const char *list = found[i].value; gp_search_path_next(&list, ":", folder);)
            if (folder[0] == '/' &&
                gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)))
                return true;
    return gp_project_script(exam, env, words, false);
}

/* The wheel in NVIDIA's archive of TensorRT has the module only, and not the libraries. */
static bool judge_module(struct gp_exam *exam, const struct gp_pyenv *env, const char *top,
                         struct user *ret)
{
    const char *folder = gp_exam_text(exam, "%s/%s", env->site, top), *name;
    const char *path = gp_exam_text(exam, "%s/%s.so", folder, top);
    struct gp_elf elf;
    size_t from = 0;
    if (!gp_files_exist(&exam->files, path) ||
        !gp_elf_read_libraries(&elf, &exam->files, &exam->arena, path))
        return false;
    while ((name = gp_elf_needed(&elf, &from))) {
        const char *found = is_of_tensorrt(name) ? unsearched(exam, env, name) : NULL;
        if (!found || finds(exam, &elf, folder, name) || brings(exam, env, name) ||
            gp_homes_separate(exam, found, env->prefix))
            continue;
        if (is_led(exam, env, name))
            return false;
        *ret = (struct user){path, name, found};
        return true;
    }
    return false;
}

static const struct gp_pyenv *find_module(struct gp_exam *exam, struct user *ret)
{
    static const char *const tops[] = {"tensorrt", "tensorrt_lean", "tensorrt_dispatch"};
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    if (gp_machine_variable(&exam->machine, "MODULEPATH"))
        return NULL;
    for (size_t i = 0; i < envs->count * GP_ARRAY_LEN(tops); i++) {
        const struct gp_pyenv *env = &envs->list[i / GP_ARRAY_LEN(tops)];
        if (judge_module(exam, env, tops[i % GP_ARRAY_LEN(tops)], ret))
            return env;
    }
    return NULL;
}

/* ---- all ---- */

void gp_check_cuda_unsearched(struct gp_exam *exam)
{
    struct user user;
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    bool is_program = find_program(exam, &user);
    const struct gp_pyenv *env = is_program ? NULL : find_module(exam, &user);
    if (!is_program && !env && !find_tree(exam, &user))
        return;
    /* That a module lies there does not say that it is used, nor from where. */
    const char *program = env ? gp_project_program_with(exam, env, "import tensorrt", true) : NULL;
    gp_exam_report(exam,
                   is_program        ? GP_VERDICT_FAIL
                   : env && !program ? GP_VERDICT_INFO
                                     : GP_VERDICT_WARN,
                   "%s libraries in %s are not found: neither LD_LIBRARY_PATH nor the loader's "
                   "cache leads to them",
                   is_of_tensorrt(user.library)         ? "TensorRT's"
                   : gp_cudnn_of_name(user.library) > 0 ? "cuDNN's"
                                                        : "CUDA's",
                   user.folder);
    gp_exam_evidence(exam, user.path, "needs %s", user.library);
    if (program)
        gp_exam_evidence(exam, program, "imports it");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", user.folder, user.library), "present");
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s", list && *list ? list : "not set");
    gp_exam_evidence(exam, "/etc/ld.so.cache", "does not have it");
    gp_exam_why(exam,
                is_program || env ? "\"%s: cannot open shared object file\"."
                                  : "TensorFlow's programs open it when they run: \"Couldn't open "
                                    "CUDA library %s\".",
                user.library);
    gp_exam_command(exam, "also in the shell's startup file",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, user.folder));
    gp_exam_advice(exam,
                   "or for all users: name %s in a file of /etc/ld.so.conf.d, and call sudo "
                   "ldconfig",
                   user.folder);
}
