/* The JSON writers, and the building blocks of documents that other views share. */
#ifndef GP_OUT_JSON_H
#define GP_OUT_JSON_H

#include "out/writer.h"

#include <jansson.h>

extern const struct gp_writer gp_writer_json;
extern const struct gp_writer gp_writer_ndjson;

/* A new document with the common members: schema, time, host, driver. NULL without memory. */
json_t *gp_json_document(const struct gp_snapshot *snapshot, const char *schema);

/* Sets the rows of the view, under the name of their kind. */
void gp_json_set_rows(json_t *document, const struct gp_view *view,
                      const struct gp_snapshot *snapshot);

/* Lists in a document of processes the GPUs whose processes are unknown. Without rows they would
 * look free. */
void gp_json_set_incomplete(json_t *document, const struct gp_snapshot *snapshot);

/* Appends the text of the document, and releases the document. indent 0: on one line. */
void gp_json_add(struct gp_strbuf *sb, json_t *document, size_t indent);

#endif
