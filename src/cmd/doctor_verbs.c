#include "cmd/doctor_verbs.h"

#include "cmd/app.h"
#include "cmd/doctor_ask.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "doctor/advise/advise.h"
#include "doctor/advise/cards.h"
#include "doctor/explain/explain_record.h"
#include "doctor/explain/explain_words.h"
#include "doctor/explain/explanation.h"
#include "doctor/explain/log_errors.h"
#include "doctor/explain/look.h"
#include "jobs/failure.h"
#include "jobs/recorded.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_NOTHING_FITS = 1, EXIT_UNKNOWN = 1 };

static int print(const struct gp_strbuf *text, struct gp_err *err)
{
    return gp_app_write(STDOUT_FILENO, text, err);
}

/* ---- advise ---- */

static int advise(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    static struct gp_exam exam; /* large */
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_client client;
    enum gp_subject subject;
    const char *version;
    int r = gp_subject_parse(count, words, &subject, &version, err);
    if (r == 0)
        /* files say enough of a real machine, and a hanging driver holds nothing up */
        r = gp_doctor_open(&exam, o, gp_app_observed()->sim && !o->gpu, err);
    if (r < 0)
        return r;
    r = gp_client_read(&client, &exam, o->gpu, o->driver, version, err);
    if (r == 0) {
        gp_exam_advise(&exam, subject, &client);
        if (o->json)
            gp_advice_add_json(&sb, &exam, &client, subject);
        else
            gp_advice_add_text(&sb, &exam, &client, o->sources);
        r = print(&sb, err);
    }
    if (r == 0 && gp_exam_first(&exam))
        r = EXIT_NOTHING_FITS;
    gp_strbuf_fini(&sb);
    gp_doctor_close(&exam);
    return r;
}

/* ---- explain ---- */

struct looker {
    const struct gp_doctor_options *options;
    struct gp_exam exam; /* the last one */
    bool is_open;
};

/* Examines the machine: these checks in any case. */
static const struct gp_exam *look(void *context, const char *checks)
{
    struct looker *looker = context;
    struct gp_err err;
    if (looker->is_open && looker->exam.is_stuck)
        return &looker->exam;
    if (looker->is_open)
        gp_doctor_close(&looker->exam);
    looker->is_open = gp_doctor_open(&looker->exam, looker->options, true, &err) == 0;
    if (!looker->is_open) {
        gp_io_print_note("gpulse", err.text);
        return NULL;
    }
    looker->exam.wanted = checks;
    gp_doctor_run(&looker->exam, NULL, NULL);
    looker->exam.wanted = NULL; /* the list is the caller's */
    return &looker->exam;
}

static int print_stats(const struct gp_doctor_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (o->json)
        gp_explain_add_stats_json(&sb);
    else
        gp_explain_add_stats_text(&sb);
    int r = print(&sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int list_records(const struct gp_doctor_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    size_t count = gp_recorded_add_list(&sb, o->json);
    int r = print(&sb, err);
    if (count == 0)
        gp_io_print_note("gpulse", "no job of yours is recorded; gpulse run records jobs");
    gp_strbuf_fini(&sb);
    return r;
}

static int print_next(void *context, const struct gp_strbuf *text, struct gp_err *err)
{
    (void)context;
    return print(text, err);
}

static int explain_words(const struct gp_doctor_options *o,
                         const struct gp_explain_options *options, int count, char **words,
                         bool *ret_found, struct gp_err *err)
{
    static struct gp_known_errors errors; /* large */
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    int r = gp_explain_words(&errors, count, words, err);
    if (r == 0) {
        const struct gp_exam *exam = gp_look_for(&errors, options->look, options->look_context);
        if (o->json)
            gp_known_errors_add_json(&sb, &errors, exam);
        else
            gp_known_errors_add_text(&sb, &errors, exam, o->sources);
        r = print(&sb, err);
    }
    *ret_found = errors.count > 0;
    gp_strbuf_fini(&sb);
    gp_known_errors_fini(&errors);
    return r;
}

static int explain(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    static struct looker looker; /* large; threads that hang know it */
    const struct gp_explain_options options = {.as_json = o->json,
                                               .has_soft = o->all,
                                               .look = o->no_look ? NULL : look,
                                               .look_context = &looker,
                                               .write = print_next};
    bool has_log = false, is_found = false;
    if (o->stats)
        return count == 0
                   ? print_stats(o, err)
                   : gp_err_set(err, GP_EUSAGE, "--stats takes no argument '%.60s'", words[0]);
    int r = gp_explain_check_words(count, words, err);
    if (r < 0)
        return r;
    if (strcmp(words[0], "list") == 0 && access("list", F_OK) != 0)
        return count == 1
                   ? list_records(o, err)
                   : gp_err_set(err, GP_EUSAGE,
                                "list takes no argument '%.60s'; for one job: last N", words[1]);
    looker.options = o;
    gp_failure_prepare();
    for (int i = 0; i < count; i++)
        has_log = has_log || gp_explain_is_log(words[i], count == 1);
    r = has_log ? gp_explain_logs(&options, count, words, &is_found, err)
                : explain_words(o, &options, count, words, &is_found, err);
    return r < 0 || is_found ? r : EXIT_UNKNOWN;
}

/* ---- gpus ---- */

static int list_gpus(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    const struct gp_card *cards[GP_CARDS_MAX];
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    char query[256] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(query);
        (void)snprintf(query + used, sizeof(query) - used, "%s%s", i > 0 ? " " : "", words[i]);
    }
    size_t found = gp_cards_find(query, cards, GP_CARDS_MAX);
    if (found == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown GPU model '%.60s'%s; gpulse doctor gpus lists all models", query,
                          gp_cards_hint(query).text);
    found = found < GP_CARDS_MAX ? found : GP_CARDS_MAX;
    if (o->json)
        gp_cards_add_json(&sb, cards, found);
    else
        gp_cards_add_text(&sb, cards, found, o->sources);
    int r = print(&sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- which ---- */

static const struct {
    const char *word;
    int (*run)(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err);
} verbs[] = {
    {"advise", advise},
    {"explain", explain},
    {"gpus", list_gpus},
};

static const char *verb_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_ARRAY_LEN(verbs) ? verbs[i].word : NULL;
}

int gp_doctor_verb(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].word, words[0]) == 0)
            return verbs[i].run(o, count - 1, words + 1, err);
    return gp_err_set(
        err, GP_EUSAGE,
        "unknown argument '%.60s'%s; use advise, explain (as in: gpulse explain xid 79) or gpus",
        words[0], gp_cli_hint(words[0], verb_at, NULL).text);
}
