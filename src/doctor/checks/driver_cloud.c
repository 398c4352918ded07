/* Clouds whose GPUs need a driver of their own. */
#include "doctor/checks/driver_fix.h"

#include "doctor/exam.h"

#include <string.h>

static bool is_azure(const struct gp_exam *exam)
{
    return gp_machine_is_virtual(&exam->files) &&
           (strstr(exam->machine.kernel, "azure") ||
            gp_files_exist(&exam->files, "/var/lib/waagent"));
}

bool gp_driver_fix_cloud(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    enum { A10 = 0x2236 };
    const char *headers =
        exam->machine.kernel[0] ? gp_exam_quoted(exam, exam->machine.kernel) : "$(uname -r)";
    if (gpu->device != A10 || !is_azure(exam))
        return false;
    gp_exam_why(exam, "Azure has the A10 only as a virtual GPU (NVadsA10 v5), also as a whole one: "
                      "it needs Azure's own driver (GRID). Those of distributions and of NVIDIA's "
                      "page of downloads do not start it.");
    if (exam->machine.is_driver_loaded)
        gp_exam_advice(exam, "first remove the driver that is installed, its packages");
    if (gp_machine_has_apt(&exam->machine))
        gp_exam_command(exam, "what builds its module",
                        "sudo apt install build-essential dkms "
                        "linux-headers-%s",
                        headers);
    else if (exam->machine.distro == GP_DISTRO_RHEL)
        gp_exam_command(exam, "what builds its module",
                        "sudo dnf install kernel-devel-%s gcc make elfutils-libelf-devel", headers);
    gp_exam_command(exam, "Azure's driver, with its licence",
                    "curl -fL -o azure-grid.run 'https://go.microsoft.com/fwlink/?linkid=874272'");
    gp_exam_command(exam, "", "sudo sh azure-grid.run");
    gp_driver_fix_reboot(exam, "");
    gp_exam_link(exam,
                 "https://learn.microsoft.com/azure/virtual-machines/linux/n-series-driver-setup");
    return true;
}
