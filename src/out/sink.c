#include "out/sink.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCERPT = 64 };

void gp_sink_init(struct gp_sink *sink, const struct gp_writer *writer, int fd)
{
    *sink = (struct gp_sink){.writer = writer};
    gp_outfile_init(&sink->file, fd);
}

static int check_built(const struct gp_strbuf *sb, struct gp_err *err)
{
    return sb->error
               ? gp_err_set(err, sb->error, "cannot build the output: %s", gp_err_text(sb->error))
               : 0;
}

/* Copies the start of a line for a message. */
static void excerpt(char out[EXCERPT], const char *line, size_t from)
{
    size_t len = strcspn(line + from, "\r\n");
    bool whole = len < EXCERPT - 10;
    (void)snprintf(out, EXCERPT, "%s%.*s%s", from ? "…" : "", whole ? (int)len : EXCERPT - 10,
                   line + from, whole ? "" : "…");
}

/* Reports differing columns, from the first difference on. */
static int other_columns(const char *path, const char *there, const char *ours, struct gp_err *err)
{
    char has[EXCERPT];
    char wanted[EXCERPT];
    size_t column = 0;
    for (size_t i = 0; there[i] && there[i] == ours[i]; i++)
        if (strchr(",\t", there[i]))
            column = i + 1;
    excerpt(has, there, column);
    excerpt(wanted, ours, column);
    if (strcmp(has, wanted) == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "cannot append to '%.80s': its lines do not end in a line feed; convert "
                          "it (dos2unix), or write to another file",
                          path);
    return gp_err_set(err, GP_EUSAGE,
                      "cannot append to '%.80s': it has other columns: its first line is '%s', but "
                      "the header of this query is '%s'; query the same fields, or write to "
                      "another file (--no-header skips this check)",
                      path, has, wanted);
}

/* Refuses to append to a file with other columns. Its last line, which may be the header, may lack
 * a newline. */
static int check_header(const struct gp_writer *writer, const struct gp_view *view,
                        const char *path, struct gp_err *err)
{
    struct gp_strbuf header = GP_STRBUF_INIT(1 << 20);
    if (!writer->header || !view->header)
        return 0;
    writer->header(view, &header);
    size_t cap = header.len + EXCERPT + 2;
    char *there = malloc(cap);
    int r = check_built(&header, err);
    if (r == 0 && !there)
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    size_t n = r == 0 ? gp_outfile_peek(path, there, cap) : 0;
    bool same = n > 0 && n + 1 >= header.len &&
                memcmp(there, header.buf, n < header.len ? n : header.len) == 0;
    if (n > 0 && !same)
        r = other_columns(path, there, header.buf, err);
    free(there);
    gp_strbuf_fini(&header);
    return r;
}

int gp_sink_open(struct gp_sink *sink, const struct gp_writer *writer, const struct gp_view *view,
                 const struct gp_outfile_config *config, struct gp_err *err)
{
    gp_sink_init(sink, writer, -1);
    int r = config->append ? check_header(writer, view, config->path, err) : 0;
    if (r == 0)
        r = gp_outfile_open(&sink->file, config, err);
    /* The file already has a header. */
    sink->state.samples = r == 0 && !gp_outfile_is_empty(&sink->file);
    return r;
}

void gp_sink_replace(struct gp_sink *sink, const struct gp_writer *writer, const char *path)
{
    gp_sink_init(sink, writer, -1);
    sink->replaced = path;
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
    return r < 0 ? r : gp_outfile_replace(sink->replaced, 0666, sb->buf, sb->len, false, err);
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

/* Whether the sample in sb, including the end of the document, must go to the next file. */
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
        sink->state = before; /* as if the sample had not been written */
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
