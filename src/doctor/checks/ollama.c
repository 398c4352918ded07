/* Ollama: whether its installation has the part for the machine's GPUs. */
#include "doctor/checks/ollama.h"

#include "doctor/checks/amd.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/system.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/gfxlist.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

static const char *const programs[] = {"/usr/local/bin/ollama", "/usr/bin/ollama"};

/* Whether this container was given an AMD GPU to compute on. */
static bool is_given(struct gp_exam *exam)
{
    return exam->machine.nvidia_count == 0 && exam->machine.amd_count > 0 &&
           gp_files_exist(&exam->files, "/dev/kfd");
}

static bool is_installed(const struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_files_exist(&exam->files, programs[i]))
            return true;
    return false;
}

bool gp_ollama_is_there(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    if (!is_installed(exam) && (m->container || !gp_ollama_of_nix(exam)))
        return gp_ollama_is_in_docker(exam);
    return m->container ? is_given(exam) || gp_files_exist(&exam->files, "/dev/nvidiactl")
                        : m->nvidia_count > 0 || m->amd_count > 0 || m->is_jetson;
}

/* Arch Linux has a package for each kind of GPU, and one for the CPU. */
static bool report_package(struct gp_exam *exam, const char *wanted)
{
    static const char *const words[] = {"ollama", NULL};
    struct gp_package *packages;
    long count = exam->machine.distro == GP_DISTRO_ARCH
                     ? gp_packages_read(&exam->files, &exam->arena, words, &packages)
                     : 0;
    const char *plain = NULL;
    for (long i = 0; i < count; i++) {
        if (strcmp(packages[i].name, wanted) == 0 || strcmp(packages[i].name, "ollama-vulkan") == 0)
            return false;
        if (strcmp(packages[i].name, "ollama") == 0)
            plain = packages[i].version;
    }
    if (!plain)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "Ollama is installed for the CPU only: %s is missing",
                   wanted);
    gp_exam_evidence(exam, "package", "ollama %s", plain);
    gp_exam_command(exam, "its part for this GPU", "sudo pacman -Syu %s", wanted);
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
    return true;
}

/* Arch's package of the part is installed, but without it: a release that was built wrongly. */
static bool fix_package(struct gp_exam *exam, const char *name)
{
    const char *const words[] = {name, NULL};
    struct gp_package *packages;
    long count = exam->machine.distro == GP_DISTRO_ARCH
                     ? gp_packages_read(&exam->files, &exam->arena, words, &packages)
                     : 0;
    if (count <= 0)
        return false;
    gp_exam_evidence(exam, "package", "%s %s", packages[0].name, packages[0].version);
    gp_exam_why(exam, "The package of this part is installed, but this release of it lacks the "
                      "files.");
    gp_exam_command(exam, "if there is a newer release", "sudo pacman -Syu ollama %s",
                    packages[0].name);
    gp_exam_advice(exam,
                   "else install the release before it of both packages, with pacman -U, from "
                   "/var/cache/pacman/pkg or archive.archlinux.org");
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
    return true;
}

/* Fedora and openSUSE have no CUDA to build their own package with. */
static bool fix_free_package(struct gp_exam *exam, const char *folder)
{
    enum gp_distro distro = exam->machine.distro;
    bool is_free =
        distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_RHEL || distro == GP_DISTRO_SUSE;
    if (!is_free || exam->machine.nvidia_count == 0 || strcmp(folder, "/usr/lib64/ollama") != 0)
        return false;
    gp_exam_why(exam, "The distribution's package is built without CUDA.");
    gp_exam_command(exam, "", "sudo %s remove ollama", distro == GP_DISTRO_SUSE ? "zypper" : "dnf");
    gp_exam_command(exam, "install that of its makers instead",
                    "curl -fsSL https://ollama.com/install.sh | sh");
    return true;
}

static void fix_installed(struct gp_exam *exam, bool is_by_installer)
{
    static const char words[] = "install it again, while the GPU's driver works: the installer "
                                "takes the parts for the GPUs that it finds";
    if (is_by_installer)
        gp_exam_command(exam, words, "curl -fsSL https://ollama.com/install.sh | sh");
    else
        gp_exam_advice(exam, "%s; its page for Linux says how", words);
}

