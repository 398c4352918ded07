#include "base/outfile.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int cannot(const char *what, const struct gp_outfile *f, struct gp_err *err)
{
    int error = errno;
    if (!f->config.path)
        return gp_err_system(err, error, GP_EIO, "cannot %s the output", what);
    return gp_err_system(err, error, GP_EIO, "cannot %s '%s'", what, f->config.path);
}

static bool rotates(const struct gp_outfile_config *config)
{
    return config->size_max || config->age_max_ns;
}

static uint64_t size_of(const struct gp_outfile *f)
{
    struct stat st;
    return f->regular && fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void gp_outfile_init(struct gp_outfile *f, int fd)
{
    *f = (struct gp_outfile){.fd = fd};
}

/* ---- names that another user may have prepared ---- */

enum { LINKS_MOST = 16 };

static bool is_trusted(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* The path of its directory. */
static const char *folder_of(const char *path, char ret[GP_PATH_SIZE])
{
    (void)snprintf(ret, GP_PATH_SIZE, "%s", path);
    char *slash = strrchr(ret, '/');
    if (!slash)
        return ".";
    slash[1] = '\0'; /* "/" stays "/" */
    return ret;
}

/* Whether other users may create files in the directory of this one. */
static bool is_in_public(const char *path)
{
    char folder[GP_PATH_SIZE];
    struct stat st;
    return stat(folder_of(path, folder), &st) == 0 && (st.st_mode & (S_IWOTH | S_ISVTX));
}

enum { NO_LINK, LINK, PROC_LINK };

/* Replaces a link by what it leads to, if it belongs to root or this user: LINK. A link of /proc
 * (/dev/stdout leads to one) has no other name, and another user cannot create it: PROC_LINK. The
 * link that is checked is the one that is read. */
static int follow(char path[GP_PATH_SIZE], struct gp_err *err)
{
    char target[GP_PATH_SIZE];
    char user[GP_USER_TEXT_SIZE];
    struct stat st;
    struct statfs fs;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_link = fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode) && fstatfs(fd, &fs) == 0;
    ssize_t n = is_link ? readlinkat(fd, "", target, sizeof(target) - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (!is_link)
        return NO_LINK;
    if (fs.f_type == PROC_SUPER_MAGIC)
        return PROC_LINK;
    if (!is_trusted(st.st_uid))
        return gp_err_set(err, GP_EPERM, "it is a link created by %s",
                          gp_io_user_text(st.st_uid, user));
    if (st.st_nlink > 1 && is_in_public(path))
        return gp_err_set(err, GP_EPERM,
                          "it is a link with a second hard link, which anybody may have created");
    if (n < 0)
        return gp_err_set(err, gp_err_code(errno, GP_EIO), "%s", strerror(errno));
    target[n] = '\0';
    char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    char *name = slash ? slash + 1 : path;
    int room = GP_PATH_SIZE - (int)(name - path);
    if (snprintf(name, (size_t)room, "%s", target) >= room)
        return gp_err_set(err, GP_EIO, "%s", strerror(ENAMETOOLONG));
    return LINK;
}

/* For a file that existed before. A FIFO of another user would hand over the output, and block. */
static int check_found(int fd, const char *path, struct gp_err *err)
{
    char user[GP_USER_TEXT_SIZE];
    struct stat st;
    if (fstat(fd, &st) != 0 || !is_in_public(path))
        return 0;
    if (!is_trusted(st.st_uid))
        return gp_err_set(err, GP_EPERM,
                          "it belongs to %s, in a directory that others can write to",
                          gp_io_user_text(st.st_uid, user));
    if (S_ISREG(st.st_mode) && st.st_nlink > 1)
        return gp_err_set(err, GP_EPERM,
                          "it has a second hard link, which anybody may have created");
    return 0;
}

static int open_once(const char *path, int flags, mode_t mode, struct gp_err *err)
{
    int fd = open(path, flags);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        fd = open(path, flags);
    }
    if (fd < 0 || check_found(fd, path, err) == 0)
        return fd;
    (void)close(fd);
    errno = EPERM;
    return -1;
}

/* Another user may exchange a link and a file at any time. What is no longer a link is therefore
 * opened in the same way again: only a link of /proc is followed by the kernel. */
static int open_followed(const char *path, int flags, mode_t mode, struct gp_err *err)
{
    char at[GP_PATH_SIZE];
    if (snprintf(at, sizeof(at), "%s", path) >= GP_PATH_SIZE) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; i < LINKS_MOST; i++) {
        int fd = open_once(at, flags | O_NOFOLLOW, mode, err);
        if (fd >= 0 || errno != ELOOP)
            return fd;
        int r = follow(at, err);
        if (r == PROC_LINK)
            return open_once(at, flags, mode, err);
        if (r < 0)
            return -1;
    }
    errno = ELOOP;
    return -1;
}

