#include "doctor/files.h"

#include "base/arena.h"
#include "base/err.h"
#include "doctor/stall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* EAGAIN: something on this machine was renamed while a ".." was resolved, so that the kernel could
 * not be sure that it stayed below the root, openat2(2). */
static long open_in_root(int root, const char *path, int flags)
{
    enum { TRIES = 128 }; /* a program that keeps renaming must not block this one */
    const struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_IN_ROOT};
    long fd = -1;
    for (int i = 0; i < TRIES; i++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

/* Kernels before 5.6 have no openat2(), so links below a root other than "/" cannot be resolved
 * within it. */
static int open_below(const struct gp_files *files, const char *path, int flags)
{
    if (gp_stall_refuses(files->stall, path))
        return -ETIMEDOUT;
    unsigned turn = gp_stall_enter(files->stall, path);
    long fd = files->is_here ? open(path, flags | O_CLOEXEC)
                             : open_in_root(files->fd, path, flags | O_CLOEXEC);
    int r = fd < 0 ? -errno : (int)fd;
    gp_stall_leave(files->stall, turn);
    return r;
}

int gp_files_open(struct gp_files *files, const char *root, struct gp_err *err)
{
    const char *path = root && *root ? root : "/";
    *files = (struct gp_files){.fd = -1};
    if (!realpath(path, files->root))
        return gp_err_system(err, errno, GP_EUSAGE, "cannot access %.200s", path);
    files->is_here = strcmp(files->root, "/") == 0;
    files->fd = open(files->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (files->fd < 0)
        return gp_err_system(err, errno, GP_EUSAGE, "cannot access %.200s", path);
    int probe = open_below(files, "/", O_PATH);
    if (probe == -ENOSYS) {
        gp_files_close(files);
        return gp_err_set(
            err, GP_EFAIL,
            "a root other than / requires Linux 5.6 or newer; this kernel has no openat2");
    }
    if (probe >= 0)
        (void)close(probe);
    return 0;
}

void gp_files_close(struct gp_files *files)
{
    if (files->fd >= 0)
        (void)close(files->fd);
    files->fd = -1;
}

/* Reopens an O_PATH descriptor for reading: exactly the file that was checked, even if its name now
 * leads elsewhere. Consumes the descriptor. */
static int open_seen(const struct gp_files *files, int seen)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
    unsigned turn = gp_stall_enter(files->stall, NULL);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd;
    gp_stall_leave(files->stall, turn);
    (void)close(seen);
    return r;
}

static int look(const struct gp_files *files, int fd, struct stat *ret)
{
    unsigned turn = gp_stall_enter(files->stall, NULL);
    int r = fstat(fd, ret) != 0 ? -errno : 0;
    gp_stall_leave(files->stall, turn);
    return r;
}

/* Opens the file again by its name. */
static int open_again(const struct gp_files *files, const char *path, const struct stat *seen)
{
    struct stat st;
    int fd = open_below(files, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 ||
        (look(files, fd, &st) == 0 && st.st_dev == seen->st_dev && st.st_ino == seen->st_ino))
        return fd;
    (void)close(fd);
    return -EAGAIN;
}

/* A file that this function accepts; opening any other, such as a device, can wake hardware. */
static int open_if(const struct gp_files *files, const char *path,
                   bool (*is_meant)(const struct stat *st))
{
    struct stat st;
    int seen = open_below(files, path, O_PATH);
    int r = seen < 0 ? seen : look(files, seen, &st);
    if (r >= 0 && !is_meant(&st))
        r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    if (r >= 0)
        r = open_seen(files, seen);
    else if (seen >= 0)
        (void)close(seen);
    if (r == -ENOENT && seen >= 0 && access("/proc/self/fd", F_OK) != 0)
        r = open_again(files, path, &st); /* like in a chroot in which it was not mounted */
    return r;
}

static bool is_regular(const struct stat *st)
{
    return S_ISREG(st->st_mode);
}

static bool is_kmsg(const struct stat *st)
{
    enum { MEMORY_DEVICES = 1, KMSG = 11 };
    return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && major(st->st_rdev) == MEMORY_DEVICES &&
                                    minor(st->st_rdev) == KMSG);
}

