/* Files in /dev/dri that an LXC container's settings mount into it. */
#ifndef GP_DOCTOR_CHECKS_CONTAINER_LXC_RENDER_H
#define GP_DOCTOR_CHECKS_CONTAINER_LXC_RENDER_H

#include "doctor/readers/cgroups.h"

#include <stdbool.h>
#include <stddef.h>

struct gp_exam;

struct gp_lxc_render {
    const char *file, *line;    /* of this machine, and where it is mounted; NULL: none is */
    bool is_folder;             /* all of them are */
    const char *rule;           /* the last for such files; NULL: none is */
    bool may_all;               /* the control groups' rules allow them all */
    unsigned long long allowed; /* or some, a bit for each number from that of the first on */
    bool is_unprivileged;       /* users and groups have other numbers on the host */
    bool is_mapped;             /* some may have the host's, by lines of its own */
    bool is_given;              /* Proxmox creates a file of its own (dev0:) */
    unsigned devices;           /* those of dev0 … dev31 that are in use, a bit for each */
};

/* Whether the key of a line, of n characters, is this one. */
bool gp_lxc_is_key(const char *line, size_t n, const char *key);

/* Takes a line of the settings, with a key of n characters; the control groups that
 * are in use. */
void gp_lxc_render_line(struct gp_exam *exam, struct gp_lxc_render *render, const char *line,
                        size_t n, const char *value, enum gp_cgroup_version version);

/* Reports that a container of Proxmox may not open it; `id`: NULL: it is of another manager, whose
 * settings may include others. */
void gp_lxc_render_check(struct gp_exam *exam, const struct gp_lxc_render *render, const char *path,
                         const char *id);

#endif
