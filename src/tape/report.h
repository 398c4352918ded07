/* What the GPUs of a recording did over some time: sums of the tables usage and share, for each
 * GPU, user, job, container, program or process.
 *
 * The tables have a row for each ten minutes, so a report begins and ends at whole ones. */
#ifndef GP_TAPE_REPORT_H
#define GP_TAPE_REPORT_H

#include "base/arena.h"
#include "model/event.h"

struct gp_err;
struct gp_selection;
struct gp_tape;

/* What a table has a row for. X(id, word) */
#define GP_REPORT_BYS(X)                                                                           \
    X(GPU, "gpu")                                                                                  \
    X(USER, "user")                                                                                \
    X(GROUP, "group") /* of users, on the machine that makes the report */                         \
    X(JOB, "job")                                                                                  \
    X(CONTAINER, "container")                                                                      \
    X(PROGRAM, "program")                                                                          \
    X(PROCESS, "process")                                                                          \
    X(WAIT, "wait") /* a user and one of its jobs, in gpulse's own waiting line */                 \
    X(IDLE, "idle") /* a process and one of its GPUs, for --idle-held */

enum gp_report_by {
#define X(id, word) GP_REPORT_##id,
    GP_REPORT_BYS(X)
#undef X
        GP_REPORT_BY__COUNT,
};

const char *gp_report_by_word(enum gp_report_by by);

/* Microseconds, millijoules and bytes. Whether they are known: see gp_report_has_load() and the
 * functions after it. */
struct gp_report_sums {
    int64_t known_us;    /* of a GPU: its utilization was known */
    int64_t held_us;     /* a compute process had the GPU open */
    int64_t measured_us; /* of that, with known utilization */
    int64_t busy_us;     /* times the utilization; of processes, their SM time */
    int64_t used_us;     /* the same while the GPU was held */
    int64_t idle_us;     /* held at a utilization of 0 % */
    int64_t reserved_us;
    int64_t energy_mj; /* of processes: an estimate */
    int64_t memory;    /* the most, of one process on one GPU or of the GPU */
    /* Of a GPU: periods in which its processes were known, and the part of known_us in others. */
    int64_t listed, unlisted_us;
};

struct gp_report_row {
    const char *key;   /* within the table */
    const char *label; /* what the row is of: "0", "1:0", "mia", a pid; "": unknown, or none */
    const char *name;  /* the GPU's product name, the process's program; "", like these: unknown */
    const char *user;  /* of a process */
    const char *command;
    const char *uuid;
    const char *gpu; /* of GP_REPORT_IDLE */
    int64_t pid;
    int64_t first, last; /* when the process was seen, on the axis */
    int64_t processes;
    int64_t order;      /* of GPUs */
    const char *reason; /* why it is unknown for how long a GPU was held; "": it is known */
    struct gp_report_sums sums;
    int64_t waits, waited_us, waited_longest_us; /* requests in the waiting line */
    uint32_t incidents[GP_EVENT__COUNT];
};

struct gp_report_table {
    enum gp_report_by by;
    struct gp_report_row *rows; /* GPUs by index, others by the time that they held GPUs */
    size_t count, room;
    uint32_t *places; /* a hash table of the rows */
    size_t place_count;
};

/* A step of time of the charts, and what a GPU did in it. */
struct gp_report_step {
    int64_t from_us, to_us; /* the clock's time, without what was not recorded at the ends */
};
struct gp_report_part {
    int64_t known_us, held_us, idle_us, busy_us, energy_mj, unlisted_us;
};

struct gp_report_gpu {
    int64_t id;
    struct gp_report_row *row;    /* of `gpus` */
    struct gp_report_part *parts; /* one per step; NULL without charts */
    bool is_selected, is_mig;
};

enum { GP_REPORT_TABLES_MAX = GP_REPORT_BY__COUNT, GP_REPORT_STEPS_MAX = 200 };

struct gp_report_query {
    int64_t since_us, until_us; /* the clock's time; 0: all */
    enum gp_report_by by[GP_REPORT_TABLES_MAX];
    size_t by_count;
    struct gp_selection *selection; /* NULL: all GPUs */
    const char *users, *groups;     /* names, separated by commas; NULL: all */
    int64_t idle_held_us;           /* least sum of a row of GP_REPORT_IDLE */
    bool charts;
};

struct gp_report {
    const char *path;
    int64_t from, to;       /* the time that it covers, on the axis */
    int64_t from_us, to_us; /* the clock's time then */
    bool is_rounded;        /* to whole periods, so it is not the time that was asked for */
    int64_t interval_us;
    char host[256], driver[80];  /* "" if unknown */
    const char *users, *groups;  /* only processes of these users were counted; NULL: all */
    bool is_of_some;             /* one of these is set */
    bool is_of_some_gpus;        /* GPUs were selected */
    struct gp_report_table gpus; /* all that are selected, whatever they did */
    struct gp_report_table tables[GP_REPORT_TABLES_MAX];
    size_t table_count;
    int64_t watched_us;          /* the waiting line was recorded; 0: who waited is unknown */
    size_t idle_unknown;         /* left out of GP_REPORT_IDLE because their SM time is unknown */
    struct gp_report_sums total; /* of `gpus` */
    uint32_t incidents[GP_EVENT__COUNT];
    int64_t detailed;            /* incidents with ten samples a second, see moments.h */
    int64_t detailed_us;         /* the clock's time at which the last of these begins */
    struct gp_report_gpu *by_id; /* all GPUs of the recording, sorted by id */
    size_t gpu_count, selected;
    struct gp_report_step steps[GP_REPORT_STEPS_MAX];
    size_t step_count;
    int64_t step_s;
    struct gp_arena arena;
};

/* path: of the recording, for the report. GP_EUSAGE: nothing was recorded in that time; GP_ENODEV:
 * a GPU that was selected is not in the recording; other errors as of gp_tape_do(). After a failure
 * there is nothing to free. */
int gp_report_read(struct gp_tape *tape, const struct gp_report_query *query, const char *path,
                   struct gp_report *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_report_fini(struct gp_report *report);

/* Whether the utilization of a row was known for some of the time, and its energy and memory. */
bool gp_report_has_load(enum gp_report_by by, const struct gp_report_sums *sums);
bool gp_report_has_energy(enum gp_report_by by, const struct gp_report_sums *sums);
bool gp_report_has_memory(const struct gp_report_sums *sums);
/* Whether the processes on the GPUs were recorded at some time. */
bool gp_report_knows_holders(const struct gp_report *report);
/* Whether a GPU was observed at all. */
bool gp_report_is_seen(const struct gp_report_sums *sums);

#endif
