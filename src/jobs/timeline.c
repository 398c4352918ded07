#include "jobs/timeline.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/marks.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "jobs/expression.h"
#include "jobs/marks_read.h"
#include "jobs/profilers.h"
#include "jobs/timeline_gpus.h"
#include "jobs/timeline_host.h"
#include "out/trace.h"
#include "source/source.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    JOB_PID = GP_TRACE_PID, /* the job as a whole */
    OUTPUT_TID = 1,
    NOTES_TID = 2,
    BUSY_MS = 50,  /* how often it is collected while the job reports much, … */
    CALM_MS = 200, /* … and else */
    BUSY_BYTES = 1 << 16,
    DOUBLINGS = 16, /* of the interval */
    NOTES_MOST = 1000,
};

static const char injection[] = "NVTX_INJECTION64_PATH";

struct gp_timeline {
    const struct gp_timeline_plan *plan;
    struct gp_trace *trace;
    struct gp_marks_reader *marks;
    regex_t mark;
    uint64_t begun_ns;  /* 0: no try has started */
    uint64_t ticked_ns; /* the last tick of the sampler */
    bool has_run;       /* a try has ended */
    unsigned notes;     /* of what happened to the job */
    uint64_t steps;     /* up to the value of their counter that was written last; 0: none yet */
    uint64_t stepped_ns;
    uint64_t due_ns;
    pid_t parent;
    char library_variable[GP_PATH_SIZE + 32];
    struct gp_timeline_gpus gpus;
    struct gp_timeline_host host;
};

/* ---- opening ---- */

/* Two tools cannot receive what one program reports. */
static int find_library(struct gp_timeline *timeline, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    const char *other = getenv(injection);
    if (!timeline->plan->has_nvtx)
        return 0;
    if (other && other[0])
        return gp_err_set(err, GP_EUSAGE,
                          "another tool receives the NVTX ranges: %s is '%.200s'; unset it, or "
                          "omit --nvtx",
                          injection, other);
    int r = gp_io_find_companion("", "libgpulse-nvtx.so", path, err);
    if (r == 0)
        (void)snprintf(timeline->library_variable, sizeof(timeline->library_variable), "%s=%s",
                       injection, path);
    return r;
}

/* What is known to fail, before anybody waits for GPUs. */
static int check_file(const char *path, struct gp_err *err)
{
    if (strcmp(path, "-") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "--timeline needs a file, as it writes within it; '-' is none");
    return gp_trace_check(path, err);
}

int gp_timeline_start(struct gp_timeline *timeline, struct gp_marks_reader *marks,
                      struct gp_err *err)
{
    timeline->marks = marks;
    return gp_trace_open(&timeline->trace, timeline->plan->path, err);
}

int gp_timeline_open(struct gp_timeline **ret, const struct gp_timeline_plan *plan,
                     struct gp_err *err)
{
    struct gp_timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    timeline->plan = plan;
    int r = plan->mark ? gp_expression_compile(&timeline->mark, "--mark", plan->mark, 0, err) : 0;
    if (r == 0) {
        r = find_library(timeline, err);
        r = r < 0 ? r : check_file(plan->path, err);
        if (r < 0 && plan->mark)
            regfree(&timeline->mark);
    }
    if (r < 0) {
        free(timeline);
        return r;
    }
    gp_timeline_gpus_init(&timeline->gpus);
    gp_timeline_host_init(&timeline->host);
    *ret = timeline;
    return 0;
}

void gp_timeline_add_want(struct gp_want *want)
{
    gp_timeline_gpus_add_want(want);
}

char *gp_timeline_variable(struct gp_timeline *timeline)
{
    return timeline->library_variable[0] ? timeline->library_variable : NULL;
}

/* ---- the job runs ---- */

static void note(struct gp_timeline *timeline, const char *text)
{
    gp_trace_note(timeline->trace, (struct gp_trace_place){JOB_PID, NOTES_TID}, text,
                  gp_clock_mono_ns());
}

void gp_timeline_add_note(struct gp_timeline *timeline, const char *text)
{
    if (timeline->notes++ < NOTES_MOST)
        note(timeline, text);
}

