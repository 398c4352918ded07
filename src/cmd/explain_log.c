/* Why a program failed, from its output: failures for lack of memory with their causes, then the
 * other errors that are known. */
#include "cmd/explain_log.h"

#include "cmd/app.h"
#include "cmd/doctor.h"
#include "cmd/explanation.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/record.h"
#include "jobs/scan.h"
#include "out/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* For a path: the newest record of gpulse run. */
#define LAST "last"

enum {
    CHUNK = 65536,
    COMMAND_MOST = 200,
    EXIT_UNKNOWN = 1,
    KNOWN_MAX = 512,
    LAST_BYTES = 8192, /* of a job's output, and */
    LAST_LINES = 10,
    SHOWN_MOST = 400,
};

/* An error that gpulse doctor knows, each once in a log. */
struct known {
    struct gp_explanation explanation;
    const char *line;
    uint64_t line_number, repeats, repeat_line;
};

struct explain {
    const struct gp_doctor_options *options;
    const char *name;     /* of the log */
    struct gp_strbuf sb;  /* text output */
    json_t *list, *other; /* JSON output: failures, and other errors */
    size_t found;
    struct gp_incident last;       /* not printed yet: it may be repeated */
    bool is_told;                  /* how a job ended is printed already */
    bool has_last, has_incidents;  /* those in the log are known already */
    uint64_t repeats, repeat_line; /* how often, and the line of the last repetition */
    /* of one log */
    uint64_t line_number;
    struct gp_arena arena;
    struct known known[KNOWN_MAX];
    size_t known_count;
};

/* ---- what is found ---- */

/* The line, and how often it is repeated. */
static void add_line(struct explain *e, const char *line, uint64_t number, uint64_t repeats,
                     uint64_t repeat_line)
{
    gp_utf8_add_safe(&e->sb, e->name, strlen(e->name), 1000);
    gp_strbuf_addf(&e->sb, ":%" PRIu64 ": ", number);
    gp_utf8_add_safe(&e->sb, line, strlen(line), sizeof(e->last.line) - 1);
    gp_strbuf_addc(&e->sb, '\n');
    if (repeats)
        gp_strbuf_addf(&e->sb, "    and %" PRIu64 " more like it, up to line %" PRIu64 "\n",
                       repeats, repeat_line);
}

static void tell_text(struct explain *e)
{
    add_line(e, e->last.line, e->last.line_number, e->repeats, e->repeat_line);
    gp_incident_add_causes(&e->sb, &e->last);
}

static void add_place(struct explain *e, json_t *object, json_t *list, uint64_t repeats)
{
    char name[1024];
    gp_utf8_copy_safe(name, sizeof(name), e->name);
    (void)json_object_set_new(object, "file", json_string(name));
    (void)json_object_set_new(object, "repeats", json_integer((json_int_t)repeats));
    (void)json_array_append_new(list, object);
}

static void tell_json(struct explain *e)
{
    add_place(e, gp_incident_json(&e->last), e->list, e->repeats);
}

static void tell(struct explain *e)
{
    if (!e->has_last)
        return;
    e->has_last = false;
    gp_incident_judge(&e->last);
    if (e->list)
        tell_json(e);
    else
        tell_text(e);
}

/* The line behind the time that the kernel prints. */
static const char *words_of(const struct gp_incident *incident)
{
    const char *end = incident->line[0] == '[' ? strstr(incident->line, "] ") : NULL;
    return end ? end : incident->line;
}

/* Whether two incidents are the same: on the same GPU, and with the same first words. */
static bool is_same(const struct gp_incident *a, const struct gp_incident *b)
{
    const size_t words = 60;
    return strcmp(a->failure.id, b->failure.id) == 0 &&
           a->failure.values[GP_FAILURE_ORDINAL] == b->failure.values[GP_FAILURE_ORDINAL] &&
           strncmp(words_of(a), words_of(b), words) == 0;
}

/* What gpulse printed itself is an explanation already. */
static bool is_own(const char *line)
{
    return strncmp(line, "gpulse: ", strlen("gpulse: ")) == 0;
}

