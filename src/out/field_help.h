/* The documentation of the query fields: --list, --describe, the manual page. Pure: everything is
 * appended to a buffer. */
#ifndef GP_OUT_FIELD_HELP_H
#define GP_OUT_FIELD_HELP_H

#include "out/field.h"

#include <jansson.h>

struct gp_strbuf;

/* A line per field, or a JSON document. GP_EUSAGE: unsupported format. */
int gp_field_help_list(struct gp_strbuf *sb, const struct gp_field_list *fields, const char *format,
                       bool header, struct gp_err *err) GP_MUST_CHECK;

/* The JSON document. NULL without memory. */
json_t *gp_field_help_document(const struct gp_field_list *fields);

/* A paragraph per field. */
void gp_field_help_describe(struct gp_strbuf *sb, const struct gp_field_list *fields);

/* gpulse-metrics(7), as the source of scdoc. */
void gp_field_help_man(struct gp_strbuf *sb);

#endif
