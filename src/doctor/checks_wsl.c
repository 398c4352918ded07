#include "doctor/checks_wsl.h"

#include "doctor/checks_intel.h"
#include "doctor/exam.h"

#include <string.h>

static const char drivers[] = "/usr/lib/wsl/drivers";

/* The folder of a driver of this maker, by the name of its file for installation in Windows; "":
 * none. */
static const char *driver_of(struct gp_exam *exam, const char *const *starts)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, drivers, &names);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; starts[k]; k++)
            if (strncmp(names[i], starts[k], strlen(starts[k])) == 0)
                return names[i];
    return "";
}

static void report_amd(struct gp_exam *exam, const char *folder)
{
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "Windows gives this WSL an AMD GPU, but ROCm for WSL is not installed");
    gp_exam_evidence(exam, drivers, "%s", folder);
    gp_exam_evidence(exam, "/opt/rocm", "missing");
    gp_exam_advice(exam, "to compute on it, install ROCm for WSL as the page below says");
    gp_exam_link(exam, "https://rocm.docs.amd.com/projects/radeon/en/latest/docs/install/wsl/"
                       "install-radeon.html");
}

bool gp_wsl_report_others(struct gp_exam *exam)
{
    static const char *const nvidia[] = {"nv", NULL};
    static const char *const amd[] = {"u0", "c0", "amdkmdag", NULL};
    static const char *const intel[] = {"iigd", "igdlh", "gfx_win", NULL};
    if (!gp_files_exist(&exam->files, "/dev/dxg") || driver_of(exam, nvidia)[0])
        return false;
    const char *of_amd = driver_of(exam, amd), *of_intel = driver_of(exam, intel);
    if (of_amd[0])
        report_amd(exam, of_amd);
    else if (of_intel[0])
        gp_intel_check_compute(exam);
    return of_amd[0] || of_intel[0];
}
