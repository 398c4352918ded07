/* Short lists: the GPUs (-L), excluded GPUs (-B), versions, and units, which current machines do
 * not have. */
#ifndef GP_SMI_LIST_H
#define GP_SMI_LIST_H

#include "smi/form.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

/* Appends the line that identifies a GPU, or the reason why that is unknown; requests GP_NAME and
 * GP_UUID. */
void gp_smi_add_gpu(struct gp_strbuf *sb, const struct gp_smi_form *form,
                    const struct gp_device *gpu);

void gp_smi_list_want(struct gp_want *want);
void gp_smi_list_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                       const struct gp_snapshot *snapshot);

void gp_smi_excluded_want(struct gp_want *want);
void gp_smi_excluded_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_snapshot *snapshot);

void gp_smi_versions_want(struct gp_want *want);
void gp_smi_versions_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_snapshot *snapshot);

#endif
