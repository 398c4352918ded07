#include "smi/monitor.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/processes.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>
#include <time.h>

/* The subject of a line. */
struct row {
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    const struct gp_device *device;
    const struct gp_process *process; /* NULL: the GPU has none */
    const struct gp_entry *entry;     /* NULL: the GPU has none */
};

enum { NAME_BYTES = 15, COLUMNS = 64 };

/* Position of groups without a letter: before or after the selected ones. */
enum { FRONT = '<', BACK = '>' };

/* Columns whose width depends on the driver; the other columns state theirs. */
enum width { WIDTH_PID, WIDTH_TYPE, WIDTH_SM, WIDTH_OTHER, WIDTH_NAME, WIDTH__COUNT };

struct column {
    char group;
    uint8_t width; /* enum width, or a number of characters */
    const char *head;
    const char *unit;
    enum gp_metric metric;
    /* Appends the value; if it appends nothing, "-" is printed. NULL: a whole number, truncated. */
    void (*add)(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v);
    struct gp_smi_range in;
};

/* ---- values ---- */

static const struct gp_value *value_of(const struct row *row, enum gp_metric m)
{
    static const struct gp_value none = {.status = GP_STATUS_NONE};
    enum gp_scope scope = gp_metric_table[m].scope;
    if (gp_scope_is_list(scope))
        return row->entry ? &row->entry->values[m - gp_scope_table[scope].first] : &none;
    if (scope == GP_SCOPE_PROCESS && !row->process)
        return &none;
    return gp_snapshot_value(row->snapshot, row->device, row->process, m);
}

/* A number of a GPU that does not respond is stale, and counts as unknown. */
static bool is_known(const struct gp_value *v)
{
    return v->status == GP_STATUS_OK;
}

static void add_mib(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    gp_strbuf_addf(sb, "%llu", (unsigned long long)gp_smi_mib(row->form, v->i));
}

static void add_mb_per_s(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addf(sb, "%lld", (long long)(v->f / 1e6));
}

static void add_mib_per_s(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addf(sb, "%lld", (long long)(v->f / 0x1p20));
}

/* The replacement for a metric that a driver does not have; the metric itself if there is none. */
static enum gp_metric stand_in(enum gp_metric m)
{
    return m == GP_THROTTLE_THERMAL ? GP_THROTTLE_SW_THERMAL : m;
}

static void add_whether(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addc(sb, v->f > 0 ? '1' : '0');
}

/* A process that does not use an engine has no share of it. */
static void add_share(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    if (v->i > 0)
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

/* SM and memory belong to one engine: either share shows that it was used. */
static void add_kernels(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    if (value_of(row, GP_PROCESS_SM)->i > 0 || value_of(row, GP_PROCESS_MEM)->i > 0)
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

/* Protected memory is not reported per process. If the GPU has none, no process has any. */
static void add_protected(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    const struct gp_value *total = value_of(row, GP_PROTECTED_TOTAL);
    (void)v;
    if (is_known(total) && total->i == 0)
        gp_strbuf_addc(sb, '0');
}

static void add_type(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, strcmp(v->s, "M") == 0 ? "M+C" : v->s);
}

/* The last part of the path, cut at a character boundary. */
static void add_name(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    const char *slash = strrchr(v->s, '/');
    const char *name = slash ? slash + 1 : v->s;
    size_t n = strlen(name);
    if (n > NAME_BYTES)
        for (n = NAME_BYTES; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
            n--;
    (void)row;
    gp_strbuf_add(sb, name, n);
}

static void add_codec(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, strcmp(v->s, "HEVC") == 0 ? "H.265" : v->s);
}

enum { FLAG_DIFFERENCE = 1, FLAG_CLASSIFICATION = 2, FLAG_NO_WAIT = 4, FLAG_WAIT_TIMEOUT = 16 };

static void add_difference(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, v->i & FLAG_DIFFERENCE ? "Enabled" : "Disabled");
}

static void add_classes(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, v->i & FLAG_CLASSIFICATION ? "Enabled" : "Disabled");
}

static void add_mode(struct gp_strbuf *sb, const struct row *row, const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, v->i & FLAG_NO_WAIT        ? "Non-blocking"
                       : v->i & FLAG_WAIT_TIMEOUT ? "Timeout"
                                                  : "Blocking");
}

