/* The layout of the live state. */
#ifndef GPULSE_SIM_STATE_INTERNAL_H
#define GPULSE_SIM_STATE_INTERNAL_H

#include "sim/setting.h"
#include "sim/state.h"

#include <pthread.h>

enum { SIM_RECORD_WORDS = 14 };

struct sim_state_slot {
    atomic_uint sequence; /* odd during a write */
    atomic_uint used;
    atomic_ullong words[SIM_RECORD_WORDS];
};

struct sim_state_counter {
    atomic_ullong time_us; /* of the last read; 0: none yet */
    atomic_ullong count;
};

/* Complete if sequence is its number + 1. */
struct sim_state_event {
    atomic_ullong sequence;
    atomic_ullong words[3];
};

/* The layout of the file. */
struct sim_state_layout {
    char magic[8];
    uint32_t version;
    uint32_t size;
    atomic_uint fault_count;
    atomic_uint job_count;
    struct sim_state_slot faults[SIM_MAX_FAULTS];
    struct sim_state_slot jobs[SIM_MAX_JOBS];
    struct sim_state_slot accounts[SIM_MAX_ACCOUNTS];
    atomic_ullong account_count; /* total so far */
    struct sim_state_counter counters[SIM_MAX_DEVICES][SIM_COUNTERS];
    struct sim_settings settings;
    atomic_ullong event_count; /* total so far */
    atomic_uint event_bell;    /* a futex, changes with every event */
    struct sim_state_event events[SIM_MAX_EVENTS];
};

struct sim_state {
    int fd;               /* −1: private */
    pthread_mutex_t lock; /* between threads; the file lock is between processes */
    struct sim_state_layout *map;
    struct sim_device *made; /* linked by next_made */
    /* Whether a job's process is alive is checked in /proc again only after a while. */
    struct {
        atomic_ullong checked_ms;
        atomic_ullong verdict; /* the process, and in the lowest bit whether it was alive */
    } jobs[SIM_MAX_JOBS];
};

/* Requires the lock: a writer that left the number odd has died. */
void sim_slot_write(struct sim_state_slot *slot, const void *record, size_t size);

/* False if it is empty. A slot that stays odd (a writer died during a write) counts as empty. */
bool sim_slot_read(struct sim_state_slot *slot, void *record, size_t size);

#endif
