#include "jobs/ask_doctor.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/tail.h"
#include "jobs/watch.h"

#include <jansson.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOWN = 100 };

/* ---- asking gpulse-doctor, which has the tables ---- */

static bool spawn_and_wait(const char *program, char *const argv[], int from, int to)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool ok = posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO) == 0 &&
              posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO) == 0 &&
              posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0) == 0 &&
              posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    return ok && waitpid(pid, NULL, 0) == pid;
}

json_t *gp_ask_doctor_document(char *const argv[], const char *text, size_t size)
{
    char program[GP_PATH_SIZE];
    json_t *document = NULL;
    if (gp_io_find_companion("", "gpulse-doctor", program, NULL) < 0)
        return NULL;
    int from = memfd_create("question", MFD_CLOEXEC);
    int to = memfd_create("answer", MFD_CLOEXEC);
    if (from >= 0 && to >= 0 && gp_io_write_all(from, text, size) == 0 &&
        lseek(from, 0, SEEK_SET) == 0 && spawn_and_wait(program, argv, from, to) &&
        lseek(to, 0, SEEK_SET) == 0)
        document = json_loadfd(to, 0, NULL);
    if (from >= 0)
        (void)close(from);
    if (to >= 0)
        (void)close(to);
    return document;
}

/* ---- its answer ---- */

static const char *text_of(const json_t *known, const char *key)
{
    const char *text = json_string_value(json_object_get(known, key));
    return text ? text : "";
}

/* Later errors are often consequences of the first one. NULL: none. */
static const json_t *first_error(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_of(json_array_get(list, i), "advice"), "no action is needed") != 0)
            return json_array_get(list, i);
    return NULL;
}

/* "gpulse explain cuda 700" */
static void add_command(struct gp_strbuf *sb, const json_t *known)
{
    const char *id = text_of(known, "id");
    const char *dot = strchr(id, '.');
    if (dot && dot[1 + strspn(dot + 1, "0123456789")] == '\0')
        gp_strbuf_addf(sb, "; more: gpulse explain %.*s %s", (int)(dot - id), id, dot + 1);
}

static void tell_error(const struct gp_watch *watch, const json_t *known)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    const char *line = text_of(known, "line");
    gp_utf8_add_safe(&sb, line, strlen(line), SHOWN);
    gp_watch_warn(watch, "it failed after this message: %s", sb.buf);
    gp_strbuf_reset(&sb);
    const char *maybe = text_of(known, "maybe");
    gp_strbuf_addf(&sb, "    %s: %s%s%s\n      -> %s", text_of(known, "title"),
                   text_of(known, "words"), maybe[0] ? "; maybe: " : "", maybe,
                   text_of(known, "advice"));
    add_command(&sb, known);
    gp_strbuf_addc(&sb, '\n');
    gp_watch_tell_more(watch, sb.buf);
    gp_strbuf_fini(&sb);
}

void gp_ask_doctor(const struct gp_watch *watch, const struct gp_tail *tail)
{
    /* the first line may have lost its beginning */
    const char *end = tail->bytes + tail->size;
    const char *text =
        tail->size == sizeof(tail->bytes) ? memchr(tail->bytes, '\n', tail->size) : tail->bytes;
    char name[] = "gpulse-doctor", verb[] = "explain", json[] = "--json", input[] = "-",
         no_look[] = "--no-look";
    char *argv[] = {name, verb, json, no_look, input, NULL};
    json_t *document =
        text && text < end ? gp_ask_doctor_document(argv, text, (size_t)(end - text)) : NULL;
    const json_t *known = first_error(json_object_get(document, "known"));
    if (known)
        tell_error(watch, known);
    json_decref(document);
}
