#include "base/statedir.h"

#include "base/err.h"
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
#include <unistd.h>

enum {
    FOLDERS_PER_USER = 4, /* in a place; who has more made them by hand */
    LOOKED_AT = 100000,   /* files of a place, to say whose they are */
    NAME_SIZE = 48,
};

static const char *const places[GP_STATEDIR_PLACES] = {"/run/gpulse", "/dev/shm", "/tmp"};
static const char prefix[] = "gpulse-";

/* The path of a place: that which was told is the only one. NULL: there is none of that number. */
static const char *place_path(const char *root, size_t number, char room[GP_PATH_SIZE])
{
    const char *told = getenv("GPULSE_STATE_DIR");
    if (told && *told)
        return number == 0 ? told : NULL;
    return number < GP_STATEDIR_PLACES && gp_io_path(room, root, places[number]) ? room : NULL;
}

/* Nobody but its owner can take away there what others have made. */
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

/* The user's whom its name says, and only that user can write there. −1: it does not count. */
static int open_folder(int place, const char *name, uid_t uid)
{
    struct stat st;
    if (fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_uid != uid)
        return -1; /* before it is opened: what is no folder may be a device */
    int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == uid && !(st.st_mode & 022))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void set_path(struct gp_statedir *dir, const char *place, const char *name)
{
    static const char cut[] = "…";
    if (snprintf(dir->path, sizeof(dir->path), "%s/%s", place, name) >= (int)sizeof(dir->path))
        memcpy(dir->path + sizeof(dir->path) - sizeof(cut), cut, sizeof(cut));
}

static int add(struct gp_statedirs *dirs, int fd, uid_t uid, const char *place, const char *name)
{
    struct gp_statedir *grown = realloc(dirs->items, (dirs->count + 1) * sizeof(*grown));
    if (!grown) {
        (void)close(fd);
        return GP_ENOMEM;
    }
    dirs->items = grown;
    struct gp_statedir *dir = &grown[dirs->count++];
    *dir = (struct gp_statedir){.fd = fd, .owner = uid};
    set_path(dir, place, name);
    return 0;
}

static size_t count_of(const struct gp_statedirs *dirs, size_t from, uid_t uid)
{
    size_t count = 0;
    for (size_t i = from; i < dirs->count; i++)
        count += dirs->items[i].owner == uid;
    return count;
}

/* The users' folders of a place, all or those of one (`only`). Takes the descriptor. */
static int add_folders(struct gp_statedirs *dirs, int place, const char *path, const uid_t *only)
{
    const struct dirent *entry;
    size_t from = dirs->count;
    int r = 0;
    DIR *listing = fdopendir(place);
    if (!listing) {
        (void)close(place);
        return 0;
    }
    while (r == 0 && (entry = readdir(listing))) {
        uid_t uid;
        int fd;
        if (parse_name(entry->d_name, &uid) && (!only || *only == uid) &&
            count_of(dirs, from, uid) < FOLDERS_PER_USER &&
            (fd = open_folder(dirfd(listing), entry->d_name, uid)) >= 0)
            r = add(dirs, fd, uid, path, entry->d_name);
    }
    (void)closedir(listing);
    return r;
}

int gp_statedirs_open(const char *root, struct gp_statedirs *ret)
{
    char room[GP_PATH_SIZE];
    const char *path;
    struct stat st;
    int r = 0;
    *ret = (struct gp_statedirs){NULL, 0};
    for (size_t i = 0; r == 0 && i < GP_STATEDIR_PLACES; i++) {
        int place = (path = place_path(root, i, room)) ? open_place(path, &st) : -1;
        if (place >= 0)
            r = add_folders(ret, place, path, NULL);
    }
    if (r < 0)
        gp_statedirs_close(ret);
    return r;
}

void gp_statedirs_close(struct gp_statedirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        (void)close(dirs->items[i].fd);
    free(dirs->items);
    *dirs = (struct gp_statedirs){NULL, 0};
}

DIR *gp_statedir_list(const struct gp_statedir *dir)
{
    int again = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    if (!listing && again >= 0)
        (void)close(again);
    return listing;
}

/* ---- one's own ---- */

/* Under a name that nobody has taken. The mask of this process is undone. */
static int make_folder(int place, const char *path, struct gp_statedir *ret)
{
    const uid_t uid = geteuid();
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%s%u", prefix, (unsigned)uid);
    if (mkdirat(place, name, 0755) != 0) {
        if (errno != EEXIST)
            return -errno;
        (void)snprintf(name, sizeof(name), "%s%u.%016" PRIx64, prefix, (unsigned)uid,
                       gp_io_random());
        if (mkdirat(place, name, 0755) != 0)
            return -errno;
    }
    *ret = (struct gp_statedir){.fd = open_folder(place, name, uid), .owner = uid};
    if (ret->fd < 0)
        return -EIO;
    set_path(ret, path, name);
    return fchmod(ret->fd, 0755) == 0 ? 0 : -errno;
}

