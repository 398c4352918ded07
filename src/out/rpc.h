/* JSON-RPC 2.0 with a message per line: requests in, responses and notifications out. Pure: the
 * methods and their parameters are tables of the caller. Requests are not trusted: all sizes have
 * limits, and each request has an answer. */
#ifndef GP_OUT_RPC_H
#define GP_OUT_RPC_H

#include "base/util.h"

#include <jansson.h>

struct gp_err;
struct gp_strbuf;

enum {
    GP_RPC_LINE_MAX = 1 << 16,
    GP_RPC_BATCH_MAX = 64, /* requests */
    GP_RPC_ANSWER_MAX = 64 << 20,
};

/* ---- lines ---- */

/* A stream that arrives in pieces. Zero-initialize. */
struct gp_rpc_lines {
    char text[GP_RPC_LINE_MAX];
    size_t size;
    bool is_too_long;
};

/* Called with a line that is not blank, without its end; NULL: it was too long. A negative result
 * ends the reading. */
typedef int gp_rpc_on_line(void *ctx, const char *line, size_t size);

/* Calls on_line for each line that is complete. Returns 0 or its negative result. */
int gp_rpc_lines_take(struct gp_rpc_lines *lines, const char *data, size_t size,
                      gp_rpc_on_line *on_line, void *ctx) GP_MUST_CHECK;
/* At the end of the stream: the same for a last line without an end. */
int gp_rpc_lines_end(struct gp_rpc_lines *lines, gp_rpc_on_line *on_line, void *ctx) GP_MUST_CHECK;

/* ---- requests ---- */

enum gp_rpc_type {
    GP_RPC_LIST,   /* char *: "a,b", or an array of words and whole numbers, joined by commas */
    GP_RPC_TIME,   /* uint64_t: nanoseconds; seconds in the request */
    GP_RPC_NUMBER, /* uint64_t */
    GP_RPC_SIZE,   /* uint64_t: bytes, or a text such as "20GiB" */
    GP_RPC_FLAG,   /* bool */
    GP_RPC_TEXT,   /* char * */
    GP_RPC_PAIRS,  /* char *: "a=b c=d", or an object of texts, numbers and flags ("on", "off") */
};

struct gp_rpc_param {
    const char *name;
    enum gp_rpc_type type;
    size_t offset;      /* of the field in the struct of parameters */
    double least, most; /* of a time, in seconds, or of a number; most 0: no limit */
};

struct gp_rpc_method {
    const char *name;
    const char *takes; /* names of parameters, space separated */
    const char *needs; /* those of them that are required; NULL: none */
    /* `params` is the struct of parameters. Returns 0 and the result, or a GP_E* code. GP_EUSAGE is
     * about the parameters. */
    int (*call)(void *ctx, const void *params, json_t **ret, struct gp_err *err);
};

struct gp_rpc_service {
    const struct gp_rpc_method *methods;
    size_t method_count;
    const struct gp_rpc_param *params; /* of all methods */
    size_t param_count;
    size_t params_size; /* of the struct of parameters, in which absent ones and null are 0 */
    void *ctx;
};

/* Appends the answer to a line (NULL: it was too long): one line, or nothing for notifications. */
void gp_rpc_answer(const struct gp_rpc_service *service, const char *line, size_t size,
                   struct gp_strbuf *sb);

/* Appends a notification, and releases `params`. */
void gp_rpc_notify(struct gp_strbuf *sb, const char *method, json_t *params);

/* The error object of a failed call. NULL without memory. */
json_t *gp_rpc_error(int code, const struct gp_err *err);

#endif
