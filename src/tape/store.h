/* The file of a recording: an SQLite database in WAL mode.
 *
 * One program writes it. Others read it meanwhile, possibly other users, and they take no locks: a
 * lock on a file that anybody may read would let anybody stop the recorder. Instead, a reader
 * compares before and after what shows that pages were moved from the log to the file, and starts
 * over if they were. The writer does that once a minute at most.
 *
 * Times are places on the file's axis, see axis.h. */
#ifndef GP_TAPE_STORE_H
#define GP_TAPE_STORE_H

#include "base/strbuf.h"
#include "tape/axis.h"
#include "tape/columns.h"
#include "tape/private.h"

struct gp_err;
struct sqlite3;
struct sqlite3_stmt;
struct gp_store_statement;

enum { GP_STORE_VERSION = 2 };

/* A file with a time beyond is damaged: sums of such times fit. */
#define GP_STORE_TIME_MAX (INT64_C(1) << 60)

struct gp_store {
    struct sqlite3 *db;
    struct gp_tape_columns *columns;
    const char *path;
    int version;  /* of the file: at most GP_STORE_VERSION; a writer brings it up to that */
    int lock_fd;  /* of the writer */
    int guard_fd; /* likewise */
    /* of a reader: what the files were like when it began */
    struct gp_store_seen {
        int64_t changed_ns; /* the modification time of the file */
        uint64_t size;
        uint64_t log_size;
        uint8_t log_head[32];
        bool has_log;
        bool is_foreign_log; /* another user has put it there */
    } seen;
    struct gp_store_statement *statements; /* that stay prepared */
    struct gp_private_file private;        /* what this user may read of them */
    bool has_private;                      /* it was read */
    struct gp_strbuf texts;                /* of the process that was asked for last */
};

/* Opens a recording for writing, or creates it; for this user only, or for all users to read.
 * `path` must outlive it. GP_EIO; GP_EPERM: others could change it; GP_EBUSY: another program is
 * writing it; GP_EFORMAT: it is not a recording, or one of a newer version; GP_EUSAGE: it is one
 * for this user, and not for all, or the other way round. */
int gp_store_create(const char *path, bool is_shared, struct gp_store **ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* Opens one for reading. GP_EIO, GP_EPERM, GP_EFORMAT. */
int gp_store_open(const char *path, struct gp_store **ret, struct gp_err *err) GP_MUST_CHECK;

/* How long after a sample, at the latest, the next one shows what happened in between: three
 * intervals and five seconds. Of a longer pause, nothing is known. */
static inline int64_t gp_store_pause_us(int64_t interval_us)
{
    return 3 * interval_us + 5000000;
}

/* Makes this process known as the writer: from now on it records. GP_EIO. */
int gp_store_announce(struct gp_store *store, struct gp_err *err) GP_MUST_CHECK;

/* The process that writes the recording; 0: none, or it is another user's. */
pid_t gp_store_writer(const char *path);

/* NULL is allowed. */
void gp_store_close(struct gp_store *store);

/* For a reader, after a sequence of reads: whether they belong together. If not, close it, open it
 * again, and repeat them. */
bool gp_store_is_steady(struct gp_store *store);
/* Whether the file still is as it was when it was opened: nothing was recorded since. */
bool gp_store_is_current(struct gp_store *store);

/* A statement with its parameters: i int64_t, d double, t text or NULL, b data and size_t, n NULL.
 * It is prepared once, and found by the address of its text. NULL: without memory, or the file is
 * damaged. */
struct sqlite3_stmt *gp_store_statement(struct gp_store *store, const char *sql, const char *types,
                                        ...) GP_MUST_CHECK;

/* Runs one that has no rows. 0, GP_EIO, GP_ENOMEM; err names the file. */
int gp_store_run(struct gp_store *store, struct gp_err *err, const char *sql, const char *types,
                 ...) GP_MUST_CHECK;

/* The next row: 1; 0: there is none, and the statement can be used again; otherwise an error. */
int gp_store_step(struct gp_store *store, struct sqlite3_stmt *statement,
                  struct gp_err *err) GP_MUST_CHECK;

/* Of a row: numbers, and a safe text that lives until the next step; never NULL. */
int64_t gp_store_int(struct sqlite3_stmt *statement, int column);
double gp_store_real(struct sqlite3_stmt *statement, int column);
const char *gp_store_text(struct sqlite3_stmt *statement, int column);
const void *gp_store_bytes(struct sqlite3_stmt *statement, int column, size_t *ret_size);
bool gp_store_is_null(struct sqlite3_stmt *statement, int column);

/* The first number of the first row; `fallback` if there is none or it is NULL. */
int gp_store_get_number(struct gp_store *store, const char *sql, int64_t fallback, int64_t *ret,
                        struct gp_err *err) GP_MUST_CHECK;
/* The same; `fallback` also after an error. */
int64_t gp_store_number(struct gp_store *store, const char *sql, int64_t fallback);

/* Has the system read the whole file at once, without waiting for it, unless it is very large. For
 * a reader of rows that are scattered over the file. Without effect if the system cannot do that.
 */
void gp_store_read_ahead(const struct gp_store *store);

/* The marks of the axis, sorted; freed by the caller. */
int gp_store_marks(struct gp_store *store, struct gp_axis_mark **ret, size_t *ret_count,
                   struct gp_err *err) GP_MUST_CHECK;

/* Sets the error of what was read but cannot be decoded; returns it: GP_ENOMEM or GP_EFORMAT. */
int gp_store_decode_error(const char *path, int r, struct gp_err *err);

/* Moves the log into the file; it is then empty. */
int gp_store_checkpoint(struct gp_store *store, struct gp_err *err) GP_MUST_CHECK;

/* Bytes of the log and of the file. */
uint64_t gp_store_log_size(const struct gp_store *store);
uint64_t gp_store_size(const struct gp_store *store);

#endif
