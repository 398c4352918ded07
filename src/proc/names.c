#include "proc/names.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/files.h"
#include "proc/mount.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_COLUMNS = 80, JSON_BYTES = 256 << 10, FILES_MOST = 64 };

struct gp_proc_storage {
    char path[GP_PATH_SIZE];
    json_t *json; /* NULL: no readable file */
};

static void set_name(char ret[GP_PROC_NAME_SIZE], const char *name, size_t n)
{
    struct gp_strbuf sb = {.buf = ret, .cap = GP_PROC_NAME_SIZE, .max = GP_PROC_NAME_SIZE - 1};
    ret[0] = '\0';
    gp_utf8_add_safe(&sb, name, n, NAME_COLUMNS);
}

/* The first entry of a directory below root for which fits() is true. */
static bool find_entry(const char *root, const char *dir, const char *id, size_t n,
                       bool (*fits)(const char *name, const char *id, size_t n), char *ret,
                       size_t size)
{
    char path[GP_PATH_SIZE];
    const struct dirent *entry;
    bool found = false;
    DIR *list = gp_io_path(path, root, dir) ? opendir(path) : NULL;
    while (list && !found && (entry = readdir(list)))
        if (fits(entry->d_name, id, n)) {
            int length = snprintf(ret, size, "%s", entry->d_name);
            found = length >= 0 && (size_t)length < size;
        }
    if (list)
        (void)closedir(list);
    return found;
}

/* Loads a file that may belong to a user: without blocking on it, following links out of `home`, or
 * reading too much. `home` is the directory that must contain it, so that nobody can direct us to a
 * file system that does not respond; NULL: it belongs to root. */
static json_t *load_json(const char *home, const char *path)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    json_t *json = NULL;
    int dir = home ? open(home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = home ? -1 : open(path, flags);
    if (dir >= 0) {
        fd = gp_io_open_beneath(dir, path + strlen(home) + 1, flags);
        (void)close(dir);
    }
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= JSON_BYTES)
        json = json_loadfd(fd, 0, NULL);
    if (fd >= 0)
        (void)close(fd);
    return json;
}

/* ---- Kubernetes ---- */

/* "NAMESPACE_NAME_UID": the first two contain no '_'. */
static bool is_pod(const char *name, const char *uid, size_t n)
{
    const char *first = strchr(name, '_');
    const char *last = strrchr(name, '_');
    return first && last != first && strncmp(last + 1, uid, n) == 0;
}

static bool name_pod(struct gp_proc_names *names, const char *root, const char *id, size_t n,
                     uid_t uid, char ret[GP_PROC_NAME_SIZE])
{
    char entry[512];
    (void)names;
    (void)uid;
    if (!find_entry(root, "/var/log/pods", id, n, is_pod, entry, sizeof(entry)))
        return false;
    *strrchr(entry, '_') = '\0';
    *strchr(entry, '_') = '/';
    set_name(ret, entry, strlen(entry));
    return true;
}

/* ---- Docker ---- */

static bool begins(const char *name, const char *id, size_t n)
{
    return strncmp(name, id, n) == 0;
}

static bool name_docker(struct gp_proc_names *names, const char *root, const char *id, size_t n,
                        uid_t uid, char ret[GP_PROC_NAME_SIZE])
{
    static const char dir[] = "/var/lib/docker/containers";
    char entry[256];
    char file[512];
    char path[GP_PATH_SIZE];
    const char *name = NULL;
    (void)names;
    (void)uid;
    if (!find_entry(root, dir, id, n, begins, entry, sizeof(entry)))
        return false;
    (void)snprintf(file, sizeof(file), "%s/%s/config.v2.json", dir, entry);
    json_t *config = gp_io_path(path, root, file) ? load_json(NULL, path) : NULL;
    (void)json_unpack(config, "{s:s}", "Name", &name);
    if (name)
        set_name(ret, name + (*name == '/'), strlen(name) - (*name == '/'));
    json_decref(config);
    return ret[0] != '\0';
}

/* ---- Podman ---- */

void gp_proc_names_clear(struct gp_proc_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        json_decref(names->files[i].json);
    free(names->files);
    *names = (struct gp_proc_names){NULL, 0};
}

/* NULL if there is none, or if too many were read. */
static const json_t *storage(struct gp_proc_names *names, const char *home, const char *path)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->files[i].path, path) == 0)
            return names->files[i].json;
    struct gp_proc_storage *grown = names->count < FILES_MOST
                                        ? realloc(names->files, (names->count + 1) * sizeof(*grown))
                                        : NULL;
    if (!grown)
        return NULL;
    names->files = grown;
    struct gp_proc_storage *file = &grown[names->count++];
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    file->json = load_json(home, path);
    return file->json;
}

/* [{"id": …, "names": […]}, …] */
static bool look_in_storage(const json_t *containers, const char *id, size_t n,
                            char ret[GP_PROC_NAME_SIZE])
{
    size_t i;
    const json_t *container;
    json_array_foreach(containers, i, container)
    {
        const char *its = json_string_value(json_object_get(container, "id"));
        const char *name =
            json_string_value(json_array_get(json_object_get(container, "names"), 0));
        if (its && name && strncmp(its, id, n) == 0)
            set_name(ret, name, strlen(name));
    }
    return ret[0] != '\0';
}

/* The home of a user, if it is on this machine; reading files on another one may block forever. */
static bool find_home(const char *root, uid_t uid, char ret[GP_PATH_SIZE])
{
    struct gp_mount mount;
    char home[512];
    return gp_proc_passwd(root, uid, GP_PROC_PASSWD_HOME, home, sizeof(home)) && home[0] == '/' &&
           gp_io_path(ret, root, home) && !(gp_mount_of(ret, &mount) && mount.is_remote);
}

static bool name_podman(struct gp_proc_names *names, const char *root, const char *id, size_t n,
                        uid_t uid, char ret[GP_PROC_NAME_SIZE])
{
    static const char *const drivers[] = {"overlay", "vfs", "btrfs"};
    char home[GP_PATH_SIZE];
    bool found = false;
    for (int own = find_home(root, uid, home); !found && own >= 0; own--)
        for (size_t i = 0; !found && i < GP_ARRAY_LEN(drivers); i++) {
            char file[128];
            char path[GP_PATH_SIZE];
            (void)snprintf(file, sizeof(file),
                           "%s/containers/storage/%s-containers/containers.json",
                           own ? "/.local/share" : "/var/lib", drivers[i]);
            found = gp_io_path(path, own ? home : root, file) &&
                    look_in_storage(storage(names, own ? home : NULL, path), id, n, ret);
        }
    return found;
}

/* ---- all runtimes ---- */

bool gp_proc_container_name(struct gp_proc_names *names, const char *root, const char *container,
                            uid_t uid, char ret[GP_PROC_NAME_SIZE])
{
    static const struct {
        const char *kind;
        bool (*name)(struct gp_proc_names *names, const char *root, const char *id, size_t n,
                     uid_t uid, char ret[GP_PROC_NAME_SIZE]);
    } kinds[] = {{"pod:", name_pod}, {"docker:", name_docker}, {"podman:", name_podman}};
    ret[0] = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i].kind);
        if (strncmp(container, kinds[i].kind, n) == 0)
            return kinds[i].name(names, root, container + n, strcspn(container + n, "/"), uid, ret);
    }
    return false;
}
