#include "why/rules.h"

#include "why/rule.h"

static const struct rule {
    const char *word, *title;
    int group;
    bool (*holds)(const struct gp_why_case *c, struct gp_why_verdict *v);
} rules[] = {
#define GP_WHY_RULE(id, word, title, group, holds) {word, title, group, gp_why_##holds},
#include "why/rules.def"
#undef GP_WHY_RULE
};

const char *gp_why_word(enum gp_why_rule rule)
{
    return rules[rule].word;
}

const char *gp_why_title(enum gp_why_rule rule)
{
    return rules[rule].title;
}

const char *gp_why_sure_word(enum gp_why_sure sure)
{
    static const char *const words[] = {"possible", "likely", "certain"};
    return words[sure];
}

/* A short look, and one at the beginning of a program, when it loads and compiles, say less. */
static enum gp_why_sure sure_after(const struct gp_why_case *c, enum gp_why_sure sure)
{
    enum { SAMPLES_ENOUGH = 10 };
    static const double seconds_enough = 10, age_enough_s = 60;
    bool is_short = c->samples < SAMPLES_ENOUGH || c->seconds < seconds_enough;
    bool is_young = c->age_s >= 0 && c->age_s < age_enough_s;
    return sure > GP_WHY_POSSIBLE && (is_short || is_young) ? sure - 1 : sure;
}

/* Says how little there is to gain, instead of an advice. */
static void drop_advice(struct gp_why_verdict *v)
{
    v->advice[0] = '\0';
    if (v->gain >= 1.005)
        gp_why_put(v->seen, "; without it, at most %.0f %% faster", 100 * (v->gain - 1));
    else
        gp_why_put(v->seen, "; it costs no speed");
}

size_t gp_why_judge(const struct gp_why_case *c, struct gp_why_verdict ret[GP_WHY_RULE__COUNT])
{
    size_t count = 0;
    unsigned groups = 0; /* bits: one of their rules holds */
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++) {
        struct gp_why_verdict *v = &ret[count];
        *v = (struct gp_why_verdict){.rule = (enum gp_why_rule)i};
        if ((rules[i].group && groups >> rules[i].group & 1) || !rules[i].holds(c, v))
            continue;
        if (!c->is_suspended && i != GP_WHY_RULE_FAULT) /* which a single look tells */
            v->sure = sure_after(c, v->sure);
        if (v->gain > 0 && v->gain < GP_WHY_GAIN_LEAST)
            drop_advice(v);
        groups |= 1U << rules[i].group;
        count++;
        if (i == GP_WHY_RULE_FAULT && c->is_failed)
            break;
    }
    return count;
}

void gp_why_nothing(const struct gp_why_case *c, char ret[GP_WHY_TEXT_SIZE])
{
    ret[0] = '\0';
    if (c->values[GP_WHY_UTILIZATION].count > 0)
        gp_why_put_busy(c, ret);
    else
        gp_why_put(ret, "its utilization is unknown");
    gp_why_put_percent(c, ret, "SMs", GP_WHY_SM);
    gp_why_put_percent(c, ret, "tensor cores", GP_WHY_TENSOR);
    gp_why_put_percent(c, ret, "memory bandwidth", GP_WHY_DRAM);
    gp_why_put_power(c, ret);
    if (gp_why_is_known(gp_why_clock_share(c))) {
        gp_why_put(ret, ", ");
        gp_why_put_clock(c, ret);
    }
}
