/* NVIDIA's Isaac Sim, which is installed by pip or as a directory. */
#ifndef GP_DOCTOR_READERS_ISAAC_H
#define GP_DOCTOR_READERS_ISAAC_H

#include <stdbool.h>

struct gp_exam;

struct gp_isaac {
    const char *path;    /* "/home/ada/isaacsim" */
    const char *version; /* "5.1.0", "4.2.0-rc.18"; "": unknown */
};

/* The first that is found; false: none is. */
bool gp_isaac_find(struct gp_exam *exam, struct gp_isaac *ret);

/* The line of the newest log of a release, "5.1", that names this library as the place of a
 * crash, and its file; NULL: there is none. */
const char *gp_isaac_crash(struct gp_exam *exam, const struct gp_isaac *isaac, const char *release,
                           const char *library, const char **ret_path);

#endif
