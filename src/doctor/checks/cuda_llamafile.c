/* llamafile, which compiles its part for the GPU on the machine, with the nvcc that it finds: a
 * part of cuda.toolkits. */
#include "doctor/checks/cuda.h"

#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

/* The first nvcc with -arch=native, with which it is called. */
static const char first_native[] = "11.6";

/* Whether a folder has the source that it has unpacked for the compiler, and not what that makes of
 * it: no nvcc was found, or it has failed. */
static bool has_failed_in(struct gp_exam *exam, const char *folder)
{
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/ggml-cuda.cu", folder)) &&
           !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/ggml-cuda.so", folder));
}

/* Newer releases have a folder for each version, of which the last counts; NULL: it did not fail.
 */
static const char *failed_folder(struct gp_exam *exam, const char *home)
{
    const char *top = gp_exam_text(exam, "%s/.llamafile", home);
    const char *all = gp_exam_text(exam, "%s/v", top), *last = NULL;
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, all, &names);
    for (long i = 0; i < n; i++)
        if (!last || gp_version_compare(names[i], last) > 0)
            last = names[i];
    const char *folder = last ? gp_exam_text(exam, "%s/%s", all, last) : top;
    return has_failed_in(exam, folder) ? folder : NULL;
}

/* A toolkit whose nvcc is new enough and that it does not find; NULL: there is none. */
static const struct gp_toolkit_found *newer(const struct gp_toolkits *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].has_compiler && all->list[i].version[0] &&
            gp_version_compare(all->list[i].version, first_native) >= 0)
            return &all->list[i];
    return NULL;
}

static void mend(struct gp_exam *exam, const struct gp_toolkits *all)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    const struct gp_toolkit_found *other = newer(all);
    const char *ceiling = nv.driver[0] ? gp_cuda_ceiling(nv.driver) : "";
    if (!other && gp_version_compare(ceiling, first_native) >= 0) {
        gp_exam_advice(exam, "install a newer toolkit, which this driver implements:");
        gp_cuda_fix_compiler(exam, ceiling);
    } else if (!other) {
        gp_exam_advice(exam, "install a toolkit of CUDA %s or newer, and a driver for it",
                       first_native);
    }
    gp_exam_command(exam, "also in the shell's startup file: its nvcc must come first",
                    "export PATH=%s/bin:$PATH",
                    other ? gp_exam_quoted(exam, other->path) : "/usr/local/cuda");
    gp_exam_advice(exam, "then start the llamafile once with --recompile");
}

void gp_check_cuda_llamafile(struct gp_exam *exam)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const struct gp_toolkit_found *used = gp_toolkit_used(all);
    const char *folder = NULL;
    if (!used || !used->has_compiler || !used->version[0] ||
        gp_version_compare(used->version, first_native) >= 0)
        return;
    for (size_t i = 0; !folder && i < homes->count; i++)
        folder = failed_folder(exam, homes->list[i]);
    if (!folder)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "llamafile could not compile its part for the GPU: nvcc is of CUDA %s, which is "
                   "too old for it",
                   used->version);
    gp_exam_evidence(exam, all->nvcc[0] ? all->nvcc : used->source, "CUDA %s", used->version);
    gp_exam_evidence(exam, folder, "ggml-cuda.cu, but no ggml-cuda.so");
    gp_exam_why(exam,
                "It calls nvcc with -arch=native, which nvcc knows only from CUDA %s on. Without "
                "that part it computes on the CPU: \"support for --gpu nvidia was explicitly "
                "requested, but it wasn't available\".",
                first_native);
    mend(exam, all);
    gp_exam_link(exam, "https://github.com/mozilla-ai/llamafile/issues/273");
}
