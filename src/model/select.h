/* Which GPUs: "-i 0,2-3", "-i GPU-1b2c", "-i 00000000:53:00.0", "-i 1650522003820", "-i 4090". */
#ifndef GP_MODEL_SELECT_H
#define GP_MODEL_SELECT_H

#include "base/util.h"

struct gp_err;

enum { GP_SELECT_TERMS_MAX = 128 };

enum gp_select_kind {
    GP_SELECT_INDEX,  /* first … last */
    GP_SELECT_UUID,   /* a UUID, or its beginning */
    GP_SELECT_BUS,    /* a PCI address, its domain in 4 or 8 digits or left out */
    GP_SELECT_SERIAL, /* the serial number of the board: six digits or more */
    GP_SELECT_NAME,   /* a part of the product name, in any case */
};

/* What a GPU can be chosen by besides its index; NULL where it is not known. */
struct gp_identity {
    const char *uuid, *bus_id, *serial, *name;
};

struct gp_select_term {
    enum gp_select_kind kind;
    unsigned first, last;
    char text[96];
    bool matched;     /* set by gp_selection_matches */
    unsigned reached; /* the same: the highest index of a range that was there */
};

struct gp_selection {
    struct gp_select_term terms[GP_SELECT_TERMS_MAX];
    size_t count; /* 0: every GPU */
};

/* Parses a comma list. GP_EUSAGE names the bad term. */
int gp_selection_parse(const char *list, struct gp_selection *ret,
                       struct gp_err *err) GP_MUST_CHECK;

/* True if every term is an index, so that the choice needs nothing from the driver. */
bool gp_selection_is_by_index(const struct gp_selection *selection);

/* True if a term is a part of a name, which any number of GPUs may have. */
bool gp_selection_names_models(const struct gp_selection *selection);

/* True if a term is a serial number. */
bool gp_selection_names_serials(const struct gp_selection *selection);

/* True if a term is the UUID of a MIG instance. */
bool gp_selection_names_mig(const struct gp_selection *selection);

/* Whether this GPU is chosen. NULL: nothing but its index is known. */
bool gp_selection_matches(struct gp_selection *selection, unsigned index,
                          const struct gp_identity *identity);

/* True if every term is an index, or a whole UUID or PCI address that has matched: of the GPUs that
 * have not said who they are, none is meant but by its index. */
bool gp_selection_is_settled(const struct gp_selection *selection);

/* Before any GPU has been asked: GP_ENODEV names the first index, or range, that is not there. */
int gp_selection_check_indices(const struct gp_selection *selection, unsigned gpu_count,
                               struct gp_err *err) GP_MUST_CHECK;

/* After all GPUs have been asked: GP_ENODEV names the first term that matched none, or a range of
 * which some are not there. */
int gp_selection_check(const struct gp_selection *selection, unsigned gpu_count,
                       struct gp_err *err) GP_MUST_CHECK;

#endif