/* The archive of its makers has a folder for each; versions before 0.4 had them in the program. */
static bool report_folder(struct gp_exam *exam, const char *prefix, const char *package)
{
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, gp_ollama_folders[i], &names);
        bool is_found = false, is_split = false;
        for (long k = 0; k < n; k++) {
            is_found = is_found || strncmp(names[k], prefix, strlen(prefix)) == 0 ||
                       strstr(names[k], gp_exam_text(exam, "libggml-%.4s", prefix));
            is_split = is_split || strncmp(names[k], "libggml-cpu", 11) == 0;
        }
        if (n <= 0 || is_found || !is_split)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Ollama has no part for this GPU: it computes on the "
                       "CPU");
        gp_exam_evidence(exam, gp_ollama_folders[i], "nothing there begins with %s", prefix);
        if (exam->machine.container)
            gp_exam_advice(exam, "use the image for AMD's GPUs, ollama/ollama:rocm, instead of "
                                 "ollama/ollama");
        else if (!fix_package(exam, package) && !fix_free_package(exam, gp_ollama_folders[i]))
            fix_installed(exam, i == 0);
        gp_exam_link(exam, "https://ollama.com/download/linux");
        return true;
    }
    return false;
}

/* Versions before 0.4 contained the parts, and were several hundred megabytes. */
enum { LEAST_ALONE = 1 << 20, MOST_ALONE = 100 << 20 };

bool gp_ollama_has_cuda(struct gp_exam *exam, const char *program)
{
    struct stat st;
    char **names;
    if (gp_files_stat(&exam->files, program, &st) < 0)
        return false;
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        long n = gp_files_list(&exam->files, &exam->arena, gp_ollama_folders[i], &names);
        for (long k = 0; k < n; k++)
            if (strncmp(names[k], "cuda_", 5) == 0 || strstr(names[k], "libggml-cuda"))
                return true;
    }
    return st.st_size > MOST_ALONE;
}

const char *gp_ollama_before_split(struct gp_exam *exam)
{
    struct stat st;
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        const char *path = gp_exam_text(exam, "%s/runners", gp_ollama_folders[i]);
        if (gp_files_exist(&exam->files, path))
            return path;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_files_stat(&exam->files, programs[i], &st) == 0 && st.st_size > MOST_ALONE)
            return programs[i];
    return NULL;
}

static void report_alone(struct gp_exam *exam)
{
    struct stat st;
    if (gp_files_stat(&exam->files, programs[0], &st) < 0 || st.st_size < LEAST_ALONE ||
        st.st_size > MOST_ALONE)
        return;
    for (size_t i = 0; gp_ollama_folders[i]; i++)
        if (gp_files_exist(&exam->files, gp_ollama_folders[i]))
            return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Ollama is not installed completely: it has no libraries, and computes on the "
                   "CPU");
    gp_exam_evidence(exam, gp_ollama_folders[0], "missing");
    gp_exam_evidence(exam, programs[0], "present, %lld MiB", (long long)st.st_size >> 20);
    gp_exam_why(exam, "Its archive has the program and a directory of libraries for each kind of "
                      "GPU; the program alone finds the GPU but cannot use it.");
    gp_exam_command(exam, "install it again, with its libraries",
                    "curl -fsSL https://ollama.com/install.sh | sh");
    gp_exam_advice(exam, "or, without a network, unpack the whole archive in /usr/local (before: "
                         "/usr), not the program alone");
    gp_exam_link(exam, "https://ollama.com/download/linux");
}

/* The parts are for versions of CUDA, "cuda_v12": the driver must be new enough for one of them. */
static bool report_driver(struct gp_exam *exam)
{
    static const char start[] = "cuda_v";
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; nv.driver[0] && gp_ollama_folders[i]; i++) {
        char **names;
        const char *least = NULL, *part = NULL;
        long n = gp_files_list(&exam->files, &exam->arena, gp_ollama_folders[i], &names);
        for (long k = 0; k < n; k++) {
            bool is_part = strncmp(names[k], start, sizeof(start) - 1) == 0;
            const char *floor = is_part ? gp_cuda_floor(names[k] + sizeof(start) - 1) : "";
            if (floor[0] && (!least || gp_version_compare(floor, least) < 0)) {
                least = gp_exam_text(exam, "%s", floor);
                part = names[k];
            }
        }
        if (!least || gp_driver_reaches(nv.driver, least))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Ollama needs driver %s or newer; this machine has %s: it computes on the "
                       "CPU",
                       least, nv.driver);
        gp_exam_evidence(exam, gp_ollama_folders[i], "%s is its oldest part for NVIDIA's GPUs",
                         part);
        gp_driver_fix_at_least(exam, least);
        return true;
    }
    return false;
}

