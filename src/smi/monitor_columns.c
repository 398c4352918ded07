#include "smi/monitor_columns.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/processes.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>

/* ---- values ---- */

static const struct gp_value *value_of(const struct gp_smi_monitor_row *row, enum gp_metric m)
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

static void add_mib(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                    const struct gp_value *v)
{
    gp_strbuf_addf(sb, "%llu", (unsigned long long)gp_smi_mib(row->form, GP_MEMORY_USED, v->i));
}

static void add_bar1(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                     const struct gp_value *v)
{
    gp_strbuf_addf(sb, "%llu", (unsigned long long)gp_smi_mib(row->form, GP_BAR1_USED, v->i));
}

static void add_mb_per_s(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                         const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addf(sb, "%lld", (long long)(v->f / 1e6));
}

static void add_mib_per_s(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                          const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addf(sb, "%lld", (long long)(v->f / 0x1p20));
}

/* The replacement for a metric that a driver does not have; the metric itself if there is none. */
static enum gp_metric stand_in(enum gp_metric m)
{
    return m == GP_THROTTLE_THERMAL ? GP_THROTTLE_SW_THERMAL : m;
}

static void add_whether(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                        const struct gp_value *v)
{
    (void)row;
    gp_strbuf_addc(sb, v->f > 0 ? '1' : '0');
}

/* A process that does not use an engine has no share of it. */
static void add_share(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                      const struct gp_value *v)
{
    (void)row;
    if (v->i > 0)
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

/* SM and memory belong to one engine: either share shows that it was used. */
static void add_kernels(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                        const struct gp_value *v)
{
    if (value_of(row, GP_PROCESS_SM)->i > 0 || value_of(row, GP_PROCESS_MEM)->i > 0)
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

/* Protected memory is not reported per process. If the GPU has none, no process has any. */
static void add_protected(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                          const struct gp_value *v)
{
    const struct gp_value *total = value_of(row, GP_PROTECTED_TOTAL);
    (void)v;
    if (is_known(total) && total->i == 0)
        gp_strbuf_addc(sb, '0');
}

static void add_type(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                     const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, strcmp(v->s, "M") == 0 ? "M+C" : v->s);
}

/* The last part of the path, cut at a character boundary. */
static void add_name(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                     const struct gp_value *v)
{
    const char *slash = strrchr(v->s, '/');
    const char *name = slash ? slash + 1 : v->s;
    size_t n = strlen(name);
    if (n > GP_SMI_NAME_BYTES)
        for (n = GP_SMI_NAME_BYTES; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
            n--;
    (void)row;
    gp_strbuf_add(sb, name, n);
}

static void add_codec(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                      const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, strcmp(v->s, "HEVC") == 0 ? "H.265" : v->s);
}

enum { FLAG_DIFFERENCE = 1, FLAG_CLASSIFICATION = 2, FLAG_NO_WAIT = 4, FLAG_WAIT_TIMEOUT = 16 };

static void add_difference(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                           const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, v->i & FLAG_DIFFERENCE ? "Enabled" : "Disabled");
}

static void add_classes(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                        const struct gp_value *v)
{
    (void)row;
    gp_strbuf_adds(sb, v->i & FLAG_CLASSIFICATION ? "Enabled" : "Disabled");
}

static void add_mode(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                     const struct gp_value *v)
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

