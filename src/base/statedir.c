#include "base/statedir.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    FOLDERS_PER_USER = 4, /* per place; more than these are not gpulse's */
    LOOKED_AT = 100000,   /* entries examined to find who fills a place, */
    DEPTH_MOST = 16,      /* and levels of directories: each takes a descriptor */
};

static const char *const places[GP_STATEDIR_PLACES] = {"/run/gpulse", "/dev/shm", "/tmp"};
static const char prefix[] = "gpulse-";

static const char variable[] = "GPULSE_STATE_DIR";

/* The only place, if $GPULSE_STATE_DIR is set; NULL otherwise. */
static const char *chosen_place(void)
{
    const char *path = getenv(variable);
    return path && *path ? path : NULL;
}

/* NULL: no place has this number. */
static const char *place_path(const char *root, size_t number, char room[GP_PATH_SIZE])
{
    if (chosen_place())
        return number == 0 ? chosen_place() : NULL;
    return number < GP_STATEDIR_PLACES && gp_io_path(room, root, places[number]) ? room : NULL;
}

/* A usable place is one where only the owner of a file can remove it. */
static int open_place(const char *path, struct stat *ret_st)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    bool ok = fstat(fd, ret_st) == 0 && (ret_st->st_uid == 0 || ret_st->st_uid == geteuid()) &&
              ((ret_st->st_mode & S_ISVTX) || !(ret_st->st_mode & 022));
    if (ok)
        return fd;
    (void)close(fd);
    return -EPERM;
}

/* "gpulse-1000", "gpulse-1000.5f3a" */
static bool parse_name(const char *name, uid_t *ret_uid)
{
    char digits[16];
    uint64_t uid;
    size_t n = sizeof(prefix) - 1;
    if (strncmp(name, prefix, n) != 0)
        return false;
    size_t length = strcspn(name + n, ".");
    if (length >= sizeof(digits))
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)length, name + n);
    if (!gp_parse_u64(digits, &uid) || uid > UINT32_MAX)
        return false;
    *ret_uid = (uid_t)uid;
    return true;
}

int gp_statedirs_fail(int e, struct gp_err *err)
{
    return e == -ENOMEM
               ? gp_err_set(err, GP_ENOMEM, "out of memory")
               : gp_err_system(err, -e, GP_EIO, "cannot read the directories of all users");
}

bool gp_statedir_ignores(int e)
{
    return e != -EMFILE && e != -ENFILE && e != -ENOMEM;
}

/* Opens the directory of this user, if the user owns it and nobody else can write to it. −errno:
 * there is none. */
static int open_folder(int place, const char *name, uid_t uid)
{
    struct stat st;
    int fd = gp_io_open_beneath(place, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_uid == uid && !(st.st_mode & 022)))
        return fd;
    (void)close(fd);
    return -EPERM;
}

static void set_path(struct gp_statedir *dir, const char *place, const char *name)
{
    static const char cut[] = "…";
    if (snprintf(dir->path, sizeof(dir->path), "%s/%s", place, name) >= (int)sizeof(dir->path))
        memcpy(dir->path + sizeof(dir->path) - sizeof(cut), cut, sizeof(cut));
}

