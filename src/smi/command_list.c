#include "smi/command.h"

const struct gp_smi_command gp_smi_commands[] = {
    {"c2c", gp_smi_read_c2c},
    {"clocks", gp_smi_read_clocks},
    {"conf-compute", gp_smi_read_conf_compute},
    {"dmon", gp_smi_read_dmon, true},
    {"encodersessions", gp_smi_read_encodersessions},
    {"fbcsessions", gp_smi_read_fbcsessions},
    {"mig", gp_smi_read_mig},
    {"nvlink", gp_smi_read_nvlink},
    {"pmon", gp_smi_read_pmon, true},
    {"topo", gp_smi_read_topo},
    {"vgpu", gp_smi_read_vgpu},
    {NULL, NULL},
};

#define PRIVATE "the driver's library exports no function for it"

/* What the symbols of driver 590.48.01 and 610.57.04 show. */
const struct gp_smi_missing gp_smi_missing[] = {
    {"base-clocks", PRIVATE, NULL},
    {"boost-slider", PRIVATE, NULL},
    {"compute-policy", PRIVATE, NULL},
    {"daemon", "nvidia-smi keeps its records in a format of its own", "gpulse record"},
    {"drain",
     "gpulse does not call nvmlDeviceQueryDrainState, nvmlDeviceModifyDrainState, "
     "nvmlDeviceRemoveGpu_v2 and nvmlDeviceDiscoverGpus",
     NULL},
    {"gpm", "gpulse does not call nvmlGpmQueryIfStreamingEnabled and nvmlGpmSetStreamingEnabled",
     "gpulse query 'gpm.*'"},
    {"pci",
     "gpulse reads the lane errors as one number, and does not call nvmlDeviceClearFieldValues",
     "gpulse query 'pcie.*'"},
    {"power-hint", PRIVATE, NULL},
    {"power-profiles",
     "gpulse does not call nvmlDeviceWorkloadPowerProfileGetProfilesInfo, "
     "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles and "
     "nvmlDeviceWorkloadPowerProfileClearRequestedProfiles",
     "gpulse query 'power_profiles.*'"},
    {"power-smoothing",
     "gpulse does not call nvmlDevicePowerSmoothingSetState, "
     "nvmlDevicePowerSmoothingActivatePresetProfile and "
     "nvmlDevicePowerSmoothingUpdatePresetProfileParam",
     "gpulse query 'power_smoothing.*'"},
    {"prm", "gpulse does not call nvmlDeviceReadWritePRM_v1, which writes registers", NULL},
    {"replay", "nvidia-smi keeps its records in a format of its own", "gpulse replay"},
    {"rusd", "gpulse does not call nvmlDeviceSetRusdSettings_v1", NULL},
    {"soc", "it is unknown what nvidia-smi prints", NULL},
    {NULL, NULL, NULL},
};
