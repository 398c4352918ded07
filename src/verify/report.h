/* The result of `gpulse sim verify` as text and JSON. */
#ifndef GP_VERIFY_REPORT_H
#define GP_VERIFY_REPORT_H

#include "verify/compare.h"

#include <jansson.h>

struct gp_strbuf;

struct gp_verify_head {
    const char *nvidia_smi; /* its path */
    const char *version;    /* of gpulse */
    bool shows_identities;  /* UUIDs, serial numbers, bus ids, and words that may be names */
};

struct gp_verify_counts {
    size_t compared, equal, moving, known, different; /* `equal` includes `moving` */
};

struct gp_verify_report;

/* NULL without memory. Free it. */
struct gp_verify_report *gp_verify_report_new(const struct gp_verify_head *head);
void gp_verify_report_free(struct gp_verify_report *report);

/* Compares the outputs of a form, and adds what was found. GP_ENOMEM. */
int gp_verify_report_add(struct gp_verify_report *report,
                         const struct gp_compared *compared) GP_MUST_CHECK;

/* All forms together. */
struct gp_verify_counts gp_verify_report_counts(const struct gp_verify_report *report);

void gp_verify_report_add_text(struct gp_strbuf *sb, const struct gp_verify_report *report);
/* NULL without memory. */
json_t *gp_verify_report_json(const struct gp_verify_report *report);

#endif
