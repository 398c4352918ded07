#include "out/rpc_sessions.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum {
    IDLE_S = 10, /* an open session keeps a GPU from being reset, and a laptop's from sleeping */
    KEY_MAX = 1 << 18,
};

static void end_session(struct gp_rpc_session *session)
{
    free(session->key);
    gp_rpc_feed_close(session->feed);
    *session = (struct gp_rpc_session){NULL, NULL, 0};
}

/* A free place, or that of the session which was not used for the longest time; if possible of one
 * that does not wait for a GPU, because its successor would wait for that GPU again. */
static struct gp_rpc_session *place_of(struct gp_rpc_sessions *s)
{
    struct gp_rpc_session *oldest = &s->items[0];
    for (size_t i = 0; i < GP_RPC_SESSIONS; i++) {
        struct gp_rpc_session *session = &s->items[i];
        if (!session->feed)
            return session;
        const int later = gp_rpc_feed_is_late(session->feed) - gp_rpc_feed_is_late(oldest->feed);
        if (later < 0 || (later == 0 && session->used_ns < oldest->used_ns))
            oldest = session;
    }
    end_session(oldest);
    return oldest;
}

static int find_session(struct gp_rpc_sessions *s, const struct gp_rpc_feed_config *config,
                        const char *key, struct gp_rpc_session **ret, struct gp_err *err)
{
    for (size_t i = 0; i < GP_RPC_SESSIONS; i++)
        if (s->items[i].feed && strcmp(s->items[i].key, key) == 0) {
            *ret = &s->items[i];
            return 0;
        }
    struct gp_rpc_session *session = place_of(s);
    char *own_key = strdup(key);
    int r = own_key ? gp_rpc_feed_open(config, &session->feed, err)
                    : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r < 0) {
        free(own_key);
        return r;
    }
    session->key = own_key;
    *ret = session;
    return 0;
}

int gp_rpc_sessions_take(struct gp_rpc_sessions *s, const struct gp_rpc_feed_config *config,
                         json_t **ret, struct gp_err *err)
{
    struct gp_strbuf key = GP_STRBUF_INIT(KEY_MAX);
    struct gp_rpc_session *session = NULL;
    gp_strbuf_addf(&key, "%llu %d %s\n%s", (unsigned long long)config->timeout_ns, config->mig,
                   config->gpus ? config->gpus : "", config->fields ? config->fields : "");
    int r = key.error ? gp_err_set(err, key.error, "out of memory")
                      : find_session(s, config, key.buf, &session, err);
    gp_strbuf_fini(&key);
    if (!session)
        return r;
    r = gp_rpc_feed_take(session->feed, ret, err);
    session->used_ns = gp_clock_mono_ns();
    if (r < 0)
        end_session(session);
    return r;
}

uint64_t gp_rpc_sessions_close_idle(struct gp_rpc_sessions *s)
{
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < GP_RPC_SESSIONS; i++) {
        struct gp_rpc_session *session = &s->items[i];
        const uint64_t end_ns = session->used_ns + IDLE_S * GP_NS_PER_S;
        if (!session->feed || gp_rpc_feed_is_late(session->feed))
            continue;
        if (end_ns <= gp_clock_mono_ns())
            end_session(session);
        else if (end_ns < next_ns)
            next_ns = end_ns;
    }
    return next_ns;
}

void gp_rpc_sessions_end(struct gp_rpc_sessions *s)
{
    for (size_t i = 0; i < GP_RPC_SESSIONS; i++)
        end_session(&s->items[i]);
}