/* That which is there, or a new one. */
static int own_folder(const char *path, struct gp_statedir *ret, struct stat *place_st)
{
    struct gp_statedirs found = {NULL, 0};
    const uid_t uid = geteuid();
    int place = open_place(path, place_st);
    int again = place >= 0 ? fcntl(place, F_DUPFD_CLOEXEC, 0) : -1;
    int e = place < 0 ? place : again < 0 ? -errno : 0;
    *ret = (struct gp_statedir){.fd = -1};
    if (e == 0 && add_folders(&found, again, path, &uid) < 0)
        e = -ENOMEM;
    for (size_t i = 0; e == 0 && ret->fd < 0 && i < found.count; i++)
        if (faccessat(found.items[i].fd, ".", W_OK | X_OK, AT_EACCESS) == 0) {
            *ret = found.items[i];
            found.items[i].fd = -1;
        }
    for (size_t i = 0; i < found.count; i++)
        if (found.items[i].fd >= 0)
            (void)close(found.items[i].fd);
    free(found.items);
    if (e == 0 && ret->fd < 0)
        e = make_folder(place, path, ret);
    if (place >= 0)
        (void)close(place);
    if (e < 0 && ret->fd >= 0) {
        (void)close(ret->fd);
        ret->fd = -1;
    }
    return e;
}

/* Who has most in a place: of its files' space, or of their number. −1: nobody has. */
static int64_t whose_place(const char *path)
{
    struct owner {
        uid_t uid;
        uint64_t weight;
    } owners[64];
    size_t count = 0;
    const struct owner *most = NULL;
    const struct dirent *entry;
    DIR *listing = opendir(path);
    for (int n = 0; listing && n < LOOKED_AT && (entry = readdir(listing)); n++) {
        struct stat st;
        size_t i = 0;
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(listing), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        while (i < count && owners[i].uid != st.st_uid)
            i++;
        if (i == GP_ARRAY_LEN(owners))
            continue;
        if (i == count)
            owners[count++] = (struct owner){st.st_uid, 0};
        owners[i].weight += (uint64_t)st.st_blocks + 1;
    }
    if (listing)
        (void)closedir(listing);
    for (size_t i = 0; i < count; i++)
        if (!most || owners[i].weight > most->weight)
            most = &owners[i];
    return most ? (int64_t)most->uid : -1;
}

static bool is_full(int e)
{
    return e == -ENOSPC || e == -EDQUOT;
}

void gp_statedir_complain(struct gp_strbuf *sb, const struct gp_statedir *dir, int e)
{
    const char *name = strrchr(dir->path, '/');
    char place[sizeof(dir->path)];
    (void)snprintf(place, sizeof(place), "%.*s", name ? (int)(name - dir->path) : 0, dir->path);
    int64_t uid = is_full(e) ? whose_place(place) : -1;
    gp_strbuf_addf(sb, "%s'%s': %s", sb->len ? "; " : "", dir->path, strerror(-e));
    if (uid >= 0)
        gp_strbuf_addf(sb, ", most of it is uid %" PRId64 "'s", uid);
}

static void add_complaint(struct gp_strbuf *sb, const char *path, int e, const struct stat *st)
{
    gp_strbuf_adds(sb, sb->len ? "; " : "");
    if (e == -EPERM && st->st_uid != 0 && st->st_uid != geteuid())
        gp_strbuf_addf(sb, "'%s' belongs to uid %u, not to root", path, (unsigned)st->st_uid);
    else if (e == -EPERM)
        gp_strbuf_addf(sb, "'%s' must have mode 1777", path);
    else
        gp_strbuf_addf(sb, "'%s': %s", path, strerror(-e));
    int64_t uid = is_full(e) ? whose_place(path) : -1;
    if (uid >= 0)
        gp_strbuf_addf(sb, ", most of it is uid %" PRId64 "'s", uid);
}

int gp_statedir_own(const char *root, size_t from, struct gp_statedir *ret, size_t *ret_place,
                    struct gp_err *err)
{
    struct gp_strbuf why = GP_STRBUF_INIT(1024);
    char room[GP_PATH_SIZE];
    const char *path;
    const char *told = getenv("GPULSE_STATE_DIR");
    int e = -ENOENT;
    for (size_t i = from; e < 0 && (path = place_path(root, i, room)); i++) {
        struct stat st = {0};
        if (told && *told)
            (void)mkdir(told, 0700);
        e = own_folder(path, ret, &st);
        *ret_place = i;
        if (e < 0)
            add_complaint(&why, path, e, &st);
    }
    int r = e == -EPERM || e == -EACCES ? GP_EPERM : e < 0 ? GP_EIO : 0;
    if (r < 0)
        (void)gp_err_set(err, r, "nowhere to tell other users: %s",
                         why.len ? why.buf : "there is no other place");
    gp_strbuf_fini(&why);
    return r;
}

/* ---- news ---- */

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
    for (size_t i = 0; i < dirs.count; i++)
        watch(*fd, dirs.items[i].fd, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
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
            /* in a place only our folders matter, in our folders everything */
            if (!(event->mask & IN_CREATE) || parse_name(event->name, &uid))
                changed = true;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    return changed;
}
