#include "out/trace.h"

#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    PENDING_MOST = 8 << 20,
    NAMES_MOST = 65536,              /* of threads and processes */
    REPORTS_MOST = PENDING_MOST / 2, /* when reports are dropped, samples still fit */
    NAME_COLUMNS = 200,
    NAME_BYTES = 4096,
};

static const char document[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\n]}\n";
static const char end[] = "\n]}\n"; /* of it */

struct gp_trace {
    struct gp_outfile file;
    pthread_mutex_t lock; /* protects the members below; `err` and `file` belong to who flushes */
    uint64_t begin_ns;
    struct gp_strbuf pending;
    struct gp_trace_sum sum;
    uint64_t reported_bytes; /* of the job's own events */
    uint64_t sampled_bytes;  /* of the others */
    uint64_t range_id;
    uint64_t names;    /* of threads and processes */
    bool has_events;   /* in the file */
    struct gp_err err; /* code 0: everything was written */
};

/* ---- parts of an event ---- */

/* A JSON string; anything may be in the text. */
static void add_string(struct gp_strbuf *sb, const char *text)
{
    char room[256] = "";
    struct gp_strbuf safe = GP_STRBUF_ON(room, NAME_BYTES);
    gp_utf8_add_safe(&safe, text, strlen(text), NAME_COLUMNS);
    gp_strbuf_addc(sb, '"');
    for (const char *at = safe.buf; *at; at++) {
        if (*at == '"' || *at == '\\')
            gp_strbuf_addc(sb, '\\');
        gp_strbuf_addc(sb, *at);
    }
    gp_strbuf_addc(sb, '"');
    gp_strbuf_fini(&safe);
}

