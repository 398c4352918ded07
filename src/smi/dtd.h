/* The document type of the XML, derived from the tree of the report. */
#ifndef GP_SMI_DTD_H
#define GP_SMI_DTD_H

#include "smi/form.h"

struct gp_strbuf;

/* Appends the declarations. */
void gp_smi_add_dtd(struct gp_strbuf *sb, const struct gp_smi_form *form, bool units);

#endif
