/* The methods of gpulse serve that choose, reserve, change and explain. */
#ifndef GP_CMD_SERVE_ACT_H
#define GP_CMD_SERVE_ACT_H

#include "base/util.h"

#include "gpulse/gpulse.h"

#include <jansson.h>

struct gp_err;

/* The parameters of all methods; absent ones are 0. */
struct gp_serve_params {
    char *fields, *gpus, *kinds;
    uint64_t timeout_ns, interval_ns, watch;
    bool mig;

    /* pick and reserve */
    uint64_t count, at_most, memory, total_memory, most_load, most_celsius;
    char *avoid, *prefer, *order, *name;
    bool all, share, no_display, same_node, nvlink, ignore_mask, uuids;
    uint64_t reservation;

    /* signal */
    uint64_t pid;
    char *start, *signal;

    char *changes;
    bool check_only, may_lose;

    char *text, *log;

    /* estimate */
    char *params, *dtype, *optimizer;
    uint64_t batch, seq, layers, hidden, vocab, heads;
    bool inference;
};

enum { GP_GRANTS_MAX = 16 };

/* Reservations, which belong to this process. Zero-initialize. */
struct gp_grants {
    struct {
        uint64_t id; /* 0: free */
        gpulse_grant *grant;
        bool is_lost; /* as far as has been said */
    } items[GP_GRANTS_MAX];
    uint64_t last_id;
    uint64_t kept_ns; /* when gp_grants_keep() was last called */
};

/* As the `call` of struct gp_rpc_method. */
int gp_serve_pick(const struct gp_serve_params *p, json_t **ret, struct gp_err *err) GP_MUST_CHECK;
int gp_serve_reserve(struct gp_grants *grants, const struct gp_serve_params *p, json_t **ret,
                     struct gp_err *err) GP_MUST_CHECK;
int gp_serve_release(struct gp_grants *grants, const struct gp_serve_params *p, json_t **ret,
                     struct gp_err *err) GP_MUST_CHECK;
int gp_serve_signal(const struct gp_serve_params *p, json_t **ret,
                    struct gp_err *err) GP_MUST_CHECK;
int gp_serve_settings(const struct gp_serve_params *p, json_t **ret,
                      struct gp_err *err) GP_MUST_CHECK;
int gp_serve_change(const struct gp_serve_params *p, json_t **ret,
                    struct gp_err *err) GP_MUST_CHECK;
int gp_serve_explain(const struct gp_serve_params *p, json_t **ret,
                     struct gp_err *err) GP_MUST_CHECK;
int gp_serve_estimate(const struct gp_serve_params *p, json_t **ret,
                      struct gp_err *err) GP_MUST_CHECK;

/* When gp_grants_keep() is due; UINT64_MAX: nothing is reserved. */
uint64_t gp_grants_next_ns(const struct gp_grants *grants);
/* Sees to it that the files of the reservations stay, if that is due. Calls on_loss once for each
 * that is lost. */
void gp_grants_keep(struct gp_grants *grants,
                    void (*on_loss)(void *ctx, uint64_t id, int code, const struct gp_err *err),
                    void *ctx);
void gp_grants_end(struct gp_grants *grants);

#endif
