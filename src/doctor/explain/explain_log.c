#include "doctor/explain/explain_log.h"

#include "base/io.h"
#include "base/utf8.h"
#include "doctor/explain/explanation.h"
#include "doctor/explain/log_errors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_BYTES = 65536 };

/* ---- text ---- */

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
    int r = e->options->write(e->options->context, &lines, err);
    gp_strbuf_fini(&lines);
    gp_strbuf_reset(&e->sb);
    return r;
}

/* The line, and how often it is repeated. */
static void add_line(struct gp_explain_run *e, const char *line, uint64_t number, uint64_t repeats,
                     uint64_t repeat_line)
{
    gp_utf8_add_safe(&e->sb, e->name, strlen(e->name), GP_PATH_SIZE);
    gp_strbuf_addf(&e->sb, ":%" PRIu64 ": ", number);
    gp_utf8_add_safe(&e->sb, line, strlen(line), GP_INCIDENT_LINE - 1);
    gp_strbuf_addc(&e->sb, '\n');
    if (repeats)
        gp_strbuf_addf(&e->sb, "    and %" PRIu64 " more like it, up to line %" PRIu64 "\n",
                       repeats, repeat_line);
}

/* ---- what is found ---- */

void gp_explain_add_place(struct gp_explain_run *e, json_t *object, json_t *list, uint64_t repeats)
{
    char name[1024];
    gp_utf8_copy_safe(name, sizeof(name), e->name);
    (void)json_object_set_new(object, "file", json_string(name));
    (void)json_object_set_new(object, "repeats", json_integer((json_int_t)repeats));
    (void)json_array_append_new(list, object);
}

static bool on_failure(void *context, const struct gp_incident *incident, uint64_t repeats,
                       uint64_t repeat_line)
{
    struct gp_explain_run *e = context;
    e->found++;
    if (e->list) {
        gp_explain_add_place(e, gp_incident_json(incident), e->list, repeats);
        return true;
    }
    add_line(e, incident->line, incident->line_number, repeats, repeat_line);
    gp_incident_add_causes(&e->sb, incident);
    if (e->sb.len > WRITE_BYTES)
        e->r = write_text(e, &e->err);
    return e->r == 0;
}

static void add_known(struct gp_explain_run *e, const struct gp_known_error *known,
                      const struct gp_exam *exam)
{
    const struct gp_explanation *explanation = &known->explanation;
    e->found++;
    if (e->list) {
        json_t *object = gp_doctor_explanation_json(explanation, known->line);
        (void)json_object_set_new(object, "here", gp_look_json(exam, known));
        (void)json_object_set_new(object, "line_number",
                                  json_integer((json_int_t)known->line_number));
        gp_explain_add_place(e, object, e->other, known->repeats);
        return;
    }
    add_line(e, known->line, known->line_number, known->repeats, known->repeat_line);
    gp_strbuf_addf(&e->sb, "    %s: %s\n", explanation->title, explanation->words);
    if (explanation->check[0])
        gp_strbuf_addf(&e->sb, "      check: %s\n", explanation->check);
    if (explanation->advice[0])
        gp_strbuf_addf(&e->sb, "      -> %s\n", explanation->advice);
    gp_look_add_text(&e->sb, exam, known);
}

static void on_known(void *context, const struct gp_known_errors *errors)
{
    struct gp_explain_run *e = context;
    const struct gp_exam *exam = gp_look_for(errors, e->options->look, e->options->look_context);
    for (size_t i = 0; i < errors->count; i++)
        add_known(e, &errors->all[i], exam);
    if (!e->list)
        gp_look_add_end(&e->sb, exam, errors);
    else if (json_is_null(json_object_get(e->document, "doctor")))
        (void)json_object_set_new(e->document, "doctor", gp_look_first_json(exam, errors));
}

/* ---- logs ---- */

int gp_explain_read_log(struct gp_explain_run *e, int fd, struct gp_err *err)
{
    const struct gp_log_errors_calls calls = {
        .failure = e->has_incidents ? NULL : on_failure,
        .known = on_known,
        .context = e,
        .has_soft = e->options->has_soft,
    };
    int r = gp_log_errors_read(fd, e->name, &calls, err);
    if (e->r < 0)
        return gp_err_copy(err, &e->err);
    if (r == 0)
        return write_text(e, err);
    (void)!write_text(e, NULL); /* what was found before the error */
    return r;
}

int gp_explain_read_file(struct gp_explain_run *e, const char *path, struct gp_err *err)
{
    struct stat st;
    bool never_waits = e->options->never_waits;
    bool is_stdin = strcmp(path, "-") == 0 && !never_waits;
    int flags = O_RDONLY | O_CLOEXEC | (never_waits ? O_NONBLOCK | O_NOCTTY : 0);
    int fd = is_stdin ? STDIN_FILENO : open(path, flags);
    e->name = is_stdin ? "(stdin)" : path;
    if (fd < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot open %s", path);
    int r = never_waits && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
                ? gp_err_set(err, GP_EIO, "%s is neither a file nor a directory", path)
                : gp_explain_read_log(e, fd, err);
    if (!is_stdin)
        (void)close(fd);
    return r;
}
