/* The exported functions about NVLinks and topology, and the link fields. */
#include "sim/driver.h"

#include "base/clock.h"
#include "sim/setting.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- links */

enum { BUSY_SHARE_PCT = 25 }; /* of a link's bandwidth, used by a GPU at full load */

/* In MIG mode, and on a MIG device, the driver refuses all link queries. */
static const struct sim_rows *links_of(const struct sim_live *live, const struct sim_device *device)
{
    static const struct sim_rows none = {.code = NVML_ERROR_NOT_SUPPORTED};
    struct sim_value mig = sim_live_value(live, device, SIM_MIG_CURRENT);
    bool refused = device->parent || (mig.code == NVML_SUCCESS && mig.number == 1);
    return refused ? &none : &device->lists.rows[SIM_LIST_LINKS];
}

/* The GPU at the remote end; NULL if it is not a GPU, or not in the machine. */
static const struct sim_device *peer_of(const struct sim_machine *machine,
                                        const struct sim_device *device,
                                        const struct sim_rows *links, size_t link)
{
    uint64_t index = device->index ^ sim_cell_number(links, link, SIM_LINKS_PEER, 0);
    bool given = sim_cell(links, link, SIM_LINKS_PEER)->code == NVML_SUCCESS;
    return given && index < machine->device_count ? &machine->devices[index] : NULL;
}

/* A link to a missing GPU is down. */
static bool is_up(const struct sim_machine *machine, const struct sim_device *device,
                  const struct sim_rows *links, size_t link)
{
    bool led_to_gpu = sim_cell(links, link, SIM_LINKS_PEER)->code == NVML_SUCCESS;
    return sim_cell_number(links, link, SIM_LINKS_STATE, 1) == 1 &&
           (!led_to_gpu || peer_of(machine, device, links, link));
}

static nvmlIntNvLinkDeviceType_t remote_type(const struct sim_rows *links, size_t link)
{
    bool led_to_gpu = sim_cell(links, link, SIM_LINKS_PEER)->code == NVML_SUCCESS;
    uint64_t type =
        sim_cell_number(links, link, SIM_LINKS_TYPE,
                        led_to_gpu ? NVML_NVLINK_DEVICE_TYPE_GPU : NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
    return (nvmlIntNvLinkDeviceType_t)type;
}

/* The traffic of the file's workload since this machine was started: it grows with time. */
static uint64_t traffic_kib(const struct sim_live *live, const struct sim_device *device,
                            const struct sim_rows *links, size_t link)
{
    uint64_t pct = 0;
    for (size_t i = 0; i < device->process_count; i++)
        pct += device->processes[i].util_pct;
    if (live->still || pct == 0)
        return 0;
    uint64_t mbps = sim_cell_number(links, link, SIM_LINKS_SPEED, 0);
    uint64_t now_ns = gp_clock_mono_ns();
    double speed_kib = (double)mbps * 1e6 / 1024;
    double share = (double)(pct < 100 ? pct : 100) * BUSY_SHARE_PCT / 1e4;
    return (uint64_t)(speed_kib * share * ((double)now_ns / 1e9));
}

static const struct {
    unsigned int id;
    enum sim_cell cell;
    bool traffic, bytes;
} link_fields[] = {
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, SIM_LINKS_TX, true, false},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, SIM_LINKS_RX, true, false},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, SIM_LINKS_TX, true, false},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, SIM_LINKS_RX, true, false},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, SIM_LINKS_TX, true, true},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, SIM_LINKS_RX, true, true},
    {NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, SIM_LINKS_REMOTE_LINK, false, false},
    {NVML_FI_DEV_NVLINK_GET_SPEED, SIM_LINKS_SPEED, false, false},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, SIM_LINKS_SPEED, false, false},
    {NVML_FI_DEV_NVLINK_GET_POWER_STATE, SIM_LINKS_POWER, false, false},
    {NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, SIM_LINKS_REPLAY, false, false},
    {NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, SIM_LINKS_RECOVERY, false, false},
    {NVML_FI_DEV_NVLINK_ERROR_DL_CRC, SIM_LINKS_CRC_FLIT, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, SIM_LINKS_RX_ERRORS, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, SIM_LINKS_TX_PACKETS, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, SIM_LINKS_RX_PACKETS, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, SIM_LINKS_MALFORMED, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, SIM_LINKS_OVERRUN, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, SIM_LINKS_RX_REMOTE, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, SIM_LINKS_RX_GENERAL, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, SIM_LINKS_INTEGRITY, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, SIM_LINKS_DISCARDS, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, SIM_LINKS_RECOVERIES, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, SIM_LINKS_RECOVERED, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, SIM_LINKS_UNRECOVERED, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, SIM_LINKS_EFFECTIVE, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, SIM_LINKS_EFFECTIVE_BER, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, SIM_LINKS_SYMBOL, false, false},
    {NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, SIM_LINKS_SYMBOL_BER, false, false},
};

