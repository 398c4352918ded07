/* Settings that hold AMD GPUs at their lowest clocks. */
#include "doctor/checks/amd.h"

#include "doctor/readers/searchpath.h"

#include <string.h>

/* Whether a laptop runs on its battery, where low clocks are meant. */
static bool is_on_battery(struct gp_exam *exam)
{
    static const char folder[] = "/sys/class/power_supply";
    char **names, text[32];
    bool is_off = false;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/%s/online", folder, names[i]), text,
                           sizeof(text)))
            continue;
        if (text[0] == '1')
            return false;
        is_off = true;
    }
    return is_off;
}

/* The lines of TLP that set it, which would set it again. */
static void show_tlp(struct gp_exam *exam)
{
    static const char name[] = "RADEON_DPM_PERF_LEVEL_ON_AC";
    static const char path[] = "/etc/tlp.conf";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL), *value;
    size_t length;
    unsigned line = 0;
    if (!text || !gp_assignment_next(&text, name, &line, &value, &length))
        return;
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", path, line), "%.*s", (int)length, value);
    gp_exam_command(exam, "and TLP, which sets it at each start",
                    "sudo sed -i.before '/^%s=/s/=.*/=auto/' %s && sudo tlp start", name, path);
}

static void check_level(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *path = gp_exam_text(
        exam, "/sys/bus/pci/devices/%s/power_dpm_force_performance_level", gpu->bus_id);
    char level[32];
    if (!gp_files_line(&exam->files, path, level, sizeof(level)) ||
        (strcmp(level, "low") != 0 && strcmp(level, "profile_min_sclk") != 0) ||
        is_on_battery(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "AMD GPU %s is held at its lowest clocks", gpu->bus_id);
    gp_exam_evidence(exam, path, "%s", level);
    gp_exam_why(exam, "It computes and draws at a fraction of its speed, whatever the load.");
    gp_exam_command(exam, "let the driver choose", "echo auto | sudo tee %s", path);
    show_tlp(exam);
}

void gp_amd_check_speed(struct gp_exam *exam)
{
    static const char argument[] = "amdgpu.dpm=0";
    char line[4096];
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (strcmp(exam->machine.gpus[i].driver, "amdgpu") == 0)
            check_level(exam, &exam->machine.gpus[i]);
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) ||
        !strstr(line, argument))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s keeps the AMD GPU at the clocks of its start",
                   argument);
    gp_exam_evidence(exam, "/proc/cmdline", "%s", argument);
    gp_exam_why(exam, "It turns power management off: the GPU does not raise its clocks with the "
                      "load.");
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, argument, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}
