#include "tui/plain.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/field.h"

#include <string.h>

/* What is told of a GPU, each with its label; what it does not tell is left out. */
static const struct {
    const char *label;
    enum gp_metric metric;
} parts[] = {
    {"utilization", GP_UTILIZATION_GPU},
    {"memory used", GP_MEMORY_USED},
    {"of", GP_MEMORY_TOTAL},
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
    {"encoder", GP_UTILIZATION_ENCODER},
    {"decoder", GP_UTILIZATION_DECODER},
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
        gp_strbuf_addf(sb, " %s", device->status_text);
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
    add_amount(sb, "SM", row->sm, GP_PROCESS_SM);
    add_amount(sb, "memory", row->mem, GP_PROCESS_MEM);
    add_amount(sb, "encoder", row->enc, GP_PROCESS_ENC);
    add_amount(sb, "decoder", row->dec, GP_PROCESS_DEC);
    add_amount(sb, "CPU", row->cpu, GP_PROCESS_CPU);
    add_amount(sb, "main memory", row->rss, GP_PROCESS_RSS);
    if (row->age_s >= 0)
        gp_strbuf_addf(sb, ", for %.0f s", row->age_s);
    gp_strbuf_addf(sb, ": %s\n", row->command ? row->command : "?");
}

int gp_plain_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                 const struct gp_procs_options *options)
{
    struct gp_procs procs = {NULL, 0, 0};
    const struct gp_value *host = &snapshot->host[GP_HOST_NAME];
    const struct gp_value *driver = &snapshot->host[GP_DRIVER_VERSION];
    int r = gp_procs_build(&procs, snapshot, options);
    if (r < 0)
        return r;
    gp_strbuf_addf(sb, "%s, driver %s, %zu processes\n", gp_value_is_present(host) ? host->s : "?",
                   gp_value_is_present(driver) ? driver->s : "?", procs.count);
    for (size_t i = 0; i < snapshot->device_count; i++)
        add_gpu(sb, &snapshot->devices[i]);
    for (size_t i = 0; i < procs.count; i++)
        add_process(sb, &procs.rows[i]);
    gp_strbuf_addc(sb, '\n');
    gp_procs_fini(&procs);
    return 0;
}
