/* One line per GPU from a pattern, for status bars: "{index} {utilization.gpu}%
 * {memory.used:GiB}". */
#ifndef GP_OUT_LINE_H
#define GP_OUT_LINE_H

#include "out/field.h"

struct gp_device;
struct gp_snapshot;

/* Adds the metrics of the pattern to the set. "{{" and "}}" stand for braces. GP_EUSAGE names the
 * bad field or the place of an unclosed brace. */
int gp_line_check(const char *pattern, struct gp_metric_set *ret_metrics,
                  struct gp_err *err) GP_MUST_CHECK;

/* Appends the line of one device, without a newline. gp_line_check() must have accepted the
 * pattern. */
void gp_line_format(struct gp_strbuf *sb, const char *pattern, const struct gp_snapshot *snapshot,
                    const struct gp_device *device);

#endif
