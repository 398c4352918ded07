#include "doctor/explain/explain_record.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "doctor/entries.h"
#include "doctor/explain/explanation.h"
#include "doctor/explain/log_errors.h"
#include "jobs/record.h"
#include "jobs/recorded.h"
#include "out/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INCIDENT_BYTES = 65536,
    LAST_BYTES = 8192, /* of a job's output, and */
    LAST_LINES = 10,
    SHOWN_MOST = 400,
    SMALL = 256 << 20, /* bytes: a process with less is not what the kernel kills for memory */
    STATUS_KILLED = 137,
};

/* ---- how it ended ---- */

/* Why it ended, as far as its exit status or gpulse run says; false: neither does, or it runs. */
static bool find_reason(struct gp_explain_run *e, const struct gp_recorded *job,
                        struct gp_explanation *ret)
{
    char number[16];
    *ret = (struct gp_explanation){"", "", "", "", "", "", "", "", "", ""};
    const char *reason = gp_recorded_reason(job, &ret->advice);
    if (reason) {
        ret->words = reason;
        return true;
    }
    (void)snprintf(number, sizeof(number), "%u", job->status);
    if (job->state != GP_RECORDED_ENDED ||
        gp_explain_topic(&e->arena, "exit", number, ret, NULL) < 0)
        return false;
    if (job->status == STATUS_KILLED && job->rss_peak > 0 && job->rss_peak < SMALL) {
        ret->words = "killed by SIGKILL, but hardly for lack of host memory: it used little";
        ret->advice = "a user or a scheduler killed it, or the memory limit of its group is small";
    }
    return true;
}

static void add_end(struct gp_explain_run *e, const struct gp_recorded *job)
{
    struct gp_explanation found;
    const bool is_known = find_reason(e, job, &found);
    gp_strbuf_addf(&e->sb, ": the job ended with status %u%s%s", job->status, is_known ? ": " : "",
                   found.words);
    gp_strbuf_addf(&e->sb, "%s%s\n", job->told ? ", after gpulse run got SIG" : "",
                   job->told ? job->told : "");
}

static void add_text(struct gp_explain_run *e, const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    if (text)
        gp_utf8_add_safe(&e->sb, text, strlen(text), SHOWN_MOST);
}

/* How fast it was, and what made it slow, as gpulse run found at its end. */
static void add_pace(struct gp_explain_run *e, const struct gp_recorded *job)
{
    const json_t *pace = json_object_get(job->document, "pace");
    const json_t *verdict = json_array_get(json_object_get(job->document, "verdicts"), 0);
    const json_t *mfu = json_object_get(pace, "mfu");
    if (json_is_object(pace))
        gp_strbuf_addf(&e->sb, "    %.3g steps/s",
                       json_number_value(json_object_get(pace, "steps_per_s")));
    if (json_is_number(mfu))
        gp_strbuf_addf(&e->sb, ", MFU %.1f %%", 100 * json_number_value(mfu));
    if (json_is_object(pace))
        gp_strbuf_addc(&e->sb, '\n');
    if (!json_is_object(verdict))
        return;
    gp_strbuf_adds(&e->sb, "    ");
    add_text(e, verdict, "title");
    gp_strbuf_adds(&e->sb, " (");
    add_text(e, verdict, "confidence");
    gp_strbuf_addf(&e->sb, ", %.0f %% of the time; GPU ",
                   100 * json_number_value(json_object_get(verdict, "share")));
    add_text(e, verdict, "gpu");
    gp_strbuf_adds(&e->sb, ": ");
    add_text(e, verdict, "seen");
    gp_strbuf_adds(&e->sb, ")\n      -> ");
    add_text(e, verdict, "try");
    gp_strbuf_addc(&e->sb, '\n');
}

/* "    GPU 3, 1.6 s, memory peak 5120 MiB", below its name and command line. */
static void add_job(struct gp_explain_run *e, const struct gp_recorded *job)
{
    const char *name = gp_recorded_name(job);
    gp_strbuf_adds(&e->sb, "    ");
    gp_utf8_add_safe(&e->sb, name, strlen(name), SHOWN_MOST);
    gp_strbuf_adds(&e->sb, *name ? ": " : "");
    gp_recorded_add_command(&e->sb, job);
    gp_strbuf_adds(&e->sb, "\n    GPU ");
    gp_recorded_add_gpus(&e->sb, job);
    gp_strbuf_addf(&e->sb, ", %s%.1f s, ", job->is_least ? "at least " : "", job->seconds);
    if (job->memory_peak > 0)
        gp_strbuf_addf(&e->sb, "memory peak %.0f MiB\n", job->memory_peak / 0x1p20);
    else
        gp_strbuf_adds(&e->sb, "no GPU memory seen\n");
    add_pace(e, job);
}