/* Sums of error counters over all links. */
static const struct {
    unsigned int id;
    enum sim_cell cell;
} link_sums[] = {
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, SIM_LINKS_CRC_FLIT},
    {NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, SIM_LINKS_CRC_DATA},
    {NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, SIM_LINKS_REPLAY},
    {NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, SIM_LINKS_RECOVERY},
};

/* NVLink 5 counts bytes in its own fields, earlier versions KiB. */
static bool counts_bytes(const struct sim_rows *links)
{
    return links->count > 0 && sim_cell_number(links, 0, SIM_LINKS_VERSION, 0) >= 7;
}

/* A cell that may be an error counter, which a client may have reset. */
static struct sim_value count_of_link(const struct sim_live *live, const struct sim_device *device,
                                      const struct sim_rows *links, size_t link, enum sim_cell cell)
{
    struct sim_value v = *sim_cell(links, link, cell);
    bool counts = cell >= SIM_LINKS_REPLAY && cell <= SIM_LINKS_DISCARDS;
    uint64_t cleared;
    if (counts && v.code == NVML_SUCCESS && link < 64 &&
        sim_setting_get(live, device, SIM_SET_LINKS_CLEARED, &cleared) && cleared >> link & 1)
        v.number = 0;
    return v;
}

/* A traffic field of another generation. */
static bool counts_otherwise(const struct sim_rows *links, size_t row)
{
    return link_fields[row].traffic && link_fields[row].bytes != counts_bytes(links);
}

static struct sim_value field_of_link(const struct sim_live *live, const struct sim_device *device,
                                      const struct sim_rows *links, size_t link, size_t row)
{
    struct sim_value v = count_of_link(live, device, links, link, link_fields[row].cell);
    if (!is_up(live->machine, device, links, link) || counts_otherwise(links, row))
        v.code = NVML_ERROR_NOT_SUPPORTED;
    if (v.code != NVML_SUCCESS || !link_fields[row].traffic)
        return v;
    v.number += traffic_kib(live, device, links, link);
    if (link_fields[row].id == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX ||
        link_fields[row].id == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX)
        v.number += v.number / 16; /* protocol overhead */
    if (link_fields[row].bytes)
        v.number *= 1024;
    return v;
}

static struct sim_value sum_of_links(const struct sim_live *live, const struct sim_device *device,
                                     const struct sim_rows *links, size_t row)
{
    struct sim_value sum = {.code = NVML_ERROR_NOT_SUPPORTED};
    for (size_t i = 0; i < links->count; i++) {
        struct sim_value v = field_of_link(live, device, links, i, row);
        if (v.code != NVML_SUCCESS)
            continue;
        sum.code = NVML_SUCCESS;
        sum.number += v.number;
    }
    return sum;
}

