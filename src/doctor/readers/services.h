/* Services of systemd: which are installed, and the variables that an administrator has set for
 * them, "Environment=" in the units and drop-ins below /etc/systemd/system. */
#ifndef GP_DOCTOR_READERS_SERVICES_H
#define GP_DOCTOR_READERS_SERVICES_H

#include "base/util.h"

struct gp_exam;

struct gp_service_setting {
    const char *service; /* "ollama.service" */
    const char *where;   /* "/etc/systemd/system/ollama.service.d/override.conf:3" */
    const char *value;   /* "" if it is empty */
};

/* Whether systemd knows a unit, "nvidia-suspend.service", enabled or not. */
bool gp_service_is_installed(struct gp_exam *exam, const char *unit);

/* Whether another unit, "systemd-suspend.service", starts it: wants or requires it. */
bool gp_service_is_wanted(struct gp_exam *exam, const char *unit, const char *by);

/* Whether it is started at boot, for units that multi-user.target wants. */
bool gp_service_is_enabled(struct gp_exam *exam, const char *unit);

/* Whether an administrator, or a tool, has masked a unit: linked it to /dev/null. */
bool gp_service_is_masked(struct gp_exam *exam, const char *unit);

/* The settings of a variable, at most `most`; returns their number. */
size_t gp_service_settings(struct gp_exam *exam, const char *variable,
                           struct gp_service_setting *ret, size_t most);

/* The commands that start services, by the units and drop-ins below /etc/systemd/system; likewise.
 */
size_t gp_service_commands(struct gp_exam *exam, struct gp_service_setting *ret, size_t most);

/* The last value of a setting, "User", in a unit and its drop-ins; NULL: none. */
const char *gp_service_value(struct gp_exam *exam, const char *unit, const char *setting);

/* The file that has this value, a unit or a drop-in of it; NULL: none. */
const char *gp_service_where(struct gp_exam *exam, const char *unit, const char *setting);

/* Whether a setting is on, "PrivateDevices=yes". */
bool gp_service_is_yes(struct gp_exam *exam, const char *unit, const char *setting);

/* The values of a setting that may be repeated, "DeviceAllow", each with a newline; "": none. */
const char *gp_service_list(struct gp_exam *exam, const char *unit, const char *setting);

/* The names of the units that there are files or drop-ins for, "user-.slice" among them, of one
 * kind, each once; returns their number. */
size_t gp_service_units(struct gp_exam *exam, bool (*is_one)(const char *unit), const char **ret,
                        size_t most);

/* Whether a variable or an option of a unit keeps its program on the CPU, on this machine. */
bool gp_service_is_for_cpu(struct gp_exam *exam, const char *unit);

#endif
