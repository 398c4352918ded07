/* OpenMetrics 1.0, for Prometheus and compatible tools.
 *
 * Each field is a metric family gpulse_SCOPE_NAME_UNIT. SCOPE is host, gpu or process. NAME is the
 * field's name, with _ for other characters than letters and digits, and without a first word that
 * repeats the scope. UNIT is the base unit. Counters end in _total. A text becomes a gauge of value
 * 1 that ends in _info and has the text as a label. Only types that also exist in the older
 * Prometheus text format are used, so that its consumers (node_exporter's textfile collector,
 * Pushgateway) can read the output.
 *
 * Labels identify the row, see `labels`; "*" therefore adds no fields for that. status.text is
 * omitted: the seconds in it would create a new series in every sample, and `status` has the same
 * information. Absent and stale values are omitted, because a missing number is better than a wrong
 * one. Every sample of a loop is a complete exposition. */
#include "out/openmetrics.h"

#include "base/strbuf.h"
#include "out/rows.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* The base unit that OpenMetrics requires: the catalog's unit × mul / div. */
struct base_unit {
    const char *name;
    int64_t mul, div;
};

static struct base_unit base_unit(enum gp_metric m)
{
    /* A switch, so that the compiler reports a missing unit. */
    switch (gp_metric_table[m].unit) {
    case GP_UNIT_NONE:
    case GP_UNIT_MASK:
        break;
    case GP_UNIT_BYTES:
        return (struct base_unit){"bytes", 1, 1};
    case GP_UNIT_PERCENT:
        return (struct base_unit){"ratio", 1, 100};
    case GP_UNIT_CELSIUS:
        return (struct base_unit){"celsius", 1, 1};
    case GP_UNIT_WATT:
        return (struct base_unit){"watts", 1, 1};
    case GP_UNIT_MHZ:
        return (struct base_unit){"hertz", 1000000, 1};
    case GP_UNIT_JOULE:
        return (struct base_unit){"joules", 1, 1};
    case GP_UNIT_BYTES_PER_S:
        return (struct base_unit){"bytes_per_second", 1, 1};
    case GP_UNIT_US:
        return (struct base_unit){"seconds", 1, 1000000};
    case GP_UNIT_MS:
        return (struct base_unit){"seconds", 1, 1000};
    case GP_UNIT_SECOND:
        return (struct base_unit){"seconds", 1, 1};
    case GP_UNIT_WATT_PER_S:
        return (struct base_unit){"watts_per_second", 1, 1};
    }
    return (struct base_unit){"", 1, 1};
}

/* Metrics that only grow, by name. All others are gauges. */
static const char *const counters[] = {
    "clocks_event_reasons_counters.*",
    "ecc.errors.*",
    "energy.consumption",
    "links.errors.*",
    "links.raw.*",
    "links.recovery.*",
    "links.[rt]x",
    "links.[rt]x_packets",
    "nvlink.errors.*",
    "pcie.*_counter",
    "pcie.errors.*",
    "process.energy",
    "retired_pages.*.count",
};

