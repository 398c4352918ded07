/* Whether libnvidia-container lets this system's ldconfig run, which it starts in each container:
 * its filter of system calls may be older than glibc. */
#include "doctor/checks/container.h"
#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* The first with the call that ldconfig of a newer glibc makes, and Arch's first package of the
 * release before with it. */
static const char mended[] = "1.17.9", mended_arch[] = "1.17.8";
enum { ARCH_RELEASE = 2, GLIBC = 42 };

static const char error[] = "container.ldconfig"; /* as gpulse explain names it */

static const char filter_link[] = "https://github.com/NVIDIA/libnvidia-container/pull/326";

static unsigned glibc_of(struct gp_exam *exam)
{
    const char *arch = gp_container_engine_version(exam, "glibc");
    const char *version = arch[0] ? arch : gp_container_engine_version(exam, "libc6");
    return version[0] ? gp_version_minor(version) : gp_container_glibc(exam);
}

static bool is_patched(const struct gp_exam *exam, const char *version)
{
    const char *release = strchr(version, '-');
    bool is_arch = strcmp(exam->machine.distro_id, "arch") == 0 ||
                   gp_files_exist(&exam->files, "/var/lib/pacman/local");
    return is_arch && release && gp_version_compare(version, mended_arch) == 0 &&
           strtoul(release + 1, NULL, 10) >= ARCH_RELEASE;
}

const char *gp_container_filtering(struct gp_exam *exam, unsigned *ret_glibc)
{
    const char *version = gp_container_engine_version(exam, "libnvidia-container");
    if (!version[0])
        version = gp_container_engine_version(exam, "libnvidia-container1");
    if (!version[0])
        version = gp_container_toolkit_version(exam);
    if (!version[0] || gp_version_compare(version, mended) >= 0 || is_patched(exam, version))
        return "";
    *ret_glibc = glibc_of(exam);
    return *ret_glibc >= GLIBC ? version : "";
}

void gp_container_explain_filter(struct gp_exam *exam, const char *version, unsigned glibc)
{
    bool is_arch = gp_files_exist(&exam->files, "/var/lib/pacman/local");
    gp_exam_evidence(exam, "package", "libnvidia-container %s; %s fixes it", version,
                     is_arch ? "1.17.8-2" : mended);
    gp_exam_evidence(exam, "glibc", "2.%u", glibc);
    gp_exam_why(exam,
                "It allows ldconfig only a few system calls. That of new releases of glibc also "
                "calls clock_gettime, which is not one of them: \"ldcache error: process "
                "/sbin/ldconfig terminated with signal 9\".");
    gp_exam_link(exam, filter_link);
}

/* By the kernel, as the filter has it do; other signals, such as 11, are from another fault. */
static bool is_killed(const char *text)
{
    static const char mark[] = "terminated with signal 9";
    const char *found = strstr(text, mark), *end = found ? found + sizeof(mark) - 1 : "0";
    return *end < '0' || *end > '9';
}

/* Podman, and the runtime in the mode "cdi", have nvidia-cdi-hook start ldconfig, without a filter.
 */
static bool may_filter(struct gp_exam *exam)
{
    const struct gp_engine *engine = gp_container_engine(exam);
    bool is_other = engine ? strcmp(engine->name, "podman") != 0 : gp_container_has_kubelet(exam);
    return is_other && !gp_container_has_mode(exam);
}

static void check_filter(struct gp_exam *exam)
{
    static const char docker[] = "docker";
    unsigned glibc = 0;
    const struct gp_log_known *known = gp_log_find_known(exam, error);
    if (known ? !is_killed(known->text) : !may_filter(exam))
        return;
    const char *version = gp_container_filtering(exam, &glibc);
    if (!version[0])
        return;
    gp_exam_report(exam, known ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "containers with a GPU %s: libnvidia-container %s is too old for glibc 2.%u",
                   known ? "do not start" : "may not start", version, glibc);
    if (known)
        gp_log_show_known(exam, gp_log_known_of(exam, error));
    gp_container_explain_filter(exam, version, glibc);
    if (known && known->unit && strncmp(known->unit, docker, sizeof(docker) - 1) != 0)
        gp_container_update_packages(exam); /* others try again by themselves */
    else
        gp_container_update_toolkit(exam);
}

bool gp_container_has_ldconfig(struct gp_exam *exam)
{
    return gp_container_has_config(exam) ||
           (gp_container_is_host(exam) && gp_log_find_known(exam, error));
}

void gp_container_check_ldconfig(struct gp_exam *exam)
{
    const struct gp_finding *before = exam->last;
    const struct gp_log_known *known = gp_log_find_known(exam, error);
    if (gp_container_has_config(exam))
        gp_container_check_ldconfig_path(exam);
    if (exam->last == before && (!known || !gp_container_report_legacy(exam, known)))
        check_filter(exam);
}
