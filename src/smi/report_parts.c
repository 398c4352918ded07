/* The parts of a report: the conditions of its rows, and its lists. */
#include "smi/report_internal.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/entries.h"
#include "smi/processes.h"
#include "smi/value.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

static bool has(const struct gp_smi_printer *p, enum gp_metric m)
{
    return gp_value_is_present(gp_smi_report_value(p, m));
}

/* ---- conditions ---- */

bool gp_smi_is_not_windows(const struct gp_smi_printer *p)
{
    return !has(p, GP_DRIVER_MODEL);
}

/* A driver answers for any GPU: zeros, host 1, and the peer type "Direct Connected". nvidia-smi
 * prints that as CSV, but not here (H100, driver 580.159.04). */
bool gp_smi_has_platform(const struct gp_smi_printer *p)
{
    const struct gp_value *peer = gp_smi_report_value(p, GP_PLATFORM_PEER);
    return gp_value_is_present(peer) && strcmp(peer->s, "Direct Connected") != 0;
}

bool gp_smi_has_no_platform(const struct gp_smi_printer *p)
{
    return !gp_smi_has_platform(p);
}

bool gp_smi_names_chassis(const struct gp_smi_printer *p)
{
    return has(p, GP_PLATFORM_CHASSIS);
}

/* A platform without a chassis number. */
bool gp_smi_names_no_chassis(const struct gp_smi_printer *p)
{
    return gp_smi_has_platform(p) && !gp_smi_names_chassis(p);
}

bool gp_smi_has_tlimits(const struct gp_smi_printer *p)
{
    return has(p, GP_TLIMIT_SHUTDOWN) || has(p, GP_TLIMIT_SLOWDOWN);
}

bool gp_smi_has_thresholds(const struct gp_smi_printer *p)
{
    return !gp_smi_has_tlimits(p);
}

bool gp_smi_has_remapper(const struct gp_smi_printer *p)
{
    return has(p, GP_REMAPPED_CORRECTABLE);
}

bool gp_smi_has_no_remapper(const struct gp_smi_printer *p)
{
    return !gp_smi_has_remapper(p);
}

/* Up to Volta, errors are counted as single-bit and double-bit; later as SRAM and DRAM; since
 * Ampere, SRAM errors are split by detection method. */
enum counting { BITS, PLACES, PARITY };

/* Drivers before 440 do not report the architecture, but PCI device ids grow with each generation:
 * Turing's start here, Ampere's at 0x2000 (except some Turings). */
static enum counting counting_of(const struct gp_smi_printer *p)
{
    static const char *const bits[] = {"Kepler", "Maxwell", "Pascal", "Volta"};
    const struct gp_value *v = gp_smi_report_value(p, GP_ARCHITECTURE);
    if (!gp_value_is_present(v)) {
        v = gp_smi_report_value(p, GP_PCI_DEVICE_ID);
        unsigned long id = gp_value_is_present(v) ? strtoul(v->s, NULL, 16) >> 16 : ULONG_MAX;
        return id < 0x1E00 ? BITS : id < 0x2000 ? PLACES : PARITY;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(bits); i++)
        if (strcmp(v->s, bits[i]) == 0)
            return BITS;
    return strcmp(v->s, "Turing") == 0 ? PLACES : PARITY;
}

bool gp_smi_counts_bits(const struct gp_smi_printer *p)
{
    return counting_of(p) == BITS;
}

bool gp_smi_counts_places(const struct gp_smi_printer *p)
{
    return counting_of(p) != BITS;
}

bool gp_smi_counts_sram(const struct gp_smi_printer *p)
{
    return counting_of(p) == PLACES;
}

bool gp_smi_counts_parity(const struct gp_smi_printer *p)
{
    return counting_of(p) == PARITY;
}

/* ---- lists ---- */

static const struct gp_entry *next_entry(const struct gp_smi_printer *p, enum gp_scope scope,
                                         const struct gp_entry *last)
{
    return gp_smi_next_entry(p->snapshot, p->device, scope, last);
}

