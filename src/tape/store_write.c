/* Creating and writing a recording. */
#include "tape/store_internal.h"

#include "base/err.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The bytes that SQLite's readers lock, behind its "pending byte". */
enum { SHARED_FIRST = 0x40000000 + 2, SHARED_SIZE = 510 };
enum { GUARD_TRIES = 50, GUARD_REST_MS = 20, LOCK_TRIES = 20, LOCK_REST_MS = 5 };

static int add_columns(struct gp_store *store, struct gp_err *err)
{
    int r = 0;
    for (int column = gp_tape_columns_missing(store->columns, -1);
         r == 0 && column < GP_TAPE_COLUMN__COUNT;
         column = gp_tape_columns_missing(store->columns, column)) {
        const enum gp_tape_scope scope = gp_tape_column_scope(column);
        const int64_t place = store->columns->counts[scope];
        if (!gp_tape_columns_add(store->columns, scope, gp_tape_column_name(column),
                                 gp_tape_column_scale(column)))
            return gp_err_set(err, GP_EIO,
                              "'%.200s' has no room for more fields: record to a new "
                              "file",
                              store->path);
        r = gp_store_run(store, err, "INSERT INTO field VALUES(?, ?, ?, ?)", "iitd", (int64_t)scope,
                         place, gp_tape_column_name(column), gp_tape_column_scale(column));
    }
    return r;
}

/* A file with a second name may be one that another user has linked here. */
static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
           !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* In a directory that others can write to, they could have prepared a file. */
