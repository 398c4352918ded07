/* Readers for memory errors, confidential memory and the NVLink fabric. */
#include "source/nvml/readers.h"

#include <stdio.h>

nvmlReturn_t nvml_read_protected_memory(struct nvml_device *device, const struct reader *reader,
                                        struct gp_value *out)
{
    (void)reader;
    nvmlMemory_t memory = {0};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetConfComputeProtectedMemoryUsage, device->handle, &memory);
    gp_value_set_int(&out[0], (int64_t)memory.total, 0);
    gp_value_set_int(&out[1], (int64_t)memory.used, 0);
    gp_value_set_int(&out[2], (int64_t)memory.free, 0);
    return rc;
}

/* nvidia-smi has two names for errors of GPU memory; both metrics get the number. */
nvmlReturn_t nvml_read_ecc_place(struct nvml_device *device, const struct reader *reader,
                                 struct gp_value *out)
{
    unsigned long long count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMemoryErrorCounter, device->handle,
                                (nvmlMemoryErrorType_t)(reader->arg >> 8),
                                (nvmlEccCounterType_t)(reader->arg >> 4 & 15),
                                (nvmlMemoryLocation_t)(reader->arg & 15), &count);
    for (unsigned i = 0; i < reader->outs; i++)
        gp_value_set_int(&out[i], (int64_t)count, 0);
    return rc;
}

nvmlReturn_t nvml_read_sram_status(struct nvml_device *device, const struct reader *reader,
                                   struct gp_value *out)
{
    (void)reader;
    nvmlEccSramErrorStatus_t s = {.version = nvmlEccSramErrorStatus_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetSramEccErrorStatus, device->handle, &s);
    gp_value_set_int(&out[0], (int64_t)s.volatileUncParity, 0);
    gp_value_set_int(&out[1], (int64_t)s.volatileUncSecDed, 0);
    gp_value_set_int(&out[2], (int64_t)s.aggregateUncParity, 0);
    gp_value_set_int(&out[3], (int64_t)s.aggregateUncSecDed, 0);
    gp_value_set_text(&out[4], s.bThresholdExceeded ? "Yes" : "No", 0);
    gp_value_set_int(&out[5], (int64_t)s.aggregateUncBucketL2, 0);
    gp_value_set_int(&out[6], (int64_t)s.aggregateUncBucketSm, 0);
    gp_value_set_int(&out[7], (int64_t)s.aggregateUncBucketMcu, 0);
    gp_value_set_int(&out[8], (int64_t)s.aggregateUncBucketPcie, 0);
    gp_value_set_int(&out[9], (int64_t)s.aggregateUncBucketOther, 0);
    return rc;
}

nvmlReturn_t nvml_read_remapped_rows(struct nvml_device *device, const struct reader *reader,
                                     struct gp_value *out)
{
    (void)reader;
    unsigned correctable = 0;
    unsigned uncorrectable = 0;
    unsigned pending = 0;
    unsigned failure = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetRemappedRows, device->handle, &correctable,
                                &uncorrectable, &pending, &failure);
    gp_value_set_int(&out[0], correctable, 0);
    gp_value_set_int(&out[1], uncorrectable, 0);
    gp_value_set_text(&out[2], pending ? "Yes" : "No", 0);
    gp_value_set_text(&out[3], failure ? "Yes" : "No", 0);
    return rc;
}

nvmlReturn_t nvml_read_dram_encryption(struct nvml_device *device, const struct reader *reader,
                                       struct gp_value *out)
{
    (void)reader;
    nvmlDramEncryptionInfo_t current = {.version = nvmlDramEncryptionInfo_v1};
    nvmlDramEncryptionInfo_t pending = {.version = nvmlDramEncryptionInfo_v1};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetDramEncryptionMode, device->handle, &current, &pending);
    gp_value_set_text(&out[0], nvml_enabled_text(current.encryptionState), 0);
    gp_value_set_text(&out[1], nvml_enabled_text(pending.encryptionState), 0);
    return rc;
}

