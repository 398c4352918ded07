/* GPU models: lookup by name, and their capabilities as text and JSON. Pure functions. */
#ifndef GP_DOCTOR_ADVISE_CARDS_H
#define GP_DOCTOR_ADVISE_CARDS_H

#include "base/cli.h"
#include "doctor/tables.h"

struct gp_strbuf;

enum { GP_CARDS_MAX = 512 }; /* room for all */

/* The cards whose names contain all words of a query, ignoring case ("rtx 4090", "rtx4090",
 * "H100"). An exact match, with or without the brand, excludes the others. Stores at most `max` of
 * them, and returns how many there are. */
size_t gp_cards_find(const char *query, const struct gp_card **ret, size_t max);

/* " (did you mean 'RTX 4090'?)" for a query that finds nothing, or "". */
struct gp_cli_hint gp_cards_hint(const char *query);

/* cards_report.c: append a table or, if there is one card, everything about it, `has_sources`: with
 * the source of each row; or the document gpulse.models/1 and a newline. Cards with the same
 * compute capability must follow each other. */
void gp_cards_add_text(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count,
                       bool has_sources);
void gp_cards_add_json(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count);

#endif
