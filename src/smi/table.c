#include "smi/table.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/message.h"
#include "smi/processes.h"
#include "smi/table_layout.h"
#include "smi/value.h"
#include "source/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 15, CELL_SIZE = 96 };

/* The banner of 610 and later has new words, which programs that search for the old ones do not
 * find. */
static const char native_banner[] = " NVIDIA-SMI %-23sKMD Version: %-14sCUDA UMD Version: %-9s";

/* ---- drawing ---- */

/* The cells of an entry, line by line. */
struct cells {
    char text[CELLS_MAX][CELL_SIZE];
    size_t count;
};

static const struct cells no_cells;

GP_PRINTF(2, 3) static void add_cell(struct cells *cells, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(cells->text[cells->count++], CELL_SIZE, format, ap);
    va_end(ap);
}

/* Appends a text with its cells, at least as wide as its column; returns the next cell. */
static size_t add_segment(struct gp_strbuf *sb, const char *form, size_t width,
                          const struct cells *cells, size_t next)
{
    size_t start = sb->len;
    for (const char *p = form ? form : ""; *p;) {
        size_t n = strcspn(p, "%");
        gp_strbuf_add(sb, p, n);
        p += n;
        if (!*p)
            break;
        char *end;
        long cell_width = strtol(p + 1, &end, 10);
        gp_strbuf_addf(sb, "%*s", (int)cell_width, cells->text[next++]);
        p = end + 1; /* the 's' */
    }
    size_t used = sb->len - start;
    gp_strbuf_fill(sb, ' ', width > used ? width - used : 0);
    return next;
}

static size_t width_of(const struct gp_smi_box *box)
{
    size_t width = 0;
    for (size_t i = 0; i < GP_SMI_BOX_COLUMNS && box->columns[i]; i++)
        width += box->columns[i]->width + (i > 0);
    return width;
}

/* A line over the whole width. */
static void add_line(struct gp_strbuf *sb, const struct gp_smi_box *box, const char *form,
                     const struct cells *cells)
{
    gp_strbuf_addc(sb, '|');
    (void)add_segment(sb, form, width_of(box), cells, 0);
    gp_strbuf_adds(sb, "|\n");
}

static void add_edge(struct gp_strbuf *sb, const struct gp_smi_box *box)
{
    gp_strbuf_addc(sb, '+');
    gp_strbuf_fill(sb, '-', width_of(box));
    gp_strbuf_adds(sb, "+\n");
}

static void add_rule(struct gp_strbuf *sb, const struct gp_smi_box *box, char left, char fill,
                     char right)
{
    gp_strbuf_addc(sb, left);
    for (size_t i = 0; i < GP_SMI_BOX_COLUMNS && box->columns[i]; i++) {
        if (i > 0)
            gp_strbuf_addc(sb, '+');
        gp_strbuf_fill(sb, fill, box->columns[i]->width);
    }
    gp_strbuf_addc(sb, right);
    gp_strbuf_addc(sb, '\n');
}

static void add_columns(struct gp_strbuf *sb, const struct gp_smi_box *box, bool head, size_t lines,
                        const struct cells *cells)
{
    size_t next = 0;
    for (size_t line = 0; line < lines; line++) {
        gp_strbuf_addc(sb, '|');
        for (size_t i = 0; i < GP_SMI_BOX_COLUMNS && box->columns[i]; i++) {
            const struct gp_smi_box_column *column = box->columns[i];
            next = add_segment(sb, head ? column->head[line] : column->entry[line], column->width,
                               cells, next);
            gp_strbuf_addc(sb, '|');
        }
        gp_strbuf_addc(sb, '\n');
    }
}

static void add_head(struct gp_strbuf *sb, const struct gp_smi_box *box, const struct cells *cells)
{
    add_columns(sb, box, true, box->head_lines, cells);
    add_rule(sb, box, '|', '=', '|');
}

static void add_entry(struct gp_strbuf *sb, const struct gp_smi_box *box, const struct cells *cells)
{
    add_columns(sb, box, false, box->entry_lines, cells);
    if (box->ruled)
        add_rule(sb, box, '+', '-', '+');
}

/* ---- cells ---- */

/* One table being printed. */
struct printer {
    struct gp_strbuf *sb;
    const struct gp_smi_form *form;
    const struct gp_smi_layout *layout;
    const struct gp_snapshot *snapshot;
};

