/* Private to the report. Its parts, from the lowest to the highest:
 *
 *   report_rows.c   the rows of a table
 *   report_members.c  the groups of users
 *   report_steps.c  the steps of the charts
 *   report_sum.c    what happened in each ten minutes, added to the rows
 *   report_waits.c  who waited for GPUs
 *   report.c        the time, GPUs and processes of a report
 */
#ifndef GP_TAPE_REPORT_INTERNAL_H
#define GP_TAPE_REPORT_INTERNAL_H

#include "tape/report.h"

struct gp_store;

enum { GP_REPORT_ROWS_MAX = 1 << 17, GP_REPORT_NO_ROW = -1 };

/* A user, and the groups of this machine that it is in: only those that are wanted. */
struct gp_report_member {
    const char *user;
    struct gp_report_membership {
        const char *group; /* "": none */
        int32_t row;       /* of the group, in the table of groups; GP_REPORT_NO_ROW: none yet */
    } * groups;
    size_t count;
};

/* A process of the recording. */
struct gp_report_process {
    int64_t id, pid, first, last;
    const char *user, *name, *command, *job, *container; /* NULL: unknown */
    struct gp_report_member *member;                     /* NULL: groups are not needed */
    bool is_hidden;                    /* of another user than those that are wanted */
    int32_t rows[GP_REPORT_BY__COUNT]; /* its row in each table; GP_REPORT_NO_ROW: none yet */
};

/* A report that is being made. */
struct gp_report_work {
    struct gp_tape *tape;
    const struct gp_report_query *query;
    struct gp_report *report;
    struct gp_report_process *processes; /* sorted by id */
    size_t process_count, process_room;
    struct gp_report_member **members; /* the first one is no user */
    size_t member_count;
    bool needs_groups;
};

/* ---- report_rows.c ---- */

/* A copy of a text that is safe to print; NULL without memory. */
const char *gp_report_text(struct gp_report *report, const char *text);

int64_t gp_report_clamp(int64_t n, int64_t max);
/* Adds without overflow. */
void gp_report_add_to(int64_t *sum, int64_t n);
void gp_report_add_sums(struct gp_report_sums *sums, const struct gp_report_sums *more);

/* The row with this key, which is added if it is not there; NULL without memory. When there are too
 * many, it is the last one. */
struct gp_report_row *gp_report_row(struct gp_report *report, struct gp_report_table *table,
                                    const char *key);
void gp_report_sort(struct gp_report_table *table);
void gp_report_table_fini(struct gp_report_table *table);

/* ---- report_members.c ---- */

/* The user with its groups, which are looked up once; `user` must stay valid. NULL without memory.
 */
struct gp_report_member *gp_report_member(struct gp_report_work *work, const char *user);
/* Whether a user is one of those of the report; `member` if groups are needed. */
bool gp_report_is_wanted(const struct gp_report_work *work, const char *user,
                         const struct gp_report_member *member);
void gp_report_members_fini(struct gp_report_work *work);

/* ---- report_steps.c ---- */

/* The clock's time, between 1970 and 9999. */
int64_t gp_report_wall(const struct gp_tape *tape, int64_t t);
void gp_report_make_steps(struct gp_report *report);
/* The step in which a place of the axis is. */
size_t gp_report_step_at(const struct gp_report *report, const struct gp_tape *tape, int64_t t);

/* ---- report_sum.c ---- */

/* Adds all periods of the report. */
int gp_report_sum(struct gp_report_work *work, struct gp_store *store,
                  struct gp_err *err) GP_MUST_CHECK;

/* ---- report_waits.c ---- */

/* Adds who waited. */
int gp_report_add_waits(struct gp_report_work *work, struct gp_store *store,
                        struct gp_err *err) GP_MUST_CHECK;

#endif
