/* Readers for the identity and location of a GPU. */
#include "source/nvml/readers.h"

#include "base/clock.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The newer call also reports the PCI class. */
static nvmlReturn_t pci_info(struct nvml_device *device, nvmlPciInfoExt_t *ret, bool *ret_has_class)
{
    nvmlPciInfoExt_t ext = {.version = nvmlPciInfoExt_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPciInfoExt, device->handle, &ext);
    *ret_has_class = rc == NVML_SUCCESS;
    if (nvml_return_status(rc) == GP_STATUS_UNSUPPORTED) {
        nvmlPciInfo_t pci = {0};
        rc = NVML_CALL(device, nvmlDeviceGetPciInfo_v3, device->handle, &pci);
        ext = (nvmlPciInfoExt_t){.domain = pci.domain,
                                 .bus = pci.bus,
                                 .device = pci.device,
                                 .pciDeviceId = pci.pciDeviceId,
                                 .pciSubSystemId = pci.pciSubSystemId};
        memcpy(ext.busId, pci.busId, sizeof(ext.busId));
    }
    *ret = ext;
    return rc;
}

nvmlReturn_t nvml_read_pci(struct nvml_device *device, const struct reader *reader,
                           struct gp_value *out)
{
    (void)reader;
    nvmlPciInfoExt_t pci;
    bool has_class;
    nvmlReturn_t rc = pci_info(device, &pci, &has_class);
    if (rc != NVML_SUCCESS)
        return rc;
    char text[8][NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    (void)snprintf(text[0], sizeof(text[0]), "%.31s", pci.busId);
    (void)snprintf(text[1], sizeof(text[1]), "0x%04X", pci.domain);
    (void)snprintf(text[2], sizeof(text[2]), "0x%02X", pci.bus);
    (void)snprintf(text[3], sizeof(text[3]), "0x%02X", pci.device);
    (void)snprintf(text[4], sizeof(text[4]), "0x%X", pci.baseClass);
    (void)snprintf(text[5], sizeof(text[5]), "0x%X", pci.subClass);
    (void)snprintf(text[6], sizeof(text[6]), "0x%08X", pci.pciDeviceId);
    (void)snprintf(text[7], sizeof(text[7]), "0x%08X", pci.pciSubSystemId);
    for (size_t i = 0; i < GP_ARRAY_LEN(text); i++)
        nvml_keep_text(device, &out[i], text[i]);
    if (!has_class)
        for (enum gp_metric m = GP_PCI_BASE_CLASS; m <= GP_PCI_SUB_CLASS; m++)
            gp_value_set_absent(&out[m - GP_PCI_BUS_ID], GP_STATUS_UNSUPPORTED, NULL, 0);
    return rc;
}

/* NVML has no public call for the slot: reads the capability of the port above the GPU from the
 * kernel. */
nvmlReturn_t nvml_read_slot_generation(struct nvml_device *device, const struct reader *reader,
                                       struct gp_value *out)
{
    (void)reader;
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64, 128}; /* of generation 1, 2, … */
    const struct gp_nvml_config *config = &device->source->config;
    nvmlPciInfo_t pci = {0};
    char name[128];
    char path[GP_PATH_SIZE];
    char text[64];
    if (config->simulated && !config->root)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPciInfo_v3, device->handle, &pci);
    if (rc != NVML_SUCCESS)
        return rc;
    (void)snprintf(name, sizeof(name), "/sys/bus/pci/devices/%04x:%02x:%02x.0/../max_link_speed",
                   pci.domain, pci.bus, pci.device);
    if (!gp_io_path(path, config->root, name) || gp_io_read(path, text, sizeof(text)) <= 0)
        return NVML_ERROR_NOT_SUPPORTED;
    double speed = strtod(text, NULL); /* "16.0 GT/s PCIe" */
    for (size_t i = 0; i < GP_ARRAY_LEN(speeds); i++)
        if (speed >= speeds[i] - 0.25 && speed <= speeds[i] + 0.25) {
            gp_value_set_int(&out[0], (int64_t)i + 1, 0);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvml_read_board_id(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    unsigned id = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetBoardId, device->handle, &id);
    if (rc != NVML_SUCCESS)
        return rc;
    char text[16];
    (void)snprintf(text, sizeof(text), "0x%x", id);
    nvml_keep_text(device, &out[0], text);
    return rc;
}

nvmlReturn_t nvml_read_pdi(struct nvml_device *device, const struct reader *reader,
                           struct gp_value *out)
{
    (void)reader;
    nvmlPdi_t pdi = {.version = nvmlPdi_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPdi, device->handle, &pdi);
    if (rc != NVML_SUCCESS)
        return rc;
    char text[32];
    (void)snprintf(text, sizeof(text), "0x%016llx", pdi.value);
    nvml_keep_text(device, &out[0], text);
    return rc;
}

/* A text from the driver that may be empty, or fill its array without a NUL. */
static void keep_array(struct nvml_device *device, struct gp_value *v, const void *text, size_t n)
{
    char copy[NVML_HOSTNAME_BUFFER_SIZE + 1];
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)n, (const char *)text);
    if (copy[0])
        nvml_keep_text(device, v, copy);
    else
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
}

