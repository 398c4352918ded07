/* Converts one GPU of a capture. */
#include "sim/import_value.h"

#include "abi/nvml.h"
#include "sim/fault.h"
#include "sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- the tables */

static const struct sim_row answer_rows[] = {
    {"product_name", "Name", NULL, SIM_AS_IS},
    {"product_brand", "Brand", NULL, SIM_AS_IS},
    {"product_architecture", "Architecture", NULL, SIM_AS_IS},
    {"serial", "Serial", NULL, SIM_AS_IS},
    {"minor_number", "MinorNumber", NULL, SIM_COUNT},
    {"board_id", "BoardId", NULL, SIM_HEX},
    {"board_part_number", "BoardPartNumber", NULL, SIM_AS_IS},
    {"vbios_version", "VbiosVersion", NULL, SIM_AS_IS},
    {"inforom_version/img_version", "InforomImageVersion", NULL, SIM_AS_IS},
    {"inforom_version/oem_object", "InforomVersion", "OEM", SIM_AS_IS},
    {"inforom_version/ecc_object", "InforomVersion", "ECC", SIM_AS_IS},
    {"inforom_version/pwr_object", "InforomVersion", "POWER", SIM_AS_IS},
    {"inforom_bbx_flush/latest_timestamp", "LastBBXFlushTime", "timestamp_us", SIM_DATE_US},
    {"inforom_bbx_flush/latest_duration", "LastBBXFlushTime", "duration_us", SIM_COUNT},
    {"multigpu_board", "MultiGpuBoard", NULL, SIM_YES_NO},
    {"platformInfo/module_id", "ModuleId", NULL, SIM_COUNT},
    {"gpu_module_id", "ModuleId", NULL, SIM_COUNT},
    {"pdi", "Pdi", NULL, SIM_AS_IS},
    {"inforom_time_data/time_run", "BBXTimeData", "time_run_s", SIM_COUNT},
    {"gsp_firmware_version", "GspFirmwareVersion", NULL, SIM_AS_IS},
    {"gsp/mode/current", "GspFirmwareMode", "enabled", SIM_AS_IS}, /* of --query-gpu */
    {"gsp/mode/default", "GspFirmwareMode", "default", SIM_AS_IS},
    {"hostname", "Hostname", NULL, SIM_AS_IS},
    {"display_attached", "DisplayMode", NULL, SIM_YES_NO}, /* hides display_mode */
    {"display_mode", "DisplayMode", NULL, SIM_AS_IS},
    {"display_active", "DisplayActive", NULL, SIM_AS_IS},
    {"persistence_mode", "PersistenceMode", NULL, SIM_AS_IS},
    {"addressing_mode", "AddressingMode", NULL, SIM_AS_IS},
    {"accounting_mode", "AccountingMode", NULL, SIM_AS_IS},
    {"accounting_mode_buffer_size", "AccountingBufferSize", NULL, SIM_COUNT},
    {"driver_model/current_dm", "DriverModel", "current", SIM_AS_IS},
    {"driver_model/pending_dm", "DriverModel", "pending", SIM_AS_IS},
    {"gpu_operation_mode/current_gom", "GpuOperationMode", "current", SIM_AS_IS},
    {"gpu_operation_mode/pending_gom", "GpuOperationMode", "pending", SIM_AS_IS},
    {"c2c_mode", "C2cModeInfo", NULL, SIM_AS_IS},
    {"dram_encryption_mode/current_dram_encryption", "DramEncryptionMode", "current", SIM_AS_IS},
    {"dram_encryption_mode/pending_dram_encryption", "DramEncryptionMode", "pending", SIM_AS_IS},
    {"gpu_virtualization_mode/host_vgpu_mode", "HostVgpuMode", NULL, SIM_AS_IS},
    {"gpu_virtualization_mode/vgpu_heterogeneous_mode", "VgpuHeterogeneousMode", NULL, SIM_AS_IS},
    {"gpu_virtualization_mode/virtualization_mode", "VirtualizationMode", NULL, SIM_AS_IS},
    {"mig_mode/current_mig", "MigMode", "current", SIM_AS_IS},
    {"mig_mode/pending_mig", "MigMode", "pending", SIM_AS_IS},
    {"compute_mode", "ComputeMode", NULL, SIM_AS_IS},
    {"pci/pci_base_class", "PciInfoExt", "base_class", SIM_HEX},
    {"pci/pci_sub_class", "PciInfoExt", "sub_class", SIM_HEX},
    {"pci/pci_bridge_chip/bridge_chip_fw", "BridgeChipInfo", "firmware", SIM_HEX},
    {"pci/pci_gpu_link_info/pcie_gen/max_link_gen", "MaxPcieLinkGeneration", NULL, SIM_COUNT},
    {"pci/pci_gpu_link_info/pcie_gen/max_device_link_gen", "GpuMaxPcieLinkGeneration", NULL,
     SIM_COUNT},
    {"pci/pci_gpu_link_info/pcie_gen/current_link_gen", "CurrPcieLinkGeneration", NULL, SIM_COUNT},
    {"pci/pci_gpu_link_info/link_widths/max_link_width", "MaxPcieLinkWidth", NULL, SIM_COUNT},
    {"pci/pci_gpu_link_info/link_widths/current_link_width", "CurrPcieLinkWidth", NULL, SIM_COUNT},
    {"pci/tx_util", "PcieThroughput", "TX", SIM_COUNT},
    {"pci/rx_util", "PcieThroughput", "RX", SIM_COUNT},
    {"pci/replay_counter", "PcieReplayCounter", NULL, SIM_COUNT},
    {"platformInfo/chassis_serial_number", "PlatformInfo", "chassis", SIM_AS_IS},
    {"platformInfo/slot_number", "PlatformInfo", "slot", SIM_COUNT},
    {"platformInfo/tray_index", "PlatformInfo", "tray", SIM_COUNT},
    {"platformInfo/host_id", "PlatformInfo", "host", SIM_COUNT},
    {"platformInfo/module_id", "PlatformInfo", "module", SIM_COUNT},
    {"platformInfo/gpu_fabric_guid", "PlatformInfo", "fabric_guid", SIM_AS_IS},
    {"fan_speed", "FanSpeed", NULL, SIM_COUNT},
    {"performance_state", "PerformanceState", NULL, SIM_AS_IS},
    {"bar1_memory_usage/total", "BAR1MemoryInfo", "total", SIM_MIB},
    {"bar1_memory_usage/used", "BAR1MemoryInfo", "used", SIM_MIB},
    {"bar1_memory_usage/free", "BAR1MemoryInfo", "free", SIM_MIB},
    {"cc_protected_memory_usage/total", "ConfComputeProtectedMemoryUsage", "total", SIM_MIB},
    {"cc_protected_memory_usage/used", "ConfComputeProtectedMemoryUsage", "used", SIM_MIB},
    {"cc_protected_memory_usage/free", "ConfComputeProtectedMemoryUsage", "free", SIM_MIB},
    {"utilization/gpu_util", "UtilizationRates", "gpu", SIM_COUNT},
    {"utilization/memory_util", "UtilizationRates", "memory", SIM_COUNT},
    {"utilization/encoder_util", "EncoderUtilization", NULL, SIM_COUNT},
    {"utilization/decoder_util", "DecoderUtilization", NULL, SIM_COUNT},
    {"utilization/jpeg_util", "JpgUtilization", NULL, SIM_COUNT},
    {"utilization/ofa_util", "OfaUtilization", NULL, SIM_COUNT},
    {"encoder_stats/session_count", "EncoderStats", "sessions", SIM_COUNT},
    {"encoder_stats/average_fps", "EncoderStats", "fps", SIM_COUNT},
    {"encoder_stats/average_latency", "EncoderStats", "latency_us", SIM_COUNT},
    {"fbc_stats/session_count", "FBCStats", "sessions", SIM_COUNT},
    {"fbc_stats/average_fps", "FBCStats", "fps", SIM_COUNT},
    {"fbc_stats/average_latency", "FBCStats", "latency_us", SIM_COUNT},
    {"clocks/graphics_clock", "ClockInfo", "GRAPHICS", SIM_COUNT},
    {"clocks/sm_clock", "ClockInfo", "SM", SIM_COUNT},
    {"clocks/mem_clock", "ClockInfo", "MEM", SIM_COUNT},
    {"clocks/video_clock", "ClockInfo", "VIDEO", SIM_COUNT},
    {"max_clocks/graphics_clock", "MaxClockInfo", "GRAPHICS", SIM_COUNT},
    {"max_clocks/sm_clock", "MaxClockInfo", "SM", SIM_COUNT},
    {"max_clocks/mem_clock", "MaxClockInfo", "MEM", SIM_COUNT},
    {"max_clocks/video_clock", "MaxClockInfo", "VIDEO", SIM_COUNT},
    {"applications_clocks/graphics_clock", "ApplicationsClock", "GRAPHICS", SIM_COUNT},
    {"applications_clocks/mem_clock", "ApplicationsClock", "MEM", SIM_COUNT},
    {"default_applications_clocks/graphics_clock", "DefaultApplicationsClock", "GRAPHICS",
     SIM_COUNT},
    {"default_applications_clocks/mem_clock", "DefaultApplicationsClock", "MEM", SIM_COUNT},
    {"max_customer_boost_clocks/graphics_clock", "MaxCustomerBoostClock", "GRAPHICS", SIM_COUNT},
    {"clock_policy/auto_boost", "AutoBoostedClocksEnabled", "current", SIM_AS_IS},
    {"clock_policy/auto_boost_default", "AutoBoostedClocksEnabled", "default", SIM_AS_IS},
    {"clocks_event_reasons/active", "CurrentClocksEventReasons", NULL, SIM_HEX},
    {"clocks_event_reasons/supported", "SupportedClocksEventReasons", NULL, SIM_HEX},
    {"clocks_throttle_reasons/active", "CurrentClocksEventReasons", NULL, SIM_HEX},
    {"clocks_throttle_reasons/supported", "SupportedClocksEventReasons", NULL, SIM_HEX},
    {"temperature/gpu_temp", "Temperature", NULL, SIM_COUNT},
    {"temperature/gpu_temp_tlimit", "MarginTemperature", NULL, SIM_COUNT},
    {"temperature/gpu_temp_max_threshold", "TemperatureThreshold", "SHUTDOWN", SIM_COUNT},
    {"temperature/gpu_temp_slow_threshold", "TemperatureThreshold", "SLOWDOWN", SIM_COUNT},
    {"temperature/gpu_temp_max_gpu_threshold", "TemperatureThreshold", "GPU_MAX", SIM_COUNT},
    {"temperature/gpu_temp_max_mem_threshold", "TemperatureThreshold", "MEM_MAX", SIM_COUNT},
    {"supported_gpu_target_temp/gpu_target_temp_min", "TemperatureThreshold", "ACOUSTIC_MIN",
     SIM_COUNT},
    {"supported_gpu_target_temp/gpu_target_temp_max", "TemperatureThreshold", "ACOUSTIC_MAX",
     SIM_COUNT},
    {"temperature/gpu_target_temperature", "TemperatureThreshold", "ACOUSTIC_CURR", SIM_COUNT},
    {"power_readings/power_management", "PowerManagementMode", NULL, SIM_AS_IS},
    {"power_readings/power_limit", "PowerManagementLimit", NULL, SIM_MILLI},
    {"power_readings/enforced_power_limit", "EnforcedPowerLimit", NULL, SIM_MILLI},
    {"power_readings/default_power_limit", "PowerManagementDefaultLimit", NULL, SIM_MILLI},
    {"power_readings/min_power_limit", "PowerManagementLimitConstraints", "min", SIM_MILLI},
    {"power_readings/max_power_limit", "PowerManagementLimitConstraints", "max", SIM_MILLI},
    {"gpu_power_readings/requested_power_limit", "PowerManagementLimit", NULL, SIM_MILLI},
    {"gpu_power_readings/current_power_limit", "EnforcedPowerLimit", NULL, SIM_MILLI},
    {"gpu_power_readings/default_power_limit", "PowerManagementDefaultLimit", NULL, SIM_MILLI},
    {"gpu_power_readings/min_power_limit", "PowerManagementLimitConstraints", "min", SIM_MILLI},
    {"gpu_power_readings/max_power_limit", "PowerManagementLimitConstraints", "max", SIM_MILLI},
    {"ecc_mode/current_ecc", "EccMode", "current", SIM_AS_IS},
    {"ecc_mode/pending_ecc", "EccMode", "pending", SIM_AS_IS},
    {"ecc_errors/volatile/sram_uncorrectable_parity", "SramEccErrorStatus", "volatile_parity",
     SIM_COUNT},
    {"ecc_errors/volatile/sram_uncorrectable_secded", "SramEccErrorStatus", "volatile_secded",
     SIM_COUNT},
    {"ecc_errors/volatile/sram_correctable", "SramEccErrorStatus", "volatile_corrected", SIM_COUNT},
    {"ecc_errors/aggregate/sram_uncorrectable_parity", "SramEccErrorStatus", "aggregate_parity",
     SIM_COUNT},
    {"ecc_errors/aggregate/sram_uncorrectable_secded", "SramEccErrorStatus", "aggregate_secded",
     SIM_COUNT},
    {"ecc_errors/aggregate/sram_correctable", "SramEccErrorStatus", "aggregate_corrected",
     SIM_COUNT},
    {"ecc_errors/aggregate/sram_threshold_exceeded", "SramEccErrorStatus", "threshold_exceeded",
     SIM_YES_NO},
    {"ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2", "SramEccErrorStatus", "l2",
     SIM_COUNT},
    {"ecc_errors/aggregate_uncorrectable_sram_sources/sram_sm", "SramEccErrorStatus", "sm",
     SIM_COUNT},
    {"ecc_errors/aggregate_uncorrectable_sram_sources/sram_microcontroller", "SramEccErrorStatus",
     "mcu", SIM_COUNT},
    {"ecc_errors/aggregate_uncorrectable_sram_sources/sram_pcie", "SramEccErrorStatus", "pcie",
     SIM_COUNT},
    {"ecc_errors/aggregate_uncorrectable_sram_sources/sram_other", "SramEccErrorStatus", "other",
     SIM_COUNT},
    {"ecc_errors/channel_repair_pending", "RepairStatus", "channel_pending", SIM_YES_NO},
    {"ecc_errors/tpc_repair_pending", "RepairStatus", "tpc_pending", SIM_YES_NO},
    {"ecc_errors/unrepairable_memory", "UnrepairableMemoryFlag", NULL, SIM_YES_NO},
    {"remapped_rows/remapped_row_corr", "RemappedRows", "correctable", SIM_COUNT},
    {"remapped_rows/remapped_row_corr_inactive", "RemappedRows", "correctable_inactive", SIM_COUNT},
    {"remapped_rows/remapped_row_unc", "RemappedRows", "uncorrectable", SIM_COUNT},
    {"remapped_rows/remapped_row_unc_inactive", "RemappedRows", "uncorrectable_inactive",
     SIM_COUNT},
    {"remapped_rows/remapped_row_pending", "RemappedRows", "pending", SIM_YES_NO},
    {"remapped_rows/remapped_row_failure", "RemappedRows", "failure", SIM_YES_NO},
    {"remapped_rows/row_remapper_histogram/row_remapper_histogram_max", "RowRemapperHistogram",
     "max", SIM_COUNT},
    {"remapped_rows/row_remapper_histogram/row_remapper_histogram_high", "RowRemapperHistogram",
     "high", SIM_COUNT},
    {"remapped_rows/row_remapper_histogram/row_remapper_histogram_partial", "RowRemapperHistogram",
     "partial", SIM_COUNT},
    {"remapped_rows/row_remapper_histogram/row_remapper_histogram_low", "RowRemapperHistogram",
     "low", SIM_COUNT},
    {"remapped_rows/row_remapper_histogram/row_remapper_histogram_none", "RowRemapperHistogram",
     "none", SIM_COUNT},
#define SRAM_DRAM(counter)                                                                         \
    {"ecc_errors/" counter "/sram_correctable", "MemoryErrorCounter",                              \
     "corrected." counter ".SRAM", SIM_COUNT},                                                     \
        {"ecc_errors/" counter "/dram_correctable", "MemoryErrorCounter",                          \
         "corrected." counter ".DRAM", SIM_COUNT},                                                 \
        {"ecc_errors/" counter "/dram_uncorrectable", "MemoryErrorCounter",                        \
         "uncorrected." counter ".DRAM", SIM_COUNT},                                               \
    {                                                                                              \
        "ecc_errors/" counter "/sram_uncorrectable", "MemoryErrorCounter",                         \
            "uncorrected." counter ".SRAM", SIM_COUNT                                              \
    }
    SRAM_DRAM("volatile"),
    SRAM_DRAM("aggregate"),
#undef SRAM_DRAM
#define OLD_LOCATIONS(counter, bits, type)                                                         \
    {"ecc_errors/" counter "/" bits "/total", "TotalEccErrors", type "." counter, SIM_COUNT},      \
        {"ecc_errors/" counter "/" bits "/l1_cache", "MemoryErrorCounter",                         \
         type "." counter ".L1_CACHE", SIM_COUNT},                                                 \
        {"ecc_errors/" counter "/" bits "/l2_cache", "MemoryErrorCounter",                         \
         type "." counter ".L2_CACHE", SIM_COUNT},                                                 \
        {"ecc_errors/" counter "/" bits "/device_memory", "MemoryErrorCounter",                    \
         type "." counter ".DRAM", SIM_COUNT},                                                     \
        {"ecc_errors/" counter "/" bits "/register_file", "MemoryErrorCounter",                    \
         type "." counter ".REGISTER_FILE", SIM_COUNT},                                            \
        {"ecc_errors/" counter "/" bits "/texture_memory", "MemoryErrorCounter",                   \
         type "." counter ".TEXTURE_MEMORY", SIM_COUNT},                                           \
        {"ecc_errors/" counter "/" bits "/texture_shm", "MemoryErrorCounter",                      \
         type "." counter ".TEXTURE_SHM", SIM_COUNT},                                              \
    {                                                                                              \
        "ecc_errors/" counter "/" bits "/cbu", "MemoryErrorCounter", type "." counter ".CBU",      \
            SIM_COUNT                                                                              \
    }
    OLD_LOCATIONS("volatile", "single_bit", "corrected"),
    OLD_LOCATIONS("volatile", "double_bit", "uncorrected"),
    OLD_LOCATIONS("aggregate", "single_bit", "corrected"),
    OLD_LOCATIONS("aggregate", "double_bit", "uncorrected"),
#undef OLD_LOCATIONS
    /* If there are several power readings, the average is the driver's legacy reading. */
    {"power_readings/power_draw", "PowerUsage", NULL, SIM_MILLI},
    {"gpu_power_readings/power_draw", "PowerUsage", NULL, SIM_MILLI},
};

