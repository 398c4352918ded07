#include "tape/store.h"

#include "tape/store_internal.h"

#include "base/err.h"
#include "base/io.h"
#include "tape/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TEXTS_MAX = 4 << 20 };   /* of a process */
enum { PAGE_CACHE_KIB = 1024 }; /* of a connection */
enum {
    AHEAD_MAX = 1 << 30,    /* bytes of a file that are worth reading at once */
    AHEAD_STEP = 128 << 10, /* Linux reads no more for one call, by default */
};
enum {
    QUIET_NS = 50 * 1000 * 1000, /* a file that changed less than this ago may be changing now */
    QUIET_TRIES = 100,
};

/* The tables. Their texts are compared with those of a file, so each change of them is a new
 * version, see gp_store_upgrade(): later versions have more of them at the end. */
static const char *const schema[] = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "CREATE TABLE field(scope INTEGER, place INTEGER, name TEXT, scale REAL, "
    "PRIMARY KEY(scope, place)) WITHOUT ROWID",
    "CREATE TABLE clock(t INTEGER PRIMARY KEY, ahead INTEGER, boot TEXT, boottime INTEGER)",
    "CREATE TABLE gpu(id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, number INTEGER, mig INTEGER, "
    "name TEXT, bus TEXT, first INTEGER, last INTEGER)",
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, start INTEGER, user TEXT, "
    "name TEXT, path TEXT, command TEXT, cwd TEXT, container TEXT, container_name TEXT, "
    "origin TEXT, first INTEGER, last INTEGER, ended INTEGER)",
    "CREATE INDEX process_by_end ON process(last)",
    "CREATE TABLE tick(t INTEGER PRIMARY KEY, base INTEGER, frame BLOB)",
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, step INTEGER, first INTEGER, last INTEGER, "
    "count INTEGER, data BLOB)",
    "CREATE UNIQUE INDEX chunk_by_time ON chunk(step, first)",
    "CREATE TABLE usage(t INTEGER, gpu INTEGER, known INTEGER, busy INTEGER, held INTEGER, "
    "idle INTEGER, reserved INTEGER, energy INTEGER, memory INTEGER, "
    "PRIMARY KEY(t, gpu)) WITHOUT ROWID",
    "CREATE TABLE share(t INTEGER, process INTEGER, gpu INTEGER, held INTEGER, busy INTEGER, "
    "idle INTEGER, energy INTEGER, memory INTEGER, PRIMARY KEY(t, process, gpu)) WITHOUT ROWID",
    "CREATE TABLE event(id INTEGER PRIMARY KEY, t INTEGER, gpu INTEGER, kind TEXT, number INTEGER, "
    "reported INTEGER, was TEXT, now TEXT, words TEXT)",
    "CREATE INDEX event_by_time ON event(t)",
    /* a request waited from first to last, or, without a user, the recorder watched the line */
    "CREATE TABLE line(id INTEGER PRIMARY KEY, request INTEGER, user TEXT, job TEXT, "
    "gpus INTEGER, first INTEGER, last INTEGER)",
};

/* How many of them each version has. */
static const size_t schema_counts[] = {[1] = 13, [2] = 14};
_Static_assert(GP_ARRAY_LEN(schema_counts) == GP_STORE_VERSION + 1, "a count for each version");

/* ---- columns ---- */

int gp_store_read_columns(struct gp_store *store, struct gp_err *err)
{
    sqlite3_stmt *statement = gp_store_statement(
        store, "SELECT scope, place, name, scale FROM field ORDER BY scope, place", "");
    int64_t is_shared;
    gp_tape_columns_init(store->columns);
    int r = gp_store_get_number(store, "SELECT value FROM meta WHERE key = 'shared'", 0, &is_shared,
                                err);
    if (r < 0)
        return r;
    store->columns->is_shared = is_shared != 0;
    while ((r = gp_store_step(store, statement, err)) == 1) {
        int64_t scope = gp_store_int(statement, 0);
        if (scope < 0 || scope >= GP_TAPE_SCOPE__COUNT ||
            gp_store_int(statement, 1) != store->columns->counts[scope] ||
            !gp_tape_columns_add(store->columns, (enum gp_tape_scope)scope,
                                 gp_store_text(statement, 2), gp_store_real(statement, 3))) {
            (void)sqlite3_reset(statement);
            return gp_store_damaged(store, err);
        }
    }
    return r;
}

