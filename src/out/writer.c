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