#define POWER_FIELDS(group, scope)                                                                 \
    {group "/average_power_draw", "185" scope, NULL, SIM_MILLI},                                   \
        {group "/instant_power_draw", "186" scope, NULL, SIM_MILLI},                               \
        {group "/min_power_limit", "187" scope, NULL, SIM_MILLI},                                  \
        {group "/max_power_limit", "188" scope, NULL, SIM_MILLI},                                  \
        {group "/default_power_limit", "189" scope, NULL, SIM_MILLI},                              \
        {group "/current_power_limit", "190" scope, NULL, SIM_MILLI},                              \
    {                                                                                              \
        group "/requested_power_limit", "192" scope, NULL, SIM_MILLI                               \
    }

static const struct sim_row field_rows[] = {
    {"temperature/memory_temp", "82", NULL, SIM_COUNT},
    {"temperature/gpu_temp_max_tlimit_threshold", "193", NULL, SIM_COUNT},
    {"temperature/gpu_temp_slow_tlimit_threshold", "194", NULL, SIM_COUNT},
    {"temperature/gpu_temp_max_mem_tlimit_threshold", "195", NULL, SIM_COUNT},
    {"temperature/gpu_temp_max_gpu_tlimit_threshold", "196", NULL, SIM_COUNT},
    {"pci/replay_counter", "94", NULL, SIM_COUNT},
    {"pci/replay_rollover_counter", "95", NULL, SIM_COUNT},
    {"retired_pages/multiple_single_bit_retirement/retired_count", "29", NULL, SIM_COUNT},
    {"retired_pages/double_bit_retirement/retired_count", "30", NULL, SIM_COUNT},
    {"retired_pages/pending_retirement", "31", NULL, SIM_YES_NO},
    {"remapped_rows/remapped_row_corr", "142", NULL, SIM_COUNT},
    {"remapped_rows/remapped_row_unc", "143", NULL, SIM_COUNT},
    {"remapped_rows/remapped_row_pending", "144", NULL, SIM_YES_NO},
    {"remapped_rows/remapped_row_failure", "145", NULL, SIM_YES_NO},
    {"remapped_rows/remapped_row_corr_inactive", "301", NULL, SIM_COUNT},
    {"remapped_rows/remapped_row_unc_inactive", "302", NULL, SIM_COUNT},
    {"gpu_reset_status/reset_required", "226", NULL, SIM_YES_NO},
    {"gpu_reset_status/drain_and_reset_recommended", "227", NULL, SIM_YES_NO},
    {"edpp_multiplier", "274", NULL, SIM_COUNT},
    POWER_FIELDS("gpu_power_readings", ""),
    POWER_FIELDS("module_power_readings", "/1"),
    POWER_FIELDS("gpu_memory_power_readings", "/2"),
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap", "74", NULL,
     SIM_US_NS},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost", "76", NULL,
     SIM_US_NS},
};

