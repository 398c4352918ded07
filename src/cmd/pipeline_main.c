/* gpulse-pipeline: what gpulse run --pipeline starts, a program of its own because it needs inih.
 * Each step is a gpulse run; of what is done a note is kept, so that a second time it goes on at
 * the step that failed.
 *
 *   gpulse-pipeline GPULSE FILE FROM FOLDER FLAGS
 *
 * FROM: the step to begin with, "" for the note's; FOLDER: of the records, "" for one of its own;
 * FLAGS: letters, r from the first step on, n only say what would run, q say less. */
#include "cmd/pipeline.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/record.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 6 };

struct run {
    struct gp_pipeline *pipeline;
    const char *gpulse; /* the program */
    bool restart, dry_run, quiet;
    char note[GP_PATH_SIZE]; /* "": none is kept */
    struct gp_record record;
    size_t known, first; /* steps that are done; the one to begin with */
    int statuses[GP_PIPELINE_STEPS];
    double seconds[GP_PIPELINE_STEPS];
};

/* ---- what is done ---- */

static void find_note(struct run *run)
{
    char folder[GP_PATH_SIZE];
    if (gp_io_user_folder(folder, "XDG_STATE_HOME", ".local/state", "pipelines") &&
        gp_io_make_folders(folder) == 0)
        (void)snprintf(run->note, sizeof(run->note), "%.4000s/%016llx.json", folder,
                       (unsigned long long)gp_hash(GP_HASH_INIT, run->pipeline->path));
}

/* How many of the first steps are done, as they stand in the file now. */
static size_t count_done(const struct run *run)
{
    json_t *note = run->note[0] ? json_load_file(run->note, 0, NULL) : NULL;
    const json_t *done = json_object_get(note, "done");
    size_t count = 0;
    while (count < run->pipeline->step_count) {
        const struct gp_step *step = &run->pipeline->steps[count];
        const json_t *entry = json_array_get(done, count);
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_int_t hash = json_integer_value(json_object_get(entry, "hash"));
        if (!name || strcmp(name, step->name) != 0 || hash != (json_int_t)step->hash)
            break;
        count++;
    }
    json_decref(note);
    return count;
}

/* The first so many are done. */
static void write_note(const struct run *run, size_t count)
{
    json_t *done = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(done,
                                    json_pack("{s:s, s:I}", "name", run->pipeline->steps[i].name,
                                              "hash", (json_int_t)run->pipeline->steps[i].hash));
    json_t *note = json_pack("{s:s, s:s, s:o}", "schema", "gpulse.pipeline/1", "file",
                             run->pipeline->path, "done", done);
    char *text = note ? json_dumps(note, JSON_INDENT(2)) : NULL;
    if (text && run->note[0])
        (void)!gp_outfile_replace(run->note, 0600, text, strlen(text), true, NULL);
    free(text);
    json_decref(note);
}

/* ---- a step ---- */

static volatile sig_atomic_t child_pid, told; /* told: the signal to end that came */

static void hand_on(int number)
{
    if (number != SIGUSR1 && number != SIGUSR2)
        told = number;
    if (child_pid > 0 && number != SIGINT) /* of the keyboard the step hears itself */
        (void)kill(child_pid, number);
}

static _Noreturn void execute(const struct run *run, size_t at, bool only_check)
{
    const struct gp_step *step = &run->pipeline->steps[at];
    const char *argv[GP_STEP_OPTIONS + 12];
    char record[GP_PATH_SIZE];
    size_t n = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)snprintf(record, sizeof(record), "--dir=%.3900s/%zu-%s", run->record.path, at + 1,
                   step->name);
    argv[n++] = "gpulse";
    argv[n++] = "run";
    if (only_check)
        argv[n++] = "--dry-run";
    if (run->quiet || only_check)
        argv[n++] = "--quiet";
    argv[n++] = run->record.path[0] ? record : "--no-record";
    argv[n++] = "--wait"; /* unless the step says how long */
    for (size_t i = 0; i < step->option_count; i++)
        argv[n++] = step->options[i];
    argv[n++] = "--";
    argv[n++] = "sh";
    argv[n++] = "-c";
    argv[n++] = step->command;
    argv[n] = NULL;
    for (size_t i = 0; i < step->variable_count; i++)
        (void)putenv(step->variables[i]);
    /* An earlier step may be the one that makes the folder. */
    bool goes_there = step->folder[0] && !only_check;
    if (chdir(run->pipeline->folder) == 0 && (!goes_there || chdir(step->folder) == 0))
        (void)execv(run->gpulse, (char *const *)(uintptr_t)argv);
    (void)fprintf(stderr, "gpulse: cannot run step %s in %s: %s\n", step->name,
                  step->folder[0] ? step->folder : run->pipeline->folder, strerror(errno));
    _exit(127);
}

