/* gpulse explain: why a program failed, from its output. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/companion.h"
#include "cmd/doctor.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/scan.h"
#include "out/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 65536 };

struct explain_options {
    const char *format;
    bool all;
};

static const struct gp_opt options[] = {
    {'a', "all", NULL, GP_OPT_FLAG, .offset = offsetof(struct explain_options, all),
     .help = "include messages that look like a failure but are not"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json",
     .offset = offsetof(struct explain_options, format), .help = "output format (default text)"},
    GP_OPT_END,
};

struct explain {
    const struct explain_options *options;
    const char *name;    /* of the log */
    struct gp_strbuf sb; /* text output */
    json_t *list;        /* JSON output */
    size_t found;
    struct gp_incident last; /* not printed yet: it may be repeated */
    bool has_last;
    uint64_t repeats, repeat_line; /* how often, and the line of the last repetition */
};

/* ---- what is found ---- */

static void tell_text(struct explain *e)
{
    gp_utf8_add_safe(&e->sb, e->name, strlen(e->name), 1000);
    gp_strbuf_addf(&e->sb, ":%" PRIu64 ": %s\n", e->last.line_number, e->last.line);
    if (e->repeats)
        gp_strbuf_addf(&e->sb, "    and %" PRIu64 " more like it, up to line %" PRIu64 "\n",
                       e->repeats, e->repeat_line);
    gp_incident_add_causes(&e->sb, &e->last);
}

static void tell_json(struct explain *e)
{
    char name[1024];
    json_t *object = gp_incident_json(&e->last);
    gp_utf8_copy_safe(name, sizeof(name), e->name);
    (void)json_object_set_new(object, "file", json_string(name));
    (void)json_object_set_new(object, "repeats", json_integer((json_int_t)e->repeats));
    (void)json_array_append_new(e->list, object);
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

/* Whether two incidents are the same: on the same GPU, and with the same first words. */
static bool is_same(const struct gp_incident *a, const struct gp_incident *b)
{
    const size_t words = 60;
    return strcmp(a->failure.id, b->failure.id) == 0 &&
           a->failure.values[GP_FAILURE_ORDINAL] == b->failure.values[GP_FAILURE_ORDINAL] &&
           strncmp(a->line, b->line, words) == 0;
}

static void found(void *context, const struct gp_incident *incident)
{
    struct explain *e = context;
    if (incident->failure.class == GP_FAILURE_SOFT && !e->options->all)
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

/* ---- logs ---- */

/* Writes the finished text output. */
static int write_text(struct explain *e, struct gp_err *err)
{
    if (e->list || e->sb.len == 0)
        return 0;
    int r = gp_app_write(STDOUT_FILENO, &e->sb, err);
    gp_strbuf_reset(&e->sb);
    return r;
}

static int read_log(struct explain *e, int fd, struct gp_err *err)
{
    static char chunk[CHUNK];
    const struct gp_scan_calls calls = {.found = found, .context = e};
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
    if (r == 0)
        return write_text(e, err);
    (void)!write_text(e, NULL); /* what was found before the error */
    return r;
}

static int explain_log(struct explain *e, const char *path, struct gp_err *err)
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

static int print(struct explain *e, struct gp_err *err)
{
    if (e->list) {
        json_t *document =
            json_pack("{s:s, s:O}", "schema", "gpulse.explain/1", "incidents", e->list);
        gp_json_add(&e->sb, document, 2);
        gp_strbuf_addc(&e->sb, '\n');
    } else if (e->found == 0) {
        gp_strbuf_adds(&e->sb, "no known GPU failure found in the log; gpulse doctor explain FILE "
                               "looks for other errors, too\n");
    }
    return gp_app_write(STDOUT_FILENO, &e->sb, err);
}

static bool has_log(int count, char *const *words)
{
    for (int i = 0; i < count; i++)
        if (gp_app_is_log(words[i], count == 1))
            return true;
    return false;
}

/* A code or a line: gpulse doctor explain has the tables. */
static int explain_words(const struct explain_options *o, int count, char *const *words,
                         struct gp_err *err)
{
    static char name[] = "doctor", format[] = "-f", json[] = "json", text[] = "text", end[] = "--",
                verb[] = "explain";
    char *const first[] = {name, format, strcmp(o->format, "json") == 0 ? json : text, end, verb};
    enum { FIRST = GP_ARRAY_LEN(first) };
    struct gp_doctor_options values = {0};
    char **argv = calloc((size_t)count + FIRST + 1, sizeof(*argv));
    if (!argv)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    memcpy(argv, first, sizeof(first));
    memcpy(argv + FIRST, words, (size_t)count * sizeof(*argv));
    int r =
        gp_companion_run(&gp_cmd_doctor, "gpulse-doctor", &values, true, count + FIRST, argv, err);
    free(argv);
    return r;
}

static int explain_main(int argc, char **argv, struct gp_err *err)
{
    struct explain_options o = {.format = "text"};
    static struct explain e; /* large */
    int positional;
    bool done;
    e.options = &o;
    gp_strbuf_init(&e.sb, 256 << 20);
    int r = gp_app_parse(&gp_cmd_explain, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "missing ERROR; give a log, - for standard input, a line in quotes, or a "
                          "code such as xid 79");
    if (!has_log(positional, argv + 1))
        return explain_words(&o, positional, argv + 1, err);
    if (strcmp(o.format, "json") == 0)
        e.list = json_array();
    gp_failure_prepare();
    for (int i = 0; r == 0 && i < positional; i++)
        r = explain_log(&e, argv[1 + i], err);
    if (r == 0)
        r = print(&e, err);
    json_decref(e.list);
    gp_strbuf_fini(&e.sb);
    return r;
}

const struct gp_cmd gp_cmd_explain = {
    .name = "explain",
    .summary = "explain an error: a program's log, a line, or a code",
    .usage = "[options] FILE... | ERROR",
    .description =
        "Finds the messages that PyTorch, vLLM, llama.cpp, JAX, TensorFlow, ONNX Runtime, CuPy, "
        "NCCL, Triton, the CUDA libraries, the kernel and Slurm print when GPU or host memory runs "
        "out. For each one it names the cause, with the numbers in the message, and the fix. "
        "Messages that only look like a failure are ignored. FILE is a log, or - for standard "
        "input.\n"
        "\n"
        "ERROR is a line of an error message, or a code: xid 79, sxid N, cuda 802, nvml 18, "
        "throttle sw_power_cap. gpulse doctor explain does the same, and also explains the lines "
        "of a "
        "kernel log one by one.\n"
        "\n"
        "Which processes used the memory can only be seen at the time of the failure: gpulse run "
        "records it.",
    .examples = "gpulse explain train.log\tshow why a job failed\n"
                "journalctl -k | gpulse explain -\tshow what the kernel killed\n"
                "gpulse explain xid 79\texplain an error number\n",
    .options = options,
    .no_loop = true,
    .complete = GP_COMPLETE_FILE,
    .run = explain_main,
};
