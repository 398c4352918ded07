#include "doctor/checks/health.h"

#include "doctor/exam.h"

bool gp_health_is_expected(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return exam->snapshot || (exam->driver_words[0] && (exam->is_simulated || m->nvidia_count > 0 ||
                                                        m->is_driver_loaded || m->is_wsl));
}

/* Each {} in a command is the list of GPUs. */
static const struct {
    enum gp_cure cure;
    const char *command; /* NULL: the note is advice */
    const char *note;
} cures[] = {
    {GP_CURE_RESET, "sudo nvidia-smi --gpu-reset -i %s",
     "once nothing uses the GPU; if the reset is refused, reboot"},
    {GP_CURE_REBOOT, "sudo reboot", ""},
    {GP_CURE_DRAIN, NULL, "start no new work on it, and wait for running work to finish"},
    {GP_CURE_DRAIN, "sudo nvidia-smi --gpu-reset -i %s", "then; if that is refused, reboot"},
    {GP_CURE_REPLACE, NULL,
     "have the machine's maintainer run NVIDIA's field diagnostic and replace the board; until "
     "then, do not use it for important work"},
    {GP_CURE_COOL, NULL, "check fans, dust, airflow and neighboring cards"},
    {GP_CURE_COOL, "sudo gpulse set power-limit=WATTS -i %s",
     "lower power means less heat, until that is fixed"},
    {GP_CURE_SUPPLY, NULL,
     "check the power cables, the power supplies and their redundancy, and the server's BMC log"},
    {GP_CURE_FLASH, NULL, "have the board's manufacturer restore it: it is part of a VBIOS update"},
    {GP_CURE_POWER_LIMIT, "sudo gpulse set power-limit=default -i %s", "if this is not intended"},
    {GP_CURE_ECC_ON, "sudo gpulse set ecc-mode=on -i %s", "takes effect at the next reset"},
    {GP_CURE_COMPUTE, "sudo gpulse set compute-mode=default -i %s", "if this is not intended"},
    {GP_CURE_LOOK, "sudo dmesg | grep -i -e nvrm -e xid", "look there for the reason"},
    {GP_CURE_IMEX, "sudo systemctl restart nvidia-imex", "on all machines of the domain"},
    {GP_CURE_FABRIC, "systemctl status nvidia-fabricmanager",
     "and /var/log/fabricmanager.log give the reason"},
    {GP_CURE_FABRIC, "sudo systemctl restart nvidia-fabricmanager", "when nothing uses the GPUs"},
};

void gp_health_prescribe(struct gp_exam *exam, enum gp_cure cure, const struct gp_gpuset *set)
{
    bool is_told = !exam->machine.container;
    for (size_t i = 0; i < GP_ARRAY_LEN(cures); i++) {
        if (cures[i].cure != cure)
            continue;
        if (cures[i].command && !is_told)
            gp_exam_advice(exam, "on the host, outside this container:");
        is_told = is_told || cures[i].command;
        if (cures[i].command)
            gp_exam_command(exam, cures[i].note, cures[i].command, gp_gpuset_list(exam, set));
        else
            gp_exam_advice(exam, "%s", cures[i].note);
    }
}
