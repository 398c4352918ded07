#include "smi/csv.h"

#include "base/cli.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/message.h"
#include "smi/processes.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>

/* ---- fields ---- */

#define NO_METRIC GP_METRIC__COUNT /* no metric of gpulse provides it */

/* A field whose name differs from the catalog. */
struct field {
    const char *name; /* NULL: name, aliases and help are those of the catalog */
    const char *aliases;
    const char *help; /* NULL: that of the catalog */
    enum gp_metric metric;
};

/* clang-format off */
#define TIMESTAMP                                                                                  \
    {"timestamp", "", "local time of the query, for example 2026/07/14 08:12:53.353", GP_TIMESTAMP}
/* clang-format on */

/* All other fields of the catalog with nvidia-smi's names are fields of --query-gpu too. */
static const struct field gpu_fields[] = {
    TIMESTAMP,
    {"index", "", NULL, GP_INDEX}, /* without its alias, which only gpulse knows */
    {"pcie.link.gen.current", "", NULL, GP_PCIE_GEN},
    {"pcie.link.gen.gpucurrent", "", NULL, GP_PCIE_GEN},
};

static const struct field identity[] = {
    TIMESTAMP,
    {"gpu_name", "", NULL, GP_NAME},
    {"gpu_bus_id", "", NULL, GP_PCI_BUS_ID},
    {"gpu_serial", "", NULL, GP_SERIAL},
    {"gpu_uuid", "", NULL, GP_UUID},
};

static const struct field clock_fields[] = {
    {"memory", "mem", NULL, GP_CLOCK_PAIR_MEMORY},
    {"graphics", "gr", NULL, GP_CLOCK_PAIR_GRAPHICS},
};

static const struct field process_fields[] = {
    {.metric = GP_PID},
    {"process_name", "name", "path of the program, or first word of its command line",
     GP_SMI_PROCESS_NAME},
    {.metric = GP_PROCESS_MEMORY},
};

static const struct field app_fields[] = {
    {"vgpu_instance", "", "virtual GPU of the process", NO_METRIC},
    {"pid", "", NULL, GP_APP_PID},
    {"gpu_utilization", "gpu_util", NULL, GP_APP_GPU},
    {"mem_utilization", "mem_util", NULL, GP_APP_MEMORY},
    {"max_memory_usage", "", NULL, GP_APP_MAX_MEMORY},
    {"time", "", NULL, GP_APP_TIME},
};

static const struct field page_fields[] = {
    {.metric = GP_PAGE_ADDRESS},
    {"retired_pages.timestamp", "",
     "when the page was retired, for example 2026/07/14 08:12:53.000", GP_PAGE_TIME},
    {.metric = GP_PAGE_CAUSE},
};

static const struct field row_fields[] = {
    {.metric = GP_REMAPPED_CORRECTABLE},   {.metric = GP_REMAPPED_CORRECTABLE_INACTIVE},
    {.metric = GP_REMAPPED_UNCORRECTABLE}, {.metric = GP_REMAPPED_UNCORRECTABLE_INACTIVE},
    {.metric = GP_REMAPPED_PENDING},       {.metric = GP_REMAPPED_FAILURE},
    {.metric = GP_HISTOGRAM_MAX},          {.metric = GP_HISTOGRAM_HIGH},
    {.metric = GP_HISTOGRAM_PARTIAL},      {.metric = GP_HISTOGRAM_LOW},
    {.metric = GP_HISTOGRAM_NONE},
};

#define FIELDS(table) (table), GP_ARRAY_LEN(table)

static const struct query {
    enum gp_scope scope; /* each row describes one of these */
    const struct field *fields;
    size_t count;
    const char *about;
} queries[] = {
    [GP_SMI_QUERY_GPU] = {GP_SCOPE_DEVICE, FIELDS(gpu_fields), "One row per GPU."},
    [GP_SMI_QUERY_SUPPORTED_CLOCKS] = {GP_SCOPE_CLOCK, FIELDS(clock_fields),
                                       "One row per pair of clocks that a GPU supports."},
    [GP_SMI_QUERY_COMPUTE_APPS] = {GP_SCOPE_PROCESS, FIELDS(process_fields),
                                   "One row per compute process on a GPU."},
    [GP_SMI_QUERY_ACCOUNTED_APPS] = {GP_SCOPE_APP, FIELDS(app_fields),
                                     "One row per process in the driver's accounting, including "
                                     "exited ones. Requires accounting mode."},
    [GP_SMI_QUERY_RETIRED_PAGES] = {GP_SCOPE_PAGE, FIELDS(page_fields),
                                    "One row per retired page of GPU memory. A GPU that does not "
                                    "retire pages has one row per cause."},
    [GP_SMI_QUERY_REMAPPED_ROWS] = {GP_SCOPE_DEVICE, FIELDS(row_fields),
                                    "One row per GPU, with its remapped memory rows."},
};

