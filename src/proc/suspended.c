#include "proc/suspended.h"

#include "base/clock.h"
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_SIZE = 64, FILE_BYTES = 8192, TRIES = 200, ENTRIES_MOST = 16384 };

/* More than any GPU has, but small enough that the sum of a file does not overflow. */
static const uint64_t BYTES_MOST = (uint64_t)1 << 50;

static const char prefix[] = "suspended.";

static void make_name(char name[NAME_SIZE], const struct gp_suspended *s)
{
    (void)snprintf(name, NAME_SIZE, "%s%" PRIu32 ".%" PRIu64, prefix, s->pid, s->start_ticks);
}

/* "suspended.4711.123456", in exactly this spelling, so that a process has one file. */
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

/* ---- file content ---- */

/* "ns NUMBER", the pid namespace of the writer, then a line "gpu UUID BYTES" for each GPU. The
 * numbers have a fixed width, so that a new text overwrites an old one in place. */
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

/* No GPUs: it was resumed. */
static bool parse_text(char *text, struct gp_suspended *s)
{
    uint64_t ns;
    char *rest = text;
    char *line = strsep(&rest, "\n");
    bool ok = strncmp(line, "ns ", 3) == 0 && gp_parse_u64(line + 3, &ns) && ns == gp_proc_own_ns();
    while (ok && (line = strsep(&rest, "\n")) && *line)
        ok = strncmp(line, "gpu ", 4) == 0 && parse_gpu(line + 4, s);
    return ok;
}

/* ---- reading ---- */

/* Whether that process still exists; *ret_uid is its owner. */
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

/* 1; 0: it is not valid; −errno: that is unknown. */
static int read_note(int dir, const char *name, uid_t owner, struct gp_suspended *s,
                     struct stat *st)
{
    char text[FILE_BYTES];
    int fd = gp_io_open_beneath(dir, name, O_RDONLY | O_NONBLOCK);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == owner)
        n = read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return fd >= 0 || gp_statedir_ignores(fd) ? 0 : fd;
    text[n] = '\0';
    return parse_text(text, s);
}

