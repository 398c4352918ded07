/* The connections of GPUs with each other and with CPUs.
 *
 * The driver's topology calls are not thread-safe (DCGM makes them on one thread), so they are made
 * under a lock. A thread whose call hangs keeps the lock; others wait for it for at most one
 * second. */
#include "source/nvml/lists.h"

#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_MS = 200 /* by then, the other GPUs are being read, too */ };

static bool lock_topology(struct nvml_device *device)
{
    struct timespec until;
    atomic_store_explicit(device->call, "topology of another GPU", memory_order_relaxed);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    return pthread_mutex_timedlock(&device->source->topology, &until) == 0;
}

static nvmlReturn_t unlock_topology(struct nvml_device *device, nvmlReturn_t rc)
{
    (void)pthread_mutex_unlock(&device->source->topology);
    return rc;
}

#define TOPOLOGY_CALL(device, name, ...)                                                           \
    (lock_topology(device) ? unlock_topology(device, NVML_CALL(device, name, __VA_ARGS__))         \
                           : NVML_ERROR_TIMEOUT)

/* ---- affinity ---- */

enum { MASK_WORDS = 64, BITS = CHAR_BIT * sizeof(unsigned long) };

static bool has_bit(const unsigned long *mask, size_t bit)
{
    return bit < MASK_WORDS * (size_t)BITS && mask[bit / BITS] >> bit % BITS & 1;
}

/* "0-31,64-95". */
static void put_mask(struct nvml_device *device, struct gp_value *out, const unsigned long *mask)
{
    char text[1000] = "";
    size_t n = 0;
    for (size_t bit = 0; bit < MASK_WORDS * (size_t)BITS && n + 32 < sizeof(text); bit++) {
        size_t first = bit;
        if (!has_bit(mask, bit))
            continue;
        while (has_bit(mask, bit + 1))
            bit++;
        n += (size_t)snprintf(text + n, sizeof(text) - n, first == bit ? "%s%zu" : "%s%zu-%zu",
                              n ? "," : "", first, bit);
    }
    if (n > 0)
        nvml_keep_text(device, out, text);
    else
        gp_value_set_absent(out, GP_STATUS_UNSUPPORTED, NULL, 0);
}

nvmlReturn_t nvml_read_cpu_affinity(struct nvml_device *device, const struct reader *reader,
                                    struct gp_value *out)
{
    (void)reader;
    unsigned long mask[MASK_WORDS] = {0};
    nvmlReturn_t rc =
        TOPOLOGY_CALL(device, nvmlDeviceGetCpuAffinity, device->handle, MASK_WORDS, mask);
    put_mask(device, out, mask);
    return rc;
}

nvmlReturn_t nvml_read_memory_affinity(struct nvml_device *device, const struct reader *reader,
                                       struct gp_value *out)
{
    (void)reader;
    unsigned long mask[MASK_WORDS] = {0};
    nvmlReturn_t rc =
        TOPOLOGY_CALL(device, nvmlDeviceGetMemoryAffinity, device->handle, MASK_WORDS, mask, 0);
    put_mask(device, out, mask);
    return rc;
}

/* ---- peers ---- */

/* nvidia-smi's words. */
static const struct code_name levels[] = {
    {NVML_TOPOLOGY_INTERNAL, "X"},
    {NVML_TOPOLOGY_SINGLE, "PIX"},
    {NVML_TOPOLOGY_MULTIPLE, "PXB"},
    {NVML_TOPOLOGY_HOSTBRIDGE, "PHB"},
    {NVML_TOPOLOGY_NODE, "NODE"},
    {NVML_TOPOLOGY_SYSTEM, "SYS"},
    {0, NULL},
};
static const struct code_name p2p_states[] = {
    {NVML_P2P_STATUS_OK, "OK"},
    {NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED, "CNS"},
    {NVML_P2P_STATUS_GPU_NOT_SUPPORTED, "GNS"},
    {NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED, "TNS"},
    {NVML_P2P_STATUS_DISABLED_BY_REGKEY, "DR"},
    {NVML_P2P_STATUS_NOT_SUPPORTED, "NS"},
    {NVML_P2P_STATUS_UNKNOWN, "U"},
    {0, NULL},
};