/* ---- versions ---- */

int gp_store_upgrade(struct gp_store *store, struct gp_err *err)
{
    char mark[96];
    int r = 0;
    for (size_t i = schema_counts[store->version]; r == 0 && i < GP_ARRAY_LEN(schema); i++)
        r = gp_store_execute(store, schema[i], "write to", err);
    (void)snprintf(mark, sizeof(mark), "PRAGMA application_id=%d; PRAGMA user_version=%d",
                   (int)GP_STORE_APPLICATION, (int)GP_STORE_VERSION);
    if (r == 0)
        r = gp_store_execute(store, mark, "write to", err);
    store->version = r < 0 ? store->version : GP_STORE_VERSION;
    return r;
}

/* Whether the file has exactly the tables of its version: a crafted one could have views and
 * triggers that SQLite would run. */
static bool has_our_tables(struct gp_store *store)
{
    const size_t wanted = schema_counts[store->version];
    sqlite3_stmt *statement = gp_store_statement(
        store, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid", "");
    size_t count = 0;
    bool same = statement != NULL;
    int r = 0;
    while (same && (r = gp_store_step(store, statement, NULL)) == 1) {
        same = count < wanted && strcmp(gp_store_text(statement, 0), schema[count]) == 0;
        count++;
    }
    if (statement)
        (void)sqlite3_reset(statement);
    return same && r == 0 && count == wanted;
}

int gp_store_check_version(struct gp_store *store, struct gp_err *err)
{
    int64_t version;
    const int r = gp_store_get_number(store, "PRAGMA user_version", -1, &version, err);
    if (r < 0)
        return r;
    if (gp_store_number(store, "PRAGMA application_id", 0) != GP_STORE_APPLICATION)
        return gp_store_damaged(store, err);
    if (version > GP_STORE_VERSION)
        return gp_err_set(err, GP_EFORMAT,
                          "'%.200s' was recorded by a newer gpulse (format %lld, this one reads "
                          "up to %d): update gpulse",
                          store->path, (long long)version, (int)GP_STORE_VERSION);
    store->version = version < 1 ? 0 : (int)version;
    return store->version && has_our_tables(store) ? 0 : gp_store_damaged(store, err);
}

/* ---- opening ---- */

/* A database that somebody else made must not make this process do anything but read tables. */
static int harden(struct gp_store *store, struct gp_err *err)
{
    static const struct {
        int option, value;
    } options[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++)
        if (sqlite3_db_config(store->db, options[i].option, options[i].value, NULL) != SQLITE_OK)
            return gp_store_fail(store, GP_EIO, "open", err);
    (void)sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, 2 * GP_FRAME_MAX);
    char cache[64];
    (void)snprintf(cache, sizeof(cache), "PRAGMA cache_size=-%d", (int)PAGE_CACHE_KIB);
    int r =
        gp_store_execute(store, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY", "open", err);
    return r < 0 ? r : gp_store_execute(store, cache, "open", err);
}

struct gp_store *gp_store_new(const char *path, struct gp_err *err)
{
    struct gp_store *store = calloc(1, sizeof(*store));
    if (store) {
        *store = (struct gp_store){.path = path, .lock_fd = -1, .guard_fd = -1};
        gp_strbuf_init(&store->texts, TEXTS_MAX);
        store->columns = malloc(sizeof(*store->columns));
        store->statements = calloc(GP_STORE_STATEMENTS, sizeof(*store->statements));
    }
    if (store && store->columns && store->statements)
        return store;
    gp_store_close(store);
    (void)gp_err_set(err, GP_ENOMEM, "out of memory");
    return NULL;
}

void gp_store_close(struct gp_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; store->statements && i < GP_STORE_STATEMENTS; i++)
        (void)sqlite3_finalize(store->statements[i].prepared);
    (void)sqlite3_close(store->db);
    if (store->guard_fd >= 0)
        (void)close(store->guard_fd);
    if (store->lock_fd >= 0)
        (void)close(store->lock_fd);
    free(store->private.data);
    gp_strbuf_fini(&store->texts);
    free(store->statements);
    free(store->columns);
    free(store);
}