/* These counters have two ids each; the driver version determines which one is used. */
static const struct {
    const char *path;
    unsigned int id, id_r575;
} counter_rows[] = {
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_R575},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_R575},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_R575},
};

/* Numbers of the driver that nvidia-smi prints as words. Each word has a number; the answer is the
 * sum of those that apply (for a text with several words, or a group with several elements). */
struct words {
    const char *path;
    const char *words;
    unsigned int number;
};

static const struct words peer_words[] = {
    {"platformInfo/peer_type", "Direct Connected", 0},
    {"platformInfo/peer_type", "Switch Connected", 1},
};

static const struct words bridge_words[] = {
    {"pci/pci_bridge_chip/bridge_chip_type", "PLX", NVML_BRIDGE_CHIP_PLX},
    {"pci/pci_bridge_chip/bridge_chip_type", "BRO4", NVML_BRIDGE_CHIP_BRO4},
};

static const struct words capability_words[] = {
    {"capabilities/egm", "disabled", 0},
    {"capabilities/egm", "enabled", NVML_DEV_CAP_EGM},
};

static const struct words health_words[] = {
    {"fabric/health/bandwidth", "Degraded", 1 << 0},
    {"fabric/health/bandwidth", "Full", 2 << 0},
    {"fabric/health/route_recovery_in_progress", "True", 1 << 2},
    {"fabric/health/route_recovery_in_progress", "False", 2 << 2},
    {"fabric/health/route_unhealthy", "True", 1 << 4},
    {"fabric/health/route_unhealthy", "False", 2 << 4},
    {"fabric/health/access_timeout_recovery", "True", 1 << 6},
    {"fabric/health/access_timeout_recovery", "False", 2 << 6},
    {"fabric/health/incorrect_configuration", "None", 1 << 8},
    {"fabric/health/partition_assigned", "True", 1 << 12},
    {"fabric/health/partition_assigned", "False", 2 << 12},
};

