/* The specification of the GPUs for containers (CDI), which names files that updates replace. */
#include "doctor/checks/container.h"
#include "doctor/checks/container_host.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const specs[] = {"/etc/cdi/nvidia.yaml", "/run/cdi/nvidia.yaml",
                                    "/var/run/cdi/nvidia.yaml",
                                    "/run/cdi/nvidia-container-toolkit.json", /* NixOS */
                                    NULL};

const char *gp_container_find_cdi(const struct gp_exam *exam)
{
    return gp_files_first(&exam->files, specs);
}

bool gp_container_binds_files(struct gp_exam *exam)
{
    static const char first_with_cdi[] = "1.18";
    const char *version = gp_container_toolkit_version(exam);
    return version[0] && gp_version_compare(version, first_with_cdi) < 0 &&
           !gp_container_find_cdi(exam);
}

bool gp_container_has_cdi(struct gp_exam *exam)
{
    return !exam->machine.container && gp_container_find_cdi(exam);
}

static void fix_cdi(struct gp_exam *exam, const char *path)
{
    if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_command(exam, "regenerate it",
                        "sudo systemctl restart nvidia-container-toolkit-cdi-generator");
    else
        gp_exam_command(exam, "regenerate it", "sudo nvidia-ctk cdi generate --output=%s",
                        gp_exam_quoted(exam, path));
}

/* A versioned library that the file mounts into containers, and that is missing while the folder
 * has another version of it: an update replaced it. NULL: none. */
static const char *find_replaced(struct gp_exam *exam, const char *text, const char **ret_other)
{
    static const char mark[] = "hostPath:";
    for (const char *p = strstr(text, mark); p; p = strstr(p, mark)) {
        p += sizeof(mark) - 1;
        p += strspn(p, " \"'");
        const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(p, " \"'\r\n"), p);
        const char *suffix = strstr(path, ".so."), *name = strrchr(path, '/');
        struct stat st;
        char **names;
        if (path[0] != '/' || !suffix || !name || suffix < name ||
            gp_files_stat(&exam->files, path, &st) != -ENOENT)
            continue;
        const char *folder = gp_exam_text(exam, "%.*s", (int)(name - path), path);
        size_t length = (size_t)(suffix + 4 - (name + 1));
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long i = 0; i < n; i++)
            if (strncmp(names[i], name + 1, length) == 0 && strchr(names[i] + length, '.')) {
                *ret_other = gp_exam_text(exam, "%s/%s", folder, names[i]);
                return path;
            }
    }
    return NULL;
}

static void check_replaced(struct gp_exam *exam, const char *spec, const char *text)
{
    const char *other = "", *path = find_replaced(exam, text, &other);
    if (!path)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the CDI specification mounts a library that does not exist");
    gp_exam_evidence(exam, spec, "names %s", path);
    gp_exam_evidence(exam, other, "present");
    gp_exam_why(exam, "An update replaced the library after the specification was generated: "
                      "containers that ask for a GPU do not start.");
    fix_cdi(exam, spec);
}

/* A device or program that the file names and that is missing, while others of its kind are there:
 * "path: /dev/dri/card2", "path: /usr/bin/nvidia-cdi-hook". NULL: none. */
static const char *find_gone(struct gp_exam *exam, const char *text)
{
    static const char mark[] = "path: ";
    static const struct {
        const char *begin, *other; /* `other` shows that such files are known here */
    } kinds[] = {{"/dev/nvidia", "/dev/nvidia0"},
                 {"/dev/dri/card", "/dev/dri"},
                 {"/dev/dri/renderD", "/dev/dri"},
                 {"/usr/bin/nvidia-", "/usr/bin/nvidia-ctk"}};
    for (const char *p = strstr(text, mark); p; p = strstr(p, mark)) {
        p += sizeof(mark) - 1;
        p += strspn(p, " \"'");
        const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(p, " \"'\r\n"), p);
        struct stat st;
        for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++)
            if (strncmp(path, kinds[i].begin, strlen(kinds[i].begin)) == 0 &&
                gp_files_exist(&exam->files, kinds[i].other) &&
                gp_files_stat(&exam->files, path, &st) == -ENOENT)
                return path;
    }
    return NULL;
}

static void check_gone(struct gp_exam *exam, const char *spec, const char *text)
{
    const char *path = find_gone(exam, text);
    if (!path)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the CDI specification names %s, which does not exist",
                   path);
    gp_exam_evidence(exam, spec, "path: %s", path);
    gp_exam_why(exam, "GPUs were added or removed, their device files have other numbers since the "
                      "last boot, or the toolkit was updated: containers that ask for a GPU do not "
                      "start.");
    fix_cdi(exam, spec);
}

