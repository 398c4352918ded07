#include "out/sink.h"

#include "base/err.h"
#include "base/strbuf.h"

void gp_sink_init(struct gp_sink *sink, const struct gp_writer *writer, int fd)
{
    *sink = (struct gp_sink){.writer = writer};
    gp_outfile_init(&sink->file, fd);
}

int gp_sink_open(struct gp_sink *sink, const struct gp_writer *writer,
                 const struct gp_outfile_config *config, struct gp_err *err)
{
    *sink = (struct gp_sink){.writer = writer};
    int r = gp_outfile_open(&sink->file, config, err);
    /* The header stands in the file already. */
    sink->state.samples = r == 0 && !gp_outfile_is_empty(&sink->file);
    return r;
}

void gp_sink_replace(struct gp_sink *sink, const struct gp_writer *writer, const char *path)
{
    gp_sink_init(sink, writer, -1);
    sink->replaced = path;
}

static int check_built(const struct gp_strbuf *sb, struct gp_err *err)
{
    return sb->error
               ? gp_err_set(err, sb->error, "cannot build the output: %s", gp_err_text(sb->error))
               : 0;
}

static int replace(struct gp_sink *sink, const struct gp_view *view,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb, struct gp_err *err)
{
    struct gp_writer_state state = {0};
    struct gp_view once = *view;
    once.looped = false;
    gp_strbuf_reset(sb);
    sink->writer->sample(&once, &state, snapshot, sb);
    if (sink->writer->end)
        sink->writer->end(&once, &state, sb);
    int r = check_built(sb, err);
    return r < 0 ? r : gp_outfile_replace(sink->replaced, sb->buf, sb->len, false, err);
}

static int write_piece(struct gp_sink *sink, const struct gp_strbuf *sb, struct gp_err *err)
{
    int r = check_built(sb, err);
    if (r < 0 || sb->len == 0)
        return r;
    r = gp_outfile_write(&sink->file, sb->buf, sb->len, err);
    sink->broken = r < 0 && !sink->file.regular;
    return r;
}

static int write_end(struct gp_sink *sink, const struct gp_view *view, struct gp_strbuf *sb,
                     struct gp_err *err)
{
    gp_strbuf_reset(sb);
    if (sink->writer->end)
        sink->writer->end(view, &sink->state, sb);
    return write_piece(sink, sb, err);
}

/* Whether the sample in sb, and what would close the document behind it, go into the next file. */
static bool is_due(struct gp_sink *sink, const struct gp_view *view, struct gp_strbuf *sb)
{
    size_t len = sb->len;
    if (sink->writer->end)
        sink->writer->end(view, &sink->state, sb);
    bool due = gp_outfile_is_due(&sink->file, sb->len);
    gp_strbuf_truncate(sb, len);
    return due && !sb->error;
}

int gp_sink_sample(struct gp_sink *sink, const struct gp_view *view,
                   const struct gp_snapshot *snapshot, struct gp_strbuf *sb, struct gp_err *err)
{
    const struct gp_writer_state before = sink->state;
    int r = 0;
    if (sink->replaced)
        return replace(sink, view, snapshot, sb, err);
    gp_strbuf_reset(sb);
    sink->writer->sample(view, &sink->state, snapshot, sb);
    if (is_due(sink, view, sb)) {
        sink->state = before;
        r = write_end(sink, view, sb, err);
        if (r == 0)
            r = gp_outfile_rotate(&sink->file, err);
        if (r < 0) {
            sink->broken = true;
            return r;
        }
        sink->state = (struct gp_writer_state){0};
        gp_strbuf_reset(sb);
        sink->writer->sample(view, &sink->state, snapshot, sb);
    }
    r = write_piece(sink, sb, err);
    if (r < 0)
        sink->state = before; /* as if there had been no sample */
    return r;
}

int gp_sink_end(struct gp_sink *sink, const struct gp_view *view, struct gp_strbuf *sb,
                struct gp_err *err)
{
    struct gp_err close_err = {0};
    if (sink->replaced)
        return 0;
    int r = sink->broken ? 0 : write_end(sink, view, sb, err);
    int c = gp_outfile_close(&sink->file, &close_err);
    if (r == 0 && c < 0)
        *err = close_err;
    return r < 0 ? r : c;
}
