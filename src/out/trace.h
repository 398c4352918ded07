/* A trace in Chrome's Trace Event Format, which ui.perfetto.dev shows.
 *
 * The file is a whole JSON document after every write, also if this process is killed: each write
 * replaces the end of the document. Events are collected in memory until gp_trace_flush(), and may
 * come from several threads. Times are CLOCK_MONOTONIC; the trace has microseconds since its begin.
 * Names may be any bytes: they are escaped. */
#ifndef GP_OUT_TRACE_H
#define GP_OUT_TRACE_H

#include "base/util.h"

struct gp_err;
struct gp_trace;

/* Refuses a file that cannot be written: GP_EIO, GP_EPERM; and one that is not empty and no trace,
 * such as the user's program: GP_EUSAGE. */
int gp_trace_check(const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Creates the file, which must be a regular one; an existing trace becomes FILE.1, or is
 * overwritten if FILE is a link to it. `path` must outlive the trace. GP_EIO, GP_EPERM, GP_ENOMEM;
 * GP_EUSAGE as in gp_trace_check(). */
int gp_trace_open(struct gp_trace **ret, const char *path, struct gp_err *err) GP_MUST_CHECK;

/* The time that is 0 in the trace. Times before it become 0. */
void gp_trace_begin(struct gp_trace *trace, uint64_t mono_ns);

/* Where events are shown: a thread of a process. Things that are no processes have numbers above
 * all pids. */
struct gp_trace_place {
    uint32_t pid, tid;
};

enum {
    GP_TRACE_PID = 1 << 23,                 /* above all pids */
    GP_TRACE_FOREIGN = GP_TRACE_PID + 1024, /* processes whose pid is another one's here */
    GP_TRACE_ORDER = 100,                   /* of the job's processes: below the GPUs */
};

/* Name a place; those with a smaller `order` are shown first. After 65536 names, more are ignored.
 */
void gp_trace_name_process(struct gp_trace *trace, uint32_t pid, const char *name, int order);
void gp_trace_name_thread(struct gp_trace *trace, struct gp_trace_place place, const char *name);

struct gp_trace_value {
    const char *series; /* of the counter; usually its unit */
    double number;
};

/* The nearest multiple of the grain, so that noise is not written; NAN stays. */
double gp_trace_rounded(double value, double grain);
/* The values of a counter from now on. */
void gp_trace_count(struct gp_trace *trace, uint32_t pid, const char *name, uint64_t mono_ns,
                    const struct gp_trace_value *values, size_t count);

/* A slice that begins, and the end of the one that began last in this place. */
void gp_trace_open_slice(struct gp_trace *trace, struct gp_trace_place place, const char *name,
                         uint64_t mono_ns);
void gp_trace_close_slice(struct gp_trace *trace, struct gp_trace_place place, uint64_t mono_ns);

/* Something that happened, as a mark that is not counted. */
void gp_trace_note(struct gp_trace *trace, struct gp_trace_place place, const char *name,
                   uint64_t mono_ns);

/* Bytes of all that, with the names. The job's processes and the time decide how many there are, so
 * whoever samples must do it less often as they grow. */
uint64_t gp_trace_sampled_bytes(struct gp_trace *trace);

/* What the job reports itself. There may be any number of them, so after GP_TRACE_MOST bytes, or
 * when they come faster than they are written, they are dropped and counted. */
enum { GP_TRACE_MOST = 512 << 20 };

struct gp_trace_event {
    struct gp_trace_place place;
    const char *category; /* "": none */
    const char *name;
    uint64_t start_ns, end_ns; /* the same for a mark */
    bool is_unfinished;        /* the process exited before the end */
};

/* A mark, a slice that nests in those of its thread, and one that may overlap them. */
void gp_trace_add_mark(struct gp_trace *trace, const struct gp_trace_event *event);
void gp_trace_add_slice(struct gp_trace *trace, const struct gp_trace_event *event);
void gp_trace_add_range(struct gp_trace *trace, const struct gp_trace_event *event);

/* Adds to the number of events that were dropped elsewhere. */
void gp_trace_drop(struct gp_trace *trace, uint64_t count);

/* Writes what was added; returns how many bytes. After a failure, nothing more is written. */
size_t gp_trace_flush(struct gp_trace *trace);

struct gp_trace_sum {
    uint64_t marks, ranges, dropped;
    uint64_t lost; /* of the others: they came faster than they could be written */
};

/* Flushes, closes the file, and frees the trace. GP_EIO: the trace ends where it could not be
 * written; *ret is set in any case. */
int gp_trace_close(struct gp_trace *trace, struct gp_trace_sum *ret,
                   struct gp_err *err) GP_MUST_CHECK;

#endif