unsigned long gp_container_uvm_major(struct gp_exam *exam)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/devices", 1 << 16, NULL);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *end;
        unsigned long number = strtoul(line, &end, 10);
        if (end != line && strncmp(end, " nvidia-uvm\n", 12) == 0)
            return number;
    }
    return 0;
}

/* "path: /dev/nvidia-uvm", "major: 510". */
static void check_major(struct gp_exam *exam, const char *spec, const char *text)
{
    static const char path[] = "path: /dev/nvidia-uvm\n", key[] = "major: ";
    const char *entry = strstr(text, path);
    const char *next = entry ? strstr(entry + 1, "path: ") : NULL;
    const char *major = entry ? strstr(entry, key) : NULL;
    unsigned long have = gp_container_uvm_major(exam);
    if (!major || (next && major > next) || have == 0)
        return;
    unsigned long number = strtoul(major + sizeof(key) - 1, NULL, 10);
    if (number == have || number == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the CDI specification has another number for /dev/nvidia-uvm than the kernel");
    gp_exam_evidence(exam, spec, "major: %lu", number);
    gp_exam_evidence(exam, "/proc/devices", "%lu nvidia-uvm", have);
    gp_exam_why(exam, "The kernel chooses the number when the module is loaded. With another one "
                      "nvidia-smi works in containers, but CUDA fails with error 999.");
    fix_cdi(exam, spec);
    gp_exam_advice(exam, "if it has the same number again, correct the lines \"major\" below "
                         "/dev/nvidia-uvm and /dev/nvidia-uvm-tools there");
}

/* ---- podman ---- */

/* NixOS has it in the path of the program: "/nix/store/…-podman-5.5.1/bin/podman". "": unknown. */
static const char *podman_version(struct gp_exam *exam)
{
    static const char mark[] = "-podman-";
    char real[GP_PATH_SIZE];
    const char *found = gp_files_real(&exam->files, "/run/current-system/sw/bin/podman", real)
                            ? strstr(real, mark)
                            : NULL;
    return found ? gp_exam_text(exam, "%.*s", (int)strcspn(found + sizeof(mark) - 1, "/"),
                                found + sizeof(mark) - 1)
                 : gp_container_engine_version(exam, "podman");
}

/* Whether containers.conf says where specifications are. */
static bool has_folders(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *const paths[] = {
        "/etc/containers/containers.conf", "/usr/share/containers/containers.conf",
        gp_exam_text(exam, "%s/.config/containers/containers.conf", home ? home : "")};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 16, NULL);
        if (text && strstr(text, "\ncdi_spec_dirs"))
            return true;
    }
    return false;
}

/* Only Podman 5.5 searches nothing but /etc/cdi, unless it is configured. */
static void check_place(struct gp_exam *exam, const char *spec)
{
    const char *version = podman_version(exam), *name = strrchr(spec, '/');
    if (strncmp(spec, "/etc/", 5) == 0 || gp_version_compare(version, "5.5") < 0 ||
        gp_version_compare(version, "5.6") >= 0 || has_folders(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "podman %s does not look where the CDI specification of the GPUs is", version);
    gp_exam_evidence(exam, spec, "present");
    gp_exam_evidence(exam, "/etc/cdi/nvidia.yaml", "missing");
    gp_exam_why(exam,
                "Podman 5.5 reads only /etc/cdi: podman run --device nvidia.com/gpu=all fails "
                "with \"unresolvable CDI devices\". 5.6 and newer read both directories.");
    gp_exam_command(exam, "tell it, until it is updated",
                    "podman --cdi-spec-dir=%.*s run --device=nvidia.com/gpu=all …",
                    (int)(name - spec), spec);
    gp_exam_advice(exam,
                   "or for all users, below [engine] in containers.conf (NixOS: "
                   "virtualisation.containers.containersConf.settings.engine): cdi_spec_dirs = "
                   "[ \"/etc/cdi\", \"%.*s\" ]",
                   (int)(name - spec), spec);
    gp_exam_link(exam, "https://github.com/containers/podman/issues/26569");
}

/* ---- the format ---- */

/* The first specification, if all of them have a field that older engines do not know. */
static const char *find_new_format(struct gp_exam *exam)
{
    const char *first = NULL;
    for (const char *const *spec = specs; *spec; spec++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, *spec, 4 << 20, NULL);
        if (text && !strstr(text, "additionalGids"))
            return NULL;
        first = text && !first ? *spec : first;
    }
    return first;
}

