/* gpulse-verify: compares gpulse with nvidia-smi. `gpulse sim verify` runs it, with checked
 * options.
 */
#include "base/ask.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/metric.h"
#include "verify/report.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_MAX = 64 << 20, FIELDS_MAX = 1 << 16, ROUNDS = 3, EXIT_DIFFERENT = 1 };
enum { PAUSE_MS = 500 /* in which what moves has moved */ };

struct options {
    const char *nvidia_smi, *format;
    uint64_t timeout_ns;
    bool identities;
};

#define OPT(field) offsetof(struct options, field)

/* Help and checks are those of sim/cmd_verify.c. */
static const struct gp_opt table[] = {
    {0, "nvidia-smi", NULL, GP_OPT_STRING, "FILE", .offset = OPT(nvidia_smi)},
    {0, "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format)},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(timeout_ns)},
    {0, "identities", NULL, GP_OPT_FLAG, .offset = OPT(identities)},
    GP_OPT_END,
};

/* Both programs, and what they are asked. */
struct pair {
    const struct options *options;
    char nvidia_smi[GP_PATH_SIZE], gpulse[GP_PATH_SIZE];
    struct gp_strbuf fields;  /* of --query-gpu, that both know */
    struct gp_strbuf metrics; /* those of them that `gpulse query` knows, too */
};

static volatile int stopped;

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

/* ---- nvidia-smi ---- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The first in PATH that is not gpulse under this name. Relative folders are not searched. */
static bool find_in_path(struct pair *p)
{
    const char *path = getenv("PATH");
    struct stat st;
    while (path && *path) {
        size_t n = strcspn(path, ":");
        int len = snprintf(p->nvidia_smi, sizeof(p->nvidia_smi), "%.*s/nvidia-smi", (int)n, path);
        if (*path == '/' && len > 0 && (size_t)len < sizeof(p->nvidia_smi) &&
            access(p->nvidia_smi, X_OK) == 0 && stat(p->nvidia_smi, &st) == 0 &&
            S_ISREG(st.st_mode) && !is_same_file(p->nvidia_smi, p->gpulse))
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static int find_programs(struct pair *p, struct gp_err *err)
{
    const char *given = p->options->nvidia_smi;
    int r = gp_io_find_companion("", "gpulse", p->gpulse, err);
    if (r < 0)
        return r;
    if (!given && !find_in_path(p))
        return gp_err_set(err, GP_EDRIVER,
                          "nothing to compare with: no nvidia-smi in PATH; it comes with NVIDIA's "
                          "driver; name it with --nvidia-smi FILE");
    if (!given)
        return 0;
    if (access(given, X_OK) != 0 || strlen(given) >= sizeof(p->nvidia_smi))
        return gp_err_set(err, GP_EDRIVER, "--nvidia-smi: '%.200s' is not an executable file",
                          given);
    if (is_same_file(given, p->gpulse))
        return gp_err_set(err, GP_EUSAGE,
                          "--nvidia-smi: '%.200s' is gpulse itself; name the one that comes with "
                          "NVIDIA's driver",
                          given);
    (void)snprintf(p->nvidia_smi, sizeof(p->nvidia_smi), "%s", given);
    return 0;
}

/* ---- what each is asked ---- */

enum { WORDS = 8 };

/* nvidia-smi's arguments for a form, and gpulse's; *buffer owns the long one. */
static void set_words(const struct pair *p, enum gp_printed_form form, bool ours,
                      const char *words[WORDS], struct gp_strbuf *buffer)
{
    size_t n = 0;
    words[n++] = ours ? p->gpulse : p->nvidia_smi;
    if (ours && form == GP_PRINTED_QUERY) {
        static const char *const typed[] = {"query", NULL, "--format", "json", NULL};
        for (size_t i = 0; i < 4; i++)
            words[n++] = typed[i] ? typed[i] : p->metrics.buf;
        words[n] = NULL;
        return;
    }
    if (ours) { /* gpulse keeps older labels in the banner unless told otherwise */
        words[n++] = "smi";
        words[n++] = "--native";
    }
    if (form == GP_PRINTED_REPORT)
        words[n++] = "-q";
    else if (form == GP_PRINTED_FIELDS)
        words[n++] = "--help-query-gpu";
    else if (form == GP_PRINTED_LIST)
        words[n++] = "-L";
    else if (form != GP_PRINTED_TABLE) {
        gp_strbuf_addf(buffer, "--query-gpu=%s",
                       form == GP_PRINTED_CSV ? p->fields.buf : p->metrics.buf);
        words[n++] = buffer->buf;
        words[n++] = form == GP_PRINTED_CSV ? "--format=csv" : "--format=csv,noheader,nounits";
    }
    words[n] = NULL;
}

static int ask(const struct pair *p, enum gp_printed_form form, bool ours, struct gp_printed *ret,
               int *ret_status, struct gp_err *err)
{
    const char *words[WORDS];
    struct gp_strbuf buffer = GP_STRBUF_INIT(2 * FIELDS_MAX);
    struct gp_strbuf text = GP_STRBUF_INIT(OUTPUT_MAX);
    struct gp_err why = {0};
    set_words(p, form, ours, words, &buffer);
    int r = gp_ask(words[0], (char *const *)(uintptr_t)words, p->options->timeout_ns, &stopped,
                   &text, ret_status, err);
    if (r == 0) {
        r = gp_printed_read(ret, form, text.buf,
                            form == GP_PRINTED_CSV ? p->fields.buf : p->metrics.buf, &why);
        if (r < 0)
            (void)gp_err_set(err, r, "'%.120s' (exit status %d): %s", words[0], *ret_status,
                             why.text);
    }
    gp_strbuf_fini(&text);
    gp_strbuf_fini(&buffer);
    return r;
}

/* A sample of both. The output of the first can be read even if that of the second cannot. */
static int add_sample(const struct pair *p, struct gp_compared *c, struct gp_err *err)
{
    size_t i = c->samples;
    c->theirs[i] = c->ours[i] = (struct gp_printed){.count = 0};
    c->samples++;
    int r = ask(p, c->form, false, &c->theirs[i], &c->their_status[i], err);
    return r < 0 ? r : ask(p, c->form, true, &c->ours[i], &c->our_status[i], err);
}

static void count_difference(void *ctx, const struct gp_compared *c,
                             const struct gp_compared_value *value)
{
    size_t *count = ctx;
    (void)c;
    *count += value->agreement == GP_AGREE_NOT;
}

/* nvidia-smi, gpulse, nvidia-smi, gpulse; and again while something differs, which may only have
 * moved. */
static int compare(const struct pair *p, struct gp_compared *c, struct gp_err *err)
{
    size_t different = 1;
    int r = 0;
    for (int round = 0; r == 0 && round < ROUNDS && different > 0; round++) {
        if (round > 0)
            (void)poll(NULL, 0, PAUSE_MS);
        r = add_sample(p, c, err);
        if (r == 0)
            r = add_sample(p, c, err);
        different = 0;
        if (r == 0)
            r = gp_compare(c, count_difference, &different);
    }
    return r;
}

/* ---- the fields of --query-gpu ---- */

/* From the two help pages: the fields that both know. */
static void choose_fields(struct pair *p, const struct gp_compared *listed)
{
    const struct gp_printed *theirs = &listed->theirs[0];
    for (size_t i = 0; i < theirs->count; i++) {
        const char *name = theirs->values[i].name;
        enum gp_metric m;
        if (!gp_printed_find(&listed->ours[0], name))
            continue;
        gp_strbuf_addf(&p->fields, "%s%s", p->fields.len ? "," : "", name);
        if (gp_metric_find(name, &m, NULL) == 0 && strcmp(GP_METRIC_NAME(m), name) == 0 &&
            m != GP_TIMESTAMP)
            gp_strbuf_addf(&p->metrics, "%s%s", p->metrics.len ? "," : "", name);
    }
}

/* ---- the command ---- */

static int compare_all(struct pair *p, struct gp_verify_report *report, struct gp_err *err)
{
    static const enum gp_printed_form order[] = {GP_PRINTED_REPORT, GP_PRINTED_FIELDS,
                                                 GP_PRINTED_CSV,    GP_PRINTED_LIST,
                                                 GP_PRINTED_TABLE,  GP_PRINTED_QUERY};
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(order); i++) {
        struct gp_compared c = {.form = order[i]};
        r = compare(p, &c, err);
        if (r == 0 && c.form == GP_PRINTED_FIELDS)
            choose_fields(p, &c);
        if (r == 0)
            r = gp_verify_report_add(report, &c);
        gp_compared_fini(&c);
    }
    return r;
}

static int print(const struct options *o, const struct gp_verify_report *report, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    if (strcmp(o->format, "json") == 0) {
        json_t *document = gp_verify_report_json(report);
        char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        gp_strbuf_addf(&sb, "%s\n", text ? text : "null");
        free(text);
        json_decref(document);
    } else {
        gp_verify_report_add_text(&sb, report);
    }
    int r = sb.error
                ? gp_err_set(err, sb.error, "cannot print the result: %s", gp_err_text(sb.error))
                : gp_io_write_all(STDOUT_FILENO, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    return r < 0 && !err->code ? gp_err_system(err, -r, GP_EIO, "cannot write the result") : r;
}

static int run(const struct options *o, struct gp_err *err)
{
    static struct pair p; /* large */
    p.options = o;
    gp_strbuf_init(&p.fields, FIELDS_MAX);
    gp_strbuf_init(&p.metrics, FIELDS_MAX);
    int r = find_programs(&p, err);
    const struct gp_verify_head head = {
        .nvidia_smi = p.nvidia_smi, .version = GPULSE_VERSION, .shows_identities = o->identities};
    struct gp_verify_report *report = r == 0 ? gp_verify_report_new(&head) : NULL;
    if (r == 0 && !report)
        r = GP_ENOMEM;
    if (r == 0)
        r = compare_all(&p, report, err);
    if (r == 0)
        r = print(o, report, err);
    if (r == 0 && gp_verify_report_counts(report).different > 0)
        r = EXIT_DIFFERENT;
    gp_verify_report_free(report);
    gp_strbuf_fini(&p.fields);
    gp_strbuf_fini(&p.metrics);
    return r < 0 && !err->code ? gp_err_set(err, r, "%s", gp_err_text(r)) : r;
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct options o = {.format = "text", .timeout_ns = 30 * GP_NS_PER_S};
    const struct gp_opt_target target = {table, &o};
    struct gp_err err = {0};
    int positional;
    gp_io_secure_standard_fds();
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        (void)sigaction(signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    int r = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, &err);
    if (r == 0)
        r = run(&o, &err);
    if (r < 0)
        gp_io_print_error("gpulse sim", &err);
    return r > 0 ? r : gp_err_exit_status(r);
}
