#include "bench/report.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "bench/curve.h"
#include "bench/figure.h"
#include "doctor/tables.h"
#include "out/json.h"

#include <jansson.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the machine ---- */

static void read_cpu(char *ret, size_t size)
{
    static const char key[] = "model name";
    char text[4096];
    ret[0] = '\0';
    if (gp_io_read("/proc/cpuinfo", text, sizeof(text)) <= 0)
        return;
    const char *line = strstr(text, key);
    const char *value = line ? strchr(line, ':') : NULL;
    if (!value)
        return;
    value += 1 + strspn(value + 1, " ");
    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(value, "\n"), value);
    gp_utf8_copy_safe(ret, size, text);
}

void gp_bench_origin_of_host(struct gp_bench_origin *origin)
{
    cpu_set_t set;
    char text[64];
    *origin = (struct gp_bench_origin){.wall_ns = gp_clock_wall_ns(), .cpus = 0};
    if (gethostname(origin->host, sizeof(origin->host) - 1) != 0)
        origin->host[0] = '\0';
    read_cpu(origin->cpu, sizeof(origin->cpu));
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        origin->cpus = (unsigned)CPU_COUNT(&set);
    if (gp_io_read("/proc/loadavg", text, sizeof(text)) > 0)
        (void)snprintf(origin->load, sizeof(origin->load), "%.*s", (int)strcspn(text, " "), text);
}

/* ---- text ---- */

static void add_heading(struct gp_strbuf *sb, const struct gp_bench *bench,
                        const struct gp_bench_origin *origin)
{
    gp_strbuf_addf(sb, "CPU    %s, %u cores, load %s", origin->cpu[0] ? origin->cpu : "unknown",
                   origin->cpus, origin->load);
    if (bench->has_blas) {
        gp_strbuf_addf(sb, "; %s", bench->blas.name);
        if (bench->blas.threads)
            gp_strbuf_addf(sb, ", %u threads", bench->blas.threads);
    }
    gp_strbuf_addc(sb, '\n');
    for (size_t i = 0; i < bench->count; i++) {
        const struct gp_bench_device *device = bench->devices[i];
        char title[GP_BENCH_TITLE_SIZE];
        gp_bench_title(bench, i, title);
        gp_strbuf_addf(sb, "%s  %s; %s", title, device->name, device->library);
        if (origin->driver[0])
            gp_strbuf_addf(sb, ", driver %s", origin->driver);
        gp_strbuf_addc(sb, '\n');
    }
    if (origin->is_simulated)
        gp_strbuf_adds(sb, "The driver is simulated: these figures say nothing about a GPU.\n");
    if (origin->is_shared)
        gp_strbuf_adds(sb, "The GPUs were not reserved: others may have used them.\n");
    if (origin->lost[0])
        gp_strbuf_addf(sb, "Others may have used them: %s.\n", origin->lost);
}

enum { VALUE = 20 /* columns of a value */ };

/* A list of remarks. */
struct remarks {
    struct gp_strbuf *sb;
    const char *between;
};

static void remark(struct remarks *remarks, const char *format, ...) GP_PRINTF(2, 3);

static void remark(struct remarks *remarks, const char *format, ...)
{
    char text[240];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    gp_strbuf_addf(remarks->sb, "%s%s", remarks->between, text);
    remarks->between = "; ";
}

/* What computed it, what the GPU did, and what makes the figure doubtful. */
static void add_remarks(struct gp_strbuf *sb, const struct gp_bench_result *r)
{
    const struct gp_bench_conditions *c = &r->conditions;
    struct remarks remarks = {sb, "  "};
    if (r->note[0])
        remark(&remarks, "%s", r->note);
    if (r->kernel[0])
        remark(&remarks, "%s", r->kernel);
    if (r->value.count > 0 && !r->is_steady)
        remark(&remarks, "not steady");
    if (c->other_pid)
        remark(&remarks, "shared with pid %u", c->other_pid);
    if (c->ecc_corrected > 0)
        remark(&remarks, "%.0f corrected memory errors", c->ecc_corrected);
    if (c->ecc_uncorrected > 0)
        remark(&remarks, "%.0f uncorrected memory errors", c->ecc_uncorrected);
    for (size_t i = 0; i < gp_throttle_reason_count; i++)
        if (c->limits & gp_throttle_reasons[i].mask)
            remark(&remarks, "%s", gp_throttle_reasons[i].word);
}

