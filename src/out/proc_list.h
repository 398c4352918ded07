/* Process lists: a table for people, csv and JSON for programs. */
#ifndef GP_OUT_PROC_LIST_H
#define GP_OUT_PROC_LIST_H

#include "model/metric.h"
#include "out/procs.h"

#include <jansson.h>

struct gp_proc_list {
    const enum gp_proc_column *columns;
    size_t column_count;
    bool csv;          /* plain numbers: bytes, percent, seconds */
    bool marks_bounds; /* csv: the idle time is followed by idle_at_least */
    bool header;
    size_t room; /* columns of the terminal; 0: unlimited */
    bool drops;  /* leaves out columns that leave no room for the last one */
};

/* Adds the metrics behind a column. */
void gp_proc_column_want(enum gp_proc_column column, struct gp_metric_set *metrics);

/* Adds the columns that only some lists have, each behind the one that it belongs to: the job, if a
 * process is part of one and there is no column of containers; and the memory moved to the host, if
 * a process is suspended. There is room for GP_PROC_COLUMN__COUNT. */
void gp_proc_list_add_occasional(const struct gp_procs *procs, enum gp_proc_column *columns,
                                 size_t *count);

/* Adds the metrics behind those. */
void gp_proc_list_want_occasional(struct gp_metric_set *metrics);

/* Appends a line for each row. In a tree, branches precede the command. */
void gp_proc_list_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_procs *procs);

/* The groupings of `ps --by`. */
#define GP_PROC_BY_WORDS "user container job unit gpu"

struct gp_proc_by {
    const char *word, *title;
    enum gp_proc_column column; /* the column with the keys */
    const char *heads[2];       /* prefixes of the keys to include; none: all */
    char end;                   /* the character that ends a key; 0: none */
};

/* NULL for an unknown word. */
const struct gp_proc_by *gp_proc_by(const char *word);

/* The sum of one group. */
struct gp_proc_sum {
    const char *key; /* points into the rows, not NUL-terminated; NULL: rows without a key */
    size_t key_length;
    size_t processes;
    struct gp_amount memory, sm, cpu, rss, suspended;
};

/* Whether this column is summed. */
bool gp_proc_sums_have(enum gp_proc_column column);

/* Computes the sums, largest memory first. For grouping by GPU, the rows must be per process and
 * GPU. The caller frees *ret. Fails with GP_ENOMEM. */
int gp_proc_sums(const struct gp_procs *procs, const struct gp_proc_by *by,
                 struct gp_proc_sum **ret, size_t *ret_count) GP_MUST_CHECK;
void gp_proc_sums_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count);

/* Documents of schema gpulse.ps/1, docs/schema.md. The first is NULL without memory. */
json_t *gp_proc_list_document(const struct gp_snapshot *snapshot, const struct gp_procs *procs);
void gp_proc_list_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_procs *procs);
void gp_proc_sums_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count);

#endif