/* The fields without a scope. */
static bool field_of_gpu(const struct sim_live *live, const struct sim_device *device,
                         const struct sim_rows *links, unsigned int id, struct sim_value *ret)
{
    ret->code = links->code;
    ret->number = 0;
    if (id == NVML_FI_DEV_NVLINK_LINK_COUNT) {
        ret->number = links->count;
        return true;
    }
    for (size_t i = 0; i < links->count; i++)
        ret->number += remote_type(links, i) == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    if (id == NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT)
        return true;
    for (size_t row = 0; row < GP_ARRAY_LEN(link_sums); row++) {
        if (link_sums[row].id != id)
            continue;
        ret->number = 0;
        for (size_t i = 0; i < links->count; i++) {
            struct sim_value v = count_of_link(live, device, links, i, link_sums[row].cell);
            ret->number += v.code == NVML_SUCCESS ? v.number : 0;
        }
        if (links->count == 0 || sim_cell(links, 0, link_sums[row].cell)->code != NVML_SUCCESS)
            ret->code = NVML_ERROR_NOT_SUPPORTED;
        return true;
    }
    return false;
}

/* The number of blocks with this many corrected symbols. */
static struct sim_value fec_of_link(const struct sim_rows *links, size_t link, unsigned int symbols)
{
    struct sim_value v = {.code = sim_cell(links, link, SIM_LINKS_FEC)->code};
    const char *text = sim_cell_text(links, link, SIM_LINKS_FEC);
    for (unsigned int i = 0; v.code == NVML_SUCCESS && i <= symbols; i++) {
        char *end;
        v.number = strtoull(text, &end, 10);
        text = end;
    }
    return v;
}

struct sim_value sim_link_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope)
{
    const struct sim_rows *links = links_of(live, device);
    struct sim_value v;
    if (field_of_gpu(live, device, links, id, &v))
        return v;
    v.code = links->code == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : links->code;
    if (id == NVML_FI_DEV_NVLINK_GET_STATE && links->code == NVML_SUCCESS) {
        v.code = scope < links->count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        v.number = scope < links->count && is_up(live->machine, device, links, scope);
    }
    if (id - NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 < 16 && scope < links->count)
        return fec_of_link(links, scope, id - NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0);
    for (size_t row = 0; row < GP_ARRAY_LEN(link_fields); row++) {
        if (link_fields[row].id != id || links->code != NVML_SUCCESS)
            continue;
        if (scope == UINT32_MAX && link_fields[row].traffic && !link_fields[row].bytes)
            return sum_of_links(live, device, links, row);
        v.code = NVML_ERROR_INVALID_ARGUMENT;
        return scope < links->count ? field_of_link(live, device, links, scope, row) : v;
    }
    return v;
}

/* Starts a call about one link; an inactive link has no other data. */
static nvmlReturn_t enter_link(struct sim_call *call, enum sim_function function,
                               nvmlDevice_t device, unsigned int link, bool args_ok,
                               const struct sim_rows **ret)
{
    nvmlReturn_t code = sim_enter_device(call, function, device, args_ok);
    if (code != NVML_SUCCESS)
        return code;
    *ret = links_of(&call->live, call->device);
    if ((*ret)->code != NVML_SUCCESS)
        return (*ret)->code;
    if (link >= (*ret)->count)
        return NVML_ERROR_INVALID_ARGUMENT;
    bool up = is_up(call->machine, call->device, *ret, link);
    return up || function == SIM_FN_nvmlDeviceGetNvLinkState ? NVML_SUCCESS
                                                             : NVML_ERROR_NOT_SUPPORTED;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                                 nvmlEnableState_t *state)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code =
        enter_link(&call, SIM_FN_nvmlDeviceGetNvLinkState, device, link, state != NULL, &links);
    if (code == NVML_SUCCESS)
        *state = is_up(call.machine, call.device, links, link) ? NVML_FEATURE_ENABLED
                                                               : NVML_FEATURE_DISABLED;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                                   unsigned int *version)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code =
        enter_link(&call, SIM_FN_nvmlDeviceGetNvLinkVersion, device, link, version != NULL, &links);
    if (code == NVML_SUCCESS)
        *version = (unsigned int)sim_cell_number(links, link, SIM_LINKS_VERSION, 0);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                      nvmlNvLinkCapability_t capability,
                                                      unsigned int *result)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code = enter_link(&call, SIM_FN_nvmlDeviceGetNvLinkCapability, device, link,
                                   result && capability < NVML_NVLINK_CAP_COUNT, &links);
    if (code == NVML_SUCCESS)
        *result = sim_cell_number(links, link, SIM_LINKS_CAPABILITIES, 0) >> capability & 1;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                            nvmlIntNvLinkDeviceType_t *type)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code = enter_link(&call, SIM_FN_nvmlDeviceGetNvLinkRemoteDeviceType, device, link,
                                   type != NULL, &links);
    if (code == NVML_SUCCESS)
        *type = remote_type(links, link);
    return sim_leave(code);
}

