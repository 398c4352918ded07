/* The recorder at work, for the files that ask. */
#ifndef GPULSE_SIM_RECORD_INTERNAL_H
#define GPULSE_SIM_RECORD_INTERNAL_H

#include "sim/record.h"
#include "sim/record_doc.h"

struct recorder {
    const struct rec_config *config;
    struct rec_api api;
    struct rec_runner *runner;
    struct rec_doc doc;
    struct rec_call one, *call; /* the one in hand */
    unsigned int driver[3];
    char where[48]; /* what is being asked, for the notes */
    unsigned int timeouts;
    bool failed; /* out of memory or threads */
    struct {
        uint64_t ns;
        uint64_t calls;
    } cost[SIM_FN_COUNT];
    /* What the devices have of each other. */
    unsigned int device_count;
    struct {
        nvmlReturn_t code; /* of asking for its handle */
        nvmlDevice_t handle;
        nvmlPciInfo_t pci; /* zeros: not known */
        bool linked;       /* to another one of them */
        unsigned int timeouts;
    } devices[SIM_MAX_DEVICES];
};

/* Prepares r->call, which it returns. */
struct rec_call *rec_prepare(struct recorder *r, enum sim_function function,
                             nvmlReturn_t (*ask_it)(struct rec_call *), nvmlDevice_t device);

/* Makes the call that is prepared. FUNCTION_NOT_FOUND if the driver lacks it. */
nvmlReturn_t rec_ask(struct recorder *r);

/* The lists of a GPU, by the keys of lists.def; those that are NOT_SUPPORTED are left out. */
json_t *rec_lists(struct recorder *r, unsigned int index);
json_t *rec_links(struct recorder *r, unsigned int index);
/* How many NVLinks that GPU has; behind rec_lists. */
unsigned int rec_link_count(const json_t *lists);
/* How the GPUs stand to each other, or NULL. */
json_t *rec_topology(struct recorder *r);
/* What the driver says of the machine itself, by the keys of system.h, or NULL. */
json_t *rec_system(struct recorder *r);

/* Whether there is a row for each list; for a test. */
bool rec_has_list(size_t list);

#endif
