#include "tape/private.h"

#include "base/err.h"
#include "base/io.h"
#include "tape/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    ENTRY_MAX = 1 << 20, /* bytes of an entry */
    USERS_MAX = 4096,    /* users with a file */
    NAME_SIZE = 24,
};
static const char magic[] = "gpulse private 1\n";

struct gp_private {
    int dir;
    size_t users; /* that have a file */
    bool works;
};

/* ---- entries ---- */

/* Reads the next entry, and moves on; false: there is none, or it is not complete. */
static bool next_entry(struct gp_bytes *in, struct gp_private_entry *ret)
{
    const size_t left = (size_t)(in->end - in->at);
    struct gp_bytes entry = *in;
    const size_t size = (size_t)gp_bytes_read_upto(&entry, left < ENTRY_MAX ? left : ENTRY_MAX);
    if (entry.failed || size == 0 || size > (size_t)(entry.end - entry.at))
        return false;
    in->at = entry.end = entry.at + size;
    *ret = (struct gp_private_entry){.id = gp_bytes_read(&entry)};
    ret->pid = gp_bytes_read(&entry);
    ret->start_ns = gp_bytes_read(&entry);
    for (size_t i = 0; i < GP_PRIVATE__COUNT; i++) {
        const char *text;
        const size_t len = gp_bytes_read_text(&entry, &text);
        if (len > 0 && text[len - 1] != '\0')
            return false;
        ret->texts[i] = len > 0 ? text : NULL;
    }
    return !entry.failed;
}

static void add_entry(struct gp_strbuf *out, const struct gp_private_entry *entry)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(ENTRY_MAX);
    const uint64_t numbers[] = {entry->id, entry->pid, entry->start_ns};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        gp_bytes_add(&sb, numbers[i]);
    for (size_t i = 0; i < GP_PRIVATE__COUNT; i++) {
        const size_t len = entry->texts[i] ? strlen(entry->texts[i]) + 1 : 0;
        gp_bytes_add(&sb, len);
        gp_strbuf_add(&sb, entry->texts[i] ? entry->texts[i] : "", len);
    }
    gp_bytes_add(out, sb.len);
    gp_strbuf_add(out, sb.buf, sb.len);
    if (sb.error)
        out->error = sb.error;
    gp_strbuf_fini(&sb);
}

/* The entries of a file; false: it is not one. */
static bool entries_of(const struct gp_private_file *file, struct gp_bytes *ret)
{
    const size_t len = strlen(magic);
    if (file->size < len || memcmp(file->data, magic, len) != 0)
        return false;
    *ret = (struct gp_bytes){file->data + len, file->data + file->size, false};
    return true;
}

bool gp_private_find(const struct gp_private_file *file, uint64_t id, uint64_t pid,
                     uint64_t start_ns, struct gp_private_entry *ret)
{
    struct gp_bytes in;
    struct gp_private_entry entry;
    bool found = false;
    if (!entries_of(file, &in))
        return false;
    while (next_entry(&in, &entry)) {
        if (entry.id != id || entry.pid != pid || entry.start_ns != start_ns)
            continue;
        *ret = entry;
        found = true;
    }
    return found;
}

/* ---- files ---- */

static bool read_all(int fd, struct gp_private_file *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < 0 || st.st_size > 2 * GP_PRIVATE_SIZE_MAX)
        return false;
    const size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size + 1);
    size_t done = 0;
    ssize_t n = 1;
    while (data && done < size && n > 0) {
        n = pread(fd, data + done, size - done, (off_t)done);
        done += n > 0 ? (size_t)n : 0;
    }
    if (!data || n < 0) {
        free(data);
        return false;
    }
    *ret = (struct gp_private_file){data, done};
    return true;
}

/* Where the last complete entry ends; 0: the file is none of ours, or empty. */
static size_t complete_size(const struct gp_private_file *file)
{
    struct gp_bytes in;
    struct gp_private_entry entry;
    if (!entries_of(file, &in))
        return 0;
    while (next_entry(&in, &entry))
        ;
    return (size_t)(in.at - file->data);
}

/* Appends the entries of a file. */
static void read_one(int dir, const char *name, uint32_t owner, struct gp_strbuf *sb)
{
    struct gp_private_file file;
    struct gp_bytes in;
    struct stat st;
    const int fd = gp_io_open_beneath(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner &&
        !(st.st_mode & (S_IWGRP | S_IWOTH)) && read_all(fd, &file)) {
        if (entries_of(&file, &in))
            gp_strbuf_add(sb, in.at, complete_size(&file) - (size_t)(in.at - file.data));
        free(file.data);
    }
    if (fd >= 0)
        (void)close(fd);
}

