/* Variables that choose among AMD's GPUs, on a machine with NVIDIA's alone, where Slurm sets them:
 * a part of cuda.env. */
#include "doctor/checks/cuda.h"
#include "doctor/exam.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

static const struct {
    const char *name, *first, *why; /* since that version */
} packages[] = {
    {"ray", "2.45",
     "\"import ray\" stops: \"Please use HIP_VISIBLE_DEVICES instead of ROCR_VISIBLE_DEVICES\"."},
    {"verl", "0.4",
     "verl stops if CUDA_VISIBLE_DEVICES is set, too: \"Please don't set ROCR_VISIBLE_DEVICES when "
     "HIP/CUDA_VISIBLE_DEVICES is set\"."},
};

struct misled {
    const char *name, *path, *why; /* `name`, NULL: nothing */
};

static struct misled ollama_of(struct gp_exam *exam)
{
    struct misled found = {"Ollama", NULL,
                           "Ollama 0.9.3 or newer then looks for AMD GPUs alone, and computes on "
                           "the CPU; an empty value has the same effect."};
    const char *list = gp_machine_variable(&exam->machine, "PATH");
    struct gp_processes all = gp_processes_of(exam);
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder)) {
        found.path = gp_exam_text(exam, "%s/ollama", folder);
        if (folder[0] == '/' && gp_files_exist(&exam->files, found.path))
            return found;
    }
    found.path = gp_processes_next(exam, &all, "ollama");
    return found.path ? found : (struct misled){NULL};
}

static struct misled find_misled(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t k = 0; k < GP_ARRAY_LEN(packages); k++)
        for (size_t i = 0; i < envs->count; i++) {
            const struct gp_pyenv *env = &envs->list[i];
            const struct gp_pypackage *package = gp_pyenv_package(env, packages[k].name);
            if (package && gp_version_compare(package->version, packages[k].first) >= 0)
                return (struct misled){packages[k].name,
                                       gp_exam_text(exam, "%s/%s", env->site, package->entry),
                                       packages[k].why};
        }
    return ollama_of(exam);
}

void gp_check_cuda_rocr(struct gp_exam *exam)
{
    static const char name[] = "ROCR_VISIBLE_DEVICES";
    const struct gp_machine *m = &exam->machine;
    const char *value = gp_machine_variable(m, name);
    if (!value || m->nvidia_count == 0 || m->amd_count > 0)
        return;
    bool is_slurm = gp_machine_variable(m, "SLURM_JOB_ID");
    struct misled misled = find_misled(exam);
    if (!misled.name)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is set, for AMD GPUs, and misleads %s here", name,
                   misled.name);
    gp_exam_evidence(exam, name, "\"%s\"", value);
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
