/* Creating and writing a recording. */
#include "tape/store_internal.h"

#include "base/err.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The bytes that SQLite's readers lock, behind its "pending byte". */
enum { SHARED_FIRST = 0x40000000 + 2, SHARED_SIZE = 510 };
enum { GUARD_TRIES = 50, GUARD_REST_MS = 20 };

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

static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* In a directory that others can write to, they could have prepared the file or its log. */
static int check_ours(const struct gp_store *store, const char *suffix, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    if (!gp_store_beside(store, suffix, path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    if (lstat(path, &st) == 0 && !is_ours(&st))
        return gp_err_set(err, GP_EPERM,
                          "'%.200s' is not a file of yours that only you can write; record to "
                          "another file",
                          path);
    return 0;
}

/* The file of the lock has the pid of its owner, for gp_store_writer(). */
static int lock(struct gp_store *store, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    char pid[24];
    struct stat st;
    if (!gp_store_beside(store, "-lock", path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (store->lock_fd < 0 || fstat(store->lock_fd, &st) < 0)
        return gp_err_set(err, errno == EACCES ? GP_EPERM : GP_EIO, "cannot create '%.200s': %s",
                          path, strerror(errno));
    if (!is_ours(&st) || (st.st_mode & (S_IRGRP | S_IROTH)))
        return gp_err_set(err, GP_EPERM, "'%.200s' is not a private file of yours", path);
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return gp_err_set(err, GP_EBUSY, "another gpulse is recording to '%.200s'", store->path);
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (ftruncate(store->lock_fd, 0) < 0 || pwrite(store->lock_fd, pid, (size_t)n, 0) != n)
        return gp_err_set(err, GP_EIO, "cannot write to '%.200s': %s", path, strerror(errno));
    return 0;
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
    const bool is_held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    const bool has_text = is_held && pread(fd, text, sizeof(text) - 1, 0) > 0;
    (void)close(fd);
    return has_text ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* SQLite would create it with the permissions of the umask. */
static int create_file(const struct gp_store *store, struct gp_err *err)
{
    int fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return gp_err_set(err, errno == EACCES ? GP_EPERM : GP_EIO, "cannot create '%.200s': %s",
                          store->path, strerror(errno));
    (void)close(fd);
    return check_ours(store, "", err);
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

static int prepare_tables(struct gp_store *store, struct gp_err *err)
{
    int r = gp_store_execute(store, "BEGIN", "write to", err);
    if (r < 0)
        return r;
    const bool is_new = gp_store_number(store, "SELECT count(*) FROM sqlite_schema", -1) == 0;
    r = is_new ? gp_store_create_tables(store, err) : gp_store_check_version(store, err);
    if (r == 0)
        r = gp_store_read_columns(store, err);
    if (r == 0)
        r = add_columns(store, err);
    return r < 0 ? r : gp_store_execute(store, "COMMIT", "write to", err);
}

int gp_store_create(const char *path, struct gp_store **ret, struct gp_err *err)
{
    struct gp_store *store = gp_store_new(path, err);
    if (!store)
        return GP_ENOMEM;
    int r = create_file(store, err);
    if (r == 0)
        r = lock(store, err);
    if (r == 0)
        r = check_ours(store, "-wal", err);
    if (r == 0) {
        show_reader(store);
        r = gp_store_open_database(store, SQLITE_OPEN_READWRITE, err);
    }
    if (r == 0)
        r = gp_store_execute(store,
                             "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; "
                             "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0",
                             "open", err);
    if (r == 0)
        r = prepare_tables(store, err);
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
