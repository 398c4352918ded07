#include "cmd/proc_idle.h"

#include "cmd/app.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>
#include <unistd.h>

enum { TOLD_S = 2 };

/* The time left, on a terminal; elsewhere only how long it will take. */
void gp_idle_count_down(uint64_t for_ns, uint64_t left_ns)
{
    const bool is_terminal = isatty(STDERR_FILENO);
    if (for_ns < TOLD_S * GP_NS_PER_S)
        return;
    if (is_terminal && left_ns == 0)
        (void)fprintf(stderr, "\r\033[K");
    else if (is_terminal)
        (void)fprintf(stderr, "\rgpulse: observing, %.0f s left\033[K", (double)left_ns / 1e9);
    else if (left_ns == for_ns)
        (void)fprintf(stderr, "gpulse: observing for %.0f s\n", (double)for_ns / 1e9);
}

int gp_idle_check(struct gp_err *err)
{
    return gp_common()->id ? gp_err_set(err, GP_EUSAGE,
                                        "--idle looks at all GPUs; it cannot be combined with --id")
                           : 0;
}

int gp_idle_watch(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                  struct gp_idle *ret, struct gp_snapshot **ret_last, struct gp_err *err)
{
    int r = gp_idle_check(err);
    *ret_last = NULL;
    return r < 0 ? r
                 : gp_idle_observe(sampler, filter, for_ns, gp_idle_count_down, ret, ret_last, err);
}
