/* Kernel drivers of AMD's and Intel's GPUs that DKMS builds: whether it could, for this kernel. */
#include "doctor/checks/system.h"

#include "doctor/checks/amd.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/modules.h"
#include "doctor/readers/packages.h"

#include <string.h>

enum { MOST_VERSIONS = 16, MOST_BYTES = 1 << 20 };

static const char top[] = "/var/lib/dkms";

/* The names that their packages give them; what they are for. */
static const struct source {
    const char *name, *driver, *package, *former; /* `former`: the package's name in old releases */
    unsigned vendor;
} sources[] = {
    {"amdgpu", "amdgpu", "amdgpu-dkms", "rock-dkms", GP_PCI_AMD},
    {"i915-sriov-dkms", "i915", "i915-sriov-dkms", NULL, GP_PCI_INTEL},
    {"intel-i915-dkms", "i915", "intel-i915-dkms", NULL, GP_PCI_INTEL},
};

static bool has_gpu_of(const struct gp_machine *m, unsigned vendor)
{
    return vendor == GP_PCI_AMD ? m->amd_count > 0 : m->intel_count > 0;
}

bool gp_dkms_is_there(struct gp_exam *exam)
{
    if (exam->machine.container || !exam->machine.kernel[0])
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(sources); i++)
        if (has_gpu_of(&exam->machine, sources[i].vendor) &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", top, sources[i].name)))
            return true;
    return false;
}

static const char *headers_of(struct gp_exam *exam)
{
    return gp_exam_text(exam, "/lib/modules/%s/build", exam->machine.kernel);
}

/* Whether a GPU of this vendor has no driver at all. */
static bool is_needed(const struct gp_machine *m, const struct source *source)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == source->vendor && !m->gpus[i].driver[0])
            return true;
    return false;
}

/* A version of a source that DKMS has not built for the running kernel. */
struct unbuilt {
    const struct source *source;
    const char *folder, *log;
    const char *text; /* the log's; NULL: there is none */
    size_t size;
    bool is_failed; /* not: the kernel's headers are missing */
};

/* The last version, if none is built for the kernel; NULL: one is, or there is none. */
static const char *folder_of(struct gp_exam *exam, const struct source *source)
{
    const char *folder = gp_exam_text(exam, "%s/%s", top, source->name), *left = NULL;
    char **versions;
    long n = has_gpu_of(&exam->machine, source->vendor)
                 ? gp_files_list(&exam->files, &exam->arena, folder, &versions)
                 : 0;
    for (long v = 0; v < n && v < MOST_VERSIONS; v++) {
        const char *place = gp_exam_text(exam, "%s/%s", folder, versions[v]);
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", place, exam->machine.kernel)))
            return NULL;
        if (strncmp(versions[v], "kernel-", 7) != 0)
            left = place;
    }
    return left;
}

/* False: it is built, or was never tried, or the log is of another kernel. */
static bool find_unbuilt(struct gp_exam *exam, const struct source *source, struct unbuilt *ret)
{
    const struct gp_machine *m = &exam->machine;
    char kernel[sizeof(m->kernel)] = "";
    *ret = (struct unbuilt){.source = source, .folder = folder_of(exam, source)};
    if (!ret->folder)
        return false;
    ret->log = gp_exam_text(exam, "%s/build/make.log", ret->folder);
    ret->text = gp_files_text(&exam->files, &exam->arena, ret->log, MOST_BYTES, &ret->size);
    if (ret->text)
        gp_modules_log_kernel(ret->text, ret->size, kernel, sizeof(kernel));
    ret->is_failed = ret->text && (!kernel[0] || strcmp(kernel, m->kernel) == 0);
    return ret->is_failed || !gp_files_exist(&exam->files, headers_of(exam));
}

/* The package that has brought the source. */
static const char *package_of(struct gp_exam *exam, const struct source *source)
{
    bool is_former = source->former &&
                     gp_packages_installed(&exam->files, &exam->arena, source->former) &&
                     !gp_packages_installed(&exam->files, &exam->arena, source->package);
    return is_former ? source->former : source->package;
}

