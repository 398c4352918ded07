/* Firmware that the kernel's driver of an AMD or Intel GPU did not find. */
#ifndef GP_DOCTOR_CHECKS_FIRMWARE_H
#define GP_DOCTOR_CHECKS_FIRMWARE_H

struct gp_exam;
struct gp_log_known;
struct gp_pci_gpu;

/* Adds to the finding the line of the log that names the file, and how to get it; and why it is not
 * found, if it is there. `module` is the driver, "amdgpu". */
void gp_firmware_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                         const struct gp_log_known *line, const char *module);

/* Adds how to update AMD's. */
void gp_firmware_update_amd(struct gp_exam *exam);

#endif