static bool is_number(const char *name)
{
    return *name && strspn(name, "0123456789") == strlen(name);
}

static void read_each(int dir, uint32_t owner, struct gp_strbuf *sb)
{
    const int fd = dup(dir);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    for (const struct dirent *e; list && (e = readdir(list));)
        if (is_number(e->d_name))
            read_one(dir, e->d_name, owner, sb);
    if (list)
        (void)closedir(list);
    else if (fd >= 0)
        (void)close(fd);
}

bool gp_private_read(const char *tape, uint32_t owner, struct gp_private_file *ret)
{
    char path[GP_PATH_SIZE];
    char name[NAME_SIZE];
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_PRIVATE_READ_MAX);
    const bool is_root = geteuid() == 0;
    const int n = snprintf(path, sizeof(path), "%s-private", tape);
    *ret = (struct gp_private_file){NULL, 0};
    if (n < 0 || n >= (int)sizeof(path))
        return true;
    /* other users can search it, but not list it */
    const int dir =
        open(path, (is_root ? O_RDONLY : O_PATH) | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return true;
    (void)snprintf(name, sizeof(name), "%u", geteuid());
    gp_strbuf_adds(&sb, magic);
    if (is_root)
        read_each(dir, owner, &sb);
    else
        read_one(dir, name, owner, &sb);
    (void)close(dir);
    if (sb.error == GP_ENOMEM) {
        gp_strbuf_fini(&sb);
        return false;
    }
    *ret = (struct gp_private_file){(uint8_t *)sb.buf, sb.len};
    return true;
}

/* An ACL as the kernel takes it: the owner reads and writes, the user reads, and nobody else. */
static bool let_read(int fd, uint32_t uid)
{
    struct entry {
        uint16_t tag, permissions;
        uint32_t id;
    };
    const struct {
        uint32_t version;
        struct entry entries[5];
    } acl = {2,
             {{0x01, 6, UINT32_MAX},   /* the owner */
              {0x02, 4, uid},          /* a user */
              {0x04, 0, UINT32_MAX},   /* the group */
              {0x10, 4, UINT32_MAX},   /* the most that users and groups may */
              {0x20, 0, UINT32_MAX}}}; /* others */
    return uid == geteuid() ? fchmod(fd, 0600) == 0
                            : fsetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0;
}

static bool is_ours(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
}

