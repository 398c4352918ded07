/* Whether who examines may use a device file, by its mode and groups. */
#ifndef GP_DOCTOR_ACCESS_H
#define GP_DOCTOR_ACCESS_H

#include "base/util.h"

struct gp_exam;

struct gp_access {
    bool is_there;
    bool is_known; /* who examines could be read */
    bool is_root;
    bool may_use; /* read and write */
    unsigned mode, group;
    char group_name[32]; /* as /etc/group calls it, or its number */
};

/* Of a file that is not there only who examines. */
struct gp_access gp_access_of(struct gp_exam *exam, const char *path);

/* The files of a folder whose names begin with a word, and may not be used: how many, and the first
 * in *ret. */
size_t gp_access_denied(struct gp_exam *exam, const char *folder, const char *word,
                        struct gp_access *ret, const char **ret_path);

/* Proposes how to get at a device: by its group, unless that is root's. */
void gp_access_propose(struct gp_exam *exam, const struct gp_access *access, const char *path);

#endif
