#include "jobs/slow.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "jobs/watch.h"
#include "sample/observed.h"
#include "source/source.h"
#include "why/follow.h"
#include "why/gather.h"
#include "why/report.h"

#include <unistd.h>

enum { LOOK_S = 5 };

void gp_slow_add_want(struct gp_want *want)
{
    const struct gp_want all = gp_why_want();
    for (int i = 0; i < GP_METRIC__COUNT; i++) {
        const enum gp_metric m = (enum gp_metric)i;
        const bool asks_driver = m == GP_PROCESS_SM || gp_metric_table[m].scope == GP_SCOPE_DEVICE;
        if (gp_metric_set_has(&all.metrics, m) && m != GP_RESERVATION_USER)
            gp_metric_set_add(asks_driver ? &want->more : &want->metrics, m);
    }
    want->host_every_ns = LOOK_S * GP_NS_PER_S;
}

void gp_slow_begin(struct gp_slow *slow, uint64_t now_ns)
{
    gp_slow_fini(slow);
    slow->due_ns = now_ns + LOOK_S * GP_NS_PER_S; /* a short job is not looked at */
    if (slow->observed)
        slow->follow = gp_why_follow_new(
            slow->observed->prefix, gp_observed_is_reachable(slow->observed), (uint32_t)getpid());
}

bool gp_slow_is_due(const struct gp_slow *slow, uint64_t now_ns)
{
    return slow->follow && now_ns >= slow->due_ns;
}

void gp_slow_look(struct gp_slow *slow, const struct gp_snapshot *snapshot)
{
    slow->due_ns = snapshot->mono_ns + LOOK_S * GP_NS_PER_S;
    gp_why_follow_add(slow->follow, snapshot);
}

static void tell(const struct gp_watch *watch, const struct gp_why_finding *finding)
{
    const struct gp_why_verdict *v = &finding->verdict;
    struct gp_strbuf sb = GP_STRBUF_INIT(4 * GP_WHY_TEXT_SIZE);
    gp_watch_say(watch, "%s (%s, %.0f %% of the time; GPU %s: %s)", gp_why_title(v->rule),
                 gp_why_sure_word(v->sure), 100 * finding->share, finding->gpu, v->seen);
    gp_strbuf_addf(&sb, "      -> %s", v->advice);
    if (v->gain >= GP_WHY_GAIN_LEAST)
        gp_strbuf_addf(&sb, "; at most %.1f times as fast", v->gain);
    gp_strbuf_addc(&sb, '\n');
    if (!watch->quiet && v->advice[0])
        gp_watch_tell_more(watch, sb.buf ? sb.buf : "");
    gp_strbuf_fini(&sb);
}

json_t *gp_slow_end(struct gp_slow *slow, const struct gp_watch *watch, bool tells)
{
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    const int n = slow->follow ? gp_why_follow_end(slow->follow, found) : -1;
    json_t *list = n >= 0 ? json_array() : NULL;
    for (int i = 0; i < n; i++) {
        json_t *verdict = gp_why_report_verdict(&found[i].verdict);
        (void)json_object_set_new(verdict, "gpu", json_string(found[i].gpu));
        (void)json_object_set_new(verdict, "share", json_real(found[i].share));
        (void)json_array_append_new(list, verdict);
    }
    if (n > 0 && tells)
        tell(watch, &found[0]);
    gp_slow_fini(slow);
    return list;
}

void gp_slow_fini(struct gp_slow *slow)
{
    gp_why_follow_free(slow->follow);
    slow->follow = NULL;
}
