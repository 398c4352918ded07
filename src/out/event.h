/* Events as text for people, and as ndjson (schema gpulse.event/1, docs/schema.md); the list of
 * their kinds. */
#ifndef GP_OUT_EVENT_H
#define GP_OUT_EVENT_H

#include "base/util.h"

#include <jansson.h>

struct gp_event;
struct gp_event_source;
struct gp_strbuf;

/* Appends one line: time, GPU, kind, text. */
void gp_event_add_text(struct gp_strbuf *sb, const struct gp_event *event);

/* The event as an object; host is the name of this machine. NULL without memory. */
json_t *gp_event_object(const struct gp_event *event, const char *host);

/* Appends the same on one line. */
void gp_event_add_json(struct gp_strbuf *sb, const struct gp_event *event, const char *host);

/* Appends a table of all kinds that says who finds them on each of these GPUs: the driver, or
 * gpulse by comparing samples. GPUs that are alike share a column, if all are or if there is a
 * limit of `room` columns (0: none), at which lines are cut. */
void gp_event_add_kinds(struct gp_strbuf *sb, const struct gp_event_source *sources, size_t count,
                        size_t room);

#endif
