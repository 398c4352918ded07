#include "cmd/fit_report.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_sizes_beyond(struct gp_strbuf *sb, const struct gp_fit *fit,
                             const struct gp_fit_answer *answer)
{
    static const unsigned percents[] = {110, 125, 150, 200};
    for (size_t i = 0; i < GP_ARRAY_LEN(percents); i++) {
        uint64_t batch = answer->batch * percents[i] / 100;
        batch -= batch % fit->request.multiple;
        uint64_t need = gp_fit_need(fit, batch);
        if (batch <= answer->batch || need <= fit->goal_bytes)
            continue;
        gp_strbuf_addf(sb, "  batch %-6llu would need %.2f GiB, %.2f more than the margin leaves\n",
                       (unsigned long long)batch, (double)need / 0x1p30,
                       (double)(need - fit->goal_bytes) / 0x1p30);
    }
}

static void add_text(struct gp_strbuf *sb, const struct gp_fit *fit,
                     const struct gp_fit_answer *answer)
{
    gp_strbuf_addf(sb, "batch %llu: %s\n", (unsigned long long)answer->batch,
                   gp_fit_end_text(answer->end));
    if (answer->batch)
        gp_strbuf_addf(sb, "  it needs %.2f GiB, and leaves %.2f GiB free\n",
                       (double)answer->peak_bytes / 0x1p30, (double)answer->free_bytes / 0x1p30);
    if (answer->line.known && !answer->is_independent)
        gp_strbuf_addf(sb,
                       "  %.2f GiB are fixed (model, optimizer, context), %.1f MiB go with each "
                       "sample (R2 %.3f of %zu trials)\n",
                       answer->line.fixed_bytes / 0x1p30, answer->line.sample_bytes / 0x1p20,
                       answer->line.r2, answer->line.points);
    if (answer->is_independent)
        gp_strbuf_adds(sb, "  memory does not depend on the batch size: is it really used?\n");
    if (answer->batch && answer->line.known && !answer->is_independent)
        add_sizes_beyond(sb, fit, answer);
    gp_strbuf_adds(sb, "trials:\n");
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        bool is_over = t->verdict == GP_FIT_OK && t->peak_bytes > fit->goal_bytes;
        gp_strbuf_addf(sb, "  %3zu  batch %-8llu %-6s %8.2f GiB%s%s\n", i + 1,
                       (unsigned long long)t->batch, gp_fit_verdict_word(t->verdict),
                       (double)t->peak_bytes / 0x1p30, is_over ? "  (into the margin)" : "",
                       t->is_confirming ? "  (long run)" : "");
    }
}

static void add_json(struct gp_strbuf *sb, const struct gp_fit *fit,
                     const struct gp_fit_answer *answer)
{
    json_t *trials = json_array();
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        (void)json_array_append_new(
            trials, json_pack("{s:I, s:s, s:I, s:b}", "batch", (json_int_t)t->batch, "verdict",
                              gp_fit_verdict_word(t->verdict), "peak", (json_int_t)t->peak_bytes,
                              "long", (int)t->is_confirming));
    }
    json_t *line = answer->line.known
                       ? json_pack("{s:f, s:f, s:f, s:I}", "fixed", answer->line.fixed_bytes,
                                   "per_sample", answer->line.sample_bytes, "r2", answer->line.r2,
                                   "points", (json_int_t)answer->line.points)
                       : json_null();
    json_t *document =
        json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:b, s:o, s:o}", "schema", "gpulse.fit/1",
                  "batch", (json_int_t)answer->batch, "why", gp_fit_end_text(answer->end), "peak",
                  (json_int_t)answer->peak_bytes, "free", (json_int_t)answer->free_bytes, "goal",
                  (json_int_t)fit->goal_bytes, "independent", (int)answer->is_independent, "line",
                  line, "trials", trials);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

int gp_fit_report(const struct gp_fit *fit, const char *format, bool quiet, struct gp_err *err)
{
    const struct gp_fit_answer answer = gp_fit_answer(fit);
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (strcmp(format, "json") == 0)
        add_json(&sb, fit, &answer);
    else if (!quiet)
        add_text(&sb, fit, &answer);
    else if (answer.batch)
        gp_strbuf_addf(&sb, "%llu\n", (unsigned long long)answer.batch);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0 && answer.batch == 0)
        r = gp_err_set(err, GP_EFAIL, "%s", gp_fit_end_text(answer.end));
    return r;
}
