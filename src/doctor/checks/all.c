#include "doctor/checks/all.h"

#include "doctor/checks/apt_fix.h"
#include "doctor/checks/running.h"

#include <stddef.h>

static const struct gp_check *const groups[] = {
    gp_checks_platform,  gp_checks_hardware, gp_checks_driver,
    gp_checks_container, gp_checks_log,      gp_checks_earlier,
    gp_checks_health,    gp_checks_cuda,     gp_checks_python,
    gp_checks_system,    gp_checks_amd,      gp_checks_intel,
    gp_checks_graphics,  gp_checks_known,    NULL,
};

static void finish(struct gp_exam *exam, struct gp_finding *first)
{
    gp_apt_release_pins(exam, first);
    gp_running_warn(exam, first);
}

const struct gp_check_list gp_checks_all = {groups, finish};
