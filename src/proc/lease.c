#include "proc/lease.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES = 16384,
    LOOKS_MOST = 4 * GP_LEASES_PER_USER, /* files read per user, */
    ENTRIES_MOST = 16 * LOOKS_MOST,      /* out of this many directory entries */
    NAME_SIZE = 32,
    FRESH_S = 60, /* far longer than writing a file takes */
    KEPT_PER_USER = 16,
    SETTLE_TRIES = 8, /* attempts to get a list without conflicts */
};

/* By state; "new.ID" is being written. The file of one state exists until that of the next one
 * does. Listing a folder is one system call, so a reader sees a request in at least one state. */
static const char *const prefixes[] = {
    [GP_LEASE_WAITING] = "wait.", [GP_LEASE_CLAIMED] = "claim.", [GP_LEASE_HELD] = "held."};
static const char fresh_prefix[] = "new.";

/* ---- the content of a file ---- */

/* Lines "key value"; a value is one line of safe text. */
static void add_text(struct gp_strbuf *sb, const struct gp_lease *lease)
{
    gp_strbuf_addf(sb, "gpulse-lease 2\nsince %" PRIu64 "\npid %" PRIu32 "\nns %" PRIu64,
                   lease->since_wall_ns, lease->pid, lease->ns);
    gp_strbuf_addf(sb, "\nshared %d\nbytes %" PRIu64 "\nlimit %" PRIu64 "\nwanted %u\nname ",
                   (int)lease->is_shared, lease->bytes, lease->limit_ns, lease->wanted);
    gp_utf8_add_safe(sb, lease->name, strlen(lease->name), sizeof(lease->name) - 1);
    gp_strbuf_adds(sb, "\ncommand ");
    gp_utf8_add_safe(sb, lease->command, strlen(lease->command), sizeof(lease->command) - 1);
    for (size_t i = 0; i < lease->gpu_count; i++)
        gp_strbuf_addf(sb, "\ngpu %s", lease->gpus[i]);
    gp_strbuf_addc(sb, '\n');
}

/* Unknown keys of a later version are ignored. */
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
        {"limit", UINT64_MAX, &lease->limit_ns},
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
            gp_utf8_copy_safe(texts[i].ret, texts[i].size, value);
    if (strcmp(key, "gpu") != 0)
        return true;
    if (lease->gpu_count == GP_LEASE_GPUS || strlen(value) >= GP_LEASE_UUID_SIZE)
        return false;
    gp_utf8_copy_safe(lease->gpus[lease->gpu_count++], GP_LEASE_UUID_SIZE, value);
    return true;
}

/* If a locked file cannot be parsed, its GPUs count as reserved exclusively. */
static bool parse_text(char *text, struct gp_lease *lease)
{
    char *rest = text;
    char *line = strsep(&rest, "\n");
    bool ok = strcmp(line, "gpulse-lease 2") == 0;
    while ((line = strsep(&rest, "\n"))) {
        char *value = line;
        const char *key = strsep(&value, " ");
        if (*line)
            ok = value && parse_line(key, value, lease) && ok;
    }
    if (ok)
        return lease->pid > 0;
    lease->is_shared = false;
    return lease->gpu_count > 0;
}

/* ---- reading ---- */

static bool parse_id(const char *digits, uint64_t *ret)
{
    char *end;
    *ret = strtoull(digits, &end, 16);
    return strspn(digits, "0123456789abcdef") == 16 && *end == '\0';
}

static void make_name(char ret[NAME_SIZE], const char *prefix, uint64_t id)
{
    (void)snprintf(ret, NAME_SIZE, "%s%016" PRIx64, prefix, id);
}

static bool parse_name(const char *name, struct gp_lease *ret)
{
    for (int i = GP_LEASE_WAITING; i <= GP_LEASE_HELD; i++) {
        size_t n = strlen(prefixes[i]);
        ret->state = (enum gp_lease_state)i;
        if (strncmp(name, prefixes[i], n) == 0)
            return parse_id(name + n, &ret->id);
    }
    return false;
}

