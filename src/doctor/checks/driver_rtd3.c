/* Laptops: rules that were made to power the idle GPU off, and keep it on. A finding of
 * driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/xorg.h"
#include "doctor/exam.h"
#include "doctor/readers/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char tool[] = "/usr/bin/envycontrol";

static bool read_number(struct gp_exam *exam, const char *path, unsigned long long *ret)
{
    char line[32];
    bool is = gp_files_line(&exam->files, path, line, sizeof(line));
    *ret = is ? strtoull(line, NULL, 10) : 0;
    return is;
}

/* Whether a rule removes functions of NVIDIA's cards, and one sets their power management. */
static bool is_power_rule(const char *text)
{
    bool removes = false, sets = false;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        bool is_rule = line[strspn(line, " \t")] != '#' && memmem(line, n, "0x10de", 6);
        removes = removes || (is_rule && memmem(line, n, "ATTR{remove}=\"1\"", 16));
        sets = sets || (is_rule && memmem(line, n, "TEST==\"power/control\"", 21) &&
                        memmem(line, n, "ATTR{power/control}=\"auto\"", 26));
        line += n + (line[n] == '\n');
    }
    return removes && sets;
}

/* Such a file of EnvyControl's, or the administrator's own; packages' are left alone. */
static const char *power_rules(struct gp_exam *exam, bool *ret_is_of_tool)
{
    static const char *const folders[] = {"/etc/udev/rules.d", "/usr/lib/udev/rules.d",
                                          "/lib/udev/rules.d"};
    char **names, text[8192];
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[f], names[i]);
            if (!strstr(names[i], "nvidia") ||
                gp_files_read(&exam->files, path, text, sizeof(text)) <= 0 || !is_power_rule(text))
                continue;
            *ret_is_of_tool = strstr(text, "EnvyControl");
            if (f == 0 || *ret_is_of_tool)
                return path;
        }
    }
    return NULL;
}

/* Whether the GPU has a monitor, for which it must be on. */
static bool has_monitor(struct gp_exam *exam, const char *bus_id)
{
    static const char folder[] = "/sys/class/drm";
    char **names, state[32], device[GP_PATH_SIZE];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        int length = (int)strcspn(names[i], "-");
        const char *status = gp_exam_text(exam, "%s/%s/status", folder, names[i]);
        const char *link = gp_exam_text(exam, "%s/%.*s/device", folder, length, names[i]);
        if (names[i][length] && gp_files_line(&exam->files, status, state, sizeof(state)) &&
            strcmp(state, "connected") == 0 && gp_files_link(&exam->files, link, device) &&
            strstr(device, bus_id))
            return true;
    }
    return false;
}

/* Whether a process is seen to have the GPU open: it may keep it on. An X server that draws on
 * another GPU only holds it, and gpulse has just asked it. `ret_is_unsure`: only root sees the
 * files of some processes. */
static bool is_in_use(struct gp_exam *exam, bool *ret_is_unsure)
{
    static const char *const idle[] = {"Xorg", "gpulse"};
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    char name[32], target[GP_PATH_SIZE], **files;
    while ((process = gp_processes_next(exam, &all, ""))) {
        const char *folder = gp_exam_text(exam, "%s/fd", process);
        long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
        if (gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name,
                          sizeof(name)) &&
            (strcmp(name, idle[0]) == 0 || strncmp(name, idle[1], strlen(idle[1])) == 0))
            continue;
        *ret_is_unsure = *ret_is_unsure || n == -EACCES;
        for (long i = 0; i < n; i++)
            if (gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", folder, files[i]),
                              target) &&
                gp_process_file_is_gpu(target))
                return true;
    }
    return false;
}

