#include "smi/value.h"

#include "base/strbuf.h"
#include "smi/processes.h"

#include <string.h>

/* How a metric is formatted if its unit alone does not determine it. */
enum manner {
    BY_UNIT,
    BARE,      /* without its unit */
    LANES,     /* "16x" in the log */
    BANKS,     /* "2560 bank(s)" in the log */
    KILOBYTES, /* "439 KB/s" */
    TIGHT,     /* "100.00%" in the log, "100.00 %" in a table */
    HEX,       /* without 0x in XML */
    MOMENT,    /* "2026/08/20 14:58:50.544" */
    WORDS,     /* with a blank after each word */
    ADDRESS,   /* hexadecimal digits in lower case */
};

static const uint8_t manners[GP_METRIC__COUNT] = {
    [GP_PCIE_WIDTH] = LANES,        [GP_PCIE_WIDTH_MAX] = LANES, [GP_PCIE_TX] = KILOBYTES,
    [GP_PCIE_RX] = KILOBYTES,       [GP_HISTOGRAM_MAX] = BANKS,  [GP_HISTOGRAM_HIGH] = BANKS,
    [GP_HISTOGRAM_PARTIAL] = BANKS, [GP_HISTOGRAM_LOW] = BANKS,  [GP_HISTOGRAM_NONE] = BANKS,
    [GP_EDPP_MULTIPLIER] = TIGHT,   [GP_ENCODER_LATENCY] = BARE, [GP_FBC_LATENCY] = BARE,
    [GP_PCI_DOMAIN] = HEX,          [GP_PCI_BUS] = HEX,          [GP_PCI_DEVICE] = HEX,
    [GP_PCI_BASE_CLASS] = HEX,      [GP_PCI_SUB_CLASS] = HEX,    [GP_PCI_DEVICE_ID] = HEX,
    [GP_PCI_SUB_DEVICE_ID] = HEX,   [GP_TIMESTAMP] = MOMENT,     [GP_BBX_FLUSH_TIME] = MOMENT,
    [GP_PAGE_TIME] = MOMENT,        [GP_PAGE_ADDRESS] = ADDRESS, [GP_PCIE_ATOMICS_OUT] = WORDS,
    [GP_PCIE_ATOMICS_IN] = WORDS,
};

/* ---- absence ---- */

/* The driver version from which nvidia-smi no longer queries the metric. */
static const unsigned retired_since[GP_METRIC__COUNT] = {
    [GP_DISPLAY_MODE] = GP_SMI_DRIVER(580, 0),
    [GP_POWER_MANAGEMENT] = GP_SMI_DRIVER(590, 0),
    [GP_CLOCK_APP_GRAPHICS] = GP_SMI_DRIVER(590, 0),
    [GP_CLOCK_APP_MEMORY] = GP_SMI_DRIVER(590, 0),
    [GP_CLOCK_DEFAULT_APP_GRAPHICS] = GP_SMI_DRIVER(590, 0),
    [GP_CLOCK_DEFAULT_APP_MEMORY] = GP_SMI_DRIVER(590, 0),
};

static bool is_retired(const struct gp_smi_form *form, enum gp_metric m)
{
    return retired_since[m] && form->driver >= retired_since[m];
}

/* A sleeping GPU is not woken up for a query. */
const char *gp_smi_absence(const struct gp_smi_form *form, enum gp_metric m,
                           const struct gp_value *v)
{
    static const char *const words[] = {
        [GP_STATUS_NO_PERMISSION] = "Insufficient Permissions",
        [GP_STATUS_LOST] = "GPU is lost",
        [GP_STATUS_STALE] = "Timeout",
        [GP_STATUS_TIMEOUT] = "Timeout",
        [GP_STATUS_ERROR] = "Unknown Error",
    };
    if (is_retired(form, m))
        return GP_SMI_DEPRECATED;
    const char *word = v->status < GP_ARRAY_LEN(words) ? words[v->status] : NULL;
    return word ? word : "N/A";
}

static void add_absence(struct gp_strbuf *sb, const struct gp_smi_form *form, enum gp_metric m,
                        const struct gp_value *v, bool in_table)
{
    const char *word = gp_smi_absence(form, m, v);
    bool bare = m == GP_TEMPERATURE_MEMORY || (m >= GP_FABRIC_STATE && m <= GP_FABRIC_PARTITION);
    bool plain = strcmp(word, "N/A") == 0;
    if (!in_table)
        gp_strbuf_adds(sb, word);
    else if (plain && m == GP_SMI_PROCESS_NAME)
        gp_strbuf_adds(sb, "[Not Found]");
    else if (plain && form->driver < GP_SMI_DRIVER(465, 0))
        gp_strbuf_adds(sb, "[Not Supported]");
    else
        gp_strbuf_addf(sb, plain && bare ? "%s" : "[%s]", word);
}

/* ---- numbers ---- */

/* Up, so that used and free memory are more than the total together; but the sum for BAR1 is right
 * (an H100 with 1703936 bytes in use, driver 580.159.04: 1 MiB). */
