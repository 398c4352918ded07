#include "jobs/recorded.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/record.h"
#include "out/columns.h"
#include "out/json.h"
#include "out/procs.h"
#include "proc/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_MOST = 256 << 20, /* bytes: what gpulse run writes in months is smaller */
    WORD_MOST = 200,
    NAME_MOST = 400,
};

/* More is no job's: these fit into integers. */
static const double PEAK_MOST = 0x1p60; /* bytes */
static const double SECONDS_MOST = 0x1p40;

/* ---- one record ---- */

static int open_regular(const char *folder, const char *name, off_t most_bytes)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= most_bytes))
        return fd;
    (void)close(fd);
    return -1;
}

int gp_recorded_open(const struct gp_recorded *recorded, const char *name)
{
    return open_regular(recorded->folder, name, INT64_MAX);
}

static FILE *open_stream(const char *folder, const char *name)
{
    int fd = open_regular(folder, name, FILE_MOST);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file)
        (void)close(fd);
    return file;
}

/* What the samples say of a job whose end is not recorded. */
static void read_samples(struct gp_recorded *recorded)
{
    enum { TIME = 0, JOB_MEMORY = 6 };
    char line[512];
    FILE *file = open_stream(recorded->folder, "samples.csv");
    while (file && fgets(line, sizeof(line), file)) {
        const char *cell;
        char *rest = line;
        for (int column = 0; column <= JOB_MEMORY && (cell = strsep(&rest, ",")); column++) {
            double *most = column == TIME         ? &recorded->seconds
                           : column == JOB_MEMORY ? &recorded->memory_peak
                                                  : NULL;
            double number = most ? strtod(cell, NULL) : 0;
            if (most && number > *most && isfinite(number))
                *most = number;
        }
    }
    if (file)
        (void)fclose(file);
}

/* Whether gpulse run still runs, and not another process that has its pid now. */
static bool is_alive(const json_t *run, int64_t pid)
{
    const json_t *ticks = json_object_get(run, "start_ticks");
    struct gp_proc_stat stat;
    if (pid <= 0 || pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno != EPERM))
        return false;
    return !json_is_integer(ticks) || !gp_proc_stat_of((uint32_t)pid, &stat) ||
           stat.start_ticks == (uint64_t)json_integer_value(ticks);
}

static enum gp_recorded_state state_of(const json_t *run, int64_t pid)
{
    const char *state = json_string_value(json_object_get(run, "state"));
    if (!state || strcmp(state, "running") != 0)
        return GP_RECORDED_ENDED;
    return is_alive(run, pid) ? GP_RECORDED_RUNNING : GP_RECORDED_ABANDONED;
}

static double highest_peak(const json_t *run)
{
    const json_t *gpus = json_object_get(run, "gpus");
    double peak = 0;
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        double n = json_number_value(json_object_get(json_array_get(gpus, i), "memory_peak"));
        peak = n > peak ? n : peak;
    }
    return peak;
}

int gp_recorded_read(const char *folder, struct gp_recorded *ret, struct gp_err *err)
{
    *ret = (struct gp_recorded){.folder = ""};
    int n = snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
    FILE *file = n > 0 && n < GP_PATH_SIZE ? open_stream(folder, "run.json") : NULL;
    json_t *run = file ? json_loadf(file, 0, NULL) : NULL;
    if (file)
        (void)fclose(file);
    if (!json_is_object(run)) {
        json_decref(run);
        return gp_err_set(err, GP_EIO,
                          "%s is a directory, but not the record of a job; give a log, or a "
                          "directory that gpulse run has recorded",
                          folder);
    }
    const json_t *duration = json_object_get(run, "duration_s");
    const char *started = json_string_value(json_object_get(run, "started"));
    ret->document = run;
    ret->pid = json_integer_value(json_object_get(run, "pid"));
    ret->state = state_of(run, ret->pid);
    ret->status = (unsigned)json_integer_value(json_object_get(run, "status"));
    ret->stopped = json_string_value(json_object_get(run, "ended_by"));
    ret->told = sigabbrev_np((int)json_integer_value(json_object_get(run, "signal")));
    ret->started = started ? started : "";
    ret->seconds = json_number_value(duration);
    ret->is_least = !json_is_number(duration);
    ret->memory_peak = highest_peak(run);
    ret->rss_peak = json_number_value(json_object_get(run, "rss_max"));
    if (ret->is_least)
        read_samples(ret);
    ret->memory_peak = ret->memory_peak < PEAK_MOST ? ret->memory_peak : PEAK_MOST;
    ret->seconds = ret->seconds < SECONDS_MOST ? ret->seconds : SECONDS_MOST;
    return 0;
}

