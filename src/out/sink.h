/* One place where a query's output goes: a writer with its state there, and a file or descriptor.
 * Where a file is rotated, each one is a document that is complete in itself. */
#ifndef GP_OUT_SINK_H
#define GP_OUT_SINK_H

#include "base/outfile.h"
#include "out/writer.h"

struct gp_sink {
    const struct gp_writer *writer;
    struct gp_writer_state state;
    struct gp_outfile file;
    const char *replaced; /* a file that holds the last sample alone, NULL: not so */
    bool broken;          /* a piece of a sample may have gone out: nothing more is written */
};

/* To a descriptor of the caller's. */
void gp_sink_init(struct gp_sink *sink, const struct gp_writer *writer, int fd);

/* To a file; `append` is not for writers with an end. GP_EIO; GP_EUSAGE for a file with other
 * columns, which stays as it is. */
int gp_sink_open(struct gp_sink *sink, const struct gp_writer *writer, const struct gp_view *view,
                 const struct gp_outfile_config *config, struct gp_err *err) GP_MUST_CHECK;

/* To a file that always holds the last sample, as one document. path must outlive the sink. */
void gp_sink_replace(struct gp_sink *sink, const struct gp_writer *writer, const char *path);

/* Writes one sample, into a new file if it is time for one. sb is room to work in. After an error
 * gp_sink_end() still closes the document, as far as that can be. GP_EIO, GP_ENOMEM, GP_ETOOBIG. */
int gp_sink_sample(struct gp_sink *sink, const struct gp_view *view,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb,
                   struct gp_err *err) GP_MUST_CHECK;

/* Writes what closes the document, and closes a file. */
int gp_sink_end(struct gp_sink *sink, const struct gp_view *view, struct gp_strbuf *sb,
                struct gp_err *err) GP_MUST_CHECK;

#endif
