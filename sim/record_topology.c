/* NVLinks, and the topology of the GPUs. */
#include "sim/record_internal.h"

#include "base/strbuf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------- links */

static nvmlReturn_t ask_state(struct rec_call *c)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    nvmlReturn_t code = c->api->nvmlDeviceGetNvLinkState(c->device, c->key, &state);
    c->numbers[0] = state;
    return code;
}

static nvmlReturn_t ask_version(struct rec_call *c)
{
    unsigned int version = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetNvLinkVersion(c->device, c->key, &version);
    c->numbers[0] = version;
    return code;
}

static nvmlReturn_t ask_type(struct rec_call *c)
{
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    nvmlReturn_t code = c->api->nvmlDeviceGetNvLinkRemoteDeviceType(c->device, c->key, &type);
    c->numbers[0] = type;
    return code;
}

static nvmlReturn_t ask_capabilities(struct rec_call *c)
{
    nvmlReturn_t code = NVML_SUCCESS;
    for (unsigned int cap = 0; code == NVML_SUCCESS && cap < NVML_NVLINK_CAP_COUNT; cap++) {
        unsigned int has = 0;
        code = c->api->nvmlDeviceGetNvLinkCapability(c->device, c->key, (nvmlNvLinkCapability_t)cap,
                                                     &has);
        c->numbers[0] |= has ? 1u << cap : 0;
    }
    return code;
}

static nvmlReturn_t ask_remote(struct rec_call *c)
{
    return c->api->nvmlDeviceGetNvLinkRemotePciInfo_v2(c->device, c->key, &c->pci);
}

/* The low half of the key is the link, the high half the counter. */
static nvmlReturn_t ask_errors(struct rec_call *c)
{
    unsigned long long count = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetNvLinkErrorCounter(
        c->device, c->key & 0xffff, (nvmlNvLinkErrorCounter_t)(c->key >> 16), &count);
    c->numbers[0] = count;
    return code;
}

static nvmlReturn_t ask_field(struct rec_call *c)
{
    nvmlFieldValue_t f = {.fieldId = c->key >> 16, .scopeId = c->key & 0xffff};
    nvmlReturn_t code = c->api->nvmlDeviceGetFieldValues(c->device, 1, &f);
    if (code != NVML_SUCCESS || f.nvmlReturn != NVML_SUCCESS)
        return code == NVML_SUCCESS ? f.nvmlReturn : code;
    bool wide = f.valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ||
                f.valueType == NVML_VALUE_TYPE_SIGNED_LONG_LONG;
    c->numbers[0] = wide ? f.value.ullVal : f.value.uiVal;
    return NVML_SUCCESS;
}

#define FUNCTION(key, name, ask)                                                                   \
    {                                                                                              \
        key, SIM_FN_##name, ask, 0, 1                                                              \
    }
#define COUNTER(key, counter)                                                                      \
    {                                                                                              \
        key, SIM_FN_nvmlDeviceGetNvLinkErrorCounter, ask_errors, counter, 1                        \
    }
#define FIELD(key, id, unit)                                                                       \
    {                                                                                              \
        key, SIM_FN_nvmlDeviceGetFieldValues, ask_field, id, unit                                  \
    }

/* A member of a link; if several have the same key, the first successful one is used. */
static const struct {
    const char *key;
    enum sim_function function;
    nvmlReturn_t (*ask)(struct rec_call *);
    unsigned int high; /* half of the call's key */
    unsigned int unit;
} members[] = {
    FUNCTION("version", nvmlDeviceGetNvLinkVersion, ask_version),
    FUNCTION("remote_type", nvmlDeviceGetNvLinkRemoteDeviceType, ask_type),
    FUNCTION("capabilities", nvmlDeviceGetNvLinkCapability, ask_capabilities),
    FIELD("speed_mbps", NVML_FI_DEV_NVLINK_GET_SPEED, 1),
    FIELD("speed_mbps", NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, 1),
    FIELD("power_state", NVML_FI_DEV_NVLINK_GET_POWER_STATE, 1),
    FIELD("remote_link", NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, 1),
    FIELD("tx_kib", NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 1),
    FIELD("tx_kib", NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, 1024),
    FIELD("rx_kib", NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 1),
    FIELD("rx_kib", NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, 1024),
    COUNTER("replay", NVML_NVLINK_ERROR_DL_REPLAY),
    COUNTER("recovery", NVML_NVLINK_ERROR_DL_RECOVERY),
    COUNTER("crc_flit", NVML_NVLINK_ERROR_DL_CRC_FLIT),
    COUNTER("crc_data", NVML_NVLINK_ERROR_DL_CRC_DATA),
    COUNTER("ecc", NVML_NVLINK_ERROR_DL_ECC_DATA),
    FIELD("rx_errors", NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, 1),
    FIELD("malformed", NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, 1),
    FIELD("buffer_overrun", NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, 1),
    FIELD("rx_remote", NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, 1),
    FIELD("rx_general", NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, 1),
    FIELD("local_integrity", NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, 1),
    FIELD("tx_discards", NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, 1),
    FIELD("recoveries", NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, 1),
    FIELD("tx_packets", NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, 1),
    FIELD("rx_packets", NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, 1),
    FIELD("recovered", NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, 1),
    FIELD("unrecovered", NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, 1),
    FIELD("effective", NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, 1),
    FIELD("effective_ber", NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, 1),
    FIELD("symbol", NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, 1),
    FIELD("symbol_ber", NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, 1),
};

