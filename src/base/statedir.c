#include "base/statedir.h"

#include "base/err.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const places[] = {"/run/gpulse", "/dev/shm/gpulse", "/tmp/gpulse"};

/* Not one in which others could replace our files: it is for all, with files that are their
 * owner's, or ours alone. */
static bool is_safe(const struct stat *st)
{
    if (st->st_mode & S_ISVTX)
        return true;
    return !(st->st_mode & 022) && (st->st_uid == 0 || st->st_uid == geteuid());
}

static int open_place(const char *path, struct gp_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        (void)gp_err_set(err, GP_EIO, "cannot open '%s': %s", path, strerror(errno));
    if (fd < 0 || (fstat(fd, &st) == 0 && is_safe(&st)))
        return fd;
    (void)close(fd);
    (void)gp_err_set(err, GP_EPERM, "'%s' must have mode 1777, or be yours with mode 0755", path);
    return -1;
}

static int make_place(const char *path, mode_t mode, struct gp_err *err)
{
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST) {
        (void)gp_err_set(err, GP_EIO, "cannot make '%s': %s", path, strerror(errno));
        return -1;
    }
    /* the mask of this process has cut it */
    if (made)
        (void)chmod(path, mode);
    return open_place(path, err);
}

int gp_statedir_open(const char *root, bool create, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    const char *told = getenv("GPULSE_STATE_DIR");
    int fd = -1;
    if (told && *told)
        return create ? make_place(told, 0700, err) : open_place(told, err);
    for (size_t i = 0; fd < 0 && i < GP_ARRAY_LEN(places); i++)
        if (gp_io_path(path, root, places[i]))
            fd = open_place(path, err);
    for (size_t i = 1; fd < 0 && create && i < GP_ARRAY_LEN(places); i++)
        if (gp_io_path(path, root, places[i]))
            fd = make_place(path, 01777, err);
    return fd;
}
