/* The names of values in a machine file. */
#include "sim/machine.h"

static const struct sim_name switch_names[] = {
    {"Enabled", 1}, {"Disabled", 0}, {"On", 1}, {"Off", 0}, {"Supported", 1}, {NULL, 0},
};
static const struct sim_name brand_names[] = {
    {"Quadro", NVML_BRAND_QUADRO},
    {"Tesla", NVML_BRAND_TESLA},
    {"NVS", NVML_BRAND_NVS},
    {"Grid", NVML_BRAND_GRID},
    {"GeForce", NVML_BRAND_GEFORCE},
    {"Titan", NVML_BRAND_TITAN},
    {"NVIDIA Virtual Applications", NVML_BRAND_NVIDIA_VAPPS},
    {"NVIDIA Virtual PC", NVML_BRAND_NVIDIA_VPC},
    {"NVIDIA Virtual Compute Server", NVML_BRAND_NVIDIA_VCS},
    {"NVIDIA RTX Virtual Workstation", NVML_BRAND_NVIDIA_VWS},
    {"NVIDIA Cloud Gaming", NVML_BRAND_NVIDIA_CLOUD_GAMING},
    {"Quadro RTX", NVML_BRAND_QUADRO_RTX},
    {"NVIDIA RTX", NVML_BRAND_NVIDIA_RTX},
    {"NVIDIA", NVML_BRAND_NVIDIA},
    {"GeForce RTX", NVML_BRAND_GEFORCE_RTX},
    {"Titan RTX", NVML_BRAND_TITAN_RTX},
    {"Unknown", NVML_BRAND_UNKNOWN},
    {NULL, 0},
};
static const struct sim_name arch_names[] = {
    {"Kepler", NVML_DEVICE_ARCH_KEPLER},       {"Maxwell", NVML_DEVICE_ARCH_MAXWELL},
    {"Pascal", NVML_DEVICE_ARCH_PASCAL},       {"Volta", NVML_DEVICE_ARCH_VOLTA},
    {"Turing", NVML_DEVICE_ARCH_TURING},       {"Ampere", NVML_DEVICE_ARCH_AMPERE},
    {"Ada Lovelace", NVML_DEVICE_ARCH_ADA},    {"Hopper", NVML_DEVICE_ARCH_HOPPER},
    {"Blackwell", NVML_DEVICE_ARCH_BLACKWELL}, {"Rubin", NVML_DEVICE_ARCH_RUBIN},
    {"Unknown", NVML_DEVICE_ARCH_UNKNOWN},     {NULL, 0},
};
static const struct sim_name pstate_names[] = {
    {"P0", 0},   {"P1", 1},   {"P2", 2},   {"P3", 3},   {"P4", 4},   {"P5", 5},
    {"P6", 6},   {"P7", 7},   {"P8", 8},   {"P9", 9},   {"P10", 10}, {"P11", 11},
    {"P12", 12}, {"P13", 13}, {"P14", 14}, {"P15", 15}, {NULL, 0},
};
static const struct sim_name compute_mode_names[] = {
    {"Default", NVML_COMPUTEMODE_DEFAULT},
    {"Exclusive_Thread", NVML_COMPUTEMODE_EXCLUSIVE_THREAD},
    {"Prohibited", NVML_COMPUTEMODE_PROHIBITED},
    {"Exclusive_Process", NVML_COMPUTEMODE_EXCLUSIVE_PROCESS},
    {NULL, 0},
};
static const struct sim_name virtualization_names[] = {
    {"None", NVML_GPU_VIRTUALIZATION_MODE_NONE},
    {"Pass-Through", NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH},
    {"VGPU", NVML_GPU_VIRTUALIZATION_MODE_VGPU},
    {"Host VGPU", NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU},
    {"Host VSGA", NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA},
    {NULL, 0},
};
static const struct sim_name addressing_names[] = {
    {"None", NVML_DEVICE_ADDRESSING_MODE_NONE},
    {"HMM", NVML_DEVICE_ADDRESSING_MODE_HMM},
    {"ATS", NVML_DEVICE_ADDRESSING_MODE_ATS},
    {NULL, 0},
};
static const struct sim_name driver_model_names[] = {
    {"WDDM", NVML_DRIVER_WDDM}, {"TCC", NVML_DRIVER_WDM}, {"MCDM", NVML_DRIVER_MCDM}, {NULL, 0}};
static const struct sim_name operation_mode_names[] = {{"All On", NVML_GOM_ALL_ON},
                                                       {"Compute", NVML_GOM_COMPUTE},
                                                       {"Low Double Precision", NVML_GOM_LOW_DP},
                                                       {NULL, 0}};
static const struct sim_name host_vgpu_names[] = {{"Non SR-IOV", NVML_HOST_VGPU_MODE_NON_SRIOV},
                                                  {"SR-IOV", NVML_HOST_VGPU_MODE_SRIOV},
                                                  {NULL, 0}};
static const struct sim_name fabric_state_names[] = {
    {"Not Started", 1}, {"In Progress", 2}, {"Completed", 3}, {NULL, 0}};

const struct sim_name *sim_kind_names(enum sim_kind kind)
{
    static const struct sim_name *const names[SIM_KIND_COUNT] = {
        [SIM_KIND_SWITCH] = switch_names,
        [SIM_KIND_BRAND] = brand_names,
        [SIM_KIND_ARCH] = arch_names,
        [SIM_KIND_PSTATE] = pstate_names,
        [SIM_KIND_COMPUTE_MODE] = compute_mode_names,
        [SIM_KIND_VIRTUALIZATION] = virtualization_names,
        [SIM_KIND_ADDRESSING] = addressing_names,
        [SIM_KIND_DRIVER_MODEL] = driver_model_names,
        [SIM_KIND_OPERATION_MODE] = operation_mode_names,
        [SIM_KIND_HOST_VGPU] = host_vgpu_names,
        [SIM_KIND_FABRIC_STATE] = fabric_state_names,
    };
    return names[kind];
}
