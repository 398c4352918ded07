/* Sessions, from nvmlInit to nvmlShutdown, and what a call needs to know of them. Calls take no
 * lock: the machine is published through one atomic pointer and never changes. A call keeps it in
 * memory by being counted in `active`. A machine that was shut down is freed by a later
 * initialization that finds no call in progress. So a call that hangs for 45 s (a fault) blocks no
 * other call, and its machine stays valid. */
#ifndef GPULSE_SIM_SESSION_H
#define GPULSE_SIM_SESSION_H

#include "base/io.h"
#include "sim/driver.h"

#include <pthread.h>

/* The state of one initialization. */
struct sim_session {
    struct sim_machine *machine;
    struct sim_live live;
    struct sim_hosttree *tree; /* NULL: nobody reads it */
    unsigned int generation;
    atomic_ulong calls;    /* number of calls so far */
    unsigned long failing; /* index of the call that fails, counted from 1; 0: none */
    nvmlReturn_t failure;
    bool reversed;            /* the GPUs are in reverse order */
    struct sim_session *next; /* the next retired one */
};

/* The state of this library. */
extern struct sim_driver {
    pthread_mutex_t lock; /* for initialization and shutdown */
    _Atomic(struct sim_session *) current;
    struct sim_session *retired;
    atomic_uint active; /* number of calls in progress */
    unsigned int references;
    unsigned int generations;
    _Atomic(pid_t) process; /* that called nvmlInit */
    char error[400];
    char library[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE]; /* its version, after a failed init */
    char root[GP_PATH_SIZE];                            /* of the host's files, if they are read */
    atomic_ullong calls[SIM_FN_COUNT];
} sim_driver;

void sim_sleep_ns(uint64_t ns);

/* The next fault that affects the call: first those of the file, then the live ones. */
bool sim_next_fault(const struct sim_call *call, size_t *at, struct sim_fault *ret);
nvmlReturn_t sim_apply_fault(struct sim_call *call, const struct sim_fault *fault);

/* A forked process has neither the driver's threads nor its files. */
void sim_refuse_in_child(enum sim_function function);
void sim_refuse_without_init(enum sim_function function);

#endif
