/* Laptop GPUs that Linux 3.10 to 3.18 loses when they are turned on: a part of hardware.bus_lost.
 */
#include "doctor/checks/hardware.h"

#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* Only kernels that were built with CONFIG_RCU_FAST_NO_HZ have it. */
static const char setting[] = "/sys/module/rcutree/parameters/rcu_idle_gp_delay";

/* Servers with RHEL 7 have such a kernel, too, and nothing turns their GPUs off and on: a laptop
 * has another GPU besides. */
static bool is_affected(struct gp_exam *exam, char *value, size_t size)
{
    static const char first[] = "3.10", end[] = "3.19";
    const struct gp_machine *m = &exam->machine;
    return m->gpu_count > m->nvidia_count && !m->container &&
           gp_version_compare(m->kernel, first) >= 0 && gp_version_compare(m->kernel, end) < 0 &&
           gp_files_line(&exam->files, setting, value, size) && strtol(value, NULL, 10) > 1;
}

bool gp_hardware_fix_rcu(struct gp_exam *exam)
{
    char value[16];
    if (!is_affected(exam, value, sizeof(value)))
        return false;
    gp_exam_evidence(exam, setting, "%s", value);
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", exam->machine.kernel);
    gp_exam_why(exam, "With Linux 3.10 to 3.18, NVIDIA's driver loses a laptop's GPU while it "
                      "starts it, unless RCU's delay on idle CPUs is 1. Defective "
                      "hardware is rarely the reason.");
    gp_exam_command(exam, "until the next boot", "echo 1 | sudo tee %s", setting);
    gp_cmdline_fix(exam, "rcutree.rcu_idle_gp_delay=1", "for good, from the next boot");
    gp_exam_advice(exam, "or use a kernel from 3.19 on");
    return true;
}

/* Once the start has failed, the driver is unloaded, and the GPU is turned off again: only the log
 * tells. */
void gp_hardware_check_rcu(struct gp_exam *exam)
{
    char value[16];
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_BUS_LOST);
    if (!line || exam->machine.nvidia_count != 1 ||
        gp_exam_has_failed(exam, "hardware.bus_lost", "") ||
        !is_affected(exam, value, sizeof(value)))
        return;
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (exam->machine.gpus[i].vendor == GP_PCI_NVIDIA)
            gp_exam_report(exam, GP_VERDICT_FAIL, "%s falls off the bus when the driver starts it",
                           gp_driver_gpu_words(exam, &exam->machine.gpus[i]));
    gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    (void)gp_hardware_fix_rcu(exam);
}