/* "8192 rows", "1 GiB", or nothing. */
static void size_text(const struct gp_bench_result *r, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    bool is_bytes = strcmp(r->unit, "GB/s") == 0 || strcmp(r->unit, "us") == 0;
    double size = (double)r->size;
    size_t unit = 0;
    while (is_bytes && size >= 1024 && unit + 1 < GP_ARRAY_LEN(units)) {
        size /= 1024;
        unit++;
    }
    text[0] = '\0';
    if (r->size)
        (void)snprintf(text, 24, is_bytes ? "%.3g %s" : "%.0f %s", size,
                       is_bytes ? units[unit] : "rows");
}

static void add_row(struct gp_strbuf *sb, const struct gp_bench_result *r)
{
    char value[64] = "";
    char size[24];
    struct gp_strbuf cell = GP_STRBUF_ON(value, sizeof(value) - 1);
    if (r->value.count > 0)
        gp_bench_add_value(&cell, &r->value);
    else
        gp_strbuf_adds(&cell, gp_bench_outcome_word(r->outcome));
    size_text(r, size);
    gp_strbuf_addf(sb, "  %-6s %-19s %11s ", r->device, r->what, size);
    size_t width = gp_utf8_width(value);
    gp_strbuf_fill(sb, ' ', width < VALUE ? VALUE - width : 0);
    gp_strbuf_addf(sb, "%s %-7s", value, r->value.count > 0 ? r->unit : "");
    if (r->peak > 0 && r->value.count > 0)
        gp_strbuf_addf(sb, " %3.0f %% of %4.0f", 100 * r->value.median / r->peak, r->peak);
    if (r->peak_at_clock > 0 && r->value.count > 0)
        gp_strbuf_addf(sb, " (%3.0f %% at %4.0f MHz)", 100 * r->value.median / r->peak_at_clock,
                       r->conditions.clock_mhz);
    else if (r->conditions.clock_mhz > 0)
        gp_strbuf_addf(sb, "  %4.0f MHz", r->conditions.clock_mhz);
    if (r->conditions.watts > 0)
        gp_strbuf_addf(sb, " %3.0f W %2.0f °C", r->conditions.watts, r->conditions.celsius);
    add_remarks(sb, r);
    while (sb->len > 0 && sb->buf[sb->len - 1] == ' ')
        gp_strbuf_truncate(sb, sb->len - 1);
    gp_strbuf_addc(sb, '\n');
}

static bool is_first_of_test(const struct gp_bench_results *results, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(results->list[i].test, results->list[at].test) == 0)
            return false;
    return strcmp(results->list[at].test, "matmul") != 0; /* which is a curve */
}

static void add_test(struct gp_strbuf *sb, const struct gp_bench_results *results, const char *test)
{
    gp_strbuf_addf(sb, "\n%s\n", test);
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->list[i].test, test) == 0)
            add_row(sb, &results->list[i]);
}

void gp_bench_add_text(struct gp_strbuf *sb, const struct gp_bench *bench,
                       const struct gp_bench_origin *origin, size_t columns, bool plain)
{
    const struct gp_bench_results *results = &bench->results;
    add_heading(sb, bench, origin);
    gp_bench_add_curve(sb, bench, columns, plain);
    for (size_t i = 0; i < results->count; i++)
        if (is_first_of_test(results, i))
            add_test(sb, results, results->list[i].test);
}

/* ---- CSV ---- */

static void add_quoted(struct gp_strbuf *sb, const char *text)
{
    gp_strbuf_adds(sb, ",\"");
    for (; *text; text++) {
        gp_strbuf_addc(sb, *text);
        if (*text == '"')
            gp_strbuf_addc(sb, '"');
    }
    gp_strbuf_addc(sb, '"');
}