static bool has_list(const struct gp_smi_printer *p, enum gp_scope scope)
{
    return gp_smi_list_status(p->device, scope) == GP_STATUS_OK;
}

static void print_entry(struct gp_smi_printer *p, const char *tag, const char *label,
                        const struct gp_entry *e, enum gp_metric m)
{
    gp_smi_print_metric(p, tag, label, m, gp_smi_entry_value(e, m));
}

/* Pages are listed below the type of error that caused their retirement. */
static void print_pages(struct gp_smi_printer *p, const struct gp_smi_row *row, bool double_bit)
{
    if (!has_list(p, row->scope)) {
        gp_smi_print_word(p, row->tag, row->label, "N/A");
        return;
    }
    gp_smi_begin_group(p, row->level, row->tag, row->label);
    const struct gp_entry *e = NULL;
    while ((e = next_entry(p, GP_SCOPE_PAGE, e))) {
        const struct gp_value *cause = gp_smi_entry_value(e, GP_PAGE_CAUSE);
        if (gp_value_is_present(cause) && (strstr(cause->s, "Double") != NULL) == double_bit)
            print_entry(p, "retired_page_address", NULL, e, GP_PAGE_ADDRESS);
    }
    gp_smi_end_groups(p, row->level);
}

void gp_smi_print_single_bit_pages(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    print_pages(p, row, false);
}

void gp_smi_print_double_bit_pages(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    print_pages(p, row, true);
}

void gp_smi_print_supported_clocks(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    const struct gp_entry *e = NULL;
    int64_t memory = -1;
    if (!has_list(p, GP_SCOPE_CLOCK)) {
        gp_smi_print_word(p, row->tag, row->label, "N/A");
        return;
    }
    gp_smi_begin_group(p, row->level, row->tag, row->label);
    while ((e = next_entry(p, GP_SCOPE_CLOCK, e))) {
        const struct gp_value *v = gp_smi_entry_value(e, GP_CLOCK_PAIR_MEMORY);
        if (!gp_value_is_present(v))
            continue;
        if (v->i != memory) {
            gp_smi_end_groups(p, 2);
            /* In the log, the graphics clocks are one level deeper, without a heading. */
            gp_smi_begin_group(p, 2, "supported_mem_clock", NULL);
            print_entry(p, "value", "Memory", e, GP_CLOCK_PAIR_MEMORY);
        }
        memory = v->i;
        print_entry(p, "supported_graphics_clock", "    Graphics", e, GP_CLOCK_PAIR_GRAPHICS);
    }
    gp_smi_end_groups(p, 1);
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
static const struct gp_entry *find_series(const struct gp_smi_printer *p, const char *kind)
{
    const struct gp_entry *e = NULL;
    while ((e = next_entry(p, GP_SCOPE_SERIES, e))) {
        const struct gp_value *v = gp_smi_entry_value(e, GP_SAMPLES_KIND);
        if (gp_value_is_present(v) && strcmp(v->s, kind) == 0)
            return e;
    }
    return NULL;
}

/* A driver that takes samples of something, but has none (driver 580.159.04). */
static const char *sample_absence(const struct gp_smi_printer *p, enum gp_metric m,
                                  const struct gp_value *v)
{
    bool none = v->status == GP_STATUS_UNSUPPORTED && v->s && strcmp(v->s, GP_NO_SAMPLES) == 0;
    return none ? "Not Found" : gp_smi_absence(p->form, m, v);
}

static void print_sample(struct gp_smi_printer *p, const char *label, const struct gp_entry *e,
                         enum gp_metric m, int decimals, const char *unit)
{
    static const struct gp_value nothing = {.status = GP_STATUS_UNSUPPORTED};
    const struct gp_value *v = e ? gp_smi_entry_value(e, m) : &nothing;
    bool real = gp_metric_table[m].type == GP_TYPE_REAL;
    if (!gp_smi_begin_value(p, NULL, label))
        return;
    if (v->status == GP_STATUS_OK)
        gp_strbuf_addf(p->sb, "%.*f%s%s", decimals, real ? v->f : (double)v->i, *unit ? " " : "",
                       unit);
    else
        gp_strbuf_adds(p->sb, sample_absence(p, m, v));
    gp_smi_end_value(p, label);
}

void gp_smi_print_samples(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    const struct series *s = series;
    while (strcmp(s->label, row->label) != 0)
        s++;
    const struct gp_entry *e = find_series(p, s->kind);
    gp_smi_begin_group(p, row->level, row->tag, row->label);
    print_sample(p, "Duration", e, GP_SAMPLES_DURATION, 2, "sec");
    print_sample(p, "Number of Samples", e, GP_SAMPLES_COUNT, 0, "");
    print_sample(p, "Max", e, GP_SAMPLES_MAX, s->decimals, s->unit);
    print_sample(p, "Min", e, GP_SAMPLES_MIN, s->decimals, s->unit);
    print_sample(p, "Avg", e, GP_SAMPLES_AVERAGE, s->decimals, s->unit);
    gp_smi_end_groups(p, row->level);
}

void gp_smi_print_accounted(struct gp_smi_printer *p, const struct gp_smi_row *row)
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
        gp_smi_print_word(p, row->tag, row->label, "None");
        return;
    }
    gp_smi_begin_group(p, row->level, row->tag, row->label);
    for (; e; e = next_entry(p, GP_SCOPE_APP, e)) {
        gp_smi_begin_group(p, 2, "accounted_process_info", NULL);
        for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
            print_entry(p, rows[i].tag, rows[i].label, e, rows[i].metric);
        gp_smi_end_groups(p, 2);
    }
    gp_smi_end_groups(p, 1);
}

