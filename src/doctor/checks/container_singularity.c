/* Singularity's option --nv: it asks the first ldconfig in PATH which libraries of the driver this
 * system has. One of another userland, such as Nix, Guix or Gentoo's Prefix, does not know them. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/lines.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

/* ---- the program ---- */

static const char *const programs[] = {"/usr/bin/singularity", "/usr/local/bin/singularity", NULL};

/* Versions from this one on use the system's ldconfig, too: hpcng/singularity#5671. */
static const char mended[] = "3.7";

/* By its package, or by a setting that newer versions have in their file. */
static bool is_mended(struct gp_exam *exam)
{
    static const char *const packages[] = {"singularity-container", "singularity",
                                           "singularity-ce"};
    static const char *const settings[] = {"/etc/singularity/singularity.conf",
                                           "/usr/local/etc/singularity/singularity.conf"};
    for (size_t i = 0; i < GP_ARRAY_LEN(packages); i++) {
        const char *version = gp_container_engine_version(exam, packages[i]);
        if (version[0])
            return gp_version_compare(version, mended) >= 0;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(settings); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, settings[i], 1 << 16, NULL);
        if (text && strstr(text, "ldconfig path"))
            return true;
    }
    return false;
}

/* ---- ldconfig ---- */

static const char *system_ldconfig(const struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/sbin/ldconfig", "/sbin/ldconfig", "/usr/bin/ldconfig",
                                        NULL};
    return gp_files_first(&exam->files, paths);
}

static bool is_same(const struct gp_exam *exam, const char *a, const char *b)
{
    char real_a[GP_PATH_SIZE], real_b[GP_PATH_SIZE];
    return gp_files_real(&exam->files, a, real_a) && gp_files_real(&exam->files, b, real_b) &&
           strcmp(real_a, real_b) == 0;
}

/* The first in PATH, if it is not the system's own; NULL: it is, or there is none. */
static const char *foreign_ldconfig(struct gp_exam *exam, const char *own)
{
    const char *path = gp_search_path_program(exam, "ldconfig");
    return path && !is_same(exam, path, own) ? path : NULL;
}

/* ---- what it has printed ---- */

static bool is_log(const char *name)
{
    static const char *const ends[] = {".out", ".err", ".log", ".txt"};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < GP_ARRAY_LEN(ends); i++)
        if (strcmp(end, ends[i]) == 0)
            return true;
    return false;
}

/* The warning in the output of a job in this directory, and its file; NULL: there is none. */
static const char *printed_in(struct gp_exam *exam, const char *folder, const char **ret_path)
{
    enum { FILES = 64, MOST = 1 << 16 };
    char **names;
    size_t length = 0, n, looked = 0;
    long count = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < count && looked < FILES; i++) {
        if (!is_log(names[i]))
            continue;
        looked++;
        *ret_path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_tail(&exam->files, &exam->arena, *ret_path, MOST, &length);
        const char *line;
        struct gp_lines lines = gp_lines_of(text, text ? length : 0);
        while (gp_lines_next(&lines, &line, &n))
            if (memmem(line, n, " bind points: ", 14) && memmem(line, n, "ldconfig", 8))
                return gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
    }
    return NULL;
}

static const char *printed(struct gp_exam *exam, const char **ret_path)
{
    static const char *const names[] = {"PWD", "HOME"};
    const char *found = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !found; i++) {
        const char *folder = gp_machine_variable(&exam->machine, names[i]);
        if (folder && folder[0] == '/')
            found = printed_in(exam, folder, ret_path);
    }
    return found;
}

/* ---- the check ---- */

bool gp_container_has_singularity(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->nvidia_count + m->amd_count > 0 && !m->container &&
           gp_files_first(&exam->files, programs) &&
           !gp_files_exist(&exam->files, "/usr/bin/apptainer") &&
           !gp_files_exist(&exam->files, "/usr/local/bin/apptainer") && system_ldconfig(exam);
}

/* Without a printed warning nobody need use the option with this PATH. */
void gp_container_check_singularity(struct gp_exam *exam)
{
    const char *own = system_ldconfig(exam), *path = NULL;
    const char *foreign = is_mended(exam) ? NULL : foreign_ldconfig(exam, own);
    const char *line = foreign ? printed(exam, &path) : NULL;
    const char *option = exam->machine.nvidia_count > 0 ? "--nv" : "--rocm";
    if (!foreign)
        return;
    gp_exam_report(exam, line ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Singularity's %s does not find the driver's libraries: the first ldconfig in "
                   "PATH is not the system's",
                   option);
    if (line)
        gp_exam_evidence(exam, path, "%s", line);
    gp_exam_evidence(exam, foreign, "before %s in PATH", own);
    gp_exam_why(exam,
                "Singularity before %s asks the first ldconfig in PATH for the libraries. "
                "That of another userland fails, or knows only its own: programs in the "
                "container then find no GPU.",
                mended);
    gp_exam_command(exam, "let it find the system's", "PATH=%.*s:$PATH singularity exec %s …",
                    (int)(strrchr(own, '/') - own), own, option);
    gp_exam_advice(exam, "or take that directory out of PATH, or update Singularity to %s or newer",
                   mended);
}
