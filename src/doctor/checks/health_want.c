/* What the health checks read of the driver. */
#include "doctor/checks/health.h"

/* The metrics that no rule names. */
static const enum gp_metric wanted[] = {
    GP_COUNT, GP_EXCLUDED,
    /* identity */
    GP_NAME, GP_STATUS, GP_PCI_BUS_ID, GP_SERIAL, GP_MINOR_NUMBER, GP_BRAND, GP_ARCHITECTURE,
    GP_DRIVER_VERSION, GP_COMPUTE_CAP, GP_UUID,
    /* memory */
    GP_MEMORY_TOTAL, GP_MEMORY_USED, GP_MEMORY_RESERVED, GP_MEMORY_FREE, GP_MEMORY_PROCESSES,
    GP_MEMORY_UNATTRIBUTED, GP_BAR1_TOTAL,
    /* modes */
    GP_PERSISTENCE_MODE, GP_MIG_MODE, GP_MIG_MODE_PENDING, GP_DISPLAY_ACTIVE,
    /* processes */
    GP_PID, GP_PROCESS_TYPE,
    /* connections */
    GP_NVLINK_COUNT, GP_NVLINK_ACTIVE, GP_LINK_REMOTE_TYPE, GP_LINK_UNRECOVERED, GP_PEER_NUMBER,
    GP_PEER_READ, GP_PEER_LINKS};

static uint32_t list_of(enum gp_scope scope)
{
    return UINT32_C(1) << gp_list_index(scope);
}

struct gp_want gp_health_want(void)
{
    struct gp_want want = {
        .processes = true, .mig = true, .lists = list_of(GP_SCOPE_LINK) | list_of(GP_SCOPE_PEER)};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want.metrics, wanted[i]);
    gp_health_want_rules(&want.metrics, false);
    return want;
}