static void record_path(const struct run *run, size_t at, char path[GP_PATH_SIZE])
{
    (void)snprintf(path, GP_PATH_SIZE, "%.3900s/%zu-%s/run.json", run->record.path, at + 1,
                   run->pipeline->steps[at].name);
}

/* Starts gpulse run for a step; its exit status, as a shell says it. */
static int start_step(const struct run *run, size_t at, bool only_check)
{
    int status = 0;
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before); /* none comes between the two */
    pid_t pid = fork();
    if (pid > 0)
        child_pid = pid;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid == 0)
        execute(run, at, only_check);
    while (pid > 0 && (waitpid(pid, &status, WUNTRACED) != pid || WIFSTOPPED(status)))
        if (WIFSTOPPED(status)) /* from the keyboard: the shell goes on with both */
            (void)raise(SIGSTOP);
    child_pid = 0;
    if (pid < 0)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_step(struct run *run, size_t at)
{
    uint64_t began_ns = gp_clock_mono_ns();
    char path[GP_PATH_SIZE];
    record_path(run, at, path);
    (void)unlink(path); /* of an earlier time, in a folder that was named */
    int status = start_step(run, at, false);
    run->seconds[at] = (double)(gp_clock_mono_ns() - began_ns) / 1e9;
    return status;
}

/* What a step asks for is found wrong before the first one runs, not hours later. */
static int check_steps(const struct run *run, struct gp_err *err)
{
    for (size_t at = run->first; at < run->pipeline->step_count; at++)
        if (start_step(run, at, true) != 0)
            return gp_err_set(err, GP_EUSAGE,
                              "%s: step %s cannot run as it stands; none was started",
                              run->pipeline->path, run->pipeline->steps[at].name);
    return 0;
}

/* ---- the report ---- */

/* What the record of a step says of its GPUs: "GPU 2 9216 MiB, 85 % busy". */
static void add_gpus(struct gp_strbuf *sb, const json_t *record)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(json_object_get(record, "gpus"), i, gpu)
    {
        const json_t *busy = json_object_get(gpu, "utilization_mean");
        if (!json_is_true(json_object_get(gpu, "used")))
            continue;
        gp_strbuf_addf(sb, "  GPU %d: %.0f MiB",
                       (int)json_integer_value(json_object_get(gpu, "index")),
                       json_number_value(json_object_get(gpu, "memory_peak")) / 0x1p20);
        if (json_is_number(busy))
            gp_strbuf_addf(sb, ", %.0f %% busy", json_number_value(busy));
    }
}

/* The causes of its last incident. */
static void add_causes(struct gp_strbuf *sb, const json_t *record)
{
    size_t i;
    json_t *cause;
    const json_t *incidents = json_object_get(record, "incidents");
    size_t count = json_array_size(incidents);
    const json_t *last = count > 0 ? json_array_get(incidents, count - 1) : NULL;
    json_array_foreach(json_object_get(last, "causes"), i, cause)
    {
        const char *word = json_string_value(json_object_get(cause, "cause"));
        const char *why = json_string_value(json_object_get(cause, "why"));
        gp_strbuf_addf(sb, "    %s: %s\n", word ? word : "", why ? why : "");
    }
}

static void add_report(struct gp_strbuf *sb, const struct run *run, size_t end)
{
    gp_strbuf_addf(sb, "pipeline %s\n", run->pipeline->name);
    for (size_t i = 0; i < run->pipeline->step_count; i++) {
        const struct gp_step *step = &run->pipeline->steps[i];
        char path[GP_PATH_SIZE];
        if (i < run->first || i > end || i >= run->pipeline->step_count) {
            gp_strbuf_addf(sb, "  %-16s  %s\n", step->name,
                           i >= run->first  ? "not run"
                           : i < run->known ? "done before"
                                            : "passed over");
            continue;
        }
        record_path(run, i, path);
        json_t *record = json_load_file(path, 0, NULL);
        gp_strbuf_addf(sb, "  %-16s  %-10s  %8.1f s", step->name,
                       run->statuses[i] == 0 ? "ok" : "failed", run->seconds[i]);
        add_gpus(sb, record);
        gp_strbuf_addc(sb, '\n');
        if (run->statuses[i] != 0)
            add_causes(sb, record);
        json_decref(record);
    }
}