static void show(struct gp_exam *exam, const struct unbuilt *u)
{
    const char *error;
    size_t length;
    size_t line = u->is_failed ? gp_modules_first_error(u->text, u->size, &error, &length) : 0;
    if (line > 0)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", u->log, line), "%.*s", (int)length,
                         error);
    else
        gp_exam_evidence(exam, u->is_failed ? u->log : headers_of(exam),
                         u->is_failed ? "left over from a build that did not finish" : "missing");
}

/* Another kernel of this machine for which it is built; "": none. */
static const char *built_kernel(struct gp_exam *exam, const struct unbuilt *u)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, u->folder, &names);
    for (long i = n - 1; i >= 0; i--) /* the newest is mostly the last */
        if (gp_files_exist(&exam->files,
                           gp_exam_text(exam, "/lib/modules/%s/modules.dep", names[i])))
            return names[i];
    return "";
}

static void advise(struct gp_exam *exam, const struct unbuilt *u)
{
    const char *package = package_of(exam, u->source), *kernel = built_kernel(exam, u);
    const char *older = kernel[0]
                            ? gp_exam_text(exam, "boot kernel %s, for which it is built", kernel)
                            : "boot an older kernel";
    if (u->source->vendor == GP_PCI_AMD)
        gp_exam_advice(exam,
                       "install a newer release of ROCm, whose %s builds on this kernel, or %s%s",
                       package, older,
                       kernel[0] ? ""
                                 : ", which it supports (AMD's list of supported systems names "
                                   "them)");
    else
        gp_exam_advice(exam, "install a newer version of it, which builds on this kernel, or %s",
                       older);
}

static void fix_headers(struct gp_exam *exam)
{
    gp_driver_fix_headers(exam, exam->machine.kernel);
    gp_exam_command(exam, "then build it", "sudo dkms autoinstall -k %s",
                    gp_exam_quoted(exam, exam->machine.kernel));
}

/* Without AMD's module ROCm finds no GPU. */
static void report_no_compute(struct gp_exam *exam, const struct unbuilt *u)
{
    bool has_device = gp_files_exist(&exam->files, "/dev/kfd");
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "%s %s for kernel %s, whose own amdgpu " GP_DKMS_NO_COMPUTE,
                   package_of(exam, u->source),
                   u->is_failed ? "could not be built" : "was not built", exam->machine.kernel);
    show(exam, u);
    gp_exam_evidence(exam, has_device ? GP_AMD_NODES : "/dev/kfd",
                     has_device ? "only CPUs" : "missing");
    gp_exam_why(exam, "The kernel's own driver is used instead of AMD's module, and ROCm finds no "
                      "GPU with it.");
    if (u->is_failed)
        advise(exam, u);
    else
        fix_headers(exam);
}

static void report(struct gp_exam *exam, const struct unbuilt *u)
{
    const struct gp_machine *m = &exam->machine;
    const char *package = package_of(exam, u->source);
    if (u->source->vendor == GP_PCI_AMD && gp_amd_lacks_compute(exam)) {
        report_no_compute(exam, u);
        return;
    }
    gp_exam_report(exam, is_needed(m, u->source) ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   u->is_failed ? "%s could not be built for kernel %s"
                                : "%s was not built for kernel %s: its headers are missing",
                   package, m->kernel);
    show(exam, u);
    gp_exam_why(exam,
                "The kernel's own %s is used instead, if it knows the GPU; the package stays "
                "half configured, and so do those that need it.",
                u->source->driver);
    if (!u->is_failed) {
        fix_headers(exam);
        return;
    }
    advise(exam, u);
    if (gp_machine_has_apt(m))
        gp_exam_command(exam, "or do without it: the kernel's own driver suffices for most GPUs",
                        "sudo apt remove %s", package);
}

void gp_dkms_check(struct gp_exam *exam)
{
    struct unbuilt u;
    for (size_t i = 0; i < GP_ARRAY_LEN(sources); i++)
        if (find_unbuilt(exam, &sources[i], &u))
            report(exam, &u);
}