static void found(void *context, const struct gp_incident *incident)
{
    struct explain *e = context;
    if (e->has_incidents || is_own(incident->line) ||
        (incident->failure.class == GP_FAILURE_SOFT && !e->options->all))
        return;
    e->found++;
    if (e->has_last && is_same(&e->last, incident)) {
        e->repeats++;
        e->repeat_line = incident->line_number;
        return;
    }
    tell(e);
    e->last = *incident;
    e->has_last = true;
    e->repeats = 0;
}

/* ---- other errors ---- */

static void note_known(struct explain *e, const char *line, const struct gp_explanation *found)
{
    for (size_t i = 0; i < e->known_count; i++) {
        struct known *known = &e->known[i];
        if (strcmp(known->explanation.id, found->id) == 0 &&
            strcmp(known->explanation.words, found->words) == 0) {
            known->repeats++;
            known->repeat_line = e->line_number;
            return;
        }
    }
    struct known known = {.line_number = e->line_number};
    if (e->known_count == KNOWN_MAX || !gp_explain_line(&e->arena, line, &known.explanation))
        return;
    known.line = gp_arena_strdup(&e->arena, line);
    e->known[e->known_count++] = known;
}

/* Lines about memory are the scan's: it reads what follows them, too. */
static void on_line(void *context, const char *line)
{
    struct explain *e = context;
    struct gp_arena scratch = {NULL};
    struct gp_explanation found;
    struct gp_failure failure;
    e->line_number++;
    if (!is_own(line) && gp_explain_line(&scratch, line, &found) &&
        !gp_failure_find(line, &failure))
        note_known(e, line, &found);
    gp_arena_fini(&scratch);
}

static void tell_known(struct explain *e)
{
    for (size_t i = 0; i < e->known_count; i++) {
        const struct known *known = &e->known[i];
        e->found++;
        if (e->list) {
            json_t *object = gp_doctor_explanation_json(&known->explanation, known->line);
            (void)json_object_set_new(object, "line_number",
                                      json_integer((json_int_t)known->line_number));
            add_place(e, object, e->other, known->repeats);
            continue;
        }
        add_line(e, known->line, known->line_number, known->repeats, known->repeat_line);
        gp_strbuf_addf(&e->sb, "    %s: %s\n", known->explanation.title, known->explanation.words);
        if (known->explanation.advice[0])
            gp_strbuf_addf(&e->sb, "      -> %s\n", known->explanation.advice);
    }
    e->known_count = 0;
    e->line_number = 0;
    gp_arena_fini(&e->arena);
    e->arena = (struct gp_arena){NULL};
}

/* ---- logs ---- */

/* The lines of a text, wrapped at the terminal's width, below their own indentation. */
static void add_wrapped_lines(struct gp_strbuf *sb, const char *text)
{
    const size_t columns = gp_io_columns();
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        size_t blanks = strspn(p, " ");
        bool is_advice = strncmp(p + blanks, "-> ", 3) == 0;
        size_t indent = blanks == 0 ? 4 : blanks + (is_advice ? strlen("-> ") : 0);
        size_t begin = blanks == 0 ? 0 : indent;
        gp_strbuf_add(sb, p, begin < n ? begin : n);
        if (begin < n)
            gp_utf8_add_hanging(sb, p + begin, n - begin, begin, indent, columns);
        else
            gp_strbuf_addc(sb, '\n');
        p += n + (p[n] == '\n');
    }
}

/* Writes the finished text output. */
static int write_text(struct explain *e, struct gp_err *err)
{
    struct gp_strbuf lines = GP_STRBUF_INIT(256 << 20);
    if (e->list || e->sb.len == 0)
        return 0;
    lines.error = e->sb.error;
    add_wrapped_lines(&lines, e->sb.buf);
    int r = gp_app_write(STDOUT_FILENO, &lines, err);
    gp_strbuf_fini(&lines);
    gp_strbuf_reset(&e->sb);
    return r;
}