static bool report_age(struct gp_exam *exam)
{
    enum { OLDEST = 50 };
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; i < nv.count; i++)
        if (nv.gpus[i].capability == 0 || nv.gpus[i].capability >= OLDEST)
            return false;
    if (nv.count == 0)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "Ollama does not support %s",
                   gp_nvidia_gpu_words(exam, &nv.gpus[0]));
    gp_exam_why(exam,
                "It needs compute capability 5.0 or newer, and otherwise computes on the CPU.");
    gp_exam_link(exam, "https://github.com/ollama/ollama/blob/main/docs/gpu.md");
    gp_exam_advice(exam, "use a newer GPU, or llama.cpp built for this one");
    return true;
}

/* Models for which Ollama's ROCm has code, and a value of the variable for their relatives. */
static const char *const supported[] = {
    "gfx900",  "gfx906",  "gfx908",  "gfx90a",  "gfx940",  "gfx941",  "gfx942",  "gfx1010",
    "gfx1012", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"};
static const struct {
    const char *start, *value;
} relatives[] = {{"gfx103", "10.3.0"}, {"gfx110", "11.0.0"}, {"gfx90", "9.0.0"}};

/* Integrated GPUs that compute well enough as their relatives. */
static const char *const integrated[] = {"gfx1035", "gfx1103"};

static bool has_vulkan(struct gp_exam *exam)
{
    for (size_t i = 0; gp_ollama_folders[i]; i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/vulkan", gp_ollama_folders[i])))
            return true;
    return false;
}

/* Whether it is worth using: a card, or one of these where Ollama does not have Vulkan. */
static bool is_meant(struct gp_exam *exam, const char *name)
{
    if (gp_gfx_has_card(&exam->machine))
        return true;
    if (has_vulkan(exam))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(integrated); i++)
        if (strcmp(name, integrated[i]) == 0)
            return true;
    return false;
}

static bool is_supported(struct gp_exam *exam, const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(supported); i++)
        if (strcmp(name, supported[i]) == 0)
            return true;
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        const char *path = gp_exam_text(exam, "%s/rocm/rocblas/library", gp_ollama_folders[i]);
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, path, &names);
        for (long k = 0; k < n; k++)
            if (strstr(names[k], gp_exam_text(exam, "%s.", name)))
                return true;
    }
    return false;
}

/* What a relative of a supported model is taken for; NULL: it has none. */
static const char *relative_of(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(relatives); i++)
        if (strncmp(name, relatives[i].start, strlen(relatives[i].start)) == 0)
            return relatives[i].value;
    return NULL;
}

const char *gp_ollama_override(struct gp_exam *exam)
{
    struct gp_gfxlist targets;
    (void)gp_amd_targets(exam, &targets);
    if (targets.count != 1 || !is_meant(exam, targets.names[0]))
        return NULL;
    return is_supported(exam, targets.names[0]) ? "" : relative_of(targets.names[0]);
}

static const char override_name[] = "HSA_OVERRIDE_GFX_VERSION";

/* Ollama's server, as it runs. */
struct server {
    const char *process; /* "/proc/1234"; NULL: none is seen, or not with its variables */
    const char *value;   /* of the variable; NULL: not set */
    bool is_by_hand;     /* a user has started it in a session */
    bool is_of_user;     /* a service of a user's systemd, with settings of its own */
};