static void add_whole(struct gp_strbuf *sb, enum gp_metric m, const struct gp_value *v)
{
    if (gp_metric_table[m].type == GP_TYPE_TEXT)
        gp_strbuf_adds(sb, v->s);
    else
        gp_strbuf_addf(sb, "%lld",
                       gp_metric_table[m].type == GP_TYPE_REAL ? (long long)v->f : (long long)v->i);
}

static void add_cell(struct gp_strbuf *cell, const struct column *c, const struct row *row)
{
    const struct gp_value *v = value_of(row, c->metric);
    if (!is_known(v))
        v = value_of(row, stand_in(c->metric));
    gp_strbuf_reset(cell);
    if (is_known(v) && c->add)
        c->add(cell, row, v);
    else if (is_known(v))
        add_whole(cell, c->metric, v);
    if (cell->len == 0)
        gp_strbuf_addc(cell, '-');
}

/* ---- the tables ---- */

static const struct column device_columns[] = {
    {'p', WIDTH_OTHER, "pwr", "W", GP_POWER_DRAW, NULL, GP_SMI_ALL},
    {'p', WIDTH_OTHER, "gtemp", "C", GP_TEMPERATURE_GPU, NULL, GP_SMI_ALL},
    {'p', WIDTH_OTHER, "mtemp", "C", GP_TEMPERATURE_MEMORY, NULL, GP_SMI_ALL},
    {'u', WIDTH_SM, "sm", "%", GP_UTILIZATION_GPU, NULL, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "mem", "%", GP_UTILIZATION_MEMORY, NULL, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "enc", "%", GP_UTILIZATION_ENCODER, NULL, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "dec", "%", GP_UTILIZATION_DECODER, NULL, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "jpg", "%", GP_UTILIZATION_JPEG, NULL, GP_SMI_FROM(535, 0)},
    {'u', WIDTH_OTHER, "ofa", "%", GP_UTILIZATION_OFA, NULL, GP_SMI_FROM(535, 0)},
    {'c', WIDTH_OTHER, "mclk", "MHz", GP_CLOCK_MEMORY, NULL, GP_SMI_ALL},
    {'c', WIDTH_OTHER, "pclk", "MHz", GP_CLOCK_SM, NULL, GP_SMI_ALL},
    {'v', WIDTH_OTHER, "pviol", "%", GP_THROTTLE_SW_POWER_CAP, NULL, GP_SMI_ALL},
    {'v', WIDTH_OTHER, "tviol", "bool", GP_THROTTLE_THERMAL, add_whether, GP_SMI_ALL},
    {'m', WIDTH_OTHER, "fb", "MB", GP_MEMORY_USED, add_mib, GP_SMI_ALL},
    {'m', WIDTH_OTHER, "bar1", "MB", GP_BAR1_USED, add_mib, GP_SMI_ALL},
    {'m', WIDTH_OTHER, "ccpm", "MB", GP_PROTECTED_USED, add_mib, GP_SMI_FROM(535, 0)},
    {'e', WIDTH_OTHER, "sbecc", "errs", GP_ECC_CORRECTED_VOLATILE, NULL, GP_SMI_ALL},
    {'e', WIDTH_OTHER, "dbecc", "errs", GP_ECC_UNCORRECTED_VOLATILE, NULL, GP_SMI_ALL},
    {'e', WIDTH_OTHER, "pci", "errs", GP_PCIE_REPLAYS, NULL, GP_SMI_ALL},
    {'t', WIDTH_OTHER, "rxpci", "MB/s", GP_PCIE_RX, add_mb_per_s, GP_SMI_ALL},
    {'t', WIDTH_OTHER, "txpci", "MB/s", GP_PCIE_TX, add_mb_per_s, GP_SMI_ALL},
};

