/* The calls of the recorder: what is missing or does not return is noted, and skipped. */
#include "sim/record_internal.h"

#include <stdlib.h>
#include <string.h>

/* After this many calls without a response, the rest of a device is skipped. */
enum { MAX_TIMEOUTS = 3 };

nvmlReturn_t rec_ask(struct recorder *r)
{
    struct rec_call *c = r->call;
    c->api = &r->api;
    if (!r->api.present[c->function])
        return c->code = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (r->timeouts >= MAX_TIMEOUTS || r->failed)
        return c->code = NVML_ERROR_TIMEOUT;
    if (!rec_run(r->runner, c)) {
        r->failed = true;
        return c->code = NVML_ERROR_MEMORY;
    }
    r->cost[c->function].ns += c->ns;
    r->cost[c->function].calls++;
    if (c->code == NVML_ERROR_TIMEOUT && c->ns >= r->config->timeout_ns) {
        r->timeouts++;
        rec_doc_note(&r->doc, "%s: %s did not respond%s", r->where, sim_function_names[c->function],
                     r->timeouts == MAX_TIMEOUTS ? "; the rest was skipped" : "");
    }
    return c->code;
}

struct rec_call *rec_prepare(struct recorder *r, enum sim_function function,
                             nvmlReturn_t (*ask_it)(struct rec_call *), nvmlDevice_t device)
{
    free(r->call->entries);
    memset(r->call, 0, sizeof(*r->call));
    r->call->function = function;
    r->call->ask = ask_it;
    r->call->device = device;
    r->call->entries = NULL;
    return r->call;
}
