/* Wheels and programs with a copy of the driver's own libraries in them. Tools that complete a
 * wheel, such as auditwheel and repairwheel, copy every library that it is linked with into
 * NAME.libs, under a new name: also libcuda, of which a process must have only the driver's own. */
#include "doctor/checks/driver.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

static const char suffix[] = ".libs", cuda[] = "libcuda", nvml[] = "libnvidia-ml";

/* Packages whose build completes the wheel, and the variables that leave this out. */
static const struct {
    const char *name, *variables, *source;
} builds[] = {
    {"pywhispercpp", "NO_REPAIR=1 GGML_CUDA=1", "git+https://github.com/absadiki/pywhispercpp"},
};

struct copy {
    const char *name;    /* of the package: "pywhispercpp" */
    const char *folder;  /* "/home/ada/venv/lib/python3.10/site-packages/pywhispercpp.libs" */
    const char *file;    /* "libcuda-8a7c1e52.so.560.35.05" */
    const char *version; /* "560.35.05"; "": the file's name does not say */
    const char *user;    /* a library that is linked with it; NULL: none was found */
    bool is_other;       /* not of the loaded module's version */
};

/* Whether a file is this library, also under the name that such a tool gives it. */
static bool is_of(const char *file, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(file, stem, n) == 0 && (file[n] == '-' || strncmp(file + n, ".so", 3) == 0) &&
           strstr(file, ".so");
}

static bool is_renamed(const char *file, const char *stem)
{
    return file[strlen(stem)] == '-';
}

/* Whether a library looks for others beside itself: PyInstaller's program has all of its folder do
 * so. */
static bool looks_here(const char *folder, const struct gp_elf *elf)
{
    return strstr(folder, "/_internal") || strstr(gp_elf_run_path(elf), "$ORIGIN");
}

/* The first library of a folder that is linked with a file. The name that the driver's own has too
 * leads to the file only where libraries are sought beside it. */
static const char *user_in(struct gp_exam *exam, const char *folder, const char *file,
                           bool is_own_name)
{
    enum { FILES = 64 };
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0, read = 0; i < n && read < FILES; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        struct gp_elf elf;
        size_t from = 0;
        if (!strstr(names[i], ".so") || strcmp(names[i], file) == 0)
            continue;
        read++;
        if (!gp_elf_read_libraries(&elf, &exam->files, &exam->arena, path) ||
            (is_own_name && !looks_here(folder, &elf)))
            continue;
        for (const char *needed; (needed = gp_elf_needed(&elf, &from));)
            if (strcmp(needed, file) == 0)
                return path;
    }
    return NULL;
}

/* Whether the file is still a copy: a link to the driver's own is as good as none. `real`: what it
 * leads to. */
static bool is_copied(struct gp_exam *exam, const char *folder, const char *file,
                      char real[GP_PATH_SIZE])
{
    char top[GP_PATH_SIZE];
    return gp_files_real(&exam->files, folder, top) &&
           gp_files_real(&exam->files, gp_exam_text(exam, "%s/%s", folder, file), real) &&
           strncmp(real, top, strlen(top)) == 0 && real[strlen(top)] == '/';
}

/* Whether a copy does harm: under another name it is a second libcuda in the process, whatever its
 * version. Under its own, a newer one may be for forward compatibility. libnvidia-ml has nothing
 * that must be started only once. */
static bool is_harmful(struct gp_exam *exam, const struct copy *copy, const char *stem)
{
    if (stem != cuda)
        return copy->is_other;
    return is_renamed(copy->file, stem) ||
           (copy->is_other && gp_version_compare(copy->version, exam->machine.driver) < 0);
}

/* `env`: the wheel's; NULL: a program's folder. */
static const char *user_of(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct copy *copy, const char *stem)
{
    bool is_own_name = !is_renamed(copy->file, stem);
    const char *user = user_in(exam, copy->folder, copy->file, is_own_name);
    if (!user && env)
        user = user_in(exam, gp_exam_text(exam, "%s/%s", env->site, copy->name), copy->file,
                       is_own_name);
    return user || !env ? user : user_in(exam, env->site, copy->file, is_own_name);
}