static void name_job(struct gp_timeline *timeline)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_adds(&sb, "job:");
    for (char *const *word = timeline->plan->argv; *word; word++)
        gp_strbuf_addf(&sb, " %s", *word);
    gp_trace_name_process(timeline->trace, JOB_PID, sb.buf, 0);
    gp_strbuf_fini(&sb);
}

void gp_timeline_begin(struct gp_timeline *timeline, pid_t parent, uint64_t started_ns)
{
    struct gp_trace *trace = timeline->trace;
    const bool is_first = timeline->begun_ns == 0;
    timeline->parent = parent;
    timeline->due_ns = 0; /* at once */
    if (is_first) {
        timeline->begun_ns = started_ns;
        gp_trace_begin(trace, timeline->begun_ns);
        name_job(timeline);
        gp_trace_name_thread(trace, (struct gp_trace_place){JOB_PID, NOTES_TID}, "job");
        if (timeline->plan->mark)
            gp_trace_name_thread(trace, (struct gp_trace_place){JOB_PID, OUTPUT_TID}, "output");
    }
    note(timeline, is_first ? "started" : "started again");
}

/* The first group of the expression, or all that matched. */
void gp_timeline_add_line(void *context, const char *line)
{
    struct gp_timeline *timeline = context;
    regmatch_t found[2];
    char name[GP_MARKS_TEXT * 2];
    if (regexec(&timeline->mark, line, GP_ARRAY_LEN(found), found, 0) != 0)
        return;
    const regmatch_t *part = found[1].rm_so >= 0 ? &found[1] : &found[0];
    const uint64_t now_ns = gp_clock_mono_ns();
    (void)snprintf(name, sizeof(name), "%.*s", (int)(part->rm_eo - part->rm_so),
                   line + part->rm_so);
    gp_trace_add_mark(timeline->trace, &(struct gp_trace_event){
                                           .place = {JOB_PID, OUTPUT_TID},
                                           .category = "output",
                                           .name = name,
                                           .start_ns = now_ns,
                                           .end_ns = now_ns,
                                       });
}

uint64_t gp_timeline_collect(struct gp_timeline *timeline)
{
    bool is_busy = gp_marks_reader_read(timeline->marks, timeline->trace);
    is_busy = gp_trace_flush(timeline->trace) > BUSY_BYTES || is_busy;
    return gp_clock_mono_ns() + (is_busy ? BUSY_MS : CALM_MS) * GP_NS_PER_MS;
}

uint64_t gp_timeline_interval_ns(uint64_t planned_ns, uint64_t age_ns, uint64_t sampled_bytes)
{
    const uint64_t first_ns = planned_ns ? planned_ns : GP_TIMELINE_MS * GP_NS_PER_MS;
    const bool is_late = !planned_ns && age_ns >= GP_TIMELINE_OFTEN_S * GP_NS_PER_S;
    const uint64_t steps = sampled_bytes / GP_TIMELINE_STEP;
    const uint64_t grown_ns = first_ns << (steps < DOUBLINGS ? steps : DOUBLINGS);
    const uint64_t late_ns = GP_TIMELINE_LATE_S * GP_NS_PER_S;
    return is_late && late_ns > grown_ns ? late_ns : grown_ns;
}

static uint64_t interval_ns(const struct gp_timeline *timeline, uint64_t now_ns)
{
    return gp_timeline_interval_ns(timeline->plan->interval_ns, now_ns - timeline->begun_ns,
                                   gp_trace_sampled_bytes(timeline->trace));
}

uint64_t gp_timeline_due_ns(const struct gp_timeline *timeline)
{
    return timeline->due_ns;
}

bool gp_timeline_is_due(const struct gp_timeline *timeline)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    return now_ns + interval_ns(timeline, now_ns) / 4 >= timeline->due_ns;
}

static void write_pace(struct gp_timeline *timeline, double rate)
{
    const struct gp_trace_value value = {"steps/s", rate};
    gp_trace_count(timeline->trace, JOB_PID, "steps", timeline->stepped_ns, &value, 1);
}

