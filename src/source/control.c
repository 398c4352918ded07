#include "source/control.h"

#include "base/cli.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#define UNLOAD "until the driver releases the GPU (soon, without persistence mode) or a reboot"

/* NVML's numbers. */
static const struct gp_choice compute_modes[] = {
    {"default", 0}, {"exclusive-process", 3}, {"prohibited", 2}, {"exclusive-thread", 1}, {NULL, 0},
};
static const struct gp_choice operation_modes[] = {
    {"all-on", 0}, {"compute", 1}, {"low-dp", 2}, {NULL, 0}};
/* Values without the host can be read, but no driver accepts them. */
static const struct gp_choice virtualization_modes[] = {
    {"host-vgpu", 3}, {"host-vsga", 4}, {"none", 0}, {"passthrough", 1}, {"vgpu", 2}, {NULL, 0},
};
static const struct gp_choice accesses[] = {{"all", 0}, {"root", 1}, {NULL, 0}};
static const struct gp_choice ecc_clears[] = {
    {"clear-volatile", 0}, {"clear-aggregate", 1}, {NULL, 0}};
static const struct gp_choice plain_clear[] = {{"clear", 0}, {NULL, 0}};

const struct gp_control gp_control_table[GP_CONTROL__COUNT] = {
    [GP_CONTROL_PERSISTENCE] =
        {.name = "persistence-mode",
         .summary =
             "keep the GPU initialized while no program uses it, so that its settings are not lost",
         .syntax = "on|off",
         .needs = "root; prefer nvidia-persistenced if it is running",
         .takes_effect = "immediately",
         .lasts = "until a reboot",
         .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_MIG_MODE] =
        {.name = "mig-mode",
         .summary = "let the GPU be partitioned into MIG instances",
         .syntax = "on|off",
         .needs = "root; A100, A30, H100 and later data center GPUs; no process may use the GPU",
         .takes_effect = "immediately if the GPU is unused, otherwise after a reset; a reset kills "
                         "everything on it",
         .lasts = "permanently (since Hopper: until a reboot)",
         .kind = GP_CONTROL_SWITCH,
         .loses = "the GPU may be reset, now or later: a reset kills everything on it"},
    [GP_CONTROL_MIG_INSTANCES] =
        {.name = "mig-instances",
         .summary = "MIG instances of the GPU: instances that are not in the list are destroyed, "
                    "missing ones are created with one compute instance each",
         .syntax = "PROFILE,…|none",
         .needs = "root; MIG mode on; for a single instance (-i MIG-…) only none",
         .takes_effect = "immediately",
         .lasts = "until a reboot, or until MIG mode is disabled",
         .kind = GP_CONTROL_PROFILES,
         .on_mig = true,
         .loses = "instances that are not in the list are destroyed; new ones get new UUIDs"},
    [GP_CONTROL_COMPUTE_MODE] = {.name = "compute-mode",
                                 .summary = "how many processes may compute at a time",
                                 .syntax = "default|exclusive-process|prohibited",
                                 .needs = "root; in MIG mode per instance (-i MIG-…)",
                                 .takes_effect = "immediately",
                                 .lasts = UNLOAD,
                                 .kind = GP_CONTROL_CHOICE,
                                 .choices = compute_modes,
                                 .on_mig = true,
                                 .is_volatile = true},
    [GP_CONTROL_POWER_LIMIT] = {.name = "power-limit",
                                .summary = "maximum power draw of the GPU",
                                .syntax = "WATTS|default",
                                .needs = "root; most desktop and data center GPUs, few laptops",
                                .takes_effect = "immediately",
                                .lasts = UNLOAD,
                                .kind = GP_CONTROL_WATTS,
                                .unit = "W",
                                .automatic = "default",
                                .is_volatile = true},
    [GP_CONTROL_MODULE_POWER_LIMIT] =
        {.name = "module-power-limit",
         .summary = "maximum total power draw of GPU and CPU of a superchip module",
         .syntax = "WATTS|default",
         .needs = "root; GH200, GB200 and similar modules; driver 535 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_WATTS,
         .unit = "W",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_LOCK_GPU_CLOCKS] = {.name = "lock-gpu-clocks",
                                    .summary = "lock the graphics and SM clock to a range",
                                    .syntax = "MIN,MAX|MHZ|tdp|reset",
                                    .needs = "root; Volta or later",
                                    .takes_effect = "immediately",
                                    .lasts = UNLOAD,
                                    .kind = GP_CONTROL_RANGE,
                                    .unit = "MHz",
                                    .automatic = "reset",
                                    .has_tdp = true,
                                    .is_volatile = true},
    [GP_CONTROL_LOCK_MEMORY_CLOCKS] = {.name = "lock-memory-clocks",
                                       .summary = "lock the memory clock to a range",
                                       .syntax = "MIN,MAX|MHZ|reset",
                                       .needs = "root; Ampere or later; driver 465 or later",
                                       .takes_effect = "immediately",
                                       .lasts = UNLOAD,
                                       .kind = GP_CONTROL_RANGE,
                                       .unit = "MHz",
                                       .automatic = "reset",
                                       .is_volatile = true},
    [GP_CONTROL_APPLICATION_CLOCKS] =
        {.name = "application-clocks",
         .summary = "clocks for programs, if power and temperature allow them; deprecated: use "
                    "lock-gpu-clocks and lock-memory-clocks",
         .syntax = "MEMORY,GRAPHICS|default",
         .needs = "root unless unrestricted; data center and workstation GPUs; drivers before 590",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_PAIR,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true,
         .instead = "lock-gpu-clocks and lock-memory-clocks"},
    [GP_CONTROL_AUTO_BOOST] =
        {.name = "auto-boost",
         .summary =
             "raise the clocks above the application clocks if power and temperature allow it",
         .syntax = "on|off",
         .needs = "root unless unrestricted; some GPUs before Pascal",
         .takes_effect = "when the last program that requests another mode has exited",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_SWITCH,
         .is_volatile = true},
    [GP_CONTROL_GPU_CLOCK_OFFSET] =
        {.name = "gpu-clock-offset",
         .summary = "offset of the voltage/frequency curve of the graphics clock: overclocks, or "
                    "undervolts together with lock-gpu-clocks",
         .syntax = "MHZ|default",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 515 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_OFFSET,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_MEMORY_CLOCK_OFFSET] =
        {.name = "memory-clock-offset",
         .summary = "offset of the memory clock",
         .syntax = "MHZ|default",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 520 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_OFFSET,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_FAN_SPEED] =
        {.name = "fan-speed",
         .summary = "run the fans at a fixed speed",
         .syntax = "PERCENT|auto|FAN:PERCENT,…|FAN:auto,…",
         .needs = "root; GPUs with their own fans; driver 515 or later",
         .takes_effect = "immediately",
         .lasts = "until fan-speed=auto, or until the driver releases the GPU",
         .kind = GP_CONTROL_FANS,
         .unit = "%",
         .automatic = "auto",
         .is_volatile = true,
         .warning = "the fans keep this speed regardless of the temperature, until fan-speed=auto"},
    [GP_CONTROL_TARGET_TEMPERATURE] =
        {.name = "target-temperature",
         .summary = "temperature at which the driver slows the GPU down",
         .syntax = "DEGREES",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 460 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_NUMBER,
         .unit = "°C",
         .is_volatile = true},
    [GP_CONTROL_ECC_MODE] = {.name = "ecc-mode",
                             .summary = "error correction (ECC) of the GPU memory",
                             .syntax = "on|off",
                             .needs = "root; data center and workstation GPUs",
                             .takes_effect = "after a GPU reset or a reboot",
                             .lasts = "permanently",
                             .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_DRAM_ENCRYPTION] = {.name = "dram-encryption",
                                    .summary = "encryption of the GPU memory",
                                    .syntax = "on|off",
                                    .needs = "root; some Blackwell GPUs; driver 570 or later",
                                    .takes_effect = "after a GPU reset or a reboot",
                                    .lasts = "permanently",
                                    .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_OPERATION_MODE] = {.name = "operation-mode",
                                   .summary = "operation mode: which units of the GPU are enabled",
                                   .syntax = "all-on|compute|low-dp",
                                   .needs = "root; some Kepler GPUs",
                                   .takes_effect = "after a reboot",
                                   .lasts = "permanently",
                                   .kind = GP_CONTROL_CHOICE,
                                   .choices = operation_modes},
    [GP_CONTROL_VIRTUALIZATION_MODE] =
        {.name = "virtualization-mode",
         .summary =
             "whether a virtualization host offers the GPU as vGPUs or as a shared graphics device",
         .syntax = "host-vgpu|host-vsga",
         .needs = "root; a hypervisor with NVIDIA's vGPU driver",
         .takes_effect = "immediately",
         .lasts = "until a reboot, according to NVIDIA",
         .kind = GP_CONTROL_CHOICE,
         .choices = virtualization_modes},
    [GP_CONTROL_APP_CLOCKS_ACCESS] = {.name = "app-clocks-access",
                                      .summary = "who may change application-clocks",
                                      .syntax = "all|root",
                                      .needs = "root; GPUs that support application-clocks",
                                      .takes_effect = "immediately",
                                      .lasts = "until a reboot, according to NVIDIA",
                                      .kind = GP_CONTROL_CHOICE,
                                      .choices = accesses},
    [GP_CONTROL_AUTO_BOOST_ACCESS] = {.name = "auto-boost-access",
                                      .summary = "who may change auto-boost",
                                      .syntax = "all|root",
                                      .needs = "root; GPUs that support auto-boost",
                                      .takes_effect = "immediately",
                                      .lasts = "until a reboot, according to NVIDIA",
                                      .kind = GP_CONTROL_CHOICE,
                                      .choices = accesses},
    [GP_CONTROL_HOSTNAME] = {.name = "hostname",
                             .summary = "hostname stored in the GPU, where others can read it",
                             .syntax = "NAME|none",
                             .needs = "root; Blackwell or later; driver 590 or later",
                             .takes_effect = "immediately",
                             .lasts = "until a reboot, according to NVIDIA",
                             .kind = GP_CONTROL_NAME},
    [GP_CONTROL_ACCOUNTING_MODE] = {.name = "accounting-mode",
                                    .summary = "record the resource use of each process",
                                    .syntax = "on|off",
                                    .needs = "root; Kepler or later; not in MIG mode",
                                    .takes_effect = "immediately",
                                    .lasts = UNLOAD,
                                    .kind = GP_CONTROL_SWITCH,
                                    .is_volatile = true},
    [GP_CONTROL_ACCOUNTING_RECORDS] = {.name = "accounting-records",
                                       .summary =
                                           "clear the accounting records of exited processes",
                                       .syntax = "clear",
                                       .needs = "root",
                                       .takes_effect = "immediately",
                                       .lasts = "permanently",
                                       .kind = GP_CONTROL_CLEAR,
                                       .choices = plain_clear,
                                       .loses =
                                           "the accounting records of exited processes are lost"},
    [GP_CONTROL_ECC_COUNTERS] = {.name = "ecc-counters",
                                 .summary = "reset the memory error counters: volatile (since the "
                                            "driver was loaded) or aggregate (lifetime)",
                                 .syntax = "clear-volatile|clear-aggregate",
                                 .needs = "root; GPUs with ECC",
                                 .takes_effect = "immediately",
                                 .lasts = "permanently",
                                 .kind = GP_CONTROL_CLEAR,
                                 .choices = ecc_clears,
                                 .loses = "the memory error counts are lost"},
    [GP_CONTROL_NVLINK_COUNTERS] = {.name = "nvlink-counters",
                                    .summary = "reset the error counters of all NVLinks",
                                    .syntax = "clear",
                                    .needs = "root; GPUs with NVLink",
                                    .takes_effect = "immediately",
                                    .lasts = "permanently",
                                    .kind = GP_CONTROL_CLEAR,
                                    .choices = plain_clear,
                                    .loses = "the error counts of its NVLinks are lost"},
};

static const char *control_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_CONTROL__COUNT ? gp_control_table[i].name : NULL;
}

int gp_control_find(const char *name, size_t n, enum gp_control_id *ret, struct gp_err *err)
{
    char word[64];
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++)
        if (strlen(gp_control_table[i].name) == n &&
            memcmp(gp_control_table[i].name, name, n) == 0) {
            *ret = (enum gp_control_id)i;
            return 0;
        }
    (void)snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), name);
    return gp_err_set(err, GP_EUSAGE, "unknown setting '%s'%s; gpulse set --list shows all", word,
                      gp_cli_hint(word, control_name, NULL).text);
}
