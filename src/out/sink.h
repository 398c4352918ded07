/* The destination of a query's output: a writer with its state, and a file or descriptor. With
 * rotation, each file is a complete document. */
#ifndef GP_OUT_SINK_H
#define GP_OUT_SINK_H

#include "base/outfile.h"
#include "out/writer.h"

struct gp_sink {
    const struct gp_writer *writer;
    struct gp_writer_state state;
    struct gp_outfile file;
    const char *replaced; /* file to replace with each sample; NULL: none */
    bool broken;          /* part of a sample may have been written: write nothing more */
};

/* Writes to a descriptor that belongs to the caller. */
void gp_sink_init(struct gp_sink *sink, const struct gp_writer *writer, int fd);

/* Writes to a file; `append` is not allowed for writers with an end. Fails with GP_EIO, or with
 * GP_EUSAGE if the file has other columns; it then stays unchanged. */
int gp_sink_open(struct gp_sink *sink, const struct gp_writer *writer, const struct gp_view *view,
                 const struct gp_outfile_config *config, struct gp_err *err) GP_MUST_CHECK;

/* Writes to a file that always contains the last sample, as one document. path must outlive the
 * sink. */
void gp_sink_replace(struct gp_sink *sink, const struct gp_writer *writer, const char *path);

/* Writes one sample, to a new file if rotation is due. sb is scratch space. After an error,
 * gp_sink_end() still closes the document if possible. Fails with GP_EIO, GP_ENOMEM or
 * GP_ETOOBIG. */
int gp_sink_sample(struct gp_sink *sink, const struct gp_view *view,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb,
                   struct gp_err *err) GP_MUST_CHECK;

/* Writes the end of the document, and closes the file. */
int gp_sink_end(struct gp_sink *sink, const struct gp_view *view, struct gp_strbuf *sb,
                struct gp_err *err) GP_MUST_CHECK;

#endif