/* The remote end: a GPU of this machine by its index, anything else by its address. */
static void add_remote(struct recorder *r, unsigned int index, unsigned int link, json_t *row)
{
    nvmlDevice_t device = r->devices[index].handle;
    rec_prepare(r, SIM_FN_nvmlDeviceGetNvLinkRemotePciInfo_v2, ask_remote, device)->key = link;
    if (rec_ask(r) != NVML_SUCCESS)
        return;
    const nvmlPciInfo_t *pci = &r->call->pci;
    for (unsigned int i = 0; i < r->device_count; i++) {
        const nvmlPciInfo_t *other = &r->devices[i].pci;
        if (i != index && r->devices[i].code == NVML_SUCCESS && other->domain == pci->domain &&
            other->bus == pci->bus && other->device == pci->device) {
            (void)json_object_set_new(row, "peer", json_integer(i ^ index));
            return;
        }
    }
    char text[24];
    (void)snprintf(text, sizeof(text), "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff,
                   pci->device & 0xff);
    (void)json_object_set_new(row, "remote", json_string(text));
}

/* The FEC histogram of a link, all or none. */
static nvmlReturn_t ask_fec(struct rec_call *c)
{
    nvmlFieldValue_t f[16];
    size_t len = 0;
    for (unsigned int i = 0; i < GP_ARRAY_LEN(f); i++)
        f[i] = (nvmlFieldValue_t){.fieldId = NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 + i,
                                  .scopeId = c->key};
    nvmlReturn_t code = c->api->nvmlDeviceGetFieldValues(c->device, GP_ARRAY_LEN(f), f);
    for (size_t i = 0; i < GP_ARRAY_LEN(f) && code == NVML_SUCCESS && len < sizeof(c->text); i++) {
        code = f[i].nvmlReturn;
        len += (size_t)snprintf(c->text + len, sizeof(c->text) - len, "%s%llu", i ? " " : "",
                                f[i].value.ullVal);
    }
    return code;
}

static json_t *ask_link(struct recorder *r, unsigned int index, unsigned int link)
{
    nvmlDevice_t device = r->devices[index].handle;
    json_t *row = json_pack("{s:I}", "state", (json_int_t)r->call->numbers[0]);
    for (size_t i = 0; i < GP_ARRAY_LEN(members); i++) {
        if (json_object_get(row, members[i].key))
            continue;
        struct rec_call *c = rec_prepare(r, members[i].function, members[i].ask, device);
        c->key = members[i].high << 16 | link;
        if (rec_ask(r) == NVML_SUCCESS && c->numbers[0] <= INT64_MAX)
            (void)json_object_set_new(row, members[i].key,
                                      json_integer((json_int_t)(c->numbers[0] / members[i].unit)));
    }
    rec_prepare(r, SIM_FN_nvmlDeviceGetFieldValues, ask_fec, device)->key = link;
    if (rec_ask(r) == NVML_SUCCESS)
        (void)json_object_set_new(row, "fec", json_string(r->call->text));
    add_remote(r, index, link, row);
    /* Before R470 the driver does not report switches: a remote device that links to GPUs but is
     * not one is a switch. */
    if (r->devices[index].linked && !json_object_get(row, "remote_type") &&
        !json_object_get(row, "peer"))
        (void)json_object_set_new(row, "remote_type", json_integer(NVML_NVLINK_DEVICE_TYPE_SWITCH));
    return row;
}