void gp_smi_monitor_add_cell(struct gp_strbuf *cell, const struct gp_smi_monitor_column *c,
                             const struct gp_smi_monitor_row *row)
{
    static const struct gp_value none = {.status = GP_STATUS_NONE};
    const struct gp_value *v = &none;
    if (c->metric != GP_METRIC__COUNT)
        v = value_of(row, c->metric);
    if (c->metric != GP_METRIC__COUNT && !is_known(v))
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

static const struct gp_smi_monitor_column device_columns[] = {
    {'p', GP_SMI_WIDTH_OTHER, "pwr", "W", GP_POWER_DRAW, NULL, GP_SMI_ALL},
    {'p', GP_SMI_WIDTH_OTHER, "gtemp", "C", GP_TEMPERATURE_GPU, NULL, GP_SMI_ALL},
    {'p', GP_SMI_WIDTH_OTHER, "mtemp", "C", GP_TEMPERATURE_MEMORY, NULL, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_SM, "sm", "%", GP_UTILIZATION_GPU, NULL, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "mem", "%", GP_UTILIZATION_MEMORY, NULL, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "enc", "%", GP_UTILIZATION_ENCODER, NULL, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "dec", "%", GP_UTILIZATION_DECODER, NULL, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "jpg", "%", GP_UTILIZATION_JPEG, NULL, GP_SMI_FROM(535, 0)},
    {'u', GP_SMI_WIDTH_OTHER, "ofa", "%", GP_UTILIZATION_OFA, NULL, GP_SMI_FROM(535, 0)},
    {'c', GP_SMI_WIDTH_OTHER, "mclk", "MHz", GP_CLOCK_MEMORY, NULL, GP_SMI_ALL},
    {'c', GP_SMI_WIDTH_OTHER, "pclk", "MHz", GP_CLOCK_SM, NULL, GP_SMI_ALL},
    {'v', GP_SMI_WIDTH_OTHER, "pviol", "%", GP_THROTTLE_SW_POWER_CAP, NULL, GP_SMI_ALL},
    {'v', GP_SMI_WIDTH_OTHER, "tviol", "bool", GP_THROTTLE_THERMAL, add_whether, GP_SMI_ALL},
    {'m', GP_SMI_WIDTH_OTHER, "fb", "MB", GP_MEMORY_USED, add_mib, GP_SMI_ALL},
    {'m', GP_SMI_WIDTH_OTHER, "bar1", "MB", GP_BAR1_USED, add_bar1, GP_SMI_ALL},
    {'m', GP_SMI_WIDTH_OTHER, "ccpm", "MB", GP_PROTECTED_USED, add_mib, GP_SMI_FROM(535, 0)},
    {'e', GP_SMI_WIDTH_OTHER, "sbecc", "errs", GP_ECC_CORRECTED_VOLATILE, NULL, GP_SMI_ALL},
    {'e', GP_SMI_WIDTH_OTHER, "dbecc", "errs", GP_ECC_UNCORRECTED_VOLATILE, NULL, GP_SMI_ALL},
    {'e', GP_SMI_WIDTH_OTHER, "pci", "errs", GP_PCIE_REPLAYS, NULL, GP_SMI_ALL},
    {'t', GP_SMI_WIDTH_OTHER, "rxpci", "MB/s", GP_PCIE_RX, add_mb_per_s, GP_SMI_ALL},
    {'t', GP_SMI_WIDTH_OTHER, "txpci", "MB/s", GP_PCIE_TX, add_mb_per_s, GP_SMI_ALL},
};

static const struct gp_smi_monitor_column process_columns[] = {
    {GP_SMI_FRONT, GP_SMI_WIDTH_PID, "pid", "#", GP_PID, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, GP_SMI_WIDTH_TYPE, "type", "C/G", GP_PROCESS_TYPE, add_type, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_SM, "sm", "%", GP_PROCESS_SM, add_kernels, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "mem", "%", GP_PROCESS_MEM, add_kernels, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "enc", "%", GP_PROCESS_ENC, add_share, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "dec", "%", GP_PROCESS_DEC, add_share, GP_SMI_ALL},
    {'u', GP_SMI_WIDTH_OTHER, "jpg", "%", GP_PROCESS_JPEG, add_share, GP_SMI_FROM(535, 0)},
    {'u', GP_SMI_WIDTH_OTHER, "ofa", "%", GP_PROCESS_OFA, add_share, GP_SMI_FROM(535, 0)},
    {'m', GP_SMI_WIDTH_OTHER, "fb", "MB", GP_PROCESS_MEMORY, add_mib, GP_SMI_ALL},
    {'m', GP_SMI_WIDTH_OTHER, "ccpm", "MB", GP_PROCESS_MEMORY, add_protected, GP_SMI_FROM(535, 0)},
    {GP_SMI_BACK, GP_SMI_WIDTH_NAME, "command", "name", GP_SMI_PROCESS_NAME, add_name, GP_SMI_ALL},
};

static const struct gp_smi_monitor_column encoding_columns[] = {
    {GP_SMI_FRONT, 8, "Session", "Id", GP_ENCODING_ID, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 11, "Process", "Id", GP_ENCODING_PID, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "Codec", "Type", GP_ENCODING_CODEC, add_codec, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "H", "Res", GP_ENCODING_WIDTH, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "V", "Res", GP_ENCODING_HEIGHT, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "Average", "FPS", GP_ENCODING_FPS, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 12, "Average", "Latency(us)", GP_ENCODING_LATENCY, NULL, GP_SMI_ALL},
};

static const struct gp_smi_monitor_column capture_columns[] = {
    {GP_SMI_FRONT, 10, "Session", "Id", GP_CAPTURE_ID, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 10, "Process", "Id", GP_CAPTURE_PID, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 10, "Display", "Ordinal", GP_CAPTURE_DISPLAY, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 10, "Session", "Type", GP_CAPTURE_TYPE, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 10, "Diff. Map", "State", GP_CAPTURE_FLAGS, add_difference, GP_SMI_ALL},
    {GP_SMI_FRONT, 12, "Class. Map", "State", GP_CAPTURE_FLAGS, add_classes, GP_SMI_ALL},
    {GP_SMI_FRONT, 14, "Capture", "Mode", GP_CAPTURE_FLAGS, add_mode, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "Max H", "Res", GP_CAPTURE_MAX_WIDTH, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 8, "Max V", "Res", GP_CAPTURE_MAX_HEIGHT, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 6, "H", "Res", GP_CAPTURE_WIDTH, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 6, "V", "Res", GP_CAPTURE_HEIGHT, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 10, "Average", "FPS", GP_CAPTURE_FPS, NULL, GP_SMI_ALL},
    {GP_SMI_FRONT, 14, "Average", "Latency(us)", GP_CAPTURE_LATENCY, NULL, GP_SMI_ALL},
};

const struct gp_smi_gpm gp_smi_gpm_table[GP_SMI_GPM_METRICS] = {
/* clang-format off */
#define GPM(number, words, head, unit, metric, add)                                                \
    {number, words, {GP_SMI_BACK, 10, head, "GPM:" unit, metric, add, GP_SMI_ALL}}
    /* clang-format on */
    GPM(1, "graphics or compute work", "gract", "%", GP_GPM_GRAPHICS, NULL),
    GPM(2, "SMs with work", "smutil", "%", GP_GPM_SM, NULL),
    GPM(3, "warps of the SMs", "smocc", "%", GP_GPM_SM_OCCUPANCY, NULL),
    GPM(4, "integer units", "intutil", "%", GP_GPM_INTEGER, NULL),
    GPM(5, "tensor cores", "mmaact", "%", GP_GPM_TENSOR, NULL),
    GPM(6, "tensor cores, DFMA", "dfmat", "%", GP_GPM_TENSOR_DFMA, NULL),
    GPM(7, "tensor cores, HMMA", "hmmat", "%", GP_GPM_TENSOR_HMMA, NULL),
    GPM(9, "tensor cores, IMMA", "immat", "%", GP_GPM_TENSOR_IMMA, NULL),
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

static const struct gp_smi_monitor_line wide = {{12, 7, 7, 7, 4}, true};
static const struct gp_smi_monitor_line device_narrow = {{0, 0, 6, 6, 0}, false};
static const struct gp_smi_monitor_line device_mixed = {{0, 0, 6, 7, 0}, true};
static const struct gp_smi_monitor_line process_narrow = {{11, 6, 6, 6, 3}, false};
static const struct gp_smi_monitor_line process_mixed_head = {{12, 6, 6, 7, 4}, true};
static const struct gp_smi_monitor_line process_row = {{11, 6, 7, 7, 4}, false};
static const struct gp_smi_monitor_line session_line = {{0}, false};
static const struct gp_smi_monitor_stamp old_stamp = {11, 12, 11, 12};
static const struct gp_smi_monitor_stamp stamp = {12, 13, 13, 12};

static const struct gp_smi_monitor_era device_eras[] = {
    {GP_SMI_UNTIL(520), &device_narrow, &device_narrow, &old_stamp, false},
    {GP_SMI_BETWEEN(521, 525), &device_narrow, &device_mixed, &old_stamp, false},
    {GP_SMI_BETWEEN(526, 534), &wide, &device_mixed, &stamp, false},
    {GP_SMI_BETWEEN(535, 569), &wide, &wide, &stamp, false},
    {GP_SMI_FROM(570, 0), &wide, &wide, &stamp, true},
};

static const struct gp_smi_monitor_era process_eras[] = {
    {GP_SMI_UNTIL(525), &process_narrow, &process_narrow, &old_stamp, false},
    {GP_SMI_BETWEEN(526, 534), &process_mixed_head, &process_narrow, &stamp, false},
    {GP_SMI_FROM(535, 0), &wide, &process_row, &stamp, false},
};

static const struct gp_smi_monitor_era session_eras[] = {
    {GP_SMI_ALL, &session_line, &session_line, &stamp, false},
};

const struct gp_smi_monitor_view gp_smi_monitor_views[] = {
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

void gp_smi_monitor_want_column(const struct gp_smi_monitor_column *c, struct gp_want *want)
{
    gp_metric_set_add(&want->metrics, c->metric);
    gp_metric_set_add(&want->metrics, stand_in(c->metric));
    if (c->add == add_protected)
        gp_metric_set_add(&want->metrics, GP_PROTECTED_TOTAL);
}
