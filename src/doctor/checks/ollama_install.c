/* Ollama: whether its archive was unpacked completely. A finding of system.ollama. */
#include "doctor/checks/ollama.h"

#include "doctor/exam.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

/* Since 0.5.8 each part for GPUs is a backend of ggml in a folder of its own, and is linked with
 * libggml-base.so in the folder above. */
static const struct {
    const char *folder, *library; /* how the names of both begin */
} parts[] = {
    {"cuda_", "libggml-cuda.so"},
    {"rocm", "libggml-hip.so"},
    {"vulkan", "libggml-vulkan.so"},
};

/* The library of a part, "/usr/lib/ollama/cuda_v12/libggml-cuda.so"; NULL: this entry of the
 * folder is none. */
static const char *library_of(struct gp_exam *exam, const char *folder, const char *entry)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        const char *path = gp_exam_text(exam, "%s/%s/%s", folder, entry, parts[i].library);
        if (strncmp(entry, parts[i].folder, strlen(parts[i].folder)) == 0 &&
            gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

/* Distributions that have ggml as a package of its own put it where the loader looks. */
static bool has_ggml_of_system(struct gp_exam *exam)
{
    return gp_system_library(exam, "", "libggml-base.so") ||
           gp_system_library(exam, "", "libggml-base.so.0");
}

/* A part without what all parts need; NULL: there is none. */
static const char *lonely_part(struct gp_exam *exam, const char *folder)
{
    char **names;
    const char *part = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], "libggml-base.", 13) == 0 ||
            strncmp(names[i], "libggml-cpu", 11) == 0)
            return NULL;
        part = part ? part : library_of(exam, folder, names[i]);
    }
    return part && !has_ggml_of_system(exam) ? part : NULL;
}

/* Whether a command or a process names another program than this one. */
static bool is_other(const char *command, const char *program)
{
    size_t n = strlen(program);
    return command && command[0] == '/' &&
           (strncmp(command, program, n) != 0 || (command[n] && command[n] != ' '));
}

/* Whether what runs, or what the service starts, is another program. */
static bool is_another_used(struct gp_exam *exam, const char *program)
{
    struct gp_processes all = gp_processes_of(exam);
    const char *process, *command = NULL;
    while ((process = gp_processes_next(exam, &all, "ollama"))) {
        command = gp_files_text(&exam->files, &exam->arena,
                                gp_exam_text(exam, "%s/cmdline", process), 1 << 12, NULL);
        if (is_other(command, program))
            return true;
    }
    return !command && is_other(gp_service_value(exam, "ollama.service", "ExecStart"), program);
}

/* The program takes the folder next to its own, "/usr/local/bin/ollama", or to what that links to.
 * Another folder is left over. */
static const char *program_of(struct gp_exam *exam, const char *folder)
{
    size_t prefix = (size_t)(strstr(folder, "/lib") - folder);
    const char *program = gp_exam_text(exam, "%.*s/bin/ollama", (int)prefix, folder);
    char target[GP_PATH_SIZE];
    bool is_program =
        gp_files_exist(&exam->files, program) && !gp_files_link(&exam->files, program, target);
    return is_program && !is_another_used(exam, program) ? program : NULL;
}

/* CUDA's runtime is opened by its short name, a link that a broken installation may lack, too. */
static void show_link(struct gp_exam *exam, const char *library)
{
    static const char start[] = "libcudart.so.";
    const char *folder =
        gp_exam_text(exam, "%.*s", (int)(strrchr(library, '/') - library), library);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        unsigned major = strncmp(names[i], start, sizeof(start) - 1) == 0
                             ? gp_version_major(names[i] + sizeof(start) - 1)
                             : 0;
        const char *name = gp_exam_text(exam, "%s/%s%u", folder, start, major);
        if (major < 12 || gp_files_exist(&exam->files, name)) /* that of CUDA 11 is called 11.0 */
            continue;
        gp_exam_evidence(exam, name, "missing; only %s is there", names[i]);
        return;
    }
}