/* The path as a URI with a parameter; false: it is too long. */
static bool uri_of(const char *path, const char *parameter, char ret[2 * GP_PATH_SIZE])
{
    static const char plain[] =
        "/-_.~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t len = (size_t)snprintf(ret, 2 * GP_PATH_SIZE, "file:%s", path[0] == '/' ? "" : "./");
    for (; *path && len + 64 < 2 * GP_PATH_SIZE; path++)
        len += (size_t)snprintf(ret + len, 8, strchr(plain, *path) ? "%c" : "%%%02X",
                                (unsigned char)*path);
    (void)snprintf(ret + len, 64, "?%s", parameter);
    return !*path;
}

/* Opens the database without SQLite's own locks, see the header. In exclusive mode, the index of
 * the log is in memory and not in a file. Without a log, SQLite would create one, unless it is told
 * that nothing changes. */
int gp_store_open_database(struct gp_store *store, int flags, struct gp_err *err)
{
    char uri[2 * GP_PATH_SIZE];
    const bool is_still = flags & SQLITE_OPEN_READONLY && store->seen.log_size == 0;
    if (!uri_of(store->path, is_still ? "immutable=1" : "cache=private", uri))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    flags |= SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const char *vfs = gp_store_vfs(flags & SQLITE_OPEN_READONLY);
    if (!vfs)
        return gp_err_set(err, GP_EFAIL, "this SQLite cannot open recordings");
    if (sqlite3_open_v2(uri, &store->db, flags, vfs) != SQLITE_OK)
        return store->db ? gp_store_fail(store, GP_EIO, "open", err)
                         : gp_err_set(err, GP_ENOMEM, "out of memory");
    /* first: without it, every read would need the index in a file */
    int r = gp_store_execute(store, "PRAGMA locking_mode=EXCLUSIVE", "open", err);
    return r < 0 ? r : harden(store, err);
}

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * (int64_t)GP_NS_PER_S + t->tv_nsec;
}

bool gp_store_beside(const struct gp_store *store, const char *suffix, char ret[GP_PATH_SIZE])
{
    int n = snprintf(ret, GP_PATH_SIZE, "%s%s", store->path, suffix);
    return n > 0 && n < GP_PATH_SIZE;
}

/* What the files are like now. */
static bool look(const struct gp_store *store, struct gp_store_seen *ret)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    *ret = (struct gp_store_seen){0};
    if (!gp_store_beside(store, "-wal", path) || stat(store->path, &st) < 0)
        return false;
    ret->changed_ns = ns_of(&st.st_mtim);
    ret->size = (uint64_t)st.st_size;
    const uid_t owner = st.st_uid;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        ret->is_foreign_log = errno != ENOENT; /* a link, or it may not be read */
        return true;
    }
    const bool has_status = fstat(fd, &st) == 0;
    ret->is_foreign_log =
        !has_status || !S_ISREG(st.st_mode) || (st.st_uid != owner && st.st_uid != 0);
    if (!ret->is_foreign_log) {
        ret->has_log = read(fd, ret->log_head, sizeof(ret->log_head)) == sizeof(ret->log_head);
        ret->log_size = (uint64_t)st.st_size;
    }
    (void)close(fd);
    return true;
}

static bool is_same(const struct gp_store_seen *a, const struct gp_store_seen *b)
{
    return a->changed_ns == b->changed_ns && a->size == b->size && !b->is_foreign_log &&
           (!a->has_log || (b->has_log && memcmp(a->log_head, b->log_head, 32) == 0));
}

/* Waits until the file was not changed for a moment: its modification time is too coarse to tell
 * two changes apart that follow each other. */
static bool look_when_quiet(struct gp_store *store)
{
    for (int i = 0; i < QUIET_TRIES; i++) {
        struct timespec now;
        if (!look(store, &store->seen))
            return false;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        const int64_t age_ns = ns_of(&now) - store->seen.changed_ns;
        if (age_ns > QUIET_NS || age_ns < -QUIET_NS)
            return true;
        const struct timespec moment = {.tv_nsec = QUIET_NS / 2};
        (void)nanosleep(&moment, NULL);
    }
    return false;
}

