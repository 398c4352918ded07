/* The summary that nvidia-smi prints without arguments: a box of GPUs, one of MIG devices if there
 * are any, and one of processes. */
#ifndef GP_SMI_TABLE_H
#define GP_SMI_TABLE_H

#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

void gp_smi_table_want(struct gp_want *want);
void gp_smi_table_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                        const struct gp_snapshot *snapshot);

#endif
