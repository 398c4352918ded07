/* The texts of a process, which rarely change, and take most of the files to read. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/container.h"
#include "proc/files.h"
#include "proc/origin.h"
#include "proc/proc_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USERS_MAX = 256,             /* cached names; beyond that, digits are shown */
    ENVIRONMENT_BYTES = 1 << 17, /* of an environment; the rest is ignored */
};

/* ---- users ---- */

/* Safe text, valid until the next call. */
static const char *user_name(struct gp_proc_reader *reader, uid_t uid)
{
    for (size_t i = 0; i < reader->user_count; i++)
        if (reader->users[i].uid == uid)
            return reader->users[i].name;
    char name[64];
    struct gp_proc_user *grown = NULL;
    if (reader->user_count < USERS_MAX)
        grown = realloc(reader->users, (reader->user_count + 1) * sizeof(*grown));
    if (!grown) {
        (void)snprintf(reader->nobody.name, sizeof(reader->nobody.name), "%u", uid);
        return reader->nobody.name;
    }
    (void)gp_proc_user_name(reader->root, uid, name, sizeof(name));
    reader->users = grown;
    struct gp_proc_user *user = &grown[reader->user_count++];
    struct gp_strbuf safe = GP_STRBUF_INIT(sizeof(user->name) - 1);
    gp_utf8_add_safe(&safe, name, strlen(name), sizeof(name));
    user->uid = uid;
    (void)snprintf(user->name, sizeof(user->name), "%s", safe.buf);
    gp_strbuf_fini(&safe);
    return user->name;
}

/* The files of a copy belong to whoever made it: there the file `status` has the effective user. */
static bool owner_of(const struct gp_proc_reader *reader, uint32_t pid, const char *path,
                     uid_t *ret)
{
    char text[4096];
    unsigned uid;
    struct stat st;
    if (fstatat(reader->dir, path, &st, 0) != 0)
        return false;
    *ret = st.st_uid;
    if (reader->is_kernels ||
        gp_proc_read_pid_file(reader->dir, pid, "status", text, sizeof(text)) <= 0)
        return true;
    const char *line = strstr(text, "\nUid:");
    if (line && sscanf(line, "\nUid: %*u %u", &uid) == 1)
        *ret = (uid_t)uid;
    return true;
}

/* The effective user, as in ps and top. */
static void read_user(struct gp_proc_reader *reader, struct gp_proc_info *info,
                      struct gp_proc_texts *texts)
{
    char path[32];
    uid_t uid;
    (void)snprintf(path, sizeof(path), "%u", info->pid);
    if (!owner_of(reader, info->pid, path, &uid))
        return;
    info->exists = true;
    texts->user = user_name(reader, uid);
}

/* Whether it is in the user namespace of this process: both see the same uids then. */
static bool shares_users(const struct gp_proc_reader *reader, const struct gp_proc_info *info)
{
    char own[1024];
    char its[1024];
    const long n = gp_proc_read_pid_file(reader->dir, info->pid, "uid_map", its, sizeof(its));
    if (n == -ENOENT) /* a kernel without them, or files that describe another machine */
        return true;
    return n > 0 && gp_io_read("/proc/self/uid_map", own, sizeof(own)) > 0 && strcmp(own, its) == 0;
}

/* The kernel gives the private files of an undumpable process (a set-uid program, ssh-agent) to
 * root, though not its directory. */
static void read_owner(const struct gp_proc_reader *reader, const struct gp_proc_info *info,
                       struct gp_proc_texts *texts)
{
    char path[32];
    uid_t uid;
    (void)snprintf(path, sizeof(path), reader->is_kernels ? "%u/environ" : "%u", info->pid);
    if (shares_users(reader, info) && owner_of(reader, info->pid, path, &uid))
        texts->owner = (uint32_t)uid + 1;
}

/* Between two files, a process may start a set-uid program, or end and leave its pid to another. */
static void confirm_owner(const struct gp_proc_reader *reader, const struct gp_proc_info *info,
                          struct gp_proc_texts *texts)
{
    struct gp_proc_texts now = {.owner = 0};
    read_owner(reader, info, &now);
    if (now.owner != texts->owner)
        texts->owner = 0;
}

/* ---- the other texts ---- */

/* Records a denied read. With the mount option hidepid=1 the kernel returns EPERM. */
static void note_denied(struct gp_proc_info *info, struct gp_proc_texts *texts,
                        enum gp_proc_want part, long answer)
{
    if (answer != -EACCES && answer != -EPERM)
        return;
    info->exists = true;
    texts->denied |= part;
}

static void read_command(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                         struct gp_proc_texts *texts, struct gp_arena *arena)
{
    struct gp_proc_command command;
    int r = gp_proc_read_command(reader->dir, info->pid, arena, &command);
    note_denied(info, texts, GP_PROC_COMMAND, r);
    if (r < 0)
        return;
    info->exists = true;
    texts->name = command.name;
    texts->path = want & GP_PROC_PATH ? command.path : NULL;
    texts->command = want & GP_PROC_COMMAND ? command.line : NULL;
}

static void read_container(struct gp_proc_reader *reader, struct gp_proc_info *info,
                           struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char text[8192];
    char container[GP_PROC_CONTAINER_SIZE];
    char name[GP_PROC_NAME_SIZE];
    char folder[16];
    struct stat owner;
    (void)snprintf(folder, sizeof(folder), "%u", info->pid);
    long n = gp_proc_read_pid_file(reader->dir, info->pid, "cgroup", text, sizeof(text));
    note_denied(info, texts, GP_PROC_CONTAINER, n);
    if (n < 0)
        return;
    info->exists = true;
    (void)gp_proc_container(text, container);
    texts->container = gp_arena_strdup(arena, container);
    if (container[0] && fstatat(reader->dir, folder, &owner, 0) == 0 &&
        gp_proc_container_name(&reader->names, reader->root, container, owner.st_uid, name))
        texts->container_name = gp_arena_strdup(arena, name);
}

