/* The version of nvidia-smi to imitate. Its output depends on the driver branch, so the rows of all
 * tables in this directory state which drivers have them. Sources: the captures in data/captures,
 * and docs/smi.md. */
#ifndef GP_SMI_FORM_H
#define GP_SMI_FORM_H

#include "base/util.h"

#include <limits.h>

struct gp_snapshot;
struct gp_strbuf;
struct gp_value;

/* The first two parts of a driver version as one number: 570.124.06 is 570124. */
#define GP_SMI_DRIVER(branch, minor) ((unsigned)((branch)*1000 + (minor)))

struct gp_smi_form {
    unsigned driver;
    bool native; /* use the banner of 610 and later, which older programs cannot parse */
};

/* Drivers first to last, as GP_SMI_DRIVER numbers. */
struct gp_smi_range {
    unsigned first, last;
};

/* clang-format off */
#define GP_SMI_ALL {0, UINT_MAX}
#define GP_SMI_FROM(branch, minor) {GP_SMI_DRIVER(branch, minor), UINT_MAX}
#define GP_SMI_UNTIL(branch) {0, GP_SMI_DRIVER(branch, 999)}
#define GP_SMI_BETWEEN(first_branch, last_branch)                                                  \
    {GP_SMI_DRIVER(first_branch, 0), GP_SMI_DRIVER(last_branch, 999)}
/* clang-format on */

static inline bool gp_smi_in(const struct gp_smi_form *form, struct gp_smi_range range)
{
    return form->driver >= range.first && form->driver <= range.last;
}

/* The form for this driver version; 595 if it is absent. */
struct gp_smi_form gp_smi_form_of_driver(const struct gp_value *version, bool native);

/* The form for the driver of the snapshot. */
struct gp_smi_form gp_smi_form_of(const struct gp_snapshot *snapshot, bool native);

/* "Tue Jul 14 08:12:53 2026", in local time. */
void gp_smi_add_date(struct gp_strbuf *sb, const struct gp_snapshot *snapshot);

/* The first parts (0: all) of the driver library's version: "590.48.01" of "13.590.48.01", which
 * starts with the CUDA version. */
void gp_smi_add_library(struct gp_strbuf *sb, const char *version, unsigned parts);

#endif
