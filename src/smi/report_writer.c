/* Writes a report as text or as XML. */
#include "smi/report_internal.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/value.h"

static const char *name_in(const struct gp_smi_printer *p, const char *tag, const char *label)
{
    return p->report->xml ? tag : label;
}

/* In XML, <gpu> adds one level. */
void gp_smi_indent(struct gp_smi_printer *p)
{
    if (p->report->xml)
        gp_strbuf_fill(p->sb, '\t', p->depth + 2);
    else
        gp_strbuf_fill(p->sb, ' ', 4 * ((size_t)p->depth + 1));
}

void gp_smi_begin_group(struct gp_smi_printer *p, unsigned level, const char *tag,
                        const char *label)
{
    const char *name = name_in(p, tag, label);
    if (!name)
        return;
    gp_smi_indent(p);
    gp_strbuf_addf(p->sb, p->report->xml ? "<%s>\n" : "%s\n", name);
    p->open[p->depth].level = level;
    p->open[p->depth].tag = tag;
    p->depth++;
}

void gp_smi_end_groups(struct gp_smi_printer *p, unsigned level)
{
    while (p->depth > 0 && p->open[p->depth - 1].level >= level) {
        p->depth--;
        if (!p->report->xml)
            continue;
        gp_smi_indent(p);
        gp_strbuf_addf(p->sb, "</%s>\n", p->open[p->depth].tag);
    }
}

bool gp_smi_begin_value(struct gp_smi_printer *p, const char *tag, const char *label)
{
    const char *name = name_in(p, tag, label);
    if (!name)
        return false;
    size_t start = p->sb->len;
    gp_smi_indent(p);
    if (p->report->xml) {
        gp_strbuf_addf(p->sb, "<%s>", name);
        return true;
    }
    gp_strbuf_adds(p->sb, name);
    size_t width = p->sb->len - start;
    gp_strbuf_fill(p->sb, ' ', p->column > width ? p->column - width : 0);
    gp_strbuf_adds(p->sb, ": ");
    return true;
}

void gp_smi_end_value(struct gp_smi_printer *p, const char *tag)
{
    if (p->report->xml)
        gp_strbuf_addf(p->sb, "</%s>\n", tag);
    else
        gp_strbuf_addc(p->sb, '\n');
}

void gp_smi_print_word(struct gp_smi_printer *p, const char *tag, const char *label,
                       const char *word)
{
    if (!gp_smi_begin_value(p, tag, label))
        return;
    gp_strbuf_adds(p->sb, word);
    gp_smi_end_value(p, tag);
}

void gp_smi_print_metric(struct gp_smi_printer *p, const char *tag, const char *label,
                         enum gp_metric m, const struct gp_value *v)
{
    if (!gp_smi_begin_value(p, tag, label))
        return;
    gp_smi_add_value(p->sb, p->form, m, v, p->report->xml ? GP_SMI_XML : GP_SMI_LOG);
    gp_smi_end_value(p, tag);
}

/* A driver has these counters, all 0, of a GPU without ECC, too. nvidia-smi prints them as CSV, but
 * not here (RTX 4080 SUPER, driver 595.71.05). */
static bool is_sram_counter(enum gp_metric m)
{
    return m >= GP_ECC_SRAM_VOLATILE_PARITY && m <= GP_ECC_SRAM_OTHER;
}

const struct gp_value *gp_smi_report_value(const struct gp_smi_printer *p, enum gp_metric m)
{
    const struct gp_value *mode = gp_snapshot_value(p->snapshot, p->device, NULL, GP_ECC_MODE);
    return is_sram_counter(m) && mode->status == GP_STATUS_UNSUPPORTED
               ? mode
               : gp_snapshot_value(p->snapshot, p->device, NULL, m);
}