static const struct words summary_words[] = {
    {"fabric/health/summary", "Healthy", 1},
    {"fabric/health/summary", "Unhealthy", 2},
    {"fabric/health/summary", "Limited Capacity", 3},
};

#define ATOMICS(path)                                                                              \
    {path, "FETCHADD_32", 0x01}, {path, "FETCHADD_64", 0x02}, {path, "SWAP_32", 0x04},             \
        {path, "SWAP_64", 0x08}, {path, "CAS_32", 0x10}, {path, "CAS_64", 0x20},                   \
    {                                                                                              \
        path, "CAS_128", 0x40                                                                      \
    }
static const struct words outbound_words[] = {ATOMICS("pci/atomic_caps_outbound")};
static const struct words inbound_words[] = {ATOMICS("pci/atomic_caps_inbound")};

/* Named like "clocks_event_reason_gpu_idle"; before R535 "clocks_throttle_reason_gpu_idle". */
static const struct {
    const char *ending;
    uint64_t bit;
} reason_rows[] = {
    {"gpu_idle", NVML_CLOCKS_EVENT_GPU_IDLE},
    {"applications_clocks_setting", NVML_CLOCKS_EVENT_APPLICATIONS_CLOCKS},
    {"sw_power_cap", NVML_CLOCKS_EVENT_SW_POWER_CAP},
    {"hw_slowdown", NVML_CLOCKS_EVENT_HW_SLOWDOWN},
    {"hw_thermal_slowdown", NVML_CLOCKS_EVENT_HW_THERMAL},
    {"hw_power_brake_slowdown", NVML_CLOCKS_EVENT_HW_POWER_BRAKE},
    {"sync_boost", NVML_CLOCKS_EVENT_SYNC_BOOST},
    {"sw_thermal_slowdown", NVML_CLOCKS_EVENT_SW_THERMAL},
    {"display_clocks_setting", NVML_CLOCKS_EVENT_DISPLAY_CLOCKS},
};