static void add_us(struct gp_strbuf *sb, uint64_t ns)
{
    gp_strbuf_addf(sb, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static uint64_t since_begin(const struct gp_trace *trace, uint64_t mono_ns)
{
    return mono_ns > trace->begin_ns ? mono_ns - trace->begin_ns : 0;
}

/* Locks, and adds the start of an event; returns the length before it, for end_event(). */
static size_t begin_event(struct gp_trace *trace, char phase, uint32_t pid, const char *name)
{
    struct gp_strbuf *sb = &trace->pending;
    (void)pthread_mutex_lock(&trace->lock);
    size_t before = sb->len;
    gp_strbuf_addf(sb, "%s{\"ph\":\"%c\",\"pid\":%" PRIu32,
                   trace->has_events || before > 0 ? ",\n" : "", phase, pid);
    if (name) {
        gp_strbuf_adds(sb, ",\"name\":");
        add_string(sb, name);
    }
    return before;
}

static void add_time(struct gp_trace *trace, uint64_t mono_ns)
{
    gp_strbuf_adds(&trace->pending, ",\"ts\":");
    add_us(&trace->pending, since_begin(trace, mono_ns));
}

/* Counts the event and its bytes, or drops it if there is no room. */
static void end_event(struct gp_trace *trace, size_t before, uint64_t *bytes, uint64_t *count,
                      uint64_t *dropped)
{
    struct gp_strbuf *sb = &trace->pending;
    gp_strbuf_addc(sb, '}');
    if (sb->error || sb->len > PENDING_MOST) {
        sb->error = 0;
        gp_strbuf_truncate(sb, before);
        ++*dropped;
    } else {
        *bytes += sb->len - before;
        if (count)
            ++*count;
    }
    (void)pthread_mutex_unlock(&trace->lock);
}

/* Of a sample, or of a name. */
static void end_sample(struct gp_trace *trace, size_t before)
{
    end_event(trace, before, &trace->sampled_bytes, NULL, &trace->sum.lost);
}

/* ---- the file ---- */

int gp_trace_check(const char *path, struct gp_err *err)
{
    const struct gp_outfile_config config = {.path = path, .keep = 1};
    char there[sizeof(document) - sizeof(end) + 1];
    struct stat st;
    int r = gp_outfile_check(&config, err);
    if (r < 0 || stat(path, &st) != 0)
        return r;
    if (!S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EIO, "cannot write a trace to '%.200s': it is not a regular file",
                          path);
    if (st.st_size == 0)
        return 0;
    const size_t n = gp_outfile_peek(path, there, sizeof(there));
    return n + 1 == sizeof(there) && memcmp(there, document, n) == 0
               ? 0
               : gp_err_set(err, GP_EUSAGE,
                            "'%.200s' exists and is not a trace of gpulse; choose another file for "
                            "the timeline",
                            path);
}

int gp_trace_open(struct gp_trace **ret, const char *path, struct gp_err *err)
{
    const struct gp_outfile_config config = {.path = path, .keep = 1};
    struct gp_trace *trace = NULL;
    int r = gp_trace_check(path, err); /* it may have appeared since it was checked first */
    if (r < 0)
        return r;
    trace = calloc(1, sizeof(*trace));
    if (!trace)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    r = gp_outfile_open(&trace->file, &config, err);
    if (r == 0 && !trace->file.regular)
        r = gp_err_set(err, GP_EIO, "cannot write a trace to '%s': it is not a regular file", path);
    if (r == 0)
        r = gp_outfile_write(&trace->file, document, strlen(document), err);
    if (r < 0) {
        (void)!gp_outfile_close(&trace->file, NULL);
        free(trace);
        return r;
    }
    gp_strbuf_init(&trace->pending, PENDING_MOST + sizeof(end));
    (void)pthread_mutex_init(&trace->lock, NULL);
    *ret = trace;
    return 0;
}

void gp_trace_begin(struct gp_trace *trace, uint64_t mono_ns)
{
    (void)pthread_mutex_lock(&trace->lock);
    trace->begin_ns = mono_ns;
    (void)pthread_mutex_unlock(&trace->lock);
}

/* The file is written without the lock, so that nobody waits for a slow disk. */
size_t gp_trace_flush(struct gp_trace *trace)
{
    struct gp_strbuf sb;
    (void)pthread_mutex_lock(&trace->lock);
    sb = trace->pending;
    gp_strbuf_init(&trace->pending, PENDING_MOST + sizeof(end));
    trace->has_events = trace->has_events || (sb.len > 0 && !trace->err.code);
    (void)pthread_mutex_unlock(&trace->lock);
    const size_t size = sb.len;
    if (sb.len > 0 && !trace->err.code) {
        gp_strbuf_adds(&sb, end);
        if (sb.error)
            (void)gp_err_set(&trace->err, sb.error, "%s", gp_err_text(sb.error));
        else
            (void)!gp_outfile_extend(&trace->file, sb.buf, sb.len, strlen(end), &trace->err);
    }
    gp_strbuf_fini(&sb);
    return size;
}

int gp_trace_close(struct gp_trace *trace, struct gp_trace_sum *ret, struct gp_err *err)
{
    (void)gp_trace_flush(trace);
    if (!trace->err.code)
        (void)!gp_outfile_close(&trace->file, &trace->err);
    else
        (void)!gp_outfile_close(&trace->file, NULL);
    *ret = trace->sum;
    int r = trace->err.code ? gp_err_copy(err, &trace->err) : 0;
    gp_strbuf_fini(&trace->pending);
    (void)pthread_mutex_destroy(&trace->lock);
    free(trace);
    return r;
}

/* ---- names ---- */

static void name_it(struct gp_trace *trace, const char *what, struct gp_trace_place place,
                    const char *name)
{
    size_t before = begin_event(trace, 'M', place.pid, what);
    gp_strbuf_addf(&trace->pending, ",\"tid\":%" PRIu32 ",\"args\":{\"name\":", place.tid);
    add_string(&trace->pending, name);
    gp_strbuf_addc(&trace->pending, '}');
    end_sample(trace, before);
}

static bool has_name_left(struct gp_trace *trace)
{
    (void)pthread_mutex_lock(&trace->lock);
    const bool has_one = trace->names < NAMES_MOST;
    trace->names += has_one;
    (void)pthread_mutex_unlock(&trace->lock);
    return has_one;
}

void gp_trace_name_process(struct gp_trace *trace, uint32_t pid, const char *name, int order)
{
    if (!has_name_left(trace))
        return;
    name_it(trace, "process_name", (struct gp_trace_place){pid, pid}, name);
    size_t before = begin_event(trace, 'M', pid, "process_sort_index");
    gp_strbuf_addf(&trace->pending, ",\"tid\":%" PRIu32 ",\"args\":{\"sort_index\":%d}", pid,
                   order);
    end_sample(trace, before);
}

void gp_trace_name_thread(struct gp_trace *trace, struct gp_trace_place place, const char *name)
{
    if (has_name_left(trace))
        name_it(trace, "thread_name", place, name);
}

/* ---- counters and slices ---- */

/* Not with round(): gpulse needs nothing else of libm, and to load it takes as long as to read a
 * GPU. */
double gp_trace_rounded(double value, double grain)
{
    const double steps = value / grain, most = 9e18; /* what an int64_t can hold */
    if (!(steps > -most && steps < most))
        return value;
    return (double)(int64_t)(steps + (steps < 0 ? -0.5 : 0.5)) * grain;
}

void gp_trace_count(struct gp_trace *trace, uint32_t pid, const char *name, uint64_t mono_ns,
                    const struct gp_trace_value *values, size_t count)
{
    struct gp_strbuf *sb = &trace->pending;
    size_t before = begin_event(trace, 'C', pid, name);
    add_time(trace, mono_ns);
    gp_strbuf_adds(sb, ",\"args\":{");
    for (size_t i = 0; i < count; i++) {
        gp_strbuf_adds(sb, i > 0 ? "," : "");
        add_string(sb, values[i].series);
        gp_strbuf_addf(sb, ":%.10g", values[i].number);
    }
    gp_strbuf_addc(sb, '}');
    end_sample(trace, before);
}

static void add_edge(struct gp_trace *trace, char phase, struct gp_trace_place place,
                     const char *name, uint64_t mono_ns)
{
    size_t before = begin_event(trace, phase, place.pid, name);
    gp_strbuf_addf(&trace->pending, ",\"tid\":%" PRIu32, place.tid);
    add_time(trace, mono_ns);
    end_sample(trace, before);
}

void gp_trace_open_slice(struct gp_trace *trace, struct gp_trace_place place, const char *name,
                         uint64_t mono_ns)
{
    add_edge(trace, 'B', place, name, mono_ns);
}

void gp_trace_close_slice(struct gp_trace *trace, struct gp_trace_place place, uint64_t mono_ns)
{
    add_edge(trace, 'E', place, NULL, mono_ns);
}

void gp_trace_note(struct gp_trace *trace, struct gp_trace_place place, const char *name,
                   uint64_t mono_ns)
{
    size_t before = begin_event(trace, 'i', place.pid, name);
    gp_strbuf_addf(&trace->pending, ",\"tid\":%" PRIu32 ",\"cat\":\"gpulse\",\"s\":\"t\"",
                   place.tid);
    add_time(trace, mono_ns);
    end_sample(trace, before);
}

/* ---- what the job reports ---- */

static size_t begin_report(struct gp_trace *trace, char phase, const struct gp_trace_event *event)
{
    size_t before = begin_event(trace, phase, event->place.pid, event->name);
    gp_strbuf_addf(&trace->pending, ",\"tid\":%" PRIu32 ",\"cat\":", event->place.tid);
    add_string(&trace->pending, event->category[0] ? event->category : "job");
    if (event->is_unfinished)
        gp_strbuf_adds(&trace->pending, ",\"args\":{\"unfinished\":true}");
    return before;
}

static void end_report(struct gp_trace *trace, size_t before, uint64_t *count)
{
    const uint64_t bytes = trace->reported_bytes + trace->pending.len - before;
    if (bytes > GP_TRACE_MOST || trace->pending.len > REPORTS_MOST)
        trace->pending.error = GP_ETOOBIG;
    end_event(trace, before, &trace->reported_bytes, count, &trace->sum.dropped);
}

void gp_trace_add_mark(struct gp_trace *trace, const struct gp_trace_event *event)
{
    size_t before = begin_report(trace, 'i', event);
    add_time(trace, event->start_ns);
    gp_strbuf_adds(&trace->pending, ",\"s\":\"t\"");
    end_report(trace, before, &trace->sum.marks);
}

void gp_trace_add_slice(struct gp_trace *trace, const struct gp_trace_event *event)
{
    size_t before = begin_report(trace, 'X', event);
    const uint64_t start = since_begin(trace, event->start_ns);
    const uint64_t stop = since_begin(trace, event->end_ns);
    add_time(trace, event->start_ns);
    gp_strbuf_adds(&trace->pending, ",\"dur\":");
    add_us(&trace->pending, stop > start ? stop - start : 0);
    end_report(trace, before, &trace->sum.ranges);
}

/* Both ends in one piece, so that neither is dropped alone. */
void gp_trace_add_range(struct gp_trace *trace, const struct gp_trace_event *event)
{
    struct gp_strbuf *sb = &trace->pending;
    size_t before = begin_report(trace, 'b', event);
    const uint64_t id = ++trace->range_id;
    add_time(trace, event->start_ns);
    gp_strbuf_addf(sb, ",\"id\":\"%" PRIu64 "\"},\n{\"ph\":\"e\",\"pid\":%" PRIu32 ",\"name\":", id,
                   event->place.pid);
    add_string(sb, event->name);
    gp_strbuf_addf(sb, ",\"tid\":%" PRIu32 ",\"cat\":", event->place.tid);
    add_string(sb, event->category[0] ? event->category : "job");
    add_time(trace, event->end_ns > event->start_ns ? event->end_ns : event->start_ns);
    gp_strbuf_addf(sb, ",\"id\":\"%" PRIu64 "\"", id);
    end_report(trace, before, &trace->sum.ranges);
}

uint64_t gp_trace_sampled_bytes(struct gp_trace *trace)
{
    (void)pthread_mutex_lock(&trace->lock);
    const uint64_t bytes = trace->sampled_bytes;
    (void)pthread_mutex_unlock(&trace->lock);
    return bytes;
}

void gp_trace_drop(struct gp_trace *trace, uint64_t count)
{
    (void)pthread_mutex_lock(&trace->lock);
    trace->sum.dropped += count;
    (void)pthread_mutex_unlock(&trace->lock);
}