/* The destinations of this GPU's links, read once for all peers. */
struct own_links {
    bool known;
    unsigned count;
    nvmlPciInfo_t remote[NVML_NVLINK_MAX_LINKS];
    unsigned to_switch;
};

static nvmlReturn_t ask_own_links(struct nvml_device *device, struct own_links *links)
{
    unsigned count = 0;
    if (links->known)
        return NVML_SUCCESS;
    nvmlReturn_t rc = nvml_link_count(device, &count);
    for (unsigned i = 0; i < count && !nvml_return_ends_session(rc); i++) {
        rc = nvml_link_remote(device, i, &links->remote[links->count]);
        links->count += rc == NVML_SUCCESS;
    }
    if (count > 0 && !nvml_return_ends_session(rc) &&
        nvml_switch_links(device, device->handle, &links->to_switch) != NVML_SUCCESS)
        links->to_switch = 0;
    links->known = true;
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

/* Links that lead directly to the peer, otherwise, if both are connected to an NVSwitch, links
 * through that. */
static unsigned links_to(struct nvml_device *device, const struct own_links *own, nvmlDevice_t peer,
                         const nvmlPciInfo_t *pci)
{
    unsigned direct = 0;
    unsigned theirs = 0;
    for (unsigned i = 0; i < own->count; i++)
        direct += own->remote[i].domain == pci->domain && own->remote[i].bus == pci->bus &&
                  own->remote[i].device == pci->device;
    if (direct > 0 || own->to_switch == 0 ||
        nvml_switch_links(device, peer, &theirs) != NVML_SUCCESS)
        return direct;
    return own->to_switch < theirs ? own->to_switch : theirs;
}

static void put_connection(const struct nvml_rows *rows, size_t row, nvmlReturn_t rc,
                           nvmlGpuTopologyLevel_t level, unsigned links)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "NV%u", links);
    nvml_cell_number(rows, row, GP_PEER_LINKS, NVML_SUCCESS, links);
    nvml_cell_code(rows, row, GP_PEER_LEVEL, rc, levels, level);
    if (links > 0)
        nvml_cell_text(rows, row, GP_PEER_CONNECTION, NVML_SUCCESS, text);
    else
        nvml_cell_code(rows, row, GP_PEER_CONNECTION, rc, levels, level);
}

static void ask_p2p(const struct nvml_rows *rows, size_t row, nvmlDevice_t peer)
{
    static const enum gp_metric metrics[] = {
        [NVML_P2P_CAPS_INDEX_READ] = GP_PEER_READ,
        [NVML_P2P_CAPS_INDEX_WRITE] = GP_PEER_WRITE,
        [NVML_P2P_CAPS_INDEX_NVLINK] = GP_PEER_NVLINK,
        [NVML_P2P_CAPS_INDEX_ATOMICS] = GP_PEER_ATOMICS,
        [NVML_P2P_CAPS_INDEX_PROP] = GP_PEER_PCIE,
    };
    for (unsigned i = 0; i < GP_ARRAY_LEN(metrics); i++) {
        nvmlGpuP2PStatus_t state = NVML_P2P_STATUS_UNKNOWN;
        if (!nvml_cell_is_due(rows, row, metrics[i]))
            continue;
        nvmlReturn_t rc = TOPOLOGY_CALL(rows->device, nvmlDeviceGetP2PStatus, rows->device->handle,
                                        peer, (nvmlGpuP2PCapsIndex_t)i, &state);
        nvml_cell_code(rows, row, metrics[i], rc, p2p_states, state);
    }
}

static bool connection_is_due(const struct nvml_rows *rows, size_t row)
{
    bool a = nvml_cell_is_due(rows, row, GP_PEER_CONNECTION);
    bool b = nvml_cell_is_due(rows, row, GP_PEER_LEVEL);
    bool c = nvml_cell_is_due(rows, row, GP_PEER_LINKS);
    return a || b || c;
}

/* Reads everything about a peer whose handle is open. Failures of the peer only affect its row; its
 * own reading reports them. */
