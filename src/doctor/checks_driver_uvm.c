/* nvidia_uvm, which CUDA needs, where nothing loads it or where a part of it fails. Findings of
 * driver.nodes. */
#include "doctor/checks_driver.h"
#include "doctor/driver_fix.h"
#include "doctor/log.h"
#include "doctor/version.h"

#include <string.h>

static const char module[] = "/sys/module/nvidia_uvm";

/* Containers without privileges, as those of enroot, cannot load modules or create device files;
 * elsewhere nvidia-modprobe or a service of root does that at first use. */
static void check_containers(struct gp_exam *exam)
{
    static const char hook[] = "/etc/enroot/hooks.d/98-nvidia.sh";
    static const char unit[] = "/etc/systemd/system/nvidia-device-files.service";
    if (exam->machine.container || gp_files_exist(&exam->files, module) ||
        !gp_files_exist(&exam->files, hook))
        return;
    const struct gp_log_known *failure = gp_log_known_of(exam, "container.modeset");
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "enroot's containers cannot use the GPUs: nvidia_uvm is not loaded");
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, hook, "present");
    if (failure)
        gp_log_show_known(exam, failure);
    gp_exam_why(exam, "Nothing loads it at boot. Root's programs and Docker load it at first use, "
                      "with its device files; a container without privileges cannot.");
    gp_exam_command(exam, "load it now", "sudo nvidia-modprobe -u -m -c 0");
    gp_exam_command(
        exam, "and at each boot",
        "printf '[Service]\\nType=oneshot\\nExecStart=/usr/bin/nvidia-modprobe -u -m -c "
        "0\\n[Install]\\nWantedBy=multi-user.target\\n' | sudo tee %s",
        unit);
    gp_exam_command(exam, "", "sudo systemctl enable nvidia-device-files");
}

/* Heterogeneous memory management, in the open modules since 535, fails with some kernels: CUDA
 * then reports error 3, although all that it needs is there. */
static void check_hmm(struct gp_exam *exam)
{
    static const char setting[] = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
    char value[8];
    if (!gp_files_line(&exam->files, setting, value, sizeof(value)) || strcmp(value, "N") != 0 ||
        !exam->machine.is_driver_open || !gp_files_exist(&exam->files, "/dev/nvidia-uvm") ||
        gp_driver_is_mismatched(exam))
        return;
    const struct gp_log_known *failure = gp_log_known_of(exam, "ollama.init-3,cuda.init-3");
    if (!failure)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "CUDA cannot be initialized (error 3) while nvidia_uvm uses HMM");
    gp_log_show_known(exam, failure);
    gp_exam_evidence(exam, setting, "N");
    gp_exam_evidence(exam, "/dev/nvidia-uvm", "present, and the versions match");
    gp_exam_why(exam, "HMM of the open modules fails with some kernels and drivers, and cuInit "
                      "with it. No program needs HMM for its usual work.");
    gp_exam_module_setting(exam, "let nvidia_uvm do without HMM", "nvidia-uvm-hmm.conf",
                           "options nvidia_uvm uvm_disable_hmm=1");
    gp_exam_command(exam, "load it again, once nothing uses CUDA; or reboot",
                    "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm");
    gp_exam_advice(exam, "if it persists: reboot, and look for an Xid in journalctl -k");
}

void gp_driver_check_uvm(struct gp_exam *exam)
{
    check_containers(exam);
    check_hmm(exam);
}