/* The value of a variable in "A=1\0B=2\0"; NULL: it is not set. */
static const char *variable_in(const char *text, size_t length, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = text; p < text + length; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

/* A container on this machine has its own settings. */
static bool is_of_container(const char *cgroup)
{
    static const char *const words[] = {"docker", "libpod", "kubepods", "lxc"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(cgroup, words[i]))
            return true;
    return false;
}

/* "0::/user.slice/…/app.slice/ollama.service" */
static bool ends_with_service(const char *cgroup)
{
    static const char end[] = ".service";
    size_t n = strcspn(cgroup, "\n");
    return n >= sizeof(end) - 1 &&
           strncmp(cgroup + n - (sizeof(end) - 1), end, sizeof(end) - 1) == 0;
}

static struct server find_server(struct gp_exam *exam)
{
    enum { MOST_TEXT = 1 << 16 };
    char line[1024];
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    while ((process = gp_processes_next(exam, &all, "ollama"))) {
        size_t length;
        long size = gp_files_read(&exam->files, gp_exam_text(exam, "%s/cmdline", process), line,
                                  sizeof(line));
        const char *second = size > 0 ? line + strlen(line) + 1 : line;
        const char *text =
            size > second - line && strcmp(second, "serve") == 0
                ? gp_files_text(&exam->files, &exam->arena,
                                gp_exam_text(exam, "%s/environ", process), MOST_TEXT, &length)
                : NULL;
        if (!text || length == 0)
            continue;
        if (gp_files_read(&exam->files, gp_exam_text(exam, "%s/cgroup", process), line,
                          sizeof(line)) <= 0)
            line[0] = '\0';
        if (is_of_container(line))
            continue;
        bool is_of_user = strstr(line, "/user@") && ends_with_service(line);
        return (struct server){process, variable_in(text, length, override_name),
                               strstr(line, "user.slice") && !is_of_user, is_of_user};
    }
    return (struct server){0};
}

/* The service has the setting, but the server that runs is another one, or older than that. */
static void report_untold(struct gp_exam *exam, const struct server *server, const char *gfx,
                          const struct gp_service_setting *set)
{
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        server->is_by_hand
            ? "Ollama computes on the CPU: it was started by hand, and only its service is set to "
              "take the GPU, a %s, for another one"
            : "Ollama computes on the CPU: its service was not restarted since it was set to take "
              "the GPU, a %s, for another one",
        gfx);
    gp_exam_evidence(exam, set->where, "%s=%s", override_name, set->value);
    gp_exam_evidence(exam, server->process, "ollama serve, without %s", override_name);
    if (server->is_by_hand)
        gp_exam_why(exam, "What systemd sets for a service does not hold for a program that is "
                          "started in a terminal.");
    if (server->is_by_hand)
        gp_exam_command(exam, "stop the one that was started by hand", "kill %s",
                        server->process + sizeof("/proc"));
    gp_exam_command(exam, "", "sudo systemctl daemon-reload");
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
    if (server->is_by_hand)
        gp_exam_advice(exam, "or, in a terminal: %s=%s ollama serve", override_name, set->value);
}

/* Nothing makes it take the GPU for one that it has code for. */
static void report_unset(struct gp_exam *exam, const struct server *server, const char *place,
                         const char *gfx, const char *value)
{
    bool by_hand = server->is_by_hand;
    const char *shell = gp_machine_variable(&exam->machine, override_name);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Ollama%s computes on the CPU: it has no code for %s, and is not set to take "
                   "the GPU for another one",
                   by_hand ? "" : "'s service", gfx);
    gp_exam_evidence(exam, place, "%s", gfx);
    gp_exam_evidence(exam, by_hand ? server->process : "ollama.service", "%s is not set",
                     override_name);
    if (by_hand) {
        gp_exam_command(exam, "stop it, and start it so", "%s=%s ollama serve", override_name,
                        value);
    } else {
        if (shell)
            gp_exam_evidence(exam, "this shell", "%s=%s, which the service does not get",
                             override_name, shell);
        gp_exam_command(exam, "in [Service] add the line below", "sudo systemctl edit ollama");
        gp_exam_advice(exam, "Environment=\"%s=%s\"", override_name, value);
        gp_exam_command(exam, "", "sudo systemctl restart ollama");
    }
    gp_exam_link(exam, "https://github.com/ollama/ollama/blob/main/docs/gpu.md");
}

/* Whether it is a card that no model with code is a relative of, and nothing of the service's
 * settings is for it, nor a part of this release. */
static bool is_without_relative(struct gp_exam *exam, const char *gfx)
{
    struct gp_service_setting set[1];
    return strcmp(gfx, "gfx803") == 0 && !has_vulkan(exam) &&
           gp_service_is_installed(exam, "ollama.service") && !find_server(exam).is_by_hand &&
           gp_service_settings(exam, override_name, set, 1) == 0;
}

/* Newer releases can reach it by Vulkan. */
static void report_no_relative(struct gp_exam *exam, const char *place, const char *gfx)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Ollama computes on the CPU: its ROCm has no code for this AMD GPU (%s)", gfx);
    gp_exam_evidence(exam, place, "%s", gfx);
    gp_exam_why(exam, "Nor is there a similar model with code that it could be taken for.");
    if (exam->machine.distro == GP_DISTRO_ARCH)
        gp_exam_command(exam, "its part for Vulkan", "sudo pacman -Syu ollama ollama-vulkan");
    else
        gp_exam_command(exam, "a newer release, which can use the GPU by Vulkan",
                        "curl -fsSL https://ollama.com/install.sh | sh");
    gp_exam_command(exam, "in [Service] add the line below", "sudo systemctl edit ollama");
    gp_exam_advice(exam, "Environment=\"OLLAMA_VULKAN=1\"");
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
    gp_exam_link(exam, "https://github.com/ollama/ollama/blob/main/docs/gpu.md");
}

