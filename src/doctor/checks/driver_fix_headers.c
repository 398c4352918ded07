/* The headers of a kernel, which the driver's module is built against, and the packages with them.
 */
#include "doctor/checks/driver_fix.h"

#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/version.h"

#include <string.h>

/* From this kernel on, the packages of Proxmox are called so; before, pve-…. */
#define FIRST_OF_PROXMOX "6.5"

/* The series of a kernel of Debian or Kali, which names the packages that bring later kernels and
 * their headers: "cloud-amd64" for "6.12.48+deb13-cloud-amd64"; "" for another kernel. */
static const char *debian_series(const char *kernel)
{
    const char *kind = kernel + strspn(kernel, "0123456789.");
    if (strncmp(kind, "+deb", 4) == 0)
        kind += 4 + strspn(kind + 4, "0123456789");
    else if (strncmp(kind, "+kali", 5) == 0 || strncmp(kind, "-kali", 5) == 0)
        kind += 5 + strspn(kind + 5, "0123456789");
    else if (kind[0] == '-')
        kind += 1 + strspn(kind + 1, "0123456789");
    bool is_known = strcmp(kind, "-amd64") == 0 || strcmp(kind, "-arm64") == 0 ||
                    strcmp(kind, "-cloud-amd64") == 0 || strcmp(kind, "-cloud-arm64") == 0 ||
                    strcmp(kind, "-rt-amd64") == 0 || strcmp(kind, "-rt-arm64") == 0;
    return is_known ? kind + 1 : "";
}

/* The package that brings the headers of later kernels, too; "": none is known. */
static const char *debian_headers(struct gp_exam *exam, const char *kernel)
{
    const char *series = debian_series(kernel);
    return series[0] ? gp_exam_text(exam, "linux-headers-%s", series) : "";
}

void gp_driver_fix_without_headers(struct gp_exam *exam, const char *kernel)
{
    const char *series = debian_series(kernel);
    if (exam->machine.distro == GP_DISTRO_DEBIAN && series[0])
        gp_exam_command(exam,
                        "only if apt does not find the headers of this older kernel any more: "
                        "install the newest one with its headers, and reboot",
                        "sudo apt update && sudo apt install linux-image-%s linux-headers-%s",
                        series, series);
}

const char *gp_driver_kernel_series(struct gp_exam *exam)
{
    static const char *const words[] = {"linux-image-", NULL};
    const char *kernel = exam->machine.kernel, *found = "";
    size_t number = strspn(kernel, "0123456789.");
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++) {
        const char *series = packages[i].name + strlen(words[0]);
        bool is_one = series[0] >= 'a' && series[0] <= 'z' && strncmp(series, "extra", 5) != 0 &&
                      strncmp(series, "unsigned", 8) != 0 &&
                      strcmp(packages[i].state, "installed") == 0 &&
                      strncmp(packages[i].version, kernel, number) == 0;
        if (is_one && found[0])
            return "";
        found = is_one ? series : found;
    }
    return found;
}

/* The kernel, and the package that brings the headers of later ones, unless it is installed:
 * "6.8.0-45-generic linux-headers-generic-hwe-24.04". */
static const char *ubuntu_headers(struct gp_exam *exam, const char *kernel)
{
    const char *series = gp_driver_kernel_series(exam);
    const char *name = gp_exam_text(exam, "linux-headers-%s", series);
    bool is_missing = series[0] && !gp_packages_installed(&exam->files, &exam->arena, name);
    return is_missing ? gp_exam_text(exam, "%s %s", kernel, name) : kernel;
}

/* Headers of Proxmox have the name of their kernel's packages. */
static const char *name_of_proxmox(const char *kernel)
{
    return gp_version_compare(kernel, FIRST_OF_PROXMOX) < 0 ? "pve" : "proxmox";
}

/* The package that brings those of later kernels. */
static const char *series_of_proxmox(const char *kernel)
{
    return strcmp(name_of_proxmox(kernel), "pve") == 0 ? "pve-headers" : "proxmox-default-headers";
}

const char *gp_driver_headers_of_proxmox(struct gp_exam *exam, const char *kernel)
{
    return gp_exam_text(exam, "%s %s-headers-%s", series_of_proxmox(kernel),
                        name_of_proxmox(kernel), gp_exam_quoted(exam, kernel));
}

static void fix_headers_of_proxmox(struct gp_exam *exam, const char *kernel)
{
    gp_exam_command(exam, "install the kernel headers, which the module is built against",
                    "sudo apt install %s-headers-%s", name_of_proxmox(kernel),
                    gp_exam_quoted(exam, kernel));
    gp_exam_command(exam, "and the package that brings those of later kernels",
                    "sudo apt install %s", series_of_proxmox(kernel));
}