/* Whether its owner still holds the lock. Only a user who may write a file can hold this kind of
 * lock, and it ends with the process. */
static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

/* Checks the process that a lease names, if it is in this pid namespace. It must belong to the
 * lease's owner: otherwise anybody could claim that somebody's process has a lease. False: there is
 * no such process, and the lease is dead. */
static bool check_process(struct gp_lease *lease)
{
    char path[64];
    struct stat st;
    struct gp_proc_stat stat_line;
    if (lease->ns != gp_proc_own_ns() || lease->pid == 0)
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
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lease->is_stopped = proc >= 0 && gp_proc_read_stat(proc, lease->pid, &stat_line) &&
                        (stat_line.state == 'T' || stat_line.state == 't');
    if (proc >= 0)
        (void)close(proc);
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
    char text[FILE_BYTES];
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
    if (n > 0 && parse_text(text, ret) && check_process(ret)) {
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
        char next[NAME_SIZE];
        make_name(next, prefixes[i], ret->id);
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
    if (is_own && strncmp(name, fresh_prefix, strlen(fresh_prefix)) == 0)
        sweep_fresh(dir, name);
    if (!parse_name(name, &lease) || reading->looks++ >= LOOKS_MOST ||
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
    char text[FILE_BYTES];
    struct gp_lease lease = {.uid = uid};
    if (!parse_name(name, &lease) || gp_io_read_at(folder, name, text, sizeof(text)) <= 0 ||
        !parse_text(text, &lease))
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

int gp_leases_read_kept(struct gp_leases *ret, struct gp_leases_kept *kept, struct gp_err *err)
{
    struct gp_statedirs dirs;
    struct gp_leases_kept now = {.leases.items = NULL};
    struct reading reading = {.leases = ret, .kept = kept ? &now : NULL};
    *ret = (struct gp_leases){.items = NULL};
    int e = gp_statedirs_open(NULL, &dirs);
    const struct gp_statedir *dir;
    while (e == 0 && (dir = gp_statedirs_next(&dirs)))
        e = scan(&reading, dir);
    if (e == 0)
        e = dirs.error;
    gp_statedirs_close(&dirs);
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

int gp_leases_read(struct gp_leases *ret, struct gp_err *err)
{
    return gp_leases_read_kept(ret, NULL, err);
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

bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid)
{
    for (size_t i = 0; *uuid && i < lease->gpu_count; i++)
        if (strcmp(lease->gpus[i], uuid) == 0)
            return true;
    return false;
}

static bool is_alone(const struct gp_lease *lease)
{
    return lease->state == GP_LEASE_HELD && !lease->is_shared;
}

struct holding {
    const char *uuid;
    const struct gp_lease *lease;
};

static int compare_holdings(const void *a, const void *b)
{
    const struct holding *x = a;
    const struct holding *y = b;
    int order = strcmp(x->uuid, y->uuid);
    return order ? order : (x->lease > y->lease) - (x->lease < y->lease);
}

/* Sorted, as a user can have reserved thousands of invented GPUs. */
bool gp_leases_conflict(const struct gp_leases *leases)
{
    size_t room = 1;
    size_t count = 0;
    bool found = false;
    for (size_t i = 0; i < leases->count; i++)
        room += leases->items[i].gpu_count;
    struct holding *all = calloc(room, sizeof(*all));
    if (!all)
        return true;
    for (size_t i = 0; i < leases->count; i++)
        for (size_t g = 0; is_alone(&leases->items[i]) && g < leases->items[i].gpu_count; g++)
            if (*leases->items[i].gpus[g])
                all[count++] = (struct holding){leases->items[i].gpus[g], &leases->items[i]};
    qsort(all, count, sizeof(*all), compare_holdings);
    for (size_t i = 1; !found && i < count; i++)
        found = all[i].lease != all[i - 1].lease && strcmp(all[i].uuid, all[i - 1].uuid) == 0;
    free(all);
    return found;
}

static void leave_out_claims(struct gp_leases *leases)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].state != GP_LEASE_CLAIMED)
            leases->items[kept++] = leases->items[i];
    leases->count = kept;
}

int gp_leases_read_settled(struct gp_leases *ret, struct gp_err *err)
{
    int r = gp_leases_read(ret, err);
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

bool gp_lease_may_overtake(const struct gp_lease *earlier, uint64_t limit_ns, uint64_t now_wall_ns)
{
    const uint64_t window_ns = GP_LEASE_OVERTAKE_S * GP_NS_PER_S;
    uint64_t waited_ns = now_wall_ns > earlier->ticket ? now_wall_ns - earlier->ticket : 0;
    return limit_ns > 0 && waited_ns < window_ns && limit_ns <= window_ns - waited_ns;
}

static bool want_the_same(const struct gp_lease *a, const struct gp_lease *b)
{
    for (size_t i = 0; i < a->gpu_count; i++)
        if (gp_lease_has_gpu(b, a->gpus[i]))
            return true;
    return false;
}

const struct gp_lease *gp_leases_rival(const struct gp_leases *leases, const struct gp_lease *lease)
{
    for (size_t i = 0; i < leases->count; i++) {
        const struct gp_lease *other = &leases->items[i];
        const bool is_it = other->id == lease->id && other->uid == geteuid();
        if (!is_it && other->state == GP_LEASE_HELD && !(other->is_shared && lease->is_shared) &&
            want_the_same(other, lease))
            return other;
    }
    return NULL;
}

size_t gp_lease_position(const struct gp_leases *leases, const struct gp_lease *lease)
{
    size_t position = lease->state == GP_LEASE_WAITING;
    for (size_t i = 0; position > 0 && i < leases->count; i++)
        position += leases->items[i].state == GP_LEASE_WAITING &&
                    leases->items[i].ticket < lease->ticket &&
                    want_the_same(&leases->items[i], lease);
    return position;
}

bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease,
                        uint64_t now_wall_ns)
{
    size_t left = 0;
    for (size_t g = 0; g < lease->gpu_count; g++) {
        bool taken = false;
        for (size_t i = 0; !taken && i < leases->count; i++)
            taken = leases->items[i].state == GP_LEASE_WAITING && !leases->items[i].is_stopped &&
                    leases->items[i].ticket < lease->ticket &&
                    gp_lease_has_gpu(&leases->items[i], lease->gpus[g]) &&
                    !gp_lease_may_overtake(&leases->items[i], lease->limit_ns, now_wall_ns);
        left += !taken;
    }
    return left < lease->wanted;
}

/* ---- writing ---- */

/* The number of this user's files in all places, including those of dead leases; or −errno. */
static int count_own(void)
{
    const struct dirent *entry;
    const struct gp_statedir *dir;
    struct gp_statedirs dirs;
    struct gp_lease lease;
    int count = 0;
    int e = gp_statedirs_open(NULL, &dirs);
    while (e == 0 && (dir = gp_statedirs_next(&dirs))) {
        DIR *listing = dir->owner == geteuid() ? gp_statedir_list(dir) : NULL;
        if (!listing && dir->owner == geteuid())
            e = -errno;
        while (listing && (entry = readdir(listing)))
            count += parse_name(entry->d_name, &lease);
        if (listing)
            (void)closedir(listing);
    }
    if (e == 0)
        e = dirs.error;
    gp_statedirs_close(&dirs);
    return e < 0 ? e : count;
}

/* Created under another name and locked before others can open it: so it is never visible unlocked,
 * and nobody else's lock can interfere. */
static int write_file(const struct gp_statedir *dir, const char *name, const char *fresh,
                      const struct gp_strbuf *sb, int *ret_fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(dir->fd, fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = fd < 0 ? -errno : 0;
    if (e == 0 && fcntl(fd, F_OFD_SETLK, &lock) != 0)
        e = -errno;
    if (e == 0)
        e = gp_io_write_all(fd, sb->buf, sb->len);
    if (e == 0 && (fchmod(fd, 0644) != 0 || renameat(dir->fd, fresh, dir->fd, name) != 0))
        e = -errno;
    if (e < 0 && fd >= 0) {
        (void)unlinkat(dir->fd, fresh, 0);
        (void)close(fd);
    }
    *ret_fd = e < 0 ? -1 : fd;
    return e;
}

static bool is_full(int e)
{
    return e == -ENOSPC || e == -EDQUOT || e == -EROFS;
}

int gp_lease_write(struct gp_lease_note *note, const struct gp_lease *lease, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(FILE_BYTES - 1);
    struct gp_lease_note made = GP_LEASE_NO_NOTE;
    char fresh[sizeof(made.name)];
    struct gp_strbuf full = GP_STRBUF_INIT(1024);
    struct gp_statedir dir;
    size_t place = 0;
    int e = 0;
    int r = 0;
    make_name(made.name, prefixes[lease->state], lease->id);
    make_name(fresh, fresh_prefix, lease->id);
    add_text(&sb, lease);
    const int count = count_own();
    if (sb.error || count < 0)
        r = gp_statedirs_fail(sb.error ? -ENOMEM : count, err);
    else if (count >= GP_LEASES_PER_USER)
        r = gp_err_set(err, GP_EIO, "user %u holds %d reservations, which is the limit",
                       (unsigned)geteuid(), count);
    for (size_t from = 0; r == 0 && made.fd < 0; from = place + 1) {
        struct gp_err why = {0};
        r = gp_statedir_own(NULL, from, &dir, &place, &why);
        if (r < 0) {
            r = gp_err_set(err, r, "%s%s%.400s", full.len ? full.buf : "", full.len ? "; " : "",
                           why.text);
            break;
        }
        e = write_file(&dir, made.name, fresh, &sb, &made.fd);
        made.dir = dir.fd;
        if (e < 0 && !is_full(e))
            r = gp_err_set(err, GP_EIO, "cannot write a reservation in '%s': %s", dir.path,
                           strerror(-e));
        else if (e < 0)
            gp_statedir_complain(&full, &dir, e);
        if (e < 0)
            (void)close(dir.fd);
    }
    gp_strbuf_fini(&full);
    gp_strbuf_fini(&sb);
    if (r < 0)
        return r;
    gp_lease_drop(note);
    *note = made;
    return 0;
}

int gp_lease_confirm(struct gp_lease_note *note, struct gp_err *err)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%s%s", prefixes[GP_LEASE_HELD],
                   note->name + strlen(prefixes[GP_LEASE_CLAIMED]));
    if (renameat(note->dir, note->name, note->dir, name) != 0)
        return gp_err_set(err, GP_EIO, "cannot write a reservation: %s", strerror(errno));
    memcpy(note->name, name, sizeof(name));
    return 0;
}

bool gp_lease_was_removed(const struct gp_lease_note *note)
{
    struct stat own;
    struct stat named;
    return note->fd >= 0 && fstat(note->fd, &own) == 0 &&
           (fstatat(note->dir, note->name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
            named.st_ino != own.st_ino);
}

/* Unlocks before removing the file: a reader that finds it gone but locked assumes that somebody
 * else has removed it. */
void gp_lease_drop(struct gp_lease_note *note)
{
    struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (note->fd < 0)
        return;
    const bool was_removed = gp_lease_was_removed(note);
    (void)fcntl(note->fd, F_OFD_SETLK, &unlock);
    if (!was_removed)
        (void)unlinkat(note->dir, note->name, 0);
    (void)close(note->fd);
    (void)close(note->dir);
    *note = GP_LEASE_NO_NOTE;
}
