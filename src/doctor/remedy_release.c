/* Remedies of releases whose commands differ from those of the rest of their family. */
#include "doctor/remedy.h"

#include "doctor/version.h"

#include <string.h>

#define EPEL "https://dl.fedoraproject.org/pub/epel/epel-release-latest-"
/* EPEL 7 has been in the archive since 2024, which has no name for the newest version. */
#define EPEL_OF_7                                                                                  \
    "https://archives.fedoraproject.org/pub/archive/epel/7/x86_64/Packages/e/"                     \
    "epel-release-7-14.noarch.rpm"

/* RHEL 7 has neither modules of packages nor branches that bring their own dkms; its newest driver
 * still supports Maxwell, Pascal and Volta. */
#define NOTE_EL7 "install the newest driver that NVIDIA's repository has for this release"
#define NEWEST_ON_EL7                                                                              \
    "sudo yum install " EPEL_OF_7 " yum-utils\n"                                                   \
    "sudo yum-config-manager --add-repo " GP_NVIDIA_REPOSITORIES "rhel7/x86_64/cuda-rhel7.repo\n"  \
    "sudo yum install kernel-devel-$(uname -r) nvidia-driver-latest-dkms cuda-drivers"

#define NOTE_EL7_470                                                                               \
    "what NVIDIA's .run installer of branch 470 needs, the last for this GPU; then run it with "   \
    "--dkms"
#define TOOLS_ON_EL7                                                                               \
    "sudo yum install " EPEL_OF_7 "\n"                                                             \
    "sudo yum install kernel-devel-$(uname -r) gcc make dkms"

#define OPEN_ON_EL8                                                                                \
    "sudo dnf install " EPEL "8.noarch.rpm\n"                                                      \
    "sudo dnf config-manager --add-repo " GP_NVIDIA_REPOSITORY(                                    \
        "rhel8") "\n"                                                                              \
                 "sudo dnf module reset nvidia-driver\n"                                           \
                 "sudo dnf module enable nvidia-driver:open-dkms\n"                                \
                 "sudo dnf install kernel-devel-$(uname -r) nvidia-open"

#define REPOSITORY_OF_EL10                                                                         \
    "sudo dnf install " EPEL "10.noarch.rpm\n"                                                     \
    "sudo dnf config-manager --add-repo " GP_NVIDIA_REPOSITORY("rhel10") "\n"
#define OPEN_ON_EL10 REPOSITORY_OF_EL10 "sudo dnf install kernel-devel-matched nvidia-open"
#define LAST_ON_EL10                                                                               \
    REPOSITORY_OF_EL10                                                                             \
    "sudo dnf install python3-dnf-plugin-versionlock\n"                                            \
    "sudo dnf versionlock '*nvidia*580*'\n"                                                        \
    "sudo dnf install kernel-devel-matched cuda-drivers --allowerasing"
#define NOTE_EL10_470                                                                              \
    "the last driver for this GPU is branch 470, which this release does not have: use RHEL 8 or " \
    "9, or what is built like it, or nouveau, without CUDA"

/* Before 15.4 openSUSE has no open modules of its own, and before 15.5 no package with the address
 * of NVIDIA's repository. The id of Leap 42 is "opensuse". */
#define REPOSITORY_OF_LEAP                                                                         \
    "sudo zypper addrepo --refresh 'https://download.nvidia.com/opensuse/leap/$releasever' "       \
    "NVIDIA\n"
#define NOTE_LEAP "install the newest driver that NVIDIA's repository has for this release"
#define G04_ON_LEAP REPOSITORY_OF_LEAP "sudo zypper install x11-video-nvidiaG04 nvidia-computeG04"
#define G05_ON_LEAP REPOSITORY_OF_LEAP "sudo zypper install x11-video-nvidiaG05 nvidia-computeG05"
#define G06_ON_LEAP                                                                                \
    REPOSITORY_OF_LEAP                                                                             \
    "sudo zypper install nvidia-driver-G06-kmp-default nvidia-compute-utils-G06"
#define OPEN_ON_LEAP                                                                               \
    REPOSITORY_OF_LEAP                                                                             \
    "sudo zypper install nvidia-open-driver-G06-signed-kmp-default nvidia-compute-utils-G06"

