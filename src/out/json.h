/* The writers of out/json.c, and the pieces of a document that other views share. */
#ifndef GP_OUT_JSON_H
#define GP_OUT_JSON_H

#include "out/writer.h"

#include <jansson.h>

extern const struct gp_writer gp_writer_json;
extern const struct gp_writer gp_writer_ndjson;

/* A new document with what every one of ours begins with: schema, time, host, driver. NULL without
 * memory. */
json_t *gp_json_document(const struct gp_snapshot *snapshot, const char *schema);

/* Names in a document of processes the GPUs whose processes are not known now: without a row of
 * theirs they would look free. */
void gp_json_set_incomplete(json_t *document, const struct gp_snapshot *snapshot);

/* Appends the document's text, and releases it. indent 0: on one line. */
void gp_json_add(struct gp_strbuf *sb, json_t *document, size_t indent);

#endif