/* Likewise. The version is that of the file which a name such as "libcuda.so.1" leads to; of
 * several names, the one that is used counts. */
static bool find_copy(struct gp_exam *exam, const struct gp_pyenv *env, struct copy *copy,
                      const char *stem)
{
    const char *driver = exam->machine.driver;
    char **names, real[GP_PATH_SIZE];
    bool is_found = false;
    long n = gp_files_list(&exam->files, &exam->arena, copy->folder, &names);
    for (long i = 0; i < n; i++) {
        if (!is_of(names[i], stem) || !is_copied(exam, copy->folder, names[i], real))
            continue;
        struct copy now = *copy;
        const char *version = gp_library_version(strrchr(real, '/') + 1);
        now.file = names[i];
        now.version = gp_version_major(version) >= 100 ? gp_exam_text(exam, "%s", version) : "";
        now.is_other = now.version[0] && driver[0] && !gp_install_same(now.version, driver);
        if (!is_harmful(exam, &now, stem))
            continue;
        now.user = user_of(exam, env, &now, stem);
        if (now.user || !is_found)
            *copy = now;
        if (now.user)
            return true;
        is_found = true;
    }
    return is_found;
}

/* The tool that made the wheel, "repairwheel 0.3.2", with its file; "": unknown. */
static const char *tool_of(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                           const char **ret_file)
{
    static const char key[] = "Generator: ", end[] = ".dist-info";
    size_t length = strlen(name);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, env->site, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], name, length) != 0 || names[i][length] != '-' ||
            !strstr(names[i], end))
            continue;
        *ret_file = gp_exam_text(exam, "%s/WHEEL", names[i]);
        const char *at = strstr(gp_pyenv_text(exam, env, *ret_file), key);
        at = at ? at + strlen(key) : "";
        return gp_exam_text(exam, "%.*s", (int)strcspn(at, "\n"), at);
    }
    return "";
}

/* The driver's own library, as the loader finds it; NULL: it is not installed. */
static const char *own_of(struct gp_exam *exam, const char *stem)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->library_count; i++)
        if (is_of(in->libraries[i].name, stem))
            return in->libraries[i].path;
    return NULL;
}

static void fix(struct gp_exam *exam, const struct gp_pyenv *env, const struct copy *copy,
                const char *stem)
{
    const char *own = own_of(exam, stem);
    bool is_built = false, is_of_root = strncmp(copy->folder, "/usr/", 5) == 0 ||
                                        strncmp(copy->folder, "/opt/", 5) == 0;
    for (size_t i = 0; env && i < GP_ARRAY_LEN(builds); i++) {
        if (strcmp(builds[i].name, copy->name) != 0)
            continue;
        is_built = true;
        gp_exam_command(exam, "build it again, without copies", "export %s", builds[i].variables);
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "",
                    gp_exam_text(exam, "--no-deps --no-cache-dir %s", builds[i].source));
    }
    if (own && is_built)
        gp_exam_advice(exam, "or, without building it:");
    if (own)
        gp_exam_command(
            exam, "have it use the driver's own, in place of the copy", "%sln -sf %s %s",
            is_of_root && !exam->machine.container ? "sudo " : "", gp_exam_quoted(exam, own),
            gp_exam_quoted(exam, gp_exam_text(exam, "%s/%s", copy->folder, copy->file)));
    gp_exam_advice(exam,
                   env ? "where the wheel is built: auditwheel repair --exclude %s.so.1, or leave "
                         "the repair out"
                       : "where the program is packed: leave out %s, which only the driver brings",
                   stem);
}

