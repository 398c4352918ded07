/* Selective queries (--query-gpu=FIELDS --format=csv and similar): selected fields as lines of
 * values, for programs. */
#ifndef GP_SMI_CSV_H
#define GP_SMI_CSV_H

#include "model/metric.h"
#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

/* X(id, word, help)   the option is --query-WORD */
#define GP_SMI_QUERIES(X)                                                                          \
    X(GPU, "gpu", "query these fields of each GPU")                                                \
    X(SUPPORTED_CLOCKS, "supported-clocks", "query these fields of each supported pair of clocks") \
    X(COMPUTE_APPS, "compute-apps", "query these fields of each compute process")                  \
    X(ACCOUNTED_APPS, "accounted-apps", "query these fields of each accounted process")            \
    X(RETIRED_PAGES, "retired-pages", "query these fields of each retired memory page")            \
    X(REMAPPED_ROWS, "remapped-rows", "query these fields of the remapped memory rows")

enum gp_smi_query {
#define X(id, word, help) GP_SMI_QUERY_##id,
    GP_SMI_QUERIES(X)
#undef X
        GP_SMI_QUERY__COUNT,
};

enum { GP_SMI_COLUMNS_MAX = 1024 };

struct gp_smi_column {
    const char *name;
    enum gp_metric metric;
};

struct gp_smi_csv {
    enum gp_smi_query query;
    bool header;
    bool units; /* after the values; the header always has them */
    bool begun; /* a sample has been printed */
    size_t count;
    struct gp_smi_column columns[GP_SMI_COLUMNS_MAX];
};

/* Parses the values of --query-… and --format (NULL: not given). Returns false after appending the
 * error to the message. */
bool gp_smi_csv_parse(struct gp_smi_csv *csv, enum gp_smi_query query, const char *fields,
                      const char *format, struct gp_strbuf *message) GP_MUST_CHECK;

void gp_smi_csv_want(const struct gp_smi_csv *csv, struct gp_want *want);

/* Appends a sample; the header precedes the first one. */
void gp_smi_csv_print(struct gp_strbuf *sb, struct gp_smi_csv *csv, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot);

/* Appends the help page with the fields of a query, as the driver has them; of --query-gpu with all
 * that are known, and a line that says so, if the driver's are not known, or without one (NULL). */
void gp_smi_csv_help(struct gp_strbuf *sb, enum gp_smi_query query, const struct gp_smi_form *form);

#endif
