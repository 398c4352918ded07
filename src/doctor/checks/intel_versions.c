/* Versions of the kernel and of the compute runtime that some Intel GPUs cannot use. */
#include "doctor/checks/intel.h"

#include "doctor/checks/log_show.h"
#include "doctor/checks/unbound.h"
#include "doctor/exam.h"
#include "doctor/readers/kernel_config.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- the compute runtime on a newer kernel ---- */

/* Before the first version the runtime finds no GPU on kernels from the second on
 * (intel/compute-runtime#710). */
static const char known_from[] = "24.13", unknown_kernel[] = "6.8";

/* The package of such a runtime; NULL: there is none. Ubuntu has mended its own. */
static const struct gp_package *lost_runtime(struct gp_exam *exam)
{
    static const char *const words[] = {"intel-compute-runtime", "intel-opencl-icd", NULL};
    struct gp_package *packages;
    if (gp_version_compare(exam->machine.kernel, unknown_kernel) < 0 ||
        !gp_system_library(exam, "", "libze_intel_gpu.so.1") || !gp_intel_has_opencl(exam))
        return NULL;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < count; i++)
        if (strcmp(packages[i].state, "installed") == 0 && !strstr(packages[i].version, "ubuntu") &&
            gp_version_compare(packages[i].version, known_from) < 0)
            return &packages[i];
    return NULL;
}

/* False: the release's own packages would be no better, and no others are known. */
static bool propose_newer(struct gp_exam *exam)
{
    const char *shipped = gp_intel_shipped_runtime(exam);
    if (gp_intel_propose_elsewhere(exam))
        return true;
    if (shipped[0] && gp_version_compare(shipped, known_from) < 0) {
        gp_exam_advice(exam, "install a newer runtime, from the page below");
        return false;
    }
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_INTEL_COMPUTE, NULL, NULL);
    return true;
}

void gp_intel_report_lost_runtime(struct gp_exam *exam)
{
    const struct gp_package *p = lost_runtime(exam);
    bool has_packages = false;
    if (!p)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Intel's compute runtime %s finds no GPU on kernel %s and newer", p->version,
                   unknown_kernel);
    gp_exam_evidence(exam, "package", "%s %s; %s or newer finds it", p->name, p->version,
                     known_from);
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", exam->machine.kernel);
    if (exam->machine.container && !gp_machine_is_lxc(&exam->machine)) {
        gp_exam_advice(exam, "use a newer image (or mod of it), or install a newer runtime in this "
                             "one, from Intel's own repository or the page below");
        gp_exam_advice(exam, "or, until it is updated, start the container with the variables "
                             "NEOReadDebugKeys=1 and OverrideGpuAddressSpace=48 (Docker: -e, or "
                             "environment: in Compose)");
    } else {
        has_packages = propose_newer(exam);
        gp_exam_advice(exam, "or, until it is updated: export NEOReadDebugKeys=1 "
                             "OverrideGpuAddressSpace=48");
    }
    gp_exam_link(exam, has_packages ? "https://github.com/intel/compute-runtime/issues/710"
                                    : "https://github.com/intel/compute-runtime/releases");
}

/* ---- kernels ---- */

/* From the first of these on, before the other, GPUs of a range hang. */
static const struct {
    const char *first, *mended;
    unsigned from, to; /* PCI devices */
    const char *driver, *link;
} regressions[] = {
    {"6.6.26", "6.6.31", 0x5690, 0x56c2, "i915",
     "https://github.com/intel/compute-runtime/issues/726"},
    {"6.8.5", "6.8.10", 0x5690, 0x56c2, "i915",
     "https://github.com/intel/compute-runtime/issues/726"},
};

bool gp_intel_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char *const modules[] = {"i915", "xe", NULL};
    const char *kernel = exam->machine.kernel;
    for (size_t i = 0; i < GP_ARRAY_LEN(regressions); i++) {
        if (gpu->device < regressions[i].from || gpu->device > regressions[i].to ||
            strcmp(gpu->driver, regressions[i].driver) != 0 ||
            gp_version_compare(kernel, regressions[i].first) < 0 ||
            gp_version_compare(kernel, regressions[i].mended) >= 0 ||
            gp_unbound_has_backport(exam, modules))
            continue;
        const struct gp_log_line *hang = gp_log_find_for(exam, GP_KMSG_INTEL_HANG, gpu->bus_id);
        /* a runtime that finds no GPU fails first: nothing computes on it, or hangs */
        gp_exam_report(exam, !hang && lost_runtime(exam) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       "kernel %s has a fault in %s with which Intel GPU %s hangs", kernel,
                       regressions[i].driver, gpu->bus_id);
        gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", kernel);
        if (hang)
            gp_log_show_line(exam, hang);
        gp_exam_why(exam,
                    "From Linux %s on programs that compute or transcode video wait forever, or "
                    "the log reports GPU HANG; %s is the first of its series without it.",
                    regressions[i].first, regressions[i].mended);
        gp_unbound_newer_kernel(exam, gpu, regressions[i].mended);
        gp_exam_link(exam, regressions[i].link);
        return true;
    }
    return false;
}

