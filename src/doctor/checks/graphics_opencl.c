/* Drivers of OpenCL next to each other: a program loads all of them, and one can crash it. */
#include "doctor/checks/graphics.h"

#include "doctor/exam.h"
#include "doctor/readers/log.h"
#include "doctor/readers/opencl.h"

#include <string.h>

static const char *const mesa[] = {"Rusticl", "MesaOpenCL"};

/* Mesa's file; NULL: it has none. */
static const char *file_of_mesa(struct gp_exam *exam)
{
    const char *found = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(mesa) && !found; i++)
        found = gp_opencl_file(exam, mesa[i]);
    return found;
}

/* The file of a driver by the maker of one of the GPUs; NULL: there is none. Whether each of the
 * makers has one: Mesa's may be the only driver of another's GPU. */
static const char *file_of_maker(struct gp_exam *exam, bool *ret_have_all)
{
    const struct gp_machine *m = &exam->machine;
    const struct {
        size_t gpus;
        const char *word;
    } makers[] = {
        {m->amd_count, "amdocl"}, {m->nvidia_count, "nvidia-opencl"}, {m->intel_count, "igdrcl"}};
    const char *found = NULL;
    *ret_have_all = true;
    for (size_t i = 0; i < GP_ARRAY_LEN(makers); i++) {
        const char *path = makers[i].gpus > 0 ? gp_opencl_file(exam, makers[i].word) : NULL;
        *ret_have_all = *ret_have_all && (path || makers[i].gpus == 0);
        found = found ? found : path;
    }
    return found;
}

bool gp_graphics_has_two_opencl(struct gp_exam *exam)
{
    bool have_all;
    return !exam->machine.container && file_of_mesa(exam) && file_of_maker(exam, &have_all);
}

/* Most programs come to no harm by having both. */
void gp_graphics_check_opencl(struct gp_exam *exam)
{
    bool have_all;
    const char *path = file_of_mesa(exam), *maker = file_of_maker(exam, &have_all);
    const struct gp_log_known *crash = gp_log_known_of(exam, "cl.mesa-crash");
    if (!crash || !path || !maker)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a program crashed in Mesa's OpenCL, which is installed next to that of the "
                   "GPU's maker");
    gp_exam_evidence(exam, crash->where, "%s", crash->text);
    gp_exam_evidence(exam, path, "has every OpenCL program load Mesa's driver, too");
    gp_exam_evidence(exam, maker, "the driver by the GPU's maker");
    gp_exam_why(exam, "OpenCL's loader loads all drivers with a file in " GP_OPENCL_VENDORS
                      ", and a program asks each of them for its devices.");
    if (have_all)
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_MESA_OPENCL, NULL, NULL);
    gp_exam_advice(exam, "%sset OCL_ICD_VENDORS=%s only for the one that crashes",
                   have_all ? "if another program needs Mesa's: instead "
                            : "keep Mesa's, which another GPU may need: ",
                   gp_exam_quoted(exam, maker));
}
