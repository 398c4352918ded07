/* HIP for NVIDIA's GPUs, which builds for AMD's where ROCm's compiler is installed, too: a part of
 * cuda.env. */
#include "doctor/checks/cuda.h"
#include "doctor/exam.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

static const char name[] = "HIP_PLATFORM";

/* Its installed package, which nobody needs for AMD's GPUs; NULL: there is none. Before HIP 4.1 the
 * variable had other values. */
static const struct gp_package *package_for_nvidia(struct gp_exam *exam)
{
    static const char *const words[] = {"hip-runtime-nvidia", "hip-nvcc", NULL};
    static const char first[] = "4.1";
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0 &&
            gp_version_compare(packages[i].version, first) >= 0)
            return &packages[i];
    return NULL;
}

/* ROCm's compiler, as hipconfig looks for it; NULL: it is not there. */
static const char *amd_compiler(struct gp_exam *exam)
{
    const char *folder = gp_machine_variable(&exam->machine, "HIP_CLANG_PATH");
    const char *rocm = gp_machine_variable(&exam->machine, "ROCM_PATH");
    const char *const paths[] = {
        gp_exam_text(exam, "%s/clang++", folder && folder[0] ? folder : "/opt/rocm/llvm/bin"),
        gp_exam_text(exam, "%s/llvm/bin/clang++", rocm && rocm[0] ? rocm : "/opt/rocm"), NULL};
    return gp_files_first(&exam->files, paths);
}

void gp_check_cuda_hip(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    const char *place, *compiler = m->amd_count == 0 ? amd_compiler(exam) : NULL;
    if (!compiler || !toolkit || !toolkit->has_compiler || !m->environment[0] ||
        gp_machine_variable(m, name) || gp_assignment_last(exam, name, &place))
        return;
    const struct gp_package *package = package_for_nvidia(exam);
    if (!package)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "HIP builds programs for AMD GPUs, but this machine has NVIDIA's: %s is not set",
                   name);
    gp_exam_evidence(exam, name, "not set");
    gp_exam_evidence(exam, compiler, "present: hipconfig therefore selects amd");
    gp_exam_evidence(exam, "package", "%s %s: HIP for NVIDIA GPUs", package->name,
                     package->version);
    gp_exam_evidence(exam, toolkit->path, "has nvcc");
    gp_exam_why(exam, "Without the variable, hipcc uses ROCm's compiler if there is one, and nvcc "
                      "only otherwise. A program built for AMD GPUs finds no device here "
                      "(hipErrorInvalidDevice, hipErrorNoDevice).");
    gp_exam_command(exam, "for new shells", "echo 'export %s=nvidia' >> ~/.bashrc", name);
    gp_exam_command(exam, "and for this shell", "export %s=nvidia", name);
    gp_exam_advice(exam, "then build the programs again, from scratch");
    gp_exam_advice(exam, "not needed where a build sets the platform itself, as CMake does with "
                         "-DCMAKE_HIP_PLATFORM=nvidia");
}
