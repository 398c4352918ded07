/* Writing down a driver: everything that a machine file can hold is asked, and every answer and
 * return code kept. What to ask is generated from answers.def, so that a new row is recorded too.
 */
#ifndef GPULSE_SIM_RECORD_H
#define GPULSE_SIM_RECORD_H

#include "sim/machine.h"

#include <jansson.h>

struct gp_err;

/* The driver, as any program loads it. */
struct rec_api {
    void *library;
    bool present[SIM_SYMBOL_COUNT];
#define X(branch, type, name, args) type(*name) args;
    NVML_FUNCTIONS(X)
#undef X
    const char *(*gpulse_sim_error)(void); /* NULL: a real driver */
};

/* Loads the library at `path`, or searches for it. */
int rec_load(struct rec_api *api, const char *path, struct gp_err *err);

enum { REC_NUMBERS = 16, REC_TEXT_SIZE = 1024, REC_FIELDS = 64, REC_MAX_ENTRIES = 65536 };

/* One call of the driver: what goes in and what comes out. It belongs to the thread that makes it,
 * for ever if it does not return. */
struct rec_call {
    const struct rec_api *api;
    enum sim_function function;
    nvmlReturn_t (*ask)(struct rec_call *call);
    nvmlDevice_t device;
    unsigned int key;
    nvmlReturn_t code;
    uint64_t ns;
    uint64_t numbers[REC_NUMBERS];
    uint32_t unknown; /* bits: numbers that this version of the call does not give */
    char text[REC_TEXT_SIZE];
    uint16_t text_at[REC_NUMBERS]; /* where the text of each value begins */
    nvmlDevice_t handle;
    nvmlPciInfo_t pci;
    nvmlFieldValue_t fields[REC_FIELDS];
    size_t entry_size; /* of a list */
    void *entries;
    unsigned int count;
};

/* Runs calls on a thread of its own, each with a deadline; a call that misses it answers TIMEOUT,
 * keeps its thread, and the next one gets another. */
struct rec_runner;
struct rec_runner *rec_runner_new(uint64_t timeout_ns);
/* True if a call is still in progress: then the session is not to be ended. */
bool rec_runner_is_stuck(const struct rec_runner *runner);
/* False if it is stuck. */
bool rec_runner_free(struct rec_runner *runner);
/* Fills in *call what came back. Its entries belong to the caller, who frees them. False without
 * memory or threads. */
bool rec_run(struct rec_runner *runner, struct rec_call *call);

/* A question to a device that fills slots of answers.def. */
struct rec_probe {
    enum sim_function function;
    enum sim_slot slot;  /* the first one */
    unsigned int values; /* consecutive slots that one call fills */
    unsigned int keys;   /* calls, each for the next slots */
    nvmlReturn_t (*ask)(struct rec_call *call);
};
extern const struct rec_probe rec_probes[];
extern const size_t rec_probe_count;

struct rec_config {
    const char *library; /* NULL: search */
    uint64_t timeout_ns; /* of one call */
    bool latency;        /* measure what the calls cost */
    bool redact;
};

/* Asks the driver everything. The machine is a document that sim_machine_load reads. *ret_stuck: a
 * call has not returned, the process should end with _exit. */
int rec_machine(const struct rec_config *config, json_t **ret, bool *ret_stuck, struct gp_err *err);

#endif
