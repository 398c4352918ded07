#include "doctor/checks/health.h"

#include "doctor/exam.h"

bool gp_health_is_expected(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return exam->snapshot || (exam->driver_words[0] && (exam->is_simulated || m->nvidia_count > 0 ||
                                                        m->is_driver_loaded || m->is_wsl));
}

enum gp_verdict gp_health_verdict(enum gp_health_grade grade)
{
    static const enum gp_verdict verdicts[] = {
        [GP_HEALTH_FAIL] = GP_VERDICT_FAIL,
        [GP_HEALTH_WARN] = GP_VERDICT_WARN,
        [GP_HEALTH_INFO] = GP_VERDICT_INFO,
    };
    return verdicts[grade];
}

void gp_health_prescribe(struct gp_exam *exam, enum gp_cure cure, const struct gp_gpuset *set)
{
    bool is_told = !exam->machine.container;
    const struct gp_health_cure *step;
    for (size_t at = 0; (step = gp_health_cure_next(cure, &at));) {
        if (step->command && !is_told)
            gp_exam_advice(exam, "on the host, outside this container:");
        is_told = is_told || step->command;
        if (step->command)
            gp_exam_command(exam, step->note, step->command, gp_gpuset_list(exam, set));
        else
            gp_exam_advice(exam, "%s", step->note);
    }
}
