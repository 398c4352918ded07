/* The groups of users, from the machine's database (getent group). */
#ifndef GP_PROC_GROUPS_H
#define GP_PROC_GROUPS_H

#include "base/util.h"

bool gp_group_exists(const char *name);

/* Calls add() for each group of a user, the primary one first: with its name, or its number if it
 * has none. A user that does not exist has no groups. False: add() returned false, or there is no
 * memory. */
bool gp_groups_of_user(const char *user, bool (*add)(void *ctx, const char *group),
                       void *ctx) GP_MUST_CHECK;

#endif