/* Writes the set bits as "0,3". */
static void keep_ids(struct nvml_device *device, const nvmlMask255_t *mask, struct gp_value *v)
{
    char text[1024] = "None";
    size_t n = 0;
    for (unsigned id = 0; id < NVML_WORKLOAD_POWER_MAX_PROFILES; id++)
        if (mask->mask[id / 32] >> id % 32 & 1)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", n ? "," : "", id);
    nvml_keep_text(device, v, text);
}

nvmlReturn_t nvml_read_power_profiles(struct nvml_device *device, const struct reader *reader,
                                      struct gp_value *out)
{
    (void)reader;
    nvmlWorkloadPowerProfileCurrentProfiles_t profiles = {
        .version = nvmlWorkloadPowerProfileCurrentProfiles_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles,
                                device->handle, &profiles);
    if (rc != NVML_SUCCESS)
        return rc;
    keep_ids(device, &profiles.requestedProfilesMask, &out[0]);
    keep_ids(device, &profiles.enforcedProfilesMask, &out[1]);
    return rc;
}

/* This is a capability of the driver, but nvidia-smi shows it for each GPU. */
nvmlReturn_t nvml_read_vgpu_driver(struct nvml_device *device, const struct reader *reader,
                                   struct gp_value *out)
{
    (void)reader;
    unsigned can = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlGetVgpuDriverCapabilities,
                                NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU, &can);
    gp_value_set_text(&out[0], can ? "Supported" : "Not Supported", 0);
    return rc;
}

/* ---- chip to chip ---- */

enum { C2C_LINKS_MAX = 32 };

/* The fields of links 0 to n − 1; the last field is the bandwidth of a link, in MB/s. */
static nvmlReturn_t c2c_fields(struct nvml_device *device, unsigned n,
                               nvmlFieldValue_t links[C2C_LINKS_MAX + 1])
{
    for (unsigned i = 0; i < n; i++)
        links[i] = (nvmlFieldValue_t){.fieldId = NVML_FI_DEV_C2C_LINK_GET_STATUS, .scopeId = i};
    links[n] = (nvmlFieldValue_t){.fieldId = NVML_FI_DEV_C2C_LINK_GET_MAX_BW};
    return NVML_CALL(device, nvmlDeviceGetFieldValues, device->handle, (int)n + 1, links);
}

nvmlReturn_t nvml_read_c2c_links(struct nvml_device *device, const struct reader *reader,
                                 struct gp_value *out)
{
    (void)reader;
    nvmlFieldValue_t count = {.fieldId = NVML_FI_DEV_C2C_LINK_COUNT};
    nvmlFieldValue_t links[C2C_LINKS_MAX + 1];
    int64_t n;
    int64_t number;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetFieldValues, device->handle, 1, &count);
    if (rc == NVML_SUCCESS)
        rc = count.nvmlReturn;
    if (rc != NVML_SUCCESS)
        return rc;
    if (!nvml_field_number(&count, &n) || n < 0 || n > C2C_LINKS_MAX)
        return NVML_ERROR_UNKNOWN;
    rc = c2c_fields(device, (unsigned)n, links);
    if (rc != NVML_SUCCESS)
        return rc;
    int64_t active = 0;
    for (int64_t i = 0; i < n; i++)
        active += links[i].nvmlReturn == NVML_SUCCESS && nvml_field_number(&links[i], &number) &&
                  number == 1;
    gp_value_set_int(&out[0], active, 0);
    if (links[n].nvmlReturn == NVML_SUCCESS && nvml_field_number(&links[n], &number))
        gp_value_set_real(&out[1], 1e6 * (double)number, 0);
    else
        gp_value_set_absent(&out[1], nvml_return_status(links[n].nvmlReturn), NULL, 0);
    return rc;
}

/* ---- fabric ---- */

enum { FABRIC_COMPLETED = 3 };

/* Uses the newest version that the driver accepts. Each version extends the previous one, and a
 * driver only writes what the passed version contains. */
