/* DCGM: whether its diagnostics have tests for the CUDA of the driver. */
#include "doctor/checks/system.h"

#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

enum { LAST_CUDA_OF_3 = 12 }; /* no release of DCGM 3 has tests for a newer one */
enum { LOGS_MAX = 16 };       /* that are read of a directory */

static const char package_3[] = "datacenter-gpu-manager";

/* ---- what is installed ---- */

static const struct gp_package *package_of(struct gp_exam *exam, const char *name)
{
    return gp_packages_installed(&exam->files, &exam->arena, name);
}

static const char *name_of_4(struct gp_exam *exam, unsigned major)
{
    return gp_exam_text(exam, "%s-4-cuda%u", package_3, major);
}

/* DCGM 4 has its tests in a package for each CUDA, and one for all: the first one of them that is
 * installed; NULL: none is. */
static const struct gp_package *tests_of_4(struct gp_exam *exam)
{
    static const char *const parts[] = {"-all", "13", "12", "11"};
    const struct gp_package *package = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(parts) && !package; i++)
        package = package_of(exam, gp_exam_text(exam, "%s-4-cuda%s", package_3, parts[i]));
    return package;
}

static const char *library_3(struct gp_exam *exam)
{
    return gp_system_library(exam, "", "libdcgm.so.3");
}

bool gp_dcgm_is_there(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && !exam->machine.container && exam->machine.driver[0] &&
           (library_3(exam) || tests_of_4(exam));
}

/* ---- what the logs say ---- */

/* The refusal in a log of this directory; NULL: there is none. With a log for each job there may be
 * thousands, which mostly begin with its number: those of services stand behind them. */
static const char *refusal_in(struct gp_exam *exam, const char *folder, const char *words,
                              const char **ret_path)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    int left = LOGS_MAX;
    for (long i = n - 1; i >= 0 && left > 0; i--) {
        const char *end = strrchr(names[i], '.');
        if (!end || strcmp(end, ".log") != 0)
            continue;
        size_t length = 0;
        left--;
        *ret_path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_tail(&exam->files, &exam->arena, *ret_path, 1 << 18, &length);
        const char *found = text ? strstr(text, words) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* The lines by which the diagnostics refuse this CUDA, in the logs of DCGM and of Slurm's scripts,
 * which run them before and after jobs: returns their number, at most `most`. */
static size_t find_refusals(struct gp_exam *exam, const char *cuda, struct gp_evidence *ret,
                            size_t most)
{
    static const char *const folders[] = {"/var/log/nvidia-dcgm", "/var/log/slurm"};
    const char *words = gp_exam_text(exam, "Detected unsupported Cuda version: %s", cuda);
    size_t count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && count < most; i++) {
        const char *path, *found = refusal_in(exam, folders[i], words, &path);
        if (found)
            ret[count++] = (struct gp_evidence){.where = path, .text = words};
    }
    const struct gp_log_known *known = gp_log_known_of(exam, "dcgm.cuda");
    if (known && count < most && strstr(known->text, words))
        ret[count++] = (struct gp_evidence){.where = known->where, .text = words};
    return count;
}

/* ---- the remedy ---- */

static void install(struct gp_exam *exam, bool is_3, unsigned major)
{
    const struct gp_machine *m = &exam->machine;
    static const char both[] =
        "only one of both can be installed; it stops if no repository has the new one";
    const char *package = name_of_4(exam, major);
    if (gp_machine_has_apt(m)) {
        if (is_3 && package_of(exam, package_3))
            gp_exam_command(exam, both,
                            "sudo apt update && apt-cache show %s > /dev/null && sudo apt purge %s",
                            package, package_3);
        else
            gp_exam_command(exam, "", "sudo apt update");
        gp_exam_command(exam, "from NVIDIA's repository, with what it recommends",
                        "sudo apt install --install-recommends %s", package);
    } else if (m->distro == GP_DISTRO_RHEL || m->distro == GP_DISTRO_FEDORA) {
        if (is_3)
            gp_exam_command(exam, both, "dnf info %s && sudo dnf remove %s", package, package_3);
        gp_exam_command(exam, "from NVIDIA's repository",
                        "sudo dnf install --setopt=install_weak_deps=True %s", package);
    } else if (m->distro == GP_DISTRO_SUSE) {
        if (is_3)
            gp_exam_command(exam, "only one of both can be installed", "sudo zypper remove %s",
                            package_3);
        gp_exam_command(exam, "from NVIDIA's repository", "sudo zypper install --recommends %s",
                        package);
    } else {
        gp_exam_advice(exam, "install DCGM 4 for CUDA %u%s", major, is_3 ? " in place of it" : "");
        return;
    }
    if (gp_machine_runs(&exam->files, "nv-hostengine") ||
        gp_service_is_enabled(exam, "nvidia-dcgm.service")) {
        gp_exam_command(exam, "", "sudo systemctl enable nvidia-dcgm");
        gp_exam_command(exam, "", "sudo systemctl restart nvidia-dcgm");
    }
}

static void report(struct gp_exam *exam, const char *what, bool is_3, const char *cuda)
{
    const unsigned major = gp_version_major(cuda);
    struct gp_evidence said[3];
    size_t count = find_refusals(exam, cuda, said, GP_ARRAY_LEN(said));
    gp_exam_report(exam, count > 0 ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "DCGM's diagnostics %s run with driver %s: they have no tests for CUDA %u",
                   is_3 || count > 0 ? "do not" : "may not", exam->machine.driver, major);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, said[i].where, "%s", said[i].text);
    gp_exam_evidence(exam, is_3 ? library_3(exam) : "package", "%s", what);
    gp_exam_why(exam,
                "dcgmi diag then fails, such as with \"Detected unsupported Cuda version: "
                "%s\". If Slurm or another program tests nodes by it, it takes nodes out of "
                "use whose GPUs work.",
                cuda);
    install(exam, is_3, major);
    if (count > 0)
        gp_slurm_resume(exam);
    if (is_3)
        gp_exam_advice(exam, "programs that load libdcgm.so.3, such as an old dcgm-exporter, need "
                             "a release for DCGM 4, too");
}

void gp_dcgm_check(struct gp_exam *exam)
{
    const char *cuda = gp_cuda_ceiling(exam->machine.driver);
    const struct gp_package *tests = tests_of_4(exam), *old;
    if (!cuda)
        return;
    if (tests) {
        if (!strstr(tests->name, "-cuda-all") &&
            !package_of(exam, name_of_4(exam, gp_version_major(cuda))))
            report(exam, gp_exam_text(exam, "%s %s", tests->name, tests->version), false, cuda);
    } else if (gp_version_major(cuda) > LAST_CUDA_OF_3) {
        old = package_of(exam, package_3);
        report(exam, old ? gp_exam_text(exam, "of %s %s", old->name, old->version) : "DCGM 3", true,
               cuda);
    }
}