/* Only --query-gpu prints the compute capability, but the PCI device id determines it. */
static const struct {
    unsigned int first, last; /* of the device id */
    int major, minor;
} capability_rows[] = {
    {0x15f0, 0x15ff, 6, 0},  /* P100 */
    {0x1b00, 0x1d7f, 6, 1},  /* GP102 to GP108 */
    {0x1db0, 0x1dff, 7, 0},  /* V100 */
    {0x1e00, 0x1fff, 7, 5},  /* TU102 to TU106, T4 */
    {0x2180, 0x21ff, 7, 5},  /* TU116 */
    {0x20b0, 0x20ff, 8, 0},  /* A100, A30 */
    {0x2200, 0x22ff, 8, 6},  /* GA102 */
    {0x2300, 0x233f, 9, 0},  /* H100, H200 */
    {0x2400, 0x25ff, 8, 6},  /* GA103 to GA107 */
    {0x2680, 0x28ff, 8, 9},  /* AD102 to AD107 */
    {0x2900, 0x29ff, 10, 0}, /* B200, GB200 */
};

/* ------------------------------------------------------------------------- devices */

static json_t *reasons_mask(const struct sim_node *gpu)
{
    const struct sim_node *group = sim_node_find(gpu, "clocks_event_reasons");
    const char *beginning = "clocks_event_reason_";
    if (!group) {
        group = sim_node_find(gpu, "clocks_throttle_reasons");
        beginning = "clocks_throttle_reason_";
    }
    if (!group)
        return NULL;
    if (!group->first)
        return sim_convert(group->text, SIM_AS_IS);
    uint64_t mask = 0;
    bool found = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(reason_rows); i++) {
        char name[80];
        (void)snprintf(name, sizeof(name), "%s%s", beginning, reason_rows[i].ending);
        const char *text = sim_node_text(group, name);
        const char *code = text ? sim_words_code(text) : NULL;
        if (code && i == 0)
            return json_string(code);
        found |= text != NULL;
        if (text && strcmp(text, "Active") == 0)
            mask |= reason_rows[i].bit;
    }
    return found ? json_integer((json_int_t)mask) : NULL;
}

