#include "out/rpc.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static int pass_line(struct gp_rpc_lines *lines, gp_rpc_on_line *on_line, void *ctx)
{
    const bool is_too_long = lines->is_too_long;
    const size_t size = lines->size;
    size_t blank = 0;
    lines->is_too_long = false;
    lines->size = 0;
    while (blank < size && strchr(" \t\r", lines->text[blank]) && lines->text[blank])
        blank++;
    if (blank == size && !is_too_long)
        return 0;
    return on_line(ctx, is_too_long ? NULL : lines->text, size);
}

int gp_rpc_lines_take(struct gp_rpc_lines *lines, const char *data, size_t size,
                      gp_rpc_on_line *on_line, void *ctx)
{
    const char *const end = data + size;
    int r = 0;
    while (r >= 0 && data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const size_t n = (size_t)((newline ? newline : end) - data);
        if (n > sizeof(lines->text) - lines->size)
            lines->is_too_long = true;
        if (!lines->is_too_long) {
            memcpy(lines->text + lines->size, data, n);
            lines->size += n;
        }
        if (newline)
            r = pass_line(lines, on_line, ctx);
        data += n + (newline ? 1 : 0);
    }
    return r < 0 ? r : 0;
}

int gp_rpc_lines_end(struct gp_rpc_lines *lines, gp_rpc_on_line *on_line, void *ctx)
{
    const int r = pass_line(lines, on_line, ctx);
    return r < 0 ? r : 0;
}

/* ---- errors ---- */

enum {
    PARSE_ERROR = -32700,
    INVALID_REQUEST = -32600,
    NO_METHOD = -32601,
    INVALID_PARAMS = -32602,
    FAILED = -32000, /* the first of those that are a server's own */
};

/* `text` may quote the request. */
static json_t *error_object(int number, const char *kind, const char *text, int driver_code)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&safe, text, strlen(text), 1024);
    json_t *error =
        json_pack("{s:i, s:s, s:{s:s}}", "code", number, "message", safe.buf, "data", "kind", kind);
    if (driver_code)
        (void)json_object_set_new(json_object_get(error, "data"), "driver_code",
                                  json_integer(driver_code));
    gp_strbuf_fini(&safe);
    return error;
}

json_t *gp_rpc_error(int code, const struct gp_err *err)
{
    static const struct {
        int code;
        const char *kind;
    } kinds[] = {
        {GP_EUSAGE, "usage"},     {GP_EFORMAT, "usage"},    {GP_ENODEV, "no-device"},
        {GP_EDRIVER, "driver"},   {GP_EPERM, "permission"}, {GP_ENOMEM, "memory"},
        {GP_ETIMEOUT, "timeout"}, {GP_EBUSY, "busy"},       {GP_ENEVER, "never"},
    };
    const char *kind = "failed";
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++)
        if (kinds[i].code == code)
            kind = kinds[i].kind;
    return error_object(strcmp(kind, "usage") == 0 ? INVALID_PARAMS : FAILED, kind,
                        err->text[0] ? err->text : gp_err_text(code), err->driver_code);
}

/* The response with that member; it has the id of the request, or null. Releases `value`. */
static json_t *response(json_t *id, const char *member, json_t *value)
{
    json_t *found = id ? json_incref(id) : json_null();
    return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", found, member, value);
}

static json_t *refuse(json_t *id, int number, const char *text)
{
    return response(id, "error", error_object(number, "usage", text, 0));
}

/* ---- parameters ---- */

struct names {
    const struct gp_rpc_service *service;
    const char *takes;
};

static const char *next_param(const void *ctx, size_t i)
{
    const struct names *names = ctx;
    for (size_t p = 0; p < names->service->param_count; p++) {
        const char *name = names->service->params[p].name;
        if (gp_cli_list_has(names->takes, name, strlen(name)) && i-- == 0)
            return name;
    }
    return NULL;
}

static const char *next_method(const void *ctx, size_t i)
{
    const struct gp_rpc_service *service = ctx;
    return i < service->method_count ? service->methods[i].name : NULL;
}

static int take_text(struct gp_strbuf *sb, bool is_good, char **ret)
{
    if (sb->error || !is_good || sb->len == 0) {
        const int code = sb->error == GP_ENOMEM ? GP_ENOMEM : GP_EUSAGE;
        gp_strbuf_fini(sb);
        return code;
    }
    *ret = sb->buf;
    return 0;
}

/* Texts, whole numbers and, where the caller takes them, fractions and flags. */
static bool add_word(struct gp_strbuf *sb, const json_t *value)
{
    if (json_is_string(value))
        gp_strbuf_adds(sb, json_string_value(value));
    else if (json_is_integer(value))
        gp_strbuf_addf(sb, "%lld", json_integer_value(value));
    else if (json_is_real(value))
        gp_strbuf_addf(sb, "%.15g", json_real_value(value));
    else if (json_is_boolean(value))
        gp_strbuf_adds(sb, json_is_true(value) ? "on" : "off");
    else
        return false;
    return true;
}

