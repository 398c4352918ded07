/* Which nvidia-smi is spoken. What it prints follows the branch of the driver, so every table of
 * this folder says of its rows which drivers have them. Facts: the captures in data/captures and
 * docs/smi.md. */
#ifndef GP_SMI_FORM_H
#define GP_SMI_FORM_H

#include "base/util.h"

#include <limits.h>

struct gp_snapshot;
struct gp_strbuf;
struct gp_value;

/* The first two parts of a driver's version as one number: 570.124.06 is 570124. */
#define GP_SMI_DRIVER(branch, minor) ((unsigned)((branch)*1000 + (minor)))

struct gp_smi_form {
    unsigned driver;
    bool native; /* the words of 610 in the banner, where older programs look for older ones */
};

/* Drivers first … last, as GP_SMI_DRIVER counts them. */
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

/* The form of this driver's version; 595 where it is absent. */
struct gp_smi_form gp_smi_form_of_driver(const struct gp_value *version, bool native);

/* The form of the driver that the snapshot is of. */
struct gp_smi_form gp_smi_form_of(const struct gp_snapshot *snapshot, bool native);

/* "Tue Jul 14 08:12:53 2026", in the local zone. */
void gp_smi_add_date(struct gp_strbuf *sb, const struct gp_snapshot *snapshot);

/* The first parts (0: all) of the version of the driver's library: "590.48.01" of "13.590.48.01",
 * which begins with CUDA's. */
void gp_smi_add_library(struct gp_strbuf *sb, const char *version, unsigned parts);

#endif
