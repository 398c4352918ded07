/* Live state of a simulated machine, shared by the processes of one user: faults, jobs and what is
 * kept of those, counters.
 *
 * One file per machine in a private directory, mapped by everybody. Writers hold a file lock;
 * readers take nothing: a slot is copied between two reads of its sequence number. So a running
 * monitor sees a fault the moment it is injected, and a hung or killed writer stops nobody. */
#ifndef GPULSE_SIM_STATE_H
#define GPULSE_SIM_STATE_H

#include "base/util.h"
#include "sim/fault.h"
#include "sim/machine.h"

#include <stdatomic.h>

struct gp_err;
struct sim_settings;
struct sim_state;

enum {
    SIM_MAX_FAULTS = 64,
    SIM_MAX_JOBS = 1024,
    SIM_MAX_ACCOUNTS = 2048, /* of jobs, running or not; those of all GPUs together */
    SIM_JOB_NAME_SIZE = 64,
    SIM_MAX_EVENTS = 16384, /* kept for those who wait; a power of two */
};

/* What a driver reports once. */
struct sim_event {
    uint32_t type; /* one bit of NVML_EVENT_* */
    uint32_t gpu;
    uint64_t data;
    uint32_t gpu_instance; /* NVML_NOT_AVAILABLE_U32: the whole GPU */
    uint32_t compute_instance;
};

struct sim_job {
    uint32_t pid;
    uint32_t util_pct;
    uint64_t start_ticks; /* of the process: tells it from a later one with the same pid */
    uint64_t bytes;
    int32_t device;
    int32_t mig;         /* index of the MIG device, SIM_NO_INSTANCE: none */
    uint32_t cuda_state; /* CUprocessState: cuda.c */
    uint32_t heir_of;    /* not 0: it has what the job of this pid had, once that has ended … */
    uint16_t heir_slot;  /* … of which this is the slot */
    uint8_t hidden;      /* not 0: it holds memory, but the driver lists no process */
    uint8_t busy;        /* not 0: its work on the GPU never ends */
    uint8_t managed;     /* not 0: it has managed memory */
    uint8_t spoilt;      /* not 0: it cannot be restored any more */
    char name[SIM_JOB_NAME_SIZE];
};

/* What a driver in accounting mode keeps of a job, also when that has ended. */
struct sim_account {
    uint32_t pid;
    uint32_t gpu;
    uint64_t start_ticks; /* as the job's */
    uint64_t begin_us;    /* since 1970 */
    uint64_t end_us;      /* 0: it has not ended */
    uint64_t most_bytes;
    uint32_t util_pct;
};

/* Opens (creates) the state of the machine that `spec` names. */
int sim_state_open(const char *spec, struct sim_state **ret, struct gp_err *err);
/* State of this process only, for where no file can be had. NULL without memory. */
struct sim_state *sim_state_new_private(void);
void sim_state_close(struct sim_state *state);

/* Readers. False if the slot is empty; a job of a process that has ended counts as empty, and one
 * that has not inherited yet. */
bool sim_state_fault(struct sim_state *state, size_t slot, struct sim_fault *ret);
bool sim_state_job(struct sim_state *state, size_t slot, struct sim_job *ret);
/* True if there may be any; the common case costs one load. */
bool sim_state_has_faults(struct sim_state *state);
bool sim_state_has_jobs(struct sim_state *state);
/* An account, of the SIM_MAX_ACCOUNTS that there may be. */
bool sim_state_account(struct sim_state *state, size_t slot, struct sim_account *ret);

/* Counters of a device that only ever grow. */
enum sim_counter {
    SIM_COUNTER_ENERGY,    /* mJ */
    SIM_COUNTER_POWER_CAP, /* ns */
    SIM_COUNTER_PCIE_TX,   /* bytes, as the next */
    SIM_COUNTER_PCIE_RX,
    SIM_COUNTERS
};

/* The counter, after adding what `per_s` gave since the last reading by anybody. Never decreases.
 * One that is read for the first time starts at `first`. */
uint64_t sim_state_counter(struct sim_state *state, size_t device, enum sim_counter counter,
                           uint64_t per_s, uint64_t first);

/* Writers. Between lock and unlock no other process or thread changes the state. Who forks opens it
 * again in the child: an inherited lock is the same lock. */
int sim_state_lock(struct sim_state *state, struct gp_err *err);
void sim_state_unlock(struct sim_state *state);
int sim_state_add_fault(struct sim_state *state, const struct sim_fault *fault, struct gp_err *err);
/* Removes what SIM_FAULT_SET says of an answer of a GPU, or with SIM_ALL_GPUS of all of them. */
void sim_state_forget_answer(struct sim_state *state, int gpu, uint32_t slot);
/* Removes the faults of a GPU, or with SIM_ALL_GPUS all of them. */
void sim_state_clear_faults(struct sim_state *state, int gpu);
/* Takes a slot for a job of this process, reusing those of ended ones; *ret_slot frees it. */
int sim_state_add_job(struct sim_state *state, const struct sim_job *job, size_t *ret_slot,
                      struct gp_err *err);
/* Changes a job that has this slot. */
void sim_state_update_job(struct sim_state *state, size_t slot, const struct sim_job *job);
void sim_state_remove_job(struct sim_state *state, size_t slot);
/* Removes the heirs of the job of this process. */
void sim_state_remove_heirs(struct sim_state *state, uint32_t pid);

/* Begins the account of a job; what becomes of the job is then kept in it. The oldest of a job that
 * has ended makes room. */
void sim_state_begin_account(struct sim_state *state, const struct sim_job *job);
/* Ends those of jobs that were killed, and had no time to say so. */
void sim_state_settle_accounts(struct sim_state *state);
/* Forgets those of a GPU; only of jobs that have ended, or all. */
void sim_state_forget_accounts(struct sim_state *state, unsigned int gpu, bool running_too);

/* What clients have changed: setting.h. */
struct sim_settings *sim_state_settings(struct sim_state *state);
/* MIG devices that this process has made out of live instances; freed with the state. */
struct sim_device **sim_state_made_devices(struct sim_state *state);

/* Events are numbered from 0, for all processes of the machine. The number of the next: */
uint64_t sim_state_next_event(struct sim_state *state);
/* Posts an event and wakes who waits; the state is locked. */
void sim_state_post_event(struct sim_state *state, const struct sim_event *event);
/* False if it has not happened yet, or was overwritten by SIM_MAX_EVENTS later ones. */
bool sim_state_event(struct sim_state *state, uint64_t number, struct sim_event *ret);
/* Rings with every event and every fault: read it, look whether what you wait for has happened, and
 * if not, wait until it has rung since, or this moment, or a moment without a reason. */
unsigned int sim_state_bell(struct sim_state *state);
void sim_state_await_bell(struct sim_state *state, unsigned int since, uint64_t until_ns);

/* Start time of a process in clock ticks since boot, 0 if it does not exist. */
uint64_t sim_process_start(unsigned int pid);

#endif
