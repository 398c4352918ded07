/* gpulse-report: sums up a recording. */
#include "cmd/app.h"
#include "cmd/record_background.h"
#include "cmd/report.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "base/when.h"
#include "proc/groups.h"
#include "tape/report_write.h"
#include "tape/tape.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct gp_cmd command = {.name = "report",
                                      .usage = "[FILE] [options]",
                                      .options = gp_report_option_table,
                                      .takes_tape = true};

enum { OUTPUT_MAX = 1 << 30, CURRENCY_SIZE = 32, CURRENCY_COLUMNS = 8 };

/* ---- options ---- */

static int parse_moment(const char *option, const char *text, int64_t *ret_us, struct gp_err *err)
{
    uint64_t ns;
    if (!text)
        return 0;
    if (!gp_parse_since(text, gp_clock_wall_ns(), &ns))
        return gp_err_set(err, GP_EUSAGE,
                          "--%s: '%.60s' is not a time; try 7d, yesterday, 2026-11-01 or "
                          "\"2026-11-01 08:00\"",
                          option, text);
    *ret_us = (int64_t)(ns / GP_NS_PER_US);
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "2.1/h", "2.1 €/h", "$2.1/h", "2.1": the number, and what is around it as the currency. */
static bool split_price(const char *text, double *ret, char currency[CURRENCY_SIZE])
{
    static const char per_hour[] = "/h";
    char number[32];
    char words[64];
    size_t before = 0;
    while (text[before] && !is_digit(text[before]) && !strchr("-.,", text[before]))
        before++;
    const char *after = text + before;
    while (is_digit(*after) || *after == '.')
        after++;
    size_t digits = (size_t)(after - (text + before));
    after += strspn(after, " ");
    size_t rest = strlen(after);
    if (rest >= strlen(per_hour) && strcmp(after + rest - strlen(per_hour), per_hour) == 0)
        rest -= strlen(per_hour);
    /* an unquoted $2.1 is .1 after the shell */
    if (!is_digit(text[before]) || digits >= sizeof(number) || before + rest >= sizeof(words) ||
        (before && rest) || memchr(after, '/', rest) || strpbrk(after, "0123456789"))
        return false;
    (void)snprintf(number, sizeof(number), "%.*s", (int)digits, text + before);
    (void)snprintf(words, sizeof(words), "%.*s%.*s", (int)before, text, (int)rest, after);
    struct gp_strbuf safe = GP_STRBUF_INIT(CURRENCY_SIZE - 1);
    gp_utf8_add_safe(&safe, words, strlen(words), CURRENCY_COLUMNS);
    (void)snprintf(currency, CURRENCY_SIZE, "%s", safe.buf);
    gp_strbuf_fini(&safe);
    return gp_parse_number(number, ret);
}

static int parse_price(const char *text, struct gp_report_look *look, char currency[CURRENCY_SIZE],
                       struct gp_err *err)
{
    look->currency = currency;
    if (!text)
        return 0;
    look->has_price = split_price(text, &look->price, currency);
    return look->has_price ? 0
                           : gp_err_set(err, GP_EUSAGE,
                                        "--price: '%.60s' is not a price per hour; try 2.1/h or "
                                        "2.1€/h",
                                        text);
}

/* The tables of --by, in that order; each once. */
static void choose_tables(const struct gp_report_options *o, struct gp_report_query *query)
{
    const char *list = o->by ? o->by : o->idle_held_ns ? "" : "gpu,user";
    char word[16];
    if (o->idle_held_ns)
        query->by[query->by_count++] = GP_REPORT_IDLE;
    while (gp_parse_word(&list, ',', word, sizeof(word))) {
        enum gp_report_by by = GP_REPORT_GPU;
        size_t known = 0;
        while (by < GP_REPORT_IDLE && strcmp(gp_report_by_word(by), word) != 0)
            by++;
        while (known < query->by_count && query->by[known] != by)
            known++;
        if (known == query->by_count && by < GP_REPORT_IDLE)
            query->by[query->by_count++] = by;
    }
}

static int check_groups(const char *list, struct gp_err *err)
{
    char name[256];
    if (list && !*list)
        return gp_err_set(err, GP_EUSAGE, "--group needs the name of a group: getent group");
    while (list && gp_parse_word(&list, ',', name, sizeof(name)))
        if (!gp_group_exists(name))
            return gp_err_set(err, GP_EUSAGE,
                              "--group: there is no group '%.80s' on this machine; getent group "
                              "lists them",
                              name);
    return 0;
}

static int make_query(const struct gp_report_options *o, struct gp_report_query *query,
                      struct gp_err *err)
{
    static struct gp_selection selection;
    *query = (struct gp_report_query){
        .users = o->users,
        .groups = o->groups,
        .idle_held_us = (int64_t)(o->idle_held_ns / GP_NS_PER_US),
        .charts = o->format && strcmp(o->format, "html") == 0,
    };
    choose_tables(o, query);
    int r = parse_moment("since", o->since, &query->since_us, err);
    if (r == 0)
        r = parse_moment("until", o->until, &query->until_us, err);
    if (r == 0 && query->until_us && query->since_us >= query->until_us)
        r = gp_err_set(err, GP_EUSAGE, "--until is not after --since");
    if (r == 0)
        r = check_groups(o->groups, err);
    if (r == 0)
        r = gp_selection_parse_any(gp_common()->id, &selection, &query->selection, err);
    return r;
}

/* ---- output ---- */

static int write_report(const struct gp_report_options *o, const struct gp_strbuf *sb,
                        struct gp_err *err)
{
    if (!o->file || sb->error)
        return gp_app_write(STDOUT_FILENO, sb, err);
    return gp_outfile_replace(o->file, 0666, sb->buf, sb->len, false, err);
}

static int show(const struct gp_report_options *o, const struct gp_report_look *look,
                struct gp_err *err)
{
    static const struct {
        const char *name;
        void (*add)(struct gp_strbuf *sb, const struct gp_report_look *look);
    } formats[] = {
        {"json", gp_report_add_json},
        {"csv", gp_report_add_csv},
        {"markdown", gp_report_add_markdown},
        {"html", gp_report_add_html},
    };
    struct gp_strbuf sb = GP_STRBUF_INIT(OUTPUT_MAX);
    size_t i = 0;
    while (i < GP_ARRAY_LEN(formats) && (!o->format || strcmp(formats[i].name, o->format) != 0))
        i++;
    if (i < GP_ARRAY_LEN(formats))
        formats[i].add(&sb, look);
    else
        gp_report_add_text(&sb, look, o->file ? 0 : gp_io_columns());
    int r = write_report(o, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int run_report(const struct gp_report_options *o, const char *file, struct gp_err *err)
{
    char currency[CURRENCY_SIZE] = "";
    struct gp_report_query query;
    struct gp_report_look look = {.report = NULL};
    struct gp_tape *tape = NULL;
    static struct gp_report report; /* large */
    int r = make_query(o, &query, err);
    if (r == 0)
        r = parse_price(o->price, &look, currency, err);
    if (r == 0)
        r = gp_tape_open(file, &tape, err);
    if (r < 0)
        return r;
    r = gp_report_read(tape, &query, file, &report, err);
    if (r == 0) {
        look.report = &report;
        r = show(o, &look, err);
        gp_report_fini(&report);
    }
    gp_tape_close(tape);
    return r;
}

static int check_words(const struct gp_report_options *o, int count, char **argv,
                       struct gp_err *err)
{
    if (count > 1)
        return gp_err_set(err, GP_EUSAGE, "unexpected argument '%.80s'; give one recording",
                          argv[2]);
    if (count == 1 && gp_common()->tape)
        return gp_err_set(err, GP_EUSAGE, "give the recording once: as '%.80s', or with --tape",
                          argv[1]);
    if (gp_common()->at)
        return gp_err_set(err, GP_EUSAGE,
                          "--at does not apply to gpulse report; use --since and --until");
    if (o->file && strcmp(o->file, "-") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "--output needs a file name; omit it to write to standard output");
    return 0;
}

static int run_words(const struct gp_report_options *o, int count, char **argv, struct gp_err *err)
{
    static char own[GP_PATH_SIZE];
    const char *file = count > 0 ? argv[1] : gp_common()->tape;
    int r = check_words(o, count, argv, err);
    if (r == 0 && !file) {
        r = gp_record_own_file(own, err);
        file = own;
        if (r == 0 && access(own, F_OK) < 0)
            return gp_err_set(err, GP_EIO,
                              "there is no recording '%.200s'; start one with gpulse record start, "
                              "or give a FILE",
                              own);
    }
    return r < 0 ? r : run_report(o, file, err);
}

int main(int argc, char **argv)
{
    struct gp_report_options o = {.file = NULL};
    struct gp_err err = {0};
    int positional;
    bool done;
    gp_app_init_helper(&command);
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    if (r == 0 && !done)
        r = run_words(&o, positional, argv, &err);
    if (r < 0)
        gp_app_print_error(&err);
    return r < 0 ? gp_err_exit_status(r) : 0;
}