/* The subsystem id is undefined in the real call too. */
static nvmlReturn_t remote_pci(enum sim_function function, nvmlDevice_t device, unsigned int link,
                               nvmlPciInfo_t *pci, size_t size)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code = enter_link(&call, function, device, link, pci != NULL, &links);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    nvmlPciInfo_t info = {0};
    const struct sim_device *peer = peer_of(call.machine, call.device, links, link);
    if (peer) {
        info.domain = peer->pci_domain;
        info.bus = peer->pci_bus;
        info.device = peer->pci_slot;
        info.pciDeviceId = peer->pci_device_id;
    } else if (sscanf(sim_cell_text(links, link, SIM_LINKS_REMOTE), "%8x:%2x:%2x", &info.domain,
                      &info.bus, &info.device) != 3) {
        return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    }
    (void)snprintf(info.busIdLegacy, sizeof(info.busIdLegacy), "%04X:%02X:%02X.0",
                   info.domain & 0xffff, info.bus & 0xff, info.device & 0xff);
    (void)snprintf(info.busId, sizeof(info.busId), "%08X:%02X:%02X.0", info.domain, info.bus,
                   info.device);
    memcpy(pci, &info, size);
    return sim_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                                         nvmlPciInfo_t *pci)
{
    return remote_pci(SIM_FN_nvmlDeviceGetNvLinkRemotePciInfo, device, link, pci,
                      offsetof(nvmlPciInfo_t, busId));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                            nvmlPciInfo_t *pci)
{
    return remote_pci(SIM_FN_nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, pci, sizeof(*pci));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                                        nvmlNvLinkErrorCounter_t counter,
                                                        unsigned long long *count)
{
    static const enum sim_cell cells[NVML_NVLINK_ERROR_COUNT] = {
        [NVML_NVLINK_ERROR_DL_REPLAY] = SIM_LINKS_REPLAY,
        [NVML_NVLINK_ERROR_DL_RECOVERY] = SIM_LINKS_RECOVERY,
        [NVML_NVLINK_ERROR_DL_CRC_FLIT] = SIM_LINKS_CRC_FLIT,
        [NVML_NVLINK_ERROR_DL_CRC_DATA] = SIM_LINKS_CRC_DATA,
        [NVML_NVLINK_ERROR_DL_ECC_DATA] = SIM_LINKS_ECC,
    };
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code = enter_link(&call, SIM_FN_nvmlDeviceGetNvLinkErrorCounter, device, link,
                                   count && counter < NVML_NVLINK_ERROR_COUNT, &links);
    struct sim_value v = {.code = code};
    if (code == NVML_SUCCESS)
        v = count_of_link(&call.live, call.device, links, link, cells[counter]);
    if (v.code == NVML_SUCCESS)
        *count = v.number;
    return sim_leave(v.code);
}

static nvmlReturn_t clear_link(const struct sim_call *call, unsigned int link)
{
    uint64_t cleared = 0;
    if (sim_state_lock(call->live.state, NULL) < 0)
        return NVML_ERROR_UNKNOWN;
    (void)sim_setting_get(&call->live, call->device, SIM_SET_LINKS_CLEARED, &cleared);
    sim_setting_set(&call->live, call->device, SIM_SET_LINKS_CLEARED,
                    cleared | UINT64_C(1) << link);
    sim_state_unlock(call->live.state);
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int link)
{
    struct sim_call call;
    const struct sim_rows *links;
    nvmlReturn_t code = enter_link(&call, SIM_FN_nvmlDeviceResetNvLinkErrorCounters, device, link,
                                   link < NVML_NVLINK_MAX_LINKS, &links);
    if (code == NVML_SUCCESS && !sim_setting_is_allowed())
        code = NVML_ERROR_NO_PERMISSION;
    return sim_leave(code == NVML_SUCCESS ? clear_link(&call, link) : code);
}

