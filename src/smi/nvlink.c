#include "smi/nvlink.h"

#include "base/cli.h"
#include "base/strbuf.h"
#include "smi/entries.h"
#include "smi/list.h"
#include "smi/value.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

struct printer {
    struct gp_strbuf *sb;
    const struct gp_smi_form *form;
    const struct gp_entry *link;
    long long number;  /* of the link */
    long long ordinal; /* among the active links */
};

static const struct gp_value *value_of(const struct printer *p, enum gp_metric m)
{
    return gp_smi_entry_value(p->link, m);
}

static const char *text_of(const struct printer *p, enum gp_metric m)
{
    const struct gp_value *v = value_of(p, m);
    return gp_value_is_present(v) ? v->s : NULL;
}

static bool is_up(const struct printer *p)
{
    const char *state = text_of(p, GP_LINK_STATE);
    return state && strcmp(state, "Inactive") != 0;
}

/* ---- output for an active link ---- */

static void print_status(const struct printer *p)
{
    const struct gp_value *speed = value_of(p, GP_LINK_SPEED);
    gp_strbuf_addf(p->sb, "\t Link %lld: ", p->number);
    gp_smi_add_gigabytes(p->sb, gp_value_is_present(speed) ? speed->f : 0);
    gp_strbuf_addc(p->sb, '\n');
}

static void print_capabilities(const struct printer *p)
{
    static const struct {
        const char *label, *word;
    } rows[] = {
        {"P2P is supported", "p2p"},
        {"Access to system memory supported", "sysmem"},
        {"P2P atomics supported", "p2p_atomics"},
        {"System memory atomics supported", "sysmem_atomics"},
        {"SLI is supported", "sli"},
        {"Link is supported", "valid"},
    };
    const char *words = text_of(p, GP_LINK_CAPABILITIES);
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        bool can = gp_cli_list_has(words, rows[i].word, strlen(rows[i].word));
        gp_strbuf_addf(p->sb, "\t Link %lld, %s: %s\n", p->number, rows[i].label,
                       can ? "true" : "false");
    }
}

/* Without a known address (NVLink 5), all ones are printed. */
static const char *remote_bus_id(const struct printer *p)
{
    const char *id = text_of(p, GP_LINK_REMOTE_BUS_ID);
    return id ? id : "FFFFFFFF:FF:FF.0";
}

static void print_bus_id(const struct printer *p)
{
    gp_strbuf_addf(p->sb, "\t Link %lld: %s\n", p->number, remote_bus_id(p));
}

/* Only here, inactive links are not counted. */
static void print_remote(const struct printer *p)
{
    const struct gp_value *link = value_of(p, GP_LINK_REMOTE_LINK);
    gp_strbuf_addf(p->sb, "\t Link %lld: Remote Device %s: Link %lld\n", p->ordinal,
                   remote_bus_id(p), gp_value_is_present(link) ? (long long)link->i : 0);
}

/* The counters up to NVLink 4, and those of NVLink 5. */
static const struct counter {
    const char *label;
    enum gp_metric metric;
} old_counters[] =
    {
        {"Replay Errors", GP_LINK_REPLAY},
        {"Recovery Errors", GP_LINK_RECOVERY},
        {"CRC Errors", GP_LINK_CRC_FLIT},
},
  new_counters[] = {
      {"Tx packets", GP_LINK_TX_PACKETS},
      {"Tx bytes", GP_LINK_TX},
      {"Rx packets", GP_LINK_RX_PACKETS},
      {"Rx bytes", GP_LINK_RX},
      {"Malformed packet Errors", GP_LINK_MALFORMED},
      {"Buffer overrun Errors", GP_LINK_OVERRUN},
      {"Rx Errors", GP_LINK_RX_ERRORS},
      {"Rx remote Errors", GP_LINK_RX_REMOTE},
      {"Rx General Errors", GP_LINK_RX_GENERAL},
      {"Local link integrity Errors", GP_LINK_INTEGRITY},
      {"Tx discards", GP_LINK_DISCARDS},
      {"Link recovery successful events", GP_LINK_RECOVERED},
      {"Link recovery failed events", GP_LINK_UNRECOVERED},
      {"Total link recovery events", GP_LINK_RECOVERIES},
      {"Effective Errors", GP_LINK_EFFECTIVE},
      {"Effective BER", GP_LINK_EFFECTIVE_BER},
      {"Symbol Errors", GP_LINK_SYMBOL},
      {"Symbol BER", GP_LINK_SYMBOL_BER},
};

