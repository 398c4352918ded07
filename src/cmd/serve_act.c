#include "cmd/serve_act.h"

#include "cmd/app.h"

#include "base/clock.h"
#include "base/err.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

static int fail(const struct gpulse_error *error, struct gp_err *err)
{
    static const struct {
        int public, own;
    } codes[] = {
        {GPULSE_EUSAGE, GP_EUSAGE}, {GPULSE_ENODEV, GP_ENODEV}, {GPULSE_EDRIVER, GP_EDRIVER},
        {GPULSE_EPERM, GP_EPERM},   {GPULSE_ENOMEM, GP_ENOMEM}, {GPULSE_ETIMEOUT, GP_ETIMEOUT},
        {GPULSE_EBUSY, GP_EBUSY},   {GPULSE_ENEVER, GP_ENEVER}, {GPULSE_ECANCELED, GP_EINTR},
    };
    int own = GP_EFAIL;
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++)
        if (codes[i].public == error->code)
            own = codes[i].own;
    own = gp_err_set(err, own, "%s", error->text);
    err->driver_code = error->driver_code;
    return own;
}

/* The machine and the GPUs of the command line, unless the request names others. */
static struct gpulse_options options_of(const struct gp_serve_params *p)
{
    const struct gp_observed *machine = gp_app_observed();
    return (struct gpulse_options){
        .size = sizeof(struct gpulse_options),
        .sim = machine->sim,
        .root = machine->root,
        .gpus = p->gpus ? p->gpus : gp_common()->id,
        .timeout_ns = p->timeout_ns ? p->timeout_ns : gp_common()->timeout_ns,
    };
}

/* "" is an unknown text. */
static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

/* ---- free GPUs ---- */

static struct gpulse_request request_of(const struct gp_serve_params *p)
{
    return (struct gpulse_request){
        .size = sizeof(struct gpulse_request),
        .count = (unsigned)p->count,
        .at_most = (unsigned)p->at_most,
        .avoid = p->avoid,
        .prefer = p->prefer,
        .memory = p->memory,
        .total_memory = p->total_memory,
        .most_load = (unsigned)p->most_load,
        .most_celsius = (unsigned)p->most_celsius,
        .order = p->order,
        .name = p->name,
        .flags = (p->all ? GPULSE_ALL : 0U) | (p->share ? GPULSE_SHARE : 0U) |
                 (p->no_display ? GPULSE_NO_DISPLAY : 0U) | (p->same_node ? GPULSE_SAME_NODE : 0U) |
                 (p->nvlink ? GPULSE_NVLINK : 0U) | (p->ignore_mask ? GPULSE_IGNORE_MASK : 0U) |
                 (p->uuids ? GPULSE_UUIDS : 0U),
    };
}

static json_t *grant_object(const gpulse_grant *grant)
{
    json_t *uuids = json_array();
    for (size_t i = 0; i < gpulse_grant_count(grant); i++)
        (void)json_array_append_new(uuids, json_string(gpulse_grant_uuid(grant, i)));
    return json_pack("{s:s, s:s, s:o}", "mask", gpulse_grant_mask(grant), "gpus",
                     gpulse_grant_gpus(grant), "uuids", uuids);
}

int gp_serve_pick(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    const struct gpulse_options options = options_of(p);
    const struct gpulse_request request = request_of(p);
    struct gpulse_error error;
    gpulse_grant *grant;
    if (gpulse_pick(&options, &request, &grant, &error) < 0)
        return fail(&error, err);
    *ret = grant_object(grant);
    gpulse_release(grant);
    return 0;
}

int gp_serve_reserve(struct gp_grants *grants, const struct gp_serve_params *p, json_t **ret,
                     struct gp_err *err)
{
    const struct gpulse_options options = options_of(p);
    const struct gpulse_request request = request_of(p);
    struct gpulse_error error;
    size_t i = 0;
    while (i < GP_GRANTS_MAX && grants->items[i].id)
        i++;
    if (i == GP_GRANTS_MAX)
        return gp_err_set(err, GP_EBUSY, "at most %d reservations at the same time", GP_GRANTS_MAX);
    if (gpulse_reserve(&options, &request, &grants->items[i].grant, &error) < 0)
        return fail(&error, err);
    if (gp_grants_next_ns(grants) == UINT64_MAX)
        grants->kept_ns = gp_clock_mono_ns();
    grants->items[i].id = ++grants->last_id;
    *ret = grant_object(grants->items[i].grant);
    (void)json_object_set_new(*ret, "reservation", json_integer((json_int_t)grants->last_id));
    return 0;
}

static void end(struct gp_grants *grants, size_t i)
{
    gpulse_release(grants->items[i].grant);
    grants->items[i].id = 0;
    grants->items[i].is_lost = false;
}

