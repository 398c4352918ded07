/* The core of the simulated driver: initialization, handles, and the steps common to all calls. */
#ifndef GPULSE_SIM_DRIVER_H
#define GPULSE_SIM_DRIVER_H

#include "sim/live.h"
#include "sim/machine.h"

#define SIM_EXPORT __attribute__((visibility("default")))

#define X(branch, type, name, args) SIM_EXPORT type name args;
NVML_FUNCTIONS(X)
#undef X

/* Why the last nvmlInit returned UNKNOWN, for people; "" if it did not. */
SIM_EXPORT const char *gpulse_sim_error(void);

/* The directory that holds the files of the machine's host, which is kept up to date from here on;
 * NULL: it has none, or the directory cannot be written, which `problem` explains. To be called
 * before nvmlInit. */
SIM_EXPORT const char *gpulse_sim_root(char *problem, size_t size);

/* The library version if nvmlInit has failed, otherwise "". Works without a driver. */
const char *sim_failed_library(void);

/* One call in progress. The machine stays in memory between sim_enter and sim_leave. */
struct sim_call {
    struct sim_live live;
    struct sim_machine *machine; /* NULL: not initialized */
    struct sim_device *device;   /* NULL if the call has none */
    struct sim_hosttree *tree;   /* of the machine's files, or NULL */
    enum sim_function function;
    unsigned int generation; /* counter of initializations, for handles */
    bool absurd;             /* return sentinels and impossible numbers */
    bool grow;               /* the process list is growing */
    bool no_gpu;             /* the machine currently has no device */
    bool reversed;           /* the GPUs are in reverse order */
    uint32_t effects;        /* bits of sim_fault_kind: the other faults that change answers */
};

/* Starts a call: counts it, waits for its latency, and applies faults. `args_ok` says whether the
 * caller's pointers are usable. Must be followed by sim_leave, whatever it returns. */
nvmlReturn_t sim_enter(struct sim_call *call, enum sim_function function, bool args_ok);
nvmlReturn_t sim_enter_device(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t handle, bool args_ok);
/* Ends the call and returns its return code. */
nvmlReturn_t sim_leave(nvmlReturn_t code);

/* Whether this GPU has fallen off the bus, for calls about several GPUs. */
bool sim_is_lost(const struct sim_call *call, struct sim_device *device);

/* Returns a handle for a device, after applying its faults. */
nvmlReturn_t sim_give_handle(struct sim_call *call, struct sim_device *device, nvmlDevice_t *ret);

/* The device of an additional handle, inside a call; NULL if it is invalid. */
const struct sim_device *sim_find_device(enum sim_function function, nvmlDevice_t handle);

/* In nvml_links.c. A field about NVLinks; NOT_SUPPORTED for other fields. */
struct sim_value sim_link_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope);

/* Whether a fault that changes answers affects this call. */
static inline bool sim_is_hit(const struct sim_call *call, enum sim_fault_kind kind)
{
    return call->effects >> kind & 1;
}

/* Whether a GPU has a fault, for any function. */
bool sim_has_fault(const struct sim_call *call, struct sim_device *gpu, enum sim_fault_kind kind);

/* The current GPUs in the driver's order; NULL after the last. */
unsigned int sim_device_count(const struct sim_call *call);
struct sim_device *sim_device_at(const struct sim_call *call, unsigned int index);
struct sim_device *sim_excluded_at(const struct sim_call *call, unsigned int index);
unsigned int sim_index_of(const struct sim_call *call, const struct sim_device *device);
bool sim_device_is_there(const struct sim_call *call, struct sim_device *device);

/* The pid that the driver reports for a process. */
unsigned int sim_listed_pid(const struct sim_call *call, unsigned int pid);

enum { SIM_UUID_SIZE = 96 };
void sim_uuid_of(const struct sim_call *call, struct sim_device *device, char out[SIM_UUID_SIZE]);

/* The number in a slot, after applying load and faults. */
nvmlReturn_t sim_read(const struct sim_call *call, enum sim_slot slot, uint64_t *ret);

/* Copies a text to the caller's buffer; one that is too small is left unchanged. */
nvmlReturn_t sim_put_text(const char *text, char *buffer, unsigned int length);

/* A complete call that reads `count` slots into values, all or nothing. */
nvmlReturn_t sim_answer_numbers(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                const enum sim_slot *slots, size_t count, uint64_t *values);

#endif
