/* What is known without asking the driver: errors of programs, and the memory of models. */
#include "lib/lib.h"

#include "base/strbuf.h"
#include "doctor/explain/explain_record.h"
#include "doctor/explain/explain_words.h"
#include "doctor/explain/explanation.h"
#include "doctor/explain/log_errors.h"
#include "jobs/failure.h"
#include "jobs/mem_model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 256 << 20, ERROR_MOST = 1 << 20 };

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, gp_failure_prepare);
}

/* Hands the text over, and frees the buffer. */
static int give_text(struct gp_strbuf *sb, char **ret, struct gp_err *err)
{
    char *text = sb->error ? NULL : strdup(sb->buf);
    const int error = sb->error ? sb->error : GP_ENOMEM;
    gp_strbuf_fini(sb);
    if (!text)
        return gp_err_set(err, error, "%s", gp_err_text(error));
    *ret = text;
    return 0;
}

int gpulse_explain(const char *text, char **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MOST);
    struct gp_known_errors *errors = calloc(1, sizeof(*errors)); /* large */
    char *copy = strdup(text);
    char *const words[] = {copy};
    *ret = NULL;
    prepare();
    int r = errors && copy ? 0 : gp_err_set(&err, GP_ENOMEM, "out of memory");
    if (r == 0 && strlen(text) >= ERROR_MOST)
        r = gp_err_set(&err, GP_ETOOBIG, "the text has %zu bytes: explain it as a log",
                       strlen(text));
    if (r == 0)
        r = gp_explain_check_words(1, words, &err);
    if (r == 0) {
        r = gp_explain_words(errors, 1, words, &err);
        if (r == 0)
            gp_known_errors_add_json(&sb, errors, NULL);
        gp_known_errors_fini(errors);
    }
    if (r == 0)
        r = give_text(&sb, ret, &err);
    free(copy);
    free(errors);
    return r < 0 ? gp_lib_fail(error, &err, r) : 0;
}

static int add_text(void *context, const struct gp_strbuf *text, struct gp_err *err)
{
    struct gp_strbuf *sb = context;
    gp_strbuf_add(sb, text->buf, text->len);
    const int error = text->error ? text->error : sb->error;
    return error ? gp_err_set(err, error, "%s", gp_err_text(error)) : 0;
}

int gpulse_explain_log(const char *path, char **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MOST);
    const struct gp_explain_options options = {
        .as_json = true, .never_waits = true, .write = add_text, .context = &sb};
    char *copy = strdup(path);
    char *const words[] = {copy};
    bool is_found;
    *ret = NULL;
    prepare();
    int r = copy ? 0 : gp_err_set(&err, GP_ENOMEM, "out of memory");
    if (r == 0)
        r = gp_explain_logs(&options, 1, words, &is_found, &err);
    if (r == 0)
        r = give_text(&sb, ret, &err);
    else
        gp_strbuf_fini(&sb);
    free(copy);
    return r < 0 ? gp_lib_fail(error, &err, r) : 0;
}

void gpulse_text_free(char *text)
{
    free(text);
}

/* ---- memory of models ---- */

_Static_assert((int)GP_TERM__COUNT <= (int)GPULSE_TERMS, "every term has room");

int gpulse_estimate_model(const struct gpulse_model *given, struct gpulse_estimate *ret,
                          struct gpulse_error *error)
{
    struct gp_err err = {0};
    struct gpulse_model model = {.size = sizeof(model)};
    struct gp_model sizes;
    bool is_asked;
    gp_lib_take(&model, sizeof(model), given);
    const struct gp_mem_model options = {
        .params = model.params,
        .dtype = model.dtype,
        .optimizer = model.optimizer,
        .batch = model.batch,
        .seq = model.seq,
        .layers = model.layers,
        .hidden = model.hidden,
        .vocab = model.vocab,
        .heads = model.heads,
        .inference = model.inference,
    };
    int r = gp_lib_check_size(model.size, "gpulse_model", &err);
    if (r == 0)
        r = gp_lib_check_size(ret->size, "gpulse_estimate", &err);
    if (r == 0)
        r = model.params ? gp_mem_model_read(&options, &sizes, &is_asked, &err)
                         : gp_err_set(&err, GP_EUSAGE, "the model needs params, such as 7B");
    if (r < 0)
        return gp_lib_fail(error, &err, r);
    const struct gp_estimate e = gp_estimate(&sizes);
    struct gpulse_estimate own = {.total = e.total, .split = e.split, .count = (unsigned)e.count};
    for (size_t i = 0; i < e.count; i++) {
        own.terms[i].name = gp_term_word(e.terms[i].kind);
        own.terms[i].bytes = e.terms[i].bytes;
        own.terms[i].about = e.terms[i].about;
        (void)snprintf(own.terms[i].formula, sizeof(own.terms[i].formula), "%s",
                       e.terms[i].formula);
    }
    gp_lib_give(ret, &own, sizeof(own));
    return 0;
}
