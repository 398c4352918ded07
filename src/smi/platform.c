#include "smi/platform.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/list.h"
#include "smi/message.h"
#include "smi/value.h"
#include "source/source.h"

#include <string.h>

/* ---- conf-compute ---- */

/* A value as printed by its own option, and as printed in the log. Values that are not listed stay
 * unchanged. */
static const struct word {
    const char *value, *single, *logged;
} states[] = {{"Enabled", "ON", "ON"}, {"Disabled", "OFF", "OFF"}, {NULL, NULL, NULL}},
  cpus[] = {{"Intel TDX", "INTEL TDX", "INTEL TDX"},
            {"AMD SNP vTOM", "AMD SEV-SNP(vTOM Mode)", "AMD SEV-SNP(vTOM Mode)"},
            {NULL, NULL, NULL}},
  gpus[] = {{"Yes", "CC Capable", "CC Capable"},
            {"No", "Not CC Capable", "Not CC Capable"},
            {NULL, NULL, NULL}},
  ready[] = {{"Yes", "ready", "Ready"}, {"No", "not-ready", "Not Ready"}, {NULL, NULL, NULL}},
  environments[] = {{"Unavailable", "UNAVAILABLE", NULL},
                    {"Simulation", "SIMULATION", NULL},
                    {"Production", "PRODUCTION", NULL},
                    {NULL, NULL, NULL}},
  as_it_is[] = {{NULL, NULL, NULL}};

static const struct {
    const char *label;
    const char *logged; /* NULL: not in the log */
    enum gp_metric metric;
    const struct word *words;
} parts[GP_SMI_CC__COUNT] = {
    [GP_SMI_CC_FEATURE] = {"CC status", "CC State", GP_CC_FEATURE, states},
    [GP_SMI_CC_MULTI_GPU] = {"Multi-GPU Mode", "Multi-GPU Mode", GP_CC_MULTI_GPU, as_it_is},
    [GP_SMI_CC_CPU] = {"CPU CC capabilities", "CPU CC Capabilities", GP_CC_CPU, cpus},
    [GP_SMI_CC_GPU] = {"GPU CC capabilities", "GPU CC Capabilities", GP_CC_GPU, gpus},
    [GP_SMI_CC_READY] = {"Confidential Compute GPUs Ready state", "CC GPUs Ready State",
                         GP_CC_READY, ready},
    [GP_SMI_CC_ENVIRONMENT] = {"CC Environment", NULL, GP_CC_ENVIRONMENT, environments},
    [GP_SMI_CC_DEVTOOLS] = {"DevTools Mode", NULL, GP_CC_DEVTOOLS, states},
};

static bool is_printed(const struct gp_smi_conf_compute *cc, int part)
{
    return cc->log ? parts[part].logged != NULL : cc->asked[part];
}

static const char *word_of(int part, bool log, const struct gp_value *v)
{
    if (!gp_value_is_present(v))
        return "N/A";
    for (const struct word *w = parts[part].words; w->value; w++)
        if (strcmp(w->value, v->s) == 0)
            return log ? w->logged : w->single;
    return v->s;
}

void gp_smi_conf_compute_want(const struct gp_smi_conf_compute *cc, struct gp_want *want)
{
    want->host_only = true;
    for (int i = 0; i < GP_SMI_CC__COUNT; i++)
        if (is_printed(cc, i))
            gp_metric_set_add(&want->metrics, parts[i].metric);
}

int gp_smi_conf_compute_refuse(const struct gp_smi_conf_compute *cc, struct gp_strbuf *message,
                               const struct gp_snapshot *snapshot)
{
    for (int i = 0; i < GP_SMI_CC__COUNT; i++)
        if (is_printed(cc, i) && gp_value_is_present(&snapshot->host[parts[i].metric]))
            return 0;
    gp_strbuf_adds(message, "Confidential Compute is not supported by this driver.\n");
    return GP_SMI_EXIT_NOT_SUPPORTED;
}

void gp_smi_conf_compute_print(struct gp_strbuf *sb, const struct gp_smi_conf_compute *cc,
                               const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    bool apart = form->driver < GP_SMI_DRIVER(590, 0); /* the ready state */
    if (cc->log)
        gp_strbuf_adds(sb, "\n==============NVSMI CONF-COMPUTE LOG==============\n\n");
    for (int i = 0; i < GP_SMI_CC__COUNT; i++) {
        const char *word = word_of(i, cc->log, &snapshot->host[parts[i].metric]);
        if (!is_printed(cc, i))
            continue;
        if (cc->log)
            gp_strbuf_addf(sb, "    %-27s: %s\n", parts[i].logged, word);
        else
            gp_strbuf_addf(sb, apart && i == GP_SMI_CC_READY ? "\n%s: %s\n\n" : "%s: %s\n",
                           parts[i].label, word);
    }
}

/* ---- c2c ---- */

void gp_smi_c2c_want(struct gp_want *want)
{
    static const enum gp_metric wanted[] = {GP_NAME, GP_UUID, GP_C2C_LINKS, GP_C2C_LINKS_ACTIVE,
                                            GP_C2C_BANDWIDTH};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want->metrics, wanted[i]);
}

static int64_t link_count(const struct gp_snapshot *snapshot, const struct gp_device *gpu)
{
    const struct gp_value *v = gp_snapshot_value(snapshot, gpu, NULL, GP_C2C_LINKS);
    return !gpu->is_mig && gp_value_is_present(v) ? v->i : 0;
}

int gp_smi_c2c_refuse(struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (link_count(snapshot, &snapshot->devices[i]) > 0)
            return 0;
    gp_strbuf_adds(message, "No Devices support C2C.\n");
    return GP_SMI_EXIT_NOT_SUPPORTED;
}

void gp_smi_c2c_print(struct gp_strbuf *sb, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *gpu = &snapshot->devices[i];
        const struct gp_value *up = gp_snapshot_value(snapshot, gpu, NULL, GP_C2C_LINKS_ACTIVE);
        const struct gp_value *speed = gp_snapshot_value(snapshot, gpu, NULL, GP_C2C_BANDWIDTH);
        int64_t count = link_count(snapshot, gpu);
        if (count > 0)
            gp_smi_add_gpu(sb, form, gpu);
        for (int64_t link = 0; link < count; link++) {
            gp_strbuf_addf(sb, "\t C2C Link %lld: ", (long long)link);
            /* The number of active links is known, but not which ones. */
            if (gp_value_is_present(up) && link >= up->i)
                gp_strbuf_adds(sb, "<inactive>");
            else
                gp_smi_add_gigabytes(sb, gp_value_is_present(speed) ? speed->f : 0);
            gp_strbuf_addc(sb, '\n');
        }
    }
}

/* ---- vgpu ---- */

void gp_smi_vgpu_want(struct gp_want *want)
{
    gp_metric_set_add(&want->metrics, GP_VIRTUALIZATION_MODE);
}

int gp_smi_vgpu_refuse(struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_value *mode =
            gp_snapshot_value(snapshot, &snapshot->devices[i], NULL, GP_VIRTUALIZATION_MODE);
        if (!gp_value_is_present(mode) || strncmp(mode->s, "Host", 4) != 0)
            continue;
        gp_strbuf_addf(message,
                       "gpulse: GPU %u is divided among guests (%s); NVIDIA's own nvidia-smi can "
                       "show them.\n",
                       snapshot->devices[i].index, mode->s);
        return GP_SMI_EXIT_NOT_SUPPORTED;
    }
    return 0;
}

void gp_smi_vgpu_print(struct gp_strbuf *sb)
{
    gp_strbuf_adds(sb, "No supported devices in vGPU mode\n");
}