json_t *rec_links(struct recorder *r, unsigned int index)
{
    json_t *rows = json_array();
    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        rec_prepare(r, SIM_FN_nvmlDeviceGetNvLinkState, ask_state, r->devices[index].handle)->key =
            link;
        nvmlReturn_t code = rec_ask(r);
        if (link == 0 && code != NVML_SUCCESS && code != NVML_ERROR_INVALID_ARGUMENT) {
            json_decref(rows);
            return rec_doc_code(code);
        }
        if (code != NVML_SUCCESS)
            break;
        (void)json_array_append_new(rows, ask_link(r, index, link));
    }
    return rows;
}

/* ------------------------------------------------------------------------- topology */

static nvmlReturn_t ask_level(struct rec_call *c)
{
    nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_INTERNAL;
    nvmlReturn_t code = c->api->nvmlDeviceGetTopologyCommonAncestor(c->device, c->handle, &level);
    c->numbers[0] = level;
    return code;
}

static nvmlReturn_t ask_p2p(struct rec_call *c)
{
    nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_UNKNOWN;
    nvmlReturn_t code = c->api->nvmlDeviceGetP2PStatus(c->device, c->handle,
                                                       (nvmlGpuP2PCapsIndex_t)c->key, &status);
    c->numbers[0] = status;
    return code;
}

static bool ask_pair(struct recorder *r, unsigned int a, unsigned int b, enum sim_function function,
                     nvmlReturn_t (*ask)(struct rec_call *), unsigned int key, uint64_t *ret)
{
    struct rec_call *c = rec_prepare(r, function, ask, r->devices[a].handle);
    c->handle = r->devices[b].handle;
    c->key = key;
    bool ok = r->devices[a].code == NVML_SUCCESS && r->devices[b].code == NVML_SUCCESS &&
              rec_ask(r) == NVML_SUCCESS;
    *ret = c->numbers[0];
    return ok;
}

static const char *level_name(uint64_t level)
{
    switch ((nvmlGpuTopologyLevel_t)level) {
    case NVML_TOPOLOGY_SINGLE:
        return "PIX";
    case NVML_TOPOLOGY_MULTIPLE:
        return "PXB";
    case NVML_TOPOLOGY_HOSTBRIDGE:
        return "PHB";
    case NVML_TOPOLOGY_NODE:
        return "NODE";
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SYSTEM:
        break;
    }
    return "SYS";
}

/* Machine files determine the level by the XOR of two indices; adds a note if that does not fit
 * this machine. */
static json_t *levels(struct recorder *r)
{
    uint64_t by_xor[SIM_MAX_DEVICES] = {0}, level;
    bool told[SIM_MAX_DEVICES] = {false};
    bool regular = true;
    unsigned int last = 0;
    for (unsigned int a = 0; a < r->device_count; a++)
        for (unsigned int b = a + 1; b < r->device_count; b++) {
            if (!ask_pair(r, a, b, SIM_FN_nvmlDeviceGetTopologyCommonAncestor, ask_level, 0,
                          &level))
                return NULL;
            unsigned int x = a ^ b;
            regular &= !told[x] || by_xor[x] == level;
            by_xor[x] = level;
            told[x] = true;
            last = x > last ? x : last;
        }
    if (!regular)
        rec_doc_note(&r->doc, "topology: not a tree of equal halves; some levels are wrong");
    /* The last entry applies to all further ones. */
    while (last > 1 && (!told[last] || !told[last - 1] || by_xor[last] == by_xor[last - 1]))
        last--;
    json_t *out = json_array();
    for (unsigned int x = 1; x <= last && x <= SIM_MAX_LEVELS; x++)
        (void)json_array_append_new(out, json_string(level_name(by_xor[told[x] ? x : x - 1])));
    return out;
}

/* What GPUs without a link between them support. */
static const char *p2p(struct recorder *r)
{
    static const char *const letters[] = {
        [NVML_P2P_STATUS_OK] = "OK",
        [NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED] = "CNS",
        [NVML_P2P_STATUS_GPU_NOT_SUPPORTED] = "GNS",
        [NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED] = "TNS",
        [NVML_P2P_STATUS_DISABLED_BY_REGKEY] = "DR",
        [NVML_P2P_STATUS_NOT_SUPPORTED] = "NS",
        [NVML_P2P_STATUS_UNKNOWN] = "U",
    };
    const char *found = NULL;
    uint64_t nvlink, status;
    for (unsigned int a = 0; a < r->device_count; a++)
        for (unsigned int b = a + 1; b < r->device_count; b++) {
            if (!ask_pair(r, a, b, SIM_FN_nvmlDeviceGetP2PStatus, ask_p2p,
                          NVML_P2P_CAPS_INDEX_NVLINK, &nvlink))
                continue;
            if (nvlink == NVML_P2P_STATUS_OK)
                r->devices[a].linked = r->devices[b].linked = true;
            else if (!found &&
                     ask_pair(r, a, b, SIM_FN_nvmlDeviceGetP2PStatus, ask_p2p,
                              NVML_P2P_CAPS_INDEX_READ, &status) &&
                     status < GP_ARRAY_LEN(letters))
                found = letters[status];
        }
    return found;
}