static void add_counter(const struct printer *p, const struct counter *counter)
{
    const struct gp_value *v = value_of(p, counter->metric);
    gp_strbuf_addf(p->sb, "\t Link %lld: %s: ", p->number, counter->label);
    if (!gp_value_is_present(v))
        gp_strbuf_adds(p->sb, gp_smi_absence(p->form, counter->metric, v));
    else if (gp_metric_table[counter->metric].type == GP_TYPE_TEXT)
        gp_strbuf_adds(p->sb, v->s);
    else
        gp_strbuf_addf(p->sb, "%lld", (long long)v->i);
    gp_strbuf_addc(p->sb, '\n');
}

static void add_corrections(const struct printer *p)
{
    const char *text = text_of(p, GP_LINK_FEC);
    for (unsigned i = 0; text && *text; i++) {
        size_t n = strcspn(text, " ");
        gp_strbuf_addf(p->sb, "\t Link %lld: FEC Errors - %u: %.*s\n", p->number, i, (int)n, text);
        text += n + (text[n] == ' ');
    }
}

static void print_errors(const struct printer *p)
{
    const char *version = text_of(p, GP_LINK_VERSION);
    bool is_new = version && strtoul(version, NULL, 10) >= 5;
    for (size_t i = 0; is_new && i < GP_ARRAY_LEN(new_counters); i++)
        add_counter(p, &new_counters[i]);
    for (size_t i = 0; !is_new && i < GP_ARRAY_LEN(old_counters); i++)
        add_counter(p, &old_counters[i]);
    if (is_new)
        add_corrections(p);
    gp_strbuf_addc(p->sb, '\n');
}

static void add_traffic(const struct printer *p, const char *label, enum gp_metric m)
{
    const struct gp_value *v = value_of(p, m);
    gp_strbuf_addf(p->sb, "\t Link %lld: %s: ", p->number, label);
    if (gp_value_is_present(v))
        gp_strbuf_addf(p->sb, "%lld KiB\n", (long long)(v->i / 1024));
    else
        gp_strbuf_addf(p->sb, "%s\n", gp_smi_absence(p->form, m, v));
}

static void print_data(const struct printer *p)
{
    add_traffic(p, "Data Tx", GP_LINK_TX);
    add_traffic(p, "Data Rx", GP_LINK_RX);
}

static void print_raw(const struct printer *p)
{
    add_traffic(p, "Raw Tx", GP_LINK_RAW_TX);
    add_traffic(p, "Raw Rx", GP_LINK_RAW_RX);
}

/* ---- the questions ---- */

static const struct {
    enum gp_metric wanted[4];
    void (*print)(const struct printer *p);
} questions[] = {
    [GP_SMI_NVLINK_STATUS] = {{GP_LINK_SPEED}, print_status},
    [GP_SMI_NVLINK_CAPABILITIES] = {{GP_LINK_CAPABILITIES}, print_capabilities},
    [GP_SMI_NVLINK_BUS_ID] = {{GP_LINK_REMOTE_BUS_ID}, print_bus_id},
    [GP_SMI_NVLINK_REMOTE] = {{GP_LINK_REMOTE_BUS_ID, GP_LINK_REMOTE_LINK}, print_remote},
    [GP_SMI_NVLINK_ERRORS] = {{GP_LINK_VERSION, GP_LINK_FEC}, print_errors},
    [GP_SMI_NVLINK_DATA] = {{GP_LINK_TX, GP_LINK_RX}, print_data},
    [GP_SMI_NVLINK_RAW] = {{GP_LINK_RAW_TX, GP_LINK_RAW_RX}, print_raw},
};

