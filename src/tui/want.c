#include "tui/want.h"

enum { HOST_EVERY_MS = 2000 }; /* reading them takes longer than reading a GPU */

static const enum gp_metric wanted[] = {
    GP_HOST_NAME,
    GP_HOST_CPU,
    GP_HOST_CPU_COUNT,
    GP_HOST_LOAD,
    GP_HOST_MEMORY_TOTAL,
    GP_HOST_MEMORY_AVAILABLE,
    GP_HOST_SWAP_TOTAL,
    GP_HOST_SWAP_USED,
    GP_DRIVER_VERSION,
    GP_CUDA_VERSION,
    GP_NAME,
    GP_UUID,
    GP_STATUS,
    GP_STATUS_TEXT,
    GP_UTILIZATION_GPU,
    GP_UTILIZATION_MEMORY,
    GP_UTILIZATION_ENCODER,
    GP_UTILIZATION_DECODER,
    GP_MEMORY_USED,
    GP_MEMORY_TOTAL,
    GP_MEMORY_RESERVED,
    GP_MEMORY_UNATTRIBUTED,
    GP_TEMPERATURE_GPU,
    GP_TEMPERATURE_MEMORY,
    GP_THRESHOLD_SLOWDOWN,
    GP_THRESHOLD_MEMORY_MAX,
    GP_FAN_SPEED,
    GP_POWER_DRAW,
    GP_POWER_LIMIT_ENFORCED,
    GP_PSTATE,
    GP_CLOCK_SM,
    GP_CLOCK_MEMORY,
    GP_REASONS_ACTIVE,
    GP_PCIE_GEN,
    GP_PCIE_GEN_MAX,
    GP_PCIE_WIDTH,
    GP_PCIE_WIDTH_MAX,
    GP_RECOVERY_ACTION,
    GP_ECC_UNCORRECTED_VOLATILE,
    GP_REMAPPED_PENDING,
    GP_REMAPPED_FAILURE,
    GP_RETIRED_PENDING,
    GP_MIG_PROFILE,
    GP_MIG_GPU_INSTANCE,
    GP_MIG_COMPUTE_INSTANCE,
    GP_RESERVATION_USER,
    GP_RESERVATION_NAME,
    GP_RESERVATION_SINCE,
    GP_PID,
    GP_PROCESS_TYPE,
    GP_PROCESS_MEMORY,
    GP_PROCESS_SUSPENDED,
    GP_PROCESS_IDLE,
    GP_PROCESS_LAST_ACTIVE,
    GP_PROCESS_SM,
    GP_PROCESS_MEM,
    GP_PROCESS_ENC,
    GP_PROCESS_DEC,
    GP_PROCESS_USER,
    GP_PROCESS_COMMAND,
    GP_PROCESS_CPU,
    GP_PROCESS_RSS,
    GP_PROCESS_START,
    GP_PROCESS_PPID,
    GP_PROCESS_STATE,
    GP_PROCESS_CONTAINER,
    GP_PROCESS_CONTAINER_NAME,
    GP_PROCESS_ORIGIN,
};

/* Metrics shown only on cards: an older driver takes 20 ms to measure them. */
static const enum gp_metric rates[] = {
    GP_PCIE_TX, GP_PCIE_RX, GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX, GP_GPM_SM,
};

struct gp_want gp_top_want(void)
{
    struct gp_want want = {.host_every_ns = HOST_EVERY_MS * GP_NS_PER_MS,
                           .mig = true,
                           .processes = true,
                           .process_names = true,
                           .events = gp_event_bit(GP_EVENT_XID)};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want.metrics, wanted[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(rates); i++)
        gp_metric_set_add(&want.more, rates[i]);
    return want;
}
