#include "tui/verdict.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "why/gather.h"
#include "why/rules.h"

enum { LEAST_S = 10, RENEWED_S = 30 };

static struct gp_why_gather *begin(const struct gp_verdict *v)
{
    return gp_why_gather_new(v->root, v->sees_processes, (struct gp_why_asked){.pid = v->pid});
}

static bool has_seen(const struct gp_verdict *v, uint64_t first_ns, uint64_t seconds)
{
    return v->last_ns - first_ns >= seconds * GP_NS_PER_S;
}

static void add(struct gp_why_gather **gather, const struct gp_snapshot *snapshot)
{
    if (!*gather || gp_why_gather_add(*gather, snapshot) == 0)
        return;
    gp_why_gather_free(*gather);
    *gather = NULL;
}

void gp_verdict_add(struct gp_verdict *v, const struct gp_snapshot *snapshot)
{
    if (v->now && snapshot->mono_ns <= v->last_ns)
        return;
    v->last_ns = snapshot->mono_ns;
    if (v->next && has_seen(v, v->next_ns, RENEWED_S)) {
        gp_why_gather_free(v->now);
        v->now = v->next;
        v->first_ns = v->next_ns;
        v->next = NULL;
    }
    if (!v->now) {
        v->now = begin(v);
        v->first_ns = snapshot->mono_ns;
    } else if (!v->next) {
        v->next = begin(v);
        v->next_ns = snapshot->mono_ns;
    }
    add(&v->now, snapshot);
    add(&v->next, snapshot);
}

static void write_verdict(struct gp_page *page, const struct gp_why_verdict *v)
{
    gp_page_addf(page, GP_INK_HIGH, gp_why_sure_word(v->sure), "%s", gp_why_title(v->rule));
    gp_page_add(page, GP_INK_PLAIN, "seen", v->seen);
    gp_page_add(page, GP_INK_PLAIN, "try", v->advice);
    if (v->gain > 1.01)
        gp_page_addf(page, GP_INK_PLAIN, "gain", "at most %.1f times as fast", v->gain);
}

void gp_verdict_write(const struct gp_verdict *v, struct gp_page *page)
{
    struct gp_why_verdict found[GP_WHY_RULE__COUNT];
    char text[GP_WHY_TEXT_SIZE];
    size_t count = 0;
    const struct gp_why_case *c = v->now ? gp_why_gather_cases(v->now, &count) : NULL;
    if (!c || count == 0)
        return;
    gp_page_head(page, "what limits it");
    if (!has_seen(v, v->first_ns, LEAST_S)) {
        gp_page_addf(page, GP_INK_DIM, "", "observed for %.0f s; a verdict takes %d s", c->seconds,
                     (int)LEAST_S);
    } else if (gp_why_judge(c, found) > 0) {
        write_verdict(page, &found[0]);
    } else {
        gp_why_nothing(c, text);
        gp_page_add(page, GP_INK_PLAIN, "", "nothing stands out");
        gp_page_add(page, GP_INK_PLAIN, "seen", text);
    }
}

void gp_verdict_fini(struct gp_verdict *v)
{
    gp_why_gather_free(v->now);
    gp_why_gather_free(v->next);
    v->now = v->next = NULL;
}
