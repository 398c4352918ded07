#include "jobs/pipeline_run.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RESULT_MAX = 1 << 20 };

static void tell(const struct gp_pipeline_run *run, const char *text)
{
    if (run->tell)
        run->tell(text);
}

/* ---- which steps run ---- */

/* A batch size that a step needs and no remaining step will determine. */
static int check_batches(const struct gp_pipeline_run *run, struct gp_err *err)
{
    const struct gp_pipeline *pipeline = run->pipeline;
    struct gp_placeholder p;
    for (size_t i = 0; i < pipeline->graph.count; i++) {
        if (pipeline->graph.states[i] != GP_STEP_WAITING)
            continue;
        const char *text = pipeline->steps[i].command;
        for (; gp_placeholder_next(text, &p); text = p.at + p.length) {
            size_t fit = gp_pipeline_fit_of(pipeline, i, p.name);
            if (pipeline->graph.states[fit] == GP_STEP_PASSED_OVER && !run->batches[fit])
                return gp_err_set(
                    err, GP_EUSAGE,
                    "step %s needs the batch size of %s, which is unknown; start with --from %s",
                    pipeline->steps[i].name, pipeline->steps[fit].name, pipeline->steps[fit].name);
        }
    }
    return 0;
}

static int choose_steps(struct gp_pipeline_run *run, const char *from, struct gp_err *err)
{
    uint64_t succeeded = gp_pipeline_read_note(run);
    size_t first = gp_pipeline_find(run->pipeline, from);
    if (*from && first == GP_STEPS_MAX)
        return gp_err_set(err, GP_EUSAGE, "no step '%s' in %s", from, run->pipeline->path);
    gp_steps_continue(&run->pipeline->graph, run->restart ? 0 : succeeded, first);
    return check_batches(run, err);
}

static int check_ids(const struct gp_pipeline_run *run, struct gp_err *err)
{
    for (size_t i = 0; *run->gpu_ids && i < run->pipeline->graph.count; i++)
        if (gp_step_option(&run->pipeline->steps[i], "--gpu-ids"))
            return gp_err_set(
                err, GP_EUSAGE,
                "step %s has its own gpu-ids; use gpus = N there, to choose from --gpu-ids %.100s",
                run->pipeline->steps[i].name, run->gpu_ids);
    return 0;
}

/* Errors in the options of a step are found before the first step runs, not hours later. */
static int check_steps(struct gp_pipeline_run *run)
{
    const struct gp_steps *graph = &run->pipeline->graph;
    const int busy = gp_err_exit_status(GP_EBUSY); /* its GPUs may be free by then */
    char text[GP_PATH_SIZE + 200];
    int status = 0;
    for (size_t i = 0; status == 0 && i < graph->count; i++) {
        struct gp_strbuf unused = GP_STRBUF_INIT(1 << 16);
        if (graph->states[i] == GP_STEP_WAITING)
            status = gp_pipeline_check(run, i, "", true, &unused);
        gp_strbuf_fini(&unused);
        if (status == 0 || status == busy) {
            status = 0;
            continue;
        }
        (void)snprintf(text, sizeof(text), "%s: step %s cannot run as written; no step was started",
                       run->pipeline->path, run->pipeline->steps[i].name);
        tell(run, text);
    }
    return status;
}

/* ---- running the steps ---- */

void gp_pipeline_tell_done(const struct gp_pipeline_run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 14);
    uint64_t done = gp_steps_in(&run->pipeline->graph, GP_STEP_OK_BEFORE);
    if (!done)
        return;
    gp_strbuf_adds(&sb, "continuing: ");
    gp_pipeline_add_names(&sb, run->pipeline, done);
    gp_strbuf_adds(&sb, " succeeded before (--restart runs all steps again)");
    tell(run, sb.buf);
    gp_strbuf_fini(&sb);
}

/* The batch size printed by fit-batch, also kept in the record. False: there is none. */
static bool take_result(struct gp_pipeline_run *run, size_t at)
{
    char name[GP_STEP_NAME_SIZE + 32];
    char *text = calloc(1, RESULT_MAX);
    ssize_t n = text ? pread(run->results[at], text, RESULT_MAX - 1, 0) : -1;
    json_t *result = n > 0 ? json_loads(text, 0, NULL) : NULL;
    json_int_t batch = json_integer_value(json_object_get(result, "batch"));
    (void)snprintf(name, sizeof(name), "%zu-%s/fit.json", at + 1, run->pipeline->steps[at].name);
    if (n > 0)
        (void)!gp_record_write(&run->record, name, text, (size_t)n, NULL);
    run->batches[at] = batch > 0 ? (uint64_t)batch : 0;
    json_decref(result);
    free(text);
    (void)close(run->results[at]);
    return batch > 0;
}

