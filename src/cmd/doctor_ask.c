/* What the doctor asks the driver. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"

#include "base/err.h"
#include "doctor/exam.h"
#include "model/snapshot.h"

enum { TIMEOUT_S = 2 };

/* The metrics that the health checks need. */
static const enum gp_metric wanted[] = {
    GP_COUNT, GP_EXCLUDED,
    /* identity */
    GP_NAME, GP_STATUS, GP_PCI_BUS_ID, GP_SERIAL, GP_MINOR_NUMBER, GP_BRAND, GP_ARCHITECTURE,
    GP_INFOROM_CHECKSUM, GP_DRIVER_VERSION, GP_COMPUTE_CAP, GP_UUID,
    /* memory */
    GP_MEMORY_TOTAL, GP_MEMORY_USED, GP_MEMORY_RESERVED, GP_MEMORY_FREE, GP_MEMORY_PROCESSES,
    GP_MEMORY_UNATTRIBUTED, GP_BAR1_TOTAL,
    /* temperature and power */
    GP_TEMPERATURE_GPU, GP_TEMPERATURE_TLIMIT, GP_TEMPERATURE_MEMORY, GP_THRESHOLD_SLOWDOWN,
    GP_THRESHOLD_GPU_MAX, GP_THRESHOLD_MEMORY_MAX, GP_TLIMIT_SLOWDOWN, GP_POWER_LIMIT,
    GP_POWER_LIMIT_DEFAULT, GP_POWER_SOURCE, GP_REASON_HW_SLOWDOWN, GP_REASON_HW_THERMAL,
    GP_REASON_HW_POWER_BRAKE, GP_REASON_SW_THERMAL, GP_COUNTER_HW_THERMAL,
    GP_COUNTER_HW_POWER_BRAKE,
    /* memory errors */
    GP_ECC_MODE, GP_ECC_MODE_PENDING, GP_ECC_MODE_DEFAULT, GP_ECC_UNCORRECTED_VOLATILE,
    GP_ECC_SRAM_AGGREGATE_PARITY, GP_ECC_SRAM_AGGREGATE_SECDED, GP_ECC_SRAM_THRESHOLD,
    GP_ECC_CHANNEL_REPAIR, GP_ECC_TPC_REPAIR, GP_ECC_UNREPAIRABLE, GP_RETIRED_SBE, GP_RETIRED_DBE,
    GP_RETIRED_PENDING, GP_REMAPPED_UNCORRECTABLE, GP_REMAPPED_PENDING, GP_REMAPPED_FAILURE,
    GP_HISTOGRAM_NONE,
    /* modes */
    GP_PERSISTENCE_MODE, GP_COMPUTE_MODE, GP_MIG_MODE, GP_MIG_MODE_PENDING, GP_RECOVERY_ACTION,
    GP_RESET_REQUIRED, GP_RESET_DRAIN, GP_DISPLAY_ACTIVE,
    /* connections */
    GP_FABRIC_STATE, GP_FABRIC_STATUS, GP_FABRIC_HEALTH, GP_FABRIC_BANDWIDTH,
    GP_FABRIC_CONFIGURATION, GP_NVLINK_COUNT, GP_NVLINK_ACTIVE, GP_LINK_REMOTE_TYPE,
    GP_LINK_UNRECOVERED, GP_PEER_NUMBER, GP_PEER_READ, GP_PEER_LINKS};

static struct gp_want want_all(void)
{
    struct gp_want want = {
        .processes = true,
        .mig = true,
        .lists = UINT32_C(1) << gp_list_index(GP_SCOPE_LINK) | UINT32_C(1)
                                                                   << gp_list_index(GP_SCOPE_PEER),
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want.metrics, wanted[i]);
    return want;
}

/* A copy of a machine's files has no driver to query, unless one is simulated. */
static bool has_driver(void)
{
    return gp_app_observed()->sim || !gp_app_observed()->prefix;
}

/* Takes a sample within the timeout; NULL: err has the reason. */
static struct gp_snapshot *sample(const struct gp_want *want, struct gp_err *err)
{
    static const struct gp_loop once = {.interval_ns = 0};
    struct gp_snapshot *snapshot = NULL;
    struct gp_sampler *sampler;
    if (gp_app_open(want, &once, &sampler, err) < 0)
        return NULL;
    if (gp_sampler_tick(sampler, &snapshot, err) < 0)
        snapshot = NULL;
    gp_app_close(sampler);
    return snapshot;
}

static bool has_silent_gpu(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].status == GP_STATUS_TIMEOUT)
            return true;
    return false;
}

struct gp_snapshot *gp_doctor_ask_driver(struct gp_exam *exam)
{
    struct gp_want want = want_all();
    struct gp_err err = {0};
    if (!has_driver())
        return NULL;
    gp_common()->timeout_ns = gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S);
    struct gp_snapshot *snapshot = sample(&want, &err);
    if (snapshot && has_silent_gpu(snapshot)) {
        /* querying a GPU for its peers waits for hanging ones */
        want.lists = 0;
        gp_snapshot_free(snapshot);
        snapshot = sample(&want, &err);
    }
    exam->driver_words = snapshot ? "" : gp_exam_text(exam, "%s", err.text);
    return snapshot;
}
