/* Whether the host's driver and container toolkit are new enough for each other, for the system and
 * for the images that are started. */
#include "doctor/checks/container.h"

#include "doctor/checks/apt_fix.h"
#include "doctor/checks/container_host.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/system.h"
#include "doctor/compat.h"
#include "doctor/readers/cgroups.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* Of the library's file, where the packages are in a database that is not read; "": there is none.
 */
static const char *library_version(struct gp_exam *exam, const char **ret_name)
{
    static const char *const folders[] = {"/usr/lib64", "/usr/lib", "/usr/lib/x86_64-linux-gnu",
                                          "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"};
    static const char start[] = "libnvidia-container.so.";
    char **names;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        for (long k = 0; k < n; k++)
            if (strncmp(names[k], start, sizeof(start) - 1) == 0 &&
                strchr(names[k] + sizeof(start) - 1, '.')) {
                *ret_name = gp_exam_text(exam, "%s/%s", folders[i], names[k]);
                return names[k] + sizeof(start) - 1;
            }
    }
    return "";
}

/* The installed toolkit: the older of the library and the programs; "": unknown. */
static const char *toolkit_version(struct gp_exam *exam, const char *word, const char **ret_name)
{
    const char *const words[] = {word, NULL};
    struct gp_package *packages;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    const char *oldest = "";
    for (long i = 0; i < count; i++) {
        if (strcmp(packages[i].state, "installed") != 0 ||
            (oldest[0] && gp_version_compare(packages[i].version, oldest) >= 0))
            continue;
        oldest = packages[i].version;
        *ret_name = packages[i].name;
    }
    return oldest[0] ? oldest : library_version(exam, ret_name);
}

void gp_container_update_packages(struct gp_exam *exam)
{
    static const char *const words[] = {"nvidia-container-", "libnvidia-container", "nvidia-docker",
                                        NULL};
    struct gp_package *packages;
    const char *names = "";
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < count; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            names = gp_exam_text(exam, "%s%s%s", names, *names ? " " : "", packages[i].name);
    const char *why, *closed = gp_apt_closed_toolkit(exam, &why);
    bool is_added = gp_apt_prefer_toolkit(exam, names);
    if (closed)
        gp_exam_evidence(exam, closed, "the toolkit's repository: %.80s", why);
    if (closed && !is_added)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    else
        gp_exam_remedy(exam, GP_REMEDY_UPDATE_CONTAINER_TOOLKIT,
                       *names ? names : "nvidia-container-toolkit", NULL);
}

void gp_container_update_toolkit(struct gp_exam *exam)
{
    gp_container_update_packages(exam);
    if (gp_files_exist(&exam->files, "/usr/bin/docker") && !gp_container_is_podman(exam))
        gp_exam_command(exam, "", "%s restart docker",
                        !gp_container_runtime_config(exam) && gp_container_rootless_config(exam)
                            ? "systemctl --user"
                            : "sudo systemctl");
}

/* Docker has refused --gpus, though the toolkit is installed: not since docker was started, or only
 * in part, such as nvidia-container-toolkit-base, which suffices for CDI. */
static void check_asked(struct gp_exam *exam)
{
    static const char *const hooks[] = {"/usr/bin/nvidia-container-runtime-hook",
                                        "/usr/bin/nvidia-container-toolkit",
                                        "/usr/local/bin/nvidia-container-runtime-hook",
                                        "/usr/local/bin/nvidia-container-toolkit",
                                        "/usr/local/nvidia/toolkit/nvidia-container-runtime-hook",
                                        "/usr/local/nvidia/toolkit/nvidia-container-toolkit",
                                        NULL};
    bool is_docker = strcmp(gp_container_engine(exam)->name, "docker") == 0;
    const char *hook = gp_files_first(&exam->files, hooks);
    const struct gp_log_known *asked =
        is_docker ? gp_log_known_of(exam, "docker.no-toolkit") : NULL;
    if (!asked || gp_container_is_asked_before(exam, asked))
        return;
    bool is_old = gp_docker_is_left_over(exam, asked->path);
    gp_exam_report(exam, is_old ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "docker does not find NVIDIA Container Toolkit%s",
                   hook ? ", though it is installed" : ": only a part of it is installed");
    gp_exam_evidence(exam, hook ? hook : hooks[0], hook ? "present" : "missing");
    gp_log_show_known(exam, asked);
    gp_exam_why(exam,
                "It looks for this program when it starts: \"could not select device driver\" "
                "without it.");
    if (hook) {
        gp_exam_command(exam, "it may stop running containers", "sudo systemctl restart docker");
        gp_exam_advice(exam, "if that does not help: docker context ls and snap list docker show "
                             "whether it is another docker");
        return;
    }
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    gp_container_configure_docker(exam);
}

