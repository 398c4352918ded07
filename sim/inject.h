/* What `gpulse sim fault` injects into a machine that is being watched: a fault that stays, an
 * answer that becomes another, or an event that happens once. */
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
    struct sim_fault fault; /* of an Xid that costs the GPU: that it is lost */
    bool with_fault;
    struct sim_event event; /* without a GPU yet; of an answer: what the driver reports of it */
    uint64_t repeat;        /* how often the event happens, 0: not at all */
};

/* Parses "clear", "xid=79", "event=pstate*3", "set=PerformanceState=P8", or a fault, for a GPU.
 * GP_EUSAGE says what is accepted. */
int sim_inject_parse(const char *text, int gpu, struct sim_injection *ret, struct gp_err *err);

/* Lets it happen, on a GPU or, with SIM_ALL_GPUS, on all `gpu_count`; the state is locked. */
int sim_inject(struct sim_state *state, int gpu, size_t gpu_count,
               const struct sim_injection *injection, struct gp_err *err);

#endif
