/* The documentation of the query fields: --list, --describe, the manual page. Pure: everything is
 * appended to a buffer. */
#ifndef GP_CMD_QUERY_FIELDS_H
#define GP_CMD_QUERY_FIELDS_H

#include "out/field.h"

struct gp_strbuf;

/* A line per field, or a JSON document. GP_EUSAGE: unsupported format. */
int gp_query_list_fields(struct gp_strbuf *sb, const struct gp_field_list *fields,
                         const char *format, bool header, struct gp_err *err) GP_MUST_CHECK;

/* A paragraph per field. */
void gp_query_describe_fields(struct gp_strbuf *sb, const struct gp_field_list *fields);

#endif
