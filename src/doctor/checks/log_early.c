/* Services that looked for a GPU before NVIDIA's driver was there, as the machine started: a
 * finding of log.known. */
#include "doctor/checks/container.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/readers/log.h"

#include <string.h>

/* That there is no GPU, from programs that look for one only when they start. */
static const char none_found[] = "ollama.no-gpu,ollama.fallback,ollama.init-100,ollama.no-nvidia";

/* Whether the driver was loaded for the first time after this line was logged, as a kernel log
 * tells that was begun before. The journal's lines of a service are those since its last start. */
static bool is_early(struct gp_exam *exam, const struct gp_log_known *known)
{
    const struct gp_log *log = gp_log_of(exam);
    const struct gp_log_loaded *loaded = &log->loaded;
    return exam->machine.is_driver_loaded && !exam->machine.container &&
           known->verdict >= GP_VERDICT_WARN && known->unit &&
           gp_exam_is_listed(none_found, known->id) && loaded->text &&
           log->first_ns < known->since_boot_ns && loaded->time_ns > known->since_boot_ns;
}

/* For the next boots: systemd-modules-load.service is before all services. */
static void fix_order(struct gp_exam *exam)
{
    if (gp_container_is_nixos(exam)) {
        gp_exam_advice(exam, "and for the next boots, in configuration.nix, add \"nvidia\" and "
                             "\"nvidia_uvm\" to boot.kernelModules");
        return;
    }
    gp_exam_command(
        exam, "for the next boots: load the driver before all services",
        "printf '%%s\\n' %s nvidia_uvm | sudo tee /etc/modules-load.d/nvidia-early.conf",
        gp_exam_quoted(exam, gp_driver_module_name(exam)));
}

bool gp_log_report_early(struct gp_exam *exam, const struct gp_log_known *known)
{
    static const uint64_t settled_ns = 120 * GP_NS_PER_S; /* later: loaded by hand */
    const struct gp_log *log = gp_log_of(exam);
    if (!is_early(exam, known))
        return false;
    const struct gp_log_loaded *loaded = &log->loaded;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s was started before NVIDIA's driver was loaded, found no GPU, and stays on "
                   "the CPU",
                   known->unit);
    for (size_t i = 0; i < log->known_count; i++)
        if (log->known[i].path == known->path && is_early(exam, &log->known[i]))
            gp_log_show_known(exam, &log->known[i]);
    gp_exam_evidence(exam, loaded->where, "%s, %.1f s later", loaded->text,
                     (double)(loaded->time_ns - known->since_boot_ns) / (double)GP_NS_PER_S);
    gp_exam_why(exam, "It looks for GPUs only when it starts; the driver is loaded now.");
    gp_exam_command(exam, "now", "sudo systemctl restart %s", gp_exam_quoted(exam, known->unit));
    if (loaded->time_ns < settled_ns)
        fix_order(exam);
    return true;
}
