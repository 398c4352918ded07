/* A value in nvidia-smi's words. */
#ifndef GP_SMI_VALUE_H
#define GP_SMI_VALUE_H

#include "model/metric.h"
#include "smi/form.h"

#define GP_SMI_DEPRECATED "Requested functionality has been deprecated"

enum gp_smi_style {
    GP_SMI_LOG,   /* -q: "70.00 W", "N/A" */
    GP_SMI_XML,   /* -q -x: the same, numbers in hexadecimal without 0x; escaped */
    GP_SMI_CSV,   /* --format=csv: "70.00 W", "[N/A]" */
    GP_SMI_PLAIN, /* --format=csv,nounits: "70.00", "[N/A]" */
};

/* Appends a value, or the words for its absence. */
void gp_smi_add_value(struct gp_strbuf *sb, const struct gp_smi_form *form, enum gp_metric m,
                      const struct gp_value *v, enum gp_smi_style style);

/* What nvidia-smi says where there is no value: "N/A", "GPU is lost", … */
const char *gp_smi_absence(const struct gp_smi_form *form, enum gp_metric m,
                           const struct gp_value *v);

/* Whole MiB as this nvidia-smi rounds them. */
uint64_t gp_smi_mib(const struct gp_smi_form *form, int64_t bytes);

/* The unit in the header of a column of --format=csv, without its brackets; "" for none. */
const char *gp_smi_unit(enum gp_metric m);

/* Appends "26.562 GB/s", "25 GB/s". */
void gp_smi_add_gigabytes(struct gp_strbuf *sb, double bytes_per_s);

/* Appends text for XML. */
void gp_smi_add_escaped(struct gp_strbuf *sb, const char *text);

#endif
