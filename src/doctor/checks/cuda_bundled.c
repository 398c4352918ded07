/* Programs that bring their own cuDNN, and the old compiler library that LD_LIBRARY_PATH gives it:
 * a part of cuda.ldpath. */
#include "doctor/checks/cuda.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

/* This part of cuDNN 8 opens NVRTC by its name without a number, and so takes that of any CUDA. */
static const char part[] = "libcudnn_cnn_infer.so.8", nvrtc[] = "libnvrtc.so";
static const char first_good[] = "11.1"; /* with nvrtcGetCUBIN(), which it calls */

/* The NVRTC that LD_LIBRARY_PATH leads to, in *ret_folder, if it is too old; "": it is not, or its
 * version is unknown. */
static const char *old_nvrtc(struct gp_exam *exam, char ret_folder[GP_PATH_SIZE])
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char real[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", ret_folder)) {
        const char *path = gp_exam_text(exam, "%s/%s", ret_folder, nvrtc);
        if (ret_folder[0] != '/' || !gp_files_exist(&exam->files, path))
            continue;
        const char *version =
            gp_files_real(&exam->files, path, real) ? gp_library_version(real) : "";
        return strchr(version, '.') && gp_version_compare(version, first_good) < 0
                   ? gp_exam_text(exam, "%s", version)
                   : "";
    }
    return "";
}

/* Whether a folder has that part with an NVRTC for it, and leaves the search to the variable. In
 * conda's environments the libraries name their folder in a way that comes before it. */
static bool is_bundle(struct gp_exam *exam, const char *top, const char *folder)
{
    struct gp_elf shared;
    const char *path = gp_exam_text(exam, "%s/%s", folder, part);
    if (!gp_files_exist(&exam->files, path) ||
        !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, nvrtc)) ||
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s/conda-meta", top)))
        return false;
    return !gp_elf_read_libraries(&shared, &exam->files, &exam->arena, path) ||
           !gp_elf_is_path_first(&shared);
}

/* The folder of libraries of the first program in PATH, or in the working directory, that has
 * them; NULL: none. The system's own are searched by every program. */
static const char *find_bundle(struct gp_exam *exam)
{
    static const char *const names[] = {"lib", "lib64"};
    const char *path = gp_machine_variable(&exam->machine, "PATH");
    const char *here = gp_machine_variable(&exam->machine, "PWD");
    const char *list =
        gp_exam_text(exam, "%s:%s/bin:%s", here ? here : "", here ? here : "", path ? path : "");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder)) {
        const char *slash = strrchr(folder, '/');
        if (folder[0] != '/' || strcmp(slash, "/bin") != 0 || strncmp(folder, "/usr/bin", 8) == 0 ||
            slash == folder)
            continue;
        const char *top = gp_exam_text(exam, "%.*s", (int)(slash - folder), folder);
        for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
            const char *libraries = gp_exam_text(exam, "%s/%s", top, names[i]);
            if (is_bundle(exam, top, libraries))
                return libraries;
        }
    }
    return NULL;
}

/* The environment module that has put a folder there, "cuda/8.0": its name is in the path; NULL:
 * none. */
static const char *module_of(struct gp_exam *exam, const char *folder)
{
    const char *list = gp_machine_variable(&exam->machine, "LOADEDMODULES");
    char name[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", name))
        if (strchr(name, '/') &&
            strstr(gp_exam_text(exam, "%s/", folder), gp_exam_text(exam, "/%s/", name)))
            return gp_exam_text(exam, "%s", name);
    return NULL;
}

void gp_check_cuda_bundled(struct gp_exam *exam)
{
    char folder[GP_PATH_SIZE];
    const char *version = old_nvrtc(exam, folder);
    const char *own = version[0] ? find_bundle(exam) : NULL;
    const char *module = own ? module_of(exam, folder) : NULL;
    if (!own || strcmp(own, folder) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "LD_LIBRARY_PATH puts the NVRTC of CUDA %u.%u before that in %s",
                   gp_version_major(version), gp_version_minor(version), own);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, nvrtc), "version %s", version);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", own, part), "opens %s", nvrtc);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s",
                     gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"));
    gp_exam_assignments(exam, "LD_LIBRARY_PATH");
    if (module)
        gp_exam_evidence(exam, "LOADEDMODULES", "%s", module);
    gp_exam_why(exam,
                "The program's cuDNN calls a function that NVRTC has only from CUDA %s on: "
                "\"undefined symbol: nvrtcGetCUBIN\".",
                first_good);
    gp_exam_command(exam, "its own libraries first, in the shell that starts it",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, own));
    if (module) {
        gp_exam_advice(exam, "or, as it brings its own CUDA:");
        gp_exam_command(exam, "", "module unload %s", gp_exam_quoted(exam, module));
    } else {
        gp_exam_advice(exam, "or take %s out of LD_LIBRARY_PATH where it is set", folder);
    }
}