static const struct gp_value *value_of(const struct gp_device *d, enum gp_metric m)
{
    return &d->values[m - GP_DEVICE__FIRST];
}

/* The placeholder for a missing value: it does not exist, or cannot be read. */
static const char *absence(const struct gp_value *v)
{
    bool exists = v->status != GP_STATUS_NONE && v->status != GP_STATUS_UNSUPPORTED &&
                  v->status != GP_STATUS_ASLEEP && v->status != GP_STATUS_RELEASED;
    return exists ? "ERR!" : "N/A";
}

static bool is(const struct gp_device *d, enum gp_metric m, const char *word)
{
    const struct gp_value *v = value_of(d, m);
    return v->status == GP_STATUS_OK && strcmp(v->s, word) == 0;
}

static void add_text(struct cells *cells, const struct gp_value *v)
{
    add_cell(cells, "%s", v->status == GP_STATUS_OK ? v->s : absence(v));
}

/* A whole number with its unit. Watts are truncated, not rounded. */
static void add_number(struct cells *cells, const struct gp_device *d, enum gp_metric m,
                       const char *unit, const char *no_unit)
{
    const struct gp_value *v = value_of(d, m);
    bool real = gp_metric_table[m].type == GP_TYPE_REAL;
    if (v->status != GP_STATUS_OK)
        add_cell(cells, "%s%s", absence(v), no_unit);
    else
        add_cell(cells, "%lld%s", real ? (long long)v->f : (long long)v->i, unit);
}

static void add_mib(struct cells *cells, const struct gp_smi_form *form, enum gp_metric m,
                    const struct gp_value *v)
{
    if (v->status == GP_STATUS_OK)
        add_cell(cells, "%lluMiB", (unsigned long long)gp_smi_mib(form, m, v->i));
    else
        add_cell(cells, "%s", absence(v));
}

/* A word of the driver, replaced if the table has an entry for it. */
static void add_word(struct cells *cells, const struct gp_value *v,
                     const struct gp_smi_cell_word *words, const char *no_unit)
{
    if (v->status != GP_STATUS_OK) {
        add_cell(cells, "%s%s", absence(v), no_unit);
        return;
    }
    while (words->word && strcmp(words->word, v->s) != 0)
        words++;
    add_cell(cells, "%s", words->word ? words->cell : v->s);
}

/* A long text is cut at its end or start, at a character boundary. */
static void add_cut(struct cells *cells, const char *text, size_t max, bool keep_end)
{
    size_t n = strlen(text);
    size_t kept = max - 3;
    if (n <= max) {
        add_cell(cells, "%s", text);
    } else if (keep_end) {
        const char *end = text + n - kept;
        while ((*end & 0xc0) == 0x80)
            end++;
        add_cell(cells, "...%s", end);
    } else {
        while ((text[kept] & 0xc0) == 0x80)
            kept--;
        add_cell(cells, "%.*s...", (int)kept, text);
    }
}

/* ---- the box of GPUs ---- */

static void add_ecc(struct cells *cells, const struct gp_device *d)
{
    if (is(d, GP_MIG_MODE, "Enabled"))
        add_cell(cells, "On");
    else if (is(d, GP_ECC_MODE, "Disabled"))
        add_cell(cells, "Off");
    else
        add_number(cells, d, GP_ECC_UNCORRECTED_VOLATILE, "", "");
}

/* A GPU with unified memory has no memory of its own. A user of only a MIG device may not read the
 * memory of the whole GPU. */
static void add_memory(struct cells *cells, const struct printer *p, const struct gp_device *d)
{
    const struct gp_value *used = value_of(d, GP_MEMORY_USED);
    const struct gp_value *total = value_of(d, GP_MEMORY_TOTAL);
    struct gp_strbuf sb = GP_STRBUF_INIT(CELL_SIZE);
    struct cells parts = {.count = 0};
    enum gp_smi_memory memory = GP_SMI_MEMORY_KNOWN;
    if (used->status == GP_STATUS_UNSUPPORTED) {
        memory = GP_SMI_MEMORY_NONE;
        add_cell(&parts, "Not Supported");
    } else if (used->status == GP_STATUS_NO_PERMISSION) {
        memory = GP_SMI_MEMORY_DENIED;
        add_cell(&parts, "N/A");
    } else {
        add_mib(&parts, p->form, GP_MEMORY_USED, used);
        add_mib(&parts, p->form, GP_MEMORY_TOTAL, total);
    }
    (void)add_segment(&sb, p->layout->gpus->memory[memory], 0, &parts, 0);
    add_cell(cells, "%s", sb.buf);
    gp_strbuf_fini(&sb);
}