int gp_files_open_file(const struct gp_files *files, const char *path)
{
    return open_if(files, path, is_regular);
}

int gp_files_open_kmsg(const struct gp_files *files)
{
    return open_if(files, "/dev/kmsg", files->is_here ? is_kmsg : is_regular);
}

/* read(), or −errno. */
static ssize_t read_some(const struct gp_files *files, int fd, char *buf, size_t cap)
{
    unsigned turn = gp_stall_enter(files->stall, NULL);
    ssize_t n = read(fd, buf, cap);
    ssize_t r = n < 0 ? -errno : n;
    gp_stall_leave(files->stall, turn);
    return r;
}

static long read_all(const struct gp_files *files, int fd, char *buf, size_t cap)
{
    size_t len = 0;
    while (len + 1 < cap) {
        ssize_t n = read_some(files, fd, buf + len, cap - 1 - len);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    buf[len] = '\0';
    return (long)len;
}

long gp_files_read(const struct gp_files *files, const char *path, char *buf, size_t cap)
{
    int fd = gp_files_open_file(files, path);
    if (fd < 0)
        return fd;
    long n = read_all(files, fd, buf, cap);
    (void)close(fd);
    return n;
}

/* Files in /proc and /sys do not report their size, so they are read in steps. */
static char *read_steps(const struct gp_files *files, int fd, struct gp_arena *arena, size_t max,
                        size_t *ret_length)
{
    size_t cap = 4096, len = 0;
    char *buf = malloc(cap);
    while (buf) {
        long n = read_all(files, fd, buf + len, cap - len);
        if (n < 0) {
            errno = (int)-n;
            break;
        }
        len += (size_t)n;
        if (len + 1 < cap || len >= max) {
            /* Two NULs end a list of strings whose last one may lack its own. */
            char *text = gp_arena_alloc(arena, len + 2, 1);
            if (text)
                memcpy(text, buf, len);
            free(buf);
            *ret_length = len;
            return text;
        }
        cap = cap * 2 <= max ? cap * 2 : max + 1;
        char *more = realloc(buf, cap);
        if (!more)
            break;
        buf = more;
    }
    free(buf);
    return NULL;
}

/* From `back` bytes before the end; 0: from the beginning. */
static char *text_of(const struct gp_files *files, struct gp_arena *arena, const char *path,
                     size_t max, off_t back, size_t *ret_length)
{
    size_t length = 0;
    struct stat st;
    int fd = gp_files_open_file(files, path);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    if (back > 0 && fstat(fd, &st) == 0 && st.st_size > back)
        (void)lseek(fd, st.st_size - back, SEEK_SET);
    char *text = read_steps(files, fd, arena, max, &length);
    int saved = errno;
    (void)close(fd);
    errno = saved;
    if (text && ret_length)
        *ret_length = length;
    return text;
}

char *gp_files_text(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length)
{
    return text_of(files, arena, path, max, 0, ret_length);
}

char *gp_files_tail(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length)
{
    size_t length = 0;
    char *text = text_of(files, arena, path, max, (off_t)max, &length);
    char *line = text && length == max ? memchr(text, '\n', length) : NULL;
    if (line) { /* the first line may be truncated */
        length -= (size_t)(line + 1 - text);
        text = line + 1;
    }
    if (ret_length)
        *ret_length = length;
    return text;
}

bool gp_files_line(const struct gp_files *files, const char *path, char *buf, size_t cap)
{
    if (gp_files_read(files, path, buf, cap) < 0)
        return false;
    size_t n = strcspn(buf, "\r\n");
    while (n > 0 && (buf[n - 1] == ' ' || buf[n - 1] == '\t'))
        n--;
    buf[n] = '\0';
    return true;
}

static int stat_flags(const struct gp_files *files, const char *path, int flags, struct stat *ret)
{
    int fd = open_below(files, path, O_PATH | flags);
    if (fd < 0)
        return fd;
    unsigned turn = gp_stall_enter(files->stall, NULL);
    int r = fstat(fd, ret) == 0 ? 0 : -errno;
    gp_stall_leave(files->stall, turn);
    (void)close(fd);
    return r;
}

int gp_files_stat(const struct gp_files *files, const char *path, struct stat *ret)
{
    return stat_flags(files, path, 0, ret);
}

int gp_files_stat_link(const struct gp_files *files, const char *path, struct stat *ret)
{
    return stat_flags(files, path, O_NOFOLLOW, ret);
}

bool gp_files_exist(const struct gp_files *files, const char *path)
{
    struct stat st;
    return gp_files_stat(files, path, &st) == 0;
}

const char *gp_files_first(const struct gp_files *files, const char *const *paths)
{
    while (*paths && !gp_files_exist(files, *paths))
        paths++;
    return *paths;
}

bool gp_files_link(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE])
{
    int fd = open_below(files, path, O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return false;
    unsigned turn = gp_stall_enter(files->stall, NULL);
    ssize_t n = readlinkat(fd, "", ret, GP_PATH_SIZE - 1);
    gp_stall_leave(files->stall, turn);
    (void)close(fd);
    if (n < 0)
        return false;
    ret[n] = '\0';
    return true;
}

bool gp_files_real(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE])
{
    char link[64], whole[GP_PATH_SIZE];
    int fd = open_below(files, path, O_PATH);
    if (fd < 0)
        return false;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, whole, sizeof(whole) - 1);
    (void)close(fd);
    if (n < 0)
        return false;
    whole[n] = '\0';
    size_t prefix = files->is_here ? 0 : strlen(files->root);
    if (strncmp(whole, files->root, prefix) != 0)
        return false;
    (void)snprintf(ret, GP_PATH_SIZE, "%s", whole[prefix] ? whole + prefix : "/");
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* readdir(), with errno 0 at the end. */
static const struct dirent *next_entry(const struct gp_files *files, DIR *dir)
{
    unsigned turn = gp_stall_enter(files->stall, NULL);
    errno = 0;
    const struct dirent *entry = readdir(dir);
    gp_stall_leave(files->stall, turn);
    return entry;
}

