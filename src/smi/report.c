#include "smi/report.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/entries.h"
#include "smi/message.h"
#include "smi/processes.h"
#include "smi/value.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 8, OLD_COLUMN = 42, NEW_COLUMN = 55 };

struct printer;

/* A row of the tree; see report.def. */
struct row {
    struct gp_smi_range drivers;
    const char *tag;
    const char *label;
    bool (*when)(const struct printer *p);
    union {
        const char *word;                                        /* WORD */
        void (*print)(struct printer *p, const struct row *row); /* PART */
    };
    uint32_t section; /* its bit in the sections; 0: none */
    uint16_t metric;  /* VALUE */
    uint8_t level;
    uint8_t kind;  /* enum kind */
    uint8_t scope; /* PART: the subject */
    bool extra;    /* in the log only if -d selects it */
};

enum kind { GROUP, VALUE, WORD, PART };

/* One document being written. */
struct printer {
    struct gp_strbuf *sb;
    const struct gp_smi_report *report;
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    const struct gp_device *device;
    size_t column; /* column of the colon in the log */
    unsigned depth;
    struct {
        unsigned level;
        const char *tag;
    } open[DEPTH_MAX]; /* the open groups, outermost first */
};

/* ---- two writers ---- */

static const char *name_in(const struct printer *p, const char *tag, const char *label)
{
    return p->report->xml ? tag : label;
}

/* In XML, <gpu> adds one level. */
static void indent(struct printer *p)
{
    if (p->report->xml)
        gp_strbuf_fill(p->sb, '\t', p->depth + 2);
    else
        gp_strbuf_fill(p->sb, ' ', 4 * ((size_t)p->depth + 1));
}

static void begin_group(struct printer *p, unsigned level, const char *tag, const char *label)
{
    const char *name = name_in(p, tag, label);
    if (!name)
        return;
    indent(p);
    gp_strbuf_addf(p->sb, p->report->xml ? "<%s>\n" : "%s\n", name);
    p->open[p->depth].level = level;
    p->open[p->depth].tag = tag;
    p->depth++;
}

/* Closes the groups that a row of this level does not belong to. */
static void end_groups(struct printer *p, unsigned level)
{
    while (p->depth > 0 && p->open[p->depth - 1].level >= level) {
        p->depth--;
        if (!p->report->xml)
            continue;
        indent(p);
        gp_strbuf_addf(p->sb, "</%s>\n", p->open[p->depth].tag);
    }
}