int gp_serve_release(struct gp_grants *grants, const struct gp_serve_params *p, json_t **ret,
                     struct gp_err *err)
{
    for (size_t i = 0; p->reservation && i < GP_GRANTS_MAX; i++)
        if (grants->items[i].id == p->reservation) {
            end(grants, i);
            *ret = json_pack("{s:I}", "reservation", (json_int_t)p->reservation);
            return 0;
        }
    return gp_err_set(err, GP_EUSAGE, "there is no reservation %llu",
                      (unsigned long long)p->reservation);
}

uint64_t gp_grants_next_ns(const struct gp_grants *grants)
{
    for (size_t i = 0; i < GP_GRANTS_MAX; i++)
        if (grants->items[i].id)
            return grants->kept_ns + GP_NS_PER_S;
    return UINT64_MAX;
}

void gp_grants_keep(struct gp_grants *grants,
                    void (*on_loss)(void *ctx, uint64_t id, int code, const struct gp_err *err),
                    void *ctx)
{
    if (gp_grants_next_ns(grants) > gp_clock_mono_ns())
        return;
    grants->kept_ns = gp_clock_mono_ns();
    for (size_t i = 0; i < GP_GRANTS_MAX; i++) {
        struct gpulse_error error;
        struct gp_err err = {0};
        if (!grants->items[i].id)
            continue;
        const bool is_lost = gpulse_grant_keep(grants->items[i].grant, &error) < 0;
        if (is_lost && !grants->items[i].is_lost)
            on_loss(ctx, grants->items[i].id, fail(&error, &err), &err);
        grants->items[i].is_lost = is_lost;
    }
}

void gp_grants_end(struct gp_grants *grants)
{
    for (size_t i = 0; i < GP_GRANTS_MAX; i++)
        if (grants->items[i].id)
            end(grants, i);
}

/* ---- signals ---- */

static int signal_of(const char *name, int *ret, struct gp_err *err)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"term", SIGTERM}, {"int", SIGINT},   {"kill", SIGKILL}, {"hup", SIGHUP},
                   {"usr1", SIGUSR1}, {"usr2", SIGUSR2}, {"none", 0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (!name || strcasecmp(name, signals[i].name) == 0) {
            *ret = signals[i].number;
            return 0;
        }
    return gp_err_set(err, GP_EUSAGE,
                      "'signal' takes term, int, kill, hup, usr1, usr2, or none (to check only)");
}

/* Whether two texts are the same time: another session reckons it a few milliseconds differently,
 * and no pid is used again within a second. */
static bool is_same_start(const char *a, const char *b)
{
    uint64_t a_ns;
    uint64_t b_ns;
    if (!a || !gp_clock_parse_rfc3339(a, &a_ns) || !gp_clock_parse_rfc3339(b, &b_ns))
        return false;
    return (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) < GP_NS_PER_S;
}

/* The first row of the process; the number of rows: none. */
static size_t row_of(const gpulse_sample *sample, const struct gp_serve_params *p)
{
    const int pid = gpulse_metric_find("pid", NULL);
    const int start = gpulse_metric_find("process.start_time", NULL);
    const size_t rows = gpulse_sample_rows(sample, GPULSE_PROCESS);
    struct gpulse_value value;
    for (size_t row = 0; row < rows; row++)
        if (gpulse_sample_get(sample, pid, row, &value) == GPULSE_OK &&
            (uint64_t)value.u.i == p->pid) {
            const char *started = gpulse_sample_text(sample, start, row);
            return !p->start || is_same_start(started, p->start) ? row : rows;
        }
    return rows;
}

int gp_serve_signal(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    struct gpulse_options options = options_of(p);
    struct gpulse_error error;
    gpulse_session *session = NULL;
    gpulse_sample *sample = NULL;
    int number = 0;
    int r = signal_of(p->signal, &number, err);
    if (r < 0)
        return r;
    options.fields = "pid,process.start_time";
    r = gpulse_open(&options, &session, &error);
    if (r == 0)
        r = gpulse_take(session, &sample, &error);
    const size_t row = r == 0 ? row_of(sample, p) : 0;
    const bool is_found = r == 0 && row < gpulse_sample_rows(sample, GPULSE_PROCESS);
    if (is_found)
        r = gpulse_sample_signal(sample, row, number, &error);
    gpulse_sample_free(sample);
    (void)gpulse_close(session);
    if (r < 0)
        return fail(&error, err);
    if (!is_found)
        return gp_err_set(err, GP_EFAIL, "no process %llu%s%s uses a GPU",
                          (unsigned long long)p->pid, p->start ? " that started at " : "",
                          p->start ? p->start : "");
    *ret = json_pack("{s:I}", "pid", (json_int_t)p->pid);
    return 0;
}

