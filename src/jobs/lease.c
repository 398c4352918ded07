#include "jobs/lease.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/statedir.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 16384, NAME_SIZE = 64, LOCK_TICK_MS = 2, LOCK_TICK_MOST_MS = 64 };

/* Written by hand, it leaves room for all that come. */
static const uint64_t TICKET_MOST = (uint64_t)1 << 53;

static const char prefix[] = "lease.";
static const char fresh_prefix[] = "new."; /* of one that is being written */
static const char lock_name[] = "lock";

/* ---- the room ---- */

/* The lock belongs to nobody: whoever comes first makes it, and all can lock it. Made first and
 * opened then: some kernels let nobody, not even root, open another's file in such a folder with
 * O_CREAT (fs.protected_regular). */
static int open_lock(int dir)
{
    int fd = openat(dir, lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    fd = openat(dir, lock_name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return openat(dir, lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    (void)fchmod(fd, 0644); /* the mask of this process has cut it */
    return fd;
}

int gp_lease_room_open(struct gp_lease_room *room, struct gp_err *err)
{
    room->lock = -1;
    room->dir = gp_statedir_open(NULL, true, err);
    if (room->dir < 0)
        return GP_EIO;
    room->lock = open_lock(room->dir);
    if (room->lock >= 0)
        return 0;
    int r = gp_err_set(err, GP_EIO, "cannot open the lock of the leases: %s", strerror(errno));
    gp_lease_room_close(room);
    return r;
}

void gp_lease_room_close(struct gp_lease_room *room)
{
    if (room->lock >= 0)
        (void)close(room->lock);
    if (room->dir >= 0)
        (void)close(room->dir);
    *room = (struct gp_lease_room){-1, -1};
}

/* Who holds a lock, by /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 00:1a:3 0 EOF". 0: unknown. */
static uint64_t lock_holder(int fd)
{
    struct stat st;
    char inode[32];
    uint64_t pid = 0;
    char *line = NULL;
    size_t size = 0;
    FILE *locks = fstat(fd, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    (void)snprintf(inode, sizeof(inode), ":%" PRIu64 " ", (uint64_t)st.st_ino);
    while (locks && pid == 0 && getline(&line, &size, locks) > 0) {
        const char *write = strstr(line, " WRITE ");
        if (strstr(line, "FLOCK") && strstr(line, inode) && write)
            pid = strtoull(write + strlen(" WRITE "), NULL, 10);
    }
    if (locks)
        (void)fclose(locks);
    free(line);
    return pid;
}

/* The file may have been removed, as some systems do at the end of a login: then the lock is one
 * that nobody else knows, and the one that is there now counts. */
static bool take_lock(struct gp_lease_room *room)
{
    struct stat own;
    struct stat named;
    if (flock(room->lock, LOCK_EX | LOCK_NB) != 0)
        return false;
    if (fstat(room->lock, &own) == 0 && fstatat(room->dir, lock_name, &named, 0) == 0 &&
        own.st_ino == named.st_ino)
        return true;
    int fd = open_lock(room->dir);
    if (fd < 0)
        return true; /* there is no folder any more */
    (void)close(room->lock);
    room->lock = fd;
    return false;
}

int gp_lease_room_lock(struct gp_lease_room *room, uint64_t timeout_ns, struct gp_err *err)
{
    uint64_t until_ns = gp_clock_mono_ns() + timeout_ns;
    uint64_t tick_ms = LOCK_TICK_MS;
    while (!take_lock(room)) {
        if (gp_clock_mono_ns() >= until_ns)
            return gp_err_set(
                err, GP_ETIMEOUT,
                "the lock of the leases has been held for %.0f s, by process %" PRIu64,
                (double)timeout_ns / 1e9, lock_holder(room->lock));
        const struct timespec pause = gp_clock_timespec(tick_ms * GP_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
        tick_ms = tick_ms < LOCK_TICK_MOST_MS ? 2 * tick_ms : tick_ms; /* many may want it */
    }
    return 0;
}

void gp_lease_room_unlock(struct gp_lease_room *room)
{
    (void)flock(room->lock, LOCK_UN);
}

int gp_lease_room_watch(const struct gp_lease_room *room)
{
    char path[64];
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", room->dir);
    /* the end of a supervisor closes its file, that of one that gives back removes it */
    if (fd >= 0 && inotify_add_watch(fd, path, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- what stands in a file ---- */

/* Lines "key value"; a value is one line of safe text. */
static void add_text(struct gp_strbuf *sb, const struct gp_lease *lease)
{
    gp_strbuf_addf(sb, "gpulse-lease 1\nstate %s\nsince %" PRIu64 "\npid %" PRIu32 "\nns %" PRIu64,
                   lease->state == GP_LEASE_HELD ? "held" : "waiting", lease->since_wall_ns,
                   lease->pid, lease->ns);
    gp_strbuf_addf(sb, "\nshared %d\nbytes %" PRIu64 "\nwanted %u\nname ", (int)lease->is_shared,
                   lease->bytes, lease->wanted);
    gp_utf8_add_safe(sb, lease->name, strlen(lease->name), sizeof(lease->name) - 1);
    gp_strbuf_adds(sb, "\ncommand ");
    gp_utf8_add_safe(sb, lease->command, strlen(lease->command), sizeof(lease->command) - 1);
    for (size_t i = 0; i < lease->gpu_count; i++)
        gp_strbuf_addf(sb, "\ngpu %s", lease->gpus[i]);
    gp_strbuf_addc(sb, '\n');
}

static void copy_text(char *to, size_t size, const char *text)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&safe, text, strlen(text), size - 1);
    (void)snprintf(to, size, "%s", safe.buf);
    gp_strbuf_fini(&safe);
}

/* What a later version adds is passed over. */
static bool parse_line(const char *key, const char *value, struct gp_lease *lease)
{
    uint64_t pid = lease->pid;
    uint64_t shared = lease->is_shared;
    uint64_t wanted = lease->wanted;
    const struct {
        const char *key;
        uint64_t most, *ret;
    } numbers[] = {
        {"since", UINT64_MAX, &lease->since_wall_ns},
        {"ns", UINT64_MAX, &lease->ns},
        {"bytes", INT64_MAX, &lease->bytes},
        {"pid", INT32_MAX, &pid},
        {"shared", 1, &shared},
        {"wanted", GP_LEASE_GPUS, &wanted},
    };
    const struct {
        const char *key;
        char *ret;
        size_t size;
    } texts[] = {{"name", lease->name, sizeof(lease->name)},
                 {"command", lease->command, sizeof(lease->command)}};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        if (strcmp(key, numbers[i].key) == 0) {
            bool ok = gp_parse_u64(value, numbers[i].ret) && *numbers[i].ret <= numbers[i].most;
            lease->pid = ok ? (uint32_t)pid : lease->pid;
            lease->is_shared = ok ? shared != 0 : lease->is_shared;
            lease->wanted = ok ? (unsigned)wanted : lease->wanted;
            return ok;
        }
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (strcmp(key, texts[i].key) == 0)
            copy_text(texts[i].ret, texts[i].size, value);
    if (strcmp(key, "state") == 0)
        lease->state = strcmp(value, "waiting") == 0 ? GP_LEASE_WAITING : GP_LEASE_HELD;
    if (strcmp(key, "gpu") != 0)
        return true;
    if (lease->gpu_count == GP_LEASE_GPUS || strlen(value) >= GP_LEASE_UUID_SIZE)
        return false;
    copy_text(lease->gpus[lease->gpu_count++], GP_LEASE_UUID_SIZE, value);
    return true;
}

/* Of what is locked and cannot be understood the GPUs are somebody's alone. */
static bool parse_text(char *text, struct gp_lease *lease)
{
    char *rest = text;
    char *line = strsep(&rest, "\n");
    bool ok = strcmp(line, "gpulse-lease 1") == 0;
    lease->state = GP_LEASE_HELD;
    while ((line = strsep(&rest, "\n"))) {
        char *value = line;
        const char *key = strsep(&value, " ");
        if (*line)
            ok = value && parse_line(key, value, lease) && ok;
    }
    if (ok)
        return lease->pid > 0;
    lease->state = GP_LEASE_HELD;
    lease->is_shared = false;
    return lease->gpu_count > 0;
}

/* ---- reading ---- */

/* "lease.TICKET.PID" */
static bool parse_name(const char *name, uint64_t *ret_ticket)
{
    char digits[24];
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(name + n, "."), name + n);
    return gp_parse_u64(digits, ret_ticket) && *ret_ticket <= TICKET_MOST;
}

/* Whether a process that a lease names belongs to the owner of its file: else anybody could say of
 * somebody's process that it has a lease. */
static bool is_owner_of(uid_t uid, uint32_t pid)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    return stat(path, &st) == 0 && (st.st_uid == uid || uid == 0);
}

/* Alive is what somebody has locked. The lock is tried as a reader's, so that two who try do not
 * take each other for the owner. With `sweeps` what is left of a dead one of this user goes. */
static bool read_lease(int dir, const char *name, bool sweeps, struct gp_lease *ret)
{
    char text[FILE_BYTES];
    struct stat st;
    ssize_t n = -1;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (flock(fd, LOCK_SH | LOCK_NB) != 0)
            n = read(fd, text, sizeof(text) - 1);
        else if (sweeps && (st.st_uid == geteuid() || geteuid() == 0))
            (void)unlinkat(dir, name, 0);
    }
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (n <= 0 || !parse_text(text, ret))
        return false;
    ret->uid = st.st_uid;
    if (ret->ns == gp_proc_own_ns() && !is_owner_of(ret->uid, ret->pid))
        ret->pid = 0;
    return true;
}

static int compare_leases(const void *a, const void *b)
{
    const struct gp_lease *x = a;
    const struct gp_lease *y = b;
    if (x->ticket != y->ticket)
        return x->ticket < y->ticket ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

int gp_leases_read(const struct gp_lease_room *room, struct gp_leases *ret, struct gp_err *err)
{
    struct dirent *entry;
    int again = openat(room->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    int r = 0;
    *ret = (struct gp_leases){.items = NULL};
    if (!listing) {
        if (again >= 0)
            (void)close(again);
        return gp_err_set(err, GP_EIO, "the folder of the leases cannot be read");
    }
    while (r == 0 && (entry = readdir(listing))) {
        struct gp_lease lease = {.ticket = 0};
        bool is_lease = parse_name(entry->d_name, &lease.ticket);
        if (!is_lease && strncmp(entry->d_name, fresh_prefix, strlen(fresh_prefix)) != 0)
            continue;
        if (!read_lease(room->dir, entry->d_name, room->lock >= 0, &lease) || !is_lease)
            continue;
        if (lease.ticket >= ret->next_ticket)
            ret->next_ticket = lease.ticket + 1;
        struct gp_lease *grown = realloc(ret->items, (ret->count + 1) * sizeof(*grown));
        if (grown) {
            ret->items = grown;
            grown[ret->count++] = lease;
        } else {
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    }
    (void)closedir(listing);
    if (ret->count > 0)
        qsort(ret->items, ret->count, sizeof(*ret->items), compare_leases);
    if (r < 0)
        gp_leases_fini(ret);
    return r;
}

int gp_leases_look(struct gp_leases *ret, struct gp_err *err)
{
    struct gp_lease_room room = {gp_statedir_open(NULL, false, NULL), -1};
    *ret = (struct gp_leases){.items = NULL};
    if (room.dir < 0)
        return 0;
    int r = gp_leases_read(&room, ret, err);
    gp_lease_room_close(&room);
    return r;
}

void gp_leases_fini(struct gp_leases *leases)
{
    free(leases->items);
    *leases = (struct gp_leases){.items = NULL};
}

bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid)
{
    for (size_t i = 0; *uuid && i < lease->gpu_count; i++)
        if (strcmp(lease->gpus[i], uuid) == 0)
            return true;
    return false;
}

bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease)
{
    size_t left = 0;
    for (size_t g = 0; g < lease->gpu_count; g++) {
        bool taken = false;
        for (size_t i = 0; !taken && i < leases->count; i++)
            taken = leases->items[i].state == GP_LEASE_WAITING &&
                    leases->items[i].ticket < lease->ticket &&
                    gp_lease_has_gpu(&leases->items[i], lease->gpus[g]);
        left += !taken;
    }
    return left < lease->wanted;
}

/* ---- writing ---- */

static void make_name(char name[NAME_SIZE], const char *head, const struct gp_lease *lease)
{
    (void)snprintf(name, NAME_SIZE, "%s%" PRIu64 ".%" PRIu32, head, lease->ticket, lease->pid);
}

/* Under another name first and locked before it has its own, so that it is never seen unlocked. */
int gp_lease_write(const struct gp_lease_room *room, const struct gp_lease *lease, int *fd,
                   struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(FILE_BYTES - 1);
    char name[NAME_SIZE];
    char fresh[NAME_SIZE];
    make_name(name, prefix, lease);
    make_name(fresh, fresh_prefix, lease);
    add_text(&sb, lease);
    (void)unlinkat(room->dir, fresh, 0);
    int made = openat(room->dir, fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = made < 0 ? -errno : 0;
    if (e == 0 && (flock(made, LOCK_EX | LOCK_NB) != 0 || fchmod(made, 0644) != 0))
        e = -errno;
    if (e == 0)
        e = sb.error ? -ENOMEM : gp_io_write_all(made, sb.buf, sb.len);
    if (e == 0 && renameat(room->dir, fresh, room->dir, name) != 0)
        e = -errno;
    gp_strbuf_fini(&sb);
    if (e < 0) {
        if (made >= 0) {
            (void)unlinkat(room->dir, fresh, 0);
            (void)close(made);
        }
        return gp_err_set(err, GP_EIO, "cannot write a lease: %s", strerror(-e));
    }
    if (*fd >= 0)
        (void)close(*fd);
    *fd = made;
    return 0;
}

bool gp_lease_was_removed(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

void gp_lease_drop(const struct gp_lease_room *room, const struct gp_lease *lease, int *fd)
{
    char name[NAME_SIZE];
    if (*fd < 0)
        return;
    make_name(name, prefix, lease);
    (void)unlinkat(room->dir, name, 0);
    (void)close(*fd);
    *fd = -1;
}
