/* Why a program failed, from its output: failures for lack of memory with their causes, then the
 * other errors that are known. */
#include "cmd/explain_log.h"

#include "cmd/app.h"
#include "cmd/doctor.h"

#include "base/err.h"
#include "base/io.h"
#include "base/utf8.h"
#include "jobs/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 65536 };

/* ---- what is found ---- */

/* The line, and how often it is repeated. */
static void add_line(struct gp_explain_run *e, const char *line, uint64_t number, uint64_t repeats,
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

static void tell_text(struct gp_explain_run *e)
{
    add_line(e, e->last.line, e->last.line_number, e->repeats, e->repeat_line);
    gp_incident_add_causes(&e->sb, &e->last);
}

void gp_explain_add_place(struct gp_explain_run *e, json_t *object, json_t *list, uint64_t repeats)
{
    char name[1024];
    gp_utf8_copy_safe(name, sizeof(name), e->name);
    (void)json_object_set_new(object, "file", json_string(name));
    (void)json_object_set_new(object, "repeats", json_integer((json_int_t)repeats));
    (void)json_array_append_new(list, object);
}

static void tell_json(struct gp_explain_run *e)
{
    gp_explain_add_place(e, gp_incident_json(&e->last), e->list, e->repeats);
}

static void tell(struct gp_explain_run *e)
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
    struct gp_explain_run *e = context;
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

static void note_known(struct gp_explain_run *e, const char *line,
                       const struct gp_explanation *found)
{
    for (size_t i = 0; i < e->known_count; i++) {
        struct gp_explain_known *known = &e->known[i];
        if (strcmp(known->explanation.id, found->id) == 0 &&
            strcmp(known->explanation.words, found->words) == 0) {
            known->repeats++;
            known->repeat_line = e->line_number;
            return;
        }
    }
    struct gp_explain_known known = {.line_number = e->line_number};
    if (e->known_count == GP_EXPLAIN_KNOWN_MAX ||
        !gp_explain_line(&e->arena, line, &known.explanation))
        return;
    known.line = gp_arena_strdup(&e->arena, line);
    e->known[e->known_count++] = known;
}

/* Lines about memory are the scan's: it reads what follows them, too. */
static void on_line(void *context, const char *line)
{
    struct gp_explain_run *e = context;
    struct gp_arena scratch = {NULL};
    struct gp_explanation found;
    struct gp_failure failure;
    e->line_number++;
    if (!is_own(line) && gp_explain_line(&scratch, line, &found) &&
        !gp_failure_find(line, &failure))
        note_known(e, line, &found);
    gp_arena_fini(&scratch);
}

static void tell_known(struct gp_explain_run *e)
{
    for (size_t i = 0; i < e->known_count; i++) {
        const struct gp_explain_known *known = &e->known[i];
        e->found++;
        if (e->list) {
            json_t *object = gp_doctor_explanation_json(&known->explanation, known->line);
            (void)json_object_set_new(object, "line_number",
                                      json_integer((json_int_t)known->line_number));
            gp_explain_add_place(e, object, e->other, known->repeats);
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
static int write_text(struct gp_explain_run *e, struct gp_err *err)
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

int gp_explain_read_log(struct gp_explain_run *e, int fd, struct gp_err *err)
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

int gp_explain_read_file(struct gp_explain_run *e, const char *path, struct gp_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    e->name = is_stdin ? "(stdin)" : path;
    if (fd < 0)
        return gp_err_set(err, GP_EIO, "cannot open %s: %s", path, strerror(errno));
    int r = gp_explain_read_log(e, fd, err);
    if (!is_stdin)
        (void)close(fd);
    return r;
}