void gp_container_check_hook(struct gp_exam *exam)
{
    char hook[GP_PATH_SIZE];
    const char *link = gp_container_lost_hook(exam, hook);
    if (!link) {
        bool is_docker = strcmp(gp_container_engine(exam)->name, "docker") == 0;
        if (!(is_docker && gp_container_report_snap_beside(exam)) &&
            !gp_container_report_hook_name(exam))
            check_asked(exam);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "containers cannot use GPUs: the hook of NVIDIA Container Toolkit is missing");
    gp_exam_evidence(exam, link, "leads to %s, which is missing", hook);
    gp_exam_why(exam, "docker run --gpus fails with \"could not select device driver\". The update "
                      "of the RPM from 1.10 to 1.11 deletes this file.");
    const char *packages = gp_files_exist(&exam->files, "/usr/bin/nvidia-docker")
                               ? "nvidia-container-toolkit nvidia-docker2"
                               : "nvidia-container-toolkit";
    gp_exam_remedy(exam, GP_REMEDY_REINSTALL_CONTAINER_TOOLKIT, packages, packages);
}

/* ---- versions ---- */

/* Whether a rule lets the toolkit create the links of the device files, which only help if it finds
 * the driver's device. */
static const char *link_rule(struct gp_exam *exam)
{
    static const char *const folders[] = {"/etc/udev/rules.d", "/lib/udev/rules.d",
                                          "/usr/lib/udev/rules.d"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        for (long k = 0; k < n; k++)
            if (strstr(names[k], "nvidia-dev-char"))
                return gp_exam_text(exam, "%s/%s", folders[i], names[k]);
    }
    return NULL;
}

/* Since driver 550 its device is called "nvidia", before "nvidia-frontend" (/proc/devices). */
static const char needed_since_550[] = "1.14.6";

static bool is_before_driver(const struct gp_exam *exam, const char *version)
{
    enum { RENAMED = 550 };
    return version[0] && gp_version_compare(version, needed_since_550) < 0 &&
           gp_version_major(exam->machine.driver) >= RENAMED;
}

static bool check_links(struct gp_exam *exam)
{
    const char *needed = needed_since_550;
    const char *name = "", *rule = link_rule(exam);
    const char *version = toolkit_version(exam, "nvidia-container-toolkit", &name);
    if (!is_before_driver(exam, version))
        return false;
    gp_exam_report(exam, rule ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the container toolkit %s is too old for driver %s: it creates no links in "
                   "/dev/char",
                   version, exam->machine.driver);
    gp_exam_evidence(exam, "package", "%s %s; %s or newer knows this driver", name, version,
                     needed);
    if (rule)
        gp_exam_evidence(exam, rule, "meant to create the links");
    gp_exam_why(exam,
                "The driver's device was renamed in branch 550 (from nvidia-frontend to nvidia). "
                "Without the links, containers lose their GPUs when systemd reloads its units: "
                "NVML reports Unknown Error.");
    gp_container_update_toolkit(exam);
    gp_exam_command(exam, "then create the links",
                    "sudo nvidia-ctk system "
                    "create-dev-char-symlinks --create-all");
    gp_exam_link(exam, "https://github.com/NVIDIA/nvidia-container-toolkit/issues/381");
    return true;
}

/* ---- releases with a fault ---- */

