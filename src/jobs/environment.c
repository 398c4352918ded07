#include "jobs/environment.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/json.h"
#include "out/procs.h"
#include "proc/inspect.h"
#include "sample/errand.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Static: a thread stuck on a hung process keeps using it. */
static struct {
    const char *root;
    uint32_t pid;
    struct gp_inspect *found;
} look;

static void inspect(void *ctx, size_t i)
{
    (void)ctx;
    (void)i;
    look.found = gp_proc_inspect(look.root, look.pid);
}

int gp_environment_find(const char *root, int64_t pid, uint64_t timeout_ns, struct gp_inspect **ret,
                        struct gp_err *err)
{
    const struct gp_errands errands = {inspect, NULL, 1, .timeout_ns = timeout_ns};
    bool done = false;
    look.root = root;
    look.pid = (uint32_t)pid;
    look.found = NULL;
    if (!gp_errands_run(&errands, &done))
        return gp_err_set(err, GP_ETIMEOUT, "process %lld hangs and cannot be inspected",
                          (long long)pid);
    *ret = look.found;
    return look.found ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

static const char *why_not(int error)
{
    return error == EACCES  ? "only its owner and root may read it"
           : error == ESRCH ? "the process has exited, or is not visible"
                            : "it is empty";
}

static void add_text(struct gp_strbuf *sb, const struct gp_proc_row *row,
                     const struct gp_inspect_list *list)
{
    gp_strbuf_addf(sb, "%lld %s %s\n", (long long)row->pid, row->user ? row->user : "?",
                   row->command ? row->command : "?");
    if (list->error)
        gp_strbuf_addf(sb, "  (%s)\n", why_not(list->error));
    for (size_t i = 0; i < list->count; i++)
        gp_strbuf_addf(sb, "  %s\n", list->items[i]);
    if (list->is_cut)
        gp_strbuf_adds(sb, "  …\n");
}

static json_t *environment_object(const struct gp_inspect_list *list)
{
    json_t *object = list->error ? json_null() : json_object();
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        size_t n = equals ? (size_t)(equals - list->items[i]) : strlen(list->items[i]);
        char *key = strndup(list->items[i], n);
        if (key)
            (void)json_object_set_new(object, key, json_string(equals ? equals + 1 : ""));
        free(key);
    }
    return object;
}

static json_t *process_object(const struct gp_proc_row *row, const struct gp_inspect_list *list)
{
    json_t *object =
        json_pack("{s:I, s:s?, s:s?, s:o}", "pid", (json_int_t)row->pid, "user", row->user,
                  "command", row->command, "environment", environment_object(list));
    if (list->error)
        (void)json_object_set_new(object, "reason", json_string(why_not(list->error)));
    return object;
}

int gp_environments_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_procs *procs, const char *root, uint64_t timeout_ns,
                        bool json, struct gp_err *err)
{
    json_t *processes = json_array();
    int r = 0;
    for (size_t i = 0; r == 0 && i < procs->count; i++) {
        struct gp_inspect *in;
        if (!procs->rows[i].pid)
            continue;
        r = gp_environment_find(root, procs->rows[i].pid, timeout_ns, &in, err);
        if (r < 0)
            break;
        if (json)
            (void)json_array_append_new(processes,
                                        process_object(&procs->rows[i], &in->environment));
        else
            add_text(sb, &procs->rows[i], &in->environment);
        gp_inspect_free(in);
    }
    if (r == 0 && json) {
        json_t *document = gp_json_document(snapshot, "gpulse.environment/1");
        (void)json_object_set(document, "processes", processes);
        gp_json_set_incomplete(document, snapshot);
        gp_json_add(sb, document, 2);
        gp_strbuf_addc(sb, '\n');
    }
    json_decref(processes);
    return r;
}