static int read_log(struct explain *e, int fd, struct gp_err *err)
{
    static char chunk[CHUNK];
    const struct gp_scan_calls calls = {.found = found, .line = on_line, .context = e};
    struct gp_scan *scan = gp_scan_new(&calls);
    ssize_t n = 1;
    int r = 0;
    if (!scan)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    while (r == 0 && n != 0) {
        n = read(fd, chunk, sizeof(chunk));
        if (n > 0)
            gp_scan_feed(scan, chunk, (size_t)n);
        else if (n < 0 && errno != EINTR)
            r = gp_err_set(err, GP_EIO, "cannot read %s: %s", e->name, strerror(errno));
        if (r == 0 && e->sb.len > CHUNK)
            r = write_text(e, err);
    }
    gp_scan_finish(scan);
    gp_scan_free(scan);
    tell(e);
    tell_known(e);
    if (r == 0)
        return write_text(e, err);
    (void)!write_text(e, NULL); /* what was found before the error */
    return r;
}

static int read_file(struct explain *e, const char *path, struct gp_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    e->name = is_stdin ? "(stdin)" : path;
    if (fd < 0)
        return gp_err_set(err, GP_EIO, "cannot open %s: %s", path, strerror(errno));
    int r = read_log(e, fd, err);
    if (!is_stdin)
        (void)close(fd);
    return r;
}

/* ---- the record of gpulse run ---- */

/* A file in a record, which another user may have prepared: no link, and nothing that blocks. */
static int open_recorded(const char *folder, const char *name)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    (void)close(fd);
    return -1;
}

/* The text that gpulse run wrote about the incident. */
static void add_incident_text(struct explain *e, const char *folder, size_t number)
{
    static char text[CHUNK];
    char name[40];
    (void)snprintf(name, sizeof(name), "incident-%zu.txt", number);
    int fd = open_recorded(folder, name);
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
static size_t add_incidents(struct explain *e, const char *folder, const json_t *run)
{
    const json_t *incidents = json_object_get(run, "incidents");
    size_t count = json_array_size(incidents);
    e->name = folder;
    for (size_t i = 0; i < count; i++) {
        if (e->list)
            add_place(e, json_deep_copy(json_array_get(incidents, i)), e->list, 0);
        else
            add_incident_text(e, folder, i + 1);
    }
    e->found += count;
    return count;
}

static bool is_running(const json_t *run)
{
    const char *state = json_string_value(json_object_get(run, "state"));
    return state && strcmp(state, "running") == 0;
}

/* What the samples say of a job whose end is not recorded. */
static void read_samples(const char *folder, double *ret_seconds, double *ret_peak)
{
    enum { TIME = 0, JOB_MEMORY = 6 };
    char line[512];
    int fd = open_recorded(folder, "samples.csv");
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        const char *cell;
        char *rest = line;
        for (int column = 0; column <= JOB_MEMORY && (cell = strsep(&rest, ",")); column++) {
            double *most = column == TIME ? ret_seconds : column == JOB_MEMORY ? ret_peak : NULL;
            double number = most ? strtod(cell, NULL) : 0;
            if (most && number > *most)
                *most = number;
        }
    }
    if (file)
        (void)fclose(file);
}

/* "    GPU 3, 1.6 s, memory peak 5120 MiB", below the command line. */
static void add_job(struct explain *e, const char *folder, const json_t *run)
{
    const json_t *command = json_object_get(run, "command");
    const json_t *gpus = json_object_get(run, "gpus");
    const json_t *duration = json_object_get(run, "duration_s");
    double seconds = json_number_value(duration);
    double peak = 0;
    gp_strbuf_adds(&e->sb, "   ");
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        gp_strbuf_addc(&e->sb, ' ');
        gp_utf8_add_safe(&e->sb, word ? word : "?", word ? strlen(word) : 1, COMMAND_MOST);
    }
    gp_strbuf_adds(&e->sb, "\n    GPU");
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);
        const double used = json_number_value(json_object_get(gpu, "memory_peak"));
        peak = used > peak ? used : peak;
        gp_strbuf_addf(&e->sb, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : " ",
                       json_integer_value(json_object_get(gpu, "index")));
    }
    const bool is_open = !json_is_number(duration);
    if (is_open)
        read_samples(folder, &seconds, &peak);
    gp_strbuf_addf(&e->sb, ", %s%.1f s, ", is_open ? "at least " : "", seconds);
    if (peak > 0)
        gp_strbuf_addf(&e->sb, "memory peak %.0f MiB\n", peak / 0x1p20);
    else
        gp_strbuf_adds(&e->sb, "no GPU memory seen\n");
}

