#include "out/writer.h"

#include "out/json.h"
#include "out/openmetrics.h"
#include "out/text.h"
#include "out/xml.h"

#include <string.h>

const struct gp_writer *gp_writer_find(const char *name)
{
    static const struct gp_writer *const writers[] = {
        &gp_writer_table,  &gp_writer_csv, &gp_writer_tsv,         &gp_writer_json,
        &gp_writer_ndjson, &gp_writer_xml, &gp_writer_openmetrics,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(writers); i++)
        if (strcmp(writers[i]->name, name) == 0)
            return writers[i];
    return NULL;
}

void gp_want_rows(struct gp_want *want, enum gp_scope scope)
{
    if (gp_scope_is_list(scope))
        want->lists |= UINT32_C(1) << gp_list_index(scope);
    if (scope != GP_SCOPE_PROCESS)
        return;
    want->processes = true;
    /* the chosen fields do not decide which processes are listed */
    gp_metric_set_add(&want->metrics, GP_PROCESS_SUSPENDED);
}

void gp_want_view(struct gp_want *want, const struct gp_view *view)
{
    want->host_only = want->host_only && view->scope == GP_SCOPE_HOST;
    gp_want_rows(want, view->scope);
    for (size_t i = 0; i < view->fields.count; i++) {
        enum gp_metric m = view->fields.fields[i].metric;
        gp_metric_set_add(&want->metrics, m);
        /* the instance of a process, or of a partitioned GPU */
        want->mig =
            want->mig || (view->scope == GP_SCOPE_PROCESS && m >= GP_MIG_INDEX && m <= GP_MIG_JPEG);
    }
}

struct gp_want gp_view_want(const struct gp_view *view, const struct gp_writer *writer, bool mig)
{
    struct gp_want want = {.mig = mig, .host_only = true};
    gp_want_view(&want, view);
    if (writer->want)
        writer->want(view, &want.metrics);
    return want;
}
