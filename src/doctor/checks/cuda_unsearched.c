/* Programs beside which CUDA's libraries are installed, in a directory that nothing searches: a
 * part of cuda.toolkits. */
#include "doctor/checks/cuda.h"

#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

enum { PROGRAMS_MAX = 200 };

struct user {
    const char *path;    /* the program, or the file that says what it opens */
    const char *library; /* "libcublas.so.8.0" */
    const char *folder;  /* where that is */
};

/* Where it is, if neither the loader nor the user's shells come there; NULL. */
static const char *unsearched(struct gp_exam *exam, const char *name)
{
    static const struct gp_pyenv system = {.prefix = "/usr"};
    const char *folder = gp_library_folder(exam, name);
    return folder && !gp_library_is_loadable(exam, &system, name) &&
                   !gp_assignments_reach(exam, "LD_LIBRARY_PATH", name, folder)
               ? folder
               : NULL;
}

/* ---- programs that are linked with them ---- */

static bool is_of_toolkit(const char *name)
{
    static const char *const starts[] = {"libcudart.so.", "libcublas",   "libcufft",
                                         "libcurand.so.", "libcusolver", "libcusparse",
                                         "libnvrtc.",     "libcudnn"};
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
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
        const char *found = is_of_toolkit(name) ? unsearched(exam, name) : NULL;
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
    const char *folder = strchr(version, '.') ? unsearched(exam, library) : NULL;
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

/* ---- both ---- */

void gp_check_cuda_unsearched(struct gp_exam *exam)
{
    struct user user;
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    bool is_program = find_program(exam, &user);
    if (!is_program && !find_tree(exam, &user))
        return;
    gp_exam_report(exam, is_program ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "CUDA's libraries in %s are not found: neither LD_LIBRARY_PATH nor the loader's "
                   "cache leads to them",
                   user.folder);
    gp_exam_evidence(exam, user.path, "needs %s", user.library);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", user.folder, user.library), "present");
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s", list && *list ? list : "not set");
    gp_exam_evidence(exam, "/etc/ld.so.cache", "does not have it");
    gp_exam_why(exam,
                is_program ? "\"%s: cannot open shared object file\"."
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
