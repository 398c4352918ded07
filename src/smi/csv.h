/* The selective queries, --query-gpu=FIELDS --format=csv and its kin: chosen fields as lines of
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
    X(GPU, "gpu", "these fields of each GPU")                                                      \
    X(SUPPORTED_CLOCKS, "supported-clocks", "these fields of each pair of clocks that can be set") \
    X(COMPUTE_APPS, "compute-apps", "these fields of each process that computes")                  \
    X(ACCOUNTED_APPS, "accounted-apps", "these fields of each process that is kept account of")    \
    X(RETIRED_PAGES, "retired-pages", "these fields of each page of memory that is not used more") \
    X(REMAPPED_ROWS, "remapped-rows", "these fields of the rows of memory that were replaced")

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
    bool units; /* behind the values; in the header they always are */
    bool begun; /* a pass has been printed */
    size_t count;
    struct gp_smi_column columns[GP_SMI_COLUMNS_MAX];
};

/* Takes the values of --query-… and --format (NULL: not given). False with the message appended. */
bool gp_smi_csv_parse(struct gp_smi_csv *csv, enum gp_smi_query query, const char *fields,
                      const char *format, struct gp_strbuf *message) GP_MUST_CHECK;

void gp_smi_csv_want(const struct gp_smi_csv *csv, struct gp_want *want);

/* Appends a pass: the header before the first one, the rows. */
void gp_smi_csv_print(struct gp_strbuf *sb, struct gp_smi_csv *csv, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot);

/* Appends the page that names all fields of a query. */
void gp_smi_csv_help(struct gp_strbuf *sb, enum gp_smi_query query);

#endif
