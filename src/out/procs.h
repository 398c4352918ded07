/* The list of processes: one row per process, or per process and GPU; sorted, filtered, flat or as
 * a tree. Also has a row for the memory of each GPU that is not attributed to any process and, if
 * requested, for each GPU that is reserved but has no processes. */
#ifndef GP_OUT_PROCS_H
#define GP_OUT_PROCS_H

#include "base/util.h"

struct gp_err;
struct gp_device;
struct gp_proc_info;
struct gp_process;
struct gp_snapshot;
struct gp_strbuf;

/* A number that may be unknown. */
struct gp_amount {
    double n;
    bool known;
    bool old; /* stale: not from this sample */
};

enum {
    GP_PROC_GPUS = 256,
    GP_PROC_UNATTRIBUTED_LEAST = 256 << 20, /* bytes: less is not mentioned */
};

struct gp_proc_row {
    int64_t pid; /* 0: memory of a GPU that is not attributed to any process, or a reserved GPU */
    int64_t ppid, ns_pid, session; /* 0: unknown */
    unsigned gpu;                  /* the first GPU in use */
    unsigned run_first, run_last;  /* the last range of GPUs in the text */
    uint8_t run_at;                /* its offset in the text */
    char gpus[24]; /* all GPUs: "0-3", "1,4"; MIG instances: "1:0"; "" for an ancestor. "+" if there
                      is no room for all */
    uint64_t gpu_bits[GP_PROC_GPUS / 64]; /* by index; MIG instances count as their GPU */
    /* Texts in the snapshot; NULL: unknown. */
    const char *user, *command, *type, *state, *start, *container, *container_name, *origin, *cwd,
        *job;
    uint32_t denied;                         /* a bit for each text column that may not be read */
    struct gp_amount memory, suspended, rss; /* bytes */
    struct gp_amount sm, mem, enc, dec, cpu; /* percent; sums over its GPUs */
    struct gp_amount share;                  /* percent of the memory of its GPUs */
    double total;                            /* that memory in bytes; 0: unknown */
    struct gp_amount age_s;
    struct gp_amount idle_s; /* since the process last used any of its GPUs */
    bool idle_is_least;      /* it has been idle at least that long */
    unsigned idle_gpus;      /* on how many GPUs */
    uint64_t branches;       /* of a tree: bit n is set if a line continues below at depth n */
    uint16_t depth;
    bool is_last;         /* the last child of its parent */
    uint16_t folded;      /* parents that have no rows of their own: */
    uint32_t folded_at;   /* rows behind the last one, from the next parent on */
    uint32_t closed;      /* rows below this one that are not shown: */
    uint32_t closed_at;   /* rows behind the last one, from the first of them on */
    uint32_t reserved_by; /* pid of the supervisor, if is_reserved; 0: unknown */
    bool is_reserved;     /* a GPU without processes: user, command and age are the reservation's */
    unsigned members;     /* of a group, whose sums this row has: processes; 0: it is none */
    unsigned below; /* of a tree: descendants that use GPUs, whose sums this row has; 0: its own */
    struct gp_amount key; /* while rows are sorted: of the first column they are sorted by */
};

/* Before the command of a row: what it is, if it is no process; "" for a process. */
const char *gp_proc_row_prefix(const struct gp_proc_row *row);

/* The columns, in default order. Rows can be sorted by any of them.
 * X(id, word, title, width, rank, grows, left, kind, field, default, help) */
