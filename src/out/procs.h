/* The processes: a row per process over all its GPUs, or per process and GPU; sorted, filtered, as
 * a list or a tree; and the memory of each GPU that no listed process accounts for. */
#ifndef GP_OUT_PROCS_H
#define GP_OUT_PROCS_H

#include "base/util.h"

struct gp_err;
struct gp_device;
struct gp_process;
struct gp_snapshot;
struct gp_strbuf;

/* A number that may not be known. */
struct gp_amount {
    double n;
    bool known;
    bool old; /* not of this sample */
};

enum { GP_PROC_GPUS = 256 };

struct gp_proc_row {
    int64_t pid;                   /* 0: memory of a GPU that no process accounts for */
    int64_t ppid, ns_pid, session; /* 0: not known */
    unsigned gpu;                  /* the first that it uses */
    unsigned run_first, run_last;  /* of those that are written last */
    uint8_t run_at;                /* where in the text */
    char gpus[24]; /* all of them: "0-3", "1,4"; a MIG instance "1:0"; "": an ancestor of one. What
                      has no room is a "+" */
    uint64_t gpu_bits[GP_PROC_GPUS / 64]; /* by their index, instances as their GPU */
    /* text in the snapshot; NULL: not known */
    const char *user, *command, *type, *state, *container, *container_name, *origin, *cwd;
    uint32_t denied; /* a bit for each column of text that may not be seen */
    struct gp_amount memory, suspended, rss; /* bytes */
    struct gp_amount sm, mem, enc, dec, cpu; /* percent */
    struct gp_amount age_s;
    uint64_t branches; /* of a tree: bit n, whether a line goes on below at depth n */
    uint16_t depth;
    bool is_last; /* of its parent's children */
};

/* The columns, in the order of the default; all can be sorted by.
 * X(id, word, title, width, rank, grows, left, kind, field, default, help) */
#define GP_PROC_COLUMNS(X)                                                                         \
    X(PID, "pid", "PID", 7, 0, 0, false, PID, pid, true, "process id")                             \
    X(PPID, "ppid", "PPID", 7, 10, 0, false, PID, ppid, false, "its parent's process id")          \
    X(USER, "user", "USER", 9, 3, 0, true, TEXT, user, true, "owner")                              \
    X(GPU, "gpu", "GPU", 5, 2, 0, false, GPU, gpus, true, "the GPUs, MIG instances as 1:0")        \
    X(TYPE, "type", "T", 1, 8, 0, true, TEXT, type, true,                                          \
      "C compute, G graphics, C+G (X) both, M MPS, S suspended")                                   \
    X(STATE, "state", "S", 1, 9, 0, true, TEXT, state, false,                                      \
      "R runs, S sleeps, D waits for the kernel, T stopped, Z ended")                              \
    X(SM, "sm", "SM%", 4, 4, 0, false, NUMBER, sm, true, "time in which its kernels ran")          \
    X(MEM, "mem", "MEM%", 4, 9, 0, false, NUMBER, mem, true, "use of the memory bus")              \
    X(MEMORY, "memory", "GPU-MEM", 8, 1, 0, false, BYTES, memory, true, "GPU memory")              \
    X(SUSPENDED, "suspended", "SUSPENDED", 9, 12, 0, false, BYTES, suspended, false,               \
      "GPU memory that waits in main memory: gpulse suspend")                                      \
    X(ENC, "enc", "ENC", 3, 12, 0, false, NUMBER, enc, true, "use of the video encoder")           \
    X(DEC, "dec", "DEC", 3, 11, 0, false, NUMBER, dec, true, "use of the video decoder")           \
    X(CPU, "cpu", "CPU%", 5, 6, 0, false, NUMBER, cpu, true, "use of the processors, 100: one")    \
    X(RSS, "rss", "RSS", 5, 7, 0, false, BYTES, rss, true, "main memory")                          \
    X(TIME, "time", "TIME", 6, 10, 0, false, AGE, age_s, true, "since it started")                 \
    X(CONTAINER, "container", "CONTAINER", 19, 9, 0, true, TEXT, container, false,                 \
      "container, pod, job or service")                                                            \
    X(CONTAINER_NAME, "container_name", "NAME", 16, 13, 0, true, TEXT, container_name, false,      \
      "name of the pod or container")                                                              \
    X(ORIGIN, "origin", "ORIGIN", 16, 13, 0, true, TEXT, origin, false,                            \
      "rank, notebook, tmux, ssh: what it was started in")                                         \
    X(NS_PID, "ns_pid", "NSPID", 7, 14, 0, false, PID, ns_pid, false,                              \
      "its process id as it sees it itself: inside of its container")                              \
    X(SESSION, "session", "SESSION", 7, 14, 0, false, PID, session, false,                         \
      "its session, by the process id of the leader")                                              \
    X(CWD, "cwd", "DIRECTORY", 16, 13, 0, true, TEXT, cwd, false, "where it works")                \
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
};