static int compare_entries(const void *a, const void *b)
{
    const struct gp_statedir_entry *x = a;
    const struct gp_statedir_entry *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorts the directories, and keeps the first few of each owner in each place. */
static void prune(struct gp_statedirs *dirs)
{
    size_t kept = 0;
    if (dirs->count > 0)
        qsort(dirs->entries, dirs->count, sizeof(*dirs->entries), compare_entries);
    for (size_t i = 0; i < dirs->count; i++) {
        const struct gp_statedir_entry *entry = &dirs->entries[i];
        const struct gp_statedir_entry *before =
            kept >= FOLDERS_PER_USER ? &dirs->entries[kept - FOLDERS_PER_USER] : NULL;
        if (!before || before->place != entry->place || before->owner != entry->owner)
            dirs->entries[kept++] = *entry;
    }
    dirs->count = kept;
}

/* Doubles the array when it is full, so that many directories of one user cost little. */
static int add(struct gp_statedirs *dirs, const struct gp_statedir_entry *entry)
{
    enum { FEW = 256 };
    if (dirs->count == dirs->room) {
        prune(dirs);
        dirs->room = dirs->count < FEW ? 2 * FEW : 2 * dirs->count;
        struct gp_statedir_entry *grown =
            realloc(dirs->entries, dirs->room * sizeof(*dirs->entries));
        if (!grown)
            return -ENOMEM;
        dirs->entries = grown;
    }
    dirs->entries[dirs->count++] = *entry;
    return 0;
}

/* Reads a directory again, from its start. */
static DIR *list(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    if (!listing && again >= 0) {
        int e = errno;
        (void)close(again);
        errno = e;
    }
    return listing;
}

/* The users' directories in a place: all, or those of one user (`only`). 0 or −errno. */
static int add_folders(struct gp_statedirs *dirs, size_t number, const uid_t *only)
{
    const struct dirent *found;
    struct stat st;
    DIR *listing = list(dirs->places[number]);
    int e = listing || gp_statedir_ignores(-errno) ? 0 : -errno;
    while (listing && e == 0 && (found = readdir(listing))) {
        struct gp_statedir_entry entry = {.place = number};
        if (strlen(found->d_name) >= sizeof(entry.name) ||
            !parse_name(found->d_name, &entry.owner) || (only && *only != entry.owner))
            continue;
        memcpy(entry.name, found->d_name, strlen(found->d_name) + 1);
        if (!gp_io_stat_beneath(dirs->places[number], entry.name, &st))
            e = gp_statedir_ignores(-errno) ? 0 : -errno;
        else if (st.st_uid == entry.owner && S_ISDIR(st.st_mode))
            e = add(dirs, &entry);
    }
    if (listing)
        (void)closedir(listing);
    return e;
}

static void init(struct gp_statedirs *dirs, const char *root)
{
    *dirs = (struct gp_statedirs){.root = root, .current.fd = -1};
    for (size_t i = 0; i < GP_STATEDIR_PLACES; i++)
        dirs->places[i] = -1;
}

int gp_statedirs_open(const char *root, struct gp_statedirs *ret)
{
    char room[GP_PATH_SIZE];
    const char *path;
    struct stat st;
    int e = 0;
    init(ret, root);
    for (size_t i = 0; e == 0 && (path = place_path(root, i, room)); i++) {
        ret->places[i] = open_place(path, &st);
        if (ret->places[i] >= 0)
            e = add_folders(ret, i, NULL);
        else if (!gp_statedir_ignores(ret->places[i]))
            e = ret->places[i];
    }
    prune(ret);
    if (e < 0)
        gp_statedirs_close(ret);
    return e;
}

static void close_current(struct gp_statedirs *dirs)
{
    if (dirs->current.fd >= 0)
        (void)close(dirs->current.fd);
    dirs->current.fd = -1;
}

const struct gp_statedir *gp_statedirs_next(struct gp_statedirs *dirs)
{
    char room[GP_PATH_SIZE];
    close_current(dirs);
    while (dirs->at < dirs->count) {
        const struct gp_statedir_entry *entry = &dirs->entries[dirs->at++];
        const char *path = place_path(dirs->root, entry->place, room);
        int fd =
            path ? open_folder(dirs->places[entry->place], entry->name, entry->owner) : -ENOENT;
        if (fd < 0 && !gp_statedir_ignores(fd))
            dirs->error = fd;
        if (fd < 0)
            continue;
        dirs->current = (struct gp_statedir){.fd = fd, .owner = entry->owner};
        set_path(&dirs->current, path, entry->name);
        return &dirs->current;
    }
    dirs->at = 0;
    return NULL;
}

void gp_statedirs_close(struct gp_statedirs *dirs)
{
    close_current(dirs);
    for (size_t i = 0; i < GP_STATEDIR_PLACES; i++)
        if (dirs->places[i] >= 0)
            (void)close(dirs->places[i]);
    free(dirs->entries);
    init(dirs, NULL);
}

DIR *gp_statedir_list(const struct gp_statedir *dir)
{
    return list(dir->fd);
}

/* ---- this user's own directory ---- */

/* That which is there: the first that this user can write in, as all of the user's processes find
 * it. fd −1: there is none. */
static int find_own(struct gp_statedirs *found, size_t number, struct gp_statedir *ret)
{
    const struct gp_statedir *dir;
    const uid_t uid = geteuid();
    *ret = (struct gp_statedir){.fd = -1};
    found->count = found->at = 0;
    int e = add_folders(found, number, &uid);
    if (e < 0)
        return e;
    prune(found);
    while (ret->fd < 0 && (dir = gp_statedirs_next(found)))
        if (faccessat(dir->fd, ".", W_OK | X_OK, AT_EACCESS) == 0) {
            *ret = *dir;
            found->current.fd = -1; /* it is the caller's now */
        }
    return ret->fd < 0 ? found->error : 0;
}

/* Under a name that nobody has taken. Another process of this user may make one just now: both then
 * use one, and leave none behind that is not used. */
static int make_own(struct gp_statedirs *found, size_t number, struct gp_statedir *ret)
{
    const unsigned uid = geteuid();
    const int place = found->places[number];
    char name[GP_STATEDIR_NAME_SIZE];
    int e = 0;
    (void)snprintf(name, sizeof(name), "%s%u", prefix, uid);
    for (int i = 0; e == 0 && ret->fd < 0 && i < 2; i++) {
        if (i > 0)
            (void)snprintf(name, sizeof(name), "%s%u.%016" PRIx64, prefix, uid, gp_io_random());
        e = mkdirat(place, name, 0755) == 0 || errno == EEXIST ? find_own(found, number, ret)
                                                               : -errno;
    }
    if (ret->fd >= 0 && strcmp(found->entries[found->at - 1].name, name) != 0)
        (void)unlinkat(place, name, AT_REMOVEDIR);
    return e == 0 && ret->fd < 0 ? -EIO : e;
}

/* That which is there, or a new one. The mask of whoever has made it is undone. */
static int own_folder(const char *root, size_t number, const char *path, struct gp_statedir *ret,
                      struct stat *place_st)
{
    struct gp_statedirs found;
    *ret = (struct gp_statedir){.fd = -1};
    init(&found, root);
    int place = found.places[number] = open_place(path, place_st);
    int e = place < 0 ? place : find_own(&found, number, ret);
    if (e == 0 && ret->fd < 0)
        e = make_own(&found, number, ret);
    if (e == 0 && fchmod(ret->fd, 0755) != 0)
        e = -errno;
    gp_statedirs_close(&found);
    if (e < 0 && ret->fd >= 0) {
        (void)close(ret->fd);
        ret->fd = -1;
    }
    return e;
}

struct usage {
    struct owner {
        uid_t uid;
        uint64_t blocks, files;
    } owners[64];
    size_t count;
    int looks; /* entries examined */
};

static void add_usage(struct usage *usage, const struct stat *st)
{
    size_t i = 0;
    while (i < usage->count && usage->owners[i].uid != st->st_uid)
        i++;
    if (i == GP_ARRAY_LEN(usage->owners))
        return;
    if (i == usage->count)
        usage->owners[usage->count++] = (struct owner){.uid = st->st_uid};
    usage->owners[i].blocks += (uint64_t)st->st_blocks / (st->st_nlink > 1 ? st->st_nlink : 1);
    usage->owners[i].files++;
}

/* Adds up a directory and those below it that this user may read, without crossing mounts. */
static void look_below(struct usage *usage, int fd, int depth)
{
    const struct dirent *entry;
    struct stat st;
    DIR *listing = fdopendir(fd);
    while (listing && usage->looks++ < LOOKED_AT && (entry = readdir(listing))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            !gp_io_stat_beneath(fd, entry->d_name, &st))
            continue;
        add_usage(usage, &st);
        int below = S_ISDIR(st.st_mode) && depth < DEPTH_MOST
                        ? gp_io_open_beneath(fd, entry->d_name, O_RDONLY | O_DIRECTORY)
                        : -1;
        if (below >= 0)
            look_below(usage, below, depth + 1);
    }
    if (listing)
        (void)closedir(listing);
    else
        (void)close(fd);
}

