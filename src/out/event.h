/* Events as text for people, and as ndjson (schema gpulse.event/1, docs/schema.md). */
#ifndef GP_OUT_EVENT_H
#define GP_OUT_EVENT_H

#include "base/util.h"

struct gp_event;
struct gp_strbuf;

/* Appends one line: time, GPU, kind, text. */
void gp_event_add_text(struct gp_strbuf *sb, const struct gp_event *event);

/* Appends one JSON object on one line; host is the name of this machine. */
void gp_event_add_json(struct gp_strbuf *sb, const struct gp_event *event, const char *host);

#endif