/* The sum of the numbers whose words are in the capture. NULL if it has none of the elements, the
 * return code if none of them has a value. */
static json_t *words_sum(const struct sim_node *gpu, const struct words *rows, size_t count)
{
    bool seen = false;
    unsigned int sum = 0;
    const char *code = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *text = sim_node_text(gpu, rows[i].path);
        const char *at = text ? strstr(text, rows[i].words) : NULL;
        size_t len = strlen(rows[i].words);
        if (at && (at[len] == '\0' || at[len] == ' ') && (at == text || at[-1] == ' ')) {
            sum += rows[i].number;
            seen = true;
        } else if (text && !code) {
            code = sim_words_code(text);
        }
    }
    if (seen)
        return json_integer(sum);
    return code ? json_string(code) : NULL;
}

#define WORDS_SUM(gpu, rows) words_sum(gpu, rows, GP_ARRAY_LEN(rows))

static bool put_fabric(json_t *answers, const struct sim_node *gpu)
{
    static const struct sim_row rows[] = {
        {"fabric/state", "GpuFabricInfo", "state", SIM_AS_IS},
        {"fabric/cliqueId", "GpuFabricInfo", "clique", SIM_COUNT},
        {"fabric/clusterUuid", "GpuFabricInfo", "cluster_uuid", SIM_AS_IS},
    };
    const char *status = sim_node_text(gpu, "fabric/status");
    nvmlReturn_t code = NVML_SUCCESS;
    bool ok = sim_put_rows(answers, gpu, rows, GP_ARRAY_LEN(rows));
    if (status && strcmp(status, "Success") != 0)
        (void)sim_return_code(sim_words_code(status) ? sim_words_code(status) : "UNKNOWN", &code);
    if (status)
        ok &= sim_put(answers, "GpuFabricInfo", "status", json_integer(code));
    ok &= sim_put(answers, "GpuFabricInfo", "health_mask", WORDS_SUM(gpu, health_words));
    ok &= sim_put(answers, "GpuFabricInfo", "health_summary", WORDS_SUM(gpu, summary_words));
    return ok && sim_put(answers, "PlatformInfo", "peer", WORDS_SUM(gpu, peer_words));
}

/* The driver does not know a name that is missing in our list for the kind (a newer
 * architecture). */
static void drop_unknown_names(json_t *answers)
{
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++) {
        const struct sim_answer *row = &sim_answers[slot];
        const struct sim_name *name = sim_kind_names(row->kind);
        json_t *object = row->member ? json_object_get(answers, row->key) : answers;
        const char *key = row->member ? row->member : row->key;
        const char *text = json_string_value(json_object_get(object, key));
        nvmlReturn_t code;
        if (!name || !text || sim_return_code(text, &code))
            continue;
        while (name->name && strcmp(name->name, text) != 0)
            name++;
        if (!name->name)
            (void)json_object_set_new(object, key, json_string("UNKNOWN"));
    }
}