/* ---- the compute runtime ---- */

const char *gp_intel_before_runtimes(const struct gp_pci_gpu *gpu, const char *runtime)
{
    /* 19.31 finds no Comet Lake (OpenVisualCloud/Dockerfiles#662); the runtime's list of devices
     * had Comet Lake before the others. Ice Lake is only too new for what was before the runtime.
     */
    static const struct {
        unsigned from, to; /* PCI devices */
        const char *name, *first;
    } models[] = {
        {0x8a50, 0x8a71, "Ice Lake", "18"},       {0x9b21, 0x9bf6, "Comet Lake", "19.32"},
        {0x9a40, 0x9aff, "Tiger Lake", "19.32"},  {0x4541, 0x4571, "Elkhart Lake", "19.32"},
        {0x4e51, 0x4e71, "Jasper Lake", "19.32"}, {0x4905, 0x4909, "Iris Xe Max", "19.32"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(models); i++)
        if (gpu->vendor == GP_PCI_INTEL && gpu->device >= models[i].from &&
            gpu->device <= models[i].to && gp_version_compare(runtime, models[i].first) < 0)
            return models[i].name;
    return NULL;
}

/* The build of Level Zero's driver, the third number of "libze_intel_gpu.so.1.13.36300"; 0:
 * unknown. */
static unsigned long build_of(const char *file)
{
    static const char mark[] = ".so.";
    const char *p = strstr(file, mark);
    p = p ? strchr(p + sizeof(mark) - 1, '.') : NULL;
    p = p ? strchr(p + 1, '.') : NULL;
    return p ? strtoul(p + 1, NULL, 10) : 0;
}

/* Where no list of packages tells it: the files of the runtime, and of the compiler that its newer
 * releases are built with. */
static const char *new_library(struct gp_exam *exam, const char **ret_where)
{
    enum { FIRST_BUILD = 31294 };
    const char *zero = gp_system_library(exam, "", "libze_intel_gpu.so.1");
    char real[GP_PATH_SIZE];
    if (zero && gp_files_real(&exam->files, zero, real) && build_of(real) > 0) {
        *ret_where = gp_exam_text(exam, "%s", real);
        return build_of(real) >= FIRST_BUILD ? gp_exam_text(exam, "of build %lu", build_of(real))
                                             : NULL;
    }
    *ret_where = gp_system_library(exam, "", "libigc.so.2");
    return *ret_where && gp_system_library(exam, "", "intel-opencl/libigdrcl.so") &&
                   !gp_system_library(exam, "", "libigc.so.1")
               ? "with compiler 2"
               : NULL;
}

const char *gp_intel_new_runtime(struct gp_exam *exam, const char **ret_where)
{
    static const char *const words[] = {"intel-compute-runtime", "intel-opencl", "libze-intel-gpu",
                                        NULL};
    static const char first[] = "24.39";
    struct gp_package *packages;
    const char *found = NULL;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    if (gp_system_library(exam, "", "libze_intel_gpu_legacy1.so.1") ||
        gp_files_exist(&exam->files, "/etc/OpenCL/vendors/intel_legacy1.icd"))
        return NULL;
    for (long i = 0; i < count; i++) {
        const struct gp_package *p = &packages[i];
        if (strcmp(p->state, "installed") != 0)
            continue;
        if (strstr(p->name, "legacy"))
            return NULL;
        if (gp_version_major(p->version) < 100 && gp_version_compare(p->version, first) >= 0)
            *ret_where = p->name, found = p->version;
    }
    return found || count > 0 ? found : new_library(exam, ret_where);
}

/* Intel's first cards load HuC through their own management engine, by a part of the kernel that
 * some are built without. */
void gp_intel_report_no_mei(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char option[] = "CONFIG_INTEL_MEI_GSC";
    const char *where;
    bool is_alchemist = gpu->device >= 0x5690 && gpu->device <= 0x56c1;
    if (!is_alchemist || exam->machine.container || strcmp(gpu->driver, "i915") != 0 ||
        !gp_kernel_lacks(exam, option, "CONFIG_DRM_I915", &where))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the kernel is built without what loads HuC into Intel GPU %s", gpu->bus_id);
    gp_exam_evidence(exam, where, "no %s", option);
    gp_exam_why(exam, "i915 loads HuC of these cards through their management engine interface; "
                      "without it they decode video, but encoding fails.");
    gp_exam_advice(exam,
                   "use a kernel with CONFIG_INTEL_MEI, CONFIG_INTEL_MEI_ME and %s, such as "
                   "a newer release of this distribution",
                   option);
}