static bool uses_enroot(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, "/usr/bin/enroot") &&
           gp_files_exist(&exam->files, "/etc/enroot/hooks.d/98-nvidia.sh");
}

static bool is_without_root(struct gp_exam *exam)
{
    return gp_container_rootless_config(exam) != NULL;
}

/* Likewise, with the setting for that. */
static bool is_set_without_root(struct gp_exam *exam)
{
    unsigned number = 0;
    const char *value = gp_container_config_value(exam, "no-cgroups", &number);
    return is_without_root(exam) && value && strcmp(value, "true") == 0;
}

/* podman has no other way, unless it is older than this one, and the runtime in this mode. */
static bool uses_cdi(struct gp_exam *exam)
{
    bool is_podman = strcmp(gp_container_engine(exam)->name, "podman") == 0;
    return gp_container_has_mode(exam) ||
           (is_podman && gp_container_find_cdi(exam) && !gp_container_is_before_cdi(exam));
}

/* Releases of which the makers say so, where they are used in the way that fails; or of which users
 * do (`mended` is NULL): then it is a problem if the log has the failure. */
static const struct faulty {
    const char *version, *mended, *words, *message, *link;
    bool (*is_hit)(struct gp_exam *exam);
} faulty[] = {
    {"1.14.0", "1.14.1", "containers of docker without root do not start",
     "It ignores its settings, such as no-cgroups: \"bpf_prog_query(BPF_CGROUP_DEVICE) failed: "
     "operation not permitted\".",
     "https://github.com/NVIDIA/nvidia-container-toolkit/issues/106", is_without_root},
    {"1.17.0", "1.17.1", "containers that get GPUs by CDI may not start",
     "It fails at links that the image has already: \"failed to create link\", or \"error "
     "executing "
     "hook `/usr/bin/nvidia-cdi-hook`\".",
     "https://github.com/NVIDIA/nvidia-container-toolkit/issues/772", uses_cdi},
    {"1.17.7", "1.17.8", "Enroot's containers with a GPU do not start",
     "It tries to change control groups without root: \"mount error: failed to add device rules\".",
     "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1093", uses_enroot},
    {"1.18.0", NULL, "containers of docker without root may not start with --gpus",
     "It tries to change control groups although no-cgroups is set: "
     "\"bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted\".",
     "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1487", is_set_without_root},
};

static void report_faulty(struct gp_exam *exam, const struct faulty *release, const char *name,
                          const char *version)
{
    const struct gp_log_known *known =
        release->mended ? NULL : gp_log_known_of(exam, "container.bpf");
    gp_exam_report(exam, release->mended || known ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s: the container toolkit %s has a fault", release->words, release->version);
    gp_exam_evidence(exam, "package", "%s %s; %s", name, version,
                     release->mended ? gp_exam_text(exam, "%s fixes it", release->mended)
                                     : "reported by users; 1.17.8 does not have it");
    gp_log_show_known(exam, known);
    gp_exam_why(exam, "%s", release->message);
    if (release->mended)
        gp_container_update_toolkit(exam);
    else
        gp_container_go_back(exam);
    gp_exam_link(exam, release->link);
}

/* Podman before this one cannot read what the newest toolkits generate: see container.cdi. */
static void generate_again(struct gp_exam *exam)
{
    const char *podman = gp_container_engine_version(exam, "podman");
    bool is_old = podman[0] && gp_version_compare(podman, "5.1") < 0;
    const char *spec = gp_container_find_cdi(exam);
    gp_exam_command(exam, "then describe the GPUs again, with the new hooks",
                    "sudo nvidia-ctk cdi generate%s --output=%s",
                    is_old ? " --feature-flag=no-additional-gids-for-device-nodes" : "",
                    gp_exam_quoted(exam, spec ? spec : "/etc/cdi/nvidia.yaml"));
}

/* The toolkit is as old as before an upgrade of the system, but the driver is not; and engines run
 * its hooks. */
static bool check_closed(struct gp_exam *exam, const char *name, const char *version)
{
    const char *why;
    if (!uses_cdi(exam) || !is_before_driver(exam, version) || !gp_apt_closed_toolkit(exam, &why))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the container toolkit %s is older than driver %s, and gets no updates: an "
                   "upgrade of the system has turned its source off",
                   version, exam->machine.driver);
    gp_exam_evidence(exam, "package", "%s %s; %s or newer knows this driver", name, version,
                     needed_since_550);
    gp_exam_why(exam, "Its hooks run when a container with a GPU starts. Old ones can fail with "
                      "newer drivers and images: \"error executing hook `/usr/bin/nvidia-ctk` "
                      "(exit code: 1)\".");
    gp_container_update_toolkit(exam);
    generate_again(exam);
    gp_exam_link(exam, "https://github.com/Igalia/webkit-container-sdk/issues/72");
    return true;
}

