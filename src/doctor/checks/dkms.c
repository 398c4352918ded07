/* Kernel drivers of AMD's and Intel's GPUs that DKMS builds: whether it could, for this kernel. */
#include "doctor/checks/system.h"

#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/modules.h"

#include <string.h>

enum { MOST_VERSIONS = 16, MOST_BYTES = 1 << 20 };

static const char top[] = "/var/lib/dkms";

/* The names that their packages give them; what they are for. */
static const struct source {
    const char *name, *driver, *package, *advice;
    unsigned vendor;
} sources[] = {
    {"amdgpu", "amdgpu", "amdgpu-dkms",
     "install a newer release of ROCm, whose amdgpu-dkms builds on this kernel, or boot an older "
     "kernel, which it supports (AMD's list of supported systems names them)",
     GP_PCI_AMD},
    {"i915-sriov-dkms", "i915", "i915-sriov-dkms",
     "install a newer version of it, which builds on this kernel, or boot an older kernel",
     GP_PCI_INTEL},
    {"intel-i915-dkms", "i915", "intel-i915-dkms",
     "install a newer version of it, which builds on this kernel, or boot an older kernel",
     GP_PCI_INTEL},
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

/* Whether a GPU of this vendor has no driver at all. */
static bool is_needed(const struct gp_machine *m, const struct source *source)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == source->vendor && !m->gpus[i].driver[0])
            return true;
    return false;
}

static void report(struct gp_exam *exam, const struct source *source, const char *folder)
{
    const struct gp_machine *m = &exam->machine;
    const char *log = gp_exam_text(exam, "%s/build/make.log", folder), *error;
    size_t size = 0, length, line = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, log, MOST_BYTES, &size);
    const char *headers = gp_exam_text(exam, "/lib/modules/%s/build", m->kernel);
    char kernel[sizeof(m->kernel)] = "";
    if (text)
        gp_modules_log_kernel(text, size, kernel, sizeof(kernel));
    bool has_headers = gp_files_exist(&exam->files, headers);
    bool is_failed = text && (!kernel[0] || strcmp(kernel, m->kernel) == 0);
    if (!is_failed && has_headers)
        return; /* another kernel's, or never tried */
    gp_exam_report(exam, is_needed(m, source) ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   is_failed ? "%s could not be built for kernel %s"
                             : "%s was not built for kernel %s: its headers are missing",
                   source->package, m->kernel);
    if (is_failed)
        line = gp_modules_first_error(text, size, &error, &length);
    if (line > 0)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", log, line), "%.*s", (int)length, error);
    else
        gp_exam_evidence(exam, is_failed ? log : headers,
                         is_failed ? "left over from a build that did not finish" : "missing");
    gp_exam_why(exam,
                "The kernel's own %s is used instead, if it knows the GPU; the package stays "
                "half configured, and so do those that need it.",
                source->driver);
    if (!is_failed) {
        gp_driver_fix_headers(exam, m->kernel);
        gp_exam_command(exam, "then build it", "sudo dkms autoinstall -k %s",
                        gp_exam_quoted(exam, m->kernel));
        return;
    }
    gp_exam_advice(exam, "%s", source->advice);
    if (gp_machine_has_apt(m))
        gp_exam_command(exam, "or do without it: the kernel's own driver suffices for most GPUs",
                        "sudo apt remove %s", source->package);
}

void gp_dkms_check(struct gp_exam *exam)
{
    char **versions;
    for (size_t i = 0; i < GP_ARRAY_LEN(sources); i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", top, sources[i].name), *left = NULL;
        long n = has_gpu_of(&exam->machine, sources[i].vendor)
                     ? gp_files_list(&exam->files, &exam->arena, folder, &versions)
                     : 0;
        bool is_built = false;
        for (long v = 0; v < n && v < MOST_VERSIONS; v++) {
            const char *place = gp_exam_text(exam, "%s/%s", folder, versions[v]);
            if (gp_files_exist(&exam->files,
                               gp_exam_text(exam, "%s/%s", place, exam->machine.kernel)))
                is_built = true;
            else if (strncmp(versions[v], "kernel-", 7) != 0)
                left = place;
        }
        if (left && !is_built)
            report(exam, &sources[i], left);
    }
}
