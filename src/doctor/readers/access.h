/* Whether the examining user may use a device file, by its mode and groups. */
#ifndef GP_DOCTOR_READERS_ACCESS_H
#define GP_DOCTOR_READERS_ACCESS_H

#include "base/util.h"

struct gp_exam;

enum { GP_ACCESS_NOBODY = 65534 }; /* a group of the host without a number in this container */

struct gp_access {
    bool is_there;
    bool is_known; /* the examining user is known */
    bool is_root;
    bool may_use; /* read and write */
    unsigned mode, group;
    char group_name[32]; /* its name in /etc/group, or its number */
};

/* Whom the kernel compares with a file's owner and group. */
struct gp_credentials {
    unsigned user, group;
    const char *groups; /* their numbers, "4 24 27", up to another character */
};

/* Of a process, by its status, "/proc/900/status"; in the exam's arena. False: it is not there. */
bool gp_credentials_of_process(struct gp_exam *exam, const char *status,
                               struct gp_credentials *ret);

/* If the file does not exist, only the user is filled in. */
struct gp_access gp_access_of(struct gp_exam *exam, const char *path);

/* Likewise for a user by name, by the files of users and groups. */
struct gp_access gp_access_of_user(struct gp_exam *exam, const char *path, const char *user);

/* Likewise for a process, by its status, and for anyone. */
struct gp_access gp_access_of_process(struct gp_exam *exam, const char *path, const char *status);
struct gp_access gp_access_of_credentials(struct gp_exam *exam, const char *path,
                                          const struct gp_credentials *who);

/* "you are not in group render", or that the session is too old for it. */
const char *gp_access_words(struct gp_exam *exam, const struct gp_access *access);

/* The files in a directory whose names begin with a word and that the user may not access: how
 * many, and the first in *ret. */
size_t gp_access_denied(struct gp_exam *exam, const char *folder, const char *word,
                        struct gp_access *ret, const char **ret_path);

/* The users that /etc/group lists for a group, "alice,bob"; "": none. */
const char *gp_access_members(struct gp_exam *exam, unsigned group);

/* How many lines of this name /etc/group has: tools refuse to change several. *ret is the number of
 * another one than `group`, or `group` if all have that. */
size_t gp_access_twin(struct gp_exam *exam, const char *name, unsigned group, unsigned *ret);

/* Whether the examining user was added to the file's group, which may use it, but the
 * session began before that. */
bool gp_access_is_new(struct gp_exam *exam, const struct gp_access *access);

/* The number of the group of the render nodes, or of the group render: "104"; NULL: there is none.
 */
const char *gp_access_render(struct gp_exam *exam);

/* Whether the device has a group that only its host knows: the number is another group's in this
 * LXC container, or nobody's. Membership in that group would not be the way to the device. */
bool gp_access_is_foreign(const struct gp_exam *exam, const struct gp_access *access);

/* Whether the members of the file's group have other rights than to use devices, up to those of
 * root, so that no one is to join it for a GPU. */
bool gp_access_is_powerful(const struct gp_access *access);

/* Whether there is a group render here, or the groups are unknown. */
bool gp_access_has_render(struct gp_exam *exam);

#endif
