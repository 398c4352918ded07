/* This process's own lease: writing its file, confirming a claim, releasing it. */
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "proc/lease_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
            count += gp_lease_parse_name(entry->d_name, &lease);
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
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_LEASE_FILE_BYTES - 1);
    struct gp_lease_note made = GP_LEASE_NO_NOTE;
    char fresh[sizeof(made.name)];
    struct gp_strbuf full = GP_STRBUF_INIT(1024);
    struct gp_statedir dir;
    size_t place = 0;
    int e = 0;
    int r = 0;
    gp_lease_make_name(made.name, lease->state, lease->id);
    gp_lease_make_fresh_name(fresh, lease->id);
    gp_lease_add_text(&sb, lease);
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
            r = gp_err_system(err, -e, GP_EIO, "cannot write a reservation in '%s'", dir.path);
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
    char name[GP_LEASE_NAME_SIZE];
    struct gp_lease claim = {.id = 0};
    (void)gp_lease_parse_name(note->name, &claim);
    gp_lease_make_name(name, GP_LEASE_HELD, claim.id);
    if (renameat(note->dir, note->name, note->dir, name) != 0)
        return gp_err_system(err, errno, GP_EIO, "cannot write a reservation");
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

/* Unlocks before removing the file: a reader that finds it gone but locked assumes that another
 * user has removed it. */
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
