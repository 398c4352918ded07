/* LD_LIBRARY_PATH that puts another ROCm before the one that PyTorch brings. */
#include "doctor/checks/amd.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

static const char variable[] = "LD_LIBRARY_PATH", library[] = "libamdhip64.so";

/* The version of the ROCm that a directory of libraries belongs to: "5.4.3-121"; "": none. */
static const char *rocm_of(struct gp_exam *exam, const char *folder)
{
    char real[GP_PATH_SIZE], version[64];
    const char *path = gp_exam_text(exam, "%s/%s", folder, library);
    if (folder[0] != '/' || !gp_files_exist(&exam->files, path) ||
        !gp_files_real(&exam->files, folder, real))
        return "";
    path = gp_exam_text(exam, "%s/../.info/version", real);
    return gp_files_line(&exam->files, path, version, sizeof(version))
               ? gp_exam_text(exam, "%s", version)
               : "";
}

bool gp_amd_has_ldpath(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, variable);
    char folder[GP_PATH_SIZE];
    while (exam->machine.amd_count > 0 && gp_search_path_next(&list, ":;", folder))
        if (rocm_of(exam, folder)[0])
            return true;
    return false;
}

void gp_amd_check_ldpath(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const char *list = gp_machine_variable(&exam->machine, variable), *version = "";
    char folder[GP_PATH_SIZE], own[GP_PATH_SIZE];
    struct gp_torch torch;
    while (!version[0] && gp_search_path_next(&list, ":;", folder))
        version = rocm_of(exam, folder);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.hip[0] ||
            !gp_pyenv_path(env, gp_exam_text(exam, "torch/lib/%s", library), own) ||
            !gp_files_exist(&exam->files, own) ||
            (gp_version_major(version) == gp_version_major(torch.hip) &&
             gp_version_minor(version) == gp_version_minor(torch.hip)))
            continue;
        gp_exam_report(exam, gp_pyenv_verdict(env, true),
                       "LD_LIBRARY_PATH puts ROCm %s before the one of PyTorch %s in %s", version,
                       torch.version, env->prefix);
        gp_exam_evidence(exam, folder, "%s of ROCm %s", library, version);
        gp_exam_evidence(exam, own, "for ROCm %s", torch.hip);
        gp_exam_evidence(exam, variable, "%s", gp_machine_variable(&exam->machine, variable));
        gp_exam_assignments(exam, variable);
        gp_exam_why(exam,
                    "The loader mixes both: the import fails with an undefined symbol, or no GPU "
                    "is found.");
        gp_exam_command(exam, "and remove the line that sets it; PyTorch has its own ROCm",
                        "unset %s", variable);
        return;
    }
}
