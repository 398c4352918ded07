#include "out/line.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"

#include <string.h>

/* Parses a pattern: appends text, and calls the callback for each field. */
static int walk(const char *pattern, struct gp_strbuf *sb,
                void (*on_field)(const struct gp_field *field, void *ctx), void *ctx,
                struct gp_err *err)
{
    for (const char *p = pattern; *p; p++) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            gp_strbuf_addc(sb, *p++);
        } else if (*p == '{') {
            const char *close = strchr(p, '}');
            struct gp_field field;
            if (!close)
                return gp_err_set(err, GP_EUSAGE,
                                  "'{' without '}' at column %zu of the line pattern",
                                  (size_t)(p - pattern) + 1);
            int r = gp_field_parse(p + 1, (size_t)(close - p - 1), &field, err);
            if (r < 0)
                return r;
            on_field(&field, ctx);
            p = close;
        } else {
            gp_strbuf_addc(sb, *p);
        }
    }
    return 0;
}

static void collect(const struct gp_field *field, void *ctx)
{
    gp_metric_set_add(ctx, field->metric);
}

int gp_line_check(const char *pattern, struct gp_metric_set *ret_metrics, struct gp_err *err)
{
    struct gp_strbuf ignored = GP_STRBUF_INIT(64 * 1024);
    int r = walk(pattern, &ignored, collect, ret_metrics, err);
    gp_strbuf_fini(&ignored);
    for (int scope = GP_SCOPE_PROCESS; r == 0 && scope < GP_SCOPE__COUNT; scope++)
        if (gp_metric_set_has_scope(ret_metrics, (enum gp_scope)scope))
            r = gp_err_set(err, GP_EUSAGE, "a line describes a GPU: it cannot contain fields of %s",
                           gp_scope_table[scope].plural);
    return r;
}

struct target {
    struct gp_strbuf *sb;
    const struct gp_snapshot *snapshot;
    const struct gp_device *device;
};

static void format(const struct gp_field *field, void *ctx)
{
    struct target *t = ctx;
    gp_field_format(t->sb, field, gp_snapshot_value(t->snapshot, t->device, NULL, field->metric),
                    GP_STYLE_PLAIN);
}

void gp_line_format(struct gp_strbuf *sb, const char *pattern, const struct gp_snapshot *snapshot,
                    const struct gp_device *device)
{
    struct target target = {sb, snapshot, device};
    (void)walk(pattern, sb, format, &target, NULL);
}
