/* The settings that clients have changed on the devices of a machine. Like the rest of the live
 * state, they are shared by all its processes. Readers take no lock; a writer of MIG instances
 * holds the lock of the state. */
#ifndef GPULSE_SIM_SETTING_H
#define GPULSE_SIM_SETTING_H

#include "sim/live.h"
#include "sim/machine.h"

#include <stdatomic.h>

enum sim_setting {
    SIM_SET_PERSISTENCE,
    SIM_SET_COMPUTE_MODE,
    SIM_SET_LIMIT,        /* mW */
    SIM_SET_MODULE_LIMIT, /* mW */
    SIM_SET_ECC,
    SIM_SET_ECC_PENDING,
    SIM_SET_OPERATION_MODE,
    SIM_SET_OPERATION_MODE_PENDING,
    SIM_SET_ACCOUNTING,
    SIM_SET_MIG,
    SIM_SET_MIG_PENDING,
    SIM_SET_APP_MEMORY, /* MHz, like the next */
    SIM_SET_APP_GRAPHICS,
    SIM_SET_GPU_CLOCK_MIN,
    SIM_SET_GPU_CLOCK_MAX,
    SIM_SET_MEMORY_CLOCK_MIN,
    SIM_SET_MEMORY_CLOCK_MAX,
    SIM_SET_OFFSET_GRAPHICS, /* two's complement, like the next */
    SIM_SET_OFFSET_MEMORY,
    SIM_SET_ECC_VOLATILE_CLEARED,
    SIM_SET_ECC_AGGREGATE_CLEARED,
    SIM_SET_RECORDS_CLEARED, /* the accounting records of exited processes were cleared */
    SIM_SET_LINKS_CLEARED,   /* a bit for each link whose error counters were reset */
    SIM_SET_INSTANCES,       /* the lists of instances below are valid, not those of the file */
    SIM_SET_AUTO_BOOST,
    SIM_SET_RESTRICTED, /* in the order of nvmlRestrictedAPI_t */
    SIM_SET_TARGET_TEMPERATURE = SIM_SET_RESTRICTED + NVML_RESTRICTED_API_COUNT,
    SIM_SET_DRAM_ENCRYPTION,
    SIM_SET_DRAM_ENCRYPTION_PENDING,
    SIM_SET_VIRTUALIZATION,
    SIM_SET_HOSTNAME, /* its first eight letters, then the others */
    SIM_SET_FAN = SIM_SET_HOSTNAME + NVML_HOSTNAME_BUFFER_SIZE / 8, /* target of fan 0, and so on */
    SIM_SETTINGS = SIM_SET_FAN + NVML_MAX_FANS
};
_Static_assert(SIM_SETTINGS <= 64, "a bit for each");

enum { SIM_MAX_CLIENTS = 256, SIM_MAX_INSTANCES = 16, SIM_NO_COMPUTE_INSTANCE = 0xff };

/* A GPU or compute instance in one word. */
struct sim_instance {
    uint16_t serial; /* unique in the machine, never reused; 0: no instance */
    uint8_t gi;
    uint8_t ci;      /* SIM_NO_COMPUTE_INSTANCE: a GPU instance */
    uint8_t profile; /* row of the table in mig.c, or for a compute instance its slices */
    uint8_t start;   /* of its placement */
    uint8_t origin;  /* for a compute instance: 1 + its index in the file, 0: created */
    uint8_t mode;    /* for a compute instance: its compute mode */
};
_Static_assert(sizeof(struct sim_instance) == 8, "written and read at once");

/* In shared memory. */
struct sim_settings {
    atomic_uint changed; /* there may be changes */
    atomic_uint serial;  /* the last one assigned */
    atomic_ullong clients[SIM_MAX_CLIENTS];
    struct {
        atomic_ullong set; /* a bit for each setting that has a value */
        atomic_ullong values[SIM_SETTINGS];
        atomic_ullong gpu_instances[SIM_MAX_INSTANCES];
        atomic_ullong compute_instances[SIM_MAX_INSTANCES]; /* MIG device = index here */
    } devices[SIM_MAX_DEVICES];
};

/* Whether this process may change settings, as root may: see GPULSE_SIM_ROOT. */
bool sim_setting_is_allowed(void);

bool sim_setting_get(const struct sim_live *live, const struct sim_device *gpu,
                     enum sim_setting setting, uint64_t *ret);
void sim_setting_set(const struct sim_live *live, const struct sim_device *gpu,
                     enum sim_setting setting, uint64_t value);
void sim_setting_unset(const struct sim_live *live, const struct sim_device *gpu,
                       enum sim_setting setting);

/* Removes a SIM_FAULT_SET of the answers that the setting replaces, because it is older; requires
 * the lock of the state. */
void sim_setting_overrule(const struct sim_live *live, const struct sim_device *gpu,
                          enum sim_setting setting);

/* The stored value of a slot, or the one set by a client. */
struct sim_value sim_setting_value(const struct sim_live *live, const struct sim_device *device,
                                   enum sim_slot slot);
/* A clock, limited to its locked range if there is one. */
uint64_t sim_setting_clock(const struct sim_live *live, const struct sim_device *device,
                           enum sim_slot slot, uint64_t mhz);
/* Same for the power limits among the fields; `v` is the stored value. */
struct sim_value sim_setting_field(const struct sim_live *live, const struct sim_device *device,
                                   unsigned int id, unsigned int scope, struct sim_value v);

#endif
