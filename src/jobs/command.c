#include "jobs/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/ask_doctor.h"
#include "proc/files.h"

#include <jansson.h>
#include <unistd.h>

/* ---- the record ---- */

static json_t *safe_string(const char *text)
{
    char safe[4096];
    gp_utf8_copy_safe(safe, sizeof(safe), text);
    return json_string(safe);
}

/* Identifies this process together with its pid; null if /proc cannot be read. */
static json_t *own_start(void)
{
    struct gp_proc_stat stat;
    return gp_proc_stat_of((uint32_t)getpid(), &stat) ? json_integer((json_int_t)stat.start_ticks)
                                                      : json_null();
}

/* The start of run.json. */
static json_t *description_of(const struct gp_run *run, char *const *argv)
{
    char cwd[GP_PATH_SIZE];
    char started[GP_RFC3339_SIZE];
    json_t *command = json_array();
    for (size_t i = 0; argv[i]; i++)
        (void)json_array_append_new(command, safe_string(argv[i]));
    gp_clock_rfc3339(gp_clock_wall_ns(), started);
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:i, s:o, s:s}", "schema", "gpulse.run/1",
                     "command", command, "name", safe_string(run->gpus.lease.name), "directory",
                     safe_string(getcwd(cwd, sizeof(cwd)) ? cwd : ""), "started", started, "pid",
                     (int)getpid(), "start_ticks", own_start(), "mask", run->gpus.mask);
}

static int open_record(struct gp_run *run, const struct gp_command_plan *o, char *const *argv,
                       struct gp_err *err)
{
    struct gp_err why = {0};
    int r = o->no_record
                ? 0
                : gp_record_open(&run->watch.record, o->directory, gp_clock_wall_ns(), &why);
    if (r < 0 && o->directory)
        return gp_err_copy(err, &why);
    if (r < 0)
        gp_watch_tell_error(&run->watch, &why); /* the job runs without it */
    run->watch.description = description_of(run, argv);
    gp_watch_write(&run->watch, "running", 0);
    return 0;
}

/* ---- the tries ---- */

static bool is_tried_again(const struct gp_run *run, const struct gp_command_plan *o, int status,
                           uint64_t tries)
{
    if (status <= 0 || tries > o->retries || run->watch.ended_by ||
        gp_child_was_interrupted(&run->child))
        return false;
    return o->retries_any || gp_watch_is_out_of_memory(&run->watch, status);
}

static void record_end(struct gp_watch *watch, const struct gp_tail *tail)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(2 * GP_TAIL_BYTES);
    gp_strbuf_add(&sb, tail->bytes, tail->size);
    if (sb.len > 0)
        gp_watch_record(watch, GP_RECORD_OUTPUT_END, &sb);
    gp_strbuf_fini(&sb);
}

/* Whether it did what it had to, as long as it was let: how fast it was does not matter after a
 * failure. */
static bool is_over(const struct gp_run *run, int status)
{
    return status == 0 || run->watch.ended_by || gp_child_was_interrupted(&run->child);
}

static int try_command(struct gp_run *run, const struct gp_command_plan *o, char *const *argv,
                       struct gp_err *err)
{
    bool again = true;
    int r = 0;
    gp_watch_say(&run->watch, "on %s", run->gpus.place);
    for (uint64_t tries = 1; again; tries++) {
        run->plan->output.tail->size = 0;
        r = gp_run_once(run, argv, err);
        if (run->child.pid < 0 && r > 0) /* it could not be started */
            gp_watch_write(&run->watch, "ended", r);
        if (r < 0 || run->child.pid < 0)
            return r;
        again = is_tried_again(run, o, r, tries);
        bool is_explained = gp_watch_summarize(&run->watch, r);
        if (r > 0 && !is_explained && !gp_child_was_interrupted(&run->child))
            gp_ask_doctor(&run->watch, run->plan->output.tail);
        run->watch.pace = gp_pace_end(&run->pace, &run->plan->output.pace, &run->watch);
        run->watch.verdicts = gp_slow_end(&run->slow, &run->watch, is_over(run, r));
        if (r > 0 && !o->keep_output)
            record_end(&run->watch, run->plan->output.tail);
        gp_watch_write(&run->watch, again ? "failed" : "ended", r);
        if (!run->plan->no_clean)
            (void)gp_run_await_memory(run);
        if (r > 0 && !again && run->watch.record.path[0])
            gp_watch_say(&run->watch, "details: gpulse explain %s", run->watch.record.path);
        if (r > 0 && tries <= o->retries && !again && !run->watch.ended_by &&
            !gp_child_was_interrupted(&run->child))
            gp_watch_say(&run->watch, "not tried again, as it did not run out of GPU memory; to "
                                      "retry after any failure: --on failure");
        if (again)
            gp_watch_say(&run->watch, "retry %llu of %llu", (unsigned long long)tries,
                         (unsigned long long)o->retries);
    }
    return r;
}

int gp_command_run(struct gp_command *command, struct gp_command_plan *plan, char *const *argv,
                   struct gp_err *err)
{
    struct gp_run *run = &command->run;
    int r = open_record(run, plan, argv, err);
    if (r < 0)
        return r;
    plan->run.output.tail = &command->tail;
    if (plan->keep_output && run->watch.record.path[0]) {
        gp_output_log_open(&command->log, run->watch.record.path);
        plan->run.output.log = &command->log;
    }
    r = try_command(run, plan, argv, err);
    gp_output_log_close(&command->log);
    if (command->log.err.code)
        gp_watch_warn(&run->watch, "its output is not recorded: %s", command->log.err.text);
    return r;
}