static nvmlReturn_t ask_peer(struct nvml_rows *rows, size_t row, nvmlDevice_t handle,
                             struct own_links *own)
{
    struct nvml_device *device = rows->device;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    nvmlPciInfo_t pci = {0};
    nvmlReturn_t rc = NVML_SUCCESS;
    if (nvml_cell_is_due(rows, row, GP_PEER_UUID)) {
        rc = NVML_CALL(device, nvmlDeviceGetUUID, handle, uuid, (unsigned)sizeof(uuid));
        nvml_cell_text(rows, row, GP_PEER_UUID, rc, uuid);
    }
    bool connection = connection_is_due(rows, row);
    if (nvml_cell_is_due(rows, row, GP_PEER_BUS_ID) || connection) {
        rc = NVML_CALL(device, nvmlDeviceGetPciInfo_v3, handle, &pci);
        nvml_cell_text(rows, row, GP_PEER_BUS_ID, rc, pci.busId);
    }
    if (connection) {
        nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
        rc = ask_own_links(device, own);
        if (rc != NVML_SUCCESS)
            return rc;
        rc = TOPOLOGY_CALL(device, nvmlDeviceGetTopologyCommonAncestor, device->handle, handle,
                           &level);
        put_connection(rows, row, rc, level, links_to(device, own, handle, &pci));
    }
    ask_p2p(rows, row, handle);
    return NVML_SUCCESS;
}

/* Makes all cells of the row absent, except for the peer's index. */
static void put_absent(const struct nvml_rows *rows, size_t row, enum gp_status status)
{
    for (int m = GP_PEER_NUMBER + 1; m <= GP_PEER_PCIE; m++)
        gp_value_set_absent(nvml_rows_cell(rows, row, (enum gp_metric)m), status, NULL,
                            rows->now_ns);
}

/* Whether a read of this GPU hangs, so that a call for it would hang, too. */
static bool hangs(struct nvml_source *source, unsigned index)
{
    const uint64_t since_ns =
        index < NVML_BOUND_MAX
            ? atomic_load_explicit(&source->reading_since_ns[index], memory_order_relaxed)
            : 0;
    return since_ns && gp_clock_mono_ns() > since_ns + GP_NS_PER_S;
}

/* All GPUs are read at about the same time. So that one that hangs costs its own row only, each is
 * asked about when its own first calls have returned. A GPU that is not selected is never read: it
 * is waited for until `patience_ms` is used up, together with the others like it. */
static bool await_peer(struct nvml_device *device, unsigned index, int *patience_ms)
{
    const struct timespec moment = {.tv_nsec = GP_NS_PER_MS};
    struct nvml_source *source = device->source;
    while (index < NVML_BOUND_MAX &&
           !atomic_load_explicit(&source->has_answered[index], memory_order_relaxed)) {
        bool is_read =
            atomic_load_explicit(&source->reading_since_ns[index], memory_order_relaxed) != 0;
        if (is_read && hangs(source, index))
            return false;
        if (!is_read && (*patience_ms)-- <= 0) { /* not waited for again */
            atomic_store_explicit(&source->has_answered[index], true, memory_order_relaxed);
            break;
        }
        /* whoever waits does not hang */
        if (device->index < NVML_BOUND_MAX)
            atomic_store_explicit(&source->reading_since_ns[device->index], gp_clock_mono_ns(),
                                  memory_order_relaxed);
        (void)nanosleep(&moment, NULL);
    }
    return !hangs(source, index);
}

nvmlReturn_t nvml_list_peers(struct nvml_rows *rows)
{
    int patience_ms = PATIENCE_MS;
    struct nvml_device *device = rows->device;
    struct own_links own = {0};
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned i = 0; i < device->source->count && rc == NVML_SUCCESS; i++) {
        nvmlDevice_t handle = NULL;
        if (i == device->index)
            continue;
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            break;
        size_t row = rows->list.count - 1;
        nvml_put_number(rows, GP_PEER_NUMBER, i);
        if (nvml_is_asleep(device->source, i)) {
            put_absent(rows, row, GP_STATUS_ASLEEP);
            continue;
        }
        if (!await_peer(device, i, &patience_ms)) {
            put_absent(rows, row, GP_STATUS_TIMEOUT);
            rows->is_partial = true;
            continue;
        }
        nvmlReturn_t held = NVML_CALL(device, nvmlDeviceGetHandleByIndex_v2, i, &handle);
        if (held == NVML_SUCCESS)
            rc = ask_peer(rows, row, handle, &own);
        else
            put_absent(rows, row, nvml_return_status(held));
    }
    return rc;
}
