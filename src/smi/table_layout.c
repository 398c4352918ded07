#include "smi/table_layout.h"

#include <stddef.h>

static const struct gp_smi_box_column card_470 = {
    31,
    {" GPU  Name%21s", " Fan  Temp  Perf  Pwr:Usage/Cap"},
    {" %3s  %-18s %5s ", "%4s  %4s    %-4s%5s / %4s "},
};
static const struct gp_smi_box_column card_530 = {
    41,
    {" GPU  Name%31s", " Fan  Temp  Perf            Pwr:Usage/Cap"},
    {" %3s  %-28s%7s", "%4s  %4s    %-4s           %5s / %4s"},
};
static const struct gp_smi_box_column card_535 = {
    41,
    {" GPU  Name%30s ", " Fan  Temp   Perf          Pwr:Usage/Cap "},
    {" %3s  %-27s %6s ", "%4s  %4s    %-4s          %5s / %4s "},
};
static const struct gp_smi_box_column card_550 = {
    41,
    {" GPU  Name%30s ", " Fan  Temp   Perf          Pwr:Usage/Cap "},
    {" %3s  %-27s %6s ", "%4s  %4s    %-4s         %5s / %5s "},
};
static const struct gp_smi_box_column bus_470 = {
    22,
    {" Bus-Id        Disp.A ", "         Memory-Usage "},
    {" %16s %3s ", "%s"},
};
static const struct gp_smi_box_column bus_550 = {
    24,
    {" Bus-Id          Disp.A ", "           Memory-Usage "},
    {"   %16s %3s ", "%s"},
};
static const struct gp_smi_box_column load = {
    22,
    {" Volatile Uncorr. ECC ", " GPU-Util  Compute M. ", "               MIG M. "},
    {" %20s ", " %7s %12s ", " %20s "},
};

static const char *const memory_470[] = {"%10s / %8s ", "%21s ", " %-21s"};
static const char *const memory_550[] = {"%11s / %9s ", "%21s   ", " %-23s"};

static const struct gp_smi_cell_word modes_470[] = {
    {"Enabled", "On  "}, {"Disabled", "Off "}, {"TCC", "TCC "}, {"WDDM", "WDDM "}, {NULL, NULL}};
static const struct gp_smi_cell_word modes_530[] = {
    {"Enabled", "On "}, {"Disabled", "Off"}, {"TCC", "TCC  "}, {"WDDM", "WDDM "}, {NULL, NULL}};

#define CARDS(card, bus) .box = {{&(card), &(bus), &load}, 3, 3, true, NULL}

static const struct gp_smi_gpu_box gpus_470 = {
    CARDS(card_470, bus_470),
    .banner = " NVIDIA-SMI %-13sDriver Version: %-13sCUDA Version: %-9s",
    .memory = memory_470,
    .name_max = 18,
    .no_unit = "",
    .modes = modes_470,
};
static const struct gp_smi_gpu_box gpus_530 = {
    CARDS(card_530, bus_470),
    .banner = " NVIDIA-SMI %-23sDriver Version: %-13sCUDA Version: %-9s",
    .memory = memory_470,
    .name_max = 28,
    .no_unit = "",
    .modes = modes_530,
};
static const struct gp_smi_gpu_box gpus_535 = {
    CARDS(card_535, bus_470),
    .banner = " NVIDIA-SMI %-23sDriver Version: %-13sCUDA Version: %-9s",
    .memory = memory_470,
    .name_max = 27,
    .no_unit = "",
    .modes = modes_530,
};
static const struct gp_smi_gpu_box gpus_550 = {
    CARDS(card_550, bus_550), .banner = " NVIDIA-SMI %-23sDriver Version: %-15sCUDA Version: %-9s",
    .memory = memory_550,     .name_max = 27,
    .no_unit = " ",           .modes = modes_530,
};

