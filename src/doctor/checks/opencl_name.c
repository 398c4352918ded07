/* Programs that open OpenCL's loader as libOpenCL.so, the name that only packages for developers
 * have. */
#include "doctor/checks/driver.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

static const char name[] = "libOpenCL.so";

/* The loader that is there under its usual name only; NULL: the other is there, too, or none. */
static const char *unnamed_loader(struct gp_exam *exam)
{
    const char *loader = gp_system_library(exam, "", "libOpenCL.so.1");
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    if (!loader || gp_system_library(exam, "", name))
        return NULL;
    while (gp_search_path_next(&list, ":;", folder))
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)))
            return NULL;
    return loader;
}

static bool has_ocl_icd(struct gp_exam *exam)
{
    static const char *const words[] = {"ocl-icd-libopencl1", NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            return true;
    return false;
}

static void report(struct gp_exam *exam, const char *loader, const char *title, const char *opener)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "%s does not find OpenCL: %s is missing", title, name);
    gp_exam_evidence(exam, loader, "present");
    gp_exam_evidence(exam, name, "not in any library directory");
    gp_exam_evidence(exam, opener, "opens %s", name);
}

static void fix(struct gp_exam *exam, const char *loader, const char *note)
{
    gp_exam_command(exam, note, "sudo ln -s libOpenCL.so.1 %.*s", (int)(strlen(loader) - 2),
                    loader);
}

void gp_driver_check_opencl_name(struct gp_exam *exam)
{
    static const char program[] = "/usr/bin/FAHClient"; /* up to version 7 */
    const char *loader = gp_files_exist(&exam->files, program) ? unnamed_loader(exam) : NULL;
    if (!loader)
        return;
    report(exam, loader, "Folding@home", program);
    gp_exam_why(exam, "Its log says \"OpenCL: Not detected: Failed to open dynamic library\", and "
                      "it gets no work for the GPU.");
    fix(exam, loader, "then restart its client");
}

/* pip puts the library next to the packages' directory of Python; conda's environments have a
 * loader of their own. */
void gp_check_plaidml(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char first[] = "0.6";
    const struct gp_pypackage *package = gp_pyenv_package(env, "plaidml");
    const char *library = gp_exam_text(exam, "%s/lib/libplaidml.so", env->prefix);
    if (!package || exam->machine.gpu_count == 0 ||
        gp_version_compare(package->version, first) < 0 || !gp_files_exist(&exam->files, library) ||
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s/lib/%s", env->prefix, name)))
        return;
    const char *loader = unnamed_loader(exam);
    if (!loader)
        return;
    report(exam, loader, gp_exam_text(exam, "PlaidML %s in %s", package->version, env->prefix),
           library);
    gp_exam_why(exam, "plaidml-setup then offers only the CPU (llvm_cpu), although clinfo shows "
                      "the GPU.");
    fix(exam, loader, "then run plaidml-setup again");
    if (has_ocl_icd(exam))
        gp_exam_advice(exam, "or install the package ocl-icd-opencl-dev, which has this link");
}
