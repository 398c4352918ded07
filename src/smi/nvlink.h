/* nvidia-smi nvlink: the links of each GPU. */
#ifndef GP_SMI_NVLINK_H
#define GP_SMI_NVLINK_H

#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum gp_smi_nvlink_question {
    GP_SMI_NVLINK_STATUS,
    GP_SMI_NVLINK_CAPABILITIES,
    GP_SMI_NVLINK_BUS_ID,
    GP_SMI_NVLINK_REMOTE,
    GP_SMI_NVLINK_ERRORS,
    GP_SMI_NVLINK_DATA, /* transferred bytes */
    GP_SMI_NVLINK_RAW,  /* transferred bytes, including protocol overhead */
};

struct gp_smi_nvlink {
    enum gp_smi_nvlink_question question;
    bool one_link;
    uint64_t link; /* if only one link is selected */
};

void gp_smi_nvlink_want(const struct gp_smi_nvlink *nvlink, struct gp_want *want);

/* False if only one link is selected and no GPU with links has it. */
bool gp_smi_nvlink_has_link(const struct gp_smi_nvlink *nvlink, const struct gp_snapshot *snapshot);

void gp_smi_nvlink_print(struct gp_strbuf *sb, const struct gp_smi_nvlink *nvlink,
                         const struct gp_smi_form *form, const struct gp_snapshot *snapshot);

#endif