static int read_list(const json_t *value, char **ret)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_RPC_LINE_MAX);
    const bool is_array = json_is_array(value);
    const size_t count = is_array ? json_array_size(value) : 1;
    bool is_good = count > 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = is_array ? json_array_get(value, i) : value;
        if (i > 0)
            gp_strbuf_addc(&sb, ',');
        is_good =
            is_good &&
            (json_is_string(item) || (json_is_integer(item) && json_integer_value(item) >= 0)) &&
            add_word(&sb, item);
    }
    return take_text(&sb, is_good, ret);
}

static int read_pairs(json_t *value, char **ret)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_RPC_LINE_MAX);
    bool is_good = true;
    if (!json_is_object(value))
        return take_text(&sb, json_is_string(value) && add_word(&sb, value), ret);
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        const size_t before = sb.len;
        gp_strbuf_addf(&sb, "%s=", json_object_iter_key(at));
        is_good = is_good && add_word(&sb, json_object_iter_value(at)) && !sb.error &&
                  !strpbrk(sb.buf + before, " \t\n");
        gp_strbuf_addc(&sb, ' ');
    }
    return take_text(&sb, is_good, ret);
}

static bool read_size(const json_t *value, uint64_t *ret)
{
    if (json_is_string(value))
        return gp_parse_memory(json_string_value(value), ret);
    *ret = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static int read_number(const struct gp_rpc_param *param, const json_t *value, uint64_t *ret,
                       struct gp_err *err)
{
    const json_int_t number = json_integer_value(value);
    *ret = (uint64_t)number;
    if (!json_is_integer(value) || number < 0)
        return gp_err_set(err, GP_EUSAGE, "'%s' takes a whole number", param->name);
    if (param->most > 0 && (double)number > param->most)
        return gp_err_set(err, GP_EUSAGE, "'%s' can be at most %.0f", param->name, param->most);
    return 0;
}

static int read_param(const struct gp_rpc_param *param, json_t *value, char *params,
                      struct gp_err *err)
{
    void *const field = params + param->offset;
    const double seconds = json_number_value(value);
    const char *takes = "a text such as \"a,b\", or an array of texts and whole numbers";
    int r = 0;
    switch (param->type) {
    case GP_RPC_TIME:
        if (!json_is_number(value) || !(seconds >= param->least && seconds <= param->most))
            return gp_err_set(err, GP_EUSAGE, "'%s' takes a number of seconds from %g to %g",
                              param->name, param->least, param->most);
        *(uint64_t *)field = (uint64_t)(seconds * (double)GP_NS_PER_S);
        return 0;
    case GP_RPC_NUMBER:
        return read_number(param, value, field, err);
    case GP_RPC_SIZE:
        takes = "a number of bytes, or a text such as \"20GiB\"";
        r = read_size(value, field) ? 0 : GP_EUSAGE;
        break;
    case GP_RPC_FLAG:
        takes = "true or false";
        *(bool *)field = json_is_true(value);
        r = json_is_boolean(value) ? 0 : GP_EUSAGE;
        break;
    case GP_RPC_TEXT:
        takes = "a text";
        *(char **)field = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
        r = !json_is_string(value) ? GP_EUSAGE : *(char **)field ? 0 : GP_ENOMEM;
        break;
    case GP_RPC_PAIRS:
        takes = "a text such as \"a=b c=d\", or an object of texts and numbers without blanks";
        r = read_pairs(value, field);
        break;
    case GP_RPC_LIST:
    default:
        r = read_list(value, field);
        break;
    }
    return r == GP_EUSAGE ? gp_err_set(err, r, "'%s' takes %s", param->name, takes) : r;
}

static int read_params(const struct gp_rpc_service *service, const struct gp_rpc_method *method,
                       json_t *given, char *params, struct gp_err *err)
{
    const struct names names = {service, method->takes};
    int r = 0;
    for (void *at = json_object_iter(given); at; at = json_object_iter_next(given, at)) {
        const char *key = json_object_iter_key(at);
        if (!gp_cli_list_has(method->takes, key, strlen(key)))
            return gp_err_set(err, GP_EUSAGE, "%s has no parameter '%.80s'%s", method->name, key,
                              gp_cli_hint(key, next_param, &names).text);
    }
    for (size_t i = 0; r == 0 && i < service->param_count; i++) {
        const struct gp_rpc_param *param = &service->params[i];
        json_t *value = json_object_get(given, param->name);
        if (value && !json_is_null(value))
            r = read_param(param, value, params, err);
        else if (gp_cli_list_has(method->needs, param->name, strlen(param->name)))
            r = gp_err_set(err, GP_EUSAGE, "%s needs '%s'", method->name, param->name);
    }
    return r;
}

static void free_params(const struct gp_rpc_service *service, char *params)
{
    for (size_t i = 0; params && i < service->param_count; i++) {
        const struct gp_rpc_param *param = &service->params[i];
        if (param->type == GP_RPC_LIST || param->type == GP_RPC_TEXT || param->type == GP_RPC_PAIRS)
            free(*(char **)(void *)(params + param->offset));
    }
    free(params);
}

/* ---- requests ---- */

static json_t *call(const struct gp_rpc_service *service, const struct gp_rpc_method *method,
                    json_t *given, json_t *id)
{
    struct gp_err err = {0};
    json_t *result = NULL;
    char *params = calloc(1, service->params_size);
    int r = params ? read_params(service, method, given, params, &err) : GP_ENOMEM;
    if (r == 0)
        r = method->call(service->ctx, params, &result, &err);
    if (r == 0 && !result)
        r = GP_ENOMEM;
    free_params(service, params);
    return r < 0 ? response(id, "error", gp_rpc_error(r, &err)) : response(id, "result", result);
}

/* Why this is no request of JSON-RPC; NULL: it is one. */
static const char *invalid(const json_t *request)
{
    const char *version = json_string_value(json_object_get(request, "jsonrpc"));
    if (!version || strcmp(version, "2.0") != 0)
        return "\"jsonrpc\" must be \"2.0\"";
    return json_is_string(json_object_get(request, "method")) ? NULL : "\"method\" must be a text";
}

static json_t *answer_call(const struct gp_rpc_service *service, const json_t *request, json_t *id)
{
    json_t *given = json_object_get(request, "params");
    const char *name = json_string_value(json_object_get(request, "method"));
    struct gp_err err = {0};
    if (given && !json_is_object(given))
        return refuse(id, INVALID_PARAMS, "\"params\" must be an object");
    for (size_t i = 0; i < service->method_count; i++)
        if (strcmp(service->methods[i].name, name) == 0)
            return call(service, &service->methods[i], given, id);
    (void)gp_err_set(&err, GP_EUSAGE, "unknown method '%.80s'%s", name,
                     gp_cli_hint(name, next_method, service).text);
    return refuse(id, NO_METHOD, err.text);
}

/* NULL: none is due. */
static json_t *answer_one(const struct gp_rpc_service *service, json_t *request)
{
    if (!json_is_object(request))
        return refuse(NULL, INVALID_REQUEST, "a request must be an object");
    json_t *id = json_object_get(request, "id");
    /* a fraction might not come back as it was */
    if (id && !json_is_string(id) && !json_is_integer(id) && !json_is_null(id))
        return refuse(NULL, INVALID_REQUEST, "\"id\" must be a text, a whole number or null");
    const char *why = invalid(request);
    if (why)
        return refuse(id, INVALID_REQUEST, why);
    json_t *answer = answer_call(service, request, id);
    if (id)
        return answer;
    json_decref(answer);
    return NULL;
}

static json_t *answer_batch(const struct gp_rpc_service *service, json_t *requests)
{
    const size_t count = json_array_size(requests);
    struct gp_err err = {0};
    if (count == 0 || count > GP_RPC_BATCH_MAX) {
        (void)gp_err_set(&err, GP_EUSAGE, "a batch has 1 to %d requests", GP_RPC_BATCH_MAX);
        return refuse(NULL, INVALID_REQUEST, err.text);
    }
    json_t *answers = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *answer = answer_one(service, json_array_get(requests, i));
        if (answer)
            (void)json_array_append_new(answers, answer);
    }
    if (json_array_size(answers) > 0)
        return answers;
    json_decref(answers);
    return NULL;
}