static const char *const words[] = {
#define X(id, word, help) word,
    GP_SMI_QUERIES(X)
#undef X
};

static bool is_field_of_gpu(enum gp_metric m)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gpu_fields); i++)
        if (gpu_fields[i].metric == m)
            return false;
    return gp_metric_table[m].origin == GP_ORIGIN_SMI;
}

/* The number of leading fields that identify the GPU and have other names than in --query-gpu. */
static size_t identity_count(enum gp_smi_query query)
{
    return query == GP_SMI_QUERY_GPU ? 0 : GP_ARRAY_LEN(identity);
}

/* After the fields of --query-gpu there is a slot for each GPU metric. */
static size_t slot_count(enum gp_smi_query query)
{
    size_t metrics = query == GP_SMI_QUERY_GPU ? (size_t)GP_PROCESS__FIRST : 0;
    return identity_count(query) + queries[query].count + metrics;
}

/* The field in slot i of a query; false if the slot is empty. */
static bool field_in(enum gp_smi_query query, size_t i, struct field *ret)
{
    size_t own = identity_count(query);
    size_t metrics = own + queries[query].count;
    if (i < own)
        *ret = identity[i];
    else if (i < metrics)
        *ret = queries[query].fields[i - own];
    else
        *ret = (struct field){.metric = (enum gp_metric)(i - metrics)};
    if (i >= metrics && !is_field_of_gpu(ret->metric))
        return false;
    if (!ret->name) {
        ret->name = GP_METRIC_NAME(ret->metric);
        ret->aliases = GP_METRIC_ALIASES(ret->metric);
    }
    if (!ret->help)
        ret->help = GP_METRIC_HELP(ret->metric);
    return true;
}

static bool find_field(enum gp_smi_query query, const char *word, size_t n, struct field *ret)
{
    for (size_t i = 0; i < slot_count(query); i++)
        if (field_in(query, i, ret) &&
            ((strncmp(ret->name, word, n) == 0 && ret->name[n] == '\0') ||
             gp_cli_list_has(ret->aliases, word, n)))
            return true;
    return false;
}

/* ---- command line ---- */

/* The next word of a comma-separated list, without surrounding blanks. Returns false at the end. A
 * trailing comma is accepted, because some programs append one to each word. */
static bool next_word(const char **list, const char **ret, size_t *ret_n)
{
    const char *p = *list;
    if (!p || !p[strspn(p, " \t")])
        return false;
    size_t n = strcspn(p, ",");
    *list = p + n + (p[n] == ',');
    size_t blanks = strspn(p, " \t");
    p += blanks < n ? blanks : n;
    n -= blanks < n ? blanks : n;
    while (n > 0 && strchr(" \t", p[n - 1]))
        n--;
    *ret = p;
    *ret_n = n;
    return true;
}

static bool is_word(const char *word, size_t n, const char *expected)
{
    return strlen(expected) == n && memcmp(word, expected, n) == 0;
}

/* csv is the only format, and does not have to be named (seen with driver 580.159.04; older ones
 * required it). */
static bool take_format(struct gp_smi_csv *csv, const char *format, struct gp_strbuf *message)
{
    const char *word;
    size_t n;
    csv->header = csv->units = true;
    while (next_word(&format, &word, &n)) {
        if (is_word(word, n, "noheader")) {
            csv->header = false;
        } else if (is_word(word, n, "nounits")) {
            csv->units = false;
        } else if (!is_word(word, n, "csv")) {
            gp_strbuf_adds(message, "Format modifier is not recognized.\n");
            return false;
        }
    }
    return true;
}

