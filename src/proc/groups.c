#include "proc/groups.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROOM_LEAST = 4096,
    ROOM_MOST = 4 << 20, /* a group with very many members */
    GROUPS_MOST = 65536, /* Linux's own limit */
};

static int look_up_name(const void *key, struct group *entry, char *room, size_t size,
                        struct group **ret)
{
    return getgrnam_r(key, entry, room, size, ret);
}

static int look_up_number(const void *key, struct group *entry, char *room, size_t size,
                          struct group **ret)
{
    return getgrgid_r(*(const gid_t *)key, entry, room, size, ret);
}

/* Its name, freed by the caller; NULL: there is no such group, or no memory. */
static char *find_group(int (*look_up)(const void *key, struct group *entry, char *room,
                                       size_t size, struct group **ret),
                        const void *key)
{
    struct group entry;
    struct group *found = NULL;
    for (size_t size = ROOM_LEAST; size <= ROOM_MOST; size *= 4) {
        char *room = malloc(size);
        const int e = room ? look_up(key, &entry, room, size, &found) : ENOMEM;
        char *name = NULL;
        if (e == 0 && found && asprintf(&name, "%s", found->gr_name) < 0)
            name = NULL;
        free(room);
        if (e != ERANGE)
            return name;
    }
    return NULL;
}

bool gp_group_exists(const char *name)
{
    char *found = find_group(look_up_name, name);
    free(found);
    return found != NULL;
}

static bool add_group(gid_t gid, bool (*add)(void *ctx, const char *group), void *ctx)
{
    char number[24];
    char *name = find_group(look_up_number, &gid);
    (void)snprintf(number, sizeof(number), "%u", (unsigned)gid);
    const bool ok = add(ctx, name ? name : number);
    free(name);
    return ok;
}

bool gp_groups_of_user(const char *user, bool (*add)(void *ctx, const char *group), void *ctx)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char room[ROOM_LEAST];
    if (getpwnam_r(user, &entry, room, sizeof(room), &found) != 0 || !found)
        return true;
    int count = 0;
    (void)getgrouplist(user, entry.pw_gid, NULL, &count);
    count = count < 1 ? 1 : count > GROUPS_MOST ? GROUPS_MOST : count;
    gid_t *gids = calloc((size_t)count, sizeof(*gids));
    bool ok = gids != NULL;
    if (ok && getgrouplist(user, entry.pw_gid, gids, &count) < 0) { /* they change just now */
        gids[0] = entry.pw_gid;
        count = 1;
    }
    for (int i = 0; ok && i < count; i++)
        ok = add_group(gids[i], add, ctx);
    free(gids);
    return ok;
}
