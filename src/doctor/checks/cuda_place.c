/* Where CUDA is looked for, and is not: findings of cuda.toolkits. */
#include "doctor/checks/cuda.h"

#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

static const char standard[] = "/usr/local/cuda";

/* The newest toolkit with a compiler among NVIDIA's packages, which others' do without; NULL: there
 * is none. */
static const struct gp_toolkit_found *newest(const struct gp_toolkits *all)
{
    const struct gp_toolkit_found *best = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].has_compiler && strncmp(all->list[i].path, "/usr/local/", 11) == 0 &&
            (!best || gp_version_compare(all->list[i].version, best->version) > 0))
            best = &all->list[i];
    return best;
}

/* The link to the toolkit that builds use was left when that one was removed. */
static bool report_lost_link(struct gp_exam *exam, const struct gp_toolkit_found *best)
{
    struct stat st;
    char target[GP_PATH_SIZE], next[GP_PATH_SIZE];
    if (!gp_files_link(&exam->files, standard, target) ||
        gp_files_stat(&exam->files, standard, &st) != -ENOENT)
        return false;
    gp_exam_report(exam, gp_cuda_build_verdict(exam), "%s leads to a CUDA toolkit that is gone",
                   standard);
    gp_exam_evidence(exam, standard, "links to %s", target);
    if (gp_files_link(&exam->files, target, next))
        gp_exam_evidence(exam, target, "links to %s, which does not exist", next);
    gp_exam_evidence(exam, best->source, "CUDA %s (%s)", best->version, best->path);
    gp_exam_why(exam, "Builds look for nvcc, headers and libraries there: \"nvcc: command not "
                      "found\", or \"CUDA_HOME does not exist\".");
    gp_exam_command(exam, "let it lead to the one that is installed", "sudo ln -sfn %s %s",
                    gp_exam_quoted(exam, best->path), standard);
    return true;
}

/* The first directory of a list that should have nvcc, and does not exist; "": none. */
static const char *lost_folder(struct gp_exam *exam, const char *list)
{
    char part[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":", part)) {
        part[strcspn(part, "$")] = '\0'; /* "/usr/local/cuda-12.4/bin${PATH:+:${PATH}}" */
        const char *end = strrchr(part, '/');
        if (strncmp(part, standard, sizeof(standard) - 1) == 0 && end && strcmp(end, "/bin") == 0 &&
            !gp_files_exist(&exam->files, part))
            return gp_exam_text(exam, "%s", part);
    }
    return "";
}

static bool report_lost_path(struct gp_exam *exam, const struct gp_toolkit_found *best)
{
    const char *place = "PATH";
    const char *lost = lost_folder(exam, gp_machine_variable(&exam->machine, "PATH"));
    if (!lost[0])
        lost = lost_folder(exam, gp_assignment_last(exam, "PATH", &place));
    if (!lost[0])
        return false;
    gp_exam_report(exam, gp_cuda_build_verdict(exam), "PATH names a CUDA toolkit that is gone, %s",
                   lost);
    gp_exam_evidence(exam, place, "%s", lost);
    gp_exam_evidence(exam, best->source, "CUDA %s (%s)", best->version, best->path);
    gp_exam_why(exam, "The shell finds no nvcc there, and not that of the installed toolkit.");
    gp_exam_command(exam, "for this shell; also correct the line that sets it, often in ~/.bashrc",
                    "export PATH=%s/bin:$PATH", gp_exam_quoted(exam, best->path));
    return true;
}

/* ---- WSL ---- */

/* The compiler of Windows in PATH, which WSL adds to its own; "": none. */
static const char *windows_compiler(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, "PATH");
    char part[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":", part)) {
        const char *path = gp_exam_text(exam, "%s/nvcc.exe", part);
        if (strncmp(part, "/mnt/", 5) == 0 && gp_files_exist(&exam->files, path))
            return path;
    }
    return "";
}

/* CMake looks for both names of the compiler in PATH before it looks in the toolkit's directory,
 * and takes that of Windows, whose libraries Linux's programs cannot use. */
static void report_windows(struct gp_exam *exam, const struct gp_toolkit_found *best)
{
    static const char *const variables[] = {"CUDACXX", "CUDAToolkit_ROOT", "CUDA_PATH",
                                            "CUDA_HOME"};
    const char *found = exam->machine.is_wsl ? windows_compiler(exam) : "";
    const char *path = gp_exam_quoted(exam, best->path);
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(&exam->machine, variables[i]))
            return;
    if (!found[0] || gp_assignments_reach(exam, "PATH", "nvcc", true))
        return;
    bool has_cmake = gp_files_exist(&exam->files, "/usr/bin/cmake");
    gp_exam_report(exam, has_cmake ? gp_cuda_build_verdict(exam) : GP_VERDICT_INFO,
                   "builds find the CUDA compiler of Windows, not that of %s", best->path);
    gp_exam_evidence(exam, "PATH", "no nvcc, but %s", found);
    gp_exam_evidence(exam, best->source, "CUDA %s (%s)", best->version, best->path);
    gp_exam_why(exam,
                "WSL adds the directories of Windows to PATH. CMake takes nvcc.exe from there, "
                "and finds no CUDA for Linux next to it: the program is built without it.");
    gp_exam_can_wait(exam);
    gp_exam_command(exam, "for this shell; also in ~/.bashrc", "export PATH=%s/bin:$PATH", path);
    gp_exam_advice(exam,
                   "then build in a new directory: CMakeCache.txt keeps the compiler that was "
                   "found");
    gp_exam_advice(exam,
                   "or keep the directories of Windows out of PATH: appendWindowsPath = false "
                   "below [interop] in /etc/wsl.conf, then, in Windows, wsl --shutdown");
}

void gp_check_cuda_place(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const struct gp_toolkit_found *best = newest(all);
    if (!best || report_lost_link(exam, best) || all->nvcc[0])
        return;
    if (!report_lost_path(exam, best))
        report_windows(exam, best);
}