static const struct column process_columns[] = {
    {FRONT, WIDTH_PID, "pid", "#", GP_PID, NULL, GP_SMI_ALL},
    {FRONT, WIDTH_TYPE, "type", "C/G", GP_PROCESS_TYPE, add_type, GP_SMI_ALL},
    {'u', WIDTH_SM, "sm", "%", GP_PROCESS_SM, add_kernels, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "mem", "%", GP_PROCESS_MEM, add_kernels, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "enc", "%", GP_PROCESS_ENC, add_share, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "dec", "%", GP_PROCESS_DEC, add_share, GP_SMI_ALL},
    {'u', WIDTH_OTHER, "jpg", "%", GP_PROCESS_JPEG, add_share, GP_SMI_FROM(535, 0)},
    {'u', WIDTH_OTHER, "ofa", "%", GP_PROCESS_OFA, add_share, GP_SMI_FROM(535, 0)},
    {'m', WIDTH_OTHER, "fb", "MB", GP_PROCESS_MEMORY, add_mib, GP_SMI_ALL},
    {'m', WIDTH_OTHER, "ccpm", "MB", GP_PROCESS_MEMORY, add_protected, GP_SMI_FROM(535, 0)},
    {BACK, WIDTH_NAME, "command", "name", GP_SMI_PROCESS_NAME, add_name, GP_SMI_ALL},
};

static const struct column encoding_columns[] = {
    {FRONT, 8, "Session", "Id", GP_ENCODING_ID, NULL, GP_SMI_ALL},
    {FRONT, 11, "Process", "Id", GP_ENCODING_PID, NULL, GP_SMI_ALL},
    {FRONT, 8, "Codec", "Type", GP_ENCODING_CODEC, add_codec, GP_SMI_ALL},
    {FRONT, 8, "H", "Res", GP_ENCODING_WIDTH, NULL, GP_SMI_ALL},
    {FRONT, 8, "V", "Res", GP_ENCODING_HEIGHT, NULL, GP_SMI_ALL},
    {FRONT, 8, "Average", "FPS", GP_ENCODING_FPS, NULL, GP_SMI_ALL},
    {FRONT, 12, "Average", "Latency(us)", GP_ENCODING_LATENCY, NULL, GP_SMI_ALL},
};

static const struct column capture_columns[] = {
    {FRONT, 10, "Session", "Id", GP_CAPTURE_ID, NULL, GP_SMI_ALL},
    {FRONT, 10, "Process", "Id", GP_CAPTURE_PID, NULL, GP_SMI_ALL},
    {FRONT, 10, "Display", "Ordinal", GP_CAPTURE_DISPLAY, NULL, GP_SMI_ALL},
    {FRONT, 10, "Session", "Type", GP_CAPTURE_TYPE, NULL, GP_SMI_ALL},
    {FRONT, 10, "Diff. Map", "State", GP_CAPTURE_FLAGS, add_difference, GP_SMI_ALL},
    {FRONT, 12, "Class. Map", "State", GP_CAPTURE_FLAGS, add_classes, GP_SMI_ALL},
    {FRONT, 14, "Capture", "Mode", GP_CAPTURE_FLAGS, add_mode, GP_SMI_ALL},
    {FRONT, 8, "Max H", "Res", GP_CAPTURE_MAX_WIDTH, NULL, GP_SMI_ALL},
    {FRONT, 8, "Max V", "Res", GP_CAPTURE_MAX_HEIGHT, NULL, GP_SMI_ALL},
    {FRONT, 6, "H", "Res", GP_CAPTURE_WIDTH, NULL, GP_SMI_ALL},
    {FRONT, 6, "V", "Res", GP_CAPTURE_HEIGHT, NULL, GP_SMI_ALL},
    {FRONT, 10, "Average", "FPS", GP_CAPTURE_FPS, NULL, GP_SMI_ALL},
    {FRONT, 14, "Average", "Latency(us)", GP_CAPTURE_LATENCY, NULL, GP_SMI_ALL},
};

