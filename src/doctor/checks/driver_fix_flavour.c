/* Fixes that install the headers of a kernel that is not its distribution's usual one, or whose
 * packages have its number in their names; and what has to come before any package. */
#include "doctor/checks/driver_fix.h"

#include "doctor/readers/kernels.h"
#include "doctor/version.h"

#include <string.h>

static const char note[] = "install the kernel headers, which the module is built against";

/* The package with the headers of one of Red Hat's other kernels, or of ELRepo's; NULL: the usual
 * name. */
static const char *headers_of_rpm(struct gp_exam *exam, const char *kernel)
{
    const char *flavour = strchr(kernel, '+'), *rt = strstr(kernel, ".rt");
    if (strstr(kernel, "uek"))
        return gp_exam_text(exam, "kernel-uek-devel-%s", kernel);
    if (strstr(kernel, ".elrepo.")) /* kernel-ml or kernel-lt */
        return gp_exam_text(exam, "kernel-[ml][lt]-devel-%s", kernel);
    if (flavour && flavour[1]) /* "5.14.0-427.el9.x86_64+rt" */
        return gp_exam_text(exam, "kernel-%s-devel-%.*s", flavour + 1, (int)(flavour - kernel),
                            kernel);
    if (rt && rt[3] >= '0' && rt[3] <= '9') /* "4.18.0-513.rt7.302.el8.x86_64" */
        return gp_exam_text(exam, "kernel-rt-devel-%s", kernel);
    return NULL;
}

static bool fix_of_rpm(struct gp_exam *exam, const char *kernel)
{
    const struct gp_machine *m = &exam->machine;
    const char *package = headers_of_rpm(exam, kernel);
    bool is_old = m->distro == GP_DISTRO_RHEL && gp_version_major(m->distro_version) == 7;
    if (!package)
        return false;
    gp_exam_command(exam,
                    strstr(package, "-uek-")
                        ? "install the headers of Oracle's kernel, which the module needs"
                        : note,
                    "sudo %s %sinstall %s", is_old ? "yum" : "dnf",
                    strstr(kernel, ".elrepo.") ? "--enablerepo=elrepo-kernel " : "",
                    gp_exam_quoted(exam, package));
    return true;
}

/* The last word of SUSE's kernels: "longterm" in "6.12.58-1-longterm". */
static bool fix_of_suse(struct gp_exam *exam, const char *kernel)
{
    const char *flavour = strrchr(kernel, '-');
    if (!flavour || flavour[1] < 'a' || flavour[1] > 'z')
        return false;
    gp_exam_command(exam, note, "sudo zypper install %s",
                    gp_exam_quoted(exam, gp_exam_text(exam, "kernel-%s-devel", flavour + 1)));
    return true;
}

/* Manjaro's packages of 6.12 are linux612, unless the folder of its modules names another. */
static bool fix_of_manjaro(struct gp_exam *exam, const char *kernel)
{
    const char *package = gp_kernels_package(exam, kernel);
    if (strncmp(package, "linux", 5) != 0 || package[5] < '0' || package[5] > '9')
        package =
            gp_exam_text(exam, "linux%u%u", gp_version_major(kernel), gp_version_minor(kernel));
    gp_exam_command(exam, note, "sudo pacman -Syu %s",
                    gp_exam_quoted(exam, gp_exam_text(exam, "%s-headers", package)));
    return true;
}

static bool fix_of_void(struct gp_exam *exam, const char *kernel)
{
    gp_exam_command(exam, note, "sudo xbps-install -S linux%u.%u-headers", gp_version_major(kernel),
                    gp_version_minor(kernel));
    return true;
}

bool gp_driver_fix_named_headers(struct gp_exam *exam, const char *kernel)
{
    const struct gp_machine *m = &exam->machine;
    if (gp_version_major(kernel) == 0)
        return false;
    if (m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL)
        return fix_of_rpm(exam, kernel);
    if (m->distro == GP_DISTRO_SUSE || strncmp(m->distro_id, "sle", 3) == 0)
        return fix_of_suse(exam, kernel);
    if (strcmp(m->distro_id, "manjaro") == 0)
        return fix_of_manjaro(exam, kernel);
    return strcmp(m->distro_id, "void") == 0 && fix_of_void(exam, kernel);
}

void gp_driver_fix_mirrors(struct gp_exam *exam)
{
    static const char *const files[] = {"/etc/yum.repos.d/CentOS-Base.repo",
                                        "/etc/yum.repos.d/CentOS-Linux-BaseOS.repo",
                                        "/etc/yum.repos.d/CentOS-Stream-BaseOS.repo"};
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, files[i], 1 << 14, NULL);
        if (strcmp(exam->machine.distro_id, "centos") != 0 || !text ||
            !strstr(text, "\nmirrorlist=http://mirrorlist.centos.org/"))
            continue;
        gp_exam_command(exam,
                        "first, as the mirrors of this release are gone: have its packages come "
                        "from the archive; the original files are kept next to these",
                        "sudo sed -i.before -e 's/^mirrorlist=/#&/' -e "
                        "'s|^# *baseurl=http://mirror.centos.org|baseurl=http://vault.centos.org|' "
                        "/etc/yum.repos.d/CentOS-*.repo");
        return;
    }
}