static bool uses_cdi(struct gp_exam *exam, const char *engine)
{
    static const char config[] = "/etc/docker/daemon.json";
    const char *text = gp_files_text(&exam->files, &exam->arena, config, 1 << 16, NULL);
    return strcmp(engine, "docker") != 0 || (text && strstr(text, "\"cdi\""));
}

/* Toolkits from 1.19.1 on have a service that generates the specification, with these settings. */
static void fix_format(struct gp_exam *exam, const char *spec)
{
    static const char flag[] = "no-additional-gids-for-device-nodes",
                      settings[] = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env";
    bool is_own = strncmp(spec, "/etc/", 5) == 0;
    if (is_own)
        gp_exam_command(exam, "generate it without that field",
                        "sudo nvidia-ctk cdi generate --feature-flag=%s --output=%s", flag, spec);
    if (gp_service_is_installed(exam, "nvidia-cdi-refresh.service")) {
        gp_exam_command(exam, is_own ? "likewise the one in /var/run" : "generate it without it",
                        "echo NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=%s | sudo tee -a %s", flag,
                        settings);
        gp_exam_command(exam, "", "sudo systemctl restart nvidia-cdi-refresh.service");
    } else if (!is_own) {
        gp_exam_command(exam, "generate it without that field",
                        "sudo nvidia-ctk cdi generate --feature-flag=%s --output=%s", flag, spec);
    }
}

/* Engines, and the version from which on they read format 0.7.0, which the toolkit writes from
 * 1.19.1 on; others leave the whole file out: NVIDIA/nvidia-container-toolkit#1860. */
static void check_format(struct gp_exam *exam)
{
    static const struct {
        const char *package, *title, *first;
    } readers[] = {{"podman", "podman", "5.1"},
                   {"docker-ce", "docker", "26.1"},
                   {"docker.io", "docker", "26.1"}};
    const char *spec = find_new_format(exam);
    for (size_t i = 0; spec && i < GP_ARRAY_LEN(readers); i++) {
        const char *version =
            i == 0 ? podman_version(exam) : gp_container_engine_version(exam, readers[i].package);
        const struct gp_engine *engine = gp_container_engine(exam);
        if (!version[0] || gp_version_compare(version, readers[i].first) >= 0 ||
            !uses_cdi(exam, readers[i].title))
            continue;
        bool is_main = engine && strcmp(engine->name, readers[i].title) == 0;
        gp_exam_report(exam, is_main ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "%s %s cannot read the CDI specification of the GPUs", readers[i].title,
                       version);
        gp_exam_evidence(exam, spec, "has additionalGids, of format 0.7.0");
        gp_exam_evidence(exam, "package", "%s %s; %s or newer reads it", readers[i].package,
                         version, readers[i].first);
        gp_exam_why(exam, "It leaves the whole file out: \"unresolvable CDI devices "
                          "nvidia.com/gpu=all\". The toolkit writes this format from 1.19.1 on.");
        fix_format(exam, spec);
        gp_exam_advice(exam, "or update %s to %s or newer, which a newer release of the system has",
                       readers[i].title, readers[i].first);
        return;
    }
}

/* ---- all ---- */

/* The file names the driver libraries it was generated for. */
void gp_container_check_cdi(struct gp_exam *exam)
{
    static const char mark[] = "libcuda.so.";
    const char *path = gp_container_find_cdi(exam);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 4 << 20, NULL);
    if (!text) {
        gp_exam_unreadable(exam, path, -errno);
        return;
    }
    for (const char *p = strstr(text, mark); p && exam->machine.driver[0]; p = strstr(p, mark)) {
        p += sizeof(mark) - 1;
        size_t n = strspn(p, "0123456789.");
        if (n < 5 ||
            (n == strlen(exam->machine.driver) && strncmp(p, exam->machine.driver, n) == 0))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "containers get the libraries of a different driver than the loaded one");
        gp_exam_evidence(exam, path, "names libcuda.so.%.*s", (int)n, p);
        gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s", exam->machine.driver);
        gp_exam_why(exam, "The device specification was generated before the driver was updated.");
        fix_cdi(exam, path);
        return;
    }
    const struct gp_finding *before = exam->last;
    check_format(exam);
    if (exam->last == before)
        check_replaced(exam, path, text);
    if (exam->last == before)
        check_gone(exam, path, text);
    if (exam->last == before)
        check_major(exam, path, text);
    if (exam->last == before)
        check_place(exam, path);
}
