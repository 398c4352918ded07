/* The list of live leases, from the folders of all users. */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "proc/files.h"
#include "proc/lease_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOKS_MOST = 4 * GP_LEASES_PER_USER, /* files read per user, */
    ENTRIES_MOST = 16 * LOOKS_MOST,      /* out of this many directory entries */
    FRESH_S = 60,                        /* far longer than writing a file takes */
    KEPT_PER_USER = 16,
    SETTLE_TRIES = 8, /* attempts to get a list without conflicts */
};

/* Whether its owner still holds the lock. Only a user who may write a file can hold this kind of
 * lock, and it ends with the process. */
static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

bool gp_lease_is_local(const struct gp_lease *lease)
{
    return lease->pid && lease->ns == gp_proc_own_ns();
}

bool gp_lease_is_visible(const struct gp_lease *lease)
{
    return gp_lease_is_local(lease) || (lease->pid && lease->ns == 0);
}

/* Checks the process that a lease names, if it is in this pid namespace. It must belong to the
 * lease's owner: otherwise any user could claim that another's process has a lease. False: there is
 * no such process, and the lease is dead. */
static bool check_process(struct gp_lease *lease)
{
    char path[64];
    struct stat st;
    struct gp_proc_stat stat_line;
    if (!gp_lease_is_local(lease))
        return true;
    if (kill((pid_t)lease->pid, 0) != 0 && errno == ESRCH)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32, lease->pid);
    if (stat(path, &st) != 0 || (st.st_uid != lease->uid && lease->uid != 0)) {
        lease->pid = 0;
        return true;
    }
    if (lease->state != GP_LEASE_WAITING)
        return true;
    lease->is_stopped = gp_proc_stat_of(lease->pid, &stat_line) &&
                        (stat_line.state == 'T' || stat_line.state == 't');
    return true;
}

/* The order of the waiting line is that in which the kernel saw the files arrive: no user can set
 * this time. */
static uint64_t stamp_of(const struct stat *st)
{
    return (uint64_t)st->st_ctim.tv_sec * GP_NS_PER_S + (uint64_t)st->st_ctim.tv_nsec;
}

enum found { ALIVE, DEAD, NONE /* whose format we understand */, GONE /* while it was read */ };

/* How a lease was found, or −errno. *ret_fd: its open file, if it is alive. */
static int read_lease(const struct gp_statedir *dir, const char *name, struct gp_lease *ret,
                      int *ret_fd)
{
    char text[GP_LEASE_FILE_BYTES];
    struct stat st;
    struct stat named;
    int fd = gp_io_open_beneath(dir->fd, name, O_RDONLY | O_NONBLOCK);
    ssize_t n = -1;
    if (fd < 0)
        return fd == -ENOENT ? GONE : gp_statedir_ignores(fd) ? NONE : fd;
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == dir->owner;
    bool locked = is_file && is_locked(fd);
    if (locked)
        n = read(fd, text, sizeof(text) - 1);
    const int e = locked && n < 0 ? -errno : 0;
    text[n > 0 ? n : 0] = '\0';
    ret->uid = dir->owner;
    ret->ticket = is_file ? stamp_of(&st) : 0;
    (void)snprintf(ret->path, sizeof(ret->path), "%s/%.60s", dir->path, name);
    if (n > 0 && gp_lease_parse_text(text, ret) && check_process(ret)) {
        *ret_fd = fd;
        return ALIVE;
    }
    (void)close(fd);
    if (e < 0)
        return e;
    if (!is_file)
        return NONE;
    /* its owner may have replaced it since it was opened */
    bool changed = !gp_io_stat_beneath(dir->fd, name, &named) || named.st_ino != st.st_ino;
    return changed ? GONE : locked ? NONE : DEAD;
}

