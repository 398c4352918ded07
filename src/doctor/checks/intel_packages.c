/* Which packages compute on Intel GPUs: those of the distribution's release, or of elsewhere where
 * it has none, or older ones than the GPU. */
#include "doctor/checks/intel.h"

#include "doctor/exam.h"
#include "doctor/readers/opencl.h"
#include "doctor/version.h"

#include <string.h>

/* The compute runtime that a release brings; "": none, but its predecessor. */
static const struct shipped {
    enum gp_distro distro;
    const char *release, *runtime;
    bool has_zero; /* Level Zero, too */
} releases[] = {
    {GP_DISTRO_UBUNTU, "16.04", "", false},      {GP_DISTRO_UBUNTU, "18.04", "", false},
    {GP_DISTRO_UBUNTU, "19.04", "19.04", false}, {GP_DISTRO_UBUNTU, "20.04", "20.13", false},
    {GP_DISTRO_UBUNTU, "22.04", "22.14", false}, {GP_DISTRO_UBUNTU, "24.04", "23.43", true},
    {GP_DISTRO_DEBIAN, "9", "", false},          {GP_DISTRO_DEBIAN, "10", "", false},
    {GP_DISTRO_DEBIAN, "11", "20.44", false},    {GP_DISTRO_DEBIAN, "12", "22.43", false},
    {GP_DISTRO_DEBIAN, "13", "25.18", true},
};

/* Of its own release, or of Ubuntu's long-term one before it; NULL: unknown, or newer than these.
 */
static const struct shipped *shipped_of(const struct gp_machine *m)
{
    static const char last_of_ubuntu[] = "24.04";
    const char *release = gp_machine_release(m);
    const struct shipped *found = NULL;
    bool is_ubuntu = m->distro == GP_DISTRO_UBUNTU;
    if (is_ubuntu && gp_version_compare(release, last_of_ubuntu) > 0)
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(releases); i++)
        if (m->distro == releases[i].distro &&
            (is_ubuntu ? gp_version_compare(release, releases[i].release) >= 0
                       : gp_version_major(release) == gp_version_major(releases[i].release)))
            found = &releases[i];
    return found;
}

static bool is_release(const struct gp_machine *m, const char *release)
{
    return m->distro == GP_DISTRO_UBUNTU && strcmp(gp_machine_release(m), release) == 0;
}

/* Images of Ubuntu for containers have less than its installations. */
static void propose_tools(struct gp_exam *exam, const char *program, const char *packages)
{
    if (exam->machine.container && !gp_files_exist(&exam->files, program))
        gp_exam_command(exam, "for the next command", "apt update && apt install -y %s", packages);
}

bool gp_intel_propose_elsewhere(struct gp_exam *exam)
{
    static const char list[] = "/etc/apt/sources.list.d/intel-gpu-jammy.list";
    const struct gp_machine *m = &exam->machine;
    const char *sudo = m->container ? "" : "sudo ";
    if (is_release(m, "24.04")) {
        propose_tools(exam, "/usr/bin/add-apt-repository", "software-properties-common");
        gp_exam_command(exam, "the newer ones for this release, by Intel and Canonical",
                        "%sadd-apt-repository ppa:kobuk-team/intel-graphics", sudo);
        gp_exam_command(exam, "", "%sapt install intel-opencl-icd libze-intel-gpu1 libze1", sudo);
        return true;
    }
    if (!is_release(m, "22.04"))
        return false;
    if (!gp_files_exist(&exam->files, list)) {
        propose_tools(
            exam, gp_files_exist(&exam->files, "/usr/bin/curl") ? "/usr/bin/gpg" : "/usr/bin/curl",
            "curl ca-certificates gpg");
        gp_exam_command(exam, "Intel's repository for this release",
                        "curl -fsSL https://repositories.intel.com/gpu/intel-graphics.key | %sgpg "
                        "--yes --dearmor -o /usr/share/keyrings/intel-graphics.gpg",
                        sudo);
        gp_exam_command(exam, "",
                        "echo 'deb [arch=amd64 signed-by=/usr/share/keyrings/intel-graphics.gpg] "
                        "https://repositories.intel.com/gpu/ubuntu jammy client' | %stee %s",
                        sudo, list);
    }
    gp_exam_command(exam, "",
                    "%sapt update && %sapt install intel-opencl-icd intel-level-zero-gpu "
                    "level-zero",
                    sudo, sudo);
    return true;
}