static int add(struct gp_suspended_list *list, const struct gp_suspended *s)
{
    struct gp_suspended *grown = realloc(list->items, (list->count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    list->items = grown;
    grown[list->count++] = *s;
    return 0;
}

static int open_proc(const char *root)
{
    char path[GP_PATH_SIZE];
    return gp_io_path(path, root, "/proc") ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

bool gp_suspended_lives(const char *root, const struct gp_suspended *s)
{
    uid_t owner;
    int proc = open_proc(root);
    bool there = proc >= 0 && lives(proc, s, &owner);
    if (proc >= 0)
        (void)close(proc);
    return there;
}

/* A record with the time when it was written, according to the kernel. */
struct stamped {
    struct gp_suspended s;
    struct timespec time;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Of two records by root and by the owner, the later one is valid: the owner can resume a process
 * that root has suspended, but cannot change root's record. */
static int add_stamped(struct stamped **all, size_t *count, const struct stamped *one)
{
    for (size_t i = 0; i < *count; i++)
        if ((*all)[i].s.pid == one->s.pid) {
            if (is_later(&one->time, &(*all)[i].time))
                (*all)[i] = *one;
            return 0;
        }
    struct stamped *grown = realloc(*all, (*count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    *all = grown;
    grown[(*count)++] = *one;
    return 0;
}

/* Reads the records in one directory: root's, or those of a user about their own processes. 0 or
 * −errno. */
static int scan(const struct gp_statedir *dir, int proc, struct stamped **all, size_t *count)
{
    const struct dirent *entry;
    DIR *listing = gp_statedir_list(dir);
    int notes = 0;
    int e = listing || gp_statedir_ignores(-errno) ? 0 : -errno;
    for (int n = 0; listing && e == 0 && n < ENTRIES_MOST && (entry = readdir(listing)); n++) {
        struct stamped one;
        struct stat st;
        uid_t owner;
        if (!parse_name(entry->d_name, &one.s) || notes++ >= GP_SUSPENDED_MOST ||
            !lives(proc, &one.s, &owner) || (dir->owner != 0 && dir->owner != owner) ||
            (e = read_note(dir->fd, entry->d_name, dir->owner, &one.s, &st)) <= 0)
            continue;
        one.time = st.st_ctim;
        e = add_stamped(all, count, &one);
    }
    if (listing)
        (void)closedir(listing);
    return e;
}

int gp_suspended_read_in(struct gp_statedirs *dirs, struct gp_suspended_list *ret,
                         struct gp_err *err)
{
    const struct gp_statedir *dir;
    struct stamped *all = NULL;
    size_t count = 0;
    int e = 0;
    *ret = (struct gp_suspended_list){NULL, 0};
    int proc = dirs->count > 0 ? open_proc(dirs->root) : -1;
    while (e == 0 && proc >= 0 && (dir = gp_statedirs_next(dirs)))
        e = scan(dir, proc, &all, &count);
    if (e == 0)
        e = dirs->error;
    for (size_t i = 0; e == 0 && i < count; i++)
        if (all[i].s.gpu_count > 0)
            e = add(ret, &all[i].s);
    if (proc >= 0)
        (void)close(proc);
    free(all);
    if (e == 0)
        return 0;
    gp_suspended_fini(ret);
    return gp_statedirs_fail(e, err);
}

int gp_suspended_read(const char *root, struct gp_suspended_list *ret, struct gp_err *err)
{
    struct gp_statedirs dirs;
    *ret = (struct gp_suspended_list){NULL, 0};
    const int e = gp_statedirs_open(root, &dirs);
    const int r = e == 0 ? gp_suspended_read_in(&dirs, ret, err) : gp_statedirs_fail(e, err);
    gp_statedirs_close(&dirs);
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

/* Whether the record was written in this pid namespace. In another one, the process may still
 * exist. */
static bool is_of_here(int dir, const char *name)
{
    struct stat st;
    struct gp_suspended s = {.gpu_count = 0};
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_size == 0 || read_note(dir, name, geteuid(), &s, &st) > 0);
}

static void forget_ended(int proc, const struct gp_statedir *own)
{
    const struct dirent *entry;
    DIR *listing = gp_statedir_list(own);
    while (listing && (entry = readdir(listing))) {
        struct gp_suspended s;
        uid_t owner;
        if (parse_name(entry->d_name, &s) && !lives(proc, &s, &owner) &&
            is_of_here(own->fd, entry->d_name))
            (void)unlinkat(own->fd, entry->d_name, 0);
    }
    if (listing)
        (void)closedir(listing);
}

/* Whether somebody has it in hand: for that it is locked for writing, which only its owner can do.
 * Locks of readers do not count. */
static bool is_held(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static int lock_for_writing(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

static int copy(int from, int to)
{
    char text[FILE_BYTES];
    ssize_t n = pread(from, text, sizeof(text), 0);
    return n < 0 ? -errno : gp_io_write_all(to, text, (size_t)n);
}

/* Puts a copy in the place of a note on which somebody keeps a reader's lock. It is locked before
 * others can open it. *fd becomes that of the copy. */
static int replace(int dir, const char *name, int *fd)
{
    char fresh[NAME_SIZE];
    (void)snprintf(fresh, sizeof(fresh), "new.%016" PRIx64, gp_io_random());
    int made = openat(dir, fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made < 0)
        return -errno;
    int e = lock_for_writing(made);
    if (e == 0)
        e = copy(*fd, made);
    if (e == 0 && (fchmod(made, 0644) != 0 || renameat(dir, fresh, dir, name) != 0))
        e = -errno;
    if (e < 0) {
        (void)unlinkat(dir, fresh, 0);
        (void)close(made);
        return e;
    }
    (void)close(*fd);
    *fd = made;
    return 0;
}

/* Opens the note in one's own directory, or makes it, and locks it. */
static int take_alone(int dir, const char *name, int *ret_fd)
{
    struct stat st;
    struct stat named;
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    int e = fd >= 0 ? 0 : errno == ENOENT ? -EAGAIN : -errno;
    if (e == 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()))
        e = -EINVAL;
    if (e == 0 && is_held(fd))
        e = -EBUSY;
    if (e == 0) {
        (void)fchmod(fd, 0644); /* the mask of this process has cut it */
        e = lock_for_writing(fd);
        if (e == -EAGAIN || e == -EACCES)
            e = replace(dir, name, &fd);
        else if (e == 0 && (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
                            named.st_ino != st.st_ino))
            e = -EAGAIN; /* it was taken away between the two */
    }
    if (e < 0 && fd >= 0)
        (void)close(fd);
    *ret_fd = e < 0 ? -1 : fd;
    return e;
}

/* One at a time: nobody else can open, or lock, the file that orders this user's own. −EAGAIN:
 * another one is at it. */
static int take(int dir, const char *name, int *ret_fd)
{
    int order = openat(dir, ".order", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    int e = order < 0 ? -errno : lock_for_writing(order);
    if (e == -EACCES && order >= 0)
        e = -EAGAIN;
    if (e == 0)
        e = take_alone(dir, name, ret_fd);
    if (order >= 0)
        (void)close(order);
    return e;
}

/* Whether root, or the process's owner, has this note in another directory in hand just now. Looked
 * at after one's own is locked: of two, at least the later one sees the other. */
static bool is_taken(const char *root, const char *name, uid_t owner)
{
    struct gp_statedirs dirs;
    const struct gp_statedir *dir;
    bool taken = false;
    if (gp_statedirs_open(root, &dirs) < 0)
        return true;
    while (!taken && (dir = gp_statedirs_next(&dirs))) {
        int fd = dir->owner != geteuid() && (dir->owner == 0 || dir->owner == owner)
                     ? gp_io_open_beneath(dir->fd, name, O_RDONLY | O_NONBLOCK)
                     : -1;
        taken = fd >= 0 && is_held(fd);
        if (fd >= 0)
            (void)close(fd);
    }
    taken = taken || dirs.error;
    gp_statedirs_close(&dirs);
    return taken;
}

int gp_suspended_take(const char *root, const struct gp_suspended *s, int *ret_fd,
                      struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec(GP_NS_PER_MS);
    char name[NAME_SIZE];
    uid_t owner;
    struct gp_statedir own;
    size_t place;
    int r = gp_statedir_own(root, 0, &own, &place, err);
    if (r < 0)
        return r;
    int proc = open_proc(root);
    make_name(name, s);
    forget_ended(proc, &own);
    int e = lives(proc, s, &owner) ? -EAGAIN : -ESRCH;
    for (int i = 0; i < TRIES && e == -EAGAIN; i++) {
        e = take(own.fd, name, ret_fd);
        if (e == -EAGAIN)
            (void)nanosleep(&pause, NULL);
    }
    if (e == 0 && is_taken(root, name, owner)) {
        (void)close(*ret_fd);
        e = -EBUSY;
    }
    if (proc >= 0)
        (void)close(proc);
    (void)close(own.fd);
    if (e == -EBUSY)
        return gp_err_set(err, GP_EFAIL, "another gpulse is suspending or resuming it");
    return e < 0
               ? gp_err_system(err, -e, GP_EIO, "cannot write the note about it in '%s'", own.path)
               : 0;
}

int gp_suspended_write(int fd, const struct gp_suspended *s, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(FILE_BYTES - 1);
    add_text(&sb, s);
    bool ok = !sb.error && pwrite(fd, sb.buf, sb.len, 0) == (ssize_t)sb.len &&
              ftruncate(fd, (off_t)sb.len) == 0;
    gp_strbuf_fini(&sb);
    return ok ? 0 : gp_err_system(err, errno, GP_EIO, "cannot write the note about it");
}

int gp_suspended_forget(const char *root, const struct gp_suspended *s, int fd, struct gp_err *err)
{
    const struct gp_suspended runs = {.pid = s->pid, .start_ticks = s->start_ticks};
    char name[NAME_SIZE];
    struct gp_statedirs dirs;
    const struct gp_statedir *dir;
    bool others = false;
    int e = -gp_statedirs_open(root, &dirs);
    make_name(name, s);
    while ((dir = gp_statedirs_next(&dirs)))
        if (dir->owner == 0 && geteuid() != 0)
            others = others || faccessat(dir->fd, name, F_OK, 0) == 0;
    /* what root has written stays, and this user's later word against it */
    int r = others ? gp_suspended_write(fd, &runs, err) : 0;
    while (!others && (dir = gp_statedirs_next(&dirs)))
        if ((dir->owner == geteuid() || geteuid() == 0) && unlinkat(dir->fd, name, 0) != 0 &&
            errno != ENOENT)
            e = errno;
    gp_statedirs_close(&dirs);
    return e ? gp_err_system(err, e, GP_EIO, "cannot remove the note about it") : r;
}
