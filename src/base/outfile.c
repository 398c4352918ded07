#include "base/outfile.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(const char *what, const struct gp_outfile *f, struct gp_err *err)
{
    int error = errno;
    if (!f->config.path)
        return gp_err_set(err, GP_EIO, "cannot %s the output: %s", what, strerror(error));
    return gp_err_set(err, GP_EIO, "cannot %s '%s': %s", what, f->config.path, strerror(error));
}

static bool rotates(const struct gp_outfile *f)
{
    return f->config.size_max || f->config.age_max_ns;
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

/* O_APPEND: so the file stays whole when somebody else empties it meanwhile. */
static int open_file(struct gp_outfile *f, int flags, struct gp_err *err)
{
    struct stat st;
    f->fd = open(f->config.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
    if (f->fd < 0)
        return cannot("write", f, err);
    f->regular = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode);
    f->opened_ns = gp_clock_mono_ns();
    return 0;
}

/* Renaming is for regular files, and their names need room for a number behind them. */
static int check_renaming(const char *what, const char *path, struct gp_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EIO, "cannot %s '%s': it is not a regular file", what, path);
    if (strlen(path) >= GP_PATH_SIZE - 8)
        return gp_err_set(err, GP_EIO, "cannot %s '%.40s…': its name is too long", what, path);
    return 0;
}

/* What would make a rotation fail hours later is said at once. */
static int check_rotation(const struct gp_outfile *f, struct gp_err *err)
{
    char dir[GP_PATH_SIZE];
    int r = check_renaming("rotate", f->config.path, err);
    if (r < 0)
        return r;
    (void)snprintf(dir, sizeof(dir), "%s", f->config.path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[1] = '\0'; /* "/" stays "/" */
    if (access(slash ? dir : ".", W_OK | X_OK) != 0 && errno != ENOENT)
        return gp_err_set(err, GP_EIO, "cannot rotate '%s': no new files can be made there: %s",
                          f->config.path, strerror(errno));
    return 0;
}

/* An earlier run may have been cut off inside a line: the next one begins on its own. */
static int end_last_line(struct gp_outfile *f, struct gp_err *err)
{
    uint64_t size = size_of(f);
    int fd = size > 0 ? open(f->config.path, O_RDONLY | O_CLOEXEC) : -1;
    char last = '\n';
    if (fd < 0)
        return 0;
    ssize_t n = pread(fd, &last, 1, (off_t)(size - 1));
    (void)close(fd);
    return n == 1 && last != '\n' ? gp_outfile_write(f, "\n", 1, err) : 0;
}

int gp_outfile_open(struct gp_outfile *f, const struct gp_outfile_config *config,
                    struct gp_err *err)
{
    *f = (struct gp_outfile){.config = *config, .fd = -1};
    int r = rotates(f) ? check_rotation(f, err) : 0;
    if (r == 0)
        r = open_file(f, config->append || rotates(f) ? 0 : O_TRUNC, err);
    if (r == 0 && config->append)
        r = end_last_line(f, err);
    else if (r == 0 && size_of(f) > 0)
        r = gp_outfile_rotate(f, err);
    return r;
}

size_t gp_outfile_peek(const char *path, char *buf, size_t cap)
{
    struct stat st;
    bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    long n = regular ? gp_io_read(path, buf, cap) : 0;
    return n > 0 ? (size_t)n : 0;
}

bool gp_outfile_is_empty(const struct gp_outfile *f)
{
    return size_of(f) == 0;
}

bool gp_outfile_is_due(const struct gp_outfile *f, size_t len)
{
    uint64_t size = rotates(f) ? size_of(f) : 0;
    if (size == 0)
        return false;
    if (f->config.size_max && size + len > f->config.size_max)
        return true;
    return f->config.age_max_ns && gp_clock_mono_ns() - f->opened_ns >= f->config.age_max_ns;
}

/* FILE.n becomes FILE.(n + 1), FILE (n = 0) FILE.1. What is not there needs no new name. */
static int move_up(const struct gp_outfile *f, unsigned n, struct gp_err *err)
{
    char from[GP_PATH_SIZE];
    char to[GP_PATH_SIZE];
    (void)snprintf(from, sizeof(from), n ? "%s.%u" : "%s", f->config.path, n);
    (void)snprintf(to, sizeof(to), "%s.%u", f->config.path, n + 1);
    if (rename(from, to) == 0 || errno == ENOENT)
        return 0;
    return gp_err_set(err, GP_EIO, "cannot rotate '%s': it cannot become '%s': %s", from, to,
                      strerror(errno));
}

int gp_outfile_rotate(struct gp_outfile *f, struct gp_err *err)
{
    int r = gp_outfile_close(f, err);
    for (unsigned n = f->config.keep; r == 0 && n-- > 0;)
        r = move_up(f, n, err);
    return r < 0 ? r : open_file(f, 0, err);
}

int gp_outfile_write(struct gp_outfile *f, const void *data, size_t len, struct gp_err *err)
{
    uint64_t before = size_of(f);
    int r = gp_io_write_all(f->fd, data, len);
    if (r == 0)
        return 0;
    if (f->regular)
        (void)!ftruncate(f->fd, (off_t)before); /* a torn piece goes, the whole ones stay */
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

int gp_outfile_replace(const char *path, const void *data, size_t len, bool durable,
                       struct gp_err *err)
{
    /* Messages are about the file that was asked for. */
    struct gp_outfile f = {.config.path = path};
    char name[GP_PATH_SIZE];
    int r = check_renaming("replace", path, err);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof(name), "%s.new", path);
    f.fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f.fd < 0)
        return cannot("write", &f, err);
    r = gp_outfile_write(&f, data, len, err);
    if (r == 0 && durable && fsync(f.fd) != 0 && errno != EINVAL)
        r = cannot("write", &f, err);
    int c = gp_outfile_close(&f, r < 0 ? NULL : err);
    if (r == 0)
        r = c;
    if (r == 0 && rename(name, path) != 0)
        r = gp_err_set(err, GP_EIO, "cannot replace '%s': %s", path, strerror(errno));
    if (r < 0)
        (void)unlink(name);
    return r;
}