const char *gp_intel_shipped_runtime(struct gp_exam *exam)
{
    const struct shipped *shipped = shipped_of(&exam->machine);
    return shipped ? shipped->runtime : "";
}

void gp_intel_propose_packages(struct gp_exam *exam, const struct gp_intel_need *need)
{
    const struct shipped *shipped = shipped_of(&exam->machine);
    bool lacks_zero = shipped && !need->has_zero && !shipped->has_zero;
    if (!shipped || (shipped->has_zero && !need->is_older)) {
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_INTEL_COMPUTE, NULL, NULL);
        return;
    }
    if ((need->is_older || (need->wants_zero && lacks_zero)) && gp_intel_propose_elsewhere(exam))
        return;
    if (need->is_older)
        gp_exam_advice(exam, "the packages of this release are older than the GPU: use a newer "
                             "release, or those of Intel's releases of compute-runtime on GitHub");
    else if (!need->has_cl)
        gp_exam_command(exam, shipped->runtime[0] ? "" : "the driver of that time",
                        "sudo apt install %s",
                        shipped->runtime[0] ? "intel-opencl-icd" : "beignet-opencl-icd");
    if (lacks_zero && !need->is_older && (shipped->runtime[0] || need->has_cl))
        gp_exam_advice(exam, "Level Zero is not in this release: install intel-level-zero-gpu and "
                             "level-zero from Intel's own repository");
}

bool gp_intel_has_opencl(struct gp_exam *exam)
{
    static const char *const words[] = {"igdrcl", "beignet"};
    int error = 0;
    if (gp_files_exist(&exam->files, GP_OPENCL_VENDORS "/intel.icd"))
        return true;
    if (!gp_files_exist(&exam->files, GP_OPENCL_VENDORS))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (gp_opencl_knows(exam, words[i], &error))
            return true;
    return false;
}

const char *gp_intel_opencl_program(struct gp_exam *exam)
{
    static const char program[] = "/opt/resolve/bin/resolve";
    const char *drivers = gp_machine_variable(&exam->machine, "RUSTICL_ENABLE");
    int error = 0;
    bool has_rusticl =
        drivers && strstr(drivers, "iris") && gp_opencl_knows(exam, "Rusticl", &error);
    return !has_rusticl && gp_files_exist(&exam->files, program) ? program : NULL;
}

const char *gp_intel_use(const char *user)
{
    return user && strstr(user, "/resolve")
               ? "DaVinci Resolve computes with OpenCL: without it, it finds no GPU and does not "
                 "start."
               : "PyTorch's xpu needs Level Zero; OpenVINO sees only the CPU without OpenCL.";
}

void gp_intel_report_before_runtimes(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                                     const char *user)
{
    const struct shipped *shipped = shipped_of(&exam->machine);
    gp_exam_report(exam, user ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Intel GPU %s is older than those that Intel's compute runtime supports",
                   gpu->bus_id);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/device", gpu->bus_id),
                     "0x%04x, of a generation before Broadwell (2014)", gpu->device);
    if (user)
        gp_exam_evidence(exam, "", "%s needs it", user);
    if (shipped && !shipped->runtime[0])
        gp_exam_command(exam, "its predecessor, for GPUs from Ivy Bridge (2012) on",
                        "sudo apt install beignet-opencl-icd");
    else
        gp_exam_advice(exam, "compute on the CPU (OpenCL: pocl), or use another GPU");
}
