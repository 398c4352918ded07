#include "tape/report_charts.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

enum {
    BARS_MAX = 12,
    NAME_COLUMNS = 60,
    TITLES_MAX = 4000, /* steps with a tooltip: each takes a hundred bytes */
};

void gp_report_add_escaped(struct gp_strbuf *sb, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            gp_strbuf_adds(sb, "&amp;");
            break;
        case '<':
            gp_strbuf_adds(sb, "&lt;");
            break;
        case '>':
            gp_strbuf_adds(sb, "&gt;");
            break;
        case '"':
            gp_strbuf_adds(sb, "&quot;");
            break;
        case '\'':
            gp_strbuf_adds(sb, "&#39;");
            break;
        default:
            gp_strbuf_addc(sb, *text);
        }
    }
}

void gp_report_add_short(struct gp_strbuf *sb, const char *text)
{
    struct gp_strbuf cut = GP_STRBUF_INIT(1 << 12);
    gp_utf8_add_safe(&cut, text, strlen(text), NAME_COLUMNS);
    gp_report_add_escaped(sb, cut.buf);
    if (cut.error && !sb->error)
        sb->error = cut.error;
    gp_strbuf_fini(&cut);
}

static void add_hours(struct gp_strbuf *sb, const struct gp_report_look *look, int64_t us)
{
    gp_report_add_number(sb, look, GP_REPORT_HOURS, gp_report_hours(us));
}

static void add_legend(struct gp_strbuf *sb, bool is_of_gpus)
{
    gp_strbuf_adds(sb, "<p class=\"legend\"><span class=\"key used\"></span>in use "
                       "<span class=\"key idle\"></span>held, but idle ");
    if (is_of_gpus)
        gp_strbuf_adds(sb, "<span class=\"key free\"></span>free "
                           "<span class=\"key unknown\"></span>unknown");
    gp_strbuf_adds(sb, "</p>\n");
}

/* ---- bars ---- */

static void add_bar(struct gp_strbuf *sb, const struct gp_report_look *look,
                    const struct gp_report_table *table, const struct gp_report_row *row,
                    double most)
{
    const double held = most > 0 ? 100 * (double)row->sums.held_us / most : 0;
    const double idle = most > 0 ? 100 * (double)row->sums.idle_us / most : 0;
    gp_strbuf_adds(sb, "<div class=\"bar\"><span class=\"name\">");
    gp_report_add_short(sb, *row->label ? row->label : gp_report_missing(table->by));
    gp_strbuf_adds(sb, "</span><svg viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\" "
                       "aria-hidden=\"true\">");
    gp_strbuf_addf(sb, "<rect class=\"used\" width=\"%.2f\" height=\"1\"/>", held - idle);
    gp_strbuf_addf(sb, "<rect class=\"idle\" x=\"%.2f\" width=\"%.2f\" height=\"1\"/></svg>",
                   held - idle, idle);
    gp_strbuf_adds(sb, "<span class=\"value\">");
    add_hours(sb, look, row->sums.held_us);
    gp_strbuf_adds(sb, "</span></div>\n");
}

void gp_report_add_bars(struct gp_strbuf *sb, const struct gp_report_look *look,
                        const struct gp_report_table *table)
{
    double most = 0;
    for (size_t i = 0; i < table->count; i++)
        most = fmax(most, (double)table->rows[i].sums.held_us);
    if (most <= 0)
        return;
    gp_strbuf_adds(sb, "<p>The time that GPUs were held.</p>\n");
    add_legend(sb, false);
    for (size_t i = 0; i < table->count && i < BARS_MAX; i++)
        add_bar(sb, look, table, &table->rows[i], most);
}

/* ---- strips ---- */

/* The shares of a step: they are parts of its length, and what is missing is unknown. */
struct shares {
    double used, idle, free;
};

static struct shares shares_of(const struct gp_report_step *step, const struct gp_report_part *part)
{
    struct shares s = {0};
    const double length = (double)(step->to_us - step->from_us);
    const double held = (double)part->held_us;
    const double seen = fmax((double)(part->known_us - part->unlisted_us), held);
    /* the clock can be set within a step, which then is shorter or longer */
    const double all = fmax(length, seen);
    if (all <= 0)
        return s;
    s.idle = (double)part->idle_us / all;
    s.used = held / all - s.idle;
    s.free = (seen - held) / all;
    return s;
}

static void add_rect(struct gp_strbuf *sb, const char *class, size_t x, double y, double height)
{
    if (height >= 0.0005)
        gp_strbuf_addf(sb, "<rect class=\"%s\" x=\"%zu\" y=\"%.3f\" width=\"1\" height=\"%.3f\"/>",
                       class, x, y, height);
}

static void add_step(struct gp_strbuf *sb, const struct gp_report *report, size_t i,
                     const struct gp_report_part *part, bool with_title)
{
    const struct shares s = shares_of(&report->steps[i], part);
    if (with_title) {
        gp_strbuf_adds(sb, "<g><title>");
        gp_report_add_time(sb, report->steps[i].from_us);
        gp_strbuf_addf(sb, ": in use %.0f %%, held but idle %.0f %%, free %.0f %%", 100 * s.used,
                       100 * s.idle, 100 * s.free);
        if (s.used + s.idle + s.free < 0.995)
            gp_strbuf_addf(sb, ", unknown %.0f %%", 100 * (1 - s.used - s.idle - s.free));
        gp_strbuf_adds(sb, "</title>");
    }
    /* from the bottom */
    add_rect(sb, "used", i, 1 - s.used, s.used);
    add_rect(sb, "idle", i, 1 - s.used - s.idle, s.idle);
    add_rect(sb, "free", i, 1 - s.used - s.idle - s.free, s.free);
    if (with_title)
        gp_strbuf_adds(sb, "</g>");
}

