/* What Hyprland's configuration says of monitors and variables. */
#ifndef GP_DOCTOR_CHECKS_GRAPHICS_HYPRLAND_H
#define GP_DOCTOR_CHECKS_GRAPHICS_HYPRLAND_H

#include "base/util.h"

struct gp_exam;

struct gp_hyprland_line {
    const char *path, *place, *text; /* the file, "FILE:3", the line without blanks before it */
};

enum gp_hyprland_wish { GP_HYPRLAND_UNKNOWN, GP_HYPRLAND_ON, GP_HYPRLAND_OFF };

/* What the lines about this connector, "HDMI-A-1", ask for; OFF if any of them turns it off, as the
 * last one counts, and the order of the files is not known. UNKNOWN: the line is empty. */
enum gp_hyprland_wish gp_hyprland_wish(struct gp_exam *exam, const char *connector,
                                       struct gp_hyprland_line *ret);

/* Whether a line that is commented out would set this variable. */
bool gp_hyprland_left_out(struct gp_exam *exam, const char *variable, struct gp_hyprland_line *ret);

/* Whether a line gives this variable this value: "env = NAME,value", or in Lua. */
bool gp_hyprland_sets(struct gp_exam *exam, const char *variable, const char *value,
                      struct gp_hyprland_line *ret);

/* Whether the installed release still draws by wlroots, and knows its variables. */
bool gp_hyprland_is_of_wlroots(struct gp_exam *exam);

#endif
