/* Several devices at once, each with a thread of its own. */
#ifndef GP_BENCH_TEAM_H
#define GP_BENCH_TEAM_H

#include "bench/bench.h"

struct gp_bench_team;

/* What a member does. Each must call gp_bench_team_begin() and gp_bench_team_end() once, also after
 * an error. */
typedef int gp_bench_member(struct gp_bench_team *team, size_t i, void *context,
                            struct gp_err *err);

/* Calls the function for these devices of the list, each on its own thread, and waits for all. The
 * error is that of the first device that has one. */
int gp_bench_team_run(const size_t *devices, size_t count, gp_bench_member *member, void *context,
                      struct gp_err *err) GP_MUST_CHECK;

/* Waits until all members are there, so that they begin together. */
void gp_bench_team_begin(struct gp_bench_team *team);

/* A member has what it needs. */
void gp_bench_team_end(struct gp_bench_team *team);
/* Whether all have: until then, one that has should keep its device busy for the others. */
bool gp_bench_team_is_over(struct gp_bench_team *team);

#endif
