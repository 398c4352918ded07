/* LXC containers, also those of Incus and LXD, that did not start as the hook failed that passes
 * NVIDIA's driver into them: which release at fault is installed. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* The log of a container: FOLDER/NAME/lxc.log, of its last start; FOLDER/NAME.log, of all starts.
 */
static const struct {
    const char *word, *start, *logs, *log;
} managers[] = {
    {"Incus", "incus start", "/var/log/incus", "/lxc.log"},
    {"LXD", "lxc start", "/var/log/lxd", "/lxc.log"},
    {"LXC", "sudo lxc-start -n", "/var/log/lxc", ".log"},
};

struct failure {
    size_t manager;
    const char *name;
    const char *log, *line; /* what the log says, and its time: "20250405020851.656" */
    const char *stamp;
    long long at;                /* in seconds since 1970; 0: unknown */
    const char *settings, *call; /* the line by which it has the hook */
};

/* ---- containers whose hook has failed ---- */

/* The time in a line, "lxc NAME 20250405020851.656 ERROR    conf - … - Failed to run mount hooks";
 * "": it has none. */
static const char *stamp_in(const char *line, size_t n)
{
    enum { SECONDS = 14 };
    const char *word;
    for (const char *at = line, *end = line + n; gp_lines_word(&at, end, &word, &n);)
        if (n > SECONDS && word[SECONDS] == '.' && strspn(word, "0123456789") == SECONDS)
            return word;
    return "";
}

/* In UTC, as LXC writes it. */
static long long time_of(const char *stamp)
{
    struct tm tm = {0};
    return strptime(stamp, "%Y%m%d%H%M%S", &tm) ? (long long)timegm(&tm) : 0;
}

/* The last failure, unless the log has lines of a later start. */
static bool find_line(struct gp_exam *exam, struct failure *f)
{
    enum { ONE_START = 60, MOST = 1 << 18 };
    static const char mark[] = "Failed to run mount hooks";
    const char *text = gp_files_tail(&exam->files, &exam->arena, f->log, MOST, NULL), *line;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        long long at = time_of(stamp_in(line, n));
        if (memmem(line, n, mark, sizeof(mark) - 1)) {
            f->line = gp_exam_text(exam, "%.*s", (int)n, line);
            f->at = at;
        } else if (f->line && at > f->at + ONE_START) {
            f->line = NULL;
        }
    }
    f->stamp = f->line ? stamp_in(f->line, strlen(f->line)) : "";
    return f->line != NULL;
}

/* Whether it runs now, or has failed before this boot: plain LXC logs nothing of starts that go
 * well. */
static bool is_over(struct gp_exam *exam, const struct failure *f)
{
    bool is_plain = *managers[f->manager].log == '.';
    return (is_plain && f->at < gp_boot_time(exam)) ||
           gp_files_exist(&exam->files,
                          gp_exam_text(exam, "/sys/fs/cgroup/lxc.payload.%s", f->name));
}

static bool find_call(struct gp_exam *exam, struct failure *f)
{
    f->call = gp_container_tool_call(exam, managers[f->manager].word, f->name, &f->settings);
    return f->call != NULL;
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
            if (find_line(exam, ret) && !is_over(exam, ret) && find_call(exam, ret))
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

/* ---- releases at fault ---- */

static bool report_filter(struct gp_exam *exam, const struct failure *f)
{
    unsigned glibc = 0;
    const char *version = gp_container_filtering(exam, &glibc);
    if (!version[0])
        return false;
    report(exam, f, GP_VERDICT_WARN,
           gp_exam_text(exam, "libnvidia-container %s is too old for glibc 2.%u", version, glibc));
    gp_container_explain_filter(exam, version, glibc);
    gp_container_update_packages(exam);
    start_again(exam, f);
    return true;
}

/* ---- a release of Incus ---- */

static const char faulty[] = "6.11"; /* some packages of it are patched */
static const char faulty_link[] = "https://github.com/zabbly/incus/issues/81";

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
    if (!version[0] || gp_version_compare(version, faulty) != 0 ||
        is_built_after(version, f->stamp))
        return false;
    report(exam, f, GP_VERDICT_WARN,
           gp_exam_text(exam, "nvidia.runtime is broken in Incus %s", faulty));
    gp_exam_evidence(exam, "package", "incus %s", version);
    gp_exam_why(exam, "In its first packages, the hook that passes the driver fails for every "
                      "container. The driver and NVIDIA Container Toolkit are not at fault. Later "
                      "packages have a fix.");
    update_incus(exam);
    start_again(exam, f);
    gp_exam_advice(exam, "or go back to the release before, and hold it until then");
    gp_exam_link(exam, faulty_link);
    return true;
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