static int check_ours(const struct gp_store *store, const char *suffix, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    if (!gp_store_beside(store, suffix, path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    if (lstat(path, &st) < 0 || is_ours(&st))
        return 0;
    if (S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0))
        return gp_err_set(err, GP_EUSAGE, "'%.200s' is a directory; record to a file in it", path);
    return gp_err_set(err, GP_EPERM,
                      "'%.200s' is not a file of yours that only you can write; record to "
                      "another file",
                      path);
}

/* In the directory of a recording for all users, none of them may replace it. */
static int check_directory(const struct gp_store *store, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    const char *slash = strrchr(store->path, '/');
    const int len = slash ? (int)(slash - store->path) : 0;
    (void)snprintf(path, sizeof(path), "%.*s", len, store->path);
    if (!*path)
        (void)snprintf(path, sizeof(path), slash ? "/" : ".");
    if (stat(path, &st) < 0)
        return gp_err_set(err, gp_err_code(errno, GP_EIO), "cannot record to '%.200s': %s%s", path,
                          strerror(errno), errno == ENOENT ? "; create it first" : "");
    const bool is_closed = !(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX;
    return (st.st_uid == 0 || st.st_uid == geteuid()) && is_closed
               ? 0
               : gp_err_set(err, GP_EPERM,
                            "other users can replace files in '%.200s'; record for all users to "
                            "another directory",
                            path);
}

static int lock(struct gp_store *store, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    if (!gp_store_beside(store, "-lock", path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (store->lock_fd < 0 || fstat(store->lock_fd, &st) < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot create '%.200s'", store->path);
    if (!is_ours(&st) || (st.st_mode & (S_IRGRP | S_IROTH)))
        return gp_err_set(err, GP_EPERM, "'%.200s' is not a private file of yours", path);
    int tries = 0; /* gp_store_writer() holds the lock for a moment */
    while (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec moment = {.tv_nsec = LOCK_REST_MS * (long)GP_NS_PER_MS};
        if (++tries > LOCK_TRIES)
            return gp_err_set(err, GP_EBUSY, "another gpulse is recording to '%.200s'",
                              store->path);
        (void)nanosleep(&moment, NULL);
    }
    if (ftruncate(store->lock_fd, 0) < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot write to '%.200s'", path);
    return 0;
}

int gp_store_announce(struct gp_store *store, struct gp_err *err)
{
    char pid[24];
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    return pwrite(store->lock_fd, pid, (size_t)n, 0) == n
               ? 0
               : gp_err_system(err, errno, GP_EIO, "cannot write to '%.180s-lock'", store->path);
}

/* The process that a lock names, if it belongs to the owner of the lock: otherwise, root could be
 * made to end any process. */
static pid_t writer_of(const char *text, const struct stat *lock)
{
    char path[32];
    struct stat st;
    const long pid = strtol(text, NULL, 10);
    if (pid <= 0 || pid > INT_MAX)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/%ld", pid);
    return stat(path, &st) == 0 && st.st_uid == lock->st_uid ? (pid_t)pid : 0;
}

pid_t gp_store_writer(const char *file)
{
    char path[GP_PATH_SIZE];
    char text[24] = "";
    const struct gp_store store = {.path = file};
    if (!gp_store_beside(&store, "-lock", path))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    struct stat st;
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const bool is_held = is_file && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    const bool has_text = is_held && pread(fd, text, sizeof(text) - 1, 0) > 0;
    (void)close(fd);
    return has_text ? writer_of(text, &st) : 0;
}

/* An empty log keeps others from putting theirs there before SQLite opens it. Next to an empty
 * file, SQLite would remove it. */
static void create_log(const struct gp_store *store)
{
    char log[GP_PATH_SIZE];
    struct stat st;
    if (!gp_store_beside(store, "-wal", log) || stat(store->path, &st) < 0 || st.st_size == 0)
        return;
    const int fd = open(log, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return; /* there is one, which is checked next */
    if (fchmod(fd, st.st_mode & 0644) < 0)
        errno = 0;
    (void)close(fd);
}

/* SQLite's other tools use its locks. The last of them to close a database would remove the log of
 * this writer, which it does not see; if it sees a reader, it does not. Nobody is kept from reading
 * by that, and without it, nothing is lost that is not recorded anew. */
static void show_reader(struct gp_store *store)
{
    const struct flock as_reader = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = SHARED_FIRST, .l_len = SHARED_SIZE};
    store->guard_fd = open(store->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    for (int i = 0; store->guard_fd >= 0 && i < GUARD_TRIES; i++) {
        if (fcntl(store->guard_fd, F_OFD_SETLK, &as_reader) == 0)
            return;
        const struct timespec moment = {.tv_nsec = GUARD_REST_MS * (long)GP_NS_PER_MS};
        (void)nanosleep(&moment, NULL); /* one of them is closing it now */
    }
}

/* A recording is for its user or for all users from its first sample on. */
static int check_shared(struct gp_store *store, bool is_shared, struct gp_err *err)
{
    if (store->columns->is_shared == is_shared)
        return 0;
    return gp_err_set(err, GP_EUSAGE,
                      is_shared ? "'%.200s' is the recording of one user; record for all users to "
                                  "another file"
                                : "'%.200s' is a recording for all users: --shared continues it",
                      store->path);
}

/* Makes the tables of a new recording, at once: in another file, which then gets its name. SQLite's
 * other tools take the log of an empty file for a stale one, and remove it. There is no journal on
 * the disk, see vfs.c. */
static int fill_file(struct gp_store *store, bool is_shared, struct gp_err *err)
{
    int r = gp_store_open_database(store, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (r == 0)
        r = gp_store_execute(store,
                             "PRAGMA journal_mode=MEMORY; PRAGMA auto_vacuum=INCREMENTAL; BEGIN",
                             "create", err);
    if (r == 0)
        r = gp_store_upgrade(store, err);
    if (r == 0 && is_shared)
        r = gp_store_execute(store, "INSERT INTO meta VALUES('shared', 1)", "create", err);
    return r < 0 ? r : gp_store_execute(store, "COMMIT; PRAGMA journal_mode=WAL", "create", err);
}

static int begin_file(const struct gp_store *store, bool is_shared, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct gp_store *made = NULL;
    if (!gp_store_beside(store, "-new", path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    (void)unlink(path); /* an earlier attempt; another user's stays, and is no file of ours */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 || (is_shared && fchmod(fd, 0644) < 0) ? GP_EIO : 0;
    if (fd >= 0)
        (void)close(fd);
    if (r == 0 && !(made = gp_store_new(path, err)))
        return GP_ENOMEM;
    if (made)
        r = fill_file(made, is_shared, err);
    gp_store_close(made);
    if (r == 0 && rename(path, store->path) < 0)
        r = GP_EIO;
    return r == 0 || made ? r
                          : gp_err_set(err, r, "cannot create '%.200s': %s", path, strerror(errno));
}

static int prepare_tables(struct gp_store *store, bool is_shared, struct gp_err *err)
{
    int r = gp_store_execute(store, "BEGIN", "write to", err);
    if (r < 0)
        return r;
    r = gp_store_check_version(store, err);
    if (r == 0)
        r = gp_store_read_columns(store, err);
    if (r == 0)
        r = check_shared(store, is_shared, err);
    if (r == 0 && store->version < GP_STORE_VERSION)
        r = gp_store_upgrade(store, err);
    if (r == 0)
        r = add_columns(store, err);
    return r < 0 ? r : gp_store_execute(store, "COMMIT", "write to", err);
}

/* Whether the file is new or a recording, from its head alone: another program's database must not
 * even be opened for writing. */
static int check_head(const struct gp_store *store, struct gp_err *err)
{
    static const char magic[] = "SQLite format 3";
    enum { HEAD = 100, APPLICATION_AT = 68 };
    uint8_t head[HEAD] = {0};
    const int fd = open(store->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return 0; /* it is new, or what is wrong with it is found next */
    uint32_t application = 0;
    for (size_t i = 0; i < 4; i++)
        application = application << 8 | head[APPLICATION_AT + i];
    return n == HEAD && memcmp(head, magic, sizeof(magic)) == 0 &&
                   application == GP_STORE_APPLICATION
               ? 0
               : gp_store_damaged(store, err);
}

/* Before SQLite opens anything. */
static int prepare_files(struct gp_store *store, bool is_shared, struct gp_err *err)
{
    static const char *const suffixes[] = {"", "-lock", "-wal"};
    int r = is_shared ? check_directory(store, err) : 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(suffixes); i++)
        r = check_ours(store, suffixes[i], err);
    if (r == 0)
        r = check_head(store, err);
    if (r == 0)
        r = lock(store, err);
    if (r == 0 && gp_store_size(store) == 0)
        r = begin_file(store, is_shared, err);
    if (r == 0) {
        show_reader(store);
        create_log(store);
    }
    return r == 0 ? check_ours(store, "-wal", err) : r;
}

int gp_store_create(const char *path, bool is_shared, struct gp_store **ret, struct gp_err *err)
{
    struct gp_store *store = gp_store_new(path, err);
    if (!store)
        return GP_ENOMEM;
    int r = prepare_files(store, is_shared, err);
    if (r == 0)
        r = gp_store_open_database(store, SQLITE_OPEN_READWRITE, err);
    if (r == 0)
        r = gp_store_execute(store,
                             "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                             "PRAGMA wal_autocheckpoint=0",
                             "open", err);
    if (r == 0)
        r = prepare_tables(store, is_shared, err);
    if (r == 0) /* it was created just now */
        r = check_ours(store, "-wal", err);
    if (r < 0)
        gp_store_close(store);
    else
        *ret = store;
    return r;
}

int gp_store_checkpoint(struct gp_store *store, struct gp_err *err)
{
    return sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ==
                   SQLITE_OK
               ? 0
               : gp_store_fail(store, GP_EIO, "write to", err);
}