static const struct gp_smi_box_column instance = {
    18,
    {" GPU  GI  CI  MIG ", "      ID  ID  Dev "},
    {" %2s %4s  %2s  %2s  "},
};
static const struct gp_smi_box_column shared_memory_470 = {
    22,
    {"         Memory-Usage ", "           BAR1-Usage "},
    {"%10s / %8s ", "%10s / %8s "},
};
static const struct gp_smi_box_column shared_memory_530 = {
    32,
    {"                   Memory-Usage ", "                     BAR1-Usage "},
    {"%19s / %8s  ", "%19s / %8s  "},
};
static const struct gp_smi_box_column shared_memory_550 = {
    34,
    {"                     Memory-Usage ", "                       BAR1-Usage "},
    {"%19s / %8s    ", "%21s / %8s  "},
};
static const struct gp_smi_box_column shared_memory_580 = {
    34,
    {"              Shared Memory-Usage ", "                Shared BAR1-Usage "},
    {"%19s / %8s    ", "%19s / %8s    "},
};
static const struct gp_smi_box_column multiprocessors = {
    11,
    {"        Vol", " SM     Unc", "        ECC"},
    {"%3s  %5s "},
};
static const struct gp_smi_box_column engines_470 = {
    23,
    {"         Shared        ", " CE  ENC  DEC  OFA  JPG"},
    {"%3s %3s  %3s  %3s  %3s "},
};
static const struct gp_smi_box_column engines_530 = {
    23,
    {"      Shared           ", " CE ENC DEC OFA JPG    "},
    {"%3s %3s  %3s  %3s  %3s "},
};
static const struct gp_smi_box_column engines_580 = {
    23,
    {"        Shared         ", " CE ENC  DEC  OFA  JPG "},
    {"%3s %3s  %3s  %3s  %3s "},
};

#define INSTANCES(memory, engines)                                                                 \
    {                                                                                              \
        {&instance, &(memory), &multiprocessors, &(engines)}, 3, 2, true, "  No MIG devices found" \
    }

static const struct gp_smi_box migs_470 = INSTANCES(shared_memory_470, engines_470);
static const struct gp_smi_box migs_530 = INSTANCES(shared_memory_530, engines_530);
static const struct gp_smi_box migs_550 = INSTANCES(shared_memory_550, engines_530);
static const struct gp_smi_box migs_580 = INSTANCES(shared_memory_580, engines_580);

static const struct gp_smi_box_column process_470 = {
    77,
    {"  GPU   GI   CI        PID   Type   Process name                  GPU Memory ",
     "        ID   ID                                                   Usage      "},
    {" %4s   %3s  %3s  %8s  %5s   %-31s %8s "},
};
static const struct gp_smi_box_column process_530 = {
    87,
    {"  GPU   GI   CI        PID   Type   Process name                            GPU Memory ",
     "        ID   ID                                                             Usage      "},
    {" %4s   %3s  %3s  %8s  %5s   %-41s %8s "},
};
static const struct gp_smi_box_column process_550 = {
    89,
    {"  GPU   GI   CI        PID   Type   Process name                              GPU Memory ",
     "        ID   ID                                                               Usage      "},
    {" %4s   %3s  %3s  %8s  %5s   %-43s %8s "},
};
static const struct gp_smi_box_column process_570 = {
    89,
    {"  GPU   GI   CI              PID   Type   Process name                        GPU Memory ",
     "        ID   ID                                                               Usage      "},
    {" %4s   %3s  %3s  %14s  %5s   %-37s %8s "},
};

#define PROCESSES(process) .box = {{&(process)}, 2, 1, false, "  No running processes found"}

static const struct gp_smi_process_box processes_470 = {PROCESSES(process_470), .name_max = 28};
static const struct gp_smi_process_box processes_530 = {PROCESSES(process_530), .name_max = 38};
static const struct gp_smi_process_box processes_550 = {PROCESSES(process_550), .name_max = 38};
static const struct gp_smi_process_box processes_570 = {PROCESSES(process_570), .name_max = 32};

static const char tcc_wddm[] = "TCC/WDDM ";
static const char driver_model[] = "Driver-Model";

static const struct gp_smi_layout layouts[] = {
    {GP_SMI_UNTIL(529), &gpus_470, &migs_470, &processes_470, tcc_wddm, '|', 79},
    {GP_SMI_BETWEEN(530, 534), &gpus_530, &migs_530, &processes_530, tcc_wddm, '|', 89},
    {GP_SMI_BETWEEN(535, 549), &gpus_535, &migs_530, &processes_530, tcc_wddm, '|', 89},
    {GP_SMI_BETWEEN(550, 554), &gpus_550, &migs_550, &processes_550, tcc_wddm, '|', 89},
    {GP_SMI_BETWEEN(555, 569), &gpus_550, &migs_550, &processes_550, driver_model, '|', 89},
    {GP_SMI_BETWEEN(570, 579), &gpus_550, &migs_550, &processes_570, driver_model, '|', 89},
    {GP_SMI_FROM(580, 0), &gpus_550, &migs_580, &processes_570, driver_model, '+', 0},
};

const struct gp_smi_layout *gp_smi_layout_of(const struct gp_smi_form *form)
{
    const struct gp_smi_layout *layout = layouts;
    while (!gp_smi_in(form, layout->drivers))
        layout++;
    return layout;
}
