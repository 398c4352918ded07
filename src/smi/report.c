#include "smi/report.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/message.h"
#include "smi/report_internal.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>
#include <strings.h>

enum kind { GROUP, VALUE, WORD, PART };

static void print_mig_devices(struct gp_smi_printer *p, const struct gp_smi_row *row);

/* ---- the tree ---- */

/* clang-format off */
/* 580.173 supports something that 590.48 does not, but 595 does. */
#define LATE_580 {GP_SMI_DRIVER(580, 159), GP_SMI_DRIVER(589, 999)}

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

static const struct gp_smi_row gpu_rows[] = {
#include "smi/report.def"
};

static const struct gp_smi_row mig_rows[] = {
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
static bool is_of_kind(const struct gp_smi_row *row, const struct gp_smi_report *report)
{
    if (row->level == 1 && report->sections && !(row->section & report->sections))
        return false;
    return report->xml ? row->tag || row->kind == GROUP
                       : (row->label || row->kind == GROUP) && (!row->extra || report->sections);
}

static bool is_shown(const struct gp_smi_row *row, const struct gp_smi_printer *p)
{
    return is_of_kind(row, p->report) && gp_smi_in(p->form, row->drivers) &&
           (!row->when || row->when(p));
}

static void print_row(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    gp_smi_end_groups(p, row->level);
    if (row->kind == GROUP)
        gp_smi_begin_group(p, row->level, row->tag, row->label);
    else if (row->kind == VALUE)
        gp_smi_print_metric(p, row->tag, row->label, row->metric,
                            gp_smi_report_value(p, row->metric));
    else if (row->kind == WORD)
        gp_smi_print_word(p, row->tag, row->label, row->word);
    else
        row->print(p, row);
}

/* If a row is omitted, the rows below it are omitted too. */
static void print_rows(struct gp_smi_printer *p, const struct gp_smi_row *rows, size_t count)
{
    unsigned left_out = UINT_MAX; /* level of the omitted row */
    unsigned outer = rows[0].level;
    for (size_t i = 0; i < count; i++) {
        const struct gp_smi_row *row = &rows[i];
        if (row->level > left_out)
            continue;
        left_out = is_shown(row, p) ? UINT_MAX : (unsigned)row->level;
        if (left_out == UINT_MAX)
            print_row(p, row);
    }
    gp_smi_end_groups(p, outer);
}

static void print_mig_devices(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    const struct gp_device *gpu = p->device;
    const struct gp_device *end = &p->snapshot->devices[p->snapshot->device_count];
    const struct gp_device *d = gpu + 1;
    gp_smi_begin_group(p, row->level, row->tag, NULL);
    for (; d < end && d->is_mig && d->index == gpu->index; d++) {
        gp_smi_begin_group(p, 2, "mig_device", row->label);
        p->device = d;
        print_rows(p, mig_rows, GP_ARRAY_LEN(mig_rows));
        p->device = gpu;
        gp_smi_end_groups(p, 2);
    }
    if (p->report->xml && d == gpu + 1) {
        gp_smi_indent(p);
        gp_strbuf_adds(p->sb, "None\n");
    }
    gp_smi_end_groups(p, 1);
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
    const struct gp_smi_row *row = &(mig ? mig_rows : gpu_rows)[i];
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
static void print_head_word(struct gp_smi_printer *p, const char *tag, const char *label,
                            enum gp_metric m, const char *instead)
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
static void print_doctype(struct gp_smi_printer *p)
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
static void print_units(struct gp_smi_printer *p)
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

static void print_head(struct gp_smi_printer *p)
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

static void print_gpu(struct gp_smi_printer *p)
{
    const struct gp_value *bus_id = gp_smi_report_value(p, GP_PCI_BUS_ID);
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
    struct gp_smi_printer p = {
        .sb = sb,
        .report = report,
        .form = form,
        .snapshot = snapshot,
        .column = form->driver >= GP_SMI_DRIVER(545, 0) ? GP_SMI_NEW_COLUMN : GP_SMI_OLD_COLUMN,
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

static void want_row(const struct gp_smi_row *row, struct gp_want *want)
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

static void want_rows(const struct gp_smi_row *rows, size_t count,
                      const struct gp_smi_report *report, struct gp_want *want)
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
        GP_ECC_MODE,
        GP_PLATFORM_PEER,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(always); i++)
        gp_metric_set_add(&want->metrics, always[i]);
    want->host_only = report->units;
    if (report->units)
        return;
    want_rows(gpu_rows, GP_ARRAY_LEN(gpu_rows), report, want);
    if (want->mig)
        want_rows(mig_rows, GP_ARRAY_LEN(mig_rows), report, want);
    if (want->processes)
        gp_smi_want_processes(want);
}