/* By NVML's GPM metric ids. */
static const struct gpm {
    uint8_t number;
    const char *words;
    struct column column;
} gpm_table[] = {
/* clang-format off */
#define GPM(number, words, head, unit, metric, add)                                                \
    {number, words, {BACK, 10, head, "GPM:" unit, metric, add, GP_SMI_ALL}}
    /* clang-format on */
    GPM(1, "graphics or compute work", "gract", "%", GP_GPM_GRAPHICS, NULL),
    GPM(2, "SMs with work", "smutil", "%", GP_GPM_SM, NULL),
    GPM(3, "warps of the SMs", "smocc", "%", GP_GPM_SM_OCCUPANCY, NULL),
    GPM(4, "integer units", "intutil", "%", GP_GPM_INTEGER, NULL),
    GPM(5, "tensor cores", "mmaact", "%", GP_GPM_TENSOR, NULL),
    GPM(6, "tensor cores, DFMA", "dfmaact", "%", GP_GPM_TENSOR_DFMA, NULL),
    GPM(7, "tensor cores, HMMA", "hmmaact", "%", GP_GPM_TENSOR_HMMA, NULL),
    GPM(9, "tensor cores, IMMA", "immaact", "%", GP_GPM_TENSOR_IMMA, NULL),
    GPM(10, "memory bandwidth", "dram", "%", GP_GPM_DRAM, NULL),
    GPM(11, "double-precision units", "fp64", "%", GP_GPM_FP64, NULL),
    GPM(12, "single-precision units", "fp32", "%", GP_GPM_FP32, NULL),
    GPM(13, "half-precision units", "fp16", "%", GP_GPM_FP16, NULL),
    GPM(20, "PCIe, sent", "pcitx", "MiB/s", GP_GPM_PCIE_TX, add_mib_per_s),
    GPM(21, "PCIe, received", "pcirx", "MiB/s", GP_GPM_PCIE_RX, add_mib_per_s),
    GPM(60, "NVLink, received", "nvlrx", "MiB/s", GP_GPM_NVLINK_RX, add_mib_per_s),
    GPM(61, "NVLink, sent", "nvltx", "MiB/s", GP_GPM_NVLINK_TX, add_mib_per_s),
#undef GPM
};

/* The layout of a line. In the output of one driver, header and rows may have different layouts,
 * like in nvidia-smi. */
struct line {
    uint8_t width[WIDTH__COUNT]; /* of the name: the gap before it */
    bool blank;                  /* an additional one at the end, or before the GPM columns */
};

/* Date and time at the start; a time after a date has its own width. */
struct stamp {
    uint8_t date, time, time_alone;
};

struct era {
    struct gp_smi_range in;
    const struct line *head, *row;
    const struct stamp *stamp;
    bool gpm_blank; /* after each GPM column */
};

static const struct line wide = {{12, 7, 7, 7, 4}, true};
static const struct line device_narrow = {{0, 0, 6, 6, 0}, false};
static const struct line device_mixed = {{0, 0, 6, 7, 0}, true};
static const struct line process_narrow = {{11, 6, 6, 6, 3}, false};
static const struct line process_mixed_head = {{12, 6, 6, 7, 4}, true};
static const struct line process_row = {{11, 6, 7, 7, 4}, false};
static const struct line session_line = {{0}, false};
static const struct stamp old_stamp = {11, 12, 12};
static const struct stamp stamp = {12, 13, 12};

static const struct era device_eras[] = {
    {GP_SMI_UNTIL(520), &device_narrow, &device_narrow, &old_stamp, false},
    {GP_SMI_BETWEEN(521, 525), &device_narrow, &device_mixed, &old_stamp, false},
    {GP_SMI_BETWEEN(526, 534), &wide, &device_mixed, &stamp, false},
    {GP_SMI_BETWEEN(535, 569), &wide, &wide, &stamp, false},
    {GP_SMI_FROM(570, 0), &wide, &wide, &stamp, true},
};

static const struct era process_eras[] = {
    {GP_SMI_UNTIL(525), &process_narrow, &process_narrow, &old_stamp, false},
    {GP_SMI_BETWEEN(526, 534), &process_mixed_head, &process_narrow, &stamp, false},
    {GP_SMI_FROM(535, 0), &wide, &process_row, &stamp, false},
};

static const struct era session_eras[] = {
    {GP_SMI_ALL, &session_line, &session_line, &stamp, false},
};

static const struct view {
    enum gp_scope scope; /* of the rows */
    const struct column *columns;
    size_t column_count;
    const struct era *eras;
    const char *index[2]; /* of the GPU, in both header lines */
    const char *groups;   /* shown without -s */
    unsigned rows_per_header;
} views[] = {
#define COLUMNS_OF(table) table, GP_ARRAY_LEN(table)
    [GP_SMI_DMON] =
        {GP_SCOPE_DEVICE, COLUMNS_OF(device_columns), device_eras, {"gpu", "Idx"}, "puc", 25},
    [GP_SMI_PMON] =
        {GP_SCOPE_PROCESS, COLUMNS_OF(process_columns), process_eras, {"gpu", "Idx"}, "u", 44},
    [GP_SMI_ENCODER_SESSIONS] =
        {GP_SCOPE_ENCODING, COLUMNS_OF(encoding_columns), session_eras, {"GPU", "Idx"}, "", 25},
    [GP_SMI_FBC_SESSIONS] =
        {GP_SCOPE_CAPTURE, COLUMNS_OF(capture_columns), session_eras, {"GPU", "Idx"}, "", 25},
#undef COLUMNS_OF
};