static bool take_fields(struct gp_smi_csv *csv, const char *fields, struct gp_strbuf *message)
{
    const char *word;
    size_t n;
    while (next_word(&fields, &word, &n)) {
        struct field field;
        if (n == 0)
            continue;
        if (!find_field(csv->query, word, n, &field)) {
            gp_strbuf_addf(message, "Field \"%.*s\" is not a valid field to query.\n\n", (int)n,
                           word);
            return false;
        }
        if (csv->count == GP_SMI_COLUMNS_MAX) {
            gp_strbuf_addf(message, "More than %d fields cannot be queried.\n\n",
                           GP_SMI_COLUMNS_MAX);
            return false;
        }
        csv->columns[csv->count++] = (struct gp_smi_column){field.name, field.metric};
    }
    if (csv->count == 0)
        gp_strbuf_adds(message, "Field \"\" is not a valid field to query.\n\n");
    return csv->count > 0;
}

bool gp_smi_csv_parse(struct gp_smi_csv *csv, enum gp_smi_query query, const char *fields,
                      const char *format, struct gp_strbuf *message)
{
    csv->query = query;
    csv->begun = false;
    csv->count = 0;
    return take_format(csv, format, message) && take_fields(csv, fields, message);
}

/* ---- required metrics ---- */

/* On a platform without a chassis or fabric, the driver's empty texts and zeros are printed
 * unchanged. A field that is always set shows whether there is a platform. */
static const char *empty_value(enum gp_metric m)
{
    return m == GP_PLATFORM_CHASSIS ? "" : m == GP_PLATFORM_GUID ? "0x0000000000000000" : NULL;
}

void gp_smi_csv_want(const struct gp_smi_csv *csv, struct gp_want *want)
{
    enum gp_scope scope = queries[csv->query].scope;
    want->processes = scope == GP_SCOPE_PROCESS;
    if (gp_scope_is_list(scope))
        want->lists = UINT32_C(1) << gp_list_index(scope);
    for (size_t i = 0; i < csv->count; i++) {
        enum gp_metric m = csv->columns[i].metric;
        if (m != NO_METRIC)
            gp_metric_set_add(&want->metrics, m);
        if (empty_value(m))
            gp_metric_set_add(&want->metrics, GP_PLATFORM_PEER);
    }
}

/* ---- printing ---- */

/* The subject of a line. */
struct row {
    const struct gp_device *device;
    const struct gp_process *process;
    const struct gp_entry *entry;
    const char *cause; /* for a row without a page: the possible cause of retirement */
};

struct printer {
    struct gp_strbuf *sb;
    const struct gp_smi_csv *csv;
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    enum gp_scope scope;
};

static struct gp_value value_of(const struct printer *p, const struct row *row, enum gp_metric m)
{
    enum gp_scope scope = gp_metric_table[m].scope;
    struct gp_value v;
    if (m == GP_PAGE_CAUSE && row->cause)
        gp_value_set_text(&v, row->cause, 0);
    else if (gp_scope_is_list(scope) && row->entry)
        v = row->entry->values[m - gp_scope_table[scope].first];
    else if (gp_scope_is_list(scope))
        gp_value_set_absent(&v, row->device->list_status[gp_list_index(scope)], NULL, 0);
    else if (scope == GP_SCOPE_PROCESS && !row->process)
        gp_value_set_absent(&v, row->device->processes_status, NULL, 0);
    else
        v = *gp_snapshot_value(p->snapshot, row->device, row->process, m);
    if (v.status == GP_STATUS_UNSUPPORTED && empty_value(m) &&
        gp_snapshot_value(p->snapshot, row->device, NULL, GP_PLATFORM_PEER)->status == GP_STATUS_OK)
        gp_value_set_text(&v, empty_value(m), 0);
    return v;
}

static void separate(const struct printer *p, size_t column)
{
    gp_strbuf_adds(p->sb, column > 0 ? ", " : "");
}

static void print_header(const struct printer *p)
{
    for (size_t i = 0; i < p->csv->count; i++) {
        enum gp_metric m = p->csv->columns[i].metric;
        const char *unit = m == NO_METRIC ? "" : gp_smi_unit(m);
        separate(p, i);
        gp_strbuf_addf(p->sb, *unit ? "%s [%s]" : "%s", p->csv->columns[i].name, unit);
    }
    gp_strbuf_addc(p->sb, '\n');
}

