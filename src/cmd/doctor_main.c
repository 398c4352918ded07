/* gpulse-doctor: examines a machine, or explains an error, advises on a framework, lists GPU
 * models. */
#include "cmd/app.h"
#include "cmd/doctor.h"
#include "cmd/doctor_ask.h"
#include "cmd/doctor_record.h"
#include "cmd/doctor_verbs.h"
#include "doctor/checks/all.h"
#include "doctor/report.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "doctor/bundle/bundle.h"
#include "doctor/bundle/collect.h"
#include "doctor/exam.h"
#include "doctor/tables_load.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct gp_cmd command = {.name = "doctor",
                                      .usage = "[options] [advise WHAT | explain ERROR | gpus "
                                               "[MODEL]]",
                                      .options = gp_doctor_table};

enum { EXIT_WARNED = 1, EXIT_FAILED = 2, RECORD_TIMEOUT_S = 2 };

/* Shows what would be written, and asks for confirmation on a terminal. */
static int confirm(const struct gp_bundle *bundle, const struct gp_doctor_options *o,
                   struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    char question[GP_PATH_SIZE];
    gp_bundle_add_list(bundle, &sb);
    (void)fputs(sb.buf, stderr);
    gp_strbuf_fini(&sb);
    if (o->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 0;
    (void)snprintf(question, sizeof(question), "Write this to %.*s", GP_PATH_SIZE - 32, o->bundle);
    return gp_app_confirm(question, "no bundle was written", err);
}

static int record(char **ret, struct gp_err *err)
{
    return gp_doctor_record(gp_app_timeout_ns(RECORD_TIMEOUT_S * GP_NS_PER_S), ret, err);
}

static int write_bundle(const struct gp_doctor_options *o, struct gp_exam *exam, struct gp_err *err)
{
    struct gp_bundle *bundle;
    int r = gp_bundle_new(&bundle, err);
    if (r < 0)
        return r;
    gp_collect(bundle, exam, record);
    r = gp_bundle_finish(bundle, err);
    if (r == 0)
        r = confirm(bundle, o, err);
    if (r == 0)
        r = gp_bundle_write(bundle, o->bundle, err);
    if (r == 0)
        gp_io_print_note("gpulse",
                         gp_exam_text(exam, "wrote %s (%zu files); read it before you publish it",
                                      o->bundle, bundle->count));
    gp_bundle_free(bundle);
    return r;
}

static int examine(const struct gp_doctor_options *o, struct gp_err *err)
{
    static struct gp_exam exam; /* large */
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    int r = gp_doctor_open(&exam, o, true, err);
    if (r < 0)
        return r;
    gp_doctor_run(&exam, o->only, o->without);
    if (o->json)
        gp_doctor_add_json(&sb, &exam);
    else
        gp_doctor_add_text(&sb, &exam, o->verbose, gp_app_wants_color());
    r = gp_app_write(STDOUT_FILENO, &sb, err);
    if (r == 0 && o->bundle)
        r = write_bundle(o, &exam, err);
    const struct gp_finding *first = gp_exam_first(&exam);
    if (r == 0 && first)
        r = first->verdict == GP_VERDICT_FAIL ? EXIT_FAILED : EXIT_WARNED;
    gp_strbuf_fini(&sb);
    gp_doctor_close(&exam);
    return r;
}

/* Words of --only and --skip: an unknown one would silently change the selection. */
static int check_words(const char *option, const char *list, struct gp_err *err)
{
    size_t length;
    const char *word = gp_exam_unknown(&gp_checks_all, list, &length);
    if (!word)
        return 0;
    return gp_err_set(err, GP_EUSAGE,
                      "%s: unknown check or group '%.*s'; gpulse doctor --list shows them", option,
                      length < 60 ? (int)length : 60, word);
}

/* Options that are valid only with a verb, or only without one. */
static int check_options(const struct gp_doctor_options *o, const char *verb, struct gp_err *err)
{
    const struct {
        const char *name;
        bool is_set;
        const char *verb; /* NULL: none */
        bool is_general;  /* also without the verb */
    } options[] = {
        {"--only", o->only, NULL},
        {"--skip", o->without, NULL},
        {"--bundle", o->bundle, NULL},
        {"--python", o->python, "explain", true},
        {"--yes", o->yes, NULL},
        {"--watch-log", o->watch_log, NULL},
        {"--list", o->list, NULL},
        {"--gpu", o->gpu, "advise"},
        {"--driver", o->driver, "advise"},
        {"--all", o->all, "explain"},
        {"--no-look", o->no_look, "explain"},
        {"--stats", o->stats, "explain"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++) {
        bool is_alone = !options[i].verb || options[i].is_general;
        bool fits = verb ? options[i].verb && strcmp(verb, options[i].verb) == 0 : is_alone;
        if (options[i].is_set && !fits)
            return gp_err_set(err, GP_EUSAGE,
                              is_alone ? "%s cannot be combined with %s"
                                       : "%s requires gpulse doctor %s",
                              options[i].name, is_alone ? verb : options[i].verb);
    }
    return 0;
}

static int list_checks(struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_doctor_add_checks(&sb, &gp_checks_all);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int choose_tables(const char *folder, struct gp_err *err)
{
    struct gp_strbuf note = GP_STRBUF_INIT(16 << 10);
    int r = gp_tables_choose(folder, err);
    const struct gp_tables_state *tables = gp_tables_state();
    gp_strbuf_addf(&note, "%s; using the tables %s%s, of %s", tables->refused,
                   tables->folder[0] ? "in " : "that are built in", tables->folder, tables->date);
    if (r == 0 && tables->refused[0])
        gp_io_print_note("gpulse", note.buf);
    gp_strbuf_fini(&note);
    return r;
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct gp_doctor_options o = {.format = "text"};
    int positional;
    bool done;
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    o.json = o.json || strcmp(o.format, "json") == 0;
    r = choose_tables(o.tables, err);
    if (r < 0)
        return r;
    r = check_options(&o, positional > 0 ? argv[1] : NULL, err);
    if (r < 0)
        return r;
    if (positional > 0)
        return gp_doctor_verb(&o, positional, argv + 1, err);
    if (o.list)
        return list_checks(err);
    if (o.watch_log)
        return gp_doctor_watch(&o, err);
    if (o.only && !o.only[strspn(o.only, ",")])
        return gp_err_set(err, GP_EUSAGE,
                          "--only: missing checks or groups; gpulse doctor --list shows them");
    r = check_words("--only", o.only, err);
    if (r == 0)
        r = check_words("--skip", o.without, err);
    if (r == 0 && o.bundle)
        r = gp_bundle_check(o.bundle, err);
    return r < 0 ? r : examine(&o, err);
}

int main(int argc, char **argv)
{
    struct gp_err err = {0};
    gp_app_init_helper(&command);
    (void)setlocale(LC_CTYPE, "");
    int r = run(argc, argv, &err);
    if (r < 0 && err.code)
        gp_io_print_error("gpulse", &err);
    int status = r > 0 ? r : gp_err_exit_status(r);
    if (gp_app_is_stuck())
        _exit(status);
    return status;
}