static int add_lease(struct gp_leases *leases, const struct gp_lease *lease)
{
    struct gp_lease *grown = realloc(leases->items, (leases->count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    leases->items = grown;
    grown[leases->count++] = *lease;
    return 0;
}

/* A half-written file, left by a process that was killed. */
static void sweep_fresh(const struct gp_statedir *dir, const char *name)
{
    struct stat st;
    if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        stamp_of(&st) + FRESH_S * GP_NS_PER_S < gp_clock_wall_ns())
        (void)unlinkat(dir->fd, name, 0);
}

/* A listed lease may have moved on to its next state since: its file is gone, or about to be. */
static int find_lease(const struct gp_statedir *dir, const char *name, struct gp_lease *ret,
                      int *ret_fd)
{
    const int first = read_lease(dir, name, ret, ret_fd);
    int found = first;
    for (int i = (int)ret->state + 1; (found == GONE || found == DEAD) && i <= GP_LEASE_HELD; i++) {
        char next[GP_LEASE_NAME_SIZE];
        gp_lease_make_name(next, (enum gp_lease_state)i, ret->id);
        *ret = (struct gp_lease){.id = ret->id, .state = (enum gp_lease_state)i};
        found = read_lease(dir, next, ret, ret_fd);
    }
    return found == GONE || found == NONE ? first : found;
}

/* A reading of all folders. The limits apply to a user's folders together. */
struct reading {
    struct gp_leases *leases;
    struct gp_leases_kept *kept; /* NULL: files are not kept open */
    uid_t owner;
    int entries, looks, alive;
};

/* Whether another file may be kept. Listed and removed ones, those from `first` on, have limits of
 * their own, so that neither keeps out the other. */
static bool has_room(const struct gp_leases_kept *kept, size_t first, uid_t uid)
{
    int of_user = 0;
    for (size_t i = first; i < kept->leases.count; i++)
        of_user += kept->leases.items[i].uid == uid;
    return kept->leases.count - first < GP_LEASES_KEPT && of_user < KEPT_PER_USER;
}

/* Keeps the file of a lease that has GPUs, if there is room; otherwise closes it. */
static int keep_file(struct gp_leases_kept *kept, size_t first, const struct gp_lease *lease,
                     int fd)
{
    int e = 0;
    if (kept && lease->state != GP_LEASE_WAITING && has_room(kept, first, lease->uid)) {
        kept->fds[kept->leases.count] = fd;
        e = add_lease(&kept->leases, lease);
        if (e == 0)
            return 0;
    }
    (void)close(fd);
    return e;
}

/* A request that gets its GPUs while its folder is read has files of two states, and is found under
 * both names. Whether it is in the list already, with its later state from now on. Those of one
 * user are the last ones. */
static bool is_found_again(const struct gp_leases *leases, const struct gp_lease *lease)
{
    for (size_t i = leases->count; i > 0 && leases->items[i - 1].uid == lease->uid; i--) {
        struct gp_lease *listed = &leases->items[i - 1];
        if (listed->id != lease->id || listed->state == GP_LEASE_WAITING ||
            lease->state == GP_LEASE_WAITING)
            continue;
        if (lease->state > listed->state)
            *listed = *lease;
        return true;
    }
    return false;
}

static int scan_entry(struct reading *reading, const struct gp_statedir *dir, const char *name)
{
    const bool is_own = dir->owner == geteuid();
    struct gp_lease lease = {.id = 0};
    int fd;
    if (is_own && gp_lease_is_fresh_name(name))
        sweep_fresh(dir, name);
    if (!gp_lease_parse_name(name, &lease) || reading->looks++ >= LOOKS_MOST ||
        reading->alive == GP_LEASES_PER_USER)
        return 0;
    int found = find_lease(dir, name, &lease, &fd);
    if (found == DEAD && is_own)
        (void)unlinkat(dir->fd, name, 0);
    if (found != ALIVE)
        return found < 0 ? found : 0;
    if (is_found_again(reading->leases, &lease)) {
        (void)close(fd);
        return 0;
    }
    reading->alive++;
    int e = keep_file(reading->kept, 0, &lease, fd);
    return e < 0 ? e : add_lease(reading->leases, &lease);
}

/* Reads a user's folder once. 0 or −errno. */
static int scan(struct reading *reading, const struct gp_statedir *dir)
{
    const struct dirent *entry;
    DIR *listing = gp_statedir_list(dir);
    int e = listing || gp_statedir_ignores(-errno) ? 0 : -errno;
    if (reading->owner != dir->owner)
        *reading = (struct reading){reading->leases, reading->kept, .owner = dir->owner};
    while (listing && e == 0 && reading->entries++ < ENTRIES_MOST && (entry = readdir(listing)))
        e = scan_entry(reading, dir, entry->d_name);
    if (listing)
        (void)closedir(listing);
    return e;
}

/* ---- files that others removed ---- */

void gp_leases_kept_fini(struct gp_leases_kept *kept)
{
    for (size_t i = 0; i < kept->leases.count; i++)
        (void)close(kept->fds[i]);
    gp_leases_fini(&kept->leases);
}

static bool is_listed(const struct gp_leases *leases, const struct gp_lease *lease)
{
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].id == lease->id && leases->items[i].uid == lease->uid &&
            leases->items[i].state != GP_LEASE_WAITING)
            return true;
    return false;
}

