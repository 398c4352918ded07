/* Which driver fits some GPUs and can be installed on a distribution: one answer, from the tables.
 * Pure functions. */
#ifndef GP_DOCTOR_OFFER_H
#define GP_DOCTOR_OFFER_H

#include "doctor/machine.h"
#include "doctor/tables.h"

/* What the driver of some GPUs must be. */
struct gp_wish {
    unsigned first, last; /* the branches that support all of them; 0: no limit */
    bool needs_open, needs_proprietary;
};

/* Adds a GPU to a wish, which begins as {0}. A capability that is not in the tables changes
 * nothing.
 */
void gp_wish_add(struct gp_wish *wish, unsigned capability);

/* Whether any driver can fulfil it. */
bool gp_wish_is_possible(const struct gp_wish *wish);

/* Whether a driver of this branch fulfils it, in one of its variants. */
bool gp_wish_fits(const struct gp_wish *wish, unsigned branch);

enum gp_offer_from {
    GP_OFFER_NONE,   /* nobody packages such a driver for this distribution */
    GP_OFFER_DISTRO, /* the usual repositories of the distribution, by the table */
    GP_OFFER_NVIDIA, /* NVIDIA's own repository */
    GP_OFFER_ANY,    /* a distribution that is not in the table */
};

struct gp_offer_choice {
    enum gp_offer_from from;
    const struct gp_offer *row; /* with GP_OFFER_DISTRO */
    unsigned branch;            /* 0: the newest */
    bool is_open;               /* with the open kernel modules */
};

/* The newest fitting driver that the distribution has; otherwise one from NVIDIA's repository. */
struct gp_offer_choice gp_offer_choose(const struct gp_machine *machine,
                                       const struct gp_wish *wish);

/* The branch with the longest support. */
const struct gp_driver *gp_driver_long_term(void);

#endif
