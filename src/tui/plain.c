#include "tui/plain.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/field.h"
#include "tui/proc_table.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60 };

/* The values of a GPU and their labels. Values that the GPU does not report are omitted. */
static const struct {
    const char *label;
    enum gp_metric metric;
} parts[] = {
    {"utilization", GP_UTILIZATION_GPU},
    {"memory used", GP_MEMORY_USED},
    {"of", GP_MEMORY_TOTAL},
    {"memory reserved", GP_MEMORY_RESERVED},
    {"memory bandwidth", GP_UTILIZATION_MEMORY},
    {"SMs", GP_GPM_SM},
    {"temperature", GP_TEMPERATURE_GPU},
    {"memory temperature", GP_TEMPERATURE_MEMORY},
    {"fan", GP_FAN_SPEED},
    {"power", GP_POWER_DRAW},
    {"limit", GP_POWER_LIMIT_ENFORCED},
    {"state", GP_PSTATE},
    {"SM clock", GP_CLOCK_SM},
    {"memory clock", GP_CLOCK_MEMORY},
    {"PCIe generation", GP_PCIE_GEN},
    {"PCIe lanes", GP_PCIE_WIDTH},
    {"PCIe received", GP_PCIE_RX},
    {"PCIe sent", GP_PCIE_TX},
    {"NVLink received", GP_NVLINK_RATE_RX},
    {"NVLink sent", GP_NVLINK_RATE_TX},
    {"uncorrected memory errors", GP_ECC_UNCORRECTED_VOLATILE},
    {"recovery", GP_RECOVERY_ACTION},
    {"encoder", GP_UTILIZATION_ENCODER},
    {"decoder", GP_UTILIZATION_DECODER},
    {"reserved by", GP_RESERVATION_USER},
    {"for", GP_RESERVATION_NAME},
};

static void add_gpu(struct gp_strbuf *sb, const struct gp_device *device)
{
    const struct gp_value *name =
        &device->values[(device->is_mig ? GP_MIG_PROFILE : GP_NAME) - GP_DEVICE__FIRST];
    if (device->is_mig)
        gp_strbuf_addf(sb, "GPU %u MIG %u", device->index, device->mig_index);
    else
        gp_strbuf_addf(sb, "GPU %u", device->index);
    if (gp_value_is_present(name))
        gp_strbuf_addf(sb, " %s", name->s);
    gp_strbuf_addc(sb, ':');
    if (device->status != GP_STATUS_OK)
        gp_strbuf_addf(sb, " %s", gp_device_trouble(device));
    const char *separator = device->status != GP_STATUS_OK ? "; last seen:" : "";
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        const struct gp_value *v = &device->values[parts[i].metric - GP_DEVICE__FIRST];
        const struct gp_field field = {.metric = parts[i].metric};
        if (!gp_value_is_present(v))
            continue;
        gp_strbuf_addf(sb, "%s %s ", separator, parts[i].label);
        gp_field_format(sb, &field, v, GP_STYLE_HUMAN);
        separator = ",";
    }
    gp_strbuf_addc(sb, '\n');
}

static void add_amount(struct gp_strbuf *sb, const char *label, struct gp_amount amount,
                       enum gp_metric m)
{
    const struct gp_field field = {.metric = m};
    struct gp_value v;
    if (!amount.known)
        return;
    if (gp_metric_table[m].type == GP_TYPE_REAL)
        gp_value_set_real(&v, amount.n, 0);
    else
        gp_value_set_int(&v, (int64_t)amount.n, 0);
    gp_strbuf_addf(sb, ", %s ", label);
    gp_field_format(sb, &field, &v, GP_STYLE_HUMAN);
}

/* In minutes, so that the line of an idle process does not change with every sample. */
static void add_idle(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    const struct gp_amount idle = row->idle_s;
    if (!idle.known || idle.n <= 0)
        return;
    gp_strbuf_adds(sb, ", idle");
    if (idle.n < MINUTE)
        return;
    gp_strbuf_adds(sb, row->idle_is_least ? " for at least " : " for ");
    gp_proc_format_amount(sb, GP_PROC_IDLE_COLUMN, idle);
}