static bool check_release(struct gp_exam *exam, const char *name, const char *version)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(faulty); i++) {
        if (gp_version_compare(version, faulty[i].version) != 0 || !faulty[i].is_hit(exam))
            continue;
        report_faulty(exam, &faulty[i], name, version);
        return true;
    }
    return false;
}

bool gp_container_has_version(struct gp_exam *exam)
{
    const char *name;
    return gp_container_is_host(exam) && toolkit_version(exam, "libnvidia-container", &name)[0];
}

void gp_container_check_version(struct gp_exam *exam)
{
    static const char needed[] = "1.8.0";
    const char *name = "", *version = toolkit_version(exam, "libnvidia-container", &name);
    const struct gp_cgroups cgroups = gp_cgroups_of(exam);
    if (cgroups.version != GP_CGROUP_SECOND || gp_version_compare(version, needed) >= 0) {
        if (!check_release(exam, name, version) && !check_closed(exam, name, version) &&
            !check_links(exam))
            gp_exam_report(exam, GP_VERDICT_OK, "the container toolkit is %s", version);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the container toolkit %s is too old for this system: it does not support "
                   "control groups v2",
                   version);
    gp_exam_evidence(exam, "package", "%s %s; %s or newer supports them", name, version, needed);
    gp_exam_evidence(exam, cgroups.where, "%s", cgroups.seen);
    gp_exam_why(exam,
                "Containers with a GPU do not start: \"cgroup subsystem devices not found\".");
    gp_container_update_toolkit(exam);
}

/* ---- engines ---- */

/* Engines, and the version from which on they know how to ask for GPUs. */
static const struct {
    const char *package, *title, *first, *option;
} engines[] = {
    {"docker-ce", "docker", "19.03", "--gpus"},
    {"docker.io", "docker", "19.03", "--gpus"},
    {"podman", "podman", GP_PODMAN_WITH_CDI, "--device nvidia.com/gpu=all"},
};

static bool is_old(struct gp_exam *exam, size_t i, const char **ret_version)
{
    *ret_version = gp_container_engine_version(exam, engines[i].package);
    return (*ret_version)[0] && gp_version_compare(*ret_version, engines[i].first) < 0;
}

/* Older ways to ask for them: docker's runtime, podman's hook. */
static bool has_old_way(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/nvidia-docker",
                                        "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
                                        "/etc/containers/oci/hooks.d/oci-nvidia-hook.json"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (gp_files_exist(&exam->files, paths[i]))
            return true;
    return gp_container_runtime_config(exam) != NULL;
}

bool gp_container_has_old_engine(struct gp_exam *exam)
{
    const char *version;
    bool is_any = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(engines); i++)
        is_any = is_any || is_old(exam, i, &version);
    return is_any && gp_container_is_host(exam) && gp_container_has_toolkit(exam);
}