/* How the job ended, and what it was. */
static void add_heading(struct gp_explain_run *e, const struct gp_recorded *job)
{
    gp_utf8_add_safe(&e->sb, job->folder, strlen(job->folder), GP_PATH_SIZE);
    if (job->state == GP_RECORDED_RUNNING)
        gp_strbuf_addf(&e->sb, ": the job still runs (gpulse run, pid %lld)\n",
                       (long long)job->pid);
    else if (job->state == GP_RECORDED_ABANDONED)
        gp_strbuf_adds(&e->sb, ": gpulse run was killed, and the job ended with it\n");
    else if (job->status == 0 && !job->told)
        gp_strbuf_adds(&e->sb, ": the job succeeded\n");
    else
        add_end(e, job);
    add_job(e, job);
    e->is_told = true;
}

/* What the end of the job means, if nothing in its output says why. */
static void add_ending(struct gp_explain_run *e, const struct gp_recorded *job)
{
    struct gp_explanation found;
    if (!find_reason(e, job, &found))
        return;
    e->found++;
    if (e->list)
        (void)json_array_append_new(e->other, gp_doctor_explanation_json(&found, NULL));
    else
        gp_strbuf_addf(&e->sb, "      -> %s\n", found.advice);
}

/* ---- why ---- */

/* The text that gpulse run wrote about the incident. */
static void add_incident_text(struct gp_explain_run *e, const struct gp_recorded *job,
                              size_t number)
{
    static char text[INCIDENT_BYTES];
    char name[40];
    (void)snprintf(name, sizeof(name), "incident-%zu.txt", number);
    int fd = gp_recorded_open(job, name);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (size < 0)
        return;
    text[size] = '\0';
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && (*line || rest);) {
        gp_utf8_add_safe(&e->sb, line, strlen(line), SIZE_MAX);
        gp_strbuf_addc(&e->sb, '\n');
    }
}

/* Failures as they were judged when they happened, with the numbers of the GPU at that moment. */
static size_t add_incidents(struct gp_explain_run *e, const struct gp_recorded *job)
{
    const json_t *incidents = json_object_get(job->document, "incidents");
    size_t count = json_array_size(incidents);
    e->name = job->folder;
    for (size_t i = 0; i < count; i++) {
        if (e->list)
            gp_explain_add_place(e, json_deep_copy(json_array_get(incidents, i)), e->list, 0);
        else
            add_incident_text(e, job, i + 1);
    }
    e->found += count;
    return count;
}

/* The end of an open log, where nothing in it is known; false: there is none. */
static bool add_last_lines(struct gp_explain_run *e, int fd)
{
    static char text[LAST_BYTES + 1];
    off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n =
        size > 0 ? pread(fd, text, LAST_BYTES, size > LAST_BYTES ? size - LAST_BYTES : 0) : 0;
    if (n <= 0)
        return false;
    n -= text[n - 1] == '\n';
    text[n] = '\0';
    for (char *nul = text; (nul = memchr(nul, '\0', (size_t)(text + n - nul)));)
        *nul = ' ';
    char *line = text + n;
    for (int lines = 0; line > text && lines < LAST_LINES; lines += *line == '\n')
        line--;
    gp_strbuf_adds(&e->sb, "    no known error in its output, which ended with (");
    gp_utf8_add_safe(&e->sb, e->name, strlen(e->name), GP_PATH_SIZE);
    gp_strbuf_adds(&e->sb, "):\n");
    for (char *rest = *line == '\n' ? line + 1 : line; (line = strsep(&rest, "\n"));) {
        gp_strbuf_adds(&e->sb, "      ");
        gp_utf8_add_safe(&e->sb, line, strlen(line), SHOWN_MOST);
        gp_strbuf_addc(&e->sb, '\n');
    }
    return true;
}

/* What is kept of its output; -1: nothing. */
static int open_log(const struct gp_recorded *job, char path[GP_PATH_SIZE])
{
    static const char *const logs[] = {"output.log", GP_RECORD_OUTPUT_END};
    int fd = -1;
    for (size_t i = 0; i < GP_ARRAY_LEN(logs) && fd < 0; i++) {
        if (snprintf(path, GP_PATH_SIZE, "%s/%s", job->folder, logs[i]) < GP_PATH_SIZE)
            fd = gp_recorded_open(job, logs[i]);
    }
    return fd;
}