void gp_recorded_fini(struct gp_recorded *recorded)
{
    json_decref(recorded->document);
    recorded->document = NULL;
}

const char *gp_recorded_reason(const struct gp_recorded *recorded, const char **ret_advice)
{
    static const struct {
        const char *word, *reason, *advice;
    } limits[] = {
        {"timeout", "gpulse run stopped it when --timeout ran out", "allow more time"},
        {"max-gpu-mem", "gpulse run stopped it: it used more GPU memory than --max-gpu-mem",
         "raise --max-gpu-mem, or make it need less, for example with a smaller batch"},
        {"strict", "gpulse run stopped it: it used a GPU that it had not reserved (--strict)",
         "let it use the GPUs in CUDA_VISIBLE_DEVICES"},
        {"guard", "its guard process was killed, so gpulse run ended it",
         "find out who kills processes of gpulse run"},
    };
    for (size_t i = 0; recorded->stopped && i < GP_ARRAY_LEN(limits); i++)
        if (strcmp(limits[i].word, recorded->stopped) == 0) {
            *ret_advice = limits[i].advice;
            return limits[i].reason;
        }
    return NULL;
}

const char *gp_recorded_name(const struct gp_recorded *recorded)
{
    const char *name = json_string_value(json_object_get(recorded->document, "name"));
    return name ? name : "";
}

void gp_recorded_add_command(struct gp_strbuf *sb, const struct gp_recorded *recorded)
{
    const json_t *command = json_object_get(recorded->document, "command");
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        struct gp_strbuf quoted = GP_STRBUF_INIT(1 << 20);
        gp_utf8_add_shell_word(&quoted, word ? word : "?");
        gp_strbuf_adds(sb, i > 0 ? " " : "");
        gp_utf8_add_safe(sb, quoted.buf, quoted.len, WORD_MOST);
        gp_strbuf_fini(&quoted);
    }
}

void gp_recorded_add_gpus(struct gp_strbuf *sb, const struct gp_recorded *recorded)
{
    const json_t *gpus = json_object_get(recorded->document, "gpus");
    for (size_t i = 0; i < json_array_size(gpus); i++)
        gp_strbuf_addf(sb, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : "",
                       json_integer_value(json_object_get(json_array_get(gpus, i), "index")));
}

/* ---- JSON ---- */

static const char *state_words(const struct gp_recorded *job)
{
    static const char *const words[] = {[GP_RECORDED_RUNNING] = "running",
                                        [GP_RECORDED_ABANDONED] = "killed",
                                        [GP_RECORDED_ENDED] = "ended"};
    return words[job->state];
}

json_t *gp_recorded_json(const struct gp_recorded *job)
{
    const bool has_ended = job->state == GP_RECORDED_ENDED;
    json_t *document = job->document;
    char folder[4 * GP_PATH_SIZE];
    gp_utf8_copy_safe(folder, sizeof(folder), job->folder);
    return json_pack(
        "{s:s, s:s, s:o, s:s?, s:s?, s:s, s:f, s:b, s:o, s:O?, s:O?}", "folder", folder, "state",
        state_words(job), "status", has_ended ? json_integer(job->status) : json_null(), "ended_by",
        job->stopped, "signal", job->told, "started", job->started, "duration_s", job->seconds,
        "duration_at_least", (int)job->is_least, "memory_peak",
        json_integer((json_int_t)job->memory_peak), "name", json_object_get(document, "name"),
        "command", json_object_get(document, "command"));
}

/* ---- all of them ---- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

struct visit {
    bool (*take)(void *context, const struct gp_recorded *recorded);
    void *context;
};

/* How much a step says about why its pipeline failed. */
static int rank_of(const struct gp_recorded *step)
{
    const bool has_succeeded = step->state == GP_RECORDED_ENDED && step->status == 0;
    return step->state == GP_RECORDED_RUNNING ? 2 : step->told ? 1 : has_succeeded ? 3 : 0;
}

