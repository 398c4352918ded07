#include "tui/top_columns.h"

#include "base/strbuf.h"

#include <string.h>

static const char past[] = "cpu_past";

int gp_top_columns_parse(const char *text, enum gp_proc_column *ret, size_t *ret_count,
                         struct gp_err *err)
{
    enum { TEXT_MAX = 4096 };
    struct gp_strbuf others = GP_STRBUF_INIT(TEXT_MAX);
    enum gp_proc_column columns[GP_PROC_COLUMN__COUNT];
    size_t count = 0;
    size_t before = 0; /* columns in front of that one */
    bool has_past = false;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        const bool is_past = n == sizeof(past) - 1 && strncmp(text, past, n) == 0;
        has_past = has_past || is_past;
        before += !has_past;
        if (!is_past)
            gp_strbuf_add(&others, text, n + (text[n] == ','));
    }
    int r =
        has_past && others.len == 0 ? 0 : gp_proc_columns_parse(others.buf, columns, &count, err);
    gp_strbuf_fini(&others);
    if (r < 0)
        return r;
    before = before < count ? before : count;
    memcpy(ret, columns, before * sizeof(*ret));
    memcpy(ret + before + has_past, columns + before, (count - before) * sizeof(*ret));
    if (has_past)
        ret[before] = (enum gp_proc_column)GP_TOP_PAST_COLUMN;
    *ret_count = count + has_past;
    return 0;
}

void gp_top_columns_add_help(struct gp_strbuf *sb)
{
    gp_proc_columns_add_help(sb);
    gp_strbuf_addf(sb, "%-14s  %s\n", past, "past of the CPU utilization, as a graph");
}
