/* Where the users of a machine tell each other what they have to know, as who was promised which
 * GPUs: without a daemon and without root, among users who do not trust each other.
 *
 * What is believed is only what the kernel vouches for. A place belongs to root and is sticky, as
 * /tmp is, or nobody else can write there. In it each user has a folder "gpulse-UID", or, where
 * somebody else has taken that name, "gpulse-UID.SUFFIX": it counts if it is that user's and only
 * that user can write in it. All write into the first place that they can, and read all of them, so
 * that nobody is overlooked who had to use another one. An administrator brings the first:
 * mkdir -m 1777 /run/gpulse, or the package's file for systemd-tmpfiles. */
#ifndef GP_BASE_STATEDIR_H
#define GP_BASE_STATEDIR_H

#include "base/io.h"

#include <dirent.h>
#include <sys/types.h>

struct gp_err;
struct gp_strbuf;

/* A user's folder. */
struct gp_statedir {
    int fd;
    uid_t owner;
    char path[256]; /* cut if it is longer */
};

enum { GP_STATEDIR_PLACES = 3, GP_STATEDIR_NAME_SIZE = 48 };

/* The folders of all users, a few of each, in the order of the places. One is open at a time: who
 * makes many does not use up the descriptors of who reads them. */
struct gp_statedirs {
    const char *root;
    int places[GP_STATEDIR_PLACES]; /* −1: it does not count */
    struct gp_statedir_entry {
        size_t place;
        uid_t owner;
        char name[GP_STATEDIR_NAME_SIZE];
    } * entries;
    size_t count, room, at;
    struct gp_statedir current;
};

/* Finds the folders of all users: below $GPULSE_STATE_DIR alone, or below the root prefix in
 * /run/gpulse, /dev/shm and /tmp. Where there are none the list is empty. GP_ENOMEM. */
int gp_statedirs_open(const char *root, struct gp_statedirs *ret) GP_MUST_CHECK;
/* The next of them, open until the next call; NULL behind the last, after which it begins anew. */
const struct gp_statedir *gp_statedirs_next(struct gp_statedirs *dirs);
void gp_statedirs_close(struct gp_statedirs *dirs);

/* This user's own folder in the first place from number `from` on where there is one or one can be
 * made: 0 to begin with, and one more than *ret_place if it turned out to be full. GP_EIO and
 * GP_EPERM say of each place what is wrong with it, GP_EUSAGE is as below. The descriptor is the
 * caller's. */
int gp_statedir_own(const char *root, size_t from, struct gp_statedir *ret, size_t *ret_place,
                    struct gp_err *err) GP_MUST_CHECK;

/* To be called before reservations are relied on: appends a note if other users cannot see them
 * where they are kept. GP_EUSAGE: $GPULSE_STATE_DIR is not the absolute path of a folder. */
int gp_statedir_check(struct gp_strbuf *note, struct gp_err *err) GP_MUST_CHECK;

/* Appends what is wrong with a folder, by −errno: of a file system that is full also who has most
 * there. */
void gp_statedir_complain(struct gp_strbuf *sb, const struct gp_statedir *dir, int e);

/* What stands in a folder, from its beginning on; close it with closedir(). NULL: it cannot be
 * read. */
DIR *gp_statedir_list(const struct gp_statedir *dir);

/* An inotify descriptor that tells of changes in all folders, and of folders that are made; with
 * *fd of an earlier call, those that have come since are watched too. *fd stays −1 where nothing
 * can be watched. */
void gp_statedirs_watch(const char *root, int *fd);
/* Reads it empty: whether a file of ours was made, was closed or has gone. */
bool gp_statedirs_changed(int fd);

#endif
