/* Builds the machine file of the recorder: answers with their names, redaction, notes. */
#ifndef GPULSE_SIM_RECORD_DOC_H
#define GPULSE_SIM_RECORD_DOC_H

#include "sim/machine.h"

#include <jansson.h>

struct rec_answers {
    struct sim_value values[SIM_SLOT_COUNT];
    bool asked[SIM_SLOT_COUNT]; /* the driver has the function */
};

struct rec_doc {
    struct gp_arena arena; /* for texts */
    bool redact;
    json_t *driver, *devices, *faults, *notes;
    json_t *latency;  /* NULL: not measured */
    json_t *topology; /* NULL: not reported */
    json_t *system;   /* likewise */
    json_t *secrets;  /* what was replaced, and the replacement */
};

bool rec_doc_init(struct rec_doc *doc, bool redact);
void rec_doc_fini(struct rec_doc *doc);

/* A text of the driver as valid UTF-8, owned by the document. Never NULL. */
const char *rec_doc_text(struct rec_doc *doc, const char *text);

/* The text or, with redaction, a replacement of the same form, which is the same for equal
 * texts. */
const char *rec_doc_secret(struct rec_doc *doc, const char *text);

/* Adds a note for people: something that could not be queried, or does not fit into a machine
 * file. */
void rec_doc_note(struct rec_doc *doc, const char *fmt, ...) GP_PRINTF(2, 3);

json_t *rec_doc_answers(struct rec_doc *doc, const char *where, const struct rec_answers *answers,
                        bool mig);
json_t *rec_doc_processes(struct rec_doc *doc, const char *where,
                          const struct sim_process *processes, size_t count);
/* The number of a value and its type; false for an unknown type. */
bool rec_number(nvmlValueType_t type, const nvmlValue_t *value, json_int_t *ret);
/* Adds one value to the fields of a device. */
void rec_doc_field(struct rec_doc *doc, json_t *fields, const nvmlFieldValue_t *field,
                   nvmlReturn_t code);

/* Finishes the machine, which no longer belongs to the document; NULL without memory. */
json_t *rec_doc_machine(struct rec_doc *doc, const bool present[SIM_SYMBOL_COUNT],
                        const unsigned int driver[3]);

/* The scopes of a field on a GPU with this many links, in order; false after the last. */
bool rec_field_scope(unsigned int newest, unsigned int links, unsigned int at, unsigned int *ret);

/* The name of a return code, as in machine files. */
json_t *rec_doc_code(nvmlReturn_t code);

#endif