static void mend(struct gp_exam *exam, const char *folder)
{
    static const char *const words[] = {"ollama", NULL};
    /* of Arch Linux; others, such as ollama-bin, are not in its repositories */
    static const char *const names[] = {"ollama", "ollama-cuda", "ollama-rocm", "ollama-vulkan"};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    if (strncmp(folder, "/usr/local/", 11) == 0) {
        gp_exam_command(exam, "install it again", "curl -fsSL https://ollama.com/install.sh | sh");
        gp_exam_advice(exam, "or, without a network, unpack the whole archive in /usr/local; in "
                             "both cases several gigabytes must be free there (df -h /usr/local)");
        gp_exam_command(exam, "", "sudo systemctl restart ollama");
        return;
    }
    const char *all = "";
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(names); k++)
            if (strcmp(packages[i].name, names[k]) == 0)
                all = gp_exam_text(exam, "%s %s", all, names[k]);
    if (all[0] && exam->machine.distro == GP_DISTRO_ARCH)
        gp_exam_command(exam, "install its packages again", "sudo pacman -Syu%s", all);
    else
        gp_exam_advice(exam, "install it again, as it was installed: the package, or the whole "
                             "archive unpacked in /usr");
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
}

bool gp_ollama_report_incomplete(struct gp_exam *exam)
{
    struct gp_service_setting set[1];
    if (gp_service_settings(exam, "OLLAMA_LIBRARY_PATH", set, 1) > 0)
        return false;
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        const char *folder = gp_ollama_folders[i], *program = program_of(exam, folder);
        const char *part = program ? lonely_part(exam, folder) : NULL;
        if (!part)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Ollama is not installed completely: its part for the GPU cannot be loaded, "
                       "and it computes on the CPU");
        gp_exam_evidence(exam, part, "present");
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/libggml-base.so", folder),
                         "missing; no libggml-cpu-*.so either");
        show_link(exam, part);
        gp_exam_why(exam, "Each part for GPUs is linked with libggml-base.so. An installation that "
                          "was interrupted, or for which the disk was too small, leaves some files "
                          "out.");
        mend(exam, folder);
        gp_exam_link(exam, "https://docs.ollama.com/linux");
        return true;
    }
    return false;
}

/* ---- Jetson ---- */

/* The JetPack that Ollama has an archive for, by "# R36 (release), REVISION: 4.3"; 0: another. */
static unsigned jetpack_of(struct gp_exam *exam)
{
    char line[256];
    if (!gp_files_line(&exam->files, "/etc/nv_tegra_release", line, sizeof(line)))
        return 0;
    if (strncmp(line, "# R36 ", 6) == 0)
        return 6;
    return strncmp(line, "# R35 ", 6) == 0 ? 5 : 0;
}

/* Whether the folder has the parts of its makers, and not this one; builds from source have CUDA's
 * in the folder itself. */
static bool lacks_part(struct gp_exam *exam, const char *folder, const char *part)
{
    char **names;
    bool is_split = false;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], "libggml-cuda", 12) == 0 || strcmp(names[i], part) == 0)
            return false;
        is_split = is_split || strncmp(names[i], "libggml-cpu", 11) == 0;
    }
    return is_split;
}

void gp_ollama_check_jetson(struct gp_exam *exam)
{
    unsigned jetpack = exam->machine.container ? 0 : jetpack_of(exam);
    const char *part = gp_exam_text(exam, "cuda_jetpack%u", jetpack);
    for (size_t i = 0; jetpack > 0 && gp_ollama_folders[i]; i++) {
        const char *folder = gp_ollama_folders[i];
        if (!program_of(exam, folder) || !lacks_part(exam, folder, part))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Ollama has no part for this Jetson: it computes on the CPU");
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, part), "missing");
        gp_exam_why(exam,
                    "On JetPack %u it uses only the libraries of an archive of their own, "
                    "ollama-linux-arm64-jetpack%u, which its installer adds to the other.",
                    jetpack, jetpack);
        gp_exam_command(exam, "install it again on this Jetson",
                        "curl -fsSL https://ollama.com/install.sh | sh");
        gp_exam_command(exam, "", "sudo systemctl restart ollama");
        gp_exam_link(exam, "https://docs.ollama.com/linux");
        return;
    }
}
