/* nvidia-smi's error messages and exit statuses; the status is mostly the return code of the
 * driver's library. */
#ifndef GP_SMI_MESSAGE_H
#define GP_SMI_MESSAGE_H

#include "smi/form.h"

struct gp_device;
struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* The message for options for which nvidia-smi uses a private call. */
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

/* The exit status for a return code of the driver. */
int gp_smi_exit_of(int driver_code);

/* Appends the message for an error; returns the exit status. */
int gp_smi_add_error(struct gp_strbuf *sb, const struct gp_err *err);

/* Appends the line for an unreachable GPU; bus may be NULL. */
void gp_smi_add_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form, unsigned index,
                            const char *bus, int driver_code);

/* Appends the line for a GPU without a handle. */
void gp_smi_add_refusal(struct gp_strbuf *sb, const struct gp_smi_form *form,
                        const struct gp_device *gpu);

/* Appends such a line for each of them; returns whether any other GPU can be shown. */
bool gp_smi_add_refusals(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot);

/* Appends a line for each GPU that does not respond, with or without a handle. */
void gp_smi_add_failures(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot);

/* Appends a line for each GPU with a corrupt infoROM. */
void gp_smi_add_warnings(struct gp_strbuf *sb, const struct gp_snapshot *snapshot);

/* The exit status after this sample: the driver's code for a GPU that failed, like in nvidia-smi. A
 * GPU that hangs (nvidia-smi would wait for it) is not a failure while others respond. */
int gp_smi_exit_status(const struct gp_snapshot *snapshot);

#endif