/* ---- all of it ---- */

static int find_first(struct run *run, const char *from, struct gp_err *err)
{
    run->known = count_done(run);
    run->first = run->restart || run->known == run->pipeline->step_count ? 0 : run->known;
    for (size_t i = 0; *from && i < run->pipeline->step_count; i++)
        if (strcmp(run->pipeline->steps[i].name, from) == 0) {
            run->first = i;
            return 0;
        }
    return *from ? gp_err_set(err, GP_EUSAGE, "there is no step '%s' in %s", from,
                              run->pipeline->path)
                 : 0;
}

static void add_safe(struct gp_strbuf *sb, const char *before, const char *text)
{
    gp_strbuf_adds(sb, before);
    gp_utf8_add_safe(sb, text, strlen(text), SIZE_MAX);
}

static void show(const struct run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    for (size_t i = run->first; i < run->pipeline->step_count; i++) {
        const struct gp_step *step = &run->pipeline->steps[i];
        add_safe(&sb, "", step->name);
        gp_strbuf_adds(&sb, ": gpulse run");
        for (size_t k = 0; k < step->option_count; k++)
            add_safe(&sb, " ", step->options[k]);
        add_safe(&sb, " -- ", step->command);
        gp_strbuf_addc(&sb, '\n');
    }
    (void)!gp_io_write_all(STDOUT_FILENO, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static int run_steps(struct run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_err err;
    size_t count = run->pipeline->step_count;
    size_t at = run->first;
    int status = 0;
    if (at > 0)
        (void)fprintf(stderr, "gpulse: goes on at %s (--restart begins anew)\n",
                      run->pipeline->steps[at].name);
    for (; at < count && status == 0 && !told; at++) {
        if (!run->quiet)
            (void)fprintf(stderr, "gpulse: step %zu of %zu: %s\n", at + 1, count,
                          run->pipeline->steps[at].name);
        status = run->statuses[at] = run_step(run, at);
        if (run->first <= run->known) /* else some before are not done */
            write_note(run, status == 0 && !told ? at + 1 : at);
    }
    if (told && status == 0)
        status = 128 + told;
    add_report(&sb, run, at - 1);
    if (!run->quiet || status != 0)
        (void)!gp_io_write_all(STDERR_FILENO, sb.buf, sb.len);
    if (gp_record_write(&run->record, "report.txt", sb.buf, sb.len, &err) < 0)
        gp_io_print_error("gpulse", &err);
    gp_strbuf_fini(&sb);
    return status;
}

static int run_pipeline(struct run *run, char **argv, struct gp_err *err)
{
    static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    const struct sigaction action = {.sa_handler = hand_on, .sa_flags = SA_RESTART};
    const char *folder = argv[4];
    char whole[PATH_MAX];
    int r = gp_pipeline_load(&run->pipeline, argv[2], err);
    if (r < 0)
        return r;
    find_note(run);
    r = find_first(run, argv[3], err);
    if (r == 0)
        r = check_steps(run, err);
    if (r == 0 && run->dry_run)
        show(run);
    if (r < 0 || run->dry_run)
        return r;
    r = gp_record_open(&run->record, *folder ? folder : NULL, gp_clock_wall_ns(), err);
    if (r == 0 && *folder && realpath(folder, whole)) /* steps may run elsewhere */
        (void)snprintf(run->record.path, sizeof(run->record.path), "%s", whole);
    if (r < 0)
        return r;
    for (size_t i = 0; i < GP_ARRAY_LEN(handed_on); i++)
        (void)sigaction(handed_on[i], &action, NULL);
    return run_steps(run);
}

int main(int argc, char **argv)
{
    static struct run run; /* large */
    struct gp_err err = {0};
    if (argc != ARGUMENTS) {
        (void)fprintf(stderr, "gpulse-pipeline: is started by gpulse run --pipeline FILE\n");
        return 2;
    }
    run.gpulse = argv[1];
    run.restart = strchr(argv[5], 'r');
    run.dry_run = strchr(argv[5], 'n');
    run.quiet = strchr(argv[5], 'q');
    int r = run_pipeline(&run, argv, &err);
    if (r < 0)
        gp_io_print_error("gpulse", &err);
    gp_pipeline_free(run.pipeline);
    gp_record_close(&run.record);
    return r < 0 ? gp_err_exit_status(r) : r;
}
