/* nvidia-smi conf-compute, c2c and vgpu: the platform of the GPUs. */
#ifndef GP_SMI_PLATFORM_H
#define GP_SMI_PLATFORM_H

#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

/* Properties of confidential computing, in output order. */
enum gp_smi_cc {
    GP_SMI_CC_FEATURE,
    GP_SMI_CC_MULTI_GPU,
    GP_SMI_CC_CPU,
    GP_SMI_CC_GPU,
    GP_SMI_CC_READY,
    GP_SMI_CC_ENVIRONMENT,
    GP_SMI_CC_DEVTOOLS,
    GP_SMI_CC__COUNT,
};

struct gp_smi_conf_compute {
    bool log;                     /* -q */
    bool asked[GP_SMI_CC__COUNT]; /* otherwise these, one line each */
};

void gp_smi_conf_compute_want(const struct gp_smi_conf_compute *cc, struct gp_want *want);
/* If the driver does not support it, appends a message and returns the exit status; otherwise 0. */
int gp_smi_conf_compute_refuse(const struct gp_smi_conf_compute *cc, struct gp_strbuf *message,
                               const struct gp_snapshot *snapshot);
void gp_smi_conf_compute_print(struct gp_strbuf *sb, const struct gp_smi_conf_compute *cc,
                               const struct gp_smi_form *form, const struct gp_snapshot *snapshot);

/* c2c -s: the links between a GPU and its CPU. */
void gp_smi_c2c_want(struct gp_want *want);
int gp_smi_c2c_refuse(struct gp_strbuf *message, const struct gp_snapshot *snapshot);
void gp_smi_c2c_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot);

/* vgpu, if no GPU is shared among guests; otherwise refuses. */
void gp_smi_vgpu_want(struct gp_want *want);
int gp_smi_vgpu_refuse(struct gp_strbuf *message, const struct gp_snapshot *snapshot);
void gp_smi_vgpu_print(struct gp_strbuf *sb);

#endif
