#include "tape/import_names.h"

#include "base/strbuf.h"
#include "out/openmetrics.h"

#include <string.h>

#define MIB 0x1p20

/* nvidia-smi dmon and dcgmi dmon by the headings of their columns, DCGM's exporter by the names of
 * its fields. */
static const struct gp_import_name names[] = {
    {GP_IMPORT_DMON, "pwr", GP_POWER_DRAW, 1},
    {GP_IMPORT_DMON, "gtemp", GP_TEMPERATURE_GPU, 1},
    {GP_IMPORT_DMON, "mtemp", GP_TEMPERATURE_MEMORY, 1},
    {GP_IMPORT_DMON, "sm", GP_UTILIZATION_GPU, 1},
    {GP_IMPORT_DMON, "mem", GP_UTILIZATION_MEMORY, 1},
    {GP_IMPORT_DMON, "enc", GP_UTILIZATION_ENCODER, 1},
    {GP_IMPORT_DMON, "dec", GP_UTILIZATION_DECODER, 1},
    {GP_IMPORT_DMON, "jpg", GP_UTILIZATION_JPEG, 1},
    {GP_IMPORT_DMON, "ofa", GP_UTILIZATION_OFA, 1},
    {GP_IMPORT_DMON, "mclk", GP_CLOCK_MEMORY, 1},
    {GP_IMPORT_DMON, "pclk", GP_CLOCK_SM, 1},
    {GP_IMPORT_DMON, "fb", GP_MEMORY_USED, MIB},
    {GP_IMPORT_DMON, "bar1", GP_BAR1_USED, MIB},
    {GP_IMPORT_DMON, "rxpci", GP_PCIE_RX, 1e6},
    {GP_IMPORT_DMON, "txpci", GP_PCIE_TX, 1e6},
    {GP_IMPORT_DMON, "gract", GP_GPM_GRAPHICS, 1},
    {GP_IMPORT_DMON, "smutil", GP_GPM_SM, 1},
    {GP_IMPORT_DMON, "smocc", GP_GPM_SM_OCCUPANCY, 1},
    {GP_IMPORT_DMON, "intutil", GP_GPM_INTEGER, 1},
    {GP_IMPORT_DMON, "mmaact", GP_GPM_TENSOR, 1},
    {GP_IMPORT_DMON, "dram", GP_GPM_DRAM, 1},
    {GP_IMPORT_DMON, "fp64", GP_GPM_FP64, 1},
    {GP_IMPORT_DMON, "fp32", GP_GPM_FP32, 1},
    {GP_IMPORT_DMON, "fp16", GP_GPM_FP16, 1},
    {GP_IMPORT_DMON, "pcitx", GP_GPM_PCIE_TX, MIB},
    {GP_IMPORT_DMON, "pcirx", GP_GPM_PCIE_RX, MIB},
    {GP_IMPORT_DMON, "nvltx", GP_GPM_NVLINK_TX, MIB},
    {GP_IMPORT_DMON, "nvlrx", GP_GPM_NVLINK_RX, MIB},
    {GP_IMPORT_DCGM, "GPUTL", GP_UTILIZATION_GPU, 1},
    {GP_IMPORT_DCGM, "MCUTL", GP_UTILIZATION_MEMORY, 1},
    {GP_IMPORT_DCGM, "POWER", GP_POWER_DRAW, 1},
    {GP_IMPORT_DCGM, "PMLMT", GP_POWER_LIMIT, 1},
    {GP_IMPORT_DCGM, "TMPTR", GP_TEMPERATURE_GPU, 1},
    {GP_IMPORT_DCGM, "MMTMP", GP_TEMPERATURE_MEMORY, 1},
    {GP_IMPORT_DCGM, "SMCLK", GP_CLOCK_SM, 1},
    {GP_IMPORT_DCGM, "MMCLK", GP_CLOCK_MEMORY, 1},
    {GP_IMPORT_DCGM, "TOTEC", GP_ENERGY, 1e-3},
    {GP_IMPORT_DCGM, "FBUSD", GP_MEMORY_USED, MIB},
    {GP_IMPORT_DCGM, "FBFRE", GP_MEMORY_FREE, MIB},
    {GP_IMPORT_DCGM, "GRACT", GP_GPM_GRAPHICS, 100},
    {GP_IMPORT_DCGM, "SMACT", GP_GPM_SM, 100},
    {GP_IMPORT_DCGM, "SMOCC", GP_GPM_SM_OCCUPANCY, 100},
    {GP_IMPORT_DCGM, "TENSO", GP_GPM_TENSOR, 100},
    {GP_IMPORT_DCGM, "DRAMA", GP_GPM_DRAM, 100},
    {GP_IMPORT_DCGM, "FP64A", GP_GPM_FP64, 100},
    {GP_IMPORT_DCGM, "FP32A", GP_GPM_FP32, 100},
    {GP_IMPORT_DCGM, "FP16A", GP_GPM_FP16, 100},
    {GP_IMPORT_DCGM, "PCITX", GP_PCIE_TX, 1},
    {GP_IMPORT_DCGM, "PCIRX", GP_PCIE_RX, 1},
    {GP_IMPORT_DCGM, "NVLTX", GP_NVLINK_RATE_TX, 1},
    {GP_IMPORT_DCGM, "NVLRX", GP_NVLINK_RATE_RX, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_GPU_UTIL", GP_UTILIZATION_GPU, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_MEM_COPY_UTIL", GP_UTILIZATION_MEMORY, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_ENC_UTIL", GP_UTILIZATION_ENCODER, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_DEC_UTIL", GP_UTILIZATION_DECODER, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_FB_USED", GP_MEMORY_USED, MIB},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_FB_FREE", GP_MEMORY_FREE, MIB},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_FB_TOTAL", GP_MEMORY_TOTAL, MIB},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_POWER_USAGE", GP_POWER_DRAW, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_GPU_TEMP", GP_TEMPERATURE_GPU, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_MEMORY_TEMP", GP_TEMPERATURE_MEMORY, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_SM_CLOCK", GP_CLOCK_SM, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_MEM_CLOCK", GP_CLOCK_MEMORY, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", GP_ENERGY, 1e-3},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", GP_GPM_GRAPHICS, 100},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_SM_ACTIVE", GP_GPM_SM, 100},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_SM_OCCUPANCY", GP_GPM_SM_OCCUPANCY, 100},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", GP_GPM_TENSOR, 100},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_DRAM_ACTIVE", GP_GPM_DRAM, 100},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_PCIE_TX_BYTES", GP_PCIE_TX, 1},
    {GP_IMPORT_PROMETHEUS, "DCGM_FI_PROF_PCIE_RX_BYTES", GP_PCIE_RX, 1},
};

/* A name that gpulse's own OpenMetrics output has: percent are ratios there. */
static const struct gp_import_name *find_own(const char *name)
{
    static struct gp_import_name own;
    bool found = false;
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST && !found; m++) {
        struct gp_strbuf family = GP_STRBUF_INIT(1024);
        gp_openmetrics_add_family(&family, (enum gp_metric)m);
        if (gp_openmetrics_is_counter((enum gp_metric)m))
            gp_strbuf_adds(&family, "_total");
        found = !family.error && strcmp(family.buf, name) == 0;
        if (found)
            own = (struct gp_import_name){GP_IMPORT_PROMETHEUS, NULL, (enum gp_metric)m,
                                          gp_metric_table[m].unit == GP_UNIT_PERCENT ? 100 : 1};
        gp_strbuf_fini(&family);
    }
    return found ? &own : NULL;
}

const struct gp_import_name *gp_import_name_find(enum gp_import_names of, const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (names[i].of == of && strcmp(names[i].name, name) == 0)
            return &names[i];
    return of == GP_IMPORT_PROMETHEUS ? find_own(name) : NULL;
}