/* ------------------------------------------------------------------------- affinity */

enum { MASK_WORDS = 4096 / 64, MASK_BITS = MASK_WORDS * 64 };

/* "0-51,104-155" from the set bits. */
static nvmlReturn_t put_mask(struct rec_call *c, const unsigned long *mask, nvmlReturn_t code)
{
    const size_t word = sizeof(*mask) * CHAR_BIT;
    size_t len = 0;
    for (size_t bit = 0; code == NVML_SUCCESS && bit < MASK_BITS && len < sizeof(c->text); bit++) {
        size_t end = bit;
        while (end < MASK_BITS && mask[end / word] >> end % word & 1)
            end++;
        if (end == bit)
            continue;
        len += (size_t)snprintf(c->text + len, sizeof(c->text) - len, "%s%zu", len ? "," : "", bit);
        if (end > bit + 1 && len < sizeof(c->text))
            len += (size_t)snprintf(c->text + len, sizeof(c->text) - len, "-%zu", end - 1);
        bit = end;
    }
    return code == NVML_SUCCESS && len == 0 ? NVML_ERROR_NOT_SUPPORTED : code;
}

static nvmlReturn_t ask_cpus(struct rec_call *c)
{
    unsigned long mask[MASK_WORDS] = {0};
    return put_mask(c, mask, c->api->nvmlDeviceGetCpuAffinity(c->device, MASK_WORDS, mask));
}

static nvmlReturn_t ask_nodes(struct rec_call *c)
{
    unsigned long mask[MASK_WORDS] = {0};
    return put_mask(
        c, mask,
        c->api->nvmlDeviceGetMemoryAffinity(c->device, MASK_WORDS, mask, 0 /* of the node */));
}

/* Distributes the GPUs evenly over the sockets, with a number of sockets that matches, if there is
 * one. */
static json_t *sockets(struct recorder *r, const char *key, enum sim_function function,
                       nvmlReturn_t (*ask)(struct rec_call *))
{
    const char *texts[SIM_MAX_DEVICES];
    unsigned int n = r->device_count;
    for (unsigned int i = 0; i < n; i++) {
        (void)rec_prepare(r, function, ask, r->devices[i].handle);
        if (r->devices[i].code != NVML_SUCCESS || rec_ask(r) != NVML_SUCCESS)
            return NULL;
        texts[i] = rec_doc_text(&r->doc, r->call->text);
    }
    for (unsigned int count = 1; count <= n && count <= SIM_MAX_SOCKETS; count++) {
        bool even = true;
        const char *of_socket[SIM_MAX_SOCKETS] = {NULL};
        for (unsigned int i = 0; i < n; i++) {
            const char **of = &of_socket[i * count / n];
            even &= !*of || strcmp(*of, texts[i]) == 0;
            *of = texts[i];
        }
        if (!even)
            continue;
        json_t *out = json_array();
        for (unsigned int s = 0; s < count; s++)
            (void)json_array_append_new(out, json_string(of_socket[s]));
        return out;
    }
    rec_doc_note(&r->doc, "topology: the %s of the GPUs do not fit into a machine file", key);
    return NULL;
}

json_t *rec_topology(struct recorder *r)
{
    (void)snprintf(r->where, sizeof(r->where), "topology");
    r->timeouts = 0;
    json_t *out = json_object();
    json_t *parts[] = {
        levels(r),
        sockets(r, "cpus", SIM_FN_nvmlDeviceGetCpuAffinity, ask_cpus),
        sockets(r, "nodes", SIM_FN_nvmlDeviceGetMemoryAffinity, ask_nodes),
    };
    static const char *const keys[] = {"levels", "cpus", "nodes"};
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++)
        if (json_array_size(parts[i]) > 0)
            (void)json_object_set_new(out, keys[i], parts[i]);
        else
            json_decref(parts[i]);
    const char *status = p2p(r);
    if (status)
        (void)json_object_set_new(out, "p2p", json_string(status));
    if (json_object_size(out) > 0)
        return out;
    json_decref(out);
    return NULL;
}
