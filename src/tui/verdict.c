#include "tui/verdict.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "tui/feed.h"
#include "why/gather.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_S = 10, RENEWED_S = 30, INTERVAL_S = 1, RECENT_S = 10 };

/* ---- from samples ---- */

static bool has_seen(const struct gp_verdict_observation *v, uint64_t seconds)
{
    return v->last_ns - v->first_ns >= seconds * GP_NS_PER_S;
}

/* Whether a GPU ("0") or an instance of one ("0:1") is that of the topic. */
static bool is_about(const struct gp_verdict_topic *topic, const struct gp_why_case *c)
{
    return topic->pid > 0 || strtoul(c->gpu, NULL, 10) == topic->gpu;
}

/* The case with the surest verdict, the first of several; without one, the first case. */
static struct gp_verdict_answer judge(const struct gp_verdict_observation *v,
                                      const struct gp_why_case *cases, size_t count)
{
    struct gp_verdict_answer answer = {.is_ready = has_seen(v, LEAST_S)};
    for (size_t i = 0; i < count; i++) {
        struct gp_why_verdict found[GP_WHY_RULE__COUNT];
        const struct gp_why_case *c = &cases[i];
        if (!is_about(&v->topic, c))
            continue;
        const bool any = gp_why_judge(c, found) > 0;
        if (answer.gpus++ > 0 &&
            (!any || (answer.stands_out && found[0].sure <= answer.verdict.sure)))
            continue;
        memcpy(answer.gpu, c->gpu, sizeof(answer.gpu));
        answer.seconds = c->seconds;
        answer.stands_out = any;
        answer.is_capped = gp_why_limited(c, GP_WHY_LIMIT_POWER_CAP) > 0;
        if (any)
            answer.verdict = found[0];
        else
            gp_why_nothing(c, answer.verdict.seen);
    }
    return answer;
}

static void end(struct gp_verdict_observation *v)
{
    gp_why_gather_free(v->gather);
    v->gather = NULL;
}

void gp_verdict_add(struct gp_verdict_observation *v, const struct gp_snapshot *snapshot)
{
    size_t count;
    if (!v->gather) {
        v->gather = gp_why_gather_new(v->topic.root, v->topic.sees_processes,
                                      (struct gp_why_asked){.pid = v->topic.pid});
        v->first_ns = snapshot->mono_ns;
    }
    v->last_ns = snapshot->mono_ns;
    const struct gp_why_case *cases = v->gather && gp_why_gather_add(v->gather, snapshot) == 0
                                          ? gp_why_gather_cases(v->gather, &count)
                                          : NULL;
    if (cases && (has_seen(v, LEAST_S) || !v->answer.is_ready))
        v->answer = judge(v, cases, count);
    if (!cases || has_seen(v, RENEWED_S))
        end(v);
}

void gp_verdict_fini(struct gp_verdict_observation *v)
{
    end(v);
    *v = (struct gp_verdict_observation){.gather = NULL};
}

void gp_verdict_write(const struct gp_verdict_answer *answer, struct gp_page *page)
{
    const struct gp_why_verdict *v = &answer->verdict;
    if (answer->gpus == 0)
        return;
    gp_page_head(page, "what limits it");
    if (!answer->is_ready) {
        gp_page_addf(page, GP_INK_DIM, "",
                     "observed since this page was opened: for %.0f of the %d s that it takes",
                     answer->seconds, (int)LEAST_S);
        return;
    }
    if (answer->gpus > 1 && answer->stands_out)
        gp_page_add(page, GP_INK_PLAIN, "GPU", answer->gpu);
    if (answer->stands_out)
        gp_page_addf(page, GP_INK_HIGH, gp_why_sure_word(v->sure), "%s", gp_why_title(v->rule));
    else
        gp_page_add(page, GP_INK_PLAIN, "",
                    answer->is_capped ? "nothing but the power limit, as on any busy GPU"
                                      : "nothing stands out");
    gp_page_add_wrapped(page, GP_INK_PLAIN, "seen", v->seen);
    if (answer->stands_out)
        gp_page_add_wrapped(page, GP_INK_PLAIN, "try", v->advice);
    if (answer->stands_out && v->gain > 1.01)
        gp_page_addf(page, GP_INK_PLAIN, "gain", "at most %.1f times as fast", v->gain);
}

/* ---- on a page ---- */

struct gp_verdict_watch {
    struct gp_verdict_observation verdict; /* of the thread */
    struct gp_feed *feed;
    pthread_mutex_t lock;
    struct gp_verdict_answer answer;
    uint64_t answered_ns;
};

/* On the thread: reading /proc may take a while. */
static void take(void *context, struct gp_snapshot *snapshot, uint64_t took_ns)
{
    struct gp_verdict_watch *watch = context;
    (void)took_ns;
    gp_verdict_add(&watch->verdict, snapshot);
    gp_snapshot_free(snapshot);
    (void)pthread_mutex_lock(&watch->lock);
    watch->answer = watch->verdict.answer;
    watch->answered_ns = gp_clock_mono_ns();
    (void)pthread_mutex_unlock(&watch->lock);
}

struct gp_verdict_watch *gp_verdict_watch_start(const struct gp_verdict_topic *topic,
                                                int (*open)(void *ctx, struct gp_sampler **ret,
                                                            struct gp_err *err))
{
    struct gp_verdict_watch *watch = calloc(1, sizeof(*watch));
    struct gp_err err;
    if (!watch)
        return NULL;
    watch->verdict.topic = *topic;
    (void)pthread_mutex_init(&watch->lock, NULL);
    const struct gp_feed_config config = {
        .open = open, .interval_ns = INTERVAL_S * GP_NS_PER_S, .take = take, .take_ctx = watch};
    if (gp_feed_start(&config, &watch->feed, &err) == 0)
        return watch;
    (void)pthread_mutex_destroy(&watch->lock);
    free(watch);
    return NULL;
}

struct gp_verdict_answer gp_verdict_watch_answer(struct gp_verdict_watch *watch)
{
    struct gp_verdict_answer answer = {.gpus = 0};
    if (!watch)
        return answer;
    (void)pthread_mutex_lock(&watch->lock);
    if (gp_clock_mono_ns() - watch->answered_ns < RECENT_S * GP_NS_PER_S)
        answer = watch->answer;
    (void)pthread_mutex_unlock(&watch->lock);
    return answer;
}

bool gp_verdict_watch_stop(struct gp_verdict_watch *watch, int patience_ms)
{
    if (!watch)
        return true;
    if (!gp_feed_stop(watch->feed, (uint64_t)patience_ms * GP_NS_PER_MS))
        return false;
    gp_verdict_fini(&watch->verdict);
    (void)pthread_mutex_destroy(&watch->lock);
    free(watch);
    return true;
}