int gp_outfile_create(const char *path, int flags, mode_t mode, struct gp_err *err)
{
    struct gp_err why = {0};
    flags |= O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    int fd = open_followed(path, flags, mode, &why);
    if (fd >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        (void)close(fd);
        fd = -1;
    }
    if (fd >= 0)
        return fd;
    int e = errno;
    if (e == ENXIO)
        (void)gp_err_set(err, GP_EIO, "it is a FIFO without a reader");
    else
        (void)gp_err_set(err, why.code ? why.code : GP_EIO, "%s",
                         why.code ? why.text : strerror(e));
    errno = e;
    return -1;
}

int gp_outfile_resolve(const char *path, char ret[GP_PATH_SIZE], struct gp_err *err)
{
    int r = LINK;
    if (snprintf(ret, GP_PATH_SIZE, "%s", path) >= GP_PATH_SIZE)
        return gp_err_set(err, GP_EIO, "cannot write '%.40s…': its name is too long", path);
    for (int i = 0; r == LINK && i < LINKS_MOST; i++) {
        struct gp_err why = {0};
        r = follow(ret, &why);
        if (r < 0)
            return gp_err_set(err, r, "cannot write '%s': %s", path, why.text);
    }
    return r == LINK ? gp_err_set(err, GP_EIO, "cannot write '%s': %s", path, strerror(ELOOP)) : 0;
}

/* ---- opening ---- */

/* O_APPEND keeps the file intact if somebody truncates it meanwhile. */
static int open_file(struct gp_outfile *f, bool begin_anew, struct gp_err *err)
{
    struct gp_err why = {0};
    struct stat st;
    f->fd =
        gp_outfile_create(f->config.path, O_APPEND, f->config.mode ? f->config.mode : 0666, &why);
    if (f->fd < 0)
        return gp_err_set(err, why.code, "cannot write '%s': %s", f->config.path, why.text);
    f->regular = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode);
    f->opened_ns = gp_clock_mono_ns();
    if (f->regular && begin_anew && ftruncate(f->fd, 0) != 0)
        return cannot("write", f, err);
    return 0;
}

/* Only regular files can be renamed, and their names need room for a numeric suffix. */
static int check_renaming(const char *what, const char *path, struct gp_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EIO, "cannot %s '%s': it is not a regular file", what, path);
    if (strlen(path) >= GP_PATH_SIZE - 8)
        return gp_err_set(err, GP_EIO, "cannot %s '%.40s…': its name is too long", what, path);
    return 0;
}

/* Reports immediately what would make a rotation fail hours later. */
static int check_rotation(const char *path, struct gp_err *err)
{
    char folder[GP_PATH_SIZE];
    int r = check_renaming("rotate", path, err);
    if (r < 0)
        return r;
    if (access(folder_of(path, folder), W_OK | X_OK) != 0 && errno != ENOENT)
        return gp_err_system(err, errno, GP_EIO,
                             "cannot rotate '%s': no files can be created there", path);
    return 0;
}

/* An earlier run may have been cut off within a line, so the next one starts on a new line. Reads
 * the open file, because its name may belong to another one by now. */
static int end_last_line(struct gp_outfile *f, struct gp_err *err)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
    uint64_t size = size_of(f);
    int fd = size > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char last = '\n';
    if (fd < 0)
        return 0;
    ssize_t n = pread(fd, &last, 1, (off_t)(size - 1));
    (void)close(fd);
    return n == 1 && last != '\n' ? gp_outfile_write(f, "\n", 1, err) : 0;
}

/* A link stays one: what it leads to is overwritten. */
static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Whether opening it gives its name to a new file. */
static bool is_renamed(const struct gp_outfile_config *config, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_size > 0 && !config->append &&
           (rotates(config) || (config->keep > 0 && !is_link(config->path)));
}

