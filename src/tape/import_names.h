/* Names of other programs for metrics. */
#ifndef GP_TAPE_IMPORT_NAMES_H
#define GP_TAPE_IMPORT_NAMES_H

#include "model/metric.h"

enum gp_import_names { GP_IMPORT_DMON, GP_IMPORT_DCGM, GP_IMPORT_PROMETHEUS };

struct gp_import_name {
    enum gp_import_names of;
    const char *name;
    enum gp_metric metric;
    double factor; /* from its unit to that of the metric */
};

/* NULL: it is not known. */
const struct gp_import_name *gp_import_name_find(enum gp_import_names of, const char *name);

#endif
