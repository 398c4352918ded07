/* LXC containers, also those of Incus and LXD, that did not start as the hook failed that passes
 * NVIDIA's driver into them: which release at fault is installed. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/lines.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the settings and the log of a container's last start are: FOLDER/NAME, or NAME alone. */
static const struct {
    const char *word, *start, *logs, *log, *settings[3];
} managers[] = {
    {"Incus",
     "incus start",
     "/var/log/incus",
     "/lxc.log",
     {"/run/incus/%s/lxc.conf", "/var/log/incus/%s/lxc.conf",
      "/var/lib/incus/containers/%s/backup.yaml"}},
    {"LXD",
     "lxc start",
     "/var/log/lxd",
     "/lxc.log",
     {"/run/lxd/%s/lxc.conf", "/var/log/lxd/%s/lxc.conf",
      "/var/lib/lxd/containers/%s/backup.yaml"}},
    {"LXC", "sudo lxc-start -n", "/var/log/lxc", ".log", {"/var/lib/lxc/%s/config", NULL}},
};

struct failure {
    size_t manager;
    const char *name;
    const char *log, *line; /* what the log says, and its time: "20250405020851.656" */
    const char *stamp;
    const char *settings, *call; /* the line by which it has the hook */
};

/* ---- containers whose hook has failed ---- */

static const char *line_with(struct gp_exam *exam, const char *path, const char *const *words)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL), *at;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    size_t n;
    while (gp_lines_next(&lines, &at, &n)) {
        at += strspn(at, " \t");
        const char *line = gp_exam_text(exam, "%.*s", (int)strcspn(at, "\n"), at);
        for (size_t i = 0; words[i]; i++)
            if (line[0] != '#' && strstr(line, words[i]))
                return line;
    }
    return NULL;
}

static bool find_call(struct gp_exam *exam, struct failure *f)
{
    static const char *const calls[] = {"/hooks/nvidia", "nvidia.runtime: \"true\"", NULL};
    for (size_t i = 0; i < GP_ARRAY_LEN(managers[0].settings); i++) {
        const char *form = managers[f->manager].settings[i],
                   *place = form ? strstr(form, "%s") : "";
        if (!form)
            continue;
        f->settings = gp_exam_text(exam, "%.*s%s%s", (int)(place - form), form, f->name, place + 2);
        f->call = line_with(exam, f->settings, calls);
        if (f->call)
            return true;
    }
    return false;
}

/* "lxc NAME 20250405020851.656 ERROR    conf - … - Failed to run mount hooks" */
static bool find_line(struct gp_exam *exam, struct failure *f)
{
    static const char *const words[] = {"Failed to run mount hooks", NULL};
    static const char digits[] = "0123456789";
    f->line = line_with(exam, f->log, words);
    f->stamp = "";
    for (const char *p = f->line; p && *p; p += strcspn(p, " "), p += strspn(p, " "))
        if (strspn(p, digits) == 14)
            f->stamp = p;
    return f->line != NULL;
}

static bool find_failure(struct gp_exam *exam, struct failure *ret)
{
    for (size_t m = 0; m < GP_ARRAY_LEN(managers); m++) {
        const char *folder = managers[m].logs, *end = managers[m].log;
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        if (n == -EACCES)
            gp_exam_unreadable(exam, folder, (int)n);
        for (long i = 0; i < n; i++) {
            const char *cut = *end == '/' ? names[i] + strlen(names[i]) : strstr(names[i], end);
            if (!cut)
                continue;
            *ret = (struct failure){
                .manager = m, .name = gp_exam_text(exam, "%.*s", (int)(cut - names[i]), names[i])};
            ret->log = gp_exam_text(exam, "%s/%s%s", folder, ret->name, end);
            if (find_line(exam, ret) && find_call(exam, ret))
                return true;
        }
    }
    return false;
}

/* "project_name" of another project than the default one. */
static void start_again(struct gp_exam *exam, const struct failure *f)
{
    const char *name = *managers[f->manager].log == '/' ? strchr(f->name, '_') : NULL;
    const char *project = gp_exam_text(exam, "%.*s", name ? (int)(name - f->name) : 0, f->name);
    gp_exam_command(exam, "then", "%s %s%s%s%s", managers[f->manager].start,
                    name ? "--project " : "", name ? gp_exam_quoted(exam, project) : "",
                    name ? " " : "", gp_exam_quoted(exam, name ? name + 1 : f->name));
}

static void report(struct gp_exam *exam, const struct failure *f, enum gp_verdict verdict,
                   const char *cause)
{
    gp_exam_report(exam, verdict, "%s container %s did not start: %s", managers[f->manager].word,
                   f->name, cause);
    gp_exam_evidence(exam, f->log, "%s", f->line);
    gp_exam_evidence(exam, f->settings, "%s", f->call);
}

/* ---- libnvidia-container and glibc ---- */

/* The first with the call that ldconfig of a newer glibc makes, and Arch's first package of the
 * release before with it. */
static const char mended[] = "1.17.9", mended_arch[] = "1.17.8";
enum { ARCH_RELEASE = 2, GLIBC = 42 };

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

/* The installed libnvidia-container that does not let this system's ldconfig run; "": none. */
static const char *filtering(struct gp_exam *exam, unsigned *ret_glibc)
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

