/* A GPU that is off the bus: what is left of its card, what may keep it off, and what misses it. */
#include "doctor/checks/container.h"
#include "doctor/checks/hardware.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/services.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"

#include <string.h>

const char *gp_hardware_left_function(struct gp_exam *exam)
{
    static const char top[] = "/sys/bus/pci/devices";
    static const char *const classes[] = {"0x0403", "0x0c03", "0x0c80"};
    char **names, vendor[16], class[16];
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n; i++) {
        const char *dot = strrchr(names[i], '.');
        if (!dot || strcmp(dot, ".0") == 0 ||
            !gp_files_line(&exam->files, gp_hardware_path(exam, names[i], "vendor"), vendor,
                           sizeof(vendor)) ||
            !gp_files_line(&exam->files, gp_hardware_path(exam, names[i], "class"), class,
                           sizeof(class)) ||
            strcmp(vendor, "0x10de") != 0)
            continue;
        bool is_of_card = false;
        for (size_t c = 0; c < GP_ARRAY_LEN(classes); c++)
            is_of_card = is_of_card || strncmp(class, classes[c], strlen(classes[c])) == 0;
        const char *gpu = gp_exam_text(exam, "%s/%.*s.0", top, (int)(dot - names[i]), names[i]);
        if (is_of_card && !gp_files_exist(&exam->files, gpu))
            return names[i];
    }
    return NULL;
}

bool gp_hardware_is_started(struct gp_exam *exam, const char *unit)
{
    static const char *const targets[] = {"graphical.target", "basic.target", "sysinit.target",
                                          "default.target", "display-manager.service"};
    bool is = gp_service_is_enabled(exam, unit);
    for (size_t i = 0; i < GP_ARRAY_LEN(targets) && !is; i++)
        is = gp_service_is_wanted(exam, unit, targets[i]);
    return is;
}

/* Turning it off is such a tool's purpose: whether anything needs the GPU all the same. */
bool gp_hardware_is_missed(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    bool is = exam->pythons || gp_toolkits_of(exam)->count > 0 || gp_container_refusal(exam);
    for (size_t i = 0; i < envs->count && !is; i++)
        is = gp_pyenv_torch(exam, &envs->list[i], &torch) && torch.cuda[0];
    return is;
}