static void explain(struct gp_exam *exam, const struct copy *copy, const char *stem)
{
    const char *path = gp_exam_text(exam, "%s/%s", copy->folder, copy->file);
    if (copy->is_other)
        gp_exam_evidence(exam, path, "of driver %s, but the loaded one is %s", copy->version,
                         exam->machine.driver);
    else
        gp_exam_evidence(exam, path, "a file of its own");
    if (copy->user)
        gp_exam_evidence(exam, copy->user, "is linked with %s", copy->file);
    if (stem != cuda)
        gp_exam_why(exam, "It does not match the loaded module: \"Driver/library version "
                          "mismatch\".");
    else if (!is_renamed(copy->file, stem))
        gp_exam_why(exam, "It does not match the loaded module: CUDA finds no device, or reports "
                          "error 803 or 804.");
    else
        gp_exam_why(exam, "The CUDA runtime starts the driver's own libcuda; calls of these "
                          "libraries go to the copy, which is not started: \"CUDA error: "
                          "initialization error\".");
}

static const char use[] = ", and uses it instead of the driver's own";

static void report(struct gp_exam *exam, const struct gp_pyenv *env, const struct copy *copy,
                   const char *stem)
{
    const char *file = "", *tool = tool_of(exam, env, copy->name, &file);
    gp_exam_report(exam, copy->user ? gp_pyenv_verdict(env, false) : GP_VERDICT_INFO,
                   "%s in %s has a copy of the driver's %s%s", copy->name, env->prefix, stem,
                   copy->user ? use : "");
    explain(exam, copy, stem);
    if (tool[0])
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, file), "made by %s", tool);
    fix(exam, env, copy, stem);
}

/* The folder of a program, and those where packers put its libraries: PyInstaller, and others. */
static bool check_program(struct gp_exam *exam, const char *folder)
{
    static const char *const parts[] = {"", "/_internal", "/lib", "/libs", "/../lib"};
    static const char *const stems[] = {cuda, nvml};
    for (size_t i = 0; i < GP_ARRAY_LEN(parts) * GP_ARRAY_LEN(stems); i++) {
        const char *stem = stems[i % GP_ARRAY_LEN(stems)];
        struct copy copy = {
            .name = "",
            .folder = gp_exam_text(exam, "%s%s", folder, parts[i / GP_ARRAY_LEN(stems)]),
        };
        if (!find_copy(exam, NULL, &copy, stem) || !copy.user)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "the program in %s has a copy of the driver's %s%s",
                       folder, stem, use);
        explain(exam, &copy, stem);
        fix(exam, NULL, &copy, stem);
        return true;
    }
    return false;
}

void gp_driver_check_own_copies(struct gp_exam *exam)
{
    const char *here = gp_machine_variable(&exam->machine, "PWD");
    const char *path = gp_machine_variable(&exam->machine, "PATH");
    const char *conda = gp_machine_variable(&exam->machine, "CONDA_PREFIX");
    const char *list = gp_exam_text(exam, "%s:%s", here ? here : "", path ? path : "");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder)) {
        /* The system's own, and conda's, are looked at by others. */
        bool is_of_system = folder[0] != '/' || !folder[1] || strcmp(folder, "/bin") == 0 ||
                            strcmp(folder, "/sbin") == 0 ||
                            (strncmp(folder, "/usr/", 5) == 0 && !strstr(folder, "/local/"));
        if (is_of_system || strcmp(folder, "/usr/local/bin") == 0 ||
            strcmp(folder, "/usr/local/sbin") == 0 ||
            (conda && strncmp(folder, conda, strlen(conda)) == 0))
            continue;
        if (check_program(exam, folder))
            return;
    }
}

void gp_check_own_libcuda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    char **names;
    long n = exam->machine.nvidia_count > 0
                 ? gp_files_list(&exam->files, &exam->arena, env->site, &names)
                 : 0;
    for (long i = 0; i < n; i++) {
        size_t length = strlen(names[i]), end = sizeof(suffix) - 1;
        if (length <= end || strcmp(names[i] + length - end, suffix) != 0)
            continue;
        struct copy copy = {
            .name = gp_exam_text(exam, "%.*s", (int)(length - end), names[i]),
            .folder = gp_exam_text(exam, "%s/%s", env->site, names[i]),
        };
        if (find_copy(exam, env, &copy, cuda))
            report(exam, env, &copy, cuda);
        else if (find_copy(exam, env, &copy, nvml) && copy.user)
            report(exam, env, &copy, nvml);
    }
}
