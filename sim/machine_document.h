/* Loading a machine file: the members of its document, with the place in it for errors. */
#ifndef GPULSE_SIM_MACHINE_DOCUMENT_H
#define GPULSE_SIM_MACHINE_DOCUMENT_H

#include "sim/machine.h"

#include <jansson.h>

struct gp_err;

/* The state of loading; `path` is the current place, for errors. */
struct sim_loader {
    const char *file;
    struct sim_machine *machine;
    struct gp_err *err;
    const char *played;       /* driver to simulate, NULL: the file's */
    unsigned int recorded[3]; /* the file's driver, which determines its field ids */
    char path[192];
};

/* GP_EFORMAT with the file and the place. What returns an int returns this, or GP_ENOMEM, if it
 * fails, and `path` then stays where the error is. */
int sim_doc_fail(struct sim_loader *l, const char *fmt, ...) GP_PRINTF(2, 3);
int sim_doc_no_memory(struct sim_loader *l);

/* Adds a member to `path`, or an entry; what they return is for sim_doc_leave(). */
size_t sim_doc_enter(struct sim_loader *l, const char *key);
size_t sim_doc_enter_index(struct sim_loader *l, size_t index);
void sim_doc_leave(struct sim_loader *l, size_t len);

/* Rejects members that are not in the NULL-terminated list: misspelled keys would otherwise be
 * ignored. */
int sim_doc_check_keys(struct sim_loader *l, json_t *object, const char *const *known);

/* Members; one that is missing and not required leaves *ret unchanged. */
int sim_doc_text(struct sim_loader *l, json_t *object, const char *key, bool required,
                 const char **ret);
int sim_doc_number(struct sim_loader *l, json_t *object, const char *key, uint64_t max,
                   bool required, uint64_t *ret);
/* An array of at most `max` entries, possibly missing; *ret is NULL then. */
int sim_doc_array(struct sim_loader *l, json_t *object, const char *key, size_t max, json_t **ret);

/* Zeroed, in the machine's arena; at least one entry. */
void *sim_doc_alloc(struct sim_loader *l, size_t count, size_t size);

/* The i-th of a NULL-terminated list, for gp_cli_nearest(). */
const char *sim_doc_next_name(const void *ctx, size_t i);

/* ---- machine_answers.c ---- */

int sim_doc_answers(struct sim_loader *l, json_t *device, struct sim_value *answers);
int sim_doc_fields(struct sim_loader *l, json_t *json, struct sim_device *device);

/* ---- machine_devices.c ---- */

/* count: of GPUs; 0: those of the file. */
int sim_doc_devices(struct sim_loader *l, json_t *root, size_t count);
/* After the devices. */
int sim_doc_workload(struct sim_loader *l, json_t *root);

#endif
