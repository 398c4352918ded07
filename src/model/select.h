/* GPU selection: "-i 0,2-3", "-i GPU-1b2c", "-i 00000000:53:00.0", "-i 1650522003820", "-i
 * 4090". */
#ifndef GP_MODEL_SELECT_H
#define GP_MODEL_SELECT_H

#include "base/util.h"

struct gp_err;

enum { GP_SELECT_TERMS_MAX = 128 };

enum gp_select_kind {
    GP_SELECT_INDEX,  /* first … last */
    GP_SELECT_MIG,    /* instance `last` of GPU `first`: "0:1" */
    GP_SELECT_UUID,   /* a UUID or a prefix of one */
    GP_SELECT_BUS,    /* a PCI address, with a domain of 4 or 8 digits or without one */
    GP_SELECT_SERIAL, /* the serial number of the board: at least six digits */
    GP_SELECT_NAME,   /* part of the product name, case-insensitive */
};

/* What identifies a GPU besides its index; NULL if unknown. */
struct gp_identity {
    const char *uuid, *bus_id, *serial, *name;
    bool is_mig; /* instance `mig_index` of GPU `gpu` */
    unsigned gpu, mig_index;
};

struct gp_select_term {
    enum gp_select_kind kind;
    unsigned first, last;
    char text[96];
    bool matched;     /* set by gp_selection_matches() */
    unsigned reached; /* set by gp_selection_matches(): the highest existing index of a range */
};

struct gp_selection {
    struct gp_select_term terms[GP_SELECT_TERMS_MAX];
    size_t count; /* 0: all GPUs */
};

/* Parses a comma-separated list. GP_EUSAGE names the bad term. */
int gp_selection_parse(const char *list, struct gp_selection *ret,
                       struct gp_err *err) GP_MUST_CHECK;
/* The same for a list that may be missing: *ret is then NULL, otherwise `room`. */
int gp_selection_parse_any(const char *list, struct gp_selection *room, struct gp_selection **ret,
                           struct gp_err *err) GP_MUST_CHECK;

/* Whether all terms are indices, so that the driver is not needed. */
bool gp_selection_is_by_index(const struct gp_selection *selection);

/* Whether a term is part of a product name, which may match any number of GPUs. */
bool gp_selection_names_models(const struct gp_selection *selection);

/* Whether a term is a serial number. */
bool gp_selection_names_serials(const struct gp_selection *selection);

/* Whether a term is a MIG instance. */
bool gp_selection_names_mig(const struct gp_selection *selection);

/* Whether this GPU is selected. NULL: only its index is known. */
bool gp_selection_matches(struct gp_selection *selection, unsigned index,
                          const struct gp_identity *identity);

/* Whether each term is an index, or a full UUID or PCI address that has matched. GPUs that have not
 * been identified yet can then only match by index. */
bool gp_selection_is_settled(const struct gp_selection *selection);

/* Called before any GPU is queried. GP_ENODEV names the first index or range that does not
 * exist. */
int gp_selection_check_indices(const struct gp_selection *selection, unsigned gpu_count,
                               struct gp_err *err) GP_MUST_CHECK;

/* Called after all GPUs were queried. GP_ENODEV names the first term without a match, or a range
 * that is incomplete. */
int gp_selection_check(const struct gp_selection *selection, unsigned gpu_count,
                       struct gp_err *err) GP_MUST_CHECK;

#endif
