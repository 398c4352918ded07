#include "smi/list.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/message.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>

/* ---- -L ---- */

void gp_smi_list_want(struct gp_want *want)
{
    static const enum gp_metric shown[] = {GP_NAME, GP_UUID, GP_MIG_PROFILE, GP_MIG_INDEX};
    for (size_t i = 0; i < GP_ARRAY_LEN(shown); i++)
        gp_metric_set_add(&want->metrics, shown[i]);
    want->mig = true;
}

static const char *text_of(const struct gp_smi_form *form, const struct gp_device *d,
                           enum gp_metric m)
{
    const struct gp_value *v = &d->values[m - GP_DEVICE__FIRST];
    return v->status == GP_STATUS_OK ? v->s : gp_smi_absence(form, m, v);
}

void gp_smi_add_gpu(struct gp_strbuf *sb, const struct gp_smi_form *form,
                    const struct gp_device *gpu)
{
    if (gpu->refused)
        gp_smi_add_refusal(sb, form, gpu);
    else
        gp_strbuf_addf(sb, "GPU %u: %s (UUID: %s)\n", gpu->index, text_of(form, gpu, GP_NAME),
                       text_of(form, gpu, GP_UUID));
}

void gp_smi_list_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                       const struct gp_snapshot *snapshot)
{
    bool any = false;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *d = &snapshot->devices[i];
        any = any || !d->refused;
        if (d->is_mig)
            gp_strbuf_addf(sb, "  MIG %-12sDevice %2u: (UUID: %s)\n",
                           text_of(form, d, GP_MIG_PROFILE), d->mig_index,
                           text_of(form, d, GP_UUID));
        else
            gp_smi_add_gpu(sb, form, d);
    }
    if (!any)
        gp_strbuf_adds(sb, "No devices were found\n");
}

/* ---- -B ---- */

void gp_smi_excluded_want(struct gp_want *want)
{
    gp_metric_set_add(&want->metrics, GP_EXCLUDED);
    want->host_only = true;
}

/* Parses "00000000:4B:00.0 GPU-…, …". */
void gp_smi_excluded_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_snapshot *snapshot)
{
    const struct gp_value *v = &snapshot->host[GP_EXCLUDED];
    const char *p = v->status == GP_STATUS_OK && strcmp(v->s, "None") != 0 ? v->s : "";
    (void)form;
    if (!*p)
        gp_strbuf_adds(sb, "No excluded devices found.\n");
    for (unsigned i = 0; *p; i++) {
        int address = (int)strcspn(p, " ");
        const char *uuid = p + address + strspn(p + address, " ");
        int n = (int)strcspn(uuid, ",");
        gp_strbuf_addf(sb, "Excluded GPU %u: %.*s (UUID: %.*s)\n", i, address, p, n, uuid);
        p = uuid + n + strspn(uuid + n, ", ");
    }
}

/* ---- --version ---- */

void gp_smi_versions_want(struct gp_want *want)
{
    gp_metric_set_add(&want->metrics, GP_DRIVER_VERSION);
    gp_metric_set_add(&want->metrics, GP_CUDA_VERSION);
    gp_metric_set_add(&want->metrics, GP_NVML_VERSION);
    want->host_only = true;
}

/* X(drivers, label, metric, number of parts of the library version), or a text instead of a
 * version. */
static const struct {
    struct gp_smi_range drivers;
    const char *label;
    enum gp_metric metric;
    unsigned parts; /* parts of the NVML version; 0: all */
    const char *instead;
} version_rows[] = {
    {GP_SMI_ALL, "NVIDIA-SMI version", GP_NVML_VERSION, 0, NULL},
    {GP_SMI_ALL, "NVML version", GP_NVML_VERSION, 2, NULL},
    {GP_SMI_UNTIL(609), "DRIVER version", GP_DRIVER_VERSION, 0, NULL},
    {GP_SMI_UNTIL(609), "CUDA Version", GP_CUDA_VERSION, 0, NULL},
    {GP_SMI_FROM(610, 0), "DRIVER version", 0, 0, "Deprecated, see \"KMD version\" instead"},
    {GP_SMI_FROM(610, 0), "CUDA version", 0, 0, "Deprecated, see \"CUDA UMD version\" instead"},
    {GP_SMI_FROM(610, 0), "KMD version", GP_DRIVER_VERSION, 0, NULL},
    {GP_SMI_FROM(610, 0), "CUDA UMD version", GP_CUDA_VERSION, 0, NULL},
};

void gp_smi_versions_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(version_rows); i++) {
        const struct gp_value *v = &snapshot->host[version_rows[i].metric];
        if (!gp_smi_in(form, version_rows[i].drivers))
            continue;
        gp_strbuf_addf(sb, "%-20s: ", version_rows[i].label);
        if (version_rows[i].instead)
            gp_strbuf_adds(sb, version_rows[i].instead);
        else if (version_rows[i].metric == GP_NVML_VERSION && v->status == GP_STATUS_OK)
            gp_smi_add_library(sb, v->s, version_rows[i].parts);
        else
            gp_smi_add_value(sb, form, version_rows[i].metric, v, GP_SMI_LOG);
        gp_strbuf_addc(sb, '\n');
    }
}
