/* The simulated driver's life: initialisation, handles, and what every call passes through. */
#ifndef GPULSE_SIM_DRIVER_H
#define GPULSE_SIM_DRIVER_H

#include "sim/live.h"
#include "sim/machine.h"

#define SIM_EXPORT __attribute__((visibility("default")))

#define X(branch, type, name, args) SIM_EXPORT type name args;
NVML_FUNCTIONS(X)
#undef X

/* Why the last nvmlInit answered UNKNOWN, in words for a person; "" if it did not. */
SIM_EXPORT const char *gpulse_sim_error(void);

/* The version of the library when nvmlInit has failed; "" else. It needs no driver. */
const char *sim_failed_library(void);

/* One call in progress. Between sim_enter and sim_leave the machine stays in memory. */
struct sim_call {
    struct sim_live live;
    struct sim_machine *machine; /* NULL: not initialised */
    struct sim_device *device;   /* NULL in a call without one */
    enum sim_function function;
    unsigned int generation; /* of the initialisation, for handles */
    bool absurd;             /* answer sentinels and impossible numbers */
    bool grow;               /* the process list is growing */
    bool no_gpu;             /* the machine has no device at the moment */
    bool reversed;           /* the order of the GPUs */
    uint32_t effects;        /* bits: the other faults that change answers, by sim_fault_kind */
};

/* Begins a call: counts it, spends its latency, applies the faults. `args_ok` says whether the
 * pointers that the caller passed can be used. Each is followed by sim_leave, whatever it answers.
 */
nvmlReturn_t sim_enter(struct sim_call *call, enum sim_function function, bool args_ok);
nvmlReturn_t sim_enter_device(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t handle, bool args_ok);
/* Ends the call and passes its return code on. */
nvmlReturn_t sim_leave(nvmlReturn_t code);

/* Whether this GPU has fallen off the bus, for a call that concerns several. */
bool sim_is_lost(const struct sim_call *call, struct sim_device *device);

/* Hands out a handle for a device, applying its faults first. */
nvmlReturn_t sim_give_handle(struct sim_call *call, struct sim_device *device, nvmlDevice_t *ret);

/* The device of a further handle, inside a call; NULL if it is none. */
const struct sim_device *sim_find_device(enum sim_function function, nvmlDevice_t handle);

/* nvml_links.c: a field about NVLinks; NOT_SUPPORTED if it is none. */
struct sim_value sim_link_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope);

/* Whether a fault that changes answers concerns this call. */
static inline bool sim_is_hit(const struct sim_call *call, enum sim_fault_kind kind)
{
    return call->effects >> kind & 1;
}

/* Whether a GPU has a fault, whatever is called. */
bool sim_has_fault(const struct sim_call *call, struct sim_device *gpu, enum sim_fault_kind kind);

/* The GPUs that the driver knows now and their order; NULL behind the last. */
unsigned int sim_device_count(const struct sim_call *call);
struct sim_device *sim_device_at(const struct sim_call *call, unsigned int index);
struct sim_device *sim_excluded_at(const struct sim_call *call, unsigned int index);
unsigned int sim_index_of(const struct sim_call *call, const struct sim_device *device);
bool sim_device_is_there(const struct sim_call *call, struct sim_device *device);

/* The pid of a process as the driver tells it. */
unsigned int sim_listed_pid(const struct sim_call *call, unsigned int pid);

enum { SIM_UUID_SIZE = 96 };
void sim_uuid_of(const struct sim_call *call, struct sim_device *device, char out[SIM_UUID_SIZE]);

/* The number in a slot, moved by load and faults. */
nvmlReturn_t sim_read(const struct sim_call *call, enum sim_slot slot, uint64_t *ret);

/* A whole call that reads `count` slots into values, all or nothing. */
nvmlReturn_t sim_answer_numbers(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                const enum sim_slot *slots, size_t count, uint64_t *values);

#endif