static void add_compute_mode(struct cells *cells, const struct gp_device *d)
{
    static const struct gp_smi_cell_word modes[] = {
        {"Exclusive_Process", "E. Process"}, {"Exclusive_Thread", "E. Thread"}, {NULL, NULL}};
    add_word(cells, value_of(d, GP_COMPUTE_MODE), modes, "");
}

/* A pending change is shown as the new mode with a star. */
static void add_mig_mode(struct cells *cells, const struct gp_device *d)
{
    const struct gp_value *mode = value_of(d, GP_MIG_MODE);
    const struct gp_value *pending = value_of(d, GP_MIG_MODE_PENDING);
    if (mode->status == GP_STATUS_OK && pending->status == GP_STATUS_OK &&
        strcmp(mode->s, pending->s) != 0)
        add_cell(cells, "%s*", pending->s);
    else
        add_text(cells, mode);
}

static void print_gpu(const struct printer *p, const struct gp_device *d)
{
    const struct gp_smi_gpu_box *box = p->layout->gpus;
    const struct gp_value *name = value_of(d, GP_NAME);
    const struct gp_value *model = value_of(d, GP_DRIVER_MODEL);
    const struct gp_value *display = value_of(d, GP_DISPLAY_ACTIVE);
    static const struct gp_smi_cell_word on_off[] = {
        {"Enabled", "On"}, {"Disabled", "Off"}, {NULL, NULL}};
    struct cells cells = {.count = 0};
    add_cell(&cells, "%u", d->index);
    add_cut(&cells, name->status == GP_STATUS_OK ? name->s : absence(name), box->name_max, false);
    add_word(&cells,
             model->status == GP_STATUS_UNSUPPORTED ? value_of(d, GP_PERSISTENCE_MODE) : model,
             box->modes, " ");
    add_text(&cells, value_of(d, GP_PCI_BUS_ID));
    if (display->status == GP_STATUS_OK)
        add_word(&cells, display, on_off, "");
    else
        add_cell(&cells, "N/A"); /* "ERR!" would not fit */
    add_ecc(&cells, d);
    add_number(&cells, d, GP_FAN_SPEED, "%", "");
    add_number(&cells, d, GP_TEMPERATURE_GPU, "C", "");
    add_text(&cells, value_of(d, GP_PSTATE));
    add_number(&cells, d, GP_POWER_DRAW, "W", box->no_unit);
    add_number(&cells, d, GP_POWER_LIMIT_ENFORCED, "W", box->no_unit);
    add_memory(&cells, p, d);
    add_number(&cells, d, GP_UTILIZATION_GPU, "%", "");
    add_compute_mode(&cells, d);
    add_mig_mode(&cells, d);
    add_entry(p->sb, &box->box, &cells);
}

static bool is_windows(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (gp_value_is_present(value_of(&snapshot->devices[i], GP_DRIVER_MODEL)))
            return true;
    return false;
}

/* nvidia-smi comes with the driver's library. On WSL its version differs from the driver's. */
static void add_versions(struct cells *cells, const struct gp_snapshot *snapshot)
{
    const struct gp_value *host = snapshot->host;
    bool known = host[GP_NVML_VERSION].status == GP_STATUS_OK;
    struct gp_strbuf own = GP_STRBUF_INIT(CELL_SIZE);
    if (known)
        gp_smi_add_library(&own, host[GP_NVML_VERSION].s, 0);
    if (known)
        add_cell(cells, "%s", own.buf);
    else
        add_text(cells, &host[GP_DRIVER_VERSION]);
    gp_strbuf_fini(&own);
    add_text(cells, &host[GP_DRIVER_VERSION]);
    add_text(cells, &host[GP_CUDA_VERSION]);
}

static void print_gpus(const struct printer *p)
{
    const struct gp_smi_layout *layout = p->layout;
    const struct gp_smi_box *box = &layout->gpus->box;
    bool native = p->form->native && p->form->driver >= GP_SMI_DRIVER(610, 0);
    struct cells versions = {.count = 0};
    struct cells head = {.count = 0};
    add_versions(&versions, p->snapshot);
    add_cell(&head, "%s", is_windows(p->snapshot) ? layout->model : "Persistence-M");
    add_edge(p->sb, box);
    add_line(p->sb, box, native ? native_banner : layout->gpus->banner, &versions);
    add_rule(p->sb, box, layout->corner, '-', '+');
    add_head(p->sb, box, &head);
    for (size_t i = 0; i < p->snapshot->device_count; i++) {
        const struct gp_device *d = &p->snapshot->devices[i];
        if (!d->is_mig && !d->refused)
            print_gpu(p, d);
    }
}