static nvmlReturn_t fabric_info(struct nvml_device *device, nvmlGpuFabricInfo_v3_t *ret)
{
    static const unsigned versions[] = {nvmlGpuFabricInfo_v3, nvmlGpuFabricInfo_v2};
    nvmlReturn_t rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < GP_ARRAY_LEN(versions); i++) {
        *ret = (nvmlGpuFabricInfo_v3_t){.version = versions[i]};
        rc = NVML_CALL(device, nvmlDeviceGetGpuFabricInfoV, device->handle, ret);
        if (rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH && rc != NVML_ERROR_INVALID_ARGUMENT)
            break;
    }
    if (nvml_return_status(rc) != GP_STATUS_UNSUPPORTED || rc == NVML_ERROR_NOT_SUPPORTED)
        return rc;
    nvmlGpuFabricInfo_t v1 = {{0}, NVML_SUCCESS, 0, 0};
    rc = NVML_CALL(device, nvmlDeviceGetGpuFabricInfo, device->handle, &v1);
    *ret =
        (nvmlGpuFabricInfo_v3_t){.status = v1.status, .cliqueId = v1.cliqueId, .state = v1.state};
    for (size_t i = 0; i < sizeof(v1.clusterUuid); i++)
        ret->clusterUuid[i] = v1.clusterUuid[i];
    return rc;
}

static void put_health(unsigned mask, struct gp_value *out)
{
    static const struct code_name bandwidth[] = {{1, "Degraded"}, {2, "Full"}, {0, NULL}};
    static const struct code_name boolean[] = {{1, "True"}, {2, "False"}, {0, NULL}};
    static const struct code_name configuration[] = {
        {1, "None"},
        {2, "Incorrect SYSGUID"},
        {3, "Incorrect Chassis SN"},
        {4, "No Partition"},
        {5, "Insufficient Nvlinks"},
        {6, "Incompatible GPU FW"},
        {7, "Invalid Location"},
        {8, "GPU State Invalid"},
        {0, NULL},
    };
    static const struct {
        unsigned shift, bits;
        const struct code_name *names;
    } parts[] = {{0, 3, bandwidth}, {2, 3, boolean},        {4, 3, boolean},
                 {6, 3, boolean},   {8, 15, configuration}, {12, 3, boolean}};
    _Static_assert(GP_FABRIC_PARTITION - GP_FABRIC_HEALTH == GP_ARRAY_LEN(parts), "health");
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++)
        nvml_name_code(parts[i].names, mask >> parts[i].shift & parts[i].bits, &out[i]);
}

static void keep_uuid(struct nvml_device *device, const unsigned char uuid[16], struct gp_value *v)
{
    char text[40] = "";
    size_t n = 0;
    for (size_t i = 0; i < 16; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    nvml_keep_text(device, v, text);
}

nvmlReturn_t nvml_read_fabric(struct nvml_device *device, const struct reader *reader,
                              struct gp_value *out)
{
    (void)reader;
    static const struct code_name states[] = {
        {1, "Not Started"}, {2, "In Progress"}, {FABRIC_COMPLETED, "Completed"}, {0, NULL}};
    static const struct code_name summaries[] = {
        {1, "Healthy"}, {2, "Unhealthy"}, {3, "Limited Capacity"}, {0, NULL}};
    nvmlGpuFabricInfo_v3_t info;
    nvmlReturn_t rc = fabric_info(device, &info);
    if (rc != NVML_SUCCESS)
        return rc;
    nvml_name_code(states, info.state, &out[0]);
    /* Only a completed registration has a result. */
    if (info.state == FABRIC_COMPLETED) {
        gp_value_set_text(&out[1], nvml_return_text(info.status), 0);
        gp_value_set_int(&out[2], info.cliqueId, 0);
        keep_uuid(device, info.clusterUuid, &out[3]);
    } else {
        for (size_t i = 1; i <= 3; i++)
            gp_value_set_absent(&out[i], GP_STATUS_UNSUPPORTED, NULL, 0);
    }
    nvml_name_code(summaries, info.healthSummary, &out[4]);
    put_health(info.healthMask, &out[5]);
    return rc;
}