/* ---- options ---- */

void gp_smi_monitor_init(struct gp_smi_monitor *m, enum gp_smi_monitor_kind kind)
{
    *m = (struct gp_smi_monitor){.kind = kind};
    memcpy(m->groups, views[kind].groups, strlen(views[kind].groups));
}

const char *gp_smi_monitor_default(enum gp_smi_monitor_kind kind)
{
    return views[kind].groups;
}

static bool has_group(const struct view *view, char letter)
{
    for (size_t i = 0; i < view->column_count; i++)
        if (view->columns[i].group == letter)
            return letter != FRONT && letter != BACK;
    return false;
}

bool gp_smi_monitor_select(struct gp_smi_monitor *m, const char *letters)
{
    size_t n = 0;
    for (; *letters; letters++) {
        if (!has_group(&views[m->kind], *letters))
            return false;
        if (!memchr(m->groups, *letters, n))
            m->groups[n++] = *letters;
    }
    m->groups[n] = '\0';
    return n > 0;
}

bool gp_smi_monitor_stamp(struct gp_smi_monitor *m, const char *letters)
{
    m->date = strchr(letters, 'D') != NULL;
    m->time = strchr(letters, 'T') != NULL;
    return *letters && letters[strspn(letters, "DT")] == '\0';
}

bool gp_smi_monitor_format(struct gp_smi_monitor *m, const char *list)
{
    const struct {
        const char *word;
        bool *flag;
    } words[] = {{"csv", &m->csv}, {"nounit", &m->no_unit}, {"noheader", &m->no_header}};
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        bool known = false;
        for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
            if (strlen(words[i].word) == n && strncmp(words[i].word, p, n) == 0)
                known = *words[i].flag = true;
        if (!known)
            return false;
        p += n + (p[n] == ',');
    }
    return *list;
}

/* The row of a GPM metric; GP_ARRAY_LEN(gpm_table) if there is none. */
static size_t gpm_row(const char *digits, size_t n)
{
    char text[8] = "";
    uint64_t number;
    size_t i = 0;
    if (n == 0 || n >= sizeof(text))
        return GP_ARRAY_LEN(gpm_table);
    memcpy(text, digits, n);
    if (!gp_parse_u64(text, &number))
        return GP_ARRAY_LEN(gpm_table);
    while (i < GP_ARRAY_LEN(gpm_table) && gpm_table[i].number != number)
        i++;
    return i;
}

bool gp_smi_monitor_gpm(struct gp_smi_monitor *m, const char *list)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        size_t i = gpm_row(p, n);
        if (i == GP_ARRAY_LEN(gpm_table) || m->gpm_count == GP_SMI_GPM_COLUMNS)
            return false;
        m->gpm[m->gpm_count++] = (uint8_t)i;
        p += n + (p[n] == ',');
    }
    return m->gpm_count > 0;
}

void gp_smi_monitor_add_groups(struct gp_strbuf *sb, enum gp_smi_monitor_kind kind)
{
    const struct view *view = &views[kind];
    char last = FRONT;
    for (size_t i = 0; i < view->column_count; i++) {
        const struct column *c = &view->columns[i];
        if (!has_group(view, c->group))
            continue;
        if (c->group != last)
            gp_strbuf_addf(sb, "%s        %c  ", last == FRONT ? "" : "\n", c->group);
        gp_strbuf_addf(sb, "%s%s", c->group == last ? " " : "", c->head);
        last = c->group;
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_smi_monitor_add_gpm(struct gp_strbuf *sb)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gpm_table); i++)
        gp_strbuf_addf(sb, "        %2u  %-8s %s\n", gpm_table[i].number, gpm_table[i].column.head,
                       gpm_table[i].words);
}

