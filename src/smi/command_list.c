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
