/* Variables that choose among AMD's GPUs, on a machine with NVIDIA's alone, where Slurm sets them:
 * a part of cuda.env. */
#include "doctor/checks/cuda.h"
#include "doctor/exam.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

static const struct {
    const char *name, *first, *why; /* since that version */
    bool is_with_other;             /* only if NVIDIA's variable, or HIP's, is set, too */
} packages[] = {
    {"ray", "2.45",
     "\"import ray\" stops: \"Please use HIP_VISIBLE_DEVICES instead of ROCR_VISIBLE_DEVICES\".",
     false},
    {"verl", "0.4",
     "It stops: \"Please don't set ROCR_VISIBLE_DEVICES when HIP/CUDA_VISIBLE_DEVICES is set\".",
     true},
};

static const char name[] = "ROCR_VISIBLE_DEVICES";

struct misled {
    const char *name, *path, *why; /* `name`, NULL: nothing */
};

#define OLLAMA "Ollama 0.9.3 or newer" /* the version cannot be read */
static const char why_ollama[] = "It then looks for AMD GPUs alone, and computes on the CPU; an "
                                 "empty value has the same effect.";

static struct misled ollama_of(struct gp_exam *exam)
{
    struct misled found = {OLLAMA, NULL, why_ollama};
    struct gp_processes all = gp_processes_of(exam);
    found.path = gp_search_path_program(exam, "ollama");
    if (!found.path)
        found.path = gp_processes_next(exam, &all, "ollama");
    return found.path ? found : (struct misled){NULL};
}

/* A package of the environment that the user works in. */
static struct misled package_of(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    bool has_other = gp_machine_variable(m, "CUDA_VISIBLE_DEVICES") ||
                     gp_machine_variable(m, "HIP_VISIBLE_DEVICES");
    for (size_t k = 0; k < GP_ARRAY_LEN(packages); k++)
        for (size_t i = 0; i < envs->count; i++) {
            const struct gp_pyenv *env = &envs->list[i];
            const struct gp_pypackage *package = gp_pyenv_package(env, packages[k].name);
            if (package && (env->is_active || env->is_named) &&
                (has_other || !packages[k].is_with_other) &&
                gp_version_compare(package->version, packages[k].first) >= 0)
                return (struct misled){packages[k].name,
                                       gp_exam_text(exam, "%s/%s", env->site, package->entry),
                                       packages[k].why};
        }
    return (struct misled){NULL};
}

static void report(struct gp_exam *exam, const char *program, const char *where, const char *value)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is set, for AMD GPUs, and misleads %s here", name,
                   program);
    gp_exam_evidence(exam, where, "\"%s\"", value);
}

/* A service does not have the variables of a shell. */
static bool report_service(struct gp_exam *exam)
{
    enum { MOST = 16 };
    static const char unit[] = "ollama.service";
    struct gp_service_setting found[MOST];
    size_t count = gp_service_is_installed(exam, unit)
                       ? gp_service_settings(exam, name, found, MOST) /* reads every unit */
                       : 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(found[i].service, unit) != 0)
            continue;
        report(exam, OLLAMA, found[i].where, found[i].value);
        gp_exam_why(exam, "%s", why_ollama);
        gp_exam_command(exam, "remove that line", "sudo systemctl edit --full %s", unit);
        gp_exam_command(exam, "", "sudo systemctl restart %s", unit);
        return true;
    }
    return false;
}

void gp_check_cuda_rocr(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *value = gp_machine_variable(m, name);
    if (m->nvidia_count == 0 || m->amd_count > 0 || report_service(exam) || !value)
        return;
    bool is_slurm = gp_machine_variable(m, "SLURM_JOB_ID");
    struct misled misled = package_of(exam);
    if (!misled.name && is_slurm)
        misled = ollama_of(exam);
    if (!misled.name)
        return;
    report(exam, misled.name, name, value);
    gp_exam_evidence(exam, misled.path, "present");
    if (is_slurm)
        gp_exam_evidence(exam, "SLURM_JOB_ID", "set: this is a job of Slurm");
    gp_exam_why(exam, "%s", misled.why);
    gp_exam_command(exam,
                    is_slurm ? "also in the job's script, before the program starts"
                             : "before the program starts; remove the line that sets it, too",
                    "unset %s", name);
    if (is_slurm)
        gp_exam_advice(exam, "administrators: Slurm sets it for every GPU that gres.conf lists "
                             "without AutoDetect; Flags=nvidia_gpu_env in the line stops that");
}
