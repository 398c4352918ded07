#include "jobs/fit_report.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/fit.h"
#include "out/json.h"

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
        gp_strbuf_addf(
            sb, "  batch %-6llu would need %.2f GiB: %.2f GiB more than fits with the margin\n",
            (unsigned long long)batch, (double)need / 0x1p30,
            (double)(need - fit->goal_bytes) / 0x1p30);
    }
}

/* Advice for an uncertain result. */
static const char *const remedies[GP_FIT_END__COUNT] = {
    [GP_FIT_END_GROWS] =
        ("look for tensors that are kept from step to step (losses without .item(), "
         "lists of outputs), or let --confirm run longer if it is still warming up"),
    [GP_FIT_END_PREALLOCATES] =
        ("have it take memory as needed (JAX: XLA_PYTHON_CLIENT_PREALLOCATE=false, TensorFlow: "
         "set_memory_growth), and check that it uses the batch size"),
    [GP_FIT_END_INDEPENDENT] = "check that the program uses the batch size",
    [GP_FIT_END_HUNG] = "see the log of that trial, or raise --hang-timeout if it was only slow",
    [GP_FIT_END_HUNG_LONG] = "see the log of that run, or raise --hang-timeout if it was only slow",
    [GP_FIT_END_ALL_HUNG] = "see the logs, or raise --hang-timeout if the program was only slow",
};

static void add_duration(struct gp_strbuf *sb, double seconds)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(units); i++)
        if (seconds >= 2 * units[i].seconds) {
            gp_strbuf_addf(sb, "%.0f %s", seconds / units[i].seconds, units[i].name);
            return;
        }
    gp_strbuf_addf(sb, "%.0f s", seconds);
}

/* How well a line describes the trials, by its coefficient of determination. */
static const char *how_close(double r2)
{
    return r2 >= 0.99 ? "" : r2 >= 0.9 ? "; they agree roughly" : "; they hardly agree";
}

static void add_growth(struct gp_strbuf *sb, const struct gp_fit_answer *answer)
{
    gp_strbuf_addf(sb, "%.1f MiB/min; full in about ", answer->growth_bytes_s * 60 / 0x1p20);
    add_duration(sb, answer->full_in_s);
}

void gp_fit_add_text(struct gp_strbuf *sb, const struct gp_fit *fit)
{
    const struct gp_fit_answer found = gp_fit_answer(fit), *answer = &found;
    const char *why = gp_fit_end_text(answer->end);
    if (answer->batch)
        gp_strbuf_addf(sb, "batch %llu: %s\n  uses %.2f GiB, and leaves %.2f GiB free%s\n",
                       (unsigned long long)answer->batch, why, (double)answer->peak_bytes / 0x1p30,
                       (double)answer->free_bytes / 0x1p30,
                       answer->growth_bytes_s > 0 ? " for now" : "");
    else
        gp_strbuf_addf(sb, "no batch size: %s\n", why);
    if (answer->growth_bytes_s > 0) {
        gp_strbuf_adds(sb, "  memory grows by ");
        add_growth(sb, answer);
        gp_strbuf_addc(sb, '\n');
    }
    if (answer->line.known && !answer->is_independent)
        gp_strbuf_addf(sb,
                       "  fixed: %.2f GiB (model, optimizer, context); per sample: %.1f MiB\n"
                       "  (estimated from %zu trials%s)\n",
                       answer->line.fixed_bytes / 0x1p30, answer->line.sample_bytes / 0x1p20,
                       answer->line.points, how_close(answer->line.r2));
    if (answer->is_independent)
        gp_strbuf_adds(sb,
                       "  memory does not depend on the batch size: does the program use it?\n");
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

static json_t *number_or_null(bool is_known, double number)
{
    return is_known ? json_real(number) : json_null();
}

static json_t *trials_of(const struct gp_fit *fit)
{
    json_t *trials = json_array();
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        (void)json_array_append_new(
            trials,
            json_pack("{s:I, s:s, s:I, s:o, s:b}", "batch", (json_int_t)t->batch, "verdict",
                      gp_fit_verdict_word(t->verdict), "peak", (json_int_t)t->peak_bytes, "growth",
                      number_or_null(t->verdict == GP_FIT_GROWS, t->growth_bytes_s), "long",
                      (int)t->is_confirming));
    }
    return trials;
}

void gp_fit_add_json(struct gp_strbuf *sb, const struct gp_fit *fit)
{
    const struct gp_fit_answer found = gp_fit_answer(fit), *answer = &found;
    const bool grows = answer->growth_bytes_s > 0;
    json_t *line = answer->line.known
                       ? json_pack("{s:f, s:f, s:f, s:I}", "fixed", answer->line.fixed_bytes,
                                   "per_sample", answer->line.sample_bytes, "r2", answer->line.r2,
                                   "points", (json_int_t)answer->line.points)
                       : json_null();
    json_t *document = json_pack(
        "{s:s, s:I, s:s, s:b, s:s, s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:o}", "schema",
        "gpulse.fit/1", "batch", (json_int_t)answer->batch, "end", gp_fit_end_word(answer->end),
        "certain", gp_fit_end_code(answer->end) == GP_OK, "why", gp_fit_end_text(answer->end),
        "peak", (json_int_t)answer->peak_bytes, "free", (json_int_t)answer->free_bytes, "goal",
        (json_int_t)fit->goal_bytes, "growth", number_or_null(grows, answer->growth_bytes_s),
        "full_in", number_or_null(grows, answer->full_in_s), "independent",
        (int)answer->is_independent, "line", line, "trials", trials_of(fit));
    gp_json_add(sb, document, 0);
    gp_strbuf_addc(sb, '\n');
}

int gp_fit_explain_end(const struct gp_fit *fit, struct gp_err *err)
{
    const struct gp_fit_answer found = gp_fit_answer(fit), *answer = &found;
    const int code = gp_fit_end_code(answer->end);
    const char *remedy = remedies[answer->end];
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    if (answer->batch)
        gp_strbuf_addf(&sb, "batch %llu: ", (unsigned long long)answer->batch);
    gp_strbuf_adds(&sb, gp_fit_end_text(answer->end));
    if (answer->growth_bytes_s > 0) {
        gp_strbuf_adds(&sb, ", by ");
        add_growth(&sb, answer);
    }
    if (remedy)
        gp_strbuf_addf(&sb, "; %s", remedy);
    if (code != GP_OK)
        (void)gp_err_set(err, code, "%s", sb.buf);
    gp_strbuf_fini(&sb);
    return code;
}
