/* Live state of a simulated machine, shared by the processes of one user: faults, jobs and their
 * accounting, counters.
 *
 * There is one file per machine in a private directory, mapped by all processes. Writers hold a
 * file lock. Readers take no lock: they copy a slot between two reads of its sequence number. So a
 * running monitor sees a fault the moment it is injected, and a hung or killed writer blocks
 * nobody. */
#ifndef GPULSE_SIM_STATE_H
#define GPULSE_SIM_STATE_H

#include "base/io.h"
#include "sim/fault.h"
#include "sim/machine.h"

#include <stdatomic.h>

struct gp_err;
struct sim_settings;
struct sim_state;

enum {
    SIM_MAX_FAULTS = 64,
    SIM_MAX_JOBS = 1024,
    SIM_MAX_ACCOUNTS = 2048, /* of jobs, running or not; for all GPUs together */
    SIM_JOB_NAME_SIZE = 64,
    SIM_MAX_EVENTS = 16384, /* kept for waiting clients; a power of two */
};

/* An event of the driver. */
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
    uint64_t start_ticks; /* of the process, to detect a recycled pid */
    uint64_t bytes;
    int32_t device;
    int32_t mig;         /* index of the MIG device, SIM_NO_INSTANCE: none */
    uint32_t cuda_state; /* CUprocessState: cuda.c */
    uint32_t heir_of;    /* not 0: inherits from the job of this pid when that exits … */
    uint16_t heir_slot;  /* … and this is its slot */
    uint8_t hidden;      /* not 0: it holds memory, but the driver does not list the process */
    uint8_t busy;        /* not 0: its GPU work never finishes */
    uint8_t managed;     /* not 0: it uses managed memory */
    uint8_t spoilt;      /* not 0: it can no longer be restored */
    char name[SIM_JOB_NAME_SIZE];
};

/* The accounting record of a job, kept after it has exited. */
struct sim_account {
    uint32_t pid;
    uint32_t gpu;
    uint64_t start_ticks; /* same as in the job */
    uint64_t begin_us;    /* since 1970 */
    uint64_t end_us;      /* 0: still running */
    uint64_t most_bytes;
    uint32_t util_pct;
};

/* The private directory of the states, which is made if necessary: its path as configured, and a
 * descriptor. */
int sim_state_directory(char path[GP_PATH_SIZE], int *ret_fd, struct gp_err *err);
/* The name in it of what belongs to the machine named `spec`. */
enum { SIM_STATE_NAME_SIZE = 64 };
void sim_state_name(const char *spec, const char *suffix, char out[SIM_STATE_NAME_SIZE]);

/* Opens or creates the state of the machine named `spec`. */
int sim_state_open(const char *spec, struct sim_state **ret, struct gp_err *err);
/* A state for this process only, if no file can be used. NULL without memory. */
struct sim_state *sim_state_new_private(void);
void sim_state_close(struct sim_state *state);

/* Readers. Return false for an empty slot. A job whose process has exited counts as empty, and so
 * does one that has not inherited yet. */
bool sim_state_fault(struct sim_state *state, size_t slot, struct sim_fault *ret);
bool sim_state_job(struct sim_state *state, size_t slot, struct sim_job *ret);
/* The same, but also an heir whose job still runs, and which therefore holds nothing. */
bool sim_state_job_or_heir(struct sim_state *state, size_t slot, struct sim_job *ret);
/* Whether there may be faults; the common case costs one load. */
bool sim_state_has_faults(struct sim_state *state);
bool sim_state_has_jobs(struct sim_state *state);
/* Reads one of the SIM_MAX_ACCOUNTS accounting records. */
bool sim_state_account(struct sim_state *state, size_t slot, struct sim_account *ret);

/* Counters of a device that only grow. */
enum sim_counter {
    SIM_COUNTER_ENERGY,    /* mJ */
    SIM_COUNTER_POWER_CAP, /* ns */
    SIM_COUNTER_PCIE_TX,   /* bytes, like the next */
    SIM_COUNTER_PCIE_RX,
    SIM_COUNTERS
};

/* The counter, after adding `per_s` times the time since the last read by any process. Never
 * decreases. On the first read it starts at `first`. */
uint64_t sim_state_counter(struct sim_state *state, size_t device, enum sim_counter counter,
                           uint64_t per_s, uint64_t first);

/* Writers. Between lock and unlock no other process or thread changes the state. After a fork, the
 * child must open it again: an inherited lock is the same lock. */
int sim_state_lock(struct sim_state *state, struct gp_err *err);
void sim_state_unlock(struct sim_state *state);
int sim_state_add_fault(struct sim_state *state, const struct sim_fault *fault, struct gp_err *err);
/* Removes the SIM_FAULT_SET of an answer for a GPU, or with SIM_ALL_GPUS for all of them. */
void sim_state_forget_answer(struct sim_state *state, int gpu, uint32_t slot);
/* Removes the faults of a GPU, or with SIM_ALL_GPUS all faults. */
void sim_state_clear_faults(struct sim_state *state, int gpu);
/* Allocates a slot for a job of this process, reusing those of exited ones; *ret_slot is needed to
 * free it. */
int sim_state_add_job(struct sim_state *state, const struct sim_job *job, size_t *ret_slot,
                      struct gp_err *err);
/* Changes the job in this slot. */
void sim_state_update_job(struct sim_state *state, size_t slot, const struct sim_job *job);
void sim_state_remove_job(struct sim_state *state, size_t slot);
/* Removes the heirs of this process's job. */
void sim_state_remove_heirs(struct sim_state *state, uint32_t pid);

/* Starts the accounting record of a job, which is then kept up to date. Replaces the oldest record
 * of an exited job. */
void sim_state_begin_account(struct sim_state *state, const struct sim_job *job);
/* Closes the records of jobs that were killed. */
void sim_state_settle_accounts(struct sim_state *state);
/* Clears the records of a GPU: all, or only those of exited jobs. */
void sim_state_forget_accounts(struct sim_state *state, unsigned int gpu, bool running_too);

/* The settings changed by clients: setting.h. */
struct sim_settings *sim_state_settings(struct sim_state *state);
/* MIG devices that this process has created for live instances; freed with the state. */
struct sim_device **sim_state_made_devices(struct sim_state *state);

/* Events are numbered from 0, for all processes of the machine. Returns the number of the next
 * one. */
uint64_t sim_state_next_event(struct sim_state *state);
/* Posts an event and wakes waiting clients; requires the lock of the state. */
void sim_state_post_event(struct sim_state *state, const struct sim_event *event);
/* False if it has not happened yet, or was overwritten by SIM_MAX_EVENTS later ones. */
bool sim_state_event(struct sim_state *state, uint64_t number, struct sim_event *ret);
/* Changes with every event and fault. Read it, check for what you wait for, and if it has not
 * happened, wait until it changes or until the deadline; the wait may also end early. */
unsigned int sim_state_bell(struct sim_state *state);
void sim_state_await_bell(struct sim_state *state, unsigned int since, uint64_t until_ns);

/* Start time of a process in clock ticks since boot; 0 if it does not exist. */
uint64_t sim_process_start(unsigned int pid);

#endif
