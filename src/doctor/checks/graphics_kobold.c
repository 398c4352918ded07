/* KoboldCpp, which asks other programs for the GPUs and their memory: a part of graphics.vulkan. */
#include "doctor/checks/graphics.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"

#include <string.h>

/* The program in this folder, "koboldcpp-linux-x64-nocuda"; NULL: none. Names with a dot are those
 * of an unfinished download (.part), of its checksum (.sha256) or of settings (.kcpps). */
static const char *program_in(struct gp_exam *exam, const char *folder)
{
    static const char start[] = "koboldcpp-linux-";
    char **names;
    struct stat st;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 && !strchr(names[i], '.') &&
            gp_files_stat(&exam->files, path, &st) == 0 && S_ISREG(st.st_mode) &&
            (st.st_mode & 0111))
            return path;
    }
    return NULL;
}

/* It is one file, which users put anywhere. */
static const char *find_program(struct gp_exam *exam)
{
    static const char *const folders[] = {"", "/koboldcpp", "/KoboldCpp", "/bin", "/.local/bin"};
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *found = program_in(exam, "/opt/koboldcpp");
    for (size_t i = 0; i < homes->count * GP_ARRAY_LEN(folders) && !found; i++)
        found = program_in(exam, gp_exam_text(exam, "%s%s", homes->list[i / GP_ARRAY_LEN(folders)],
                                              folders[i % GP_ARRAY_LEN(folders)]));
    return found;
}

/* ---- what it asks ---- */

/* Whether one of the tools is there, for some user. */
static bool has_tool(struct gp_exam *exam)
{
    static const char *const tools[] = {"/usr/bin/vulkaninfo",
                                        "/usr/local/bin/vulkaninfo",
                                        "/run/current-system/sw/bin/vulkaninfo",
                                        "/home/linuxbrew/.linuxbrew/bin/vulkaninfo",
                                        "/usr/bin/rocminfo",
                                        "/opt/rocm/bin/rocminfo",
                                        NULL};
    const struct gp_homes *homes = gp_homes_of(exam);
    bool is_found =
        gp_files_first(&exam->files, tools) || gp_search_path_program(exam, "vulkaninfo");
    for (size_t i = 0; i < homes->count && !is_found; i++)
        is_found = gp_files_exist(
            &exam->files, gp_exam_text(exam, "%s/.nix-profile/bin/vulkaninfo", homes->list[i]));
    return is_found;
}

/* ---- whether it is to ask ---- */

/* Whether a command starts it with a backend, or with settings that have one. Of one that goes on
 * in another line that is unknown. */
static bool is_choosing(const char *command)
{
    static const char *const words[] = {"--usevulkan",  "--usecuda", "--usecublas", "--usehipblas",
                                        "--useclblast", "--usecpu",  "--config",    ".kcpps"};
    if (!strcasestr(command, "kobold"))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(command, words[i]))
            return true;
    return gp_lines_ends(command, "\\");
}

static bool is_chosen_in_unit(struct gp_exam *exam)
{
    enum { MOST = 64 };
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST);
    for (size_t i = 0; i < n; i++)
        if (is_choosing(commands[i].value))
            return true;
    return false;
}

static bool is_chosen_in_process(struct gp_exam *exam)
{
    struct gp_processes processes = gp_processes_of(exam);
    const char *process;
    char command[1 << 12];
    while ((process = gp_processes_next(exam, &processes, "koboldcpp"))) {
        const char *path = gp_exam_text(exam, "%s/cmdline", process);
        long size = gp_files_read(&exam->files, path, command, sizeof(command));
        for (long i = 0; i + 1 < size; i++)
            if (command[i] == '\0')
                command[i] = ' ';
        if (size > 0 && is_choosing(command))
            return true;
    }
    return false;
}

/* Whether a user chooses all by hand is not always seen: then nothing is wrong. */
void gp_graphics_check_kobold(struct gp_exam *exam)
{
    const char *program = has_tool(exam) ? NULL : find_program(exam);
    if (!program || is_chosen_in_unit(exam) || is_chosen_in_process(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "KoboldCpp does not find the GPU by itself: vulkaninfo is not installed");
    gp_exam_evidence(exam, program, "present");
    gp_exam_evidence(exam, "/usr/bin/vulkaninfo", "missing");
    gp_exam_why(exam, "It asks vulkaninfo for the GPUs and their memory. Without an answer it "
                      "chooses the CPU, unless the backend and the layers are chosen by hand.");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_VULKAN_TOOLS, NULL, NULL);
    gp_exam_advice(exam, "or choose them: --usevulkan --gpulayers NUMBER");
}