/* The user of at least half of what is used in a place: file space or, if they have run out, files.
 * −1: nobody, as far as this user can see. */
static int64_t whose_place(const char *path)
{
    struct usage usage = {.count = 0};
    struct statfs fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const bool ok = fstatfs(fd, &fs) == 0;
    look_below(&usage, fd, 0);
    const bool by_files = ok && fs.f_files > 0 && fs.f_ffree == 0;
    for (size_t i = 0; ok && i < usage.count; i++) {
        const struct owner *owner = &usage.owners[i];
        if (by_files ? 2 * owner->files >= fs.f_files
                     : 2 * owner->blocks * 512 >= (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize)
            return owner->uid;
    }
    return -1;
}

static bool is_full(int e)
{
    return e == -ENOSPC || e == -EDQUOT;
}

static void add_who_fills(struct gp_strbuf *sb, const char *place, int e)
{
    char user[GP_USER_TEXT_SIZE];
    const int64_t uid = is_full(e) ? whose_place(place) : -1;
    if (uid >= 0)
        gp_strbuf_addf(sb, ", most of it used by %s", gp_io_user_text((unsigned)uid, user));
}

void gp_statedir_complain(struct gp_strbuf *sb, const struct gp_statedir *dir, int e)
{
    const char *name = strrchr(dir->path, '/');
    char place[sizeof(dir->path)];
    (void)snprintf(place, sizeof(place), "%.*s", name ? (int)(name - dir->path) : 0, dir->path);
    gp_strbuf_addf(sb, "%s'%s': %s", sb->len ? "; " : "", dir->path, strerror(-e));
    add_who_fills(sb, place, e);
}

static void add_complaint(struct gp_strbuf *sb, const char *path, int e, const struct stat *st)
{
    char user[GP_USER_TEXT_SIZE];
    gp_strbuf_adds(sb, sb->len ? "; " : "");
    if (e == -EPERM && st->st_uid != 0 && st->st_uid != geteuid())
        gp_strbuf_addf(sb, "'%s' belongs to %s, not to root", path,
                       gp_io_user_text(st->st_uid, user));
    else if (e == -EPERM)
        gp_strbuf_addf(sb, "'%s' must have mode 1777", path);
    else
        gp_strbuf_addf(sb, "'%s': %s", path, strerror(-e));
    add_who_fills(sb, path, e);
}

static int check_chosen(struct stat *ret_st, struct gp_err *err)
{
    const char *path = chosen_place();
    *ret_st = (struct stat){.st_mode = S_IWOTH};
    if (!path)
        return 0;
    if (*path != '/')
        return gp_err_set(err, GP_EUSAGE, "%s is '%.200s'; it must be an absolute path", variable,
                          path);
    if (stat(path, ret_st) == 0 && S_ISDIR(ret_st->st_mode))
        return 0;
    return gp_err_set(err, GP_EUSAGE, "%s is '%.200s': %s; create it with mkdir -m 1777", variable,
                      path, strerror(errno == ENOENT ? ENOENT : ENOTDIR));
}

/* Containers have their own /dev/shm and /tmp, unless they share the host's IPC namespace. */
static bool is_in_container(void)
{
    static const ino_t initial = 0xEFFFFFFF; /* the kernel's PROC_IPC_INIT_INO */
    struct stat st;
    return stat("/proc/self/ns/ipc", &st) == 0 && st.st_ino != initial;
}

int gp_statedir_check(struct gp_strbuf *note, struct gp_err *err)
{
    char room[GP_PATH_SIZE];
    struct stat st;
    size_t number = 0;
    int place = -1;
    int r = check_chosen(&st, err);
    if (r < 0)
        return r;
    if (!(st.st_mode & S_IWOTH))
        gp_strbuf_addf(note,
                       "reservations are stored in '%s' (%s): they are not visible to other users, "
                       "and those of other users are not visible here",
                       chosen_place(), variable);
    if (chosen_place() || !is_in_container())
        return 0;
    while (number < GP_STATEDIR_PLACES && (place = open_place(places[number], &st)) < 0)
        number++;
    if (place >= 0)
        (void)close(place);
    if (place >= 0 && number > 0) /* the first place exists only if an administrator shares it */
        gp_strbuf_addf(
            note,
            "reservations are stored in '%s' of this container: they are not visible outside it, "
            "and those from outside are not visible here; share '%s' with the container",
            place_path(NULL, number, room), places[0]);
    return 0;
}

int gp_statedir_own(const char *root, size_t from, struct gp_statedir *ret, size_t *ret_place,
                    struct gp_err *err)
{
    struct gp_strbuf why = GP_STRBUF_INIT(1024);
    char room[GP_PATH_SIZE];
    const char *path;
    struct stat chosen;
    int e = -ENOENT;
    if (check_chosen(&chosen, err) < 0) {
        gp_strbuf_fini(&why);
        return GP_EUSAGE;
    }
    for (size_t i = from; e < 0 && (path = place_path(root, i, room)); i++) {
        struct stat st = {0};
        e = own_folder(root, i, path, ret, &st);
        *ret_place = i;
        if (e < 0)
            add_complaint(&why, path, e, &st);
    }
    int r = e == -ENOMEM ? GP_ENOMEM : e < 0 ? gp_err_code(-e, GP_EIO) : 0;
    if (r < 0)
        (void)gp_err_set(err, r, "cannot write where other users can read it: %s",
                         why.len ? why.buf : "no other place is used");
    gp_strbuf_fini(&why);
    return r;
}

/* ---- change notifications ---- */

static void watch(int fd, int dir, uint32_t what)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
    (void)!inotify_add_watch(fd, path, what);
}

void gp_statedirs_watch(const char *root, int *fd)
{
    char room[GP_PATH_SIZE];
    const char *path;
    struct gp_statedirs dirs;
    struct stat st;
    if (*fd < 0)
        *fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (*fd < 0)
        return;
    for (size_t i = 0; i < GP_STATEDIR_PLACES; i++) {
        int place = (path = place_path(root, i, room)) ? open_place(path, &st) : -1;
        if (place >= 0) {
            watch(*fd, place, IN_CREATE);
            (void)close(place);
        }
    }
    if (gp_statedirs_open(root, &dirs) < 0)
        return;
    const struct gp_statedir *dir;
    while ((dir = gp_statedirs_next(&dirs)))
        watch(*fd, dir->fd, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
    gp_statedirs_close(&dirs);
}

bool gp_statedirs_changed(int fd)
{
    _Alignas(struct inotify_event) char events[4096];
    bool changed = false;
    ssize_t n;
    while ((n = read(fd, events, sizeof(events))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(events + at);
            uid_t uid;
            /* in a place only our directories matter; in a directory everything does */
            if (!(event->mask & IN_CREATE) || parse_name(event->name, &uid))
                changed = true;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    return changed;
}