/* The record's report shows the progress of the steps at any time. */
static int write_report(struct gp_pipeline_run *run, bool is_shown, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_pipeline_add_report(&sb, run);
    if (is_shown && run->show)
        run->show(sb.buf, sb.len);
    int r = gp_record_write(&run->record, "report.txt", sb.buf, sb.len, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* Steps also run if the note cannot be written; that is reported once. */
static void write_note(struct gp_pipeline_run *run)
{
    struct gp_err err;
    if (gp_pipeline_write_note(run, &err) == 0 || run->has_note_failed)
        return;
    run->has_note_failed = true;
    tell(run, err.text);
    tell(run, "the next run of this pipeline will not know which steps have succeeded");
}

static void start(struct gp_pipeline_run *run, size_t at)
{
    struct gp_pipeline *pipeline = run->pipeline;
    char text[GP_STEP_NAME_SIZE + 64];
    (void)snprintf(text, sizeof(text), "step %zu of %zu: %s", at + 1, pipeline->graph.count,
                   pipeline->steps[at].name);
    if (!run->quiet)
        tell(run, text);
    run->batches[at] = 0;
    pipeline->graph.states[at] = GP_STEP_RUNNING;
    if (gp_pipeline_start(run, at))
        return;
    run->statuses[at] = 1;
    gp_steps_end(&pipeline->graph, at, false);
}

/* Waits for a step to exit, and records the result. Returns its exit status. */
static int finish_one(struct gp_pipeline_run *run)
{
    int status;
    size_t at = gp_pipeline_wait(run, &status);
    bool has_result = run->results[at] < 0 || take_result(run, at);
    run->statuses[at] = status == 0 && !has_result ? 1 : status;
    run->seconds[at] = (double)(gp_clock_mono_ns() - run->began_ns[at]) / 1e9;
    gp_steps_end(&run->pipeline->graph, at, run->statuses[at] == 0 && !gp_pipeline_signal());
    write_note(run);
    return run->statuses[at];
}

/* The status of the first step that failed, or of the signal that stopped all. */
static int run_steps(struct gp_pipeline_run *run)
{
    struct gp_steps *graph = &run->pipeline->graph;
    struct gp_err err;
    int status = 0;
    write_note(run);
    for (;;) {
        uint64_t ready = gp_pipeline_signal() ? 0 : gp_steps_ready(graph);
        for (size_t i = 0; i < graph->count; i++)
            if (gp_steps_has(ready, i))
                start(run, i);
        if (!gp_steps_in(graph, GP_STEP_RUNNING))
            break;
        (void)!write_report(run, false, NULL);
        int ended = finish_one(run);
        status = status ? status : ended;
    }
    if (gp_pipeline_signal() && status == 0)
        status = 128 + gp_pipeline_signal();
    if (write_report(run, !run->quiet || status != 0, &err) < 0)
        tell(run, err.text);
    return status;
}

/* ---- the whole run ---- */

int gp_pipeline_open(struct gp_pipeline_run *run, const char *path, const char *from,
                     struct gp_err *err)
{
    /* where it is ignored nobody learns how a step ends */
    (void)signal(SIGCHLD, SIG_DFL);
    int r = gp_pipeline_load(&run->pipeline, path, err);
    if (r < 0)
        return r;
    gp_pipeline_find_note(run);
    if (!run->dry_run)
        r = gp_pipeline_lock(run, err);
    if (r == 0)
        r = choose_steps(run, from, err);
    if (r == 0)
        r = check_ids(run, err);
    return r < 0 ? r : check_steps(run);
}

int gp_pipeline_run_all(struct gp_pipeline_run *run, const char *folder, struct gp_err *err)
{
    char whole[PATH_MAX];
    struct gp_err why = {0};
    int r = gp_record_open(&run->record, *folder ? folder : NULL, gp_clock_wall_ns(), &why);
    if (r == 0 && *folder && realpath(folder, whole)) /* steps may run in other directories */
        (void)snprintf(run->record.path, sizeof(run->record.path), "%s", whole);
    if (r < 0 && *folder)
        return gp_err_copy(err, &why);
    if (r < 0)
        tell(run, why.text); /* the steps run without it */
    if (!run->note[0])
        tell(run, "the next run of this pipeline will not know which steps have succeeded");
    gp_pipeline_catch_signals();
    gp_pipeline_tell_done(run);
    return run_steps(run);
}

void gp_pipeline_close(struct gp_pipeline_run *run)
{
    gp_pipeline_free(run->pipeline);
    gp_record_close(&run->record);
}
