/* XML: one document with a <sample> per tick, a <gpu>, <process>, <host>, <link>, … per row, and an
 * element per field.
 *
 * Elements are named like fields; metric names are valid in XML. An absent value is an empty
 * element whose attribute "reason" says why. A stale value is present, and "reason" says how old it
 * is. */
#include "out/xml.h"

#include "base/strbuf.h"
#include "out/rows.h"

#include <string.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<gpulse schema=\"gpulse.query.xml/1\">\n"

/* For texts and attributes. Values are safe UTF-8. The two noncharacters at the end of the first
 * plane are invalid in XML, and become U+FFFD. */
static void add_escaped(struct gp_strbuf *sb, const char *text)
{
    static const struct {
        const char *from, *to;
    } escapes[] = {
        {"&", "&amp;"},
        {"<", "&lt;"},
        {">", "&gt;"},
        {"\"", "&quot;"},
        {"\xef\xbf\xbe", "\xef\xbf\xbd"},
        {"\xef\xbf\xbf", "\xef\xbf\xbd"},
    };
    while (*text) {
        size_t plain = strcspn(text, "&<>\"\xef");
        gp_strbuf_add(sb, text, plain);
        text += plain;
        size_t i = 0;
        while (i < GP_ARRAY_LEN(escapes) &&
               strncmp(text, escapes[i].from, strlen(escapes[i].from)) != 0)
            i++;
        if (i < GP_ARRAY_LEN(escapes)) {
            gp_strbuf_adds(sb, escapes[i].to);
            text += strlen(escapes[i].from);
        } else if (*text) {
            gp_strbuf_addc(sb, *text++); /* copied unchanged */
        }
    }
}

static void add_attribute(struct gp_strbuf *sb, const char *name, const char *value)
{
    gp_strbuf_addf(sb, " %s=\"", name);
    add_escaped(sb, value);
    gp_strbuf_addc(sb, '"');
}

static void add_host_attribute(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                               const char *name, enum gp_metric m)
{
    const struct gp_value *v = gp_snapshot_value(snapshot, NULL, NULL, m);
    if (gp_value_is_present(v))
        add_attribute(sb, name, v->s);
}

static void add_field(struct gp_strbuf *sb, struct gp_strbuf *scratch, const struct gp_view *view,
                      const struct gp_field *field, const struct gp_value *v, uint64_t now_ns)
{
    const char *name = GP_METRIC_NAME(field->metric);
    const char *unit = gp_field_unit(field);
    gp_strbuf_addf(sb, "      <%s", name);
    if (*unit && (view->units || field->unit))
        add_attribute(sb, "unit", unit);
    gp_strbuf_reset(scratch);
    if (v->status != GP_STATUS_OK) {
        gp_field_reason(scratch, v, now_ns);
        add_attribute(sb, "reason", scratch->buf);
    }
    if (!gp_value_is_present(v)) {
        gp_strbuf_adds(sb, "/>\n");
        return;
    }
    /* Stale numbers are shown next to their age. All decimals, like in JSON. */
    struct gp_value shown = *v;
    shown.status = GP_STATUS_OK;
    gp_strbuf_reset(scratch);
    if (gp_metric_table[field->metric].type == GP_TYPE_REAL && !field->unit)
        gp_strbuf_addf(scratch, "%.15g", v->f);
    else
        gp_field_format(scratch, field, &shown, GP_STYLE_PLAIN);
    if (scratch->error && !sb->error)
        sb->error = scratch->error;
    gp_strbuf_addc(sb, '>');
    add_escaped(sb, scratch->buf);
    gp_strbuf_addf(sb, "</%s>\n", name);
}

static void write_xml(const struct gp_view *view, struct gp_writer_state *state,
                      const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    const char *element = view->scope == GP_SCOPE_DEVICE ? "gpu" : gp_scope_table[view->scope].noun;
    struct gp_strbuf scratch = GP_STRBUF_INIT(64 * 1024);
    if (state->samples++ == 0)
        gp_strbuf_adds(sb, HEAD);
    gp_strbuf_adds(sb, "  <sample");
    add_host_attribute(sb, snapshot, "time", GP_TIMESTAMP);
    add_host_attribute(sb, snapshot, "host", GP_HOST_NAME);
    add_host_attribute(sb, snapshot, "driver", GP_DRIVER_VERSION);
    gp_strbuf_adds(sb, ">\n");
    for (size_t r = 0; r < gp_row_count(view, snapshot); r++) {
        struct gp_row row = gp_row_at(view, snapshot, r);
        gp_strbuf_addf(sb, "    <%s>\n", element);
        for (size_t c = 0; c < view->fields.count; c++) {
            const struct gp_field *field = &view->fields.fields[c];
            add_field(sb, &scratch, view, field, gp_row_value(snapshot, row, field),
                      snapshot->mono_ns);
        }
        gp_strbuf_addf(sb, "    </%s>\n", element);
    }
    gp_strbuf_adds(sb, "  </sample>\n");
    gp_strbuf_fini(&scratch);
}

static void end_xml(const struct gp_view *view, struct gp_writer_state *state, struct gp_strbuf *sb)
{
    if (state->samples == 0 && view->looped)
        gp_strbuf_adds(sb, HEAD);
    if (state->samples > 0 || view->looped)
        gp_strbuf_adds(sb, "</gpulse>\n");
}

const struct gp_writer gp_writer_xml = {.name = "xml", .sample = write_xml, .end = end_xml};
