/* The homes of the users whose files count: of the one who asks or, in a copy of a machine, which
 * does not say who that is, of all. */
#ifndef GP_DOCTOR_READERS_HOMES_H
#define GP_DOCTOR_READERS_HOMES_H

#include "base/util.h"

struct gp_exam;

enum { GP_HOMES = 64 };

struct gp_homes {
    const char *list[GP_HOMES]; /* "/home/ada", "" for "/" */
    size_t count;
    bool is_cut;    /* there are more */
    bool is_of_all; /* of all users, such as in a copy: it is unknown who asks */
};

/* Read on first use; never NULL. */
const struct gp_homes *gp_homes_of(struct gp_exam *exam);

/* Likewise those of all users, whoever asks: those that are there. */
const struct gp_homes *gp_homes_of_all(struct gp_exam *exam);

/* Whether these paths are in the homes of two users, who do not use each other's files. */
bool gp_homes_separate(struct gp_exam *exam, const char *path, const char *other);

#endif