/* Adds what was kept, is still locked, and is not in the list any more. */
static int add_removed(struct reading *reading, const struct gp_leases_kept *before)
{
    const size_t first = reading->kept->leases.count;
    int e = 0;
    for (size_t i = 0; e == 0 && i < before->leases.count; i++) {
        struct gp_lease lease = before->leases.items[i];
        if (is_listed(reading->leases, &lease) || !is_locked(before->fds[i]) ||
            !check_process(&lease))
            continue;
        int fd = fcntl(before->fds[i], F_DUPFD_CLOEXEC, 0);
        e = fd < 0 ? -errno : keep_file(reading->kept, first, &lease, fd);
        if (e == 0)
            e = add_lease(reading->leases, &lease);
    }
    return e;
}

/* ---- of a simulated machine ---- */

static const char *simulated; /* root; NULL: none */

void gp_leases_set_simulated(const char *root)
{
    simulated = root;
}

/* The machine file vouches for them: nobody holds a lock. */
static int add_simulated(int folder, const char *name, uid_t uid, struct gp_leases *leases)
{
    char text[GP_LEASE_FILE_BYTES];
    struct gp_lease lease = {.uid = uid};
    if (!gp_lease_parse_name(name, &lease) ||
        gp_io_read_at(folder, name, text, sizeof(text)) <= 0 || !gp_lease_parse_text(text, &lease))
        return 0;
    lease.ticket = lease.since_wall_ns;
    (void)snprintf(lease.path, sizeof(lease.path), "%s, simulated", name);
    return add_lease(leases, &lease);
}

