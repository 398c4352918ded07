/* Requests to gpulse serve: the input is what a client writes, in two pieces. Each line that is not
 * a notification has one answer, which is JSON on one line.
 * fuzz-sources: src/out/rpc.c src/base/cli.c src/base/parse.c src/base/strbuf.c src/base/err.c
 * fuzz-sources: src/base/utf8.c
 * fuzz-libs: jansson */
#include "out/rpc.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct params {
    char *list, *text, *pairs;
    uint64_t time_ns, number, size;
    bool flag;
};

static const struct gp_rpc_param params_table[] = {
    {"list", GP_RPC_LIST, offsetof(struct params, list), 0, 0},
    {"time", GP_RPC_TIME, offsetof(struct params, time_ns), 0.01, 10},
    {"number", GP_RPC_NUMBER, offsetof(struct params, number), 0, 1000},
    {"size", GP_RPC_SIZE, offsetof(struct params, size), 0, 0},
    {"text", GP_RPC_TEXT, offsetof(struct params, text), 0, 0},
    {"pairs", GP_RPC_PAIRS, offsetof(struct params, pairs), 0, 0},
    {"flag", GP_RPC_FLAG, offsetof(struct params, flag), 0, 0},
};

static int call_echo(void *ctx, const void *given, json_t **ret, struct gp_err *err)
{
    const struct params *p = given;
    (void)ctx;
    if (p->time_ns && (p->time_ns < 10000000 || p->time_ns > UINT64_C(10000000000)))
        abort();
    if (p->number > 1000)
        abort();
    if (p->flag)
        return gp_err_set(err, GP_EDRIVER, "failed: %s", p->list ? p->list : "");
    *ret = json_pack("{s:s*, s:s*, s:s*, s:I}", "list", p->list, "text", p->text, "pairs", p->pairs,
                     "number", (json_int_t)p->number);
    return 0;
}

static const struct gp_rpc_method methods[] = {
    {"echo", "list time number flag size text pairs", NULL, call_echo},
    {"need", "number list", "number", call_echo},
};

static const struct gp_rpc_service service = {
    methods, GP_ARRAY_LEN(methods), params_table, GP_ARRAY_LEN(params_table), sizeof(struct params),
    NULL};

/* out/json.c, without the snapshots that it is mostly about. */
void gp_json_add(struct gp_strbuf *sb, json_t *document, size_t indent);
void gp_json_add(struct gp_strbuf *sb, json_t *document, size_t indent)
{
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    (void)indent;
    if (!text)
        abort();
    gp_strbuf_adds(sb, text);
    free(text);
    json_decref(document);
}

static int on_line(void *ctx, const char *line, size_t size)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_RPC_ANSWER_MAX);
    (void)ctx;
    if (size > GP_RPC_LINE_MAX || (line && memchr(line, '\n', size)))
        abort();
    gp_rpc_answer(&service, line, size, &sb);
    if (sb.len > 0) {
        json_t *answer = json_loadb(sb.buf, sb.len, 0, NULL);
        if (!answer || strchr(sb.buf, '\n') != sb.buf + sb.len - 1)
            abort();
        json_decref(answer);
    }
    gp_strbuf_fini(&sb);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gp_rpc_lines lines; /* empty between two inputs */
    const char *text = (const char *)data;
    const size_t first = size > 0 ? data[0] * size / 256 : 0;
    if (gp_rpc_lines_take(&lines, text, first, on_line, NULL) < 0 ||
        gp_rpc_lines_take(&lines, text + first, size - first, on_line, NULL) < 0 ||
        gp_rpc_lines_end(&lines, on_line, NULL) < 0 || lines.size > 0)
        abort();
    return 0;
}