void gp_bench_add_csv(struct gp_strbuf *sb, const struct gp_bench *bench)
{
    gp_strbuf_adds(
        sb, "test,what,device,size,unit,lower_is_better,outcome,median,low,high,min,max,runs,"
            "steady,peak,peak_at_clock,clock_mhz,watts,celsius,limits,other_pid,kernel,"
            "note\n");
    for (size_t i = 0; i < bench->results.count; i++) {
        const struct gp_bench_result *r = &bench->results.list[i];
        const struct gp_bench_conditions *c = &r->conditions;
        gp_strbuf_addf(sb, "%s,\"%s\",%s,%llu,%s,%d,%s,", r->test, r->what, r->device,
                       (unsigned long long)r->size, r->unit, r->is_lower_better,
                       gp_bench_outcome_word(r->outcome));
        if (r->value.count > 0)
            gp_strbuf_addf(sb, "%.6g,%.6g,%.6g,%.6g,%.6g,%zu,", r->value.median, r->value.low,
                           r->value.high, r->value.min, r->value.max, r->value.count);
        else
            gp_strbuf_adds(sb, ",,,,,0,");
        gp_strbuf_addf(sb, "%d,", r->is_steady);
        if (r->peak > 0)
            gp_strbuf_addf(sb, "%.6g", r->peak);
        gp_strbuf_addc(sb, ',');
        if (r->peak_at_clock > 0)
            gp_strbuf_addf(sb, "%.6g", r->peak_at_clock);
        if (c->is_known)
            gp_strbuf_addf(sb, ",%.0f,%.1f,%.0f,", c->clock_mhz, c->watts, c->celsius);
        else
            gp_strbuf_adds(sb, ",,,,");
        gp_bench_add_limits(sb, c->limits);
        gp_strbuf_addc(sb, ',');
        if (c->is_known)
            gp_strbuf_addf(sb, "%u", c->other_pid);
        add_quoted(sb, r->kernel);
        add_quoted(sb, r->note);
        gp_strbuf_addc(sb, '\n');
    }
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *load_or_null(const char *load)
{
    return load[0] ? json_real(strtod(load, NULL)) : json_null();
}

static json_t *conditions_object(const struct gp_bench_conditions *c)
{
    if (!c->is_known)
        return json_null();
    json_t *limits = json_array();
    for (size_t i = 0; i < gp_throttle_reason_count; i++)
        if (c->limits & gp_throttle_reasons[i].mask)
            (void)json_array_append_new(limits, json_string(gp_throttle_reasons[i].word));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o}", "samples",
                     (int)c->samples, "clock_mhz", number_or_null(c->clock_mhz), "clock_least_mhz",
                     number_or_null(c->clock_least_mhz), "clock_max_mhz",
                     number_or_null(c->clock_max_mhz), "watts", number_or_null(c->watts), "celsius",
                     number_or_null(c->celsius), "ecc_corrected", c->ecc_corrected,
                     "ecc_uncorrected", c->ecc_uncorrected, "limits", limits, "other_pid",
                     c->other_pid ? json_integer(c->other_pid) : json_null());
}

static json_t *value_object(const struct gp_bench_stats *s)
{
    if (s->count == 0)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:i}", "median", s->median, "low", s->low, "high",
                     s->high, "min", s->min, "max", s->max, "runs", (int)s->count);
}

static json_t *result_object(const struct gp_bench_result *r)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:b, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}",
                     "test", r->test, "what", r->what, "device", r->device, "size",
                     r->size ? json_integer((json_int_t)r->size) : json_null(), "unit", r->unit,
                     "lower_is_better", (int)r->is_lower_better, "outcome",
                     gp_bench_outcome_word(r->outcome), "value", value_object(&r->value), "steady",
                     (int)r->is_steady, "peak", number_or_null(r->peak), "peak_at_clock",
                     number_or_null(r->peak_at_clock), "kernel", text_or_null(r->kernel), "note",
                     text_or_null(r->note), "conditions", conditions_object(&r->conditions));
}

static json_t *device_object(const struct gp_bench *bench, size_t i)
{
    const struct gp_bench_device *d = bench->devices[i];
    return json_pack("{s:s, s:s, s:o, s:s, s:b, s:I, s:i}", "device", bench->names[i], "name",
                     d->name, "uuid", text_or_null(d->uuid), "library", d->library, "is_gpu",
                     (int)d->is_gpu, "memory_bytes", (json_int_t)d->memory_bytes, "units",
                     (int)d->units);
}

void gp_bench_add_json(struct gp_strbuf *sb, const struct gp_bench *bench,
                       const struct gp_bench_origin *origin)
{
    char time[GP_RFC3339_SIZE];
    json_t *devices = json_array();
    json_t *results = json_array();
    gp_clock_rfc3339(origin->wall_ns, time);
    for (size_t i = 0; i < bench->count; i++)
        (void)json_array_append_new(devices, device_object(bench, i));
    for (size_t i = 0; i < bench->results.count; i++)
        (void)json_array_append_new(results, result_object(&bench->results.list[i]));
    json_t *document = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:b, s:b, s:{s:o, s:i, s:o, s:o, s:i}, s:o, s:o}", "schema",
        "gpulse.bench/1", "time", time, "host", origin->host, "driver",
        text_or_null(origin->driver), "gpulse", GPULSE_VERSION, "simulated",
        (int)origin->is_simulated, "reserved", (int)(origin->is_reserved && !origin->lost[0]),
        "cpu", "model", text_or_null(origin->cpu), "cpus", (int)origin->cpus, "load",
        load_or_null(origin->load), "blas", text_or_null(bench->blas.name), "blas_threads",
        (int)bench->blas.threads, "devices", devices, "results", results);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