static void add_axis(struct gp_strbuf *sb, const struct gp_report *report)
{
    const size_t count = report->step_count;
    gp_strbuf_adds(sb, "<div class=\"axis\"><span>");
    gp_report_add_time(sb, report->from_us);
    gp_strbuf_adds(sb, "</span>");
    if (count >= 4) {
        gp_strbuf_adds(sb, "<span>");
        gp_report_add_time(sb, report->steps[count / 2].from_us);
        gp_strbuf_adds(sb, "</span>");
    }
    gp_strbuf_adds(sb, "<span>");
    gp_report_add_time(sb, report->to_us);
    gp_strbuf_adds(sb, "</span></div>\n");
}

static void add_strip(struct gp_strbuf *sb, const struct gp_report_look *look,
                      const struct gp_report_gpu *gpu, bool with_titles)
{
    const struct gp_report *report = look->report;
    gp_strbuf_adds(sb, "<div class=\"strip\"><p><b>GPU ");
    gp_report_add_escaped(sb, gpu->row->label);
    gp_strbuf_adds(sb, "</b> ");
    gp_report_add_short(sb, gpu->row->name);
    if (!*gpu->row->reason) {
        gp_strbuf_adds(sb, " · held ");
        add_hours(sb, look, gpu->row->sums.held_us);
        gp_strbuf_adds(sb, ", of that idle ");
        add_hours(sb, look, gpu->row->sums.idle_us);
    } else {
        gp_strbuf_addf(sb, " · unknown: %s", gpu->row->reason);
    }
    gp_strbuf_addf(sb,
                   "</p><svg viewBox=\"0 0 %zu 1\" preserveAspectRatio=\"none\" role=\"img\" "
                   "aria-label=\"GPU ",
                   report->step_count);
    gp_report_add_escaped(sb, gpu->row->label);
    gp_strbuf_adds(sb, " over time\">");
    for (size_t i = 0; i < report->step_count; i++)
        add_step(sb, report, i, &gpu->parts[i], with_titles);
    gp_strbuf_adds(sb, "</svg></div>\n");
}

/* "Each column is an hour." */
static void add_step_name(struct gp_strbuf *sb, int64_t step_s)
{
    enum { WEEK_S = 7 * 86400 };
    if (step_s > WEEK_S)
        gp_strbuf_addf(sb, "%lld weeks", (long long)(step_s / WEEK_S));
    else
        gp_strbuf_adds(sb, step_s <= 600     ? "ten minutes"
                           : step_s <= 3600  ? "an hour"
                           : step_s < 86400  ? "six hours"
                           : step_s == 86400 ? "a day"
                                             : "a week");
}

/* In the order of the table, which is not that of their ids. */
static const struct gp_report_gpu *gpu_of(const struct gp_report *report, size_t row)
{
    for (size_t i = 0; i < report->gpu_count; i++)
        if (report->by_id[i].row == &report->gpus.rows[row])
            return &report->by_id[i];
    return NULL;
}

void gp_report_add_strips(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    const bool with_titles = report->gpus.count * report->step_count <= TITLES_MAX;
    gp_strbuf_adds(sb, "<section><h2>GPUs over time</h2>\n<p>Each column is ");
    add_step_name(sb, report->step_s);
    gp_strbuf_adds(sb, ".</p>\n");
    add_legend(sb, true);
    for (size_t i = 0; i < report->gpus.count; i++) {
        const struct gp_report_gpu *gpu = gpu_of(report, i);
        if (gpu && gpu->parts)
            add_strip(sb, look, gpu, with_titles);
    }
    add_axis(sb, report);
    gp_strbuf_adds(sb, "</section>\n");
}

/* ---- power ---- */

/* The mean power of all GPUs in kilowatts; negative: unknown. */
static double power_at(const struct gp_report *report, size_t step)
{
    double kw = -1;
    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct gp_report_part *part =
            report->by_id[i].parts ? &report->by_id[i].parts[step] : NULL;
        if (part && part->energy_mj > 0 && part->known_us > 0)
            kw = fmax(kw, 0) + (double)part->energy_mj / (double)part->known_us;
    }
    return kw;
}

void gp_report_add_power(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    double most = 0;
    for (size_t i = 0; i < report->step_count; i++)
        most = fmax(most, power_at(report, i));
    if (most <= 0)
        return;
    gp_strbuf_adds(sb,
                   "<section><h2>Power</h2>\n<p>All GPUs together. Each column is the mean of ");
    add_step_name(sb, report->step_s);
    gp_strbuf_addf(sb,
                   "; the highest is %.2f kW.</p>\n<div class=\"strip power\">"
                   "<svg viewBox=\"0 0 %zu 1\" preserveAspectRatio=\"none\" role=\"img\" "
                   "aria-label=\"Power over time\">",
                   most, report->step_count);
    for (size_t i = 0; i < report->step_count; i++) {
        const double kw = power_at(report, i);
        if (kw < 0)
            continue;
        gp_strbuf_adds(sb, "<g><title>");
        gp_report_add_time(sb, report->steps[i].from_us);
        gp_strbuf_addf(sb, ": %.2f kW</title>", kw);
        add_rect(sb, "none", i, 0, 1 - kw / most);
        add_rect(sb, "watts", i, 1 - kw / most, kw / most);
        gp_strbuf_adds(sb, "</g>");
    }
    gp_strbuf_adds(sb, "</svg></div>\n");
    add_axis(sb, report);
    gp_strbuf_adds(sb, "</section>\n");
}