#define GP_PROC_COLUMNS(X)                                                                         \
    X(PID, "pid", "PID", 7, 0, 0, false, PID, pid, true, "process id")                             \
    X(PPID, "ppid", "PPID", 7, 10, 0, false, PID, ppid, false, "parent process id")                \
    X(USER, "user", "USER", 9, 3, 0, true, TEXT, user, true, "owner")                              \
    X(GPU, "gpu", "GPU", 5, 2, 0, false, GPU, gpus, true, "GPUs; MIG instances as 1:0")            \
    X(TYPE, "type", "T", 1, 10, 0, true, TEXT, type, true,                                         \
      "C compute, G graphics, C+G (X) both, M MPS, S suspended")                                   \
    X(STATE, "state", "S", 1, 9, 0, true, TEXT, state, false,                                      \
      "R running, S sleeping, D uninterruptible, T stopped, Z zombie")                             \
    X(SM, "sm", "SM%", 4, 4, 0, false, NUMBER, sm, true, "SM utilization, mean of its GPUs")       \
    X(MEM, "bandwidth", "BW%", 3, 11, 0, false, NUMBER, mem, true,                                 \
      "memory bandwidth utilization, mean of its GPUs")                                            \
    X(MEMORY, "memory", "GPU-MEM", 8, 1, 0, false, BYTES, memory, true, "GPU memory")              \
    X(SHARE, "share", "VRAM%", 5, 10, 0, false, NUMBER, share, false,                              \
      "percentage of its GPUs' memory")                                                            \
    X(SUSPENDED, "suspended", "SUSPENDED", 9, 12, 0, false, BYTES, suspended, false,               \
      "GPU memory suspended to host memory (gpulse suspend)")                                      \
    X(ENC, "enc", "ENC", 3, 12, 0, false, NUMBER, enc, true, "video encoder utilization")          \
    X(DEC, "dec", "DEC", 3, 11, 0, false, NUMBER, dec, true, "video decoder utilization")          \
    X(CPU, "cpu", "CPU%", 5, 8, 0, false, NUMBER, cpu, true, "CPU utilization; 100 is one CPU")    \
    X(RSS, "rss", "RSS", 5, 9, 0, false, BYTES, rss, true, "host memory")                          \
    X(TIME, "time", "TIME", 6, 7, 0, false, AGE, age_s, true, "time since start")                  \
    X(START, "start", "STARTED", 25, 13, 0, true, TEXT, start, false, "when it was started")       \
    X(IDLE, "idle", "IDLE", 6, 8, 0, false, AGE, idle_s, true,                                     \
      "time since it last used a GPU (≥: at least)")                                               \
    X(CONTAINER, "container", "CONTAINER", 19, 9, 0, true, TEXT, container, false,                 \
      "container, pod, job or service")                                                            \
    X(JOB, "job", "JOB", 9, 8, 0, true, TEXT, job, false, "Slurm or PBS job, with its step")       \
    X(CONTAINER_NAME, "container_name", "NAME", 16, 13, 0, true, TEXT, container_name, false,      \
      "name of the pod or container")                                                              \
    X(ORIGIN, "origin", "ORIGIN", 16, 13, 0, true, TEXT, origin, false,                            \
      "origin: rank, notebook, tmux, ssh")                                                         \
    X(NS_PID, "ns_pid", "NSPID", 7, 14, 0, false, PID, ns_pid, false,                              \
      "process id in its own pid namespace (container)")                                           \
    X(SESSION, "session", "SESSION", 7, 14, 0, false, PID, session, false,                         \
      "session, by the process id of its leader")                                                  \
    X(CWD, "cwd", "DIRECTORY", 16, 13, 0, true, TEXT, cwd, false, "working directory")             \
    X(COMMAND, "command", "COMMAND", 12, 5, 1, true, TEXT, command, true, "command line")

enum gp_proc_column {
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help)                     \
    GP_PROC_##id##_COLUMN,
    GP_PROC_COLUMNS(X)
#undef X
        GP_PROC_COLUMN__COUNT,
};

enum gp_proc_kind {
    GP_PROC_KIND_PID,
    GP_PROC_KIND_TEXT,
    GP_PROC_KIND_GPU,
    GP_PROC_KIND_NUMBER,
    GP_PROC_KIND_BYTES,
    GP_PROC_KIND_AGE,
};

struct gp_proc_column_info {
    const char *word, *title, *help;
    enum gp_proc_kind kind;
    size_t offset; /* of the field in the row */
    bool is_default;
    unsigned rank; /* in narrow tables, columns of a higher rank are left out first */
};

extern const struct gp_proc_column_info gp_proc_column_table[GP_PROC_COLUMN__COUNT];

/* The value in a numeric column; unknown for other columns. */
struct gp_amount gp_proc_amount(const struct gp_proc_row *row, enum gp_proc_column column);
/* The text in a text column, or NULL. */
const char *gp_proc_text(const struct gp_proc_row *row, enum gp_proc_column column);

/* Appends a value in table format: "12.3G", "48h05m", "-" for none. */
void gp_proc_format(struct gp_strbuf *sb, const struct gp_proc_row *row,
                    enum gp_proc_column column);
/* Appends a number in the format of a numeric column. */
void gp_proc_format_amount(struct gp_strbuf *sb, enum gp_proc_column column,
                           struct gp_amount amount);

/* The sort columns; each later one breaks ties. Numbers sort in descending order; pids, GPUs and
 * texts in ascending order; or reversed. Unknown values come last. */
enum { GP_PROC_SORTS = 4 };

struct gp_proc_sort {
    enum gp_proc_column column;
    bool reversed;
};

struct gp_proc_order {
    struct gp_proc_sort by[GP_PROC_SORTS];
    size_t count;
};

/* Parses "user,-memory". GP_EUSAGE lists the columns. */
int gp_proc_order_parse(const char *text, struct gp_proc_order *ret,
                        struct gp_err *err) GP_MUST_CHECK;
void gp_proc_order_format(struct gp_strbuf *sb, const struct gp_proc_order *order);
/* Makes this the first sort column; the others break ties. */
void gp_proc_order_put(struct gp_proc_order *order, enum gp_proc_column column);

/* Parses "pid,user,…" into at most GP_PROC_COLUMN__COUNT columns; "" selects the default ones.
 * GP_EUSAGE lists the columns. */