bool gp_store_is_steady(struct gp_store *store)
{
    struct gp_store_seen now;
    return look(store, &now) && is_same(&store->seen, &now);
}

bool gp_store_is_current(struct gp_store *store)
{
    struct gp_store_seen now;
    return look(store, &now) && is_same(&store->seen, &now) && now.has_log == store->seen.has_log &&
           now.log_size == store->seen.log_size;
}

static int check_file(const char *path, struct gp_err *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot open '%.200s'", path);
    if (!S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EFORMAT, "'%.200s' is not a file", path);
    if (access(path, R_OK) < 0)
        return gp_err_set(err, GP_EPERM, "cannot read '%.200s': %s", path, strerror(errno));
    return 0;
}

int gp_store_open(const char *path, struct gp_store **ret, struct gp_err *err)
{
    int r = check_file(path, err);
    if (r < 0)
        return r;
    struct gp_store *store = gp_store_new(path, err);
    if (!store)
        return GP_ENOMEM;
    if (!look_when_quiet(store))
        r = gp_err_set(err, GP_EBUSY, "'%.200s' is being written; try again", path);
    else if (store->seen.is_foreign_log)
        r = gp_err_set(err, GP_EPERM, "'%.200s-wal' does not belong to the owner of '%.100s'", path,
                       path);
    if (r == 0)
        r = gp_store_open_database(store, SQLITE_OPEN_READONLY, err);
    /* otherwise, closing it could remove the log of the writer */
    if (r == 0 &&
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != SQLITE_OK)
        r = gp_store_fail(store, GP_EIO, "open", err);
    if (r == 0)
        r = gp_store_check_version(store, err);
    if (r == 0)
        r = gp_store_read_columns(store, err);
    if (r < 0)
        gp_store_close(store);
    else
        *ret = store;
    return r;
}

static uint64_t size_of(const struct gp_store *store, const char *suffix)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    return gp_store_beside(store, suffix, path) && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t gp_store_log_size(const struct gp_store *store)
{
    return size_of(store, "-wal");
}

uint64_t gp_store_size(const struct gp_store *store)
{
    return size_of(store, "");
}

void gp_store_read_ahead(const struct gp_store *store)
{
    struct stat st;
    const int fd = open(store->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is_worth_it =
        fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= AHEAD_MAX;
    for (off_t at = 0; is_worth_it && at < st.st_size; at += AHEAD_STEP)
        (void)posix_fadvise(fd, at, AHEAD_STEP, POSIX_FADV_WILLNEED);
    if (fd >= 0)
        (void)close(fd);
}

static bool is_time(int64_t t)
{
    return t >= 0 && t <= GP_STORE_TIME_MAX;
}

int gp_store_marks(struct gp_store *store, struct gp_axis_mark **ret, size_t *ret_count,
                   struct gp_err *err)
{
    sqlite3_stmt *statement =
        gp_store_statement(store, "SELECT t, ahead, boot, boottime FROM clock ORDER BY t", "");
    struct gp_axis_mark *marks = NULL;
    size_t count = 0;
    int r;
    while ((r = gp_store_step(store, statement, err)) == 1) {
        struct gp_axis_mark *grown = realloc(marks, (count + 1) * sizeof(*grown));
        if (!grown) {
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
            break;
        }
        marks = grown;
        marks[count] = (struct gp_axis_mark){.t = gp_store_int(statement, 0),
                                             .ahead_us = gp_store_int(statement, 1),
                                             .boottime_us = gp_store_int(statement, 3)};
        (void)snprintf(marks[count].boot, sizeof(marks[count].boot), "%s",
                       gp_store_text(statement, 2));
        if (!is_time(marks[count].t) || !is_time(llabs(marks[count].ahead_us)) ||
            !is_time(marks[count].boottime_us)) {
            r = gp_store_damaged(store, err);
            break;
        }
        count++;
    }
    if (statement)
        (void)sqlite3_reset(statement);
    if (r < 0) {
        free(marks);
        return r;
    }
    *ret = marks;
    *ret_count = count;
    return 0;
}