/* Appends a message as a line, and releases it. Its place is taken by an error if it does not
 * fit. */
static void add_line(struct gp_strbuf *sb, json_t *message, json_t *id)
{
    const size_t before = sb->len;
    gp_json_add(sb, message, 0);
    if (sb->error) {
        const struct gp_err err = {.code = sb->error};
        sb->error = 0;
        gp_strbuf_truncate(sb, before);
        gp_json_add(sb, response(id, "error", gp_rpc_error(err.code, &err)), 0);
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_rpc_answer(const struct gp_rpc_service *service, const char *line, size_t size,
                   struct gp_strbuf *sb)
{
    json_error_t problem;
    struct gp_err err = {0};
    json_t *message =
        line ? json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem) : NULL;
    json_t *answer;
    if (!line) {
        (void)gp_err_set(&err, GP_EUSAGE, "a line has at most %d bytes", GP_RPC_LINE_MAX);
        answer = refuse(NULL, INVALID_REQUEST, err.text);
    } else if (!message) {
        (void)gp_err_set(&err, GP_EUSAGE, "not JSON: %s", problem.text);
        answer = refuse(NULL, PARSE_ERROR, err.text);
    } else {
        answer =
            json_is_array(message) ? answer_batch(service, message) : answer_one(service, message);
    }
    if (answer)
        add_line(sb, answer, json_object_get(message, "id"));
    json_decref(message);
}

void gp_rpc_notify(struct gp_strbuf *sb, const char *method, json_t *params)
{
    const size_t before = sb->len;
    gp_json_add(
        sb, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params), 0);
    if (sb->error)
        gp_strbuf_truncate(sb, before);
    else
        gp_strbuf_addc(sb, '\n');
    sb->error = 0;
}
