/* Snapshots as text for people and programs: one writer per format, all pure: they append to a
 * buffer and know neither files nor terminals. */
#ifndef GP_OUT_WRITER_H
#define GP_OUT_WRITER_H

#include "out/field.h"

struct gp_snapshot;
struct gp_strbuf;

/* What is shown. */
struct gp_view {
    enum gp_scope scope; /* what there is a row for */
    struct gp_field_list fields;
    bool header;
    bool units;  /* name the units: in the header of csv and tsv, an object in JSON, attributes in
                    XML */
    bool looped; /* more than one sample will come */
    size_t room; /* columns of the terminal that a table is shown on; 0: it may be of any width */
};

enum { GP_WRITER_COLUMNS_MAX = 1024 };

/* State over the samples of one run. Zero-initialise. */
struct gp_writer_state {
    size_t samples;
    size_t widths[GP_WRITER_COLUMNS_MAX]; /* of the table's columns */
};

struct gp_writer {
    const char *name;
    /* Appends one sample, complete in itself. GP_ENOMEM / GP_ETOOBIG through sb->error. */
    void (*sample)(const struct gp_view *view, struct gp_writer_state *state,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb);
    /* Appends the line that stands once, at the beginning of a file, if the view has a header; a
     * file that begins with another one is not continued. NULL: there is none that says which
     * columns follow. */
    void (*header)(const struct gp_view *view, struct gp_strbuf *sb);
    /* Adds the metrics that the writer shows with every row: identity; NULL: none. */
    void (*want)(const struct gp_view *view, struct gp_metric_set *metrics);
    /* Appends what closes the document; NULL: nothing. */
    void (*end)(const struct gp_view *view, struct gp_writer_state *state, struct gp_strbuf *sb);
};

#define GP_WRITER_NAMES "table csv tsv json ndjson xml openmetrics"

/* By name, one of GP_WRITER_NAMES; NULL if unknown. */
const struct gp_writer *gp_writer_find(const char *name);

#endif
