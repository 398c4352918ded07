/* The search for processes that have the GPUs open, with the common options. */
#ifndef GP_CMD_HOLDERS_H
#define GP_CMD_HOLDERS_H

#include "base/util.h"

struct gp_err;
struct gp_holders;

/* gp_account_find_holders() on the machine of --sim or --root, within --timeout. */
int gp_app_find_holders(struct gp_holders *ret, struct gp_err *err) GP_MUST_CHECK;

#endif