/* ------------------------------------------------------------------------- topology */

/* A call about two GPUs: the second handle must be valid as well. */
static nvmlReturn_t enter_pair(struct sim_call *call, enum sim_function function, nvmlDevice_t a,
                               nvmlDevice_t b, bool args_ok, const struct sim_device **ret_other)
{
    nvmlReturn_t code = sim_enter_device(call, function, a, args_ok);
    *ret_other = code == NVML_SUCCESS ? sim_find_device(function, b) : NULL;
    if (code == NVML_SUCCESS && !*ret_other)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS && (call->device->parent || (*ret_other)->parent))
        code = NVML_ERROR_NOT_SUPPORTED;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device,
                                                            nvmlDevice_t other_device,
                                                            nvmlGpuTopologyLevel_t *level)
{
    struct sim_call call;
    const struct sim_device *other;
    nvmlReturn_t code = enter_pair(&call, SIM_FN_nvmlDeviceGetTopologyCommonAncestor, device,
                                   other_device, level != NULL, &other);
    if (code == NVML_SUCCESS)
        code = sim_topology_level(&call.machine->topology, call.device->index, other->index, level);
    return sim_leave(code);
}

static bool are_linked(const struct sim_live *live, const struct sim_device *a,
                       const struct sim_device *b)
{
    struct sim_value ours, theirs;
    const struct sim_rows *links = links_of(live, a);
    for (size_t i = 0; i < links->count; i++)
        if (peer_of(live->machine, a, links, i) == b)
            return true;
    (void)field_of_gpu(live, a, links, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, &ours);
    (void)field_of_gpu(live, b, links_of(live, b), NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT,
                       &theirs);
    return ours.number > 0 && theirs.number > 0;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other_device,
                                               nvmlGpuP2PCapsIndex_t index,
                                               nvmlGpuP2PStatus_t *status)
{
    struct sim_call call;
    const struct sim_device *other;
    nvmlReturn_t code = enter_pair(&call, SIM_FN_nvmlDeviceGetP2PStatus, device, other_device,
                                   status && index < NVML_P2P_CAPS_INDEX_COUNT, &other);
    if (code == NVML_SUCCESS && call.machine->topology.level_count == 0)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS) {
        bool linked = are_linked(&call.live, call.device, other);
        bool only_linked =
            index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS;
        *status = linked        ? NVML_P2P_STATUS_OK
                  : only_linked ? NVML_P2P_STATUS_NOT_SUPPORTED
                                : call.machine->topology.p2p;
    }
    return sim_leave(code);
}

/* The set of the GPU's socket. */
static nvmlReturn_t affinity(enum sim_function function, nvmlDevice_t device, unsigned int words,
                             unsigned long *mask, bool nodes)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, mask && words > 0);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_topology *t = &call.machine->topology;
    size_t sockets = nodes ? t->node_count : t->cpu_count;
    if (call.device->parent || sockets == 0)
        return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    size_t socket = call.device->index * sockets / call.machine->device_count;
    memset(mask, 0, words * sizeof(*mask));
    (void)sim_topology_mask(nodes ? t->nodes[socket] : t->cpus[socket],
                            words * CHAR_BIT * sizeof(*mask), mask);
    return sim_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words,
                                                 unsigned long *mask)
{
    return affinity(SIM_FN_nvmlDeviceGetCpuAffinity, device, words, mask, false);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words,
                                                            unsigned long *mask,
                                                            nvmlAffinityScope_t scope)
{
    return affinity(SIM_FN_nvmlDeviceGetCpuAffinityWithinScope, device, words,
                    scope <= 1 ? mask : NULL, false);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words,
                                                    unsigned long *mask, nvmlAffinityScope_t scope)
{
    return affinity(SIM_FN_nvmlDeviceGetMemoryAffinity, device, words, scope <= 1 ? mask : NULL,
                    true);
}