/* The environment is that at the start of the program, so it is read once for each program. */
static void read_origin(struct gp_proc_reader *reader, struct gp_proc_info *info,
                        struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char origin[GP_PROC_ORIGIN_SIZE];
    const struct gp_proc_info *past = gp_proc_same_past(reader, info);
    if (past && past->texts->origin && past->texts->command && texts->command &&
        strcmp(past->texts->command, texts->command) == 0) {
        texts->origin = gp_arena_strdup(arena, past->texts->origin);
        return;
    }
    char *text = malloc(ENVIRONMENT_BYTES);
    long n = text
                 ? gp_proc_read_pid_file(reader->dir, info->pid, "environ", text, ENVIRONMENT_BYTES)
                 : -1;
    note_denied(info, texts, GP_PROC_ORIGIN, text ? n : 0);
    if (n >= 0) {
        gp_proc_origin(text, (size_t)n, origin);
        texts->origin = gp_arena_strdup(arena, origin);
    }
    free(text);
}

static void read_cwd(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                     struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char name[32];
    char path[GP_PATH_SIZE];
    (void)snprintf(name, sizeof(name), "%u/cwd", info->pid);
    ssize_t n = readlinkat(reader->dir, name, path, sizeof(path));
    note_denied(info, texts, GP_PROC_CWD, n < 0 ? -errno : n);
    if (n > 0)
        texts->cwd = gp_proc_safe_copy(arena, path, (size_t)n, GP_PATH_SIZE);
}

static void read_ns_pid(const struct gp_proc_reader *reader, const struct gp_proc_info *info,
                        struct gp_proc_texts *texts)
{
    char text[4096];
    uint64_t pid;
    if (gp_proc_read_pid_file(reader->dir, info->pid, "status", text, sizeof(text)) > 0 &&
        gp_proc_find_ns_pid(text, &pid))
        texts->ns_pid = (uint32_t)pid;
}

/* ---- all of them ---- */

/* Used if no texts are known, or without memory. */
static struct gp_proc_texts no_texts = {.shared = {1}};

/* Copies the scattered texts of an arena into one block. */
static struct gp_proc_texts *gather(const struct gp_proc_texts *from)
{
    const char *const texts[] = {from->user,    from->name,      from->path,
                                 from->command, from->container, from->container_name,
                                 from->origin,  from->start,     from->cwd};
    const char *copies[GP_ARRAY_LEN(texts)] = {NULL};
    size_t bytes = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct gp_proc_texts *to = bytes || from->ns_pid || from->owner || from->denied
                                   ? gp_shared_new(sizeof(*to) + bytes)
                                   : NULL;
    if (!to)
        return gp_proc_hold_texts(&no_texts);
    char *end = to->room;
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i]) {
            size_t n = strlen(texts[i]) + 1;
            copies[i] = memcpy(end, texts[i], n);
            end += n;
        }
    to->user = copies[0];
    to->name = copies[1];
    to->path = copies[2];
    to->command = copies[3];
    to->container = copies[4];
    to->container_name = copies[5];
    to->origin = copies[6];
    to->start = copies[7];
    to->cwd = copies[8];
    to->owner = from->owner;
    to->ns_pid = from->ns_pid;
    to->denied = from->denied;
    return to;
}

struct gp_proc_texts *gp_proc_read_texts(struct gp_proc_reader *reader, unsigned want,
                                         struct gp_proc_info *info, uint64_t now_ns)
{
    struct gp_arena arena = {NULL};
    struct gp_proc_texts scattered = {.user = NULL};
    const struct gp_proc_info *past = gp_proc_same_past(reader, info);
    char start[GP_RFC3339_SIZE];
    if (want & (GP_PROC_COMMAND | GP_PROC_PATH))
        read_command(reader, want, info, &scattered, &arena);
    if (gp_proc_is_unchanged(reader, past, want, scattered.command, now_ns)) {
        gp_arena_fini(&arena);
        past->texts->checked_ns = now_ns;
        return gp_proc_hold_texts(past->texts);
    }
    if (want & GP_PROC_USER)
        read_user(reader, info, &scattered);
    if (want & GP_PROC_OWNER)
        read_owner(reader, info, &scattered);
    if (want & GP_PROC_CONTAINER)
        read_container(reader, info, &scattered, &arena);
    if (want & GP_PROC_ORIGIN)
        read_origin(reader, info, &scattered, &arena);
    if (want & GP_PROC_CWD)
        read_cwd(reader, info, &scattered, &arena);
    if (want & GP_PROC_NS_PID)
        read_ns_pid(reader, info, &scattered);
    if (want & GP_PROC_OWNER)
        confirm_owner(reader, info, &scattered);
    if (info->state) {
        gp_clock_rfc3339(info->start_ns, start);
        scattered.start = start;
    }
    struct gp_proc_texts *texts = gather(&scattered);
    gp_arena_fini(&arena);
    if (texts != &no_texts) {
        texts->want = want;
        texts->read_ns = texts->checked_ns = now_ns;
    }
    return texts;
}

const char *gp_proc_state_text(char letter)
{
    static const char texts[] = "A\0B\0C\0D\0E\0F\0G\0H\0I\0J\0K\0L\0M\0N\0O\0P\0Q\0R\0S\0T\0"
                                "U\0V\0W\0X\0Y\0Z\0a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0"
                                "o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    for (size_t i = 0; i < sizeof(texts); i += 2)
        if (texts[i] == letter)
            return &texts[i];
    return NULL;
}
