#include "doctor/checks/wsl.h"

#include "doctor/checks/intel.h"
#include "doctor/exam.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"

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

/* Whether the loader takes AMD's runtime, which ldconfig lists first. */
static bool finds_own(struct gp_exam *exam)
{
    struct gp_ldcache cache = {.count = 0};
    struct gp_library library;
    size_t from = 0;
    return gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0 &&
           gp_ldcache_find(&cache, "libhsa-runtime64.so.1", exam->machine.arch, &from, &library) &&
           strncmp(library.path, "/opt/", 5) == 0;
}

/* Ubuntu's own ROCm, which the package rocminfo brings: its runtime knows no WSL. */
bool gp_wsl_report_twin(struct gp_exam *exam)
{
    static const char *const words[] = {"libhsa-runtime64-1", NULL};
    static const char *const own[] = {"/opt/rocm/lib/libhsa-runtime64.so.1", NULL};
    static const char name[] = "libhsa-runtime64-1";
    const char *twin = gp_system_library(exam, "", "libhsa-runtime64.so.1");
    struct gp_package *packages;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    if (!twin || finds_own(exam) || !gp_files_first(&exam->files, own) || count <= 0 ||
        strcmp(packages[0].state, "installed") != 0)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "two ROCm runtimes are installed, and that of the distribution finds no GPU in "
                   "WSL");
    gp_exam_evidence(exam, twin, "package %s %s", name, packages[0].version);
    gp_exam_evidence(exam, own[0], "present");
    gp_exam_why(exam, "Programs that load it report that the ROCk module is not loaded: it needs "
                      "/dev/kfd, which WSL does not have.");
    gp_exam_command(exam, "remove it, and what uses it", "sudo apt remove %s", name);
    return true;
}

static bool has_dxgkrnl(struct gp_exam *exam, const char *kernel)
{
    static const char *const lists[] = {"builtin", "dep"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        const char *path = gp_exam_text(exam, "/lib/modules/%s/modules.%s", kernel, lists[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 8 << 20, NULL);
        if (text && strstr(text, "/dxgkrnl.ko"))
            return true;
    }
    return false;
}

/* An installed kernel with the driver; NULL: none. */
static const char *kernel_with_dxgkrnl(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/lib/modules", &names);
    for (long i = 0; i < n; i++)
        if (has_dxgkrnl(exam, names[i]))
            return names[i];
    return NULL;
}

bool gp_wsl_report_hyperv(struct gp_exam *exam)
{
    static const char product[] = "/sys/class/dmi/id/product_name";
    const char *kernel = exam->machine.kernel;
    char line[64];
    if (gp_files_exist(&exam->files, "/dev/dxg") || strstr(kernel, "icrosoft") ||
        !gp_files_line(&exam->files, product, line, sizeof(line)) ||
        strcmp(line, "Virtual Machine") != 0 || has_dxgkrnl(exam, kernel))
        return false;
    const char *other = kernel_with_dxgkrnl(exam);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "kernel %s has no driver for the GPU that Hyper-V shares: dxgkrnl", kernel);
    gp_exam_evidence(exam, "/dev/dxg", "missing");
    gp_exam_evidence(exam, gp_exam_text(exam, "/lib/modules/%s", kernel), "no dxgkrnl");
    if (other)
        gp_exam_evidence(exam, gp_exam_text(exam, "/lib/modules/%s", other), "has it");
    gp_exam_why(exam, "This is a guest of Hyper-V with Windows' libraries, which reach the GPU "
                      "through /dev/dxg: without it nvidia-smi says \"GPU access blocked by the "
                      "operating system\".");
    if (!other) {
        gp_exam_advice(exam, "install a kernel with dxgkrnl, or build that module for this one: it "
                             "is in the source of WSL's kernel");
        gp_exam_link(exam, "https://github.com/microsoft/WSL2-Linux-Kernel");
        return true;
    }
    if (gp_machine_has_apt(&exam->machine)) {
        gp_exam_command(exam, "show the boot menu, and keep what is chosen there",
                        "sudo sed -i.before -e '/^GRUB_SAVEDEFAULT=/d' -e "
                        "'s/^GRUB_DEFAULT=.*/GRUB_DEFAULT=saved\\nGRUB_SAVEDEFAULT=true/' -e "
                        "'s/^GRUB_TIMEOUT_STYLE=.*/GRUB_TIMEOUT_STYLE=menu/' -e "
                        "'s/^GRUB_TIMEOUT=.*/GRUB_TIMEOUT=10/' /etc/default/grub");
        gp_exam_command(exam, "", "sudo update-grub && sudo reboot");
    }
    gp_exam_advice(exam, "choose kernel %s in the boot menu", other);
    return true;
}