/* The labels that identify the rows of a scope, and those that people search for. */
static const struct label {
    enum gp_scope scope;
    enum gp_metric metric;
    const char *name;
} labels[] = {
    {GP_SCOPE_DEVICE, GP_INDEX, "gpu"},
    {GP_SCOPE_DEVICE, GP_UUID, "uuid"},
    {GP_SCOPE_DEVICE, GP_PCI_BUS_ID, "pci_bus_id"},
    {GP_SCOPE_DEVICE, GP_NAME, "name"},
    {GP_SCOPE_DEVICE, GP_MIG_GPU_UUID, "gpu_uuid"},
    {GP_SCOPE_DEVICE, GP_MIG_INDEX, "mig_index"},
    {GP_SCOPE_DEVICE, GP_MIG_GPU_INSTANCE, "gpu_instance_id"},
    {GP_SCOPE_DEVICE, GP_MIG_COMPUTE_INSTANCE, "compute_instance_id"},
    {GP_SCOPE_DEVICE, GP_MIG_PROFILE, "mig_profile"},
    {GP_SCOPE_PROCESS, GP_INDEX, "gpu"},
    {GP_SCOPE_PROCESS, GP_UUID, "uuid"},
    {GP_SCOPE_PROCESS, GP_MIG_GPU_UUID, "gpu_uuid"},
    {GP_SCOPE_PROCESS, GP_PROCESS_GI, "gpu_instance_id"},
    {GP_SCOPE_PROCESS, GP_PROCESS_CI, "compute_instance_id"},
    {GP_SCOPE_PROCESS, GP_PID, "pid"},
    {GP_SCOPE_PROCESS, GP_PROCESS_USER, "user"},
    {GP_SCOPE_PROCESS, GP_PROCESS_NAME, "process_name"},
#define OF_LIST(scope, metric, name)                                                               \
    {scope, GP_INDEX, "gpu"}, {scope, GP_UUID, "uuid"},                                            \
    {                                                                                              \
        scope, metric, name                                                                        \
    }
    OF_LIST(GP_SCOPE_CLOCK, GP_CLOCK_PAIR_MEMORY, "memory_mhz"),
    {GP_SCOPE_CLOCK, GP_CLOCK_PAIR_GRAPHICS, "graphics_mhz"},
    OF_LIST(GP_SCOPE_PAGE, GP_PAGE_ADDRESS, "address"),
    OF_LIST(GP_SCOPE_APP, GP_APP_PID, "pid"),
    OF_LIST(GP_SCOPE_FAN, GP_FAN_NUMBER, "fan"),
    OF_LIST(GP_SCOPE_ENCODING, GP_ENCODING_ID, "session"),
    OF_LIST(GP_SCOPE_CAPTURE, GP_CAPTURE_ID, "session"),
    OF_LIST(GP_SCOPE_LINK, GP_LINK_NUMBER, "link"),
    OF_LIST(GP_SCOPE_PEER, GP_PEER_NUMBER, "peer"),
    OF_LIST(GP_SCOPE_PROFILE, GP_PROFILE_ID, "profile"),
    OF_LIST(GP_SCOPE_SERIES, GP_SAMPLES_KIND, "kind"),
    OF_LIST(GP_SCOPE_GI, GP_GI_ID, "gpu_instance"),
    OF_LIST(GP_SCOPE_CI, GP_CI_GI, "gpu_instance"),
    {GP_SCOPE_CI, GP_CI_ID, "compute_instance"},
    OF_LIST(GP_SCOPE_CIP, GP_CIP_GI, "gpu_instance"),
    {GP_SCOPE_CIP, GP_CIP_ID, "profile"},
};

/* The states of the field `status`. Each gets a sample, 1 or 0. */
static const struct {
    enum gp_status status;
    const char *name;
} states[] = {
#define X(id, word) {GP_STATUS_##id, (word)},
    GP_DEVICE_STATES(X)
#undef X
};

enum kind {
    KIND_GAUGE,
    KIND_COUNTER,
    KIND_INFO,   /* text */
    KIND_STATES, /* the text that is one of several states */
    KIND_TIME,   /* the text that is a time */
};

bool gp_openmetrics_is_counter(enum gp_metric m)
{
    for (size_t i = 0; gp_metric_table[m].type != GP_TYPE_TEXT && i < GP_ARRAY_LEN(counters); i++)
        if (fnmatch(counters[i], GP_METRIC_NAME(m), 0) == 0)
            return true;
    return false;
}

static bool is_left_out(const struct gp_field *field)
{
    return field->identity || field->metric == GP_STATUS_TEXT;
}

static enum kind kind_of(enum gp_metric m)
{
    if (m == GP_STATUS)
        return KIND_STATES;
    if (m == GP_TIMESTAMP)
        return KIND_TIME;
    if (gp_metric_table[m].type == GP_TYPE_TEXT)
        return KIND_INFO;
    return gp_openmetrics_is_counter(m) ? KIND_COUNTER : KIND_GAUGE;
}

static const char *unit_of(enum gp_metric m)
{
    return kind_of(m) == KIND_TIME ? "seconds" : base_unit(m).name;
}

static void add_name(struct gp_strbuf *sb, const char *name)
{
    for (; *name; name++)
        gp_strbuf_addc(sb, isalnum((unsigned char)*name) ? *name : '_');
}