/* The sum of what newer captures split into parity and SEC-DED. */
static json_t *sram_uncorrected(const struct sim_node *gpu, const char *counter)
{
    char path[80];
    json_int_t parity, secded;
    (void)snprintf(path, sizeof(path), "ecc_errors/%s/sram_uncorrectable_parity", counter);
    const char *a = sim_node_text(gpu, path);
    (void)snprintf(path, sizeof(path), "ecc_errors/%s/sram_uncorrectable_secded", counter);
    const char *b = sim_node_text(gpu, path);
    if (!a || !b)
        return NULL;
    if (sim_words_code(a) || !sim_parse_scaled(a, 1, &parity) || !sim_parse_scaled(b, 1, &secded))
        return sim_convert(a, SIM_AS_IS);
    return json_integer(parity + secded);
}

/* Newer captures have no totals: the driver's total is the sum over its counters. */
static bool put_totals(json_t *answers)
{
    static const char *const totals[] = {"corrected.volatile", "corrected.aggregate",
                                         "uncorrected.volatile", "uncorrected.aggregate"};
    json_t *places = json_object_get(answers, "MemoryErrorCounter");
    bool ok = true;
    for (size_t i = 0; i < GP_ARRAY_LEN(totals); i++) {
        char name[48];
        (void)snprintf(name, sizeof(name), "%s.SRAM", totals[i]);
        json_t *sram = json_object_get(places, name);
        (void)snprintf(name, sizeof(name), "%s.DRAM", totals[i]);
        json_t *dram = json_object_get(places, name);
        if (json_is_integer(sram) && json_is_integer(dram))
            ok &= sim_put(answers, "TotalEccErrors", totals[i],
                          json_integer(json_integer_value(sram) + json_integer_value(dram)));
    }
    return ok;
}

static bool is_number(json_t *object, const char *key)
{
    return json_is_integer(json_object_get(object, key));
}

/* GPUs that support MIG, all with up to seven instances. */
static bool can_mig(json_t *answers)
{
    json_t *mode = json_object_get(json_object_get(answers, "MigMode"), "current");
    return json_is_string(mode) && strcmp(json_string_value(mode), "NOT_SUPPORTED") != 0;
}

static bool put_capability(json_t *answers, const struct sim_node *gpu, unsigned int pci_device_id)
{
    const char *text = sim_node_text(gpu, "compute_cap");
    int major, minor;
    if (text && sscanf(text, "%2d.%2d", &major, &minor) == 2)
        return sim_put(answers, "CudaComputeCapability", "major", json_integer(major)) &&
               sim_put(answers, "CudaComputeCapability", "minor", json_integer(minor));
    unsigned int id = pci_device_id >> 16;
    for (size_t i = 0; i < GP_ARRAY_LEN(capability_rows); i++) {
        if (id < capability_rows[i].first || id > capability_rows[i].last)
            continue;
        return sim_put(answers, "CudaComputeCapability", "major",
                       json_integer(capability_rows[i].major)) &&
               sim_put(answers, "CudaComputeCapability", "minor",
                       json_integer(capability_rows[i].minor));
    }
    return true;
}

static bool is_windows(const struct sim_node *gpu)
{
    const char *model = sim_node_text(gpu, "driver_model/current_dm");
    return model && !sim_words_code(model);
}

/* Captures do not show which events a GPU reports, so they are guessed from its other answers:
 * Windows drivers report none; memory errors need ECC, and other events need their subject. */
static uint64_t event_types(json_t *answers, const struct sim_node *gpu)
{
    const char *action = sim_node_text(gpu, "gpu_recovery_action");
    uint64_t types = NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_PSTATE | NVML_EVENT_CLOCK;
    if (is_windows(gpu))
        return 0;
    if (is_number(json_object_get(answers, "TotalEccErrors"), "corrected.volatile"))
        types |= NVML_EVENT_SINGLE_BIT_ECC_ERROR | NVML_EVENT_DOUBLE_BIT_ECC_ERROR |
                 NVML_EVENT_DRAM_RETIREMENT | NVML_EVENT_DRAM_RETIREMENT_FAILURE;
    if (can_mig(answers))
        types |= NVML_EVENT_MIG_CONFIG_CHANGE;
    if (action && !sim_words_code(action))
        types |= NVML_EVENT_GPU_RECOVERY_ACTION | NVML_EVENT_GPU_UNAVAILABLE;
    return types;
}

