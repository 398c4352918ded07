/* KoboldCpp, which asks other programs for the GPUs and their memory: a part of graphics.vulkan. */
#include "doctor/checks/graphics.h"

#include "doctor/exam.h"
#include "doctor/readers/homes.h"

#include <string.h>

/* The program in this folder, "koboldcpp-linux-x64-nocuda"; NULL: none. */
static const char *program_in(struct gp_exam *exam, const char *folder)
{
    static const char start[] = "koboldcpp-linux-";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, sizeof(start) - 1) == 0)
            return gp_exam_text(exam, "%s/%s", folder, names[i]);
    return NULL;
}

/* It is one file, which users put anywhere. */
static const char *find_program(struct gp_exam *exam)
{
    static const char *const folders[] = {"",           "/koboldcpp", "/KoboldCpp",
                                          "/Downloads", "/bin",       "/.local/bin"};
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *found = program_in(exam, "/opt/koboldcpp");
    for (size_t i = 0; i < homes->count * GP_ARRAY_LEN(folders) && !found; i++)
        found = program_in(exam, gp_exam_text(exam, "%s%s", homes->list[i / GP_ARRAY_LEN(folders)],
                                              folders[i % GP_ARRAY_LEN(folders)]));
    return found;
}

/* Whether a user chooses all by hand is not seen: then nothing is wrong. */
void gp_graphics_check_kobold(struct gp_exam *exam)
{
    static const char *const tools[] = {
        "/usr/bin/vulkaninfo", "/usr/local/bin/vulkaninfo", "/run/current-system/sw/bin/vulkaninfo",
        "/usr/bin/rocminfo",   "/opt/rocm/bin/rocminfo",    NULL};
    const char *program = gp_files_first(&exam->files, tools) ? NULL : find_program(exam);
    if (!program)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "KoboldCpp does not find the GPU by itself: vulkaninfo is not installed");
    gp_exam_evidence(exam, program, "present");
    gp_exam_evidence(exam, tools[0], "missing");
    gp_exam_why(exam, "It asks vulkaninfo for the GPUs and their memory. Without an answer it "
                      "chooses the CPU, unless the backend and the layers are chosen by hand.");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_VULKAN_TOOLS, NULL, NULL);
    gp_exam_advice(exam, "or choose them: --usevulkan --gpulayers NUMBER");
}
