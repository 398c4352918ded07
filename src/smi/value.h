/* Formats values like nvidia-smi. */
#ifndef GP_SMI_VALUE_H
#define GP_SMI_VALUE_H

#include "model/metric.h"
#include "smi/form.h"

#define GP_SMI_DEPRECATED "Requested functionality has been deprecated"

enum gp_smi_style {
    GP_SMI_LOG,   /* -q: "70.00 W", "N/A" */
    GP_SMI_XML,   /* -q -x: the same, but hexadecimal numbers without 0x; escaped */
    GP_SMI_CSV,   /* --format=csv: "70.00 W", "[N/A]" */
    GP_SMI_PLAIN, /* --format=csv,nounits: "70.00", "[N/A]" */
};

/* Appends a value, or the placeholder of an absent one. */
void gp_smi_add_value(struct gp_strbuf *sb, const struct gp_smi_form *form, enum gp_metric m,
                      const struct gp_value *v, enum gp_smi_style style);

/* nvidia-smi's placeholder for a missing value: "N/A", "GPU is lost", … */
const char *gp_smi_absence(const struct gp_smi_form *form, enum gp_metric m,
                           const struct gp_value *v);

/* Whole MiB, rounded like this version of nvidia-smi. */
uint64_t gp_smi_mib(const struct gp_smi_form *form, enum gp_metric m, int64_t bytes);

/* The unit in the header of a --format=csv column, without brackets; "" for none. */
const char *gp_smi_unit(enum gp_metric m);

/* Appends "26.562 GB/s", "25 GB/s". */
void gp_smi_add_gigabytes(struct gp_strbuf *sb, double bytes_per_s);

#endif