static int explain_job(struct gp_explain_run *e, const struct gp_recorded *job, struct gp_err *err)
{
    const bool has_failed = job->state == GP_RECORDED_ENDED && job->status != 0;
    const size_t before = e->found;
    char path[GP_PATH_SIZE];
    int r = 0;
    if (e->jobs)
        (void)json_array_append_new(e->jobs, gp_recorded_json(job));
    else
        add_heading(e, job);
    e->has_incidents = add_incidents(e, job) > 0;
    int fd = open_log(job, path);
    e->name = path;
    if (fd >= 0)
        r = gp_explain_read_log(e, fd, err);
    e->has_incidents = false;
    if (r == 0 && e->found == before && has_failed) {
        add_ending(e, job);
        if (!e->list && (fd < 0 || !add_last_lines(e, fd)))
            gp_strbuf_adds(&e->sb, "    its output is not recorded, or it is empty\n");
    } else if (r == 0 && !has_failed) {
        e->found++; /* nothing is left to be explained */
    }
    e->name = NULL; /* it was this function's */
    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int explain_record(struct gp_explain_run *e, const char *folder, struct gp_err *err)
{
    struct gp_recorded job;
    int r = gp_recorded_read(folder, &job, err);
    if (r < 0)
        return r;
    r = explain_job(e, &job, err);
    gp_recorded_fini(&job);
    return r;
}

/* ---- the n-th newest ---- */

struct nth {
    struct gp_explain_run *explain;
    struct gp_err *err;
    uint64_t left;
    int r;
};

static bool take_nth(void *context, const struct gp_recorded *job)
{
    struct nth *nth = context;
    if (--nth->left == 0)
        nth->r = explain_job(nth->explain, job, nth->err);
    return nth->left > 0;
}

static int explain_nth(struct gp_explain_run *e, uint64_t n, struct gp_err *err)
{
    struct nth nth = {e, err, .left = n};
    gp_recorded_each(take_nth, &nth);
    if (nth.left == 0)
        return nth.r;
    return nth.left == n
               ? gp_err_set(err, GP_EIO, "no job of yours is recorded; gpulse run records jobs")
               : gp_err_set(err, GP_EIO,
                            "only %llu of your jobs are recorded; gpulse explain list "
                            "shows them",
                            (unsigned long long)(n - nth.left));
}

/* ---- all that are given ---- */

static int explain_path(struct gp_explain_run *e, const char *path, struct gp_err *err)
{
    struct stat st;
    char folder[GP_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (strcmp(slash ? slash + 1 : path, "run.json") == 0 && strlen(path) < sizeof(folder)) {
        (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                       slash ? path : ".");
        return explain_record(e, folder, err);
    }
    bool may_be_file = strcmp(path, "-") != 0 || e->options->never_waits;
    bool is_folder = may_be_file && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return is_folder ? explain_record(e, path, err) : gp_explain_read_file(e, path, err);
}

static int finish(struct gp_explain_run *e, json_t *document, struct gp_err *err)
{
    static const struct gp_known_errors none;
    const struct gp_exam *exam = NULL;
    if (e->found == 0 && !e->is_told)
        exam = gp_look_for(&none, e->options->look, e->options->look_context);
    if (e->list) {
        if (exam)
            (void)json_object_set_new(document, "doctor", gp_look_first_json(exam, &none));
        gp_json_add(&e->sb, json_incref(document), 2);
        gp_strbuf_addc(&e->sb, '\n');
    } else if (e->found == 0 && !e->is_told) {
        gp_strbuf_adds(&e->sb, "no known error in the log\n");
        gp_look_add_end(&e->sb, exam, &none);
    }
    return e->options->write(e->options->context, &e->sb, err);
}

static bool is_last(const char *word)
{
    return strcmp(word, "last") == 0 && access(word, F_OK) != 0;
}

bool gp_explain_is_log(const char *word, bool only)
{
    unsigned weight; /* "pynvml.NVMLError_LibraryNotFound" is an error */
    bool looks = only && !strchr(word, ' ') &&
                 (strchr(word, '/') || (strchr(word, '.') && !gp_entry_of_line(word, &weight)));
    return strcmp(word, "-") == 0 || is_last(word) || looks || access(word, F_OK) == 0;
}

int gp_explain_logs(const struct gp_explain_options *o, int count, char *const *words,
                    bool *ret_found, struct gp_err *err)
{
    struct gp_explain_run e = {.options = o, .sb = GP_STRBUF_INIT(256 << 20)};
    int r = 0;
    json_t *document = o->as_json
                           ? json_pack("{s:s, s:[], s:[], s:[], s:n}", "schema", "gpulse.explain/1",
                                       "jobs", "incidents", "known", "doctor")
                           : NULL;
    e.document = document;
    e.jobs = json_object_get(document, "jobs");
    e.list = json_object_get(document, "incidents");
    e.other = json_object_get(document, "known");
    for (int i = 0; r == 0 && i < count; i++) {
        uint64_t n = 1;
        if (o->never_waits ? strcmp(words[i], "last") != 0 : !is_last(words[i])) {
            r = explain_path(&e, words[i], err);
            continue;
        }
        i += i + 1 < count && gp_parse_u64(words[i + 1], &n);
        r = n > 0 ? explain_nth(&e, n, err)
                  : gp_err_set(err, GP_EUSAGE,
                               "last 0: last 1 is the newest job, last 2 the one "
                               "before");
    }
    if (r == 0)
        r = finish(&e, document, err);
    json_decref(document);
    gp_strbuf_fini(&e.sb);
    gp_arena_fini(&e.arena);
    if (r == 0)
        *ret_found = e.found > 0;
    return r;
}