/* ---- the box of MIG devices ---- */

static bool has_mig(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].is_mig || is(&snapshot->devices[i], GP_MIG_MODE, "Enabled"))
            return true;
    return false;
}

static void print_mig_device(const struct printer *p, const struct gp_device *d)
{
    static const enum gp_metric ids[] = {GP_MIG_GPU_INSTANCE, GP_MIG_COMPUTE_INSTANCE,
                                         GP_MIG_INDEX};
    static const enum gp_metric engines[] = {
        GP_MIG_MULTIPROCESSORS,
        GP_ECC_UNCORRECTED_VOLATILE_SRAM,
        GP_MIG_COPY_ENGINES,
        GP_MIG_ENCODERS,
        GP_MIG_DECODERS,
        GP_MIG_OFA,
        GP_MIG_JPEG,
    };
    struct cells cells = {.count = 0};
    add_cell(&cells, "%u", d->index);
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++)
        add_number(&cells, d, ids[i], "", "");
    add_mib(&cells, p->form, GP_MEMORY_USED, value_of(d, GP_MEMORY_USED));
    add_mib(&cells, p->form, GP_MEMORY_TOTAL, value_of(d, GP_MEMORY_TOTAL));
    for (size_t i = 0; i < GP_ARRAY_LEN(engines); i++)
        add_number(&cells, d, engines[i], "", "");
    add_mib(&cells, p->form, GP_BAR1_USED, value_of(d, GP_BAR1_USED));
    add_mib(&cells, p->form, GP_BAR1_TOTAL, value_of(d, GP_BAR1_TOTAL));
    add_entry(p->sb, p->layout->migs, &cells);
}

static void print_mig_devices(const struct printer *p)
{
    const struct gp_smi_box *box = p->layout->migs;
    bool any = false;
    gp_strbuf_addc(p->sb, '\n');
    add_edge(p->sb, box);
    add_line(p->sb, box, " MIG devices:", &no_cells);
    add_rule(p->sb, box, '+', '-', '+');
    add_head(p->sb, box, &no_cells);
    for (size_t i = 0; i < p->snapshot->device_count; i++) {
        const struct gp_device *d = &p->snapshot->devices[i];
        any = any || d->is_mig;
        if (d->is_mig)
            print_mig_device(p, d);
    }
    if (!any) {
        add_line(p->sb, box, box->none, &no_cells);
        add_edge(p->sb, box);
    }
}

/* ---- the box of processes ---- */

/* Wider values than 99999MiB are cut. Seen with 580.95.05 on a B200 and 610.57.04 on a B300. */
enum { PROCESS_MEMORY_MAX = 8 };

static void print_process(const struct printer *p, const struct gp_device *gpu,
                          const struct gp_process *process)
{
    static const enum gp_metric instances[] = {GP_PROCESS_GI, GP_PROCESS_CI};
    const struct gp_smi_process_box *box = p->layout->processes;
    const struct gp_value *memory = gp_process_value(process, GP_PROCESS_MEMORY);
    struct cells cells = {.count = 0};
    add_cell(&cells, "%u", gpu->index);
    for (size_t i = 0; i < GP_ARRAY_LEN(instances); i++) {
        const struct gp_value *v = gp_process_value(process, instances[i]);
        if (gp_value_is_present(v))
            add_cell(&cells, "%2lld ", (long long)v->i);
        else
            add_cell(&cells, "N/A");
    }
    add_cell(&cells, "%lld", (long long)gp_process_value(process, GP_PID)->i);
    add_cell(&cells, "%s", gp_process_value(process, GP_PROCESS_TYPE)->s);
    add_cut(&cells, gp_process_value(process, GP_SMI_PROCESS_NAME)->s, box->name_max, true);
    if (memory->status == GP_STATUS_OK) {
        char mib[32];
        (void)snprintf(mib, sizeof(mib), "%lluMiB",
                       (unsigned long long)gp_smi_mib(p->form, GP_PROCESS_MEMORY, memory->i));
        add_cut(&cells, mib, PROCESS_MEMORY_MAX, false);
    } else {
        add_cell(&cells, "%-*s", PROCESS_MEMORY_MAX, "N/A");
    }
    add_entry(p->sb, &box->box, &cells);
}