void gp_smi_nvlink_want(const struct gp_smi_nvlink *nvlink, struct gp_want *want)
{
    static const enum gp_metric always[] = {GP_NAME,        GP_UUID,       GP_MIG_MODE,
                                            GP_LINK_NUMBER, GP_LINK_STATE, (enum gp_metric)0};
    gp_smi_want_all(want, always);
    gp_smi_want_all(want, questions[nvlink->question].wanted);
    if (nvlink->question != GP_SMI_NVLINK_ERRORS)
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(old_counters); i++)
        gp_metric_set_add(&want->metrics, old_counters[i].metric);
    for (size_t i = 0; i < GP_ARRAY_LEN(new_counters); i++)
        gp_metric_set_add(&want->metrics, new_counters[i].metric);
}

bool gp_smi_nvlink_has_link(const struct gp_smi_nvlink *nvlink, const struct gp_snapshot *snapshot)
{
    size_t others = 0;
    for (size_t i = 0; nvlink->one_link && i < snapshot->device_count; i++) {
        struct printer p = {.link = NULL};
        while (
            (p.link = gp_smi_next_entry(snapshot, &snapshot->devices[i], GP_SCOPE_LINK, p.link))) {
            const struct gp_value *number = value_of(&p, GP_LINK_NUMBER);
            if (!gp_value_is_present(number))
                continue;
            if ((uint64_t)number->i == nvlink->link)
                return true;
            others++;
        }
    }
    return others == 0;
}

/* Why there is nothing to print about a GPU's links; NULL if there is. */
static const char *nothing(const struct gp_smi_form *form, const struct gp_snapshot *snapshot,
                           const struct gp_device *gpu)
{
    const struct gp_value *mig = gp_snapshot_value(snapshot, gpu, NULL, GP_MIG_MODE);
    const struct gp_entry *link = NULL;
    size_t count = 0;
    if (gp_value_is_present(mig) && strcmp(mig->s, "Enabled") == 0)
        return "Nvlink queries are not supported for Devices in MIG mode";
    while ((link = gp_smi_next_entry(snapshot, gpu, GP_SCOPE_LINK, link))) {
        const struct printer p = {.link = link};
        count += gp_value_is_present(value_of(&p, GP_LINK_NUMBER));
        if (is_up(&p))
            return NULL;
    }
    if (gpu->status == GP_STATUS_TIMEOUT)
        return "NVML: Unable to retrieve Nvlink information: Timeout";
    if (count == 0)
        return "Device does not have or support Nvlink";
    return form->driver < GP_SMI_DRIVER(570, 0)
               ? "NVML: Unable to retrieve NVLink information as all links are inActive"
               : "NVML: Unable to retrieve Nvlink information as all links are inActive";
}

static void print_links(struct printer *p, const struct gp_smi_nvlink *nvlink,
                        const struct gp_snapshot *snapshot, const struct gp_device *gpu)
{
    p->link = NULL;
    p->ordinal = -1;
    while ((p->link = gp_smi_next_entry(snapshot, gpu, GP_SCOPE_LINK, p->link))) {
        p->number = (long long)value_of(p, GP_LINK_NUMBER)->i;
        bool up = is_up(p);
        p->ordinal += up;
        if (nvlink->one_link && (uint64_t)p->number != nvlink->link)
            continue;
        if (up)
            questions[nvlink->question].print(p);
        else if (nvlink->question == GP_SMI_NVLINK_STATUS)
            gp_strbuf_addf(p->sb, "\t Link %lld: <inactive>\n", p->number);
    }
}

void gp_smi_nvlink_print(struct gp_strbuf *sb, const struct gp_smi_nvlink *nvlink,
                         const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    struct printer p = {.sb = sb, .form = form};
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *gpu = &snapshot->devices[i];
        if (gpu->is_mig)
            continue;
        gp_smi_add_gpu(sb, form, gpu);
        if (gpu->refused)
            continue;
        const char *words = nothing(form, snapshot, gpu);
        if (words)
            gp_strbuf_addf(sb, "%s\n", words);
        else
            print_links(&p, nvlink, snapshot, gpu);
    }
}
