/* Records a driver: queries everything that a machine file can contain, and stores every answer and
 * return code. The queries are generated from answers.def, so that new rows are recorded too. */
#ifndef GPULSE_SIM_RECORD_H
#define GPULSE_SIM_RECORD_H

#include "sim/machine.h"

#include <jansson.h>

struct gp_err;

/* The driver, loaded like by any program. */
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

/* One driver call with its input and output. It belongs to the thread that makes it; if the call
 * never returns, permanently. */
struct rec_call {
    const struct rec_api *api;
    enum sim_function function;
    nvmlReturn_t (*ask)(struct rec_call *call);
    nvmlDevice_t device;
    unsigned int key;
    nvmlReturn_t code;
    uint64_t ns;
    uint64_t numbers[REC_NUMBERS];
    uint32_t unknown; /* bits: numbers that this version of the call does not provide */
    char text[REC_TEXT_SIZE];
    uint16_t text_at[REC_NUMBERS]; /* the offset of each text */
    nvmlDevice_t handle;
    nvmlPciInfo_t pci;
    nvmlFieldValue_t fields[REC_FIELDS];
    size_t entry_size; /* of a list */
    void *entries;
    unsigned int count;
};

/* Runs calls on a separate thread, each with a deadline. A call that misses it returns TIMEOUT and
 * keeps its thread; the next call gets a new one. */
struct rec_runner;
struct rec_runner *rec_runner_new(uint64_t timeout_ns);
/* Whether a call is still in progress: the session must not be closed then. */
bool rec_runner_is_stuck(const struct rec_runner *runner);
/* False if it is stuck. */
bool rec_runner_free(struct rec_runner *runner);
/* Fills *call with the result. The caller frees its entries. Returns false without memory or
 * threads. */
bool rec_run(struct rec_runner *runner, struct rec_call *call);

/* A query of a device that fills slots of answers.def. */
struct rec_probe {
    enum sim_function function;
    enum sim_slot slot;  /* the first one */
    unsigned int values; /* consecutive slots that one call fills */
    unsigned int keys;   /* number of calls, each for the following slots */
    nvmlReturn_t (*ask)(struct rec_call *call);
};
extern const struct rec_probe rec_probes[];
extern const size_t rec_probe_count;

struct rec_config {
    const char *library; /* NULL: search */
    uint64_t timeout_ns; /* for one call */
    bool latency;        /* measure the duration of calls */
    bool redact;
};

/* Records everything. The machine is a document for sim_machine_load. *ret_stuck: a call has not
 * returned, so the process should exit with _exit(). */
int rec_machine(const struct rec_config *config, json_t **ret, bool *ret_stuck, struct gp_err *err);

#endif