/* A folder for each user, with the user's number for a name. */
static int scan_simulated(struct gp_leases *leases)
{
    char path[GP_PATH_SIZE];
    const struct dirent *user, *entry;
    DIR *users =
        simulated && gp_io_path(path, simulated, "/run/gpulse-simulated") ? opendir(path) : NULL;
    int r = 0;
    while (r == 0 && users && (user = readdir(users))) {
        uint64_t uid;
        int fd = gp_parse_u64(user->d_name, &uid) && uid <= UINT32_MAX
                     ? openat(dirfd(users), user->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                     : -1;
        DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
        if (!folder && fd >= 0)
            (void)close(fd);
        while (r == 0 && folder && (entry = readdir(folder)))
            r = add_simulated(fd, entry->d_name, (uid_t)uid, leases);
        if (folder)
            (void)closedir(folder);
    }
    if (users)
        (void)closedir(users);
    return r;
}

/* ---- the list ---- */

static int compare_leases(const void *a, const void *b)
{
    const struct gp_lease *x = a;
    const struct gp_lease *y = b;
    if (x->ticket != y->ticket)
        return x->ticket < y->ticket ? -1 : 1;
    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void sort(struct gp_leases *leases)
{
    if (leases->count > 0)
        qsort(leases->items, leases->count, sizeof(*leases->items), compare_leases);
    /* equal kernel timestamps need an order, too */
    for (size_t i = 1; i < leases->count; i++)
        if (leases->items[i].ticket <= leases->items[i - 1].ticket)
            leases->items[i].ticket = leases->items[i - 1].ticket + 1;
}

static int read_from(struct gp_statedirs *dirs, struct gp_leases *ret, struct gp_leases_kept *kept,
                     struct gp_err *err)
{
    struct gp_leases_kept now = {.leases.items = NULL};
    struct reading reading = {.leases = ret, .kept = kept ? &now : NULL};
    int e = 0;
    const struct gp_statedir *dir;
    *ret = (struct gp_leases){.items = NULL};
    while (e == 0 && (dir = gp_statedirs_next(dirs)))
        e = scan(&reading, dir);
    if (e == 0)
        e = dirs->error;
    if (e == 0 && kept)
        e = add_removed(&reading, kept);
    if (e == 0)
        e = scan_simulated(ret);
    if (e < 0) {
        gp_leases_kept_fini(&now);
        gp_leases_fini(ret);
        return gp_statedirs_fail(e, err);
    }
    if (kept) {
        gp_leases_kept_fini(kept);
        *kept = now;
    }
    sort(ret);
    return 0;
}

int gp_leases_read_kept(struct gp_leases *ret, struct gp_leases_kept *kept, struct gp_err *err)
{
    struct gp_statedirs dirs;
    *ret = (struct gp_leases){.items = NULL};
    const int e = gp_statedirs_open(NULL, &dirs);
    const int r = e == 0 ? read_from(&dirs, ret, kept, err) : gp_statedirs_fail(e, err);
    gp_statedirs_close(&dirs);
    return r;
}

int gp_leases_read(struct gp_leases *ret, struct gp_err *err)
{
    return gp_leases_read_kept(ret, NULL, err);
}

static void leave_out_claims(struct gp_leases *leases)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].state != GP_LEASE_CLAIMED)
            leases->items[kept++] = leases->items[i];
    leases->count = kept;
}

int gp_leases_read_settled(struct gp_statedirs *dirs, struct gp_leases *ret, struct gp_err *err)
{
    int r = dirs ? read_from(dirs, ret, NULL, err) : gp_leases_read(ret, err);
    for (int i = 0; r == 0 && i < SETTLE_TRIES && gp_leases_conflict(ret); i++) {
        gp_leases_fini(ret);
        r = gp_leases_read(ret, err);
    }
    if (r == 0)
        leave_out_claims(ret);
    for (size_t i = 0; r == 0 && i < ret->count; i++)
        (void)gp_lease_user(&ret->items[i], ret->items[i].user, sizeof(ret->items[i].user));
    return r;
}

void gp_leases_fini(struct gp_leases *leases)
{
    free(leases->items);
    *leases = (struct gp_leases){.items = NULL};
}

const struct gp_lease *gp_leases_find(const struct gp_leases *leases, uint64_t id,
                                      enum gp_lease_state state)
{
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].id == id && leases->items[i].state == state &&
            leases->items[i].uid == geteuid())
            return &leases->items[i];
    return NULL;
}

void gp_leases_leave_out(struct gp_leases *leases, uint64_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].id != id || leases->items[i].uid != geteuid())
            leases->items[kept++] = leases->items[i];
    leases->count = kept;
}

bool gp_lease_user(const struct gp_lease *lease, char *ret, size_t size)
{
    return gp_proc_user_name(simulated, lease->uid, ret, size);
}
