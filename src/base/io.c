#include "base/io.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool gp_io_path(char out[GP_PATH_SIZE], const char *root, const char *path)
{
    int n = snprintf(out, GP_PATH_SIZE, "%s%s", root ? root : "", path);
    return n >= 0 && n < GP_PATH_SIZE;
}

long gp_io_read(const char *path, char *buf, size_t cap)
{
    return gp_io_read_at(AT_FDCWD, path, buf, cap);
}

long gp_io_read_at(int dir, const char *path, char *buf, size_t cap)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    long result = 0;
    while (len < cap - 1) {
        ssize_t n = read(fd, buf + len, cap - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            result = -errno;
        if (n <= 0)
            break;
        len += (size_t)n;
        /* A short read of a /proc or /sys file means that the file is complete. */
        if (len < cap - 1)
            break;
    }
    (void)close(fd);
    buf[len] = '\0';
    return result < 0 ? result : (long)len;
}

int gp_io_open_beneath(int dir, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (unsigned)flags | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    /* an old kernel, or an old seccomp filter */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !strchr(path, '/'))
        fd = openat(dir, path, (int)how.flags);
    return fd < 0 ? -errno : (int)fd;
}

bool gp_io_stat_beneath(int dir, const char *path, struct stat *ret)
{
    int fd = gp_io_open_beneath(dir, path, O_PATH);
    int e = fd < 0 ? -fd : fstat(fd, ret) != 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    errno = e;
    return e == 0;
}

const char *gp_io_user_text(unsigned uid, char ret[GP_USER_TEXT_SIZE])
{
    struct passwd entry;
    struct passwd *found = NULL;
    char room[4096];
    if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
        (void)snprintf(ret, GP_USER_TEXT_SIZE, "%s", found->pw_name);
    else
        (void)snprintf(ret, GP_USER_TEXT_SIZE, "uid %u", uid);
    return ret;
}

uint64_t gp_io_random(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        number = (uint64_t)time(NULL) << 22 ^ (uint64_t)getpid(); /* this kernel has no such call */
    return number;
}

void gp_io_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int gp_io_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1) >= 0)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Whether a folder is this user's, or root's and nobody else can have prepared what is in it. If it
 * is missing, its nearest parent counts, where anybody else may create it. The group of root counts
 * as root: OpenShift's homes belong to it. */
static bool is_own_folder(char path[GP_PATH_SIZE])
{
    struct stat st = {.st_uid = 0}; /* of "/" */
    char *slash;
    while (stat(path, &st) != 0 && (slash = strrchr(path + 1, '/')))
        *slash = '\0';
    bool is_shared =
        S_ISDIR(st.st_mode) && (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid != 0));
    return st.st_uid == 0 ? !is_shared : st.st_uid == geteuid();
}

/* Checks all folders of a path from its first `end` bytes on: sudo may keep the HOME of a user, who
 * could lead root's files elsewhere, and HOME may be /tmp. */
static bool is_own_path(const char *path, size_t end)
{
    for (;; end += 1 + strcspn(path + end + 1, "/")) {
        char folder[GP_PATH_SIZE];
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)end, path);
        if (!is_own_folder(folder))
            return false;
        if (path[end] == '\0')
            return true;
    }
}

bool gp_io_user_folder(char ret[GP_PATH_SIZE], const char *variable, const char *hidden,
                       const char *name)
{
    const char *base = getenv(variable);
    const char *home = getenv("HOME");
    const int room = GP_PATH_SIZE - 64; /* for a name in it */
    bool has_base = base && *base == '/';
    if (!has_base)
        base = home;
    if (!base || *base != '/')
        return false;
    int n = has_base ? snprintf(ret, GP_PATH_SIZE, "%s/gpulse/%s", base, name)
                     : snprintf(ret, GP_PATH_SIZE, "%s/%s/gpulse/%s", base, hidden, name);
    return n > 0 && n < room && is_own_path(ret, strlen(base));
}

int gp_io_make_folders(const char *path)
{
    char copy[GP_PATH_SIZE];
    struct stat st;
    int first = 0; /* why the first of them could not be created */
    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *p = copy + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int failed = mkdir(copy, 0700) != 0 ? errno : 0;
        if (failed && failed != EEXIST && first == 0 && stat(copy, &st) != 0)
            first = failed;
        *p = '/';
    }
    if (mkdir(copy, 0700) == 0)
        return 0;
    int e = errno == ENOENT && first ? first : errno;
    if (e == EEXIST && stat(copy, &st) == 0 && !S_ISDIR(st.st_mode))
        e = ENOTDIR;
    return e == EEXIST ? 0 : -e;
}

void gp_io_print_error(const char *program, const struct gp_err *err)
{
    gp_io_print_note(program, err->text);
}

void gp_io_print_note(const char *program, const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(8192);
    gp_strbuf_addf(&sb, "%s: ", program);
    gp_utf8_add_safe(&sb, text, strlen(text), 4096);
    gp_strbuf_addc(&sb, '\n');
    (void)!gp_io_write_all(STDERR_FILENO, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

size_t gp_io_columns(void)
{
    const char *given = getenv("COLUMNS");
    struct winsize size = {0};
    char *end = NULL;
    unsigned long columns = given ? strtoul(given, &end, 10) : 0;
    if (columns > 0 && *end == '\0' && columns <= UINT16_MAX)
        return columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static bool find_near(const char *file, const char *sub, const char *name, char out[GP_PATH_SIZE])
{
    const char *slash = strrchr(file, '/');
    const char *const places[] = {sub,
                                  "",
                                  "../libexec/gpulse",
                                  "../share/gpulse",
                                  "../../share/gpulse",
                                  "../../libexec/gpulse",
                                  "../../bin"};
    for (size_t i = 0; slash && i < GP_ARRAY_LEN(places); i++) {
        int len = snprintf(out, GP_PATH_SIZE, "%.*s/%s%s%s", (int)(slash - file), file, places[i],
                           *places[i] ? "/" : "", name);
        if (len > 0 && len < GP_PATH_SIZE && access(out, F_OK) == 0)
            return true;
    }
    return false;
}

int gp_io_own_program(char ret[GP_PATH_SIZE], struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return gp_err_system(err, errno, GP_EIO, "cannot read /proc/self/exe");
    memcpy(ret, path, (size_t)n);
    ret[n] = '\0';
    return 0;
}

int gp_io_find_companion(const char *sub, const char *name, char out[GP_PATH_SIZE],
                         struct gp_err *err)
{
    char exe[GP_PATH_SIZE];
    Dl_info self;
    int r = gp_io_own_program(exe, err);
    if (r < 0)
        return r;
    if (find_near(exe, sub, name, out))
        return 0;
    /* in another program, which uses the library */
    if (dladdr((void *)(uintptr_t)find_near, &self) && find_near(self.dli_fname, sub, name, out))
        return 0;
    return gp_err_set(
        err, GP_EFAIL,
        "cannot find gpulse's own %s next to %.*s or in its ../libexec/gpulse; is gpulse installed "
        "completely?",
        name, (int)(strrchr(exe, '/') - exe), exe);
}

void gp_io_list_names(const char *dir, const char *suffix, struct gp_strbuf *sb)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t len = strlen(name);
        size_t end = strlen(suffix);
        if (len > end && strcmp(name + len - end, suffix) == 0) {
            gp_strbuf_add(sb, name, len - end);
            gp_strbuf_addc(sb, '\n');
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void gp_io_secure_standard_fds(void)
{
    /* The wrong access mode is intended: reading or writing there must fail, as it did when closed.
     * */
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(1);
}