/* ---- settings ---- */

static json_t *setting_object(const struct gpulse_setting *s)
{
    return json_pack(
        "{s:s, s:s, s:i, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", s->name, "unit", s->unit,
        "gpu", s->gpu, "mig", s->mig < 0 ? json_null() : json_integer(s->mig), "uuid", s->uuid,
        "value", text_or_null(s->value), "pending", text_or_null(s->pending), "default",
        text_or_null(s->fallback), "least", s->has_range ? json_real(s->least) : json_null(),
        "most", s->has_range ? json_real(s->most) : json_null(), "reason", text_or_null(s->reason));
}

static const char *outcome_word(enum gpulse_outcome outcome)
{
    static const char *const words[] = {
        [GPULSE_NOT_TRIED] = "not tried",
        [GPULSE_SAME] = "same",
        [GPULSE_DONE] = "done",
        [GPULSE_PENDING] = "pending",
        [GPULSE_UNVERIFIED] = "unverified",
        [GPULSE_FAILED] = "failed",
        [GPULSE_HUNG] = "hung",
    };
    return words[outcome];
}

static json_t *rows_of(const gpulse_settings *settings, bool is_change)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < gpulse_settings_count(settings); i++) {
        struct gpulse_setting s = {.size = sizeof(s)};
        (void)gpulse_settings_get(settings, i, &s);
        json_t *row = setting_object(&s);
        if (is_change) {
            (void)json_object_set_new(row, "wanted", text_or_null(s.wanted));
            (void)json_object_set_new(row, "after", text_or_null(s.after));
            (void)json_object_set_new(row, "outcome", json_string(outcome_word(s.outcome)));
            (void)json_object_set_new(row, "undo", text_or_null(gpulse_settings_undo(settings, i)));
        }
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

int gp_serve_settings(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    const struct gpulse_options options = options_of(p);
    struct gpulse_error error;
    gpulse_settings *settings;
    if (gpulse_settings_read(&options, &settings, &error) < 0)
        return fail(&error, err);
    *ret = json_pack("{s:o}", "settings", rows_of(settings, false));
    gpulse_settings_free(settings);
    return 0;
}

/* If some changes were made and others failed, the result says what became of each. */
int gp_serve_change(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    const struct gpulse_options options = options_of(p);
    struct gpulse_error error;
    gpulse_settings *settings;
    const unsigned flags =
        (p->check_only ? GPULSE_CHECK_ONLY : 0U) | (p->may_lose ? GPULSE_MAY_LOSE : 0U);
    const int r = gpulse_settings_change(&options, p->changes, flags, &settings, &error);
    if (!settings)
        return fail(&error, err);
    *ret = json_pack("{s:o, s:o}", "settings", rows_of(settings, true), "error",
                     r < 0 ? json_string(error.text) : json_null());
    gpulse_settings_free(settings);
    return 0;
}

/* ---- explanations and estimates ---- */

int gp_serve_explain(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    struct gpulse_error error;
    char *text;
    if (!p->text == !p->log)
        return gp_err_set(err, GP_EUSAGE, "explain needs either 'text' or 'log'");
    const int r = p->text ? gpulse_explain(p->text, &text, &error)
                          : gpulse_explain_log(p->log, &text, &error);
    if (r < 0)
        return fail(&error, err);
    *ret = json_loads(text, 0, NULL);
    gpulse_text_free(text);
    return 0;
}

int gp_serve_estimate(const struct gp_serve_params *p, json_t **ret, struct gp_err *err)
{
    const struct gpulse_model model = {
        .size = sizeof(model),
        .params = p->params,
        .dtype = p->dtype,
        .optimizer = p->optimizer,
        .inference = p->inference,
        .batch = p->batch,
        .seq = p->seq,
        .layers = p->layers,
        .hidden = p->hidden,
        .vocab = p->vocab,
        .heads = p->heads,
    };
    struct gpulse_estimate estimate = {.size = sizeof(estimate)};
    struct gpulse_error error;
    if (gpulse_estimate_model(&model, &estimate, &error) < 0)
        return fail(&error, err);
    json_t *terms = json_array();
    for (unsigned i = 0; i < estimate.count; i++)
        (void)json_array_append_new(
            terms, json_pack("{s:s, s:f, s:s, s:s}", "name", estimate.terms[i].name, "bytes",
                             estimate.terms[i].bytes, "formula", estimate.terms[i].formula, "about",
                             estimate.terms[i].about));
    *ret = json_pack("{s:f, s:f, s:o}", "total", estimate.total, "split", estimate.split, "terms",
                     terms);
    return 0;
}