static long collect(const struct gp_files *files, DIR *dir, struct gp_arena *arena, char **names)
{
    size_t count = 0;
    const struct dirent *entry;
    while ((entry = next_entry(files, dir)) && count < GP_FILES_NAMES) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        names[count] = gp_arena_strdup(arena, entry->d_name);
        if (!names[count])
            return -ENOMEM;
        count++;
    }
    return errno ? -errno : (long)count;
}

long gp_files_list(const struct gp_files *files, struct gp_arena *arena, const char *path,
                   char ***ret)
{
    int fd = open_below(files, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return -ENOMEM;
    }
    char **all = calloc(GP_FILES_NAMES, sizeof(*all));
    long n = all ? collect(files, dir, arena, all) : -ENOMEM;
    (void)closedir(dir);
    if (n >= 0) {
        *ret = gp_arena_alloc(arena, (size_t)n + 1, sizeof(**ret));
        if (*ret && n > 0) {
            qsort(all, (size_t)n, sizeof(*all), compare_names);
            memcpy(*ret, all, (size_t)n * sizeof(*all));
        }
        n = *ret ? n : -ENOMEM;
    }
    free(all);
    return n;
}

bool gp_files_map(const struct gp_files *files, const char *path, const void **ret, size_t *size)
{
    struct stat st;
    int fd = gp_files_open_file(files, path);
    if (fd < 0)
        return false;
    void *data = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (data == MAP_FAILED)
        return false;
    *ret = data;
    *size = (size_t)st.st_size;
    return true;
}