/* Whether all GPUs have reported their processes. */
static bool all_told(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        enum gp_status status = snapshot->devices[i].processes_status;
        if (status == GP_STATUS_TIMEOUT || status == GP_STATUS_NO_PERMISSION ||
            status == GP_STATUS_ERROR)
            return false;
    }
    return true;
}

/* A process of another container has no name, and is omitted; but "no running processes" is not
 * printed then. */
static void print_processes(const struct printer *p)
{
    const struct gp_smi_box *box = &p->layout->processes->box;
    gp_strbuf_fill(p->sb, ' ', p->layout->blanks);
    gp_strbuf_addc(p->sb, '\n');
    add_edge(p->sb, box);
    add_line(p->sb, box, " Processes:", &no_cells);
    add_head(p->sb, box, &no_cells);
    for (size_t i = 0; i < p->snapshot->device_count; i++) {
        const struct gp_device *gpu = &p->snapshot->devices[i];
        const struct gp_process *process = NULL;
        while (!gpu->is_mig && (process = gp_smi_next_process(p->snapshot, gpu, process)))
            if (gp_value_is_present(gp_process_value(process, GP_SMI_PROCESS_NAME)))
                print_process(p, gpu, process);
    }
    if (p->snapshot->process_count == 0 && all_told(p->snapshot))
        add_line(p->sb, box, box->none, &no_cells);
    add_edge(p->sb, box);
}

/* ---- the table ---- */

void gp_smi_table_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                        const struct gp_snapshot *snapshot)
{
    struct printer p = {
        .sb = sb, .form = form, .layout = gp_smi_layout_of(form), .snapshot = snapshot};
    if (!gp_smi_add_refusals(sb, form, snapshot)) {
        gp_strbuf_adds(sb, "No devices were found\n");
        return;
    }
    gp_smi_add_date(sb, snapshot);
    gp_strbuf_fill(sb, ' ', 7);
    gp_strbuf_addc(sb, '\n');
    print_gpus(&p);
    if (has_mig(snapshot))
        print_mig_devices(&p);
    print_processes(&p);
    gp_smi_add_warnings(sb, snapshot);
}

void gp_smi_table_want(struct gp_want *want)
{
    static const enum gp_metric shown[] = {
        GP_DRIVER_VERSION,
        GP_NVML_VERSION,
        GP_CUDA_VERSION,
        /* For the GPUs. */
        GP_NAME,
        GP_DRIVER_MODEL,
        GP_PERSISTENCE_MODE,
        GP_PCI_BUS_ID,
        GP_DISPLAY_ACTIVE,
        GP_ECC_MODE,
        GP_ECC_UNCORRECTED_VOLATILE,
        GP_FAN_SPEED,
        GP_TEMPERATURE_GPU,
        GP_PSTATE,
        GP_POWER_DRAW,
        GP_POWER_LIMIT_ENFORCED,
        GP_MEMORY_USED,
        GP_MEMORY_TOTAL,
        GP_UTILIZATION_GPU,
        GP_COMPUTE_MODE,
        GP_MIG_MODE,
        GP_MIG_MODE_PENDING,
        GP_INFOROM_CHECKSUM,
        /* For the processes. */
        GP_PID,
        GP_PROCESS_GI,
        GP_PROCESS_CI,
        GP_PROCESS_TYPE,
        GP_SMI_PROCESS_NAME,
        GP_PROCESS_MEMORY,
    };
    static const enum gp_metric of_mig[] = {
        GP_MIG_INDEX,
        GP_MIG_GPU_INSTANCE,
        GP_MIG_COMPUTE_INSTANCE,
        GP_MIG_MULTIPROCESSORS,
        GP_MIG_COPY_ENGINES,
        GP_MIG_ENCODERS,
        GP_MIG_DECODERS,
        GP_MIG_OFA,
        GP_MIG_JPEG,
        GP_ECC_UNCORRECTED_VOLATILE_SRAM,
        GP_BAR1_USED,
        GP_BAR1_TOTAL,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(shown); i++)
        gp_metric_set_add(&want->metrics, shown[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(of_mig); i++)
        gp_metric_set_add(&want->mig_metrics, of_mig[i]);
    want->processes = want->process_names = want->mig = true;
}