extern const struct gp_proc_column_info gp_proc_column_table[GP_PROC_COLUMN__COUNT];

/* The value in a column of numbers; one that is not known where it is no such column. */
struct gp_amount gp_proc_amount(const struct gp_proc_row *row, enum gp_proc_column column);
/* The text in a column of text, or NULL. */
const char *gp_proc_text(const struct gp_proc_row *row, enum gp_proc_column column);

/* Appends a value as a table writes it: "12.3G", "48h05m", "-" for none. */
void gp_proc_format(struct gp_strbuf *sb, const struct gp_proc_row *row,
                    enum gp_proc_column column);
/* The same of a number, as in a column of numbers. */
void gp_proc_format_amount(struct gp_strbuf *sb, enum gp_proc_column column,
                           struct gp_amount amount);

/* What rows are sorted by: the first decides, the next among equals. Numbers come greatest first,
 * pids, GPUs and text from their beginning, or the other way; what is not known comes last. */
enum { GP_PROC_SORTS = 4 };

struct gp_proc_sort {
    enum gp_proc_column column;
    bool reversed;
};

struct gp_proc_order {
    struct gp_proc_sort by[GP_PROC_SORTS];
    size_t count;
};

/* Reads "user,-memory". GP_EUSAGE names the columns. */
int gp_proc_order_parse(const char *text, struct gp_proc_order *ret,
                        struct gp_err *err) GP_MUST_CHECK;
void gp_proc_order_format(struct gp_strbuf *sb, const struct gp_proc_order *order);
/* Has this column decide first; those before it decide among equals. */
void gp_proc_order_put(struct gp_proc_order *order, enum gp_proc_column column);

/* Reads "pid,user,…" into at most GP_PROC_COLUMN__COUNT columns; "" is the default ones.
 * GP_EUSAGE names the columns. */
int gp_proc_columns_parse(const char *text, enum gp_proc_column *ret, size_t *ret_count,
                          struct gp_err *err) GP_MUST_CHECK;

struct gp_procs {
    struct gp_proc_row *rows;
    size_t count;
    size_t hidden;    /* by the filter */
    size_t ancestors; /* rows that only stand there as parents of others */
};

/* Fills what a row has from a process apart from its GPUs. */
void gp_proc_row_init(struct gp_proc_row *row, const struct gp_process *process, uint64_t wall_ns);

struct gp_procs_options {
    struct gp_proc_order order;
    const char *filter; /* see gp_procs_matches() */
    int gpu;            /* only this one's; −1: all */
    bool tree, per_gpu;
};

/* The rows point into the snapshot. GP_ENOMEM leaves none. */
int gp_procs_build(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                   const struct gp_procs_options *options) GP_MUST_CHECK;
/* Drops and sorts the rows as the filter and the order say; for rows that were not built above. */
void gp_procs_arrange(struct gp_procs *procs, const struct gp_procs_options *options);
void gp_procs_fini(struct gp_procs *procs);

/* Adds a GPU or an instance that it uses, in the order of the snapshot. */
void gp_proc_row_add_gpu(struct gp_proc_row *row, const struct gp_device *device);
/* Whether it uses that GPU, or an instance of it. */
bool gp_proc_row_uses(const struct gp_proc_row *row, unsigned gpu);
bool gp_procs_has_pid(const int64_t *pids, size_t count, int64_t pid);

/* Whether the row has all words of a filter: "user:al" has it in its user, "user=alice" is it, of
 * "user=alice,bob" one is; a word without a field is in user, command or pid. "gpu:", "ns_pid:" and
 * "job:" take whole numbers. */
/* GP_EUSAGE names a word whose field there is not, "foo:bar": it would be looked for as text. */
int gp_procs_check_filter(const char *filter, struct gp_err *err) GP_MUST_CHECK;

bool gp_procs_matches(const struct gp_proc_row *row, const char *filter);

#endif
