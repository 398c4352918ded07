#include "why/advice_report.h"

#include "base/strbuf.h"
#include "why/report.h"

void gp_advice_report_add(struct gp_strbuf *sb, const struct gp_advice_case *a, size_t columns)
{
    struct gp_advice found[GP_ADVICE__COUNT];
    const size_t count = gp_advice_find(a, found);
    char text[GP_WHY_TEXT_SIZE];
    gp_why_report_add_title(sb, a->c);
    if (a->c->fault[0]) {
        gp_why_report_add_verdict(sb, &a->verdicts[0], columns);
        if (a->c->is_failed)
            return;
    }
    for (size_t i = 0; i < count; i++) {
        gp_strbuf_addf(sb, "  %s (%s)\n", gp_advice_title(found[i].id),
                       gp_why_sure_word(found[i].sure));
        gp_why_report_add_line(sb, "seen", found[i].seen, columns);
        gp_why_report_add_line(sb, "do", found[i].change, columns);
        gp_why_report_add_gain(sb, found[i].gain);
    }
    if (count > 0)
        return;
    gp_why_nothing(a->c, text);
    gp_strbuf_adds(sb, "  Nothing to advise.\n");
    gp_why_report_add_line(sb, "seen", text, columns);
    if (a->verdict_count > 0)
        gp_strbuf_addf(sb, "    but   %s See gpulse why %u.\n", gp_why_title(a->verdicts[0].rule),
                       a->c->pid);
}

json_t *gp_advice_report_object(const struct gp_advice_case *a)
{
    struct gp_advice found[GP_ADVICE__COUNT];
    const size_t count = gp_advice_find(a, found);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "advice", gp_advice_word(found[i].id),
                            "title", gp_advice_title(found[i].id), "confidence",
                            gp_why_sure_word(found[i].sure), "seen", found[i].seen, "change",
                            found[i].change, "gain",
                            found[i].gain > 1 ? json_real(found[i].gain) : json_null()));
    json_t *object = gp_why_report_case(a->c);
    (void)json_object_set_new(object, "environment_known", json_boolean(a->knows_environment));
    (void)json_object_set_new(object, "advice", list);
    return object;
}