/* Creates a file that replaces the one of this user. A descriptor, or −errno. */
static int create_new(const struct gp_private *p, uint32_t uid, const struct gp_strbuf *content)
{
    char name[NAME_SIZE];
    char new_name[NAME_SIZE + 8];
    (void)snprintf(name, sizeof(name), "%u", uid);
    (void)snprintf(new_name, sizeof(new_name), "%s.new", name);
    (void)unlinkat(p->dir, new_name, 0);
    const int fd = openat(p->dir, new_name,
                          O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    errno = 0;
    int r = let_read(fd, uid) ? 0 : -(errno ? errno : EPERM);
    if (r == 0)
        r = gp_io_write_all(fd, content->buf, content->len);
    if (r == 0 && renameat(p->dir, new_name, p->dir, name) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    (void)unlinkat(p->dir, new_name, 0);
    (void)close(fd);
    return r;
}

/* Opens the file of a user; one that is not as it must be is replaced by an empty one. */
static int open_file(struct gp_private *p, uint32_t uid)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%u", uid);
    const int fd = openat(p->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && is_ours(fd) && let_read(fd, uid))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    if (p->users >= USERS_MAX)
        return -EDQUOT;
    struct gp_strbuf empty = GP_STRBUF_INIT(64);
    gp_strbuf_adds(&empty, magic);
    const int created = empty.error ? -ENOMEM : create_new(p, uid, &empty);
    gp_strbuf_fini(&empty);
    p->users += created >= 0;
    return created;
}

struct keep {
    bool (*keeps)(void *ctx, uint64_t id); /* NULL: all */
    void *ctx;
    size_t skip; /* bytes of entries that go anyway: the oldest */
};

/* Writes the file of a user anew, with what is kept of it. 0 or −errno. */
static int rewrite(struct gp_private *p, uint32_t uid, int fd, const struct keep *keep)
{
    struct gp_private_file file;
    struct gp_private_entry entry;
    struct gp_bytes in;
    struct gp_strbuf sb = GP_STRBUF_INIT(2 * GP_PRIVATE_SIZE_MAX);
    bool drops = false;
    if (!read_all(fd, &file))
        return -EIO;
    gp_strbuf_adds(&sb, magic);
    const bool is_one = entries_of(&file, &in);
    const uint8_t *from = in.at;
    while (is_one && next_entry(&in, &entry)) {
        if ((size_t)(from - file.data) >= keep->skip &&
            (!keep->keeps || keep->keeps(keep->ctx, entry.id)))
            gp_strbuf_add(&sb, from, (size_t)(in.at - from));
        else
            drops = true;
        from = in.at;
    }
    const int created = sb.error ? -ENOMEM : drops || !is_one ? create_new(p, uid, &sb) : 0;
    free(file.data);
    gp_strbuf_fini(&sb);
    if (created > 0)
        (void)close(created);
    return created < 0 ? created : 0;
}

/* ---- the directory ---- */

/* Whether a file can be given an ACL for some user. */
static bool try(const struct gp_private *p)
{
    static const char name[] = "try.new";
    (void)unlinkat(p->dir, name, 0);
    const int fd = openat(p->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool works = fd >= 0 && let_read(fd, geteuid() + 1);
    if (fd >= 0)
        (void)close(fd);
    (void)unlinkat(p->dir, name, 0);
    return works;
}

bool gp_private_works(const struct gp_private *p)
{
    return p->works;
}

int gp_private_create(const char *tape, struct gp_private **ret, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    struct stat st;
    const int n = snprintf(path, sizeof(path), "%s-private", tape);
    if (n < 0 || n >= (int)sizeof(path))
        return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
    if (mkdir(path, 0711) < 0 && errno != EEXIST)
        return gp_err_system(err, errno, GP_EIO, "cannot create '%.200s'", path);
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const bool is_mine = dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid();
    struct gp_private *p = is_mine ? malloc(sizeof(*p)) : NULL;
    if (p && fchmod(dir, 0711) == 0) {
        *p = (struct gp_private){.dir = dir};
        p->works = try(p);
        *ret = p;
        return 0;
    }
    free(p);
    if (dir >= 0)
        (void)close(dir);
    return is_mine ? gp_err_set(err, GP_ENOMEM, "out of memory")
                   : gp_err_set(err, GP_EPERM,
                                "'%.200s' is not a directory of yours; record to "
                                "another file",
                                path);
}

void gp_private_close(struct gp_private *p)
{
    if (!p)
        return;
    (void)close(p->dir);
    free(p);
}

/* Appends all of it or nothing. 0 or −errno. */
static int append(int fd, const struct gp_strbuf *sb)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    const int r = gp_io_write_all(fd, sb->buf, sb->len);
    if (r < 0 && ftruncate(fd, st.st_size) < 0)
        return -errno;
    return r;
}

bool gp_private_add(struct gp_private *p, uint32_t uid, const struct gp_private_entry *entry)
{
    struct stat st;
    if (!p->works)
        return false;
    struct gp_strbuf sb = GP_STRBUF_INIT(2 * ENTRY_MAX);
    int fd = open_file(p, uid);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size + ENTRY_MAX > GP_PRIVATE_SIZE_MAX) {
        const int r = rewrite(p, uid, fd, &(struct keep){.skip = (size_t)st.st_size / 2});
        (void)close(fd);
        fd = r < 0 ? r : open_file(p, uid);
    }
    add_entry(&sb, entry);
    const bool ok = fd >= 0 && !sb.error && append(fd, &sb) == 0;
    if (fd >= 0)
        (void)close(fd);
    gp_strbuf_fini(&sb);
    return ok;
}

/* Repairs what a crash may have left: later entries would not be found. */
static void cut_off(int fd)
{
    struct gp_private_file file;
    if (!read_all(fd, &file))
        return;
    const size_t size = complete_size(&file);
    if (size < file.size && ftruncate(fd, (off_t)size) < 0)
        errno = 0;
    free(file.data);
}

void gp_private_prune(struct gp_private *p, bool (*keeps)(void *ctx, uint64_t id), void *ctx)
{
    const int fd = dup(p->dir);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir)
        rewinddir(dir);
    p->users = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const unsigned long uid = strtoul(e->d_name, NULL, 10);
        if (!is_number(e->d_name) || uid >= UINT32_MAX)
            continue;
        const int file = open_file(p, (uint32_t)uid);
        if (file < 0)
            continue;
        p->users++;
        cut_off(file);
        if (rewrite(p, (uint32_t)uid, file, &(struct keep){keeps, ctx, 0}) < 0)
            errno = 0; /* as long as the disk is full, nothing goes */
        (void)close(file);
    }
    if (dir)
        (void)closedir(dir);
    else if (fd >= 0)
        (void)close(fd);
}