/* The only AMD GPU is of a model that Ollama must be set to take for another one. */
static void report_amd(struct gp_exam *exam)
{
    enum { SERVICES = 16 };
    struct gp_service_setting all[SERVICES], *set = NULL;
    struct gp_gfxlist targets;
    const char *place = gp_amd_targets(exam, &targets);
    if (targets.count != 1 || is_supported(exam, targets.names[0]))
        return;
    if (is_without_relative(exam, targets.names[0])) {
        report_no_relative(exam, place, targets.names[0]);
        return;
    }
    if (!is_meant(exam, targets.names[0]))
        return;
    const char *value = relative_of(targets.names[0]);
    struct server server = find_server(exam);
    size_t n = gp_service_settings(exam, override_name, all, SERVICES);
    for (size_t i = 0; i < n && !set; i++)
        set = strncmp(all[i].service, "ollama", 6) == 0 ? &all[i] : NULL;
    bool is_set = set != NULL;
    if (!value || (server.process && server.value) || server.is_of_user)
        return;
    if (is_set && server.process)
        report_untold(exam, &server, targets.names[0], set);
    else if (!is_set && (server.is_by_hand || gp_service_is_installed(exam, "ollama.service")))
        report_unset(exam, &server, place, targets.names[0], value);
}

/* A value of OLLAMA_LLM_LIBRARY is the name of a part, "cuda_v12"; Ollama skips the others.
 * Versions before 0.12, without a part for CUDA 13, ignored a name that they did not know. */
static bool report_library(struct gp_exam *exam)
{
    static const char variable[] = "OLLAMA_LLM_LIBRARY";
    struct gp_service_setting set[1];
    bool is_service = gp_service_settings(exam, variable, set, 1) > 0;
    const char *value = is_service                ? set[0].value
                        : exam->machine.container ? gp_machine_variable(&exam->machine, variable)
                                                  : NULL;
    const char *folder = NULL;
    for (size_t i = 0; value && gp_ollama_folders[i] && !folder; i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/cuda_v13", gp_ollama_folders[i])))
            folder = gp_ollama_folders[i];
    if (!folder || !value[0] || strncmp(value, "cpu", 3) == 0 || strchr(value, '/') ||
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, value)))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Ollama computes on the CPU: %s names a part that it does not have", variable);
    gp_exam_evidence(exam, is_service ? set[0].where : variable, "%s", value);
    gp_exam_evidence(exam, folder, "nothing there is called %s", value);
    gp_exam_why(exam, "It uses only the part with this name, such as cuda_v12, and skips all "
                      "others; without the variable it chooses by itself.");
    if (is_service) {
        gp_exam_command(exam, "remove that line", "sudo systemctl edit --full %s",
                        gp_exam_quoted(exam, set[0].service));
        gp_exam_command(exam, "", "sudo systemctl restart %s",
                        gp_exam_quoted(exam, set[0].service));
    } else {
        gp_exam_advice(exam,
                       "do not set %s for the container (in its image, compose file, or the "
                       "values of the Helm chart), and start it again",
                       variable);
    }
    return true;
}

void gp_ollama_check(struct gp_exam *exam)
{
    bool is_nvidia = exam->machine.nvidia_count > 0;
    bool is_card = is_nvidia || gp_gfx_has_card(&exam->machine);
    const char *package = is_nvidia ? "ollama-cuda" : "ollama-rocm";
    const char *of_nix = exam->machine.container ? NULL : gp_ollama_of_nix(exam);
    if (exam->machine.is_jetson) {
        gp_ollama_check_jetson(exam);
        return;
    }
    if (of_nix && is_card) {
        gp_ollama_check_nix(exam, of_nix, is_nvidia);
        return;
    }
    if (report_library(exam) || (is_nvidia && gp_ollama_report_needs(exam)) ||
        (is_nvidia && exam->machine.container) || !is_installed(exam) ||
        gp_ollama_report_incomplete(exam))
        return;
    if (is_card && !report_package(exam, package) &&
        !report_folder(exam, is_nvidia ? "cuda_" : "rocm", package) &&
        !(is_nvidia && (report_age(exam) || report_driver(exam))))
        report_alone(exam);
    if (!is_nvidia)
        report_amd(exam);
}
