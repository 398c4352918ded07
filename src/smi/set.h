/* nvidia-smi's options that change a setting. GPUs are changed in sequence, as nvidia-smi does: an
 * error stops the command, and the remaining GPUs are left unchanged. */
#ifndef GP_SMI_SET_H
#define GP_SMI_SET_H

#include "smi/command.h"
#include "smi/setting.h"

struct gp_smi_set {
    const char *const *given; /* by enum gp_smi_setting_id */
    enum gp_smi_setting_id id;
    const struct gp_smi_setting *setting;
    enum gp_control_id control;
    struct gp_control_value value;
    const struct gp_smi_word *word;
    const char *root; /* set by the caller: the prefix of the machine's files; NULL: none */
};

/* Whether an option of a setting, indexed by enum gp_smi_setting_id, is given. */
bool gp_smi_set_is_given(const char *const *given);

/* Reads them; `others`: an option is given that cannot be combined with a setting. Returns 0, or an
 * exit status with the message appended. */
int gp_smi_set_read(const char *const *given, bool others, struct gp_smi_set *ret,
                    struct gp_strbuf *sb);

/* Makes the change, except for GP_SMI_SET_RESET. `flush` prints and empties the buffer after each
 * GPU; it returns 0 or an exit status. Returns the exit status. */
int gp_smi_set_apply(const struct gp_smi_set *set, struct gp_changer *changer,
                     int (*flush)(struct gp_strbuf *sb), struct gp_strbuf *sb);

/* For GP_SMI_SET_RESET: shows why there is no reset. ctx is an int that receives the exit
 * status. */
extern const struct gp_smi_show gp_smi_reset_refusal;

#endif
