#include "proc/suspended.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/statedir.h"
#include "base/strbuf.h"
#include "proc/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 64, FILE_BYTES = 8192, TRIES = 16 };

/* More than any GPU has; the sum of all that fit into a note is a number still. */
static const uint64_t BYTES_MOST = (uint64_t)1 << 50;

static const char prefix[] = "suspended.";

static void make_name(char name[NAME_SIZE], const struct gp_suspended *s)
{
    (void)snprintf(name, NAME_SIZE, "%s%" PRIu32 ".%" PRIu64, prefix, s->pid, s->start_ticks);
}

/* "suspended.4711.123456", in no other spelling: a process has one note. */
static bool parse_name(const char *name, struct gp_suspended *ret)
{
    char digits[24];
    char again[NAME_SIZE];
    uint64_t pid;
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return false;
    size_t length = strcspn(name + n, ".");
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)length, name + n);
    *ret = (struct gp_suspended){.pid = 0};
    if (!gp_parse_u64(digits, &pid) || pid == 0 || pid > INT32_MAX || !name[n + length] ||
        !gp_parse_u64(name + n + length + 1, &ret->start_ticks))
        return false;
    ret->pid = (uint32_t)pid;
    make_name(again, ret);
    return strcmp(name, again) == 0;
}

/* ---- what stands in a file ---- */

/* "ns NUMBER", the pid namespace of who wrote it, then a line "gpu UUID BYTES" for each. The
 * numbers have a fixed width, so that a text takes the place of an earlier one as it is. */
static void add_text(struct gp_strbuf *sb, const struct gp_suspended *s)
{
    gp_strbuf_addf(sb, "ns %020" PRIu64 "\n", gp_proc_own_ns());
    for (size_t i = 0; i < s->gpu_count; i++)
        gp_strbuf_addf(sb, "gpu %s %020" PRIu64 "\n", s->gpus[i].uuid, s->gpus[i].bytes);
}

static bool parse_gpu(const char *line, struct gp_suspended *s)
{
    struct gp_suspended_gpu *gpu = &s->gpus[s->gpu_count];
    size_t n = strcspn(line, " ");
    if (s->gpu_count == GP_SUSPENDED_GPUS || n == 0 || n >= sizeof(gpu->uuid) || line[n] != ' ' ||
        !gp_parse_u64(line + n + 1, &gpu->bytes) || gpu->bytes > BYTES_MOST)
        return false;
    memcpy(gpu->uuid, line, n);
    gpu->uuid[n] = '\0';
    for (size_t i = 0; i < s->gpu_count; i++)
        if (strcmp(s->gpus[i].uuid, gpu->uuid) == 0)
            return false;
    s->gpu_count++;
    return true;
}

static bool parse_text(char *text, struct gp_suspended *s)
{
    uint64_t ns;
    char *rest = text;
    char *line = strsep(&rest, "\n");
    bool ok = strncmp(line, "ns ", 3) == 0 && gp_parse_u64(line + 3, &ns) && ns == gp_proc_own_ns();
    while (ok && (line = strsep(&rest, "\n")) && *line)
        ok = strncmp(line, "gpu ", 4) == 0 && parse_gpu(line + 4, s);
    return ok && s->gpu_count > 0;
}

/* ---- reading ---- */

/* Whether that process is there still; *ret_uid: whose it is. */
static bool lives(int proc, const struct gp_suspended *s, uid_t *ret_uid)
{
    char name[16];
    struct stat folder;
    struct gp_proc_stat stat;
    (void)snprintf(name, sizeof(name), "%" PRIu32, s->pid);
    if (!gp_proc_read_stat(proc, s->pid, &stat) || stat.start_ticks != s->start_ticks ||
        stat.state == 'Z' || fstatat(proc, name, &folder, 0) != 0)
        return false;
    *ret_uid = folder.st_uid;
    return true;
}

static bool read_note(int dir, const char *name, uid_t owner, struct gp_suspended *s)
{
    char text[FILE_BYTES];
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_uid == 0 || st.st_uid == owner))
        n = read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse_text(text, s);
}

static int add(struct gp_suspended_list *list, const struct gp_suspended *s)
{
    struct gp_suspended *grown = realloc(list->items, (list->count + 1) * sizeof(*grown));
    if (!grown)
        return GP_ENOMEM;
    list->items = grown;
    grown[list->count++] = *s;
    return 0;
}

