#include "why/follow.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "why/gather.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE_S = 60, LEAST_S = 30 };
static const double often = 0.3; /* a reason that held for less of the time is not reported */

struct held {
    double seconds; /* sum over the GPUs */
    struct gp_why_finding finding;
};

struct gp_why_follow {
    const char *root;
    bool sees_processes;
    uint32_t pid;
    struct gp_why_gather *minute; /* NULL: none has begun */
    uint64_t first_ns, last_ns;   /* of its samples */
    unsigned minutes;             /* that were judged */
    double seconds;               /* that count, sum over the GPUs */
    struct held held[GP_WHY_RULE__COUNT];
};

struct gp_why_follow *gp_why_follow_new(const char *root, bool sees_processes, uint32_t pid)
{
    struct gp_why_follow *follow = calloc(1, sizeof(*follow));
    if (follow)
        *follow =
            (struct gp_why_follow){.root = root, .sees_processes = sees_processes, .pid = pid};
    return follow;
}

static void drop_minute(struct gp_why_follow *follow)
{
    gp_why_gather_free(follow->minute);
    follow->minute = NULL;
}

void gp_why_follow_free(struct gp_why_follow *follow)
{
    if (!follow)
        return;
    drop_minute(follow);
    free(follow);
}

static void count(struct gp_why_follow *follow, const struct gp_why_case *c,
                  const struct gp_why_verdict *v)
{
    struct held *held = &follow->held[v->rule];
    bool is_surer = held->seconds > 0 && held->finding.verdict.sure > v->sure;
    held->seconds += c->seconds;
    if (is_surer)
        return;
    held->finding.verdict = *v;
    memcpy(held->finding.gpu, c->gpu, sizeof(c->gpu));
}

static void judge_minute(struct gp_why_follow *follow)
{
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    size_t case_count;
    const struct gp_why_case *cases = gp_why_gather_cases(follow->minute, &case_count);
    if (!cases || case_count == 0)
        return;
    if (follow->minutes++ == 1) { /* that was the first one */
        memset(follow->held, 0, sizeof(follow->held));
        follow->seconds = 0;
    }
    for (size_t i = 0; i < case_count; i++) {
        struct gp_why_case c = cases[i];
        c.is_over = true; /* when its verdicts are read */
        size_t n = gp_why_judge(&c, verdicts);
        follow->seconds += c.seconds;
        for (size_t v = 0; v < n; v++)
            count(follow, &c, &verdicts[v]);
    }
}

static void end_minute(struct gp_why_follow *follow)
{
    if (follow->minute && follow->last_ns - follow->first_ns >= LEAST_S * GP_NS_PER_S)
        judge_minute(follow);
    drop_minute(follow);
}

void gp_why_follow_add(struct gp_why_follow *follow, const struct gp_snapshot *snapshot)
{
    if (!follow->minute) {
        follow->minute = gp_why_gather_new(follow->root, follow->sees_processes,
                                           (struct gp_why_asked){.pid = follow->pid});
        follow->first_ns = snapshot->mono_ns;
    }
    follow->last_ns = snapshot->mono_ns;
    if (!follow->minute || gp_why_gather_add(follow->minute, snapshot) < 0)
        drop_minute(follow);
    else if (follow->last_ns - follow->first_ns >= MINUTE_S * GP_NS_PER_S)
        end_minute(follow);
}

/* The surest first; then what explains more, as in the table of rules. */
static int by_rank(const void *a, const void *b)
{
    const struct gp_why_verdict *x = &((const struct gp_why_finding *)a)->verdict;
    const struct gp_why_verdict *y = &((const struct gp_why_finding *)b)->verdict;
    if (x->sure != y->sure)
        return x->sure > y->sure ? -1 : 1;
    return (x->rule > y->rule) - (x->rule < y->rule);
}

int gp_why_follow_end(struct gp_why_follow *follow, struct gp_why_finding ret[GP_WHY_RULE__COUNT])
{
    size_t n = 0;
    end_minute(follow);
    for (size_t i = 0; i < GP_WHY_RULE__COUNT; i++) {
        const struct held *held = &follow->held[i];
        if (held->seconds <= often * follow->seconds)
            continue;
        ret[n] = held->finding;
        ret[n++].share = held->seconds / follow->seconds;
    }
    if (n > 1)
        qsort(ret, n, sizeof(*ret), by_rank);
    return follow->minutes > 0 ? (int)n : -1;
}
