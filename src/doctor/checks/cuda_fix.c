/* How to get a toolkit of CUDA. */
#include "doctor/checks/cuda.h"

#include "doctor/exam.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

static bool has_repository(struct gp_exam *exam)
{
    static const char *const folders[] = {"/etc/apt/sources.list.d", "/etc/yum.repos.d",
                                          "/etc/zypp/repos.d"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++)
            if (strncmp(names[i], "cuda-", 5) == 0)
                return true;
    }
    return false;
}

/* Whether NVIDIA's repository for a release, "ubuntu2204", has a toolkit: those of CUDA 11 that
 * came out in the time of the release, and all from CUDA 12 on until it was dropped. */
static bool is_in_repository(const char *version, const char *name)
{
    static const struct {
        const char *name, *first; /* of CUDA 11; "": none */
        const char *last;         /* "": it still gets them */
    } rows[] = {{"ubuntu1804", "", "12.1"},   {"ubuntu2004", "11.0", "12.9"},
                {"ubuntu2204", "11.7", ""},   {"debian10", "", "12.4"},
                {"debian11", "11.8", "12.6"}, {"rhel7", "11.0", "12.4"},
                {"rhel8", "11.0", ""},        {"rhel9", "11.8", ""}};
    unsigned major = gp_version_major(version), minor = gp_version_minor(version);
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        if (major == 11)
            return rows[i].first[0] && gp_version_compare(version, rows[i].first) >= 0;
        if (rows[i].last[0] &&
            (major > gp_version_major(rows[i].last) ||
             (major == gp_version_major(rows[i].last) && minor > gp_version_minor(rows[i].last))))
            return false;
    }
    return major >= 12 && name[0];
}

void gp_cuda_fix_toolkit(struct gp_exam *exam, const char *version)
{
    const char *in_packages =
        gp_exam_text(exam, "%u-%u", gp_version_major(version), gp_version_minor(version));
    const char *name = gp_toolkit_repository(exam);
    if (!is_in_repository(version, name)) {
        gp_exam_advice(exam,
                       "download the .run installer of CUDA %u.%u from "
                       "developer.nvidia.com/cuda-toolkit-archive, and run it with --toolkit: it "
                       "does not touch the driver",
                       gp_version_major(version), gp_version_minor(version));
        return;
    }
    if (!has_repository(exam))
        gp_exam_remedy(exam, GP_REMEDY_ADD_CUDA_REPOSITORY, name, NULL);
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_TOOLKIT, in_packages, NULL);
}