static int open_proc(const char *root)
{
    char path[GP_PATH_SIZE];
    return gp_io_path(path, root, "/proc") ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

int gp_suspended_read(const char *root, struct gp_suspended_list *ret)
{
    struct dirent *entry;
    int dir = gp_statedir_open(root, false, NULL);
    int proc = dir >= 0 ? open_proc(root) : -1;
    DIR *listing = proc >= 0 ? fdopendir(dir) : NULL;
    int r = 0;
    *ret = (struct gp_suspended_list){NULL, 0};
    while (listing && r == 0 && ret->count < GP_SUSPENDED_MOST && (entry = readdir(listing))) {
        struct gp_suspended s;
        uid_t owner;
        if (parse_name(entry->d_name, &s) && lives(proc, &s, &owner) &&
            read_note(dir, entry->d_name, owner, &s))
            r = add(ret, &s);
    }
    if (listing)
        (void)closedir(listing);
    else if (dir >= 0)
        (void)close(dir);
    if (proc >= 0)
        (void)close(proc);
    if (r < 0)
        gp_suspended_fini(ret);
    return r;
}

void gp_suspended_fini(struct gp_suspended_list *list)
{
    free(list->items);
    *list = (struct gp_suspended_list){NULL, 0};
}

const struct gp_suspended *gp_suspended_find(const struct gp_suspended_list *list, int64_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

/* ---- writing ---- */

/* Whether it is this user's, and written in this pid namespace: in another one the process may well
 * be there. */
static bool is_own(int dir, const char *name)
{
    char text[FILE_BYTES];
    struct stat st;
    struct gp_suspended s = {.gpu_count = 0};
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid())
        return false;
    return st.st_size == 0 ||
           (gp_io_read_at(dir, name, text, sizeof(text)) > 0 && parse_text(text, &s));
}

static void forget_ended(int proc, int dir)
{
    struct dirent *entry;
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    while (listing && (entry = readdir(listing))) {
        struct gp_suspended s;
        uid_t owner;
        if (parse_name(entry->d_name, &s) && !lives(proc, &s, &owner) && is_own(dir, entry->d_name))
            (void)unlinkat(dir, entry->d_name, 0);
    }
    if (listing)
        (void)closedir(listing);
    else if (again >= 0)
        (void)close(again);
}

/* Opens the note, or makes it, and locks it. It may be taken away between the two: -EAGAIN. */
static int take(int dir, const char *name, uid_t owner, int *ret_fd)
{
    struct stat locked;
    struct stat named;
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0) {
        /* the process's owner must be able to resume it */
        (void)fchmod(fd, 0644);
        (void)!fchown(fd, owner, (gid_t)-1);
    } else if (errno == EEXIST) {
        fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    }
    if (fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    int e = flock(fd, LOCK_EX | LOCK_NB) != 0 ? -errno : 0;
    if (e == 0 && (fstat(fd, &locked) != 0 || fstatat(dir, name, &named, 0) != 0 ||
                   locked.st_ino != named.st_ino))
        e = -EAGAIN;
    if (e < 0 || !S_ISREG(locked.st_mode)) {
        (void)close(fd);
        return e < 0 ? e : -EINVAL;
    }
    *ret_fd = fd;
    return 0;
}

int gp_suspended_take(const char *root, const struct gp_suspended *s, int *ret_fd,
                      struct gp_err *err)
{
    char name[NAME_SIZE];
    uid_t owner;
    int dir = gp_statedir_open(root, true, err);
    if (dir < 0)
        return err && err->code ? err->code : GP_EIO;
    int proc = open_proc(root);
    make_name(name, s);
    forget_ended(proc, dir);
    int e = lives(proc, s, &owner) ? -EAGAIN : -ESRCH;
    for (int i = 0; i < TRIES && e == -EAGAIN; i++)
        e = take(dir, name, owner, ret_fd);
    if (proc >= 0)
        (void)close(proc);
    (void)close(dir);
    if (e == -EWOULDBLOCK)
        return gp_err_set(err, GP_EFAIL, "another gpulse suspends or resumes it just now");
    return e < 0 ? gp_err_set(err, GP_EIO, "its note cannot be written: %s", strerror(-e)) : 0;
}

int gp_suspended_write(int fd, const struct gp_suspended *s, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(FILE_BYTES - 1);
    add_text(&sb, s);
    bool ok = !sb.error && pwrite(fd, sb.buf, sb.len, 0) == (ssize_t)sb.len &&
              ftruncate(fd, (off_t)sb.len) == 0;
    gp_strbuf_fini(&sb);
    return ok ? 0 : gp_err_set(err, GP_EIO, "its note cannot be written: %s", strerror(errno));
}

int gp_suspended_forget(const char *root, const struct gp_suspended *s, struct gp_err *err)
{
    char name[NAME_SIZE];
    int dir = gp_statedir_open(root, false, err);
    make_name(name, s);
    if (dir < 0)
        return GP_EIO;
    int e = unlinkat(dir, name, 0) != 0 && errno != ENOENT ? errno : 0;
    (void)close(dir);
    return e ? gp_err_set(err, GP_EIO, "its note cannot be removed: %s", strerror(e)) : 0;
}