nvmlReturn_t nvml_read_bridge(struct nvml_device *device, const struct reader *reader,
                              struct gp_value *out)
{
    (void)reader;
    static const struct code_name types[] = {
        {NVML_BRIDGE_CHIP_PLX, "PLX"}, {NVML_BRIDGE_CHIP_BRO4, "BRO4"}, {0, NULL}};
    nvmlBridgeChipHierarchy_t chips = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetBridgeChipInfo, device->handle, &chips);
    if (rc == NVML_SUCCESS && chips.bridgeCount == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc != NVML_SUCCESS)
        return rc;
    const nvmlBridgeChipInfo_t *nearest = &chips.bridgeChipInfo[0];
    char text[16] = "";
    if (nearest->fwVersion)
        (void)snprintf(text, sizeof(text), "0x%08X", nearest->fwVersion);
    nvml_name_code(types, nearest->type, &out[0]);
    keep_array(device, &out[1], text, sizeof(text));
    return rc;
}

nvmlReturn_t nvml_read_hostname(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    nvmlHostname_v1_t name = {{0}};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHostname_v1, device->handle, &name);
    if (rc == NVML_SUCCESS)
        keep_array(device, &out[0], name.value, sizeof(name.value));
    return rc;
}

nvmlReturn_t nvml_read_inforom_check(struct nvml_device *device, const struct reader *reader,
                                     struct gp_value *out)
{
    (void)reader;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceValidateInforom, device->handle);
    bool damaged = rc == NVML_ERROR_CORRUPTED_INFOROM;
    gp_value_set_text(&out[0], damaged ? "invalid" : "valid", 0);
    return damaged ? NVML_SUCCESS : rc;
}

/* A time in microseconds since 1970, and a duration in microseconds. */
nvmlReturn_t nvml_read_bbx_flush(struct nvml_device *device, const struct reader *reader,
                                 struct gp_value *out)
{
    (void)reader;
    unsigned long long stamp_us = 0;
    unsigned long duration_us = 0;
    char text[GP_RFC3339_SIZE];
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetLastBBXFlushTime, device->handle, &stamp_us, &duration_us);
    if (rc != NVML_SUCCESS)
        return rc;
    gp_value_set_int(&out[1], (int64_t)duration_us, 0);
    if (stamp_us == 0 || stamp_us > UINT64_MAX / 1000) {
        gp_value_set_absent(&out[0], GP_STATUS_ERROR, "impossible value", 0);
        return rc;
    }
    gp_clock_rfc3339(stamp_us * 1000, text);
    nvml_keep_text(device, &out[0], text);
    return rc;
}

nvmlReturn_t nvml_read_gsp_version(struct nvml_device *device, const struct reader *reader,
                                   struct gp_value *out)
{
    (void)reader;
    char text[NVML_GSP_FIRMWARE_VERSION_BUF_SIZE] = "";
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGspFirmwareVersion, device->handle, text);
    if (rc == NVML_SUCCESS)
        keep_array(device, &out[0], text, sizeof(text));
    return rc;
}

/* A one-byte number; all ones: not available. */
static void keep_byte(struct gp_value *v, unsigned char byte)
{
    if (byte == UINT8_MAX)
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
    else
        gp_value_set_int(v, byte, 0);
}

/* The two versions of the struct differ in one member: the first has the rack's GUID instead of the
 * serial number of the chassis. */
nvmlReturn_t nvml_read_platform(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    static const struct code_name peers[] = {
        {0, "Direct Connected"}, {1, "Switch Connected"}, {0, NULL}};
    _Static_assert(sizeof(nvmlPlatformInfo_v1_t) == sizeof(nvmlPlatformInfo_v2_t), "platform");
    nvmlPlatformInfo_t info = {.version = nvmlPlatformInfo_v2};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPlatformInfo, device->handle, &info);
    bool has_chassis = rc == NVML_SUCCESS;
    if (rc == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
        info = (nvmlPlatformInfo_t){.version = nvmlPlatformInfo_v1};
        rc = NVML_CALL(device, nvmlDeviceGetPlatformInfo, device->handle, &info);
    }
    if (rc != NVML_SUCCESS)
        return rc;
    char guid[32] = "0x";
    unsigned char any = 0;
    for (size_t i = 0; i < 8; i++) {
        any |= info.ibGuid[i];
        (void)snprintf(guid + 2 + 2 * i, sizeof(guid) - 2 - 2 * i, "%02x", info.ibGuid[i]);
    }
    keep_array(device, &out[0], info.chassisSerialNumber,
               has_chassis ? sizeof(info.chassisSerialNumber) : 0);
    keep_byte(&out[1], info.slotNumber);
    keep_byte(&out[2], info.trayIndex);
    keep_byte(&out[3], info.hostId);
    nvml_name_code(peers, info.peerType == UINT8_MAX ? UINT32_MAX : info.peerType, &out[4]);
    keep_byte(&out[5], info.moduleId);
    keep_array(device, &out[6], guid, any ? sizeof(guid) : 0);
    return rc;
}