/* ---- required metrics ---- */

/* The columns in order; if form is NULL, also those of other drivers. */
struct layout {
    const struct column *columns[COLUMNS];
    size_t count;
    size_t plain; /* number of columns that are not GPM columns */
};

static void lay_out(const struct gp_smi_monitor *m, const struct gp_smi_form *form,
                    struct layout *ret)
{
    const struct view *view = &views[m->kind];
    char order[GP_SMI_GROUPS + 3] = {FRONT};
    size_t n = strlen(m->groups);
    ret->count = 0;
    memcpy(&order[1], m->groups, n);
    order[n + 1] = BACK;
    for (const char *group = order; *group; group++)
        for (size_t i = 0; i < view->column_count; i++) {
            const struct column *c = &view->columns[i];
            if (c->group == *group && (!form || gp_smi_in(form, c->in)))
                ret->columns[ret->count++] = c;
        }
    ret->plain = ret->count;
    for (size_t i = 0; i < m->gpm_count; i++)
        ret->columns[ret->count++] = &gpm_table[m->gpm[i]].column;
}

void gp_smi_monitor_want(const struct gp_smi_monitor *m, struct gp_want *want)
{
    enum gp_scope scope = views[m->kind].scope;
    struct layout layout;
    lay_out(m, NULL, &layout);
    for (size_t i = 0; i < layout.count; i++) {
        gp_metric_set_add(&want->metrics, layout.columns[i]->metric);
        gp_metric_set_add(&want->metrics, stand_in(layout.columns[i]->metric));
        if (layout.columns[i]->add == add_protected)
            gp_metric_set_add(&want->metrics, GP_PROTECTED_TOTAL);
    }
    want->processes = want->process_names = scope == GP_SCOPE_PROCESS;
    if (want->processes)
        gp_metric_set_add(&want->metrics, GP_PROCESS_GI);
    if (gp_scope_is_list(scope))
        want->lists |= UINT32_C(1) << gp_list_index(scope);
}

/* A MIG GPU reports this for no process, but is shown anyway. */
bool gp_smi_monitor_is_refused(const struct gp_smi_monitor *m, const struct gp_snapshot *snapshot)
{
    bool refused = false;
    if (views[m->kind].scope != GP_SCOPE_PROCESS || !strchr(m->groups, 'u'))
        return false;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        if (is_known(gp_process_value(p, GP_PROCESS_GI)) ||
            gp_process_value(p, GP_PROCESS_SM)->status != GP_STATUS_UNSUPPORTED)
            return false;
        refused = true;
    }
    return refused;
}

/* ---- lines ---- */

struct printer {
    struct gp_smi_monitor *m;
    const struct view *view;
    const struct era *era;
    struct gp_strbuf *sb;
    struct gp_strbuf cell;
    struct layout layout;
    char date[16], time[16];
};

static void add_stamp(struct printer *p, char first, const char *date, const char *time)
{
    const struct gp_smi_monitor *m = p->m;
    if (m->csv) {
        gp_strbuf_addf(p->sb, "%s%s%s%s", m->date ? date : "", m->date ? ", " : "",
                       m->time ? time : "", m->time ? ", " : "");
        return;
    }
    gp_strbuf_addc(p->sb, first);
    if (m->date)
        gp_strbuf_addf(p->sb, "%-*s", p->era->stamp->date, date);
    if (m->time)
        gp_strbuf_addf(p->sb, "%-*s", m->date ? p->era->stamp->time : p->era->stamp->time_alone,
                       time);
}

/* Appends the cell in the scratch buffer as the column with this index. */
static void add_column(struct printer *p, const struct line *line, size_t i)
{
    const struct column *c = p->layout.columns[i];
    bool gpm = i >= p->layout.plain;
    if (p->cell.error && !p->sb->error)
        p->sb->error = p->cell.error;
    if (p->m->csv)
        gp_strbuf_addf(p->sb, ", %s", p->cell.buf);
    else if (c->width == WIDTH_NAME)
        gp_strbuf_addf(p->sb, "%*s%s", line->width[WIDTH_NAME], "", p->cell.buf);
    else
        gp_strbuf_addf(p->sb, "%*s", c->width < WIDTH__COUNT ? line->width[c->width] : c->width,
                       p->cell.buf);
    if (!p->m->csv && (gpm ? p->era->gpm_blank : i + 1 == p->layout.plain && line->blank))
        gp_strbuf_addc(p->sb, ' ');
}