uint64_t gp_smi_mib(const struct gp_smi_form *form, enum gp_metric m, int64_t bytes)
{
    uint64_t n = bytes > 0 ? (uint64_t)bytes : 0;
    bool up = form->driver >= GP_SMI_DRIVER(570, 0) && m != GP_BAR1_USED;
    return (n + (up ? (1 << 20) - 1 : 0)) >> 20;
}

const char *gp_smi_unit(enum gp_metric m)
{
    static const char *const units[] = {
        [GP_UNIT_BYTES] = "MiB",      [GP_UNIT_PERCENT] = "%",      [GP_UNIT_WATT] = "W",
        [GP_UNIT_MHZ] = "MHz",        [GP_UNIT_US] = "us",          [GP_UNIT_MS] = "ms",
        [GP_UNIT_SECOND] = "seconds", [GP_UNIT_WATT_PER_S] = "W/s",
    };
    enum gp_unit unit = gp_metric_table[m].unit;
    bool named = unit < GP_ARRAY_LEN(units) && units[unit] && manners[m] != BARE;
    return named ? units[unit] : "";
}

void gp_smi_add_gigabytes(struct gp_strbuf *sb, double bytes_per_s)
{
    gp_strbuf_addf(sb, "%.3f", bytes_per_s / 1e9);
    size_t end = sb->len;
    while (end > 0 && sb->buf[end - 1] == '0')
        end--;
    gp_strbuf_truncate(sb, end > 0 && sb->buf[end - 1] == '.' ? end - 1 : end);
    gp_strbuf_adds(sb, " GB/s");
}

static void add_number(struct gp_strbuf *sb, const struct gp_smi_form *form, enum gp_metric m,
                       const struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[m];
    if (info->unit == GP_UNIT_MASK)
        gp_strbuf_addf(sb, manners[m] == ADDRESS ? "0x%016llx" : "0x%016llX",
                       (unsigned long long)v->i);
    else if (info->unit == GP_UNIT_BYTES)
        gp_strbuf_addf(sb, "%llu", (unsigned long long)gp_smi_mib(form, m, v->i));
    else if (manners[m] == KILOBYTES)
        gp_strbuf_addf(sb, "%.0f", v->f / 1000);
    else if (info->type == GP_TYPE_REAL)
        gp_strbuf_addf(sb, "%.2f", v->f);
    else
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

static void add_unit(struct gp_strbuf *sb, enum gp_metric m, enum gp_smi_style style)
{
    static const char *const of_log[] = {
        [LANES] = "x",
        [BANKS] = " bank(s)",
        [KILOBYTES] = " KB/s",
        [TIGHT] = "%",
    };
    unsigned manner = manners[m];
    const char *unit = gp_smi_unit(m);
    if (style != GP_SMI_CSV && manner < GP_ARRAY_LEN(of_log) && of_log[manner])
        gp_strbuf_adds(sb, of_log[manner]);
    else if (*unit)
        gp_strbuf_addf(sb, " %s", unit);
    else if (style != GP_SMI_CSV && gp_metric_table[m].unit == GP_UNIT_CELSIUS)
        gp_strbuf_adds(sb, " C");
}

/* ---- text ---- */

static void add_escaped(struct gp_strbuf *sb, const char *text)
{
    for (; *text; text++) {
        const char *escape = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;";
        if (strchr("&<>", *text))
            gp_strbuf_adds(sb, escape);
        else
            gp_strbuf_addc(sb, *text);
    }
}

/* From 2026-08-20T14:58:50.544+00:00. */
static void add_moment(struct gp_strbuf *sb, const char *rfc3339)
{
    static const char shape[] = "0000/00/00 00:00:00.000";
    for (size_t i = 0; shape[i] && rfc3339[i]; i++)
        gp_strbuf_addc(sb, shape[i] == '0' ? rfc3339[i] : shape[i]);
}

static void add_text(struct gp_strbuf *sb, enum gp_metric m, const char *text,
                     enum gp_smi_style style)
{
    unsigned manner = manners[m];
    if (manner == MOMENT)
        add_moment(sb, text);
    else if (manner == HEX && style == GP_SMI_XML && strncmp(text, "0x", 2) == 0)
        gp_strbuf_adds(sb, text + 2);
    else if (style == GP_SMI_XML)
        add_escaped(sb, text);
    else
        gp_strbuf_adds(sb, text);
    if (manner == WORDS)
        gp_strbuf_addc(sb, ' ');
}

void gp_smi_add_value(struct gp_strbuf *sb, const struct gp_smi_form *form, enum gp_metric m,
                      const struct gp_value *v, enum gp_smi_style style)
{
    if (v->status != GP_STATUS_OK || is_retired(form, m)) {
        add_absence(sb, form, m, v, style == GP_SMI_CSV || style == GP_SMI_PLAIN);
    } else if (gp_metric_table[m].type == GP_TYPE_TEXT) {
        add_text(sb, m, v->s, style);
    } else {
        add_number(sb, form, m, v);
        if (style != GP_SMI_PLAIN)
            add_unit(sb, m, style);
    }
}