/* Between the last step of each sample, so that slow steps have a rate, too. */
static void sample_pace(struct gp_timeline *timeline)
{
    const struct gp_pace pace = gp_marks_reader_pace(timeline->marks);
    const uint64_t now_ns = gp_clock_mono_ns();
    const uint64_t last_ns = pace.last_ns < now_ns ? pace.last_ns : now_ns;
    if (timeline->steps == 0 && pace.first_ns > 0) { /* 0: it is being counted now */
        timeline->steps = 1;
        timeline->stepped_ns = pace.first_ns;
    }
    if (timeline->steps == 0 || pace.reports <= timeline->steps || last_ns <= timeline->stepped_ns)
        return;
    write_pace(timeline, (double)(pace.reports - timeline->steps) * (double)GP_NS_PER_S /
                             (double)(last_ns - timeline->stepped_ns));
    timeline->steps = pace.reports;
    timeline->stepped_ns = last_ns;
}

static void end_pace(struct gp_timeline *timeline)
{
    sample_pace(timeline);
    if (timeline->steps > 1)
        write_pace(timeline, 0);
    timeline->steps = 0;
}

void gp_timeline_sample(struct gp_timeline *timeline, const struct gp_snapshot *snapshot,
                        const struct gp_watch *watch)
{
    gp_timeline_gpus_sample(&timeline->gpus, timeline->trace, snapshot, watch, timeline->ticked_ns);
    gp_timeline_host_sample(&timeline->host, timeline->trace, (uint32_t)timeline->parent, JOB_PID,
                            snapshot, gp_clock_mono_ns());
    sample_pace(timeline);
    gp_timeline_skip(timeline);
}

void gp_timeline_note_tick(struct gp_timeline *timeline, const struct gp_snapshot *snapshot)
{
    timeline->ticked_ns = snapshot->mono_ns;
}

void gp_timeline_skip(struct gp_timeline *timeline)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    const uint64_t interval = interval_ns(timeline, now_ns);
    timeline->due_ns += interval;
    if (timeline->due_ns < now_ns) /* it took longer than that */
        timeline->due_ns = now_ns + interval;
}

/* ---- the end ---- */

void gp_timeline_end(struct gp_timeline *timeline, int status)
{
    char text[64];
    timeline->has_run = true;
    gp_marks_reader_finish(timeline->marks, timeline->trace);
    end_pace(timeline);
    const uint64_t now_ns = gp_clock_mono_ns();
    gp_timeline_gpus_end(&timeline->gpus, timeline->trace, now_ns);
    gp_timeline_host_end(&timeline->host, timeline->trace, JOB_PID, now_ns);
    (void)snprintf(text, sizeof(text), "exited with status %d", status);
    note(timeline, text);
    (void)gp_trace_flush(timeline->trace);
    gp_timeline_gpus_init(&timeline->gpus);
    gp_timeline_host_init(&timeline->host);
}

static void tell_sum(const struct gp_timeline *timeline, const struct gp_watch *watch,
                     const struct gp_trace_sum *sum)
{
    const unsigned long long marks = sum->marks;
    const unsigned long long ranges = sum->ranges;
    const unsigned long long dropped = sum->dropped;
    const unsigned long long lost = sum->lost;
    if (dropped > 0)
        gp_watch_warn(watch,
                      "%llu %s missing in the timeline: the job reported more than could be "
                      "recorded",
                      dropped, dropped == 1 ? "mark or range is" : "marks and ranges are");
    if (lost > 0)
        gp_watch_warn(watch,
                      "%llu %s missing in the timeline: more than could be written fast enough",
                      lost, lost == 1 ? "value is" : "values are");
    gp_watch_say(
        watch, "timeline: %s (%llu mark%s, %llu range%s); open it in https://ui.perfetto.dev",
        timeline->plan->path, marks, marks == 1 ? "" : "s", ranges, ranges == 1 ? "" : "s");
}

void gp_timeline_close(struct gp_timeline *timeline, const struct gp_watch *watch)
{
    struct gp_trace_sum sum = {0};
    struct gp_err err;
    if (!timeline)
        return;
    int r = timeline->trace ? gp_trace_close(timeline->trace, &sum, &err) : 0;
    if (r < 0)
        gp_watch_warn(watch, "the timeline is incomplete: %s", err.text);
    if (timeline->has_run && r == 0) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        tell_sum(timeline, watch, &sum);
        gp_profilers_add(&sb, timeline->plan->argv);
        if (!watch->quiet)
            gp_watch_tell_more(watch, sb.buf);
        gp_strbuf_fini(&sb);
    }
    if (timeline->plan->mark)
        regfree(&timeline->mark);
    free(timeline);
}
