/* Formats snapshots as text, for people and programs. There is one writer per format. Writers only
 * append to a buffer, and use neither files nor terminals. */
#ifndef GP_OUT_WRITER_H
#define GP_OUT_WRITER_H

#include "out/field.h"
#include "source/source.h"

struct gp_snapshot;
struct gp_strbuf;

/* What to show. */
struct gp_view {
    enum gp_scope scope; /* each row describes one of these */
    struct gp_field_list fields;
    bool header;
    bool units;  /* show the units: in the header of csv and tsv, an object in JSON, attributes in
                    XML */
    bool looped; /* more than one sample will be written */
    size_t room; /* columns of the terminal, for a table; 0: unlimited */
};

enum { GP_WRITER_COLUMNS_MAX = 1024 };

/* State across the samples of one run. Zero-initialize. */
struct gp_writer_state {
    size_t samples;
    size_t widths[GP_WRITER_COLUMNS_MAX]; /* of the table's columns */
};

struct gp_writer {
    const char *name;
    /* Appends one complete sample. Errors (GP_ENOMEM, GP_ETOOBIG) are in sb->error. */
    void (*sample)(const struct gp_view *view, struct gp_writer_state *state,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb);
    /* Appends the header line of a file, if the view has one. A file with a different header is not
     * appended to. NULL: the format has no such header. */
    void (*header)(const struct gp_view *view, struct gp_strbuf *sb);
    /* Adds the metrics that the writer needs to identify rows; NULL: none. */
    void (*want)(const struct gp_view *view, struct gp_metric_set *metrics);
    /* Appends the end of the document; NULL: nothing. */
    void (*end)(const struct gp_view *view, struct gp_writer_state *state, struct gp_strbuf *sb);
};

#define GP_WRITER_NAMES "table csv tsv json ndjson xml openmetrics"

/* Finds a writer by one of GP_WRITER_NAMES; NULL if unknown. */
const struct gp_writer *gp_writer_find(const char *name);

/* Adds what must be sampled for rows of this kind, whichever fields they have. */
void gp_want_rows(struct gp_want *want, enum gp_scope scope);

/* Adds what must be sampled for a view. MIG instances only where fields need them. */
void gp_want_view(struct gp_want *want, const struct gp_view *view);

/* What must be sampled for a view; MIG instances also if `mig` is not set, where fields need
 * them. */
struct gp_want gp_view_want(const struct gp_view *view, const struct gp_writer *writer, bool mig);

#endif
