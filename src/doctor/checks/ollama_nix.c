/* Ollama as a package of Nix: whether it was built with the part for the machine's GPUs. */
#include "doctor/checks/ollama.h"

#include "doctor/exam.h"
#include "doctor/readers/log.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

static const char store[] = "/nix/store/", mark[] = "-ollama-";

/* "/nix/store/6x9c…-ollama-0.5.7" of a path below it; NULL: it is none. */
static const char *package_in(struct gp_exam *exam, const char *path)
{
    if (strncmp(path, store, sizeof(store) - 1) != 0)
        return NULL;
    size_t n = sizeof(store) - 1 + strcspn(path + sizeof(store) - 1, "/ ");
    const char *package = gp_exam_text(exam, "%.*s", (int)n, path);
    return strstr(package, mark) ? package : NULL;
}

/* Of the server that runs, of its service, or of the system's programs: the first that is known. */
const char *gp_ollama_of_nix(struct gp_exam *exam)
{
    /* what comm(5) shows of its program, and of the one behind a wrapper */
    static const char *const names[] = {"ollama", ".ollama-wrapped"};
    char real[GP_PATH_SIZE];
    if (strcmp(exam->machine.distro_id, "nixos") != 0)
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        struct gp_processes all = gp_processes_of(exam);
        const char *process;
        while ((process = gp_processes_next(exam, &all, names[i])))
            if (gp_files_link(&exam->files, gp_exam_text(exam, "%s/exe", process), real))
                return package_in(exam, real);
    }
    const char *command = gp_service_value(exam, "ollama.service", "ExecStart");
    if (command)
        return package_in(exam, command);
    return gp_files_real(&exam->files, "/run/current-system/sw/bin/ollama", real)
               ? package_in(exam, real)
               : NULL;
}

/* Whether something in a folder is named after the interface of this GPU. Vulkan is of all. */
static bool has_part(struct gp_exam *exam, const char *folder, const char *const *words)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        for (const char *const *word = words; *word; word++)
            if (strstr(names[i], *word))
                return true;
    return false;
}

static bool has_gpu_part(struct gp_exam *exam, const char *package, bool is_nvidia)
{
    static const char *const of_nvidia[] = {"cuda", "vulkan", NULL};
    static const char *const of_amd[] = {"rocm", "hip", "vulkan", NULL};
    static const char *const folders[] = {"lib", "lib/ollama", "lib/ollama/runners"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (has_part(exam, gp_exam_text(exam, "%s/%s", package, folders[i]),
                     is_nvidia ? of_nvidia : of_amd))
            return true;
    return false;
}

/* A release with its parts beside the program, which is there, and too small to contain them. */
static bool has_program_alone(struct gp_exam *exam, const char *package)
{
    static const char first[] = "0.5.4"; /* 0.5.1 still had them within */
    enum { LEAST = 1 << 20, MOST = 100 << 20 };
    const char *names[] = {gp_exam_text(exam, "%s/bin/.ollama-wrapped", package),
                           gp_exam_text(exam, "%s/bin/ollama", package), NULL};
    const char *version = strrchr(package, '-') + 1;
    const char *program = gp_files_first(&exam->files, names);
    struct stat st;
    return program && version[0] >= '0' && version[0] <= '9' &&
           gp_version_compare(version, first) >= 0 &&
           gp_files_stat(&exam->files, program, &st) == 0 && st.st_size >= LEAST &&
           st.st_size <= MOST;
}

/* The script that starts it names the libraries of the interface that it was built for. */
static bool is_built_for(struct gp_exam *exam, const char *package, bool is_nvidia)
{
    char text[1 << 14];
    return gp_files_read(&exam->files, gp_exam_text(exam, "%s/bin/ollama", package), text,
                         sizeof(text)) > 0 &&
           strncmp(text, "#!", 2) == 0 && strstr(text, is_nvidia ? "cuda" : "rocm");
}

/* A user may want that, even with a GPU. */
static bool is_for_cpu(struct gp_exam *exam)
{
    static const char *const words[] = {"acceleration = false", "ollama-cpu"};
    const char *text =
        gp_files_text(&exam->files, &exam->arena, "/etc/nixos/configuration.nix", 1 << 18, NULL);
    for (size_t i = 0; text && i < GP_ARRAY_LEN(words); i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

void gp_ollama_check_nix(struct gp_exam *exam, const char *package, bool is_nvidia)
{
    const char *interface = is_nvidia ? "cuda" : "rocm";
    if (!has_program_alone(exam, package) || has_gpu_part(exam, package, is_nvidia) ||
        is_for_cpu(exam))
        return;
    bool is_broken = is_built_for(exam, package, is_nvidia);
    gp_exam_report(exam, is_broken ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   is_broken ? "Ollama's package has no part for this GPU, although it was built "
                               "for it: it computes on the CPU"
                             : "Ollama is installed for the CPU only");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/lib", package), "nothing there is for %s",
                     is_nvidia ? "CUDA" : "ROCm");
    if (is_broken)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/bin/ollama", package),
                         "leads to the libraries of %s", is_nvidia ? "CUDA" : "ROCm");
    const struct gp_log_known *said = gp_log_known_of(exam, "ollama.runners-cpu");
    if (said)
        gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_why(exam, is_broken ? "It finds the GPU, but has nothing to compute with on it. Some "
                                  "revisions of nixpkgs left these parts out (0.5.4 to 0.5.7)."
                                : "Its package is another one for each kind of GPU.");
    if (!is_broken) {
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "after setting, in configuration.nix: "
                                     "services.ollama.acceleration = \"%s\"; or, in releases "
                                     "without this option, services.ollama.package = "
                                     "pkgs.ollama-%s;",
                                     interface, interface),
                        "sudo nixos-rebuild switch");
        return;
    }
    gp_exam_command(exam,
                    "a newer revision of nixpkgs has them (with flakes: nix flake update "
                    "first, without --upgrade)",
                    "sudo nixos-rebuild switch --upgrade");
    gp_exam_advice(exam, "if the newest one has none either: as services.ollama.package, that of a "
                         "revision from before");
    gp_exam_link(exam, "https://github.com/NixOS/nixpkgs/issues/375359");
}
