/* Which version of control groups decides about the devices of this machine's containers. */
#ifndef GP_DOCTOR_READERS_CGROUPS_H
#define GP_DOCTOR_READERS_CGROUPS_H

#include <stdbool.h>

struct gp_exam;

enum gp_cgroup_version { GP_CGROUP_UNKNOWN, GP_CGROUP_FIRST, GP_CGROUP_SECOND };

struct gp_cgroups {
    enum gp_cgroup_version version;
    const char *where, *seen; /* what shows it, as evidence */
};

/* Systemd's hybrid layout has both; there the first one decides about devices. Read once for an
 * exam, as containers ask for each line of their settings. */
struct gp_cgroups gp_cgroups_of(struct gp_exam *exam);

/* Whether rules for this version may have an effect: also if the version is not known. */
bool gp_cgroups_may_use(enum gp_cgroup_version version, bool is_second);

#endif
