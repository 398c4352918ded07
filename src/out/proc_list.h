/* Processes as text: a table for people, csv and JSON for programs. */
#ifndef GP_OUT_PROC_LIST_H
#define GP_OUT_PROC_LIST_H

#include "out/procs.h"

struct gp_proc_list {
    const enum gp_proc_column *columns;
    size_t column_count;
    bool csv; /* with plain numbers: bytes, percent, seconds */
    bool header;
    size_t room; /* columns of the terminal; 0: as wide as it is */
};

/* Appends a line for each row; those of a tree have their branches before the command. */
void gp_proc_list_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_procs *procs);

/* What rows are summed up by: the words of `ps --by`. */
#define GP_PROC_BY_WORDS "user container job unit gpu"

struct gp_proc_by {
    const char *word, *title;
    enum gp_proc_column column; /* whose values are the keys */
    const char *heads[2];       /* only those that begin with one of them; none: all */
    char end;                   /* where a key ends before its value does; 0: nowhere */
};

/* NULL if that is no such word. */
const struct gp_proc_by *gp_proc_by(const char *word);

/* A sum for each of them. */
struct gp_proc_sum {
    const char *key; /* in the rows, not ended; NULL: of those that have none */
    size_t key_length;
    size_t processes;
    struct gp_amount memory, sm, cpu, rss;
};

/* Whether that column is summed up. */
bool gp_proc_sums_have(enum gp_proc_column column);

/* The sums, those with most memory first; by GPU the rows have to be those of a process and GPU
 * each. *ret is the caller's to free. GP_ENOMEM. */
int gp_proc_sums(const struct gp_procs *procs, const struct gp_proc_by *by,
                 struct gp_proc_sum **ret, size_t *ret_count) GP_MUST_CHECK;
void gp_proc_sums_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count);

/* Documents of the schema gpulse.ps/1, docs/schema.md. */
void gp_proc_list_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_procs *procs);
void gp_proc_sums_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count);

#endif