void gp_openmetrics_add_family(struct gp_strbuf *sb, enum gp_metric m)
{
    const struct gp_metric_info *info = &gp_metric_table[m];
    const struct gp_scope_info *of = &gp_scope_table[info->scope];
    const char *scope = info->scope == GP_SCOPE_DEVICE ? "gpu" : of->noun;
    const char *name = gp_metric_name(info);
    if (gp_scope_is_list(info->scope))
        name += strlen(of->plural) + 1;
    size_t n = strlen(scope);
    if (strncmp(name, scope, n) == 0 && (name[n] == '.' || name[n] == '_'))
        name += n + 1;
    gp_strbuf_addf(sb, "gpulse_%s_", scope);
    add_name(sb, name);
    /* Suffix of a counter's samples; its family name does not have it. */
    static const char total[] = "_total";
    size_t end = sizeof(total) - 1;
    if (kind_of(m) == KIND_COUNTER && sb->len > end && strcmp(sb->buf + sb->len - end, total) == 0)
        gp_strbuf_truncate(sb, sb->len - end);
    if (*unit_of(m))
        gp_strbuf_addf(sb, "_%s", unit_of(m));
    if (kind_of(m) == KIND_INFO)
        gp_strbuf_adds(sb, "_info");
}

/* ---- labels ---- */

static void add_escaped(struct gp_strbuf *sb, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\\"\n", *text))
            gp_strbuf_addc(sb, '\\');
        gp_strbuf_addc(sb, *text == '\n' ? 'n' : *text);
    }
}

static void add_label(struct gp_strbuf *sb, const struct label *label, const struct gp_value *v)
{
    gp_strbuf_adds(sb, sb->len > 0 && sb->buf[sb->len - 1] != '\0' ? "," : "");
    gp_strbuf_addf(sb, "%s=\"", label->name);
    if (gp_metric_table[label->metric].type == GP_TYPE_TEXT)
        add_escaped(sb, v->s);
    else
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
    gp_strbuf_addc(sb, '"');
}

/* The rows of a scope and the labels of each, NUL-terminated. */
struct scope_rows {
    struct gp_view view;
    struct gp_strbuf labels;
};

static void find_rows(struct scope_rows *rows, enum gp_scope scope,
                      const struct gp_snapshot *snapshot)
{
    *rows = (struct scope_rows){.view = {.scope = scope}, .labels = GP_STRBUF_INIT(256 << 20)};
    for (size_t r = 0; r < gp_row_count(&rows->view, snapshot); r++) {
        struct gp_row row = gp_row_at(&rows->view, snapshot, r);
        for (size_t i = 0; i < GP_ARRAY_LEN(labels); i++) {
            const struct gp_field field = {.metric = labels[i].metric};
            const struct gp_value *v = gp_row_value(snapshot, row, &field);
            if (labels[i].scope == scope && gp_value_is_present(v))
                add_label(&rows->labels, &labels[i], v);
        }
        gp_strbuf_addc(&rows->labels, '\0');
    }
}

static void want_labels(const struct gp_view *view, struct gp_metric_set *metrics)
{
    for (size_t c = 0; c < view->fields.count; c++)
        for (size_t i = 0; !is_left_out(&view->fields.fields[c]) && i < GP_ARRAY_LEN(labels); i++)
            if (labels[i].scope == gp_metric_table[view->fields.fields[c].metric].scope)
                gp_metric_set_add(metrics, labels[i].metric);
}

static bool is_label(enum gp_metric m)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(labels); i++)
        if (labels[i].scope == gp_metric_table[m].scope && labels[i].metric == m)
            return true;
    return false;
}

/* ---- samples ---- */

/* Appends "name{labels} ", with an additional label if `label` is not NULL. */
static void add_series(struct gp_strbuf *sb, const char *family, const char *row_labels,
                       const char *label, const char *text)
{
    gp_strbuf_adds(sb, family);
    if (*row_labels || label) {
        gp_strbuf_addf(sb, "{%s%s", row_labels, *row_labels && label ? "," : "");
        if (label) {
            add_name(sb, label);
            gp_strbuf_adds(sb, "=\"");
            add_escaped(sb, text);
            gp_strbuf_addc(sb, '"');
        }
        gp_strbuf_addc(sb, '}');
    }
    gp_strbuf_addc(sb, ' ');
}

static void add_number(struct gp_strbuf *sb, enum gp_metric m, const struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[m];
    struct base_unit base = base_unit(m);
    if (info->unit == GP_UNIT_MASK)
        gp_strbuf_addf(sb, "%llu\n", (unsigned long long)v->i);
    else if (info->type == GP_TYPE_INT && base.div == 1)
        gp_strbuf_addf(sb, "%lld\n", (long long)(v->i * base.mul));
    else
        gp_strbuf_addf(sb, "%.15g\n",
                       (info->type == GP_TYPE_REAL ? v->f : (double)v->i) * (double)base.mul /
                           (double)base.div);
}