static void print_heading(struct printer *p, bool units)
{
    bool stamped = p->m->date || p->m->time;
    if (stamped && p->m->csv)
        gp_strbuf_addc(p->sb, '#');
    if (stamped)
        add_stamp(p, '#', units ? "YYYYMMDD" : "Date", units ? "HH:MM:SS" : "Time");
    gp_strbuf_addf(p->sb, "%s%s", stamped ? "" : "# ", p->view->index[units]);
    for (size_t i = 0; i < p->layout.count; i++) {
        const struct column *c = p->layout.columns[i];
        gp_strbuf_reset(&p->cell);
        gp_strbuf_adds(&p->cell, units ? c->unit : c->head);
        add_column(p, p->era->head, i);
    }
    gp_strbuf_addc(p->sb, '\n');
}

/* In CSV the header is printed once. */
static void print_header(struct printer *p)
{
    struct gp_smi_monitor *m = p->m;
    bool due = m->rows == 0 || (!m->csv && m->rows % p->view->rows_per_header == 0);
    m->rows++;
    if (due && !m->no_header)
        print_heading(p, false);
    if (due && !m->no_unit)
        print_heading(p, true);
}

static void print_row(struct printer *p, const struct row *row)
{
    bool stamped = p->m->date || p->m->time;
    print_header(p);
    if (stamped)
        add_stamp(p, ' ', p->date, p->time);
    gp_strbuf_addf(p->sb, "%*u", p->m->csv ? 0 : stamped ? 3 : 5, row->device->index);
    for (size_t i = 0; i < p->layout.count; i++) {
        add_cell(&p->cell, p->layout.columns[i], row);
        if (p->layout.columns[i]->width == WIDTH_NAME && p->cell.len < NAME_BYTES)
            gp_strbuf_fill(&p->cell, ' ', NAME_BYTES - p->cell.len);
        add_column(p, p->era->row, i);
    }
    gp_strbuf_addc(p->sb, '\n');
}

/* ---- rows ---- */

/* Stale processes of a GPU that does not respond are not listed. */
static void print_processes(struct printer *p, struct row *row)
{
    if (row->device->status == GP_STATUS_OK)
        row->process = gp_smi_next_process(row->snapshot, row->device, NULL);
    do {
        print_row(p, row);
        row->process =
            row->process ? gp_smi_next_process(row->snapshot, row->device, row->process) : NULL;
    } while (row->process);
}

static void print_sessions(struct printer *p, struct row *row)
{
    const struct gp_entries *list = &row->snapshot->lists[gp_list_index(p->view->scope)];
    size_t device = (size_t)(row->device - row->snapshot->devices);
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        row->entry = &list->entries[i];
        if (row->entry->device != device)
            continue;
        print_row(p, row);
        any = true;
    }
    row->entry = NULL;
    if (!any)
        print_row(p, row);
}

static void print_device(struct printer *p, struct row *row)
{
    if (p->view->scope == GP_SCOPE_DEVICE)
        print_row(p, row);
    else if (p->view->scope == GP_SCOPE_PROCESS)
        print_processes(p, row);
    else
        print_sessions(p, row);
}

static void set_time(struct printer *p, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    struct tm tm;
    (void)localtime_r(&seconds, &tm);
    (void)strftime(p->date, sizeof(p->date), "%Y%m%d", &tm);
    (void)strftime(p->time, sizeof(p->time), "%H:%M:%S", &tm);
}

void gp_smi_monitor_print(struct gp_smi_monitor *m, struct gp_strbuf *sb,
                          const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    struct printer p = {.m = m, .view = &views[m->kind], .sb = sb, .cell = GP_STRBUF_INIT(4096)};
    p.era = p.view->eras;
    while (!gp_smi_in(form, p.era->in))
        p.era++;
    lay_out(m, form, &p.layout);
    set_time(&p, snapshot->wall_ns);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        struct row row = {form, snapshot, &snapshot->devices[i], NULL, NULL};
        if (!row.device->is_mig)
            print_device(&p, &row);
    }
    gp_strbuf_fini(&p.cell);
}