static void print_row(const struct printer *p, const struct row *row)
{
    enum gp_smi_style style = p->csv->units ? GP_SMI_CSV : GP_SMI_PLAIN;
    for (size_t i = 0; i < p->csv->count; i++) {
        enum gp_metric m = p->csv->columns[i].metric;
        separate(p, i);
        if (m == NO_METRIC) {
            gp_strbuf_adds(p->sb, "[N/A]");
            continue;
        }
        struct gp_value v = value_of(p, row, m);
        gp_smi_add_value(p->sb, p->form, m, &v, style);
    }
    gp_strbuf_addc(p->sb, '\n');
}

static void print_processes(const struct printer *p, const struct gp_device *gpu)
{
    struct row row = {.device = gpu};
    enum gp_status status = gpu->processes_status;
    if (status == GP_STATUS_NO_PERMISSION || status == GP_STATUS_ERROR ||
        status == GP_STATUS_TIMEOUT)
        print_row(p, &row);
    while ((row.process = gp_smi_next_computing(p->snapshot, gpu, row.process)))
        print_row(p, &row);
}

/* Prints the entries of a list. An unavailable list is one row without values (for pages, one for
 * each cause; for accounted processes, none). */
static void print_list(const struct printer *p, const struct gp_device *gpu)
{
    static const char *const causes[] = {"Single Bit ECC", "Double Bit ECC"};
    const struct gp_entries *list = &p->snapshot->lists[gp_list_index(p->scope)];
    enum gp_status status = gpu->list_status[gp_list_index(p->scope)];
    struct row row = {.device = gpu};
    if (status == GP_STATUS_OK) {
        for (row.entry = list->entries; row.entry < list->entries + list->count; row.entry++)
            if (&p->snapshot->devices[row.entry->device] == gpu)
                print_row(p, &row);
    } else if (p->scope == GP_SCOPE_PAGE) {
        for (size_t i = 0; i < GP_ARRAY_LEN(causes); i++) {
            row.cause = causes[i];
            print_row(p, &row);
        }
    } else if (p->scope != GP_SCOPE_APP || status != GP_STATUS_UNSUPPORTED) {
        print_row(p, &row);
    }
}

/* A GPU without a handle is reported once, in place of its rows, followed by a row of values that
 * state the reason. The same applies to a GPU that is lost later. */
static void print_lost(const struct printer *p, const struct gp_device *gpu)
{
    struct gp_value lost;
    gp_value_set_absent(&lost, gpu->status, NULL, 0);
    if (gpu->refused && !p->csv->begun)
        gp_smi_add_refusal(p->sb, p->form, gpu);
    if (p->scope != GP_SCOPE_DEVICE)
        return;
    for (size_t i = 0; i < p->csv->count; i++) {
        separate(p, i);
        gp_strbuf_addf(p->sb, "[%s]", gp_smi_absence(p->form, GP_UUID, &lost));
    }
    gp_strbuf_addc(p->sb, '\n');
}

static void print_gpu(const struct printer *p, const struct gp_device *gpu)
{
    if (gpu->refused || gpu->status == GP_STATUS_LOST || gpu->status == GP_STATUS_ERROR)
        print_lost(p, gpu);
    else if (p->scope == GP_SCOPE_PROCESS)
        print_processes(p, gpu);
    else if (p->scope == GP_SCOPE_DEVICE)
        print_row(p, &(struct row){.device = gpu});
    else
        print_list(p, gpu);
}

void gp_smi_csv_print(struct gp_strbuf *sb, struct gp_smi_csv *csv, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot)
{
    const struct printer p = {sb, csv, form, snapshot, queries[csv->query].scope};
    if (csv->header && !csv->begun)
        print_header(&p);
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (!snapshot->devices[i].is_mig)
            print_gpu(&p, &snapshot->devices[i]);
    csv->begun = true;
}

/* ---- help pages ---- */

/* The drivers of which the list of --query-gpu is known: 590.48.01 (H100), 595.80 (L40S) and
 * 610.57.04 (RTX 2080 SUPER), and those of the same branches. */
enum { IN_590 = 1, IN_595 = 2, IN_610 = 4, IN_ALL = IN_590 | IN_595 | IN_610 };