/* What the exit status means; false: nothing in particular, or there is none yet. */
static bool find_status(struct explain *e, const json_t *run, struct gp_explanation *ret)
{
    const unsigned status = (unsigned)json_integer_value(json_object_get(run, "status"));
    char number[16];
    *ret = (struct gp_explanation){"", "", "", "", "", "", "", "", "", ""};
    (void)snprintf(number, sizeof(number), "%u", status);
    return !is_running(run) && gp_explain_topic(&e->arena, "exit", number, ret, NULL) == 0;
}

static void add_end(struct explain *e, unsigned status, const char *words, const char *ended_by,
                    const char *told)
{
    gp_strbuf_addf(&e->sb, ": the job ended with status %u%s%s", status, words ? ": " : "",
                   words ? words : "");
    if (ended_by) {
        gp_strbuf_adds(&e->sb, "; stopped by ");
        gp_utf8_add_safe(&e->sb, ended_by, strlen(ended_by), SHOWN_MOST);
    }
    gp_strbuf_addf(&e->sb, "%s%s\n", told ? ", after gpulse run got SIG" : "", told ? told : "");
}

/* How the job ended, and what it was. */
static void add_heading(struct explain *e, const char *folder, const json_t *run)
{
    const unsigned status = (unsigned)json_integer_value(json_object_get(run, "status"));
    const json_int_t pid = json_integer_value(json_object_get(run, "pid"));
    const char *ended_by = json_string_value(json_object_get(run, "ended_by"));
    const char *told = sigabbrev_np((int)json_integer_value(json_object_get(run, "signal")));
    struct gp_explanation found;
    const bool is_known = find_status(e, run, &found);
    gp_utf8_add_safe(&e->sb, folder, strlen(folder), 1000);
    if (is_running(run) && pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
        gp_strbuf_addf(&e->sb, ": the job still runs (gpulse run, pid %" JSON_INTEGER_FORMAT ")\n",
                       pid);
    else if (is_running(run))
        gp_strbuf_adds(&e->sb, ": gpulse run was killed, and the job ended with it\n");
    else if (status == 0 && !told)
        gp_strbuf_adds(&e->sb, ": the job succeeded\n");
    else
        add_end(e, status, is_known ? found.words : NULL, ended_by, told);
    add_job(e, folder, run);
    e->is_told = true;
}

/* What the end of the job means, if nothing in its output says why. */
static void add_ending(struct explain *e, const json_t *run)
{
    struct gp_explanation found;
    if (!find_status(e, run, &found))
        return;
    e->found++;
    if (e->list)
        (void)json_array_append_new(e->other, gp_doctor_explanation_json(&found, NULL));
    else
        gp_strbuf_addf(&e->sb, "      -> %s\n", found.advice);
}

static bool has_failed(const json_t *run)
{
    return !is_running(run) && json_integer_value(json_object_get(run, "status")) != 0;
}

/* The end of an open log, where nothing in it is known. */
static void add_last_lines(struct explain *e, int fd)
{
    static char text[LAST_BYTES + 1];
    off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n =
        size > 0 ? pread(fd, text, LAST_BYTES, size > LAST_BYTES ? size - LAST_BYTES : 0) : 0;
    if (n <= 0)
        return;
    n -= text[n - 1] == '\n';
    text[n] = '\0';
    for (char *nul = text; (nul = memchr(nul, '\0', (size_t)(text + n - nul)));)
        *nul = ' ';
    char *line = text + n;
    for (int lines = 0; line > text && lines < LAST_LINES; lines += *line == '\n')
        line--;
    gp_strbuf_adds(&e->sb, "    the end of its output (");
    gp_utf8_add_safe(&e->sb, e->name, strlen(e->name), GP_PATH_SIZE);
    gp_strbuf_adds(&e->sb, "):\n");
    for (char *rest = *line == '\n' ? line + 1 : line; (line = strsep(&rest, "\n"));) {
        gp_strbuf_adds(&e->sb, "      ");
        gp_utf8_add_safe(&e->sb, line, strlen(line), SHOWN_MOST);
        gp_strbuf_addc(&e->sb, '\n');
    }
}

static int explain_record(struct explain *e, const char *folder, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    static const char *const logs[] = {"output.log", GP_OUTPUT_END};
    json_error_t why;
    int fd = open_recorded(folder, "run.json");
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    json_t *run = file ? json_loadf(file, 0, &why) : NULL;
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
    if (!run)
        return gp_err_set(
            err, GP_EIO,
            "%s is a directory, but not the record of a job; give a log, or a directory "
            "that gpulse run has recorded",
            folder);
    const size_t before = e->found;
    int r = 0;
    if (!e->list)
        add_heading(e, folder, run);
    e->has_incidents = add_incidents(e, folder, run) > 0;
    fd = -1;
    for (size_t i = 0; i < GP_ARRAY_LEN(logs) && fd < 0; i++) {
        fd = open_recorded(folder, logs[i]);
        (void)snprintf(path, sizeof(path), "%s/%s", folder, logs[i]);
    }
    e->name = path;
    if (fd >= 0)
        r = read_log(e, fd, err);
    e->has_incidents = false;
    if (r == 0 && e->found == before && has_failed(run)) {
        add_ending(e, run);
        if (fd >= 0 && !e->list)
            add_last_lines(e, fd);
    } else if (r == 0 && !has_failed(run)) {
        e->found++; /* nothing is left to be explained */
    }
    if (fd >= 0)
        (void)close(fd);
    json_decref(run);
    return r;
}

static int explain_log(struct explain *e, const char *path, struct gp_err *err)
{
    struct stat st;
    static const char file[] = "run.json";
    char folder[GP_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    char last[GP_PATH_SIZE];
    if (strcmp(path, LAST) == 0 && access(path, F_OK) != 0)
        return gp_record_find_last(last)
                   ? explain_record(e, last, err)
                   : gp_err_set(err, GP_EIO,
                                "no job of yours is recorded; gpulse run records jobs");
    bool is_folder = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (strcmp(slash ? slash + 1 : path, file) == 0 && strlen(path) < sizeof(folder)) {
        (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                       slash ? path : ".");
        return explain_record(e, folder, err);
    }
    return is_folder ? explain_record(e, path, err) : read_file(e, path, err);
}

static int print(struct explain *e, struct gp_err *err)
{
    if (e->list) {
        json_t *document = json_pack("{s:s, s:o, s:o}", "schema", "gpulse.explain/1", "incidents",
                                     e->list, "known", e->other);
        gp_json_add(&e->sb, document, 2);
        gp_strbuf_addc(&e->sb, '\n');
    } else if (e->found == 0 && !e->is_told) {
        gp_strbuf_adds(&e->sb, "no known error in the log\n");
    }
    return gp_app_write(STDOUT_FILENO, &e->sb, err);
}

bool gp_explain_is_log(const char *word, bool only)
{
    bool looks = only && !strchr(word, ' ') && (strchr(word, '/') || strchr(word, '.'));
    return strcmp(word, "-") == 0 || strcmp(word, LAST) == 0 || looks || access(word, F_OK) == 0;
}

int gp_explain_logs(const struct gp_doctor_options *o, int count, char *const *paths,
                    struct gp_err *err)
{
    static struct explain e; /* large */
    int r = 0;
    e.options = o;
    gp_strbuf_init(&e.sb, 256 << 20);
    if (o->json) {
        e.list = json_array();
        e.other = json_array();
    }
    for (int i = 0; r == 0 && i < count; i++)
        r = explain_log(&e, paths[i], err);
    if (r == 0)
        r = print(&e, err);
    gp_strbuf_fini(&e.sb);
    return r < 0 || e.found > 0 ? r : EXIT_UNKNOWN;
}