/* Debian's and Ubuntu's releases keep the version that they came with. */
static void update_podman(struct gp_exam *exam)
{
    const char *distro = exam->machine.distro_id;
    const char *release = strcmp(distro, "ubuntu") == 0   ? ", as Ubuntu 24.04 has"
                          : strcmp(distro, "debian") == 0 ? ", as Debian 12 has"
                                                          : "";
    gp_exam_advice(exam, "use podman " GP_PODMAN_WITH_CDI " or newer%s", release);
    if (!gp_container_find_cdi(exam))
        gp_exam_command(exam,
                        "then describe the GPUs for it, and again after each update of the "
                        "driver",
                        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
}

void gp_container_check_engine(struct gp_exam *exam)
{
    const char *version;
    for (size_t i = 0; i < GP_ARRAY_LEN(engines); i++) {
        if (!is_old(exam, i, &version))
            continue;
        gp_exam_report(exam, has_old_way(exam) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       "%s %s is older than its option for GPUs, %s", engines[i].title, version,
                       engines[i].option);
        gp_exam_evidence(exam, "package", "%s %s; %s or newer knows it", engines[i].package,
                         version, engines[i].first);
        gp_exam_why(exam,
                    "It reports an unknown flag, or takes the name for the path of a device.");
        if (strcmp(engines[i].title, "podman") == 0) {
            update_podman(exam);
            continue;
        }
        gp_exam_advice(exam,
                       "update %s to %s or newer, from its makers' repository if this release "
                       "has none",
                       engines[i].title, engines[i].first);
    }
}

/* ---- what the log says was refused ---- */

/* The version behind "cuda>=" in "unsatisfied condition: cuda>=12.8, please …"; "": none. */
static const char *condition_of(struct gp_exam *exam, const char *line, const char *word)
{
    static const char mark[] = "unsatisfied condition:";
    const char *found = strstr(line, mark);
    found = found ? strstr(found, word) : NULL;
    if (!found)
        return "";
    found += strlen(word);
    found += strspn(found, " >=");
    return gp_exam_text(exam, "%.*s", (int)strspn(found, "0123456789."), found);
}

/* An image that needs a newer CUDA than this driver has; false: it is another condition, or no
 * longer so. */
static bool report_image(struct gp_exam *exam, const struct gp_log_known *known)
{
    const char *cuda = condition_of(exam, known->text, "cuda");
    const char *driver = condition_of(exam, known->text, "driver");
    const char *have = exam->machine.driver, *ceiling = have[0] ? gp_cuda_ceiling(have) : "";
    const char *needed = cuda[0] ? gp_cuda_own_driver(cuda) : driver;
    bool is_past = have[0] && (cuda[0] ? ceiling[0] && gp_version_compare(ceiling, cuda) >= 0
                                       : driver[0] && gp_driver_reaches(have, driver));
    if (is_past || (!cuda[0] && !driver[0]))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a container was refused: its image needs %s %s or newer%s",
                   cuda[0] ? "a driver for CUDA" : "driver", cuda[0] ? cuda : driver,
                   !have[0]  ? ""
                   : cuda[0] ? gp_exam_text(exam, "; driver %s has CUDA %s", have, ceiling)
                             : gp_exam_text(exam, "; this machine has %s", have));
    gp_log_show_known(exam, known);
    gp_exam_why(exam,
                "The toolkit compares what the image asks for with the host's driver before it "
                "starts the container.");
    if (needed[0])
        gp_driver_fix_at_least(exam, needed);
    else
        gp_exam_advice(exam, "update the driver to one for CUDA %s or newer", cuda);
    if (ceiling[0])
        gp_exam_advice(exam, "or use an older image: this driver runs those for CUDA %s and older",
                       ceiling);
    if (cuda[0] && ceiling[0] && gp_version_major(cuda) == gp_version_major(ceiling))
        gp_exam_advice(exam,
                       "or start the container with NVIDIA_DISABLE_REQUIRE=1 (-e, or env of the "
                       "pod): programs for a later CUDA %u run with this driver unless they need "
                       "new features of it, or compile PTX",
                       gp_version_major(cuda));
    return true;
}