/* The memory of a process under Windows' own memory management. */
static bool is_unknown_to_driver(const struct gp_smi_printer *p, enum gp_metric m,
                                 const struct gp_value *v)
{
    const struct gp_value *model = gp_smi_report_value(p, GP_DRIVER_MODEL);
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

static void print_process_row(struct gp_smi_printer *p, size_t row,
                              const struct gp_process *process)
{
    enum gp_metric m = process_rows[row].metric;
    const struct gp_value *v = gp_snapshot_value(p->snapshot, NULL, process, m);
    if (is_unknown_to_driver(p, m, v))
        gp_smi_print_word(p, process_rows[row].tag, process_rows[row].label,
                          "Not available in WDDM driver model");
    else
        gp_smi_print_metric(p, process_rows[row].tag, process_rows[row].label, m, v);
}

void gp_smi_print_processes(struct gp_smi_printer *p, const struct gp_smi_row *row)
{
    const struct gp_process *process = gp_smi_next_process(p->snapshot, p->device, NULL);
    if (!process && !p->report->xml) {
        const struct gp_value status = {.status = p->device->processes_status};
        bool told = status.status == GP_STATUS_OK || status.status == GP_STATUS_UNSUPPORTED;
        gp_smi_print_word(p, row->tag, row->label,
                          told ? "None" : gp_smi_absence(p->form, GP_PROCESS_NAME, &status));
        return;
    }
    size_t column = p->column;
    p->column = GP_SMI_OLD_COLUMN;
    gp_smi_begin_group(p, row->level, row->tag, row->label);
    for (; process; process = gp_smi_next_process(p->snapshot, p->device, process)) {
        gp_smi_begin_group(p, 2, "process_info", NULL);
        for (size_t i = 0; i < GP_ARRAY_LEN(process_rows); i++)
            print_process_row(p, i, process);
        gp_smi_end_groups(p, 2);
    }
    gp_smi_end_groups(p, 1);
    p->column = column;
}

void gp_smi_want_processes(struct gp_want *want)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(process_rows); i++)
        gp_metric_set_add(&want->metrics, process_rows[i].metric);
}