static void explain_filter(struct gp_exam *exam, const char *version, unsigned glibc)
{
    bool is_arch = gp_files_exist(&exam->files, "/var/lib/pacman/local");
    gp_exam_evidence(exam, "package", "libnvidia-container %s; %s fixes it", version,
                     is_arch ? "1.17.8-2" : "1.18");
    gp_exam_evidence(exam, "glibc", "2.%u", glibc);
    gp_exam_why(exam,
                "It allows ldconfig only a few system calls. That of new releases of glibc also "
                "calls clock_gettime, which is not one of them: \"ldcache error: process "
                "/sbin/ldconfig terminated with signal 9\".");
    gp_container_update_toolkit(exam);
    gp_exam_link(exam, filter_link);
}

static void check_filter(struct gp_exam *exam)
{
    unsigned glibc = 0;
    const char *version = gp_container_engine(exam) ? filtering(exam, &glibc) : "";
    if (!version[0])
        return;
    const struct gp_log_known *known = gp_log_known_of(exam, "container.ldconfig");
    bool is_seen = known && strstr(known->text, "terminated with signal");
    gp_exam_report(exam, is_seen ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "containers with a GPU %s: libnvidia-container %s is too old for glibc 2.%u",
                   is_seen ? "do not start" : "may not start", version, glibc);
    if (known)
        gp_log_show_known(exam, known);
    explain_filter(exam, version, glibc);
}

void gp_container_check_ldcache(struct gp_exam *exam)
{
    const struct gp_finding *before = exam->last;
    gp_container_check_ldconfig(exam);
    if (exam->last == before)
        check_filter(exam);
}

static bool report_filter(struct gp_exam *exam, const struct failure *f)
{
    unsigned glibc = 0;
    const char *version = filtering(exam, &glibc);
    if (!version[0])
        return false;
    report(exam, f, GP_VERDICT_WARN,
           gp_exam_text(exam, "libnvidia-container %s is too old for glibc 2.%u", version, glibc));
    explain_filter(exam, version, glibc);
    start_again(exam, f);
    return true;
}

/* ---- a release of Incus ---- */

static const struct {
    const char *version, *link;
} faulty[] = {
    {"6.11", "https://github.com/zabbly/incus/issues/81"}, /* some packages of it are patched */
};

/* Of its package, or of its folder on NixOS: "/nix/store/…-incus-6.11.0/bin/incus". */
static const char *incus_version(struct gp_exam *exam)
{
    static const char mark[] = "-incus-";
    const char *version = gp_container_engine_version(exam, "incus");
    char real[GP_PATH_SIZE];
    if (version[0] || !gp_files_real(&exam->files, "/run/current-system/sw/bin/incus", real))
        return version;
    const char *found = strstr(real, mark);
    found = found ? found + sizeof(mark) - 1 : "";
    return gp_exam_text(exam, "%.*s", (int)strspn(found, "0123456789."), found);
}

/* Whether a package was built after the failure: "6.11-ubuntu24.04-202504041838". */
static bool is_built_after(const char *version, const char *stamp)
{
    enum { MINUTES = 12 };
    const char *built = strrchr(version, '-');
    return built && strspn(built + 1, "0123456789") == MINUTES && stamp[0] &&
           strncmp(built + 1, stamp, MINUTES) > 0;
}

static void update_incus(struct gp_exam *exam)
{
    static const char *const words[] = {"incus", NULL};
    struct gp_package *packages;
    const char *names = "";
    bool is_dpkg = gp_files_exist(&exam->files, "/var/lib/dpkg/status");
    long count = is_dpkg ? gp_packages_read(&exam->files, &exam->arena, words, &packages) : 0;
    for (long i = 0; i < count; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            names = gp_exam_text(exam, "%s %s", names, packages[i].name);
    if (names[0])
        gp_exam_command(exam, "a later build or release of Incus",
                        "sudo apt update && sudo apt install --only-upgrade%s", names);
    else if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_command(exam, "a later build or release of Incus",
                        "sudo nixos-rebuild switch --upgrade");
    else
        gp_exam_advice(exam, "update Incus to a later build or release");
}

static bool report_release(struct gp_exam *exam, const struct failure *f)
{
    const char *version = f->manager == 0 ? incus_version(exam) : "";
    for (size_t i = 0; version[0] && i < GP_ARRAY_LEN(faulty); i++) {
        if (gp_version_compare(version, faulty[i].version) != 0 ||
            is_built_after(version, f->stamp))
            continue;
        report(exam, f, GP_VERDICT_WARN,
               gp_exam_text(exam, "nvidia.runtime is broken in Incus %s", faulty[i].version));
        gp_exam_evidence(exam, "package", "incus %s", version);
        gp_exam_why(exam,
                    "In its first packages, the hook that passes the driver fails for every "
                    "container. The driver and NVIDIA Container Toolkit are not at fault. Later "
                    "packages have a fix.");
        update_incus(exam);
        start_again(exam, f);
        gp_exam_advice(exam, "or go back to the release before, and hold it until then");
        gp_exam_link(exam, faulty[i].link);
        return true;
    }
    return false;
}

void gp_container_check_lxc_hook(struct gp_exam *exam)
{
    struct failure f;
    if (!find_failure(exam, &f) || report_filter(exam, &f) || report_release(exam, &f))
        return;
    report(exam, &f, GP_VERDICT_INFO, "the hook that passes NVIDIA's driver into it failed");
    gp_exam_why(exam, "LXC logs what the hook prints only at the level debug. It calls "
                      "nvidia-container-cli.");
    gp_exam_command(exam, "the line with an error is for gpulse explain",
                    "sudo nvidia-container-cli -k -d /dev/tty info");
    start_again(exam, &f);
}
