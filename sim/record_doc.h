/* The machine file that the recorder writes: answers in their words, secrets taken out, notes. */
#ifndef GPULSE_SIM_RECORD_DOC_H
#define GPULSE_SIM_RECORD_DOC_H

#include "sim/machine.h"

#include <jansson.h>

struct rec_answers {
    struct sim_value values[SIM_SLOT_COUNT];
    bool asked[SIM_SLOT_COUNT]; /* the driver has the function */
};

struct rec_doc {
    struct gp_arena arena; /* of the texts */
    bool redact;
    json_t *driver, *devices, *faults, *notes;
    json_t *latency;  /* NULL: not measured */
    json_t *topology; /* NULL: not told */
    json_t *system;   /* likewise */
    json_t *secrets;  /* what was replaced, and by what */
};

bool rec_doc_init(struct rec_doc *doc, bool redact);
void rec_doc_fini(struct rec_doc *doc);

/* A text of the driver as valid UTF-8; it lives as long as the document. Never NULL. */
const char *rec_doc_text(struct rec_doc *doc, const char *text);

/* The text, or with redaction another of its form: the same for the same text. */
const char *rec_doc_secret(struct rec_doc *doc, const char *text);

/* A line for people: what could not be asked, or does not fit a machine file. */
void rec_doc_note(struct rec_doc *doc, const char *fmt, ...) GP_PRINTF(2, 3);

json_t *rec_doc_answers(struct rec_doc *doc, const char *where, const struct rec_answers *answers,
                        bool mig);
json_t *rec_doc_processes(struct rec_doc *doc, const char *where,
                          const struct sim_process *processes, size_t count);
/* The number that a driver gives together with its type; false if there is no such type. */
bool rec_number(nvmlValueType_t type, const nvmlValue_t *value, json_int_t *ret);
/* Adds one value to the fields of a device. */
void rec_doc_field(struct rec_doc *doc, json_t *fields, const nvmlFieldValue_t *field,
                   nvmlReturn_t code);

/* The whole, of which the document keeps nothing; NULL without memory. */
json_t *rec_doc_machine(struct rec_doc *doc, const bool present[SIM_SYMBOL_COUNT],
                        const unsigned int driver[3]);

/* The scopes that a field has on a GPU with so many links, one after the other; false behind the
 * last. */
bool rec_field_scope(unsigned int newest, unsigned int links, unsigned int at, unsigned int *ret);

/* The name of a return code, as a machine file has it. */
json_t *rec_doc_code(nvmlReturn_t code);

#endif
