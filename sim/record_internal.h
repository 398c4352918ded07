/* The state of the recorder, shared by its files. */
#ifndef GPULSE_SIM_RECORD_INTERNAL_H
#define GPULSE_SIM_RECORD_INTERNAL_H

#include "sim/record.h"
#include "sim/record_doc.h"

struct recorder {
    const struct rec_config *config;
    struct rec_api api;
    struct rec_runner *runner;
    struct rec_doc doc;
    struct rec_call one, *call; /* the current one */
    unsigned int driver[3];
    char where[48]; /* what is being queried, for the notes */
    unsigned int timeouts;
    bool failed; /* out of memory or threads */
    struct {
        uint64_t ns;
        uint64_t calls;
    } cost[SIM_FN_COUNT];
    /* What devices know of each other. */
    unsigned int device_count;
    struct {
        nvmlReturn_t code; /* of opening its handle */
        nvmlDevice_t handle;
        nvmlPciInfo_t pci; /* zeros: unknown */
        bool linked;       /* to another device */
        unsigned int timeouts;
    } devices[SIM_MAX_DEVICES];
};

/* Prepares and returns r->call. */
struct rec_call *rec_prepare(struct recorder *r, enum sim_function function,
                             nvmlReturn_t (*ask_it)(struct rec_call *), nvmlDevice_t device);

/* Makes the prepared call. FUNCTION_NOT_FOUND if the driver does not have it. */
nvmlReturn_t rec_ask(struct recorder *r);

/* The lists of a GPU, by the keys of lists.def, without those that are NOT_SUPPORTED. */
json_t *rec_lists(struct recorder *r, unsigned int index);
json_t *rec_links(struct recorder *r, unsigned int index);
/* The number of NVLinks of that GPU; call it after rec_lists. */
unsigned int rec_link_count(const json_t *lists);
/* The topology of the GPUs, or NULL. */
json_t *rec_topology(struct recorder *r);
/* The driver's answers about the machine, by the keys of system.h, or NULL. */
json_t *rec_system(struct recorder *r);

/* Whether the list has a row; for a test. */
bool rec_has_list(size_t list);

#endif
