/* The OpenMetrics writer; use gp_writer_find() to get it. */
#ifndef GP_OUT_OPENMETRICS_H
#define GP_OUT_OPENMETRICS_H

#include "out/writer.h"

struct gp_strbuf;

extern const struct gp_writer gp_writer_openmetrics;

/* Whether the metric only grows until it is reset: a counter, not a gauge. */
bool gp_openmetrics_is_counter(enum gp_metric m);

/* Appends the name of the metric's family, without the suffixes _total and _info. */
void gp_openmetrics_add_family(struct gp_strbuf *sb, enum gp_metric m);

#endif