/* Those that failed, that were stopped, that run, and that succeeded; of each the newest first. */
static int compare_steps(const void *a, const void *b)
{
    const struct gp_recorded *left = a;
    const struct gp_recorded *right = b;
    int order = rank_of(left) - rank_of(right);
    order = order ? order : strcmp(right->started, left->started);
    return order ? order : strverscmp(right->folder, left->folder);
}

/* The records in the directory of a pipeline, one for each step. False: stop. */
static bool visit_steps(const struct visit *visit, const char *folder)
{
    char path[GP_PATH_SIZE];
    struct dirent **entries;
    bool goes_on = true;
    size_t count = 0;
    int most = scandir(folder, &entries, is_visible, NULL);
    struct gp_recorded *steps = most > 0 ? calloc((size_t)most, sizeof(*steps)) : NULL;
    for (int i = 0; i < most; i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        count += steps && n > 0 && (size_t)n < sizeof(path) &&
                 gp_recorded_read(path, &steps[count], NULL) == 0;
        free(entries[i]);
    }
    if (most >= 0)
        free(entries);
    if (count > 0)
        qsort(steps, count, sizeof(*steps), compare_steps);
    for (size_t i = 0; i < count; i++) {
        goes_on = goes_on && visit->take(visit->context, &steps[i]);
        gp_recorded_fini(&steps[i]);
    }
    free(steps);
    return goes_on;
}

/* The record in this directory or, if it is that of a pipeline, those of its steps. False: stop. */
static bool visit_run(const struct visit *visit, const char *folder)
{
    struct gp_recorded recorded;
    char path[GP_PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/run.json", folder);
    if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK) != 0)
        return visit_steps(visit, folder);
    if (gp_recorded_read(folder, &recorded, NULL) < 0)
        return true;
    const bool goes_on = visit->take(visit->context, &recorded);
    gp_recorded_fini(&recorded);
    return goes_on;
}

