#include "proc/mount.h"

#include <mntent.h>
#include <stdio.h>
#include <string.h>

/* Whether a path is this directory or inside it. */
bool gp_mount_is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The file system type of proc(5), up to a dot. */
static bool is_remote(const char *type)
{
    static const char *const types[] = {
        "9p",       "afs",   "autofs",    "beegfs", "ceph",   "cifs",     "fuse",
        "fuseblk",  "gfs2",  "glusterfs", "gpfs",   "lustre", "nfs",      "nfs4",
        "orangefs", "pvfs2", "smb3",      "smbfs",  "sshfs",  "virtiofs", "wekafs"};
    size_t n = strcspn(type, ".");
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++)
        if (strlen(types[i]) == n && strncmp(type, types[i], n) == 0)
            return true;
    return false;
}

bool gp_mount_of(const char *path, struct gp_mount *ret)
{
    char buf[2 * GP_PATH_SIZE];
    struct mntent entry;
    bool found = false;
    FILE *file = setmntent("/proc/self/mounts", "re");
    if (!file)
        return false;
    while (getmntent_r(file, &entry, buf, sizeof(buf))) {
        bool is_root = strcmp(entry.mnt_dir, "/") == 0;
        if (!is_root && !gp_mount_is_below(path, entry.mnt_dir))
            continue;
        if (found && strlen(entry.mnt_dir) < strlen(ret->folder))
            continue; /* a later mount on the same directory hides earlier ones */
        (void)snprintf(ret->folder, sizeof(ret->folder), "%s", entry.mnt_dir);
        (void)snprintf(ret->type, sizeof(ret->type), "%s", entry.mnt_type);
        (void)snprintf(ret->source, sizeof(ret->source), "%s", entry.mnt_fsname);
        ret->is_remote = is_remote(entry.mnt_type);
        found = true;
    }
    (void)endmntent(file);
    return found;
}