#define LISTED "gpulse knows which fields the drivers of the branches 590, 595 and 610 list. "

/* Fields that only some of them list, first match; a name that ends with "." stands for all that
 * begin with it. */
static const struct {
    const char *name;
    unsigned drivers;
} partial_fields[] = {
    {"kmd_version", IN_595 | IN_610},
    {"fabric.health.partition_assigned", IN_595 | IN_610},
    {"remapped_rows.correctable_inactive", IN_595 | IN_610},
    {"remapped_rows.uncorrectable_inactive", IN_595 | IN_610},
    {"power_smoothing.delayed_power_smoothing_supported", IN_590 | IN_610},
    {"power_smoothing.primary_power_floor", IN_590 | IN_610},
    {"power_smoothing.secondary_power_floor", IN_590 | IN_610},
    {"power_smoothing.min_primary_floor_activation_offset", IN_590 | IN_610},
    {"power_smoothing.min_primary_floor_activation_point", IN_590 | IN_610},
    {"power_smoothing.window_multiplier", IN_590 | IN_610},
    {"power_smoothing.curr_profile.secondary_power_floor", IN_590 | IN_610},
    {"power_smoothing.curr_profile.primary_floor_act_window_multiplier", IN_590 | IN_610},
    {"power_smoothing.curr_profile.primary_floor_tar_window_multiplier", IN_590 | IN_610},
    {"power_smoothing.curr_profile.primary_floor_act_offset", IN_590 | IN_610},
    {"power_smoothing.admin_override.secondary_power_floor", IN_590 | IN_610},
    {"power_smoothing.admin_override.primary_floor_act_window_multiplier", IN_590 | IN_610},
    {"power_smoothing.admin_override.primary_floor_tar_window_multiplier", IN_590 | IN_610},
    {"power_smoothing.admin_override.primary_floor_act_offset", IN_590 | IN_610},
    {"power_smoothing.", IN_610},
    {"gpu.base.", IN_610},
    {"bbx.", IN_610},
};

/* The driver's bit; 0: it is unknown what it lists. */
static unsigned driver_bit(const struct gp_smi_form *form)
{
    static const struct {
        unsigned branch, bit;
    } known[] = {{590, IN_590}, {591, IN_590}, {595, IN_595}, {610, IN_610}};
    for (size_t i = 0; form && i < GP_ARRAY_LEN(known); i++)
        if (form->driver / GP_SMI_DRIVER(1, 0) == known[i].branch)
            return known[i].bit;
    return 0;
}

static bool is_listed(const char *name, unsigned bit)
{
    for (size_t i = 0; bit && i < GP_ARRAY_LEN(partial_fields); i++) {
        size_t n = strlen(partial_fields[i].name);
        bool is_group = partial_fields[i].name[n - 1] == '.';
        if (strncmp(partial_fields[i].name, name, is_group ? n : n + 1) == 0)
            return partial_fields[i].drivers & bit;
    }
    return true;
}

/* Programs parse the fields from this page: quoted names at the start of a line, after an empty
 * line. */
void gp_smi_csv_help(struct gp_strbuf *sb, enum gp_smi_query query, const struct gp_smi_form *form)
{
    unsigned bit = query == GP_SMI_QUERY_GPU ? driver_bit(form) : IN_ALL;
    gp_strbuf_addf(sb, "List of valid properties to query for the switch \"--query-%s\":\n\n%s\n",
                   words[query], queries[query].about);
    if (!bit && form)
        gp_strbuf_addf(sb, LISTED "These are all of them; driver %u may lack some.\n",
                       form->driver / GP_SMI_DRIVER(1, 0));
    else if (!bit)
        gp_strbuf_adds(sb, LISTED "These are all of them, as no driver is loaded.\n");
    for (size_t i = 0; i < slot_count(query); i++) {
        struct field field;
        if (!field_in(query, i, &field) || !is_listed(field.name, bit))
            continue;
        gp_strbuf_addf(sb, "\n\"%s\"", field.name);
        for (const char *alias = field.aliases; *alias;) {
            size_t n = strcspn(alias, " ");
            gp_strbuf_addf(sb, " or \"%.*s\"", (int)n, alias);
            alias += n + (alias[n] == ' ');
        }
        gp_strbuf_addf(sb, "\n%s\n", field.help);
    }
}