void gp_recorded_each(bool (*take)(void *context, const struct gp_recorded *recorded),
                      void *context)
{
    const struct visit visit = {take, context};
    char runs[GP_PATH_SIZE];
    char path[GP_PATH_SIZE];
    struct dirent **entries;
    bool goes_on = true;
    int count = gp_record_find_runs(runs) ? scandir(runs, &entries, gp_record_is, alphasort) : -1;
    for (int i = count - 1; i >= 0; i--) {
        int n = snprintf(path, sizeof(path), "%s/%s", runs, entries[i]->d_name);
        if (n > 0 && (size_t)n < sizeof(path))
            goes_on = goes_on && visit_run(&visit, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* ---- the list ---- */

enum { N, STARTED, FOR, GPUS, END, JOB, COLUMN_COUNT };

enum { STARTED_WIDTH = 19, STARTED_NARROW = 11, ALL_COLUMNS = (1 << COLUMN_COUNT) - 1 };

static const struct gp_text_column usual_columns[COLUMN_COUNT] = {
    [N] = {"N", 3},
    [STARTED] = {"STARTED", STARTED_WIDTH, .is_left = true},
    [FOR] = {"FOR", 6, .drop = 1},
    [GPUS] = {"GPUS", 7, .drop = 2, .is_left = true},
    [END] = {"END", 13, .is_left = true},
    [JOB] = {"JOB", 10, .is_left = true},
};

struct listing {
    struct gp_strbuf *sb;
    json_t *records; /* NULL: text */
    size_t count;
    size_t room; /* columns of the screen; 0: no limit */
    struct gp_text_column columns[COLUMN_COUNT];
    uint32_t shown; /* of them */
};

/* A narrow screen has no room for years and seconds, and then not for all columns. */
static void choose_columns(struct listing *list)
{
    memcpy(list->columns, usual_columns, sizeof(usual_columns));
    list->shown = gp_text_columns_fit(list->columns, COLUMN_COUNT, ALL_COLUMNS, 0, list->room);
    if (list->shown == ALL_COLUMNS)
        return;
    list->columns[STARTED].width = STARTED_NARROW;
    list->shown = gp_text_columns_fit(list->columns, COLUMN_COUNT, ALL_COLUMNS, 0, list->room);
}

/* Whether one of the failures in its output is for lack of memory. */
static bool is_out_of_memory(const struct gp_recorded *recorded)
{
    const json_t *incidents = json_object_get(recorded->document, "incidents");
    bool is = false;
    for (size_t i = 0; i < json_array_size(incidents); i++) {
        const json_t *class = json_object_get(json_array_get(incidents, i), "class");
        const char *word = json_string_value(class);
        is = is || (word && (strcmp(word, "gpu-memory") == 0 || strcmp(word, "host-memory") == 0));
    }
    return is;
}

/* "status 3", or the word for how it ended. */
static void put_end(char *ret, size_t size, const struct gp_recorded *job)
{
    const char *unused;
    const char *word = job->state != GP_RECORDED_ENDED    ? state_words(job)
                       : gp_recorded_reason(job, &unused) ? job->stopped
                       : job->told                        ? "stopped"
                       : job->status == 0                 ? "succeeded"
                       : is_out_of_memory(job)            ? "out of memory"
                                                          : NULL;
    if (word)
        (void)snprintf(ret, size, "%s", word);
    else
        (void)snprintf(ret, size, "status %u", job->status);
}

/* "2024-03-01 12:00:05", or "03-01 12:00" where that is too wide. */
static void put_start(char *ret, size_t size, const struct listing *list,
                      const struct gp_recorded *job)
{
    const bool is_whole = strlen(job->started) > 11;
    const char *clock = is_whole ? job->started + 11 : "";
    if (list->columns[STARTED].width == STARTED_WIDTH)
        (void)snprintf(ret, size, "%.10s %.8s", job->started, clock);
    else
        (void)snprintf(ret, size, "%.5s %.5s", is_whole ? job->started + 5 : "", clock);
}

static void add_row(struct listing *list, const struct gp_recorded *job)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    struct gp_strbuf gpus = GP_STRBUF_INIT(1 << 12);
    struct gp_strbuf time = GP_STRBUF_INIT(64);
    struct gp_strbuf title = GP_STRBUF_INIT(1 << 16);
    const char *name = gp_recorded_name(job);
    char number[24], start[24], end[32];
    (void)snprintf(number, sizeof(number), "%zu", list->count);
    put_start(start, sizeof(start), list, job);
    put_end(end, sizeof(end), job);
    gp_recorded_add_gpus(&gpus, job);
    gp_proc_format_amount(&time, GP_PROC_TIME_COLUMN,
                          (struct gp_amount){job->seconds + 0.5, true, false});
    gp_utf8_add_safe(&title, name, strlen(name), NAME_MOST);
    if (!name[0])
        gp_recorded_add_command(&title, job);
    const char *const cells[COLUMN_COUNT] = {
        [N] = number,
        [STARTED] = start,
        [FOR] = time.buf ? time.buf : "",
        [GPUS] = gpus.buf ? gpus.buf : "-",
        [END] = end,
        [JOB] = title.buf ? title.buf : "",
    };
    gp_text_columns_add(&line, list->columns, COLUMN_COUNT, list->shown, cells);
    gp_utf8_add_line(list->sb, line.buf, line.len, list->room);
    gp_strbuf_fini(&line);
    gp_strbuf_fini(&gpus);
    gp_strbuf_fini(&time);
    gp_strbuf_fini(&title);
}

static bool list_one(void *context, const struct gp_recorded *job)
{
    struct listing *list = context;
    if (list->count++ == 0 && !list->records) {
        gp_text_columns_add(list->sb, list->columns, COLUMN_COUNT, list->shown, NULL);
        gp_strbuf_addc(list->sb, '\n');
    }
    if (list->records)
        (void)json_array_append_new(list->records, gp_recorded_json(job));
    else
        add_row(list, job);
    return true;
}

size_t gp_recorded_add_list(struct gp_strbuf *sb, bool as_json)
{
    struct listing list = {sb, as_json ? json_array() : NULL, .room = gp_io_columns()};
    choose_columns(&list);
    gp_recorded_each(list_one, &list);
    if (list.records) {
        gp_json_add(
            sb, json_pack("{s:s, s:o}", "schema", "gpulse.explain.list/1", "records", list.records),
            2);
        gp_strbuf_addc(sb, '\n');
    }
    return list.count;
}
