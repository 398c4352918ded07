#include "why/report.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"

#include <math.h>
#include <string.h>

enum { INDENT = 10 };

static const struct {
    enum gp_why_series series;
    const char *name;
} series_names[] = {
#define X(id, metric, name) {GP_WHY_##id, name},
    GP_WHY_SERIES(X)
#undef X
};

static const char *const limit_names[] = {
#define X(id, bits, name) name,
    GP_WHY_LIMITS(X)
#undef X
};

/* ---- text ---- */

void gp_why_report_add_line(struct gp_strbuf *sb, const char *label, const char *text,
                            size_t columns)
{
    gp_strbuf_addf(sb, "    %-*s", INDENT - 4, label);
    gp_utf8_add_wrapped(sb, text, strlen(text), INDENT, columns);
}

void gp_why_report_add_title(struct gp_strbuf *sb, const struct gp_why_case *c)
{
    gp_strbuf_addf(sb, "GPU %s  %s · ", c->gpu, c->name);
    if (c->pid == 0) {
        gp_strbuf_adds(sb, "no process is known\n");
        return;
    }
    gp_strbuf_addf(sb, "%s (pid %u", c->command[0] ? c->command : "a process", c->pid);
    if (c->user[0])
        gp_strbuf_addf(sb, ", %s", c->user);
    gp_strbuf_addf(sb, ") · %.0f s, %u samples\n", c->seconds, c->samples);
}

void gp_why_report_add_gain(struct gp_strbuf *sb, double gain)
{
    if (gain >= GP_WHY_GAIN_LEAST)
        gp_strbuf_addf(sb, "    %-*sat most %.1f times as fast\n", INDENT - 4, "gain", gain);
}

void gp_why_report_add_verdict(struct gp_strbuf *sb, const struct gp_why_verdict *v, size_t columns)
{
    gp_strbuf_addf(sb, "  %s (%s)\n", gp_why_title(v->rule), gp_why_sure_word(v->sure));
    gp_why_report_add_line(sb, "seen", v->seen, columns);
    if (v->advice[0])
        gp_why_report_add_line(sb, "try", v->advice, columns);
    gp_why_report_add_gain(sb, v->gain);
}

void gp_why_report_add(struct gp_strbuf *sb, const struct gp_why_case *cases, size_t count,
                       size_t columns)
{
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    for (size_t i = 0; i < count; i++) {
        const struct gp_why_case *c = &cases[i];
        size_t n = gp_why_judge(c, verdicts);
        if (i > 0)
            gp_strbuf_addc(sb, '\n');
        gp_why_report_add_title(sb, c);
        for (size_t v = 0; v < n; v++)
            gp_why_report_add_verdict(sb, &verdicts[v], columns);
        if (n == 0) {
            char text[GP_WHY_TEXT_SIZE];
            gp_why_nothing(c, text);
            gp_strbuf_adds(sb, c->values[GP_WHY_UTILIZATION].count > 0
                                   ? "  Nothing stands out.\n"
                                   : "  Too little is known about this GPU.\n");
            gp_why_report_add_line(sb, "seen", text, columns);
        }
    }
}

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/* A number that is below 0 if it is unknown. */
static json_t *known(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

json_t *gp_why_report_verdict(const struct gp_why_verdict *v)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "rule", gp_why_word(v->rule), "title",
                     gp_why_title(v->rule), "confidence", gp_why_sure_word(v->sure), "seen",
                     v->seen, "try", v->advice, "gain",
                     v->gain > 1 ? json_real(v->gain) : json_null());
}

static json_t *means_object(const struct gp_why_case *c)
{
    json_t *object = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(series_names); i++)
        (void)json_object_set_new(object, series_names[i].name,
                                  number(gp_why_mean(c, series_names[i].series)));
    return object;
}

static json_t *limits_object(const struct gp_why_case *c)
{
    json_t *object = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(limit_names); i++)
        (void)json_object_set_new(object, limit_names[i],
                                  number(gp_why_limited(c, (enum gp_why_limit)i)));
    return object;
}

static json_t *host_object(const struct gp_tasks_use *h)
{
    if (!h->is_known)
        return json_null();
    bool t = h->knows_threads;
    return json_pack(
        "{s:i, s:i, s:i, s:f, s:o, s:o, s:f, s:o, s:o, s:f, s:o, s:I, s:i, s:o, s:o, s:o, s:o}",
        "processes", (int)h->processes, "workers", (int)h->workers, "threads", (int)h->threads,
        "cpus", h->cpus, "main_thread", t ? json_real(h->main) : json_null(), "other_threads",
        t ? json_real(h->others) : json_null(), "workers_cpus", h->workers_cpus, "disk_wait",
        t ? json_real(h->disk) : json_null(), "cpu_wait", known(h->queue), "major_faults_per_s",
        h->majors_per_s, "read_bytes_per_s", known(h->read_bytes_per_s), "swapped_bytes",
        (json_int_t)h->swapped_bytes, "allowed_cpus", (int)h->allowed, "cpu_quota",
        h->quota > 0 ? json_real(h->quota) : json_null(), "remote_cpus", known(h->remote),
        "pressure_io", known(h->pressure_io), "pressure_cpu", known(h->pressure_cpu));
}

json_t *gp_why_report_case(const struct gp_why_case *c)
{
    json_t *pid = c->pid > 0 ? json_integer((json_int_t)c->pid) : json_null();
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:f, s:i}", "gpu", c->gpu, "uuid", c->uuid,
                     "name", c->name, "pid", pid, "command", c->command, "user", c->user, "seconds",
                     c->seconds, "samples", (int)c->samples);
}

static json_t *case_object(const struct gp_why_case *c)
{
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    size_t n = gp_why_judge(c, verdicts);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, gp_why_report_verdict(&verdicts[i]));
    json_t *object = gp_why_report_case(c);
    (void)json_object_set_new(object, "verdicts", list);
    (void)json_object_set_new(object, "means", means_object(c));
    (void)json_object_set_new(object, "limited", limits_object(c));
    (void)json_object_set_new(object, "host", host_object(&c->host));
    return object;
}

void gp_why_report_add_json(struct gp_strbuf *sb, const struct gp_snapshot *last,
                            const struct gp_why_case *cases, size_t count, size_t indent)
{
    json_t *document = gp_json_document(last, "gpulse.why/1");
    json_t *gpus = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(gpus, case_object(&cases[i])) < 0)
            sb->error = GP_ENOMEM; /* a GPU that is missing would look like one without a job */
    (void)json_object_set_new(document, "gpus", gpus);
    gp_json_set_incomplete(document, last);
    gp_json_add(sb, document, indent);
    gp_strbuf_addc(sb, '\n');
}