static void add_process(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    if (row->pid)
        gp_strbuf_addf(sb, "process %lld", (long long)row->pid);
    else
        gp_strbuf_adds(sb, "no process");
    if (row->user)
        gp_strbuf_addf(sb, " of %s", row->user);
    gp_strbuf_addf(sb, " on GPU %s", row->gpus);
    if (row->type)
        gp_strbuf_addf(sb, ", type %s", row->type);
    add_amount(sb, "GPU memory", row->memory, GP_PROCESS_MEMORY);
    add_amount(sb, "suspended in host memory", row->suspended, GP_PROCESS_SUSPENDED);
    add_amount(sb, "SM", gp_proc_amount(row, GP_PROC_SM_COLUMN), GP_PROCESS_SM);
    add_amount(sb, "memory", gp_proc_amount(row, GP_PROC_MEM_COLUMN), GP_PROCESS_MEM);
    add_amount(sb, "encoder", gp_proc_amount(row, GP_PROC_ENC_COLUMN), GP_PROCESS_ENC);
    add_amount(sb, "decoder", gp_proc_amount(row, GP_PROC_DEC_COLUMN), GP_PROCESS_DEC);
    add_amount(sb, "CPU", row->cpu, GP_PROCESS_CPU);
    add_amount(sb, "host memory", row->rss, GP_PROCESS_RSS);
    if (row->age_s.known) {
        gp_strbuf_adds(sb, ", for ");
        gp_proc_format(sb, row, GP_PROC_TIME_COLUMN);
    }
    add_idle(sb, row);
    if (row->container)
        gp_strbuf_addf(sb, ", in %s", row->container);
    gp_strbuf_addf(sb, ": %s\n", row->command ? row->command : "?");
}

/* The machine in one line. */
static void add_host(struct gp_strbuf *sb, const struct gp_snapshot *snapshot, size_t processes)
{
    static const struct {
        const char *label;
        enum gp_metric metric;
    } loads[] = {
        {"CPUs", GP_HOST_CPU_COUNT},
        {"in use", GP_HOST_CPU},
        {"load", GP_HOST_LOAD},
        {"memory", GP_HOST_MEMORY_TOTAL},
        {"available", GP_HOST_MEMORY_AVAILABLE},
        {"swap", GP_HOST_SWAP_TOTAL},
        {"swap used", GP_HOST_SWAP_USED},
    };
    const struct gp_value *host = &snapshot->host[GP_HOST_NAME];
    const struct gp_value *driver = &snapshot->host[GP_DRIVER_VERSION];
    gp_strbuf_addf(sb, "%s, driver %s", gp_value_is_present(host) ? host->s : "?",
                   gp_value_is_present(driver) ? driver->s : "?");
    for (size_t i = 0; i < GP_ARRAY_LEN(loads); i++) {
        const struct gp_value *v = &snapshot->host[loads[i].metric];
        const struct gp_field field = {.metric = loads[i].metric};
        if (!gp_value_is_present(v))
            continue;
        gp_strbuf_addf(sb, ", %s ", loads[i].label);
        gp_field_format(sb, &field, v, GP_STYLE_HUMAN);
    }
    const struct gp_value *total = &snapshot->host[GP_HOST_MEMORY_TOTAL];
    const struct gp_value *available = &snapshot->host[GP_HOST_MEMORY_AVAILABLE];
    const struct gp_amount used = {(double)(total->i - available->i),
                                   gp_value_is_present(total) && gp_value_is_present(available),
                                   false};
    add_amount(sb, "memory in use", used, GP_HOST_MEMORY_TOTAL);
    gp_strbuf_addf(sb, ", %zu processes\n", processes);
}

int gp_plain_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                 const struct gp_procs_options *options)
{
    struct gp_procs procs = {.rows = NULL};
    int r = gp_procs_build(&procs, snapshot, options);
    if (r < 0)
        return r;
    add_host(sb, snapshot, procs.count);
    for (size_t i = 0; i < snapshot->device_count; i++)
        add_gpu(sb, &snapshot->devices[i]);
    for (size_t i = 0; i < procs.count; i++)
        add_process(sb, &procs.rows[i]);
    gp_strbuf_addc(sb, '\n');
    gp_procs_fini(&procs);
    return 0;
}

/* ---- changes ---- */

/* A line inside a text, which it points into. */
struct line {
    const char *text;
    size_t n;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    int order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* The lines of a text, sorted. NULL without memory. */
static struct line *sort_lines(const struct gp_strbuf *sb, size_t *ret_count)
{
    size_t count = 0;
    for (const char *p = sb->buf; (p = strchr(p, '\n')); p++)
        count++;
    struct line *lines = calloc(count + 1, sizeof(*lines));
    const char *p = sb->buf;
    for (size_t i = 0; lines && i < count; i++) {
        lines[i] = (struct line){p, strcspn(p, "\n")};
        p += lines[i].n + 1;
    }
    if (lines)
        qsort(lines, count, sizeof(*lines), compare_lines);
    *ret_count = count;
    return lines;
}

int gp_plain_add_changes(struct gp_strbuf *sb, const struct gp_strbuf *now,
                         const struct gp_strbuf *before)
{
    size_t count;
    struct line *known = sort_lines(before, &count);
    if (!known)
        return GP_ENOMEM;
    size_t start = sb->len;
    for (const char *p = now->buf; *p;) {
        const struct line line = {p, strcspn(p, "\n")};
        if (line.n > 0 && !bsearch(&line, known, count, sizeof(*known), compare_lines)) {
            gp_strbuf_add(sb, line.text, line.n);
            gp_strbuf_addc(sb, '\n');
        }
        p += line.n + (p[line.n] == '\n');
    }
    if (sb->len > start)
        gp_strbuf_addc(sb, '\n');
    free(known);
    return sb->error;
}
