#include "doctor/stall.h"

#include "base/clock.h"

#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gp_stall_init(struct gp_stall *stall)
{
    *stall = (struct gp_stall){.since = 0};
    (void)pthread_mutex_init(&stall->lock, NULL);
}

/* Whether a path is this folder, or in it. */
static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

unsigned gp_stall_enter(struct gp_stall *stall, const char *path)
{
    if (!stall)
        return 0;
    (void)pthread_mutex_lock(&stall->lock);
    stall->since = gp_clock_mono_ns();
    if (path)
        (void)snprintf(stall->path, sizeof(stall->path), "%s", path);
    unsigned turn = stall->turn;
    (void)pthread_mutex_unlock(&stall->lock);
    return turn;
}

void gp_stall_leave(struct gp_stall *stall, unsigned turn)
{
    if (!stall)
        return;
    (void)pthread_mutex_lock(&stall->lock);
    bool is_given_up = turn != stall->turn;
    if (!is_given_up)
        stall->since = 0;
    (void)pthread_mutex_unlock(&stall->lock);
    if (is_given_up)
        for (;;)
            (void)pause();
}

bool gp_stall_give_up(struct gp_stall *stall, uint64_t patience_ns, char path[GP_PATH_SIZE])
{
    (void)pthread_mutex_lock(&stall->lock);
    bool is_over = stall->since > 0 && gp_clock_mono_ns() - stall->since > patience_ns;
    if (is_over) {
        stall->turn++;
        stall->since = 0;
        (void)snprintf(path, GP_PATH_SIZE, "%s", stall->path);
    }
    (void)pthread_mutex_unlock(&stall->lock);
    return is_over;
}

void gp_stall_refuse(struct gp_stall *stall, const char *path)
{
    (void)pthread_mutex_lock(&stall->lock);
    bool is_last = stall->refused_count + 1 >= GP_STALL_REFUSED;
    if (stall->refused_count < GP_STALL_REFUSED)
        (void)snprintf(stall->refused[stall->refused_count++], GP_PATH_SIZE, "%s",
                       is_last ? "" : path);
    (void)pthread_mutex_unlock(&stall->lock);
}

bool gp_stall_refuses(struct gp_stall *stall, const char *path)
{
    bool refuses = false;
    if (!stall)
        return false;
    (void)pthread_mutex_lock(&stall->lock);
    for (size_t i = 0; i < stall->refused_count && !refuses; i++)
        refuses = is_below(path, stall->refused[i]);
    (void)pthread_mutex_unlock(&stall->lock);
    return refuses;
}

/* ---- mounts ---- */

/* The types of proc(5)'s mounts, up to a dot. */
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
        if (!is_root && !is_below(path, entry.mnt_dir))
            continue;
        if (found && strlen(entry.mnt_dir) < strlen(ret->folder))
            continue; /* one of the same folder hides those before it */
        (void)snprintf(ret->folder, sizeof(ret->folder), "%s", entry.mnt_dir);
        (void)snprintf(ret->type, sizeof(ret->type), "%s", entry.mnt_type);
        (void)snprintf(ret->source, sizeof(ret->source), "%s", entry.mnt_fsname);
        ret->is_remote = is_remote(entry.mnt_type);
        found = true;
    }
    (void)endmntent(file);
    return found;
}