void gp_driver_fix_headers(struct gp_exam *exam, const char *kernel)
{
    bool is_arch = exam->machine.distro == GP_DISTRO_ARCH;
    gp_driver_fix_mirrors(exam);
    if (exam->machine.distro == GP_DISTRO_UBUNTU && gp_kernels_is_mainline(kernel))
        gp_exam_advice(exam,
                       "install the headers of this mainline kernel from where it came from, such "
                       "as kernel.ubuntu.com/mainline: Ubuntu's archive has none; or boot Ubuntu's "
                       "own kernel");
    else if (gp_kernels_is_proxmox(kernel))
        fix_headers_of_proxmox(exam, kernel);
    else if (!gp_driver_fix_named_headers(exam, kernel))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_HEADERS,
                       is_arch ? gp_exam_text(exam, "%s-headers", gp_kernels_package(exam, kernel))
                       : exam->machine.distro == GP_DISTRO_UBUNTU ? ubuntu_headers(exam, kernel)
                                                                  : kernel,
                       debian_headers(exam, kernel));
}

/* The installed packages of a kernel, by the number in their names. */
static const char *kernel_packages(struct gp_exam *exam, const char *kernel)
{
    static const char *const words[] = {"linux-headers-", "linux-image-", "linux-modules-", NULL};
    struct gp_package *packages;
    const char *names = "";
    const char *number = gp_exam_text(exam, "%.*s", (int)(strrchr(kernel, '-') - kernel), kernel);
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strstr(packages[i].name, number))
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "",
                                 gp_exam_quoted(exam, packages[i].name));
    return names;
}

static void leave_mainline(struct gp_exam *exam, const char *kernel)
{
    const char *other = gp_install_of(exam)->other_kernel;
    gp_exam_why(exam, "A mainline build is made for the newest Ubuntu: its headers depend on "
                      "libraries that an older release does not have, and without them no module "
                      "is built.");
    if (other[0])
        gp_exam_advice(exam, "boot kernel %s, which has the module, from the boot menu", other);
    else
        gp_exam_command(exam, "install the kernel of this release, and boot it",
                        "sudo apt install linux-generic");
    gp_exam_command(exam, "then, in that kernel: remove this one", "sudo apt purge %s",
                    kernel_packages(exam, kernel));
    gp_exam_advice(exam, "or update to the release of Ubuntu that this kernel was built for");
}

/* Whether a compiler has read the kernel's headers and rejected the module's source. The postinst
 * of the headers builds the module: if that fails, the headers stay half-configured, as a
 * consequence, though all their files are there. */
static bool is_source_rejected(struct gp_exam *exam, const char *kernel)
{
    const struct gp_failed_build *build = &gp_install_of(exam)->failed;
    const char *error = build->log && strcmp(build->kernel, kernel) == 0 ? build->error : "";
    return strstr(error, ": error: ") && (strstr(error, ".c:") || strstr(error, ".h:"));
}

/* NULL: they are installed, or not here, or are not what has stopped the build. */
static const struct gp_package *unfinished_headers(struct gp_exam *exam, const char *kernel)
{
    const char *const words[] = {gp_exam_text(exam, "linux-headers-%s", kernel), NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].name, words[0]) == 0 && gp_packages_is_broken(&packages[i]) &&
            (strcmp(packages[i].state, "half-installed") == 0 || !is_source_rejected(exam, kernel)))
            return &packages[i];
    return NULL;
}

bool gp_driver_has_unfinished_headers(struct gp_exam *exam, const char *kernel)
{
    return unfinished_headers(exam, kernel) != NULL;
}

bool gp_driver_fix_unfinished_headers(struct gp_exam *exam, const char *kernel)
{
    const struct gp_package *headers = unfinished_headers(exam, kernel);
    if (!headers)
        return false;
    gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s %s: %s", headers->name, headers->version,
                     headers->state);
    if (gp_kernels_is_mainline(kernel)) {
        leave_mainline(exam, kernel);
        return true;
    }
    gp_exam_why(exam, "The headers of this kernel were not installed to the end, and the module is "
                      "built against them.");
    gp_exam_remedy(exam, GP_REMEDY_CONFIGURE_PACKAGES, NULL, NULL);
    gp_exam_remedy(exam, GP_REMEDY_BUILD_MODULE, kernel, NULL);
    return true;
}
