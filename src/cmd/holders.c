#include "cmd/holders.h"

#include "cmd/app.h"

#include "base/err.h"
#include "jobs/account.h"

enum { TIMEOUT_S = 10 };

int gp_app_find_holders(struct gp_holders *ret, struct gp_err *err)
{
    const char *root = gp_app_observed()->files;
    int r = gp_account_find_holders(root && *root ? root : NULL,
                                    gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S), ret, err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    return r;
}
