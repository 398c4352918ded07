#include "doctor/checks/driver_fix.h"

void gp_driver_fix_reboot(struct gp_exam *exam, const char *note)
{
    if (gp_machine_is_live(&exam->files))
        gp_exam_advice(exam,
                       "this is a live system, which forgets all changes at a reboot: install "
                       "it to a disk first, started with nomodeset on the kernel command "
                       "line, and run these commands there");
    else
        gp_exam_command(exam, note, "sudo reboot");
}