bool sim_put_answers(json_t *answers, const struct sim_node *gpu, unsigned int pci_device_id)
{
    const struct sim_node *memory = sim_node_find(gpu, "fb_memory_usage");
    bool ok = sim_put_rows(answers, gpu, answer_rows, GP_ARRAY_LEN(answer_rows));
    const char *average = sim_node_text(gpu, "gpu_power_readings/average_power_draw");
    const char *instant = sim_node_text(gpu, "gpu_power_readings/instant_power_draw");
    if (average && !sim_words_code(average))
        ok &= sim_put(answers, "PowerUsage", NULL, sim_convert(average, SIM_MILLI));
    else if (instant)
        ok &= sim_put(answers, "PowerUsage", NULL, sim_convert(instant, SIM_MILLI));
    ok &= sim_put(answers, "MemoryInfo", NULL, memory ? sim_memory_info(memory) : NULL);
    ok &= sim_put(answers, "CurrentClocksEventReasons", NULL, reasons_mask(gpu));
    ok &= sim_put(answers, "MemoryErrorCounter", "uncorrected.volatile.SRAM",
                  sram_uncorrected(gpu, "volatile"));
    ok &= sim_put(answers, "MemoryErrorCounter", "uncorrected.aggregate.SRAM",
                  sram_uncorrected(gpu, "aggregate"));
    /* Counters of a call that has a parity counter, too, or that the GPU refuses (Turing). */
    if (!json_object_get(json_object_get(answers, "SramEccErrorStatus"), "volatile_parity"))
        (void)json_object_del(answers, "SramEccErrorStatus");
    ok &= put_totals(answers);
    ok &= put_fabric(answers, gpu);
    ok &= sim_put(answers, "BridgeChipInfo", "type", WORDS_SUM(gpu, bridge_words));
    ok &= sim_put(answers, "Capabilities", NULL, WORDS_SUM(gpu, capability_words));

    /* Answers that can be derived from others on every GPU seen so far. */
    if (is_number(answers, "CurrentClocksEventReasons"))
        ok &= sim_put(answers, "SupportedClocksEventReasons", NULL, json_integer(0x1ff));
    if (json_object_get(answers, "FanSpeed"))
        ok &= sim_put(answers, "NumFans", NULL, json_integer(is_number(answers, "FanSpeed")));
    ok &= sim_put(answers, "MaxMigDeviceCount", NULL, json_integer(can_mig(answers) ? 7 : 0));
    ok &= sim_put(answers, "SupportedEventTypes", NULL,
                  json_integer((json_int_t)event_types(answers, gpu)));
    ok &= put_capability(answers, gpu, pci_device_id);
    const char *checksum = sim_node_text(gpu, "inforom/checksum_validation");
    if (checksum && strcmp(checksum, "invalid") == 0)
        ok &= sim_put(answers, "ValidateInforom", NULL, json_string("CORRUPTED_INFOROM"));
    else if (checksum ? strcmp(checksum, "valid") == 0
                      : sim_node_text(gpu, "inforom_version/img_version") != NULL)
        ok &= sim_put(answers, "ValidateInforom", NULL, json_integer(0));
    const char *gsp = sim_node_text(gpu, "gsp_firmware_version");
    for (size_t i = 0; gsp && i < 2; i++) /* Windows drivers have no such modes */
        ok &= sim_put(answers, "GspFirmwareMode", i ? "default" : "enabled",
                      is_windows(gpu) ? json_string("NOT_SUPPORTED")
                                      : json_integer(!sim_words_code(gsp)));
    drop_unknown_names(answers);
    return ok;
}

/* Without permission for power smoothing, all of its fields are refused. */
static bool put_smoothing(json_t *fields, const struct sim_node *gpu, bool r575)
{
    const char *text = sim_node_text(gpu, "power_smoothing");
    const char *code = text ? sim_words_code(text) : NULL;
    bool ok = true;
    if (!code || strcmp(code, "NOT_SUPPORTED") == 0)
        return true;
    for (unsigned int i = NVML_FI_PWR_SMOOTHING_ENABLED;
         i <= NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%u", r575 ? i + 5 : i);
        ok &= sim_put(fields, id, NULL, json_string(code));
    }
    return ok;
}

bool sim_put_fields(json_t *fields, const struct sim_node *gpu, const unsigned int driver[2])
{
    static const char *const actions[] = {"None", "Reset", "Reboot", "Drain P2P",
                                          "Drain and Reset"};
    bool ok = sim_put_rows(fields, gpu, field_rows, GP_ARRAY_LEN(field_rows));
    bool r575 = (driver[0] >= 575 && driver[0] < 580) || (driver[0] == 580 && driver[1] < 82);
    for (size_t i = 0; i < GP_ARRAY_LEN(counter_rows); i++) {
        char id[16];
        const char *text = sim_node_text(gpu, counter_rows[i].path);
        (void)snprintf(id, sizeof(id), "%u", r575 ? counter_rows[i].id_r575 : counter_rows[i].id);
        if (text)
            ok &= sim_put(fields, id, NULL, sim_convert(text, SIM_US_NS));
    }
    ok &= sim_put(fields, "228", NULL, WORDS_SUM(gpu, outbound_words));
    ok &= sim_put(fields, "229", NULL, WORDS_SUM(gpu, inbound_words));
    ok &= put_smoothing(fields, gpu, r575);
    const char *action = sim_node_text(gpu, "gpu_recovery_action");
    for (size_t i = 0; action && i < GP_ARRAY_LEN(actions); i++)
        if (strcmp(actions[i], action) == 0)
            ok &= sim_put(fields, "230", NULL, json_integer((json_int_t)i));
    return ok;
}