int gp_proc_columns_parse(const char *text, enum gp_proc_column *ret, size_t *ret_count,
                          struct gp_err *err) GP_MUST_CHECK;
/* Appends a line for each column: its word, and what it shows. */
void gp_proc_columns_add_help(struct gp_strbuf *sb);

struct gp_procs {
    struct gp_proc_row *rows;
    size_t count;
    size_t room;         /* rows that fit; gp_procs_build() uses it again, and */
    uint32_t *by_pid;    /* indices of the snapshot's processes, in the order of their pids, */
    size_t by_pid_count; /* this many, */
    size_t by_pid_room;  /* with room for this many */
    size_t hidden;       /* rows removed by the filter */
    size_t ancestors;    /* rows that are only included as parents */
    size_t closed;       /* rows behind the last one, below closed ones; and then */
    size_t folded;       /* these, see gp_tree_arrange() */
    size_t reserved;     /* rows of reserved GPUs */
    size_t groups;       /* rows of groups */
};

/* Rows that stand below a row with their sums. */
enum gp_proc_groups {
    GP_PROC_GROUPS_NONE,
    GP_PROC_GROUPS_USER, /* of a user */
    GP_PROC_GROUPS_JOB,  /* of a job (with all its steps), container, pod or service */
    GP_PROC_GROUPS_TREE, /* the same, as a tree of the processes of each job; implies `tree`.
                            Parents without GPUs have sums, too, by which siblings are sorted */
};

/* The id of a job, with its step, in the text of a container: "4711.0" of "slurm:4711.0". NULL: it
 * is no job's. */
const char *gp_procs_job_id(const char *container);

/* Fills the members of a row that do not depend on GPUs. */
void gp_proc_row_init(struct gp_proc_row *row, const struct gp_process *process, uint64_t wall_ns);

/* A row made from /proc alone; it points into the texts of `info`. */
struct gp_proc_row gp_proc_row_of(const struct gp_proc_info *info, uint64_t wall_ns);

struct gp_procs_options {
    struct gp_proc_order order;
    const char *filter; /* see gp_procs_matches() */
    int gpu;            /* only this GPU; −1: all */
    bool tree, per_gpu;
    bool reserved; /* also a row for each reserved GPU without processes */
    enum gp_proc_groups groups;
    bool only_mig; /* of that GPU only this instance: */
    unsigned mig;
};

/* Builds the rows, which point into the snapshot. On GP_ENOMEM there are none. */
int gp_procs_build(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                   const struct gp_procs_options *options) GP_MUST_CHECK;
/* Removes the rows that do not match; NULL: none. */
void gp_procs_filter(struct gp_procs *procs, const char *filter);
void gp_procs_sort(struct gp_procs *procs, const struct gp_proc_order *order);
void gp_procs_fini(struct gp_procs *procs);

/* Appends the job of a row of a group: "slurm 4711"; "": it is a user's. */
void gp_proc_row_add_job(struct gp_strbuf *sb, const struct gp_proc_row *row);
/* Appends what a row of a group is: "slurm 4711, 4 processes". */
void gp_proc_row_add_group(struct gp_strbuf *sb, const struct gp_proc_row *row);

/* The number of processes about which /proc says nothing: those of other pid namespaces. */
size_t gp_procs_unseen(const struct gp_procs *procs);

/* Adds a GPU or MIG instance that the process uses, in the order of the snapshot. */
void gp_proc_row_add_gpu(struct gp_proc_row *row, const struct gp_device *device);
/* The same with the index of a GPU, as a whole. */
void gp_proc_row_add_index(struct gp_proc_row *row, unsigned gpu);
/* The same, with what the process uses of it. */
void gp_proc_row_add_use(struct gp_proc_row *row, const struct gp_process *process,
                         const struct gp_device *device);
/* The row of a reserved GPU, or instance, on which nothing runs yet. */
void gp_proc_row_init_reserved(struct gp_proc_row *row, const struct gp_device *device,
                               uint64_t wall_ns);
/* Whether it uses GPUs itself: it is more than a parent of processes that do. */
bool gp_proc_row_uses_any(const struct gp_proc_row *row);
/* Whether the process uses that GPU or an instance of it. */
bool gp_proc_row_uses(const struct gp_proc_row *row, unsigned gpu);
bool gp_procs_has_pid(const int64_t *pids, size_t count, int64_t pid);

/* Rejects words with an unknown field ("foo:bar"), which would be searched for as text. GP_EUSAGE
 * names the word. */
int gp_procs_check_filter(const char *filter, struct gp_err *err) GP_MUST_CHECK;

/* Whether a row matches all words of a filter. "user:al" matches if the user contains al,
 * "user=alice" if the user is alice, "user=alice,bob" if it is one of both. A word without a field
 * matches in user, command or pid. "gpu:", "ns_pid:" and "job:" match whole numbers. */
bool gp_procs_matches(const struct gp_proc_row *row, const char *filter);

#endif
