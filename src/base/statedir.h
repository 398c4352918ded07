/* State that the users of a machine share, such as GPU reservations: without a daemon, without
 * root, and without trust between the users.
 *
 * Only facts that the kernel guarantees are believed. A place belongs to root and is sticky, like
 * /tmp, or nobody else can write to it. In it each user has a directory "gpulse-UID" or, if
 * somebody else has taken that name, "gpulse-UID.SUFFIX". A directory counts if it belongs to the
 * user of that number, and nobody else can write to it. Every user writes to the first usable place
 * and reads all of them, so that a user who had to fall back to another place is still seen. An
 * administrator can provide the first place: mkdir -m 1777 /run/gpulse, or the packaged
 * systemd-tmpfiles configuration. */
#ifndef GP_BASE_STATEDIR_H
#define GP_BASE_STATEDIR_H

#include "base/io.h"

#include <dirent.h>
#include <sys/types.h>

struct gp_err;
struct gp_strbuf;

/* A user's directory. */
struct gp_statedir {
    int fd;
    uid_t owner;
    char path[256]; /* truncated if longer */
};

enum { GP_STATEDIR_PLACES = 3, GP_STATEDIR_NAME_SIZE = 48 };

/* The directories of all users, a few of each; those of one user are next to each other, in the
 * order of the places. Only one is open at a time, so a user with many directories cannot exhaust
 * the descriptors of a reader. */
struct gp_statedirs {
    const char *root;
    int places[GP_STATEDIR_PLACES]; /* −1: ignore it */
    struct gp_statedir_entry {
        size_t place;
        uid_t owner;
        char name[GP_STATEDIR_NAME_SIZE];
    } * entries;
    size_t count, room, at;
    struct gp_statedir current;
    int error; /* −errno: a directory could not be opened, so some are missing; 0: none */
};

/* Fills err for a −errno of the functions below; returns GP_EIO or GP_ENOMEM. */
int gp_statedirs_fail(int e, struct gp_err *err);

/* Whether this −errno is about what others have prepared: ignore it. Too few descriptors or too
 * little memory are this process's own problem, and say nothing about what is there. */
bool gp_statedir_ignores(int e);

/* Finds the directories of all users: below $GPULSE_STATE_DIR only if it is set, otherwise below
 * the root prefix in /run/gpulse, /dev/shm and /tmp. The list is empty if there are none.
 * 0 or −errno. */
int gp_statedirs_open(const char *root, struct gp_statedirs *ret) GP_MUST_CHECK;
/* The next directory, open until the next call. NULL after the last one; the call after that starts
 * over. */
const struct gp_statedir *gp_statedirs_next(struct gp_statedirs *dirs);
void gp_statedirs_close(struct gp_statedirs *dirs);

/* This user's own directory in the first place from number `from` on that has one or where one can
 * be created. Start with 0; if the place turns out to be full, retry with *ret_place + 1. GP_EIO
 * and GP_EPERM name the problem of each place; GP_EUSAGE is as below. The caller owns the
 * descriptor. */
int gp_statedir_own(const char *root, size_t from, struct gp_statedir *ret, size_t *ret_place,
                    struct gp_err *err) GP_MUST_CHECK;

/* Call this before relying on reservations: appends a note if other users cannot see them where
 * they are stored. GP_EUSAGE: $GPULSE_STATE_DIR is not the absolute path of a directory. */
int gp_statedir_check(struct gp_strbuf *note, struct gp_err *err) GP_MUST_CHECK;

/* Appends the problem of a directory, given −errno. For a full file system, also names the user
 * of at least half of it. */
void gp_statedir_complain(struct gp_strbuf *sb, const struct gp_statedir *dir, int e);

/* Reads a directory from its start; close it with closedir(). NULL: it cannot be read (errno). */
DIR *gp_statedir_list(const struct gp_statedir *dir);

/* An inotify descriptor for changes in all directories, including new ones. With the *fd of an
 * earlier call, adds the directories created since. *fd stays −1 if nothing can be watched. */
void gp_statedirs_watch(const char *root, int *fd);
/* Drains the descriptor: whether a file of ours was created, closed or removed. */
bool gp_statedirs_changed(int fd);

#endif
