/* What nvidia-smi says when something is wrong, and the exit status that goes with it: mostly the
 * code that the driver's library answered. */
#ifndef GP_SMI_MESSAGE_H
#define GP_SMI_MESSAGE_H

#include "smi/form.h"

struct gp_device;
struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* Where nvidia-smi has a private call. */
#define GP_SMI_NO_CALL                                                                             \
    "gpulse: the driver's public interface has no call for this; NVIDIA's own nvidia-smi may do "  \
    "it.\n"

/* Exit statuses; most are return codes of the driver's library. */
enum {
    GP_SMI_EXIT_USAGE = 2,
    GP_SMI_EXIT_NOT_SUPPORTED = 3,
    GP_SMI_EXIT_NO_PERMISSION = 4,
    GP_SMI_EXIT_NOT_FOUND = 6,
    GP_SMI_EXIT_TIMEOUT = 10,
    GP_SMI_EXIT_INFOROM = 14,
    GP_SMI_EXIT_OTHER = 255,
};

/* The exit status for what the driver answered. */
int gp_smi_exit_of(int driver_code);

/* Appends what is said of an error; returns the exit status. */
int gp_smi_add_error(struct gp_strbuf *sb, const struct gp_err *err);

/* Appends the line that stands for a GPU which cannot be had; bus may be NULL. */
void gp_smi_add_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form, unsigned index,
                            const char *bus, int driver_code);

/* Appends the line that stands for a GPU which the driver does not hand out. */
void gp_smi_add_refusal(struct gp_strbuf *sb, const struct gp_smi_form *form,
                        const struct gp_device *gpu);

/* Appends such a line for each of them; returns whether any other GPU is there to be shown. */
bool gp_smi_add_refusals(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot);

/* Appends such a line for each GPU that does not answer, handed out or not. */
void gp_smi_add_failures(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot);

/* Appends a line for each GPU whose infoROM is known to be damaged. */
void gp_smi_add_warnings(struct gp_strbuf *sb, const struct gp_snapshot *snapshot);

/* The exit status behind this sample: what the driver answered for a GPU that failed, as nvidia-smi
 * has it. A GPU that hangs, for which nvidia-smi would wait, is no failure as long as others
 * answer. */
int gp_smi_exit_status(const struct gp_snapshot *snapshot);

#endif