/* "15.5" is sle15sp5 there. */
#define REPOSITORY_OF_SLES                                                                         \
    "sudo zypper addrepo --refresh https://download.nvidia.com/suse/sle$(. /etc/os-release && "    \
    "echo $VERSION_ID | sed s/[.]/sp/) NVIDIA\n"
#define G05_ON_SLES REPOSITORY_OF_SLES "sudo zypper install x11-video-nvidiaG05 nvidia-computeG05"
#define G06_ON_SLES                                                                                \
    REPOSITORY_OF_SLES                                                                             \
    "sudo zypper install nvidia-driver-G06-kmp-default nvidia-compute-utils-G06"

static const struct gp_remedy_release releases[] = {
    {GP_DISTRO_RHEL, "", "7", "8", GP_REMEDY_INSTALL_DRIVER_OPEN, NOTE_EL7, NEWEST_ON_EL7},
    {GP_DISTRO_RHEL, "", "7", "8", GP_REMEDY_INSTALL_DRIVER_580, NOTE_EL7, NEWEST_ON_EL7},
    {GP_DISTRO_RHEL, "", "7", "8", GP_REMEDY_INSTALL_DRIVER_470, NOTE_EL7_470, TOOLS_ON_EL7},
    {GP_DISTRO_RHEL, "", "8", "9", GP_REMEDY_INSTALL_DRIVER_OPEN, NULL, OPEN_ON_EL8},
    {GP_DISTRO_RHEL, "", "10", "11", GP_REMEDY_INSTALL_DRIVER_OPEN, NULL, OPEN_ON_EL10},
    {GP_DISTRO_RHEL, "", "10", "11", GP_REMEDY_INSTALL_DRIVER_580, NULL, LAST_ON_EL10},
    {GP_DISTRO_RHEL, "", "10", "11", GP_REMEDY_INSTALL_DRIVER_470, NOTE_EL10_470, NULL},
    {GP_DISTRO_SUSE, "opensuse", "42", "43", GP_REMEDY_INSTALL_DRIVER_580, NOTE_LEAP, G04_ON_LEAP},
    {GP_DISTRO_SUSE, "opensuse", "42", "43", GP_REMEDY_INSTALL_DRIVER_470, NOTE_LEAP, G04_ON_LEAP},
    {GP_DISTRO_SUSE, "leap", "15", "15.4", GP_REMEDY_INSTALL_DRIVER_OPEN, NOTE_LEAP, G05_ON_LEAP},
    {GP_DISTRO_SUSE, "leap", "15", "15.4", GP_REMEDY_INSTALL_DRIVER_580, NOTE_LEAP, G05_ON_LEAP},
    {GP_DISTRO_SUSE, "leap", "15", "15.5", GP_REMEDY_INSTALL_DRIVER_470, NULL, G05_ON_LEAP},
    {GP_DISTRO_SUSE, "leap", "15.4", "15.5", GP_REMEDY_INSTALL_DRIVER_OPEN, NULL, OPEN_ON_LEAP},
    {GP_DISTRO_SUSE, "leap", "15.4", "15.5", GP_REMEDY_INSTALL_DRIVER_580, NULL, G06_ON_LEAP},
    {GP_DISTRO_OTHER, "sle", "15.4", "16", GP_REMEDY_INSTALL_DRIVER_580, NULL, G06_ON_SLES},
    {GP_DISTRO_OTHER, "sle", "15", "15.4", GP_REMEDY_INSTALL_DRIVER_580, NULL, G05_ON_SLES},
    {GP_DISTRO_OTHER, "sle", "15", "16", GP_REMEDY_INSTALL_DRIVER_470, NULL, G05_ON_SLES},
};

const struct gp_remedy_release *gp_remedy_release(const struct gp_machine *m, enum gp_remedy remedy)
{
    if (!m->distro_version[0])
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(releases); i++) {
        const struct gp_remedy_release *row = &releases[i];
        if (row->remedy == remedy && row->family == m->distro && strstr(m->distro_id, row->word) &&
            gp_version_compare(m->distro_version, row->from) >= 0 &&
            gp_version_compare(m->distro_version, row->below) < 0)
            return row;
    }
    return NULL;
}