enum gp_driver_rest gp_driver_rest_of(struct gp_exam *exam, const char *bus_id, const char *mode)
{
    enum { A_WHILE_MS = 10 * 60 * 1000 };
    const char *power = gp_exam_text(exam, "/sys/bus/pci/devices/%s/power", bus_id);
    const char *own = gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/power", bus_id);
    char line[32], text[4096];
    unsigned long long off_ms, on_ms;
    bool is_set =
        gp_files_line(&exam->files, gp_exam_text(exam, "%s/control", power), line, sizeof(line)) &&
        strcmp(line, "auto") == 0 && gp_files_read(&exam->files, own, text, sizeof(text)) > 0 &&
        strstr(text, mode);
    bool is_on = gp_files_line(&exam->files, gp_exam_text(exam, "%s/runtime_status", power), line,
                               sizeof(line)) &&
                 strcmp(line, "active") == 0;
    bool is_known =
        read_number(exam, gp_exam_text(exam, "%s/runtime_suspended_time", power), &off_ms);
    bool is_new = read_number(exam, gp_exam_text(exam, "%s/runtime_active_time", power), &on_ms) &&
                  on_ms < A_WHILE_MS;
    if (!is_set || !is_on || is_new || off_ms > 0 || has_monitor(exam, bus_id))
        return GP_DRIVER_SLEEPS;
    return is_known ? GP_DRIVER_NEVER_SLEEPS : GP_DRIVER_IS_ON;
}

static void report(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *rules,
                   bool is_of_tool, bool is_unsure)
{
    const char *folder = gp_exam_text(exam, "/sys/bus/pci/devices/%s/power", gpu->bus_id);
    gp_exam_report(exam, is_unsure ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "%s stays on: %s %s in the way of the driver's own power management",
                   gp_driver_gpu_words(exam, gpu),
                   is_of_tool ? "EnvyControl's rules" : "rules of udev",
                   is_unsure ? "may be" : "are");
    gp_exam_evidence(exam, rules,
                     "removes the card's sound and USB functions, and sets power/control");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/runtime_status", folder), "active");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/runtime_suspended_time", folder),
                     "0 ms: it was never off");
    gp_exam_evidence(exam, gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/power", gpu->bus_id),
                     "Runtime D3 status: Enabled (fine-grained)");
    gp_exam_why(exam, "Only Turing's GPUs need such rules; for Ampere and newer the driver does "
                      "this by itself. A laptop's battery lasts much shorter with the GPU on.");
    gp_exam_can_wait(exam);
    if (is_unsure)
        gp_exam_advice(exam, "run gpulse doctor as root first: a program of another user may keep "
                             "the GPU on");
    if (is_of_tool && gp_files_exist(&exam->files, tool))
        gp_exam_command(exam, "hybrid mode without --rtd3, which removes the rules",
                        "sudo envycontrol -s hybrid");
    else
        gp_exam_command(exam,
                        "turn these rules off; the original file is kept next to it, where udev "
                        "does not read it",
                        "sudo sed -i.before '/0x10de/{/remove\\|power.control/s/^/#/}' %s",
                        gp_exam_quoted(exam, rules));
    gp_driver_fix_reboot(exam, "");
    gp_exam_advice(exam, "if it stays on then: a program uses it all the time; gpulse ps names "
                         "those that compute");
    if (is_of_tool)
        gp_exam_link(exam, "https://github.com/bayasdev/envycontrol/issues/106");
}

void gp_driver_check_rtd3(struct gp_exam *exam)
{
    enum { AMPERE = 80 };
    const struct gp_machine *m = &exam->machine;
    bool is_of_tool = false, is_unsure = false;
    if (!gp_machine_is_laptop(&exam->files) || !m->is_driver_loaded || m->container ||
        m->gpu_count <= m->nvidia_count)
        return;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (!gp_driver_is_ours(gpu) || !gpu->chip || gpu->chip->compute_capability < AMPERE ||
            gp_driver_rest_of(exam, gpu->bus_id, "Enabled (fine-grained)") !=
                GP_DRIVER_NEVER_SLEEPS)
            continue;
        const char *rules = power_rules(exam, &is_of_tool);
        if (rules && !gp_xorg_draws_on_nvidia(exam) && !is_in_use(exam, &is_unsure))
            report(exam, gpu, rules, is_of_tool, is_unsure);
        return;
    }
}