int gp_outfile_check(const struct gp_outfile_config *config, struct gp_err *err)
{
    char at[GP_PATH_SIZE], folder[GP_PATH_SIZE];
    struct stat st;
    int r = rotates(config) ? check_rotation(config->path, err) : 0;
    r = r < 0 ? r : gp_outfile_resolve(config->path, at, err);
    if (r < 0)
        return r;
    const bool exists = stat(at, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return gp_err_system(err, EISDIR, GP_EIO, "cannot write '%s'", config->path);
    bool is_well = !exists || access(at, W_OK) == 0;
    if (is_well && (!exists || is_renamed(config, &st)))
        is_well = access(folder_of(at, folder), W_OK | X_OK) == 0;
    return is_well ? 0 : gp_err_system(err, errno, GP_EIO, "cannot write '%s'", config->path);
}

int gp_outfile_open(struct gp_outfile *f, const struct gp_outfile_config *config,
                    struct gp_err *err)
{
    const bool begins_anew =
        !config->append && !rotates(config) && (config->keep == 0 || is_link(config->path));
    *f = (struct gp_outfile){.config = *config, .fd = -1};
    int r = rotates(config) ? check_rotation(config->path, err) : 0;
    if (r == 0)
        r = open_file(f, begins_anew, err);
    if (r == 0 && config->append)
        r = end_last_line(f, err);
    else if (r == 0 && size_of(f) > 0)
        r = gp_outfile_rotate(f, err);
    return r;
}

size_t gp_outfile_peek(const char *path, char *buf, size_t cap)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = regular ? pread(fd, buf, cap - 1, 0) : 0;
    if (fd >= 0)
        (void)close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

bool gp_outfile_is_empty(const struct gp_outfile *f)
{
    return size_of(f) == 0;
}

bool gp_outfile_is_due(const struct gp_outfile *f, size_t len)
{
    uint64_t size = rotates(&f->config) ? size_of(f) : 0;
    if (size == 0)
        return false;
    if (f->config.size_max && size + len > f->config.size_max)
        return true;
    return f->config.age_max_ns && gp_clock_mono_ns() - f->opened_ns >= f->config.age_max_ns;
}

/* Renames FILE.n to FILE.(n + 1), or FILE to FILE.1 if n is 0. A missing file is skipped. */
static int move_up(const struct gp_outfile *f, unsigned n, struct gp_err *err)
{
    char from[GP_PATH_SIZE];
    char to[GP_PATH_SIZE];
    (void)snprintf(from, sizeof(from), n ? "%s.%u" : "%s", f->config.path, n);
    (void)snprintf(to, sizeof(to), "%s.%u", f->config.path, n + 1);
    if (rename(from, to) == 0 || errno == ENOENT)
        return 0;
    return gp_err_system(err, errno, GP_EIO, "cannot rotate '%s': cannot rename it to '%s'", from,
                         to);
}

int gp_outfile_rotate(struct gp_outfile *f, struct gp_err *err)
{
    int r = gp_outfile_close(f, err);
    for (unsigned n = f->config.keep; r == 0 && n-- > 0;)
        r = move_up(f, n, err);
    return r < 0 ? r : open_file(f, false, err);
}

int gp_outfile_write(struct gp_outfile *f, const void *data, size_t len, struct gp_err *err)
{
    uint64_t before = size_of(f);
    int r = gp_io_write_all(f->fd, data, len);
    if (r == 0)
        return 0;
    if (f->regular)
        (void)!ftruncate(f->fd, (off_t)before); /* discard the partial piece, keep the whole ones */
    errno = -r;
    return cannot("write", f, err);
}

/* 0 or −errno. Like gp_io_write_all(), but in place: one call, unless a signal comes or the disk is
 * full, so that a process that is killed leaves no half of it. */
static int write_at(const struct gp_outfile *f, const char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(f->fd, data, len, (off_t)at);
        if (n < 0 && errno != EINTR)
            return -errno;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
        at += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

int gp_outfile_extend(struct gp_outfile *f, const void *data, size_t len, size_t end,
                      struct gp_err *err)
{
    uint64_t before = size_of(f);
    /* With O_APPEND, pwrite() ignores its offset. */
    int flags = fcntl(f->fd, F_GETFL);
    int r = flags < 0 || !f->regular || before < end || len < end ? -EINVAL : 0;
    if (r == 0 && (flags & O_APPEND) && fcntl(f->fd, F_SETFL, flags & ~O_APPEND) != 0)
        r = -errno;
    if (r == 0) {
        r = write_at(f, data, len, before - end);
        if (r < 0 && (ftruncate(f->fd, (off_t)(before - end)) != 0 ||
                      write_at(f, (const char *)data + len - end, end, before - end) < 0))
            (void)!ftruncate(f->fd, (off_t)(before - end));
    }
    if (r == 0)
        return 0;
    errno = -r;
    return cannot("write", f, err);
}

int gp_outfile_close(struct gp_outfile *f, struct gp_err *err)
{
    int fd = f->fd;
    f->fd = -1;
    if (!f->config.path || fd < 0)
        return 0;
    return close(fd) == 0 ? 0 : cannot("write", f, err);
}

/* A new file next to it, under a name that nobody can have prepared. */
static int open_beside(const char *path, mode_t mode, char name[GP_PATH_SIZE])
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < 16; i++) {
        (void)snprintf(name, GP_PATH_SIZE, "%.*s.gpulse-%016" PRIx64, length, path, gp_io_random());
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    return fd;
}

int gp_outfile_replace(const char *path, mode_t mode, const void *data, size_t len, bool durable,
                       struct gp_err *err)
{
    /* Messages name the file that was asked for. */
    struct gp_outfile f = {.config.path = path};
    char name[GP_PATH_SIZE];
    struct stat st;
    int r = check_renaming("replace", path, err);
    if (r < 0)
        return r;
    bool keeps_mode = lstat(path, &st) == 0 && S_ISREG(st.st_mode) && is_trusted(st.st_uid);
    f.fd = open_beside(path, mode, name);
    if (f.fd < 0)
        return cannot("write", &f, err);
    if (keeps_mode && fchmod(f.fd, st.st_mode & (mode | 0111)) != 0)
        r = cannot("write", &f, err);
    if (r == 0)
        r = gp_outfile_write(&f, data, len, err);
    if (r == 0 && durable && fsync(f.fd) != 0 && errno != EINVAL)
        r = cannot("write", &f, err);
    int c = gp_outfile_close(&f, r < 0 ? NULL : err);
    if (r == 0)
        r = c;
    if (r == 0 && rename(name, path) != 0)
        r = gp_err_system(err, errno, GP_EIO, "cannot replace '%s'", path);
    if (r < 0)
        (void)unlink(name);
    return r;
}
