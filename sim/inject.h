/* Injections of `gpulse sim fault` into a running machine: a permanent fault, a changed answer, or
 * a single event. */
#ifndef GPULSE_SIM_INJECT_H
#define GPULSE_SIM_INJECT_H

#include "sim/machine.h"
#include "sim/state.h"

struct gp_err;

/* The slot of a fault that sets a field of nvmlDeviceGetFieldValues. */
#define SIM_FIELD_SLOT(id) ((uint32_t)SIM_SLOT_COUNT + (id))

enum sim_injection_kind { SIM_INJECT_FAULT, SIM_INJECT_EVENT, SIM_INJECT_CLEAR };

struct sim_injection {
    enum sim_injection_kind kind;
    struct sim_fault fault; /* of an Xid that loses the GPU */
    bool with_fault;
    struct sim_event event; /* without its GPU; for an answer: the event that the driver reports
                               about the change */
    uint64_t repeat;        /* number of events, 0: none */
};

/* Parses "clear", "xid=79", "event=pstate*3", "set=PerformanceState=P8", or a fault, for a GPU.
 * GP_EUSAGE describes the syntax. */
int sim_inject_parse(const char *text, int gpu, struct sim_injection *ret, struct gp_err *err);

/* Injects it on a GPU or, with SIM_ALL_GPUS, on all `gpu_count`; requires the lock of the state. */
int sim_inject(struct sim_state *state, int gpu, size_t gpu_count,
               const struct sim_injection *injection, struct gp_err *err);

#endif
