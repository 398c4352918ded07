/* A PCIe link that is slower than those of other GPUs of the same model. */
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/hardware.h"

#include <stdlib.h>
#include <string.h>

/* In GT/s: "32.0 GT/s PCIe"; 0: unknown. */
static double speed_of(struct gp_exam *exam, const char *bus_id, const char *name)
{
    char line[64];
    return gp_files_line(&exam->files, gp_hardware_path(exam, bus_id, name), line, sizeof(line))
               ? strtod(line, NULL)
               : 0;
}

/* A udev rule that writes to the configuration of PCI devices. */
static const char *find_rule(struct gp_exam *exam)
{
    static const char folder[] = "/etc/udev/rules.d";
    char **names, text[8192];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (gp_files_read(&exam->files, path, text, sizeof(text)) > 0 && strstr(text, "setpci") &&
            strstr(text, "CAP_EXP"))
            return path;
    }
    return NULL;
}

static void report(struct gp_exam *exam, const struct gp_pci_gpu *gpu, double now, double best)
{
    static const double idle = 2.5; /* to which a GPU without work lowers its link */
    const char *rule = find_rule(exam);
    gp_exam_report(exam, now > idle || rule ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the PCIe link of %s runs at %g GT/s, those of the other GPUs at %g",
                   gp_driver_gpu_words(exam, gpu), now, best);
    gp_exam_evidence(exam, gp_hardware_path(exam, gpu->bus_id, "current_link_speed"), "%g GT/s",
                     now);
    gp_exam_evidence(exam, gp_hardware_path(exam, gpu->bus_id, "max_link_speed"), "%g GT/s", best);
    if (rule)
        gp_exam_evidence(exam, rule, "changes PCIe settings with setpci");
    gp_exam_why(exam,
                "Copies to and from it are as much slower, unless it is idle: without work "
                "a GPU lowers the speed. %s",
                rule ? "A rule that runs when the device is found can freeze the speed of that "
                       "moment."
                     : "A link that trains to a lower speed has a bad signal, or a setting of the "
                       "slot.");
    if (rule)
        gp_exam_command(exam, "turn the rule off; set such bits only once the link is fast",
                        "sudo mv %s %s", gp_exam_quoted(exam, rule),
                        gp_exam_quoted(exam, gp_exam_text(exam, "%s.off", rule)));
    gp_exam_command(exam, "train the links again", "sudo reboot");
    gp_exam_advice(exam, "if it stays slow under load: reseat the card, try another slot or riser, "
                         "and set the slot's generation in the firmware settings");
}

/* Most of at least three others of its model must run at full speed, so that they are not idle. */
void gp_hardware_check_speed(struct gp_exam *exam)
{
    enum { LEAST = 3 };
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        double now = speed_of(exam, gpu->bus_id, "current_link_speed");
        double best = speed_of(exam, gpu->bus_id, "max_link_speed");
        size_t full = 0, others = 0;
        if (now <= 0 || now >= best || gp_hardware_is_asleep(exam, gpu->bus_id))
            continue;
        for (size_t k = 0; k < m->gpu_count; k++) {
            if (k == i || m->gpus[k].device != gpu->device || m->gpus[k].vendor != gpu->vendor)
                continue;
            others++;
            full += speed_of(exam, m->gpus[k].bus_id, "current_link_speed") >= best;
        }
        if (full >= LEAST && full * 3 >= others * 2)
            report(exam, gpu, now, best);
    }
}