/* The toolkit took a part of the GPU's name for a path: "stat failed: /GeForce". */
static void report_path(struct gp_exam *exam, const struct gp_log_known *known)
{
    const char *name = "", *version = toolkit_version(exam, "libnvidia-container", &name);
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        "containers with a GPU do not start: libnvidia-container%s%s is too old for this "
        "driver",
        version[0] ? " " : "", version);
    if (version[0])
        gp_exam_evidence(exam, "package", "%s %s", name, version);
    gp_log_show_known(exam, known);
    gp_exam_why(exam,
                "It takes a part of the driver's answer for a path, which versions from 1.0.2 on "
                "do not.");
    gp_container_update_toolkit(exam);
}

static const char of_image[] = "container.cuda-required,container.driver-required";
static const char of_path[] = "container.stat-model";

bool gp_container_has_refused(struct gp_exam *exam)
{
    return gp_container_is_host(exam) &&
           (gp_log_known_of(exam, of_image) || gp_log_known_of(exam, of_path));
}

void gp_container_check_refused(struct gp_exam *exam)
{
    const struct gp_log_known *image = gp_log_known_of(exam, of_image);
    const struct gp_log_known *path = gp_log_known_of(exam, of_path);
    if (image)
        (void)report_image(exam, image);
    if (path)
        report_path(exam, path);
}

/* ---- the host's libraries in an image ---- */

#define APPTAINER_LIBS "/.singularity.d/libs"

/* The highest number after a text, "GLIBC_2.": 34 of "GLIBC_2.34"; 0: none. */
static unsigned highest(const char *text, size_t length, const char *mark)
{
    unsigned found = 0;
    size_t n = strlen(mark);
    for (const char *p = text; p && (p = memmem(p, length - (size_t)(p - text), mark, n)); p += n) {
        unsigned number = (unsigned)strtoul(p + n, NULL, 10);
        found = number > found ? number : found;
    }
    return found;
}

static unsigned highest_in(struct gp_exam *exam, const char *path, const char *mark)
{
    enum { MOST = 8 << 20 };
    size_t length = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, &length);
    return text ? highest(text, length, mark) : 0;
}

unsigned gp_container_glibc(struct gp_exam *exam)
{
    const char *const paths[] = {
        gp_exam_text(exam, "/lib/%s-linux-gnu/libc.so.6", exam->machine.arch), "/lib64/libc.so.6",
        "/usr/lib/libc.so.6"};
    char real[GP_PATH_SIZE];
    unsigned version = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths) && version == 0; i++) {
        if (!gp_files_real(&exam->files, paths[i], real))
            continue;
        version = highest(real, strlen(real), "/libc-2.");
        version = version > 0 ? version : highest_in(exam, real, "release version 2.");
    }
    return version;
}

void gp_container_check_glibc(struct gp_exam *exam, const char *program)
{
    static const char *const names[] = {"libGLX.so.0", "libGLdispatch.so.0", "libEGL.so.1",
                                        "libGL.so.1", "libOpenGL.so.0"};
    unsigned have = gp_files_exist(&exam->files, APPTAINER_LIBS) ? gp_container_glibc(exam) : 0;
    for (size_t i = 0; have > 0 && i < GP_ARRAY_LEN(names); i++) {
        const char *path = gp_exam_text(exam, APPTAINER_LIBS "/%s", names[i]);
        unsigned needed = highest_in(exam, path, "GLIBC_2.");
        if (needed <= have)
            continue;
        gp_exam_report(exam, program ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "OpenGL fails in this container: the host's libraries need glibc 2.%u, the "
                       "image has 2.%u",
                       needed, have);
        gp_exam_evidence(exam, path, "needs GLIBC_2.%u", needed);
        if (program)
            gp_exam_evidence(exam, program, "present: it uses OpenGL");
        gp_exam_why(exam,
                    "With --nv the host's libraries for OpenGL hide those of the image: "
                    "\"version `GLIBC_2.%u' not found\". CUDA's need no new glibc.",
                    needed);
        gp_exam_advice(exam,
                       "use an image with glibc 2.%u or newer, such as one of the host's own "
                       "release",
                       needed);
        gp_exam_advice(exam, "or, as the host's administrator, remove libGLX.so, libGLdispatch.so, "
                             "libGL.so, libEGL.so and libOpenGL.so from nvliblist.conf");
        return;
    }
}