/* The value is appended between these two. False: the row is not in this document. */
static bool begin_value(struct printer *p, const char *tag, const char *label)
{
    const char *name = name_in(p, tag, label);
    if (!name)
        return false;
    size_t start = p->sb->len;
    indent(p);
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

static void end_value(struct printer *p, const char *tag)
{
    if (p->report->xml)
        gp_strbuf_addf(p->sb, "</%s>\n", tag);
    else
        gp_strbuf_addc(p->sb, '\n');
}

static void print_word(struct printer *p, const char *tag, const char *label, const char *word)
{
    if (!begin_value(p, tag, label))
        return;
    gp_strbuf_adds(p->sb, word);
    end_value(p, tag);
}

static void print_metric(struct printer *p, const char *tag, const char *label, enum gp_metric m,
                         const struct gp_value *v)
{
    if (!begin_value(p, tag, label))
        return;
    gp_smi_add_value(p->sb, p->form, m, v, p->report->xml ? GP_SMI_XML : GP_SMI_LOG);
    end_value(p, tag);
}

static const struct gp_value *value_of(const struct printer *p, enum gp_metric m)
{
    return gp_snapshot_value(p->snapshot, p->device, NULL, m);
}

static bool has(const struct printer *p, enum gp_metric m)
{
    return gp_value_is_present(value_of(p, m));
}

/* ---- conditions ---- */

static bool is_not_windows(const struct printer *p)
{
    return !has(p, GP_DRIVER_MODEL);
}

/* A platform without a chassis number. */
static bool names_no_chassis(const struct printer *p)
{
    return !has(p, GP_PLATFORM_CHASSIS) && has(p, GP_PLATFORM_PEER);
}

static bool names_chassis(const struct printer *p)
{
    return !names_no_chassis(p);
}

static bool has_tlimits(const struct printer *p)
{
    return has(p, GP_TLIMIT_SHUTDOWN) || has(p, GP_TLIMIT_SLOWDOWN);
}

static bool has_thresholds(const struct printer *p)
{
    return !has_tlimits(p);
}

static bool has_remapper(const struct printer *p)
{
    return has(p, GP_REMAPPED_CORRECTABLE);
}

static bool has_no_remapper(const struct printer *p)
{
    return !has_remapper(p);
}

/* Up to Volta, errors are counted as single-bit and double-bit; later as SRAM and DRAM; since
 * Ampere, SRAM errors are split by detection method. Old drivers do not report the architecture,
 * but PCI device ids grow with each generation: Turing's start here. */
static bool counts_bits(const struct printer *p)
{
    const struct gp_value *v = value_of(p, GP_PCI_DEVICE_ID);
    return gp_value_is_present(v) && strtoul(v->s, NULL, 16) >> 16 < 0x1E00;
}

static bool counts_places(const struct printer *p)
{
    return !counts_bits(p);
}

static bool counts_sram(const struct printer *p)
{
    const struct gp_value *v = value_of(p, GP_ARCHITECTURE);
    return gp_value_is_present(v) && strcmp(v->s, "Turing") == 0 &&
           !has(p, GP_ECC_SRAM_VOLATILE_PARITY);
}

static bool counts_parity(const struct printer *p)
{
    return !counts_bits(p) && !counts_sram(p);
}

/* ---- lists ---- */

static const struct gp_entry *next_entry(const struct printer *p, enum gp_scope scope,
                                         const struct gp_entry *last)
{
    return gp_smi_next_entry(p->snapshot, p->device, scope, last);
}

static bool has_list(const struct printer *p, enum gp_scope scope)
{
    return gp_smi_list_status(p->device, scope) == GP_STATUS_OK;
}

static void print_entry(struct printer *p, const char *tag, const char *label,
                        const struct gp_entry *e, enum gp_metric m)
{
    print_metric(p, tag, label, m, gp_smi_entry_value(e, m));
}

/* Pages are listed below the type of error that caused their retirement. */
static void print_pages(struct printer *p, const struct row *row, bool double_bit)
{
    if (!has_list(p, row->scope)) {
        print_word(p, row->tag, row->label, "N/A");
        return;
    }
    begin_group(p, row->level, row->tag, row->label);
    const struct gp_entry *e = NULL;
    while ((e = next_entry(p, GP_SCOPE_PAGE, e))) {
        const struct gp_value *cause = gp_smi_entry_value(e, GP_PAGE_CAUSE);
        if (gp_value_is_present(cause) && (strstr(cause->s, "Double") != NULL) == double_bit)
            print_entry(p, "retired_page_address", NULL, e, GP_PAGE_ADDRESS);
    }
    end_groups(p, row->level);
}

static void print_single_bit_pages(struct printer *p, const struct row *row)
{
    print_pages(p, row, false);
}

static void print_double_bit_pages(struct printer *p, const struct row *row)
{
    print_pages(p, row, true);
}

static void print_supported_clocks(struct printer *p, const struct row *row)
{
    const struct gp_entry *e = NULL;
    int64_t memory = -1;
    if (!has_list(p, GP_SCOPE_CLOCK)) {
        print_word(p, row->tag, row->label, "N/A");
        return;
    }
    begin_group(p, row->level, row->tag, row->label);
    while ((e = next_entry(p, GP_SCOPE_CLOCK, e))) {
        const struct gp_value *v = gp_smi_entry_value(e, GP_CLOCK_PAIR_MEMORY);
        if (!gp_value_is_present(v))
            continue;
        if (v->i != memory) {
            end_groups(p, 2);
            /* In the log, the graphics clocks are one level deeper, without a heading. */
            begin_group(p, 2, "supported_mem_clock", NULL);
            print_entry(p, "value", "Memory", e, GP_CLOCK_PAIR_MEMORY);
        }
        memory = v->i;
        print_entry(p, "supported_graphics_clock", "    Graphics", e, GP_CLOCK_PAIR_GRAPHICS);
    }
    end_groups(p, 1);
}

static const struct series {
    const char *label; /* of its row */
    const char *kind;
    int decimals;
    const char *unit;
} series[] = {
    {"GPU Utilization Samples", "gpu", 0, "%"},
    {"Memory Utilization Samples", "memory", 0, "%"},
    {"ENC Utilization Samples", "encoder", 0, "%"},
    {"DEC Utilization Samples", "decoder", 0, "%"},
    {"JPG Utilization Samples", "jpeg", 0, "%"},
    {"OFA Utilization Samples", "ofa", 0, "%"},
    {"Power Samples", "power", 2, "W"},
    {"SM Clock Samples", "sm_clock", 0, "MHz"},
    {"Memory Clock Samples", "memory_clock", 0, "MHz"},
};

/* NULL if there are none. */
static const struct gp_entry *find_series(const struct printer *p, const char *kind)
{
    const struct gp_entry *e = NULL;
    while ((e = next_entry(p, GP_SCOPE_SERIES, e))) {
        const struct gp_value *v = gp_smi_entry_value(e, GP_SAMPLES_KIND);
        if (gp_value_is_present(v) && strcmp(v->s, kind) == 0)
            return e;
    }
    return NULL;
}

static void print_sample(struct printer *p, const char *label, const struct gp_entry *e,
                         enum gp_metric m, int decimals, const char *unit)
{
    static const struct gp_value nothing = {.status = GP_STATUS_UNSUPPORTED};
    const struct gp_value *v = e ? gp_smi_entry_value(e, m) : &nothing;
    bool real = gp_metric_table[m].type == GP_TYPE_REAL;
    if (!begin_value(p, NULL, label))
        return;
    if (v->status == GP_STATUS_OK)
        gp_strbuf_addf(p->sb, "%.*f%s%s", decimals, real ? v->f : (double)v->i, *unit ? " " : "",
                       unit);
    else
        gp_strbuf_adds(p->sb, gp_smi_absence(p->form, m, v));
    end_value(p, label);
}

static void print_samples(struct printer *p, const struct row *row)
{
    const struct series *s = series;
    while (strcmp(s->label, row->label) != 0)
        s++;
    const struct gp_entry *e = find_series(p, s->kind);
    begin_group(p, row->level, row->tag, row->label);
    print_sample(p, "Duration", e, GP_SAMPLES_DURATION, 2, "sec");
    print_sample(p, "Number of Samples", e, GP_SAMPLES_COUNT, 0, "");
    print_sample(p, "Max", e, GP_SAMPLES_MAX, s->decimals, s->unit);
    print_sample(p, "Min", e, GP_SAMPLES_MIN, s->decimals, s->unit);
    print_sample(p, "Avg", e, GP_SAMPLES_AVERAGE, s->decimals, s->unit);
    end_groups(p, row->level);
}

static void print_accounted(struct printer *p, const struct row *row)
{
    static const struct {
        const char *tag, *label;
        enum gp_metric metric;
    } rows[] = {
        {"pid", "Process ID", GP_APP_PID},
        {"gpu_util", "    GPU Utilization", GP_APP_GPU},
        {"memory_util", "    Memory Utilization", GP_APP_MEMORY},
        {"max_memory_usage", "    Max memory usage", GP_APP_MAX_MEMORY},
        {"time", "    Time", GP_APP_TIME},
        {"is_running", "    Is Running", GP_APP_RUNNING},
    };
    const struct gp_entry *e = has_list(p, GP_SCOPE_APP) ? next_entry(p, GP_SCOPE_APP, NULL) : NULL;
    if (!e && !p->report->xml) {
        print_word(p, row->tag, row->label, "None");
        return;
    }
    begin_group(p, row->level, row->tag, row->label);
    for (; e; e = next_entry(p, GP_SCOPE_APP, e)) {
        begin_group(p, 2, "accounted_process_info", NULL);
        for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
            print_entry(p, rows[i].tag, rows[i].label, e, rows[i].metric);
        end_groups(p, 2);
    }
    end_groups(p, 1);
}

/* The memory of a process under Windows' own memory management. */
static bool is_unknown_to_driver(const struct printer *p, enum gp_metric m,
                                 const struct gp_value *v)
{
    const struct gp_value *model = value_of(p, GP_DRIVER_MODEL);
    return !p->report->xml && m == GP_PROCESS_MEMORY && v->status == GP_STATUS_UNSUPPORTED &&
           gp_value_is_present(model) && strcmp(model->s, "WDDM") == 0;
}

static const struct {
    const char *tag, *label;
    enum gp_metric metric;
} process_rows[] = {
    {"gpu_instance_id", "GPU instance ID", GP_PROCESS_GI},
    {"compute_instance_id", "Compute instance ID", GP_PROCESS_CI},
    {"pid", "Process ID", GP_PID},
    {"type", "    Type", GP_PROCESS_TYPE},
    {"process_name", "    Name", GP_SMI_PROCESS_NAME},
    {"used_memory", "    Used GPU Memory", GP_PROCESS_MEMORY},
};

static void print_process_row(struct printer *p, size_t row, const struct gp_process *process)
{
    enum gp_metric m = process_rows[row].metric;
    const struct gp_value *v = gp_snapshot_value(p->snapshot, NULL, process, m);
    if (is_unknown_to_driver(p, m, v))
        print_word(p, process_rows[row].tag, process_rows[row].label,
                   "Not available in WDDM driver model");
    else
        print_metric(p, process_rows[row].tag, process_rows[row].label, m, v);
}

static void print_processes(struct printer *p, const struct row *row)
{
    const struct gp_process *process = gp_smi_next_process(p->snapshot, p->device, NULL);
    if (!process && !p->report->xml) {
        const struct gp_value status = {.status = p->device->processes_status};
        bool told = status.status == GP_STATUS_OK || status.status == GP_STATUS_UNSUPPORTED;
        print_word(p, row->tag, row->label,
                   told ? "None" : gp_smi_absence(p->form, GP_PROCESS_NAME, &status));
        return;
    }
    size_t column = p->column;
    p->column = OLD_COLUMN;
    begin_group(p, row->level, row->tag, row->label);
    for (; process; process = gp_smi_next_process(p->snapshot, p->device, process)) {
        begin_group(p, 2, "process_info", NULL);
        for (size_t i = 0; i < GP_ARRAY_LEN(process_rows); i++)
            print_process_row(p, i, process);
        end_groups(p, 2);
    }
    end_groups(p, 1);
    p->column = column;
}

static void print_mig_devices(struct printer *p, const struct row *row);

/* ---- the tree ---- */

/* clang-format off */
/* 580.173 supports something that 590.48 does not, but 595 does. */
#define LATE_580 {GP_SMI_DRIVER(580, 173), GP_SMI_DRIVER(589, 999)}

#define SECTION_NONE 0
#define X(id) SECTION_##id = 1u << GP_SMI_##id,
enum { GP_SMI_SECTIONS(X) };
#undef X

#define GROUP(level, section, drivers, when, tag, label)                                           \
    {drivers, tag, label, when, {NULL}, SECTION_##section, 0, level, GROUP, 0, false},
#define VALUE(level, section, drivers, when, tag, label, id)                                       \
    {drivers, tag, label, when, {NULL}, SECTION_##section, GP_##id, level, VALUE, 0, false},
#define WORD(level, section, drivers, when, tag, label, text)                                      \
    {drivers, tag, label, when, {.word = (text)}, SECTION_##section, 0, level, WORD, 0, false},
#define PART(level, section, drivers, when, tag, label, function, id)                              \
    {drivers, tag, label, when, {.print = (function)}, SECTION_##section, 0, level, PART,          \
     GP_SCOPE_##id, false},
#define EXTRA_GROUP(level, section, drivers, when, tag, label)                                     \
    {drivers, tag, label, when, {NULL}, SECTION_##section, 0, level, GROUP, 0, true},
#define EXTRA_PART(level, section, drivers, when, tag, label, function, id)                        \
    {drivers, tag, label, when, {.print = (function)}, SECTION_##section, 0, level, PART,          \
     GP_SCOPE_##id, true},

static const struct row gpu_rows[] = {
#include "smi/report.def"
};

static const struct row mig_rows[] = {
    VALUE(3, NONE, GP_SMI_ALL, NULL, "index", "Index", MIG_INDEX)
    VALUE(3, NONE, GP_SMI_ALL, NULL, "gpu_instance_id", "GPU Instance ID", MIG_GPU_INSTANCE)
    VALUE(3, NONE, GP_SMI_ALL, NULL, "compute_instance_id", "Compute Instance ID",
          MIG_COMPUTE_INSTANCE)
    GROUP(3, NONE, GP_SMI_ALL, NULL, "device_attributes", "Device Attributes")
    GROUP(4, NONE, GP_SMI_ALL, NULL, "shared", "Shared")
    VALUE(5, NONE, GP_SMI_ALL, NULL, "multiprocessor_count", "Multiprocessor count",
          MIG_MULTIPROCESSORS)
    VALUE(5, NONE, GP_SMI_ALL, NULL, "copy_engine_count", "Copy Engine count", MIG_COPY_ENGINES)
    VALUE(5, NONE, GP_SMI_ALL, NULL, "encoder_count", "Encoder count", MIG_ENCODERS)
    VALUE(5, NONE, GP_SMI_ALL, NULL, "decoder_count", "Decoder count", MIG_DECODERS)
    VALUE(5, NONE, GP_SMI_ALL, NULL, "ofa_count", "OFA count", MIG_OFA)
    VALUE(5, NONE, GP_SMI_ALL, NULL, "jpg_count", "JPG count", MIG_JPEG)
    GROUP(3, NONE, GP_SMI_ALL, NULL, "ecc_error_count", "ECC Errors")
    GROUP(4, NONE, GP_SMI_ALL, NULL, "volatile_count", "Volatile")
    VALUE(5, NONE, GP_SMI_ALL, NULL, "sram_uncorrectable", "SRAM Uncorrectable",
          ECC_UNCORRECTED_VOLATILE_SRAM)
    GROUP(3, NONE, GP_SMI_ALL, NULL, "fb_memory_usage", "Shared FB Memory Usage")
    VALUE(4, NONE, GP_SMI_ALL, NULL, "total", "Total", MEMORY_TOTAL)
    VALUE(4, NONE, GP_SMI_ALL, NULL, "reserved", "Reserved", MEMORY_RESERVED)
    VALUE(4, NONE, GP_SMI_ALL, NULL, "used", "Used", MEMORY_USED)
    VALUE(4, NONE, GP_SMI_ALL, NULL, "free", "Free", MEMORY_FREE)
    GROUP(3, NONE, GP_SMI_ALL, NULL, "bar1_memory_usage", "Shared BAR1 Memory")
    VALUE(4, NONE, GP_SMI_ALL, NULL, "total", "Total", BAR1_TOTAL)
    VALUE(4, NONE, GP_SMI_ALL, NULL, "used", "Used", BAR1_USED)
    VALUE(4, NONE, GP_SMI_ALL, NULL, "free", "Free", BAR1_FREE)
};
/* clang-format on */

/* Whether a document of this kind can contain the row. */
static bool is_of_kind(const struct row *row, const struct gp_smi_report *report)
{
    if (row->level == 1 && report->sections && !(row->section & report->sections))
        return false;
    return report->xml ? row->tag || row->kind == GROUP
                       : (row->label || row->kind == GROUP) && (!row->extra || report->sections);
}

static bool is_shown(const struct row *row, const struct printer *p)
{
    return is_of_kind(row, p->report) && gp_smi_in(p->form, row->drivers) &&
           (!row->when || row->when(p));
}

static void print_row(struct printer *p, const struct row *row)
{
    end_groups(p, row->level);
    if (row->kind == GROUP)
        begin_group(p, row->level, row->tag, row->label);
    else if (row->kind == VALUE)
        print_metric(p, row->tag, row->label, row->metric, value_of(p, row->metric));
    else if (row->kind == WORD)
        print_word(p, row->tag, row->label, row->word);
    else
        row->print(p, row);
}

/* If a row is omitted, the rows below it are omitted too. */
static void print_rows(struct printer *p, const struct row *rows, size_t count)
{
    unsigned left_out = UINT_MAX; /* level of the omitted row */
    unsigned outer = rows[0].level;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        if (row->level > left_out)
            continue;
        left_out = is_shown(row, p) ? UINT_MAX : (unsigned)row->level;
        if (left_out == UINT_MAX)
            print_row(p, row);
    }
    end_groups(p, outer);
}

static void print_mig_devices(struct printer *p, const struct row *row)
{
    const struct gp_device *gpu = p->device;
    const struct gp_device *end = &p->snapshot->devices[p->snapshot->device_count];
    const struct gp_device *d = gpu + 1;
    begin_group(p, row->level, row->tag, NULL);
    for (; d < end && d->is_mig && d->index == gpu->index; d++) {
        begin_group(p, 2, "mig_device", row->label);
        p->device = d;
        print_rows(p, mig_rows, GP_ARRAY_LEN(mig_rows));
        p->device = gpu;
        end_groups(p, 2);
    }
    if (p->report->xml && d == gpu + 1) {
        indent(p);
        gp_strbuf_adds(p->sb, "None\n");
    }
    end_groups(p, 1);
}

/* ---- tree access ---- */

bool gp_smi_report_element(bool mig, size_t i, struct gp_smi_element *ret)
{
    static const enum gp_smi_element_kind kinds[] = {
        [GROUP] = GP_SMI_BRANCH,
        [VALUE] = GP_SMI_LEAF,
        [WORD] = GP_SMI_LEAF,
        [PART] = GP_SMI_PART,
    };
    const struct row *row = &(mig ? mig_rows : gpu_rows)[i];
    if (i >= (mig ? GP_ARRAY_LEN(mig_rows) : GP_ARRAY_LEN(gpu_rows)))
        return false;
    *ret = (struct gp_smi_element){
        .drivers = row->drivers,
        .level = (unsigned)row->level - (mig ? (unsigned)mig_rows[0].level - 1 : 0),
        .tag = row->tag,
        .kind = kinds[row->kind],
        .scope = row->scope,
        .conditional = row->when != NULL,
    };
    return true;
}

/* ---- the document ---- */

/* Without a tag: a line that only the log has. */
static void print_head_word(struct printer *p, const char *tag, const char *label, enum gp_metric m,
                            const char *instead)
{
    const struct gp_value *v = gp_snapshot_value(p->snapshot, NULL, NULL, m);
    bool xml = p->report->xml && tag;
    if (xml)
        gp_strbuf_addf(p->sb, "\t<%s>", tag);
    else
        gp_strbuf_addf(p->sb, "%-*s: ", (int)p->column, label);
    gp_smi_add_value(p->sb, p->form, m, v, xml ? GP_SMI_XML : GP_SMI_LOG);
    if (xml)
        gp_strbuf_addf(p->sb, "</%s>\n", tag);
    else if (instead)
        gp_strbuf_addf(p->sb, " [Deprecated; will be removed in CUDA 14.0. Use %s instead]\n",
                       instead);
    else
        gp_strbuf_addc(p->sb, '\n');
}

/* "<!DOCTYPE …>": the location of the document type, or the document type itself. */
static void print_doctype(struct printer *p)
{
    gp_strbuf_adds(p->sb, "<!DOCTYPE nvidia_smi_log ");
    if (p->report->add_dtd) {
        gp_strbuf_adds(p->sb, "[\n");
        p->report->add_dtd(p->sb, p->form, p->report->units);
        gp_strbuf_adds(p->sb, "]>\n");
    } else {
        gp_strbuf_addf(p->sb, "SYSTEM \"nvsmi_%s_v%u.dtd\">\n",
                       p->report->units ? "unit" : "device", gp_smi_dtd_version(p->form));
    }
}

/* S-class units were the last ones. */
static void print_units(struct printer *p)
{
    static const struct {
        const char *tag, *label, *word;
    } rows[] = {{"hic_info", "HIC Info", "N/A"}, {"attached_units", "Attached Units", "0"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (p->report->xml)
            gp_strbuf_addf(p->sb, "\t<%s>%s</%s>\n", rows[i].tag, rows[i].word, rows[i].tag);
        else
            gp_strbuf_addf(p->sb, "%-*s: %s\n", (int)p->column, rows[i].label, rows[i].word);
    if (!p->report->xml)
        gp_strbuf_addc(p->sb, '\n');
}

static void print_head(struct printer *p)
{
    bool renamed = p->form->driver >= GP_SMI_DRIVER(610, 0) && !p->report->xml;
    if (p->report->xml) {
        gp_strbuf_adds(p->sb, "<?xml version=\"1.0\" ?>\n");
        print_doctype(p);
        gp_strbuf_adds(p->sb, "<nvidia_smi_log>\n\t<timestamp>");
    } else {
        gp_strbuf_addf(p->sb, "\n==============NVSMI LOG==============\n\n%-*s: ", (int)p->column,
                       "Timestamp");
    }
    gp_smi_add_date(p->sb, p->snapshot);
    gp_strbuf_adds(p->sb, p->report->xml ? "</timestamp>\n" : "\n");
    print_head_word(p, "driver_version", "Driver Version", GP_DRIVER_VERSION,
                    renamed ? "KMD Version" : NULL);
    print_head_word(p, "cuda_version", "CUDA Version", GP_CUDA_VERSION,
                    renamed ? "CUDA UMD Version" : NULL);
    if (renamed) {
        print_head_word(p, NULL, "KMD Version", GP_DRIVER_VERSION, NULL);
        print_head_word(p, NULL, "CUDA UMD Version", GP_CUDA_VERSION, NULL);
    }
    if (!p->report->xml)
        gp_strbuf_addc(p->sb, '\n');
    if (p->report->units)
        print_units(p);
    else
        print_head_word(p, "attached_gpus", "Attached GPUs", GP_COUNT, NULL);
}

static void print_gpu(struct printer *p)
{
    const struct gp_value *bus_id = value_of(p, GP_PCI_BUS_ID);
    gp_strbuf_adds(p->sb, p->report->xml ? "\t<gpu id=\"" : "GPU ");
    gp_smi_add_value(p->sb, p->form, GP_PCI_BUS_ID, bus_id,
                     p->report->xml ? GP_SMI_XML : GP_SMI_LOG);
    gp_strbuf_adds(p->sb, p->report->xml ? "\">\n" : "\n");
    print_rows(p, gpu_rows, GP_ARRAY_LEN(gpu_rows));
    gp_strbuf_adds(p->sb, p->report->xml ? "\t</gpu>\n\n" : "\n");
}

unsigned gp_smi_dtd_version(const struct gp_smi_form *form)
{
    static const struct {
        unsigned since, version;
    } versions[] = {{580, 13}, {525, 12}, {470, 11}, {0, 10}};
    size_t i = 0;
    while (form->driver < GP_SMI_DRIVER(versions[i].since, 0))
        i++;
    return versions[i].version;
}

void gp_smi_report_print(struct gp_strbuf *sb, const struct gp_smi_report *report,
                         const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    struct printer p = {
        .sb = sb,
        .report = report,
        .form = form,
        .snapshot = snapshot,
        .column = form->driver >= GP_SMI_DRIVER(545, 0) ? NEW_COLUMN : OLD_COLUMN,
    };
    print_head(&p);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        p.device = &snapshot->devices[i];
        if (p.device->refused && !report->xml)
            gp_smi_add_refusal(sb, form, p.device);
        else if (!p.device->is_mig)
            print_gpu(&p);
    }
    if (report->xml)
        gp_strbuf_adds(sb, "</nvidia_smi_log>\n");
}

/* ---- required metrics ---- */

bool gp_smi_section_find(const char *name, size_t n, enum gp_smi_section *ret)
{
    static const char *const names[] = {
#define X(id) #id,
        GP_SMI_SECTIONS(X)
#undef X
    };
    for (int i = 0; i < GP_SMI_SECTION__COUNT; i++) {
        if (strncasecmp(names[i], name, n) == 0 && names[i][n] == '\0') {
            *ret = (enum gp_smi_section)i;
            return true;
        }
    }
    return false;
}

static void want_row(const struct row *row, struct gp_want *want)
{
    if (row->kind == VALUE)
        gp_metric_set_add(&want->metrics, row->metric);
    if (row->kind != PART)
        return;
    size_t width = gp_scope_is_list(row->scope) ? gp_scope_width(row->scope) : 0;
    for (size_t i = 0; i < width; i++)
        gp_metric_set_add(&want->metrics, (enum gp_metric)(gp_scope_table[row->scope].first + i));
    if (width > 0)
        want->lists |= UINT32_C(1) << gp_list_index(row->scope);
    else if (row->scope == GP_SCOPE_PROCESS)
        want->processes = want->process_names = true;
    else
        want->mig = true;
}

static void want_rows(const struct row *rows, size_t count, const struct gp_smi_report *report,
                      struct gp_want *want)
{
    unsigned left_out = UINT_MAX;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].level > left_out)
            continue;
        left_out = is_of_kind(&rows[i], report) ? UINT_MAX : (unsigned)rows[i].level;
        if (left_out == UINT_MAX)
            want_row(&rows[i], want);
    }
}

void gp_smi_report_want(const struct gp_smi_report *report, struct gp_want *want)
{
    static const enum gp_metric always[] = {
        GP_DRIVER_VERSION,
        GP_CUDA_VERSION,
        GP_COUNT,
        GP_PCI_BUS_ID,
        /* Used by the conditions. */
        GP_DRIVER_MODEL,
        GP_ARCHITECTURE,
        GP_PCI_DEVICE_ID,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(always); i++)
        gp_metric_set_add(&want->metrics, always[i]);
    want->host_only = report->units;
    if (report->units)
        return;
    want_rows(gpu_rows, GP_ARRAY_LEN(gpu_rows), report, want);
    if (want->mig)
        want_rows(mig_rows, GP_ARRAY_LEN(mig_rows), report, want);
    for (size_t i = 0; want->processes && i < GP_ARRAY_LEN(process_rows); i++)
        gp_metric_set_add(&want->metrics, process_rows[i].metric);
}