static void add_samples(struct gp_strbuf *sb, const char *family, enum gp_metric m,
                        const struct gp_snapshot *snapshot, struct gp_row row,
                        const char *row_labels)
{
    const char *name = GP_METRIC_NAME(m);
    const struct gp_field field = {.metric = m};
    const struct gp_value *v = gp_row_value(snapshot, row, &field);
    if (v->status != GP_STATUS_OK)
        return;
    switch (kind_of(m)) {
    case KIND_STATES:
        for (size_t i = 0; i < GP_ARRAY_LEN(states); i++) {
            add_series(sb, family, row_labels, name, states[i].name);
            gp_strbuf_adds(sb, row.device->status == states[i].status ? "1\n" : "0\n");
        }
        break;
    case KIND_TIME:
        add_series(sb, family, row_labels, NULL, "");
        gp_strbuf_addf(sb, "%.3f\n", (double)snapshot->wall_ns / 1e9);
        break;
    case KIND_INFO:
        add_series(sb, family, row_labels, is_label(m) ? NULL : name, v->s);
        gp_strbuf_adds(sb, "1\n");
        break;
    case KIND_COUNTER:
    case KIND_GAUGE:
        add_series(sb, family, row_labels, NULL, "");
        add_number(sb, m, v);
        break;
    }
}

static void add_family(struct gp_strbuf *sb, enum gp_metric m, const struct scope_rows *rows,
                       const struct gp_snapshot *snapshot)
{
    struct gp_strbuf family = GP_STRBUF_INIT(1024);
    bool counter = kind_of(m) == KIND_COUNTER;
    gp_openmetrics_add_family(&family, m);
    gp_strbuf_addf(sb, "# TYPE %s %s\n", family.buf, counter ? "counter" : "gauge");
    if (*unit_of(m))
        gp_strbuf_addf(sb, "# UNIT %s %s\n", family.buf, unit_of(m));
    gp_strbuf_addf(sb, "# HELP %s ", family.buf);
    add_escaped(sb, kind_of(m) == KIND_TIME ? "when the values were read, in Unix time"
                                            : GP_METRIC_HELP(m));
    gp_strbuf_adds(
        sb, gp_metric_table[m].unit == GP_UNIT_PERCENT ? "; as a ratio: 1 is 100 percent\n" : "\n");
    if (counter)
        gp_strbuf_adds(&family, "_total");
    const char *row_labels = rows->labels.buf;
    for (size_t r = 0; r < gp_row_count(&rows->view, snapshot); r++) {
        add_samples(sb, family.buf, m, snapshot, gp_row_at(&rows->view, snapshot, r), row_labels);
        row_labels += strlen(row_labels) + 1;
    }
    if (family.error && !sb->error)
        sb->error = family.error;
    gp_strbuf_fini(&family);
}

static void write_openmetrics(const struct gp_view *view, struct gp_writer_state *state,
                              const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    struct scope_rows rows[GP_SCOPE__COUNT];
    struct gp_metric_set seen = {0};
    for (int scope = 0; scope < GP_SCOPE__COUNT; scope++) {
        find_rows(&rows[scope], (enum gp_scope)scope, snapshot);
        if (rows[scope].labels.error && !sb->error)
            sb->error = rows[scope].labels.error;
    }
    for (size_t c = 0; !sb->error && c < view->fields.count; c++) {
        enum gp_metric m = view->fields.fields[c].metric;
        if (!gp_metric_set_has(&seen, m) && !is_left_out(&view->fields.fields[c]))
            add_family(sb, m, &rows[gp_metric_table[m].scope], snapshot);
        if (!is_left_out(&view->fields.fields[c]))
            gp_metric_set_add(&seen, m);
    }
    gp_strbuf_adds(sb, "# EOF\n");
    for (int scope = 0; scope < GP_SCOPE__COUNT; scope++)
        gp_strbuf_fini(&rows[scope].labels);
    state->samples++;
}

const struct gp_writer gp_writer_openmetrics = {
    .name = "openmetrics", .sample = write_openmetrics, .want = want_labels};
