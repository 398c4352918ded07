/* Pins: what apt's preferences say about which versions it installs. See apt_preferences(5). */
#ifndef GP_DOCTOR_READERS_APTPINS_H
#define GP_DOCTOR_READERS_APTPINS_H

#include "base/util.h"

struct gp_exam;

struct gp_apt_pin {
    const char *path;
    size_t first, last;   /* its lines */
    const char *packages; /* "*"; "src:*nvidia*:any cuda-drivers" */
    const char *by;       /* "version", "release", "origin" */
    const char *value;    /* "575.*", "o=Ubuntu,n=jammy", "nvidia.github.io" */
    long priority;
};

enum { GP_APT_PINS = 64 };

/* In apt's order: of several for one package, the first counts. The number of them. */
size_t gp_apt_pins_read(struct gp_exam *exam, struct gp_apt_pin ret[GP_APT_PINS]);

/* Whether it is for all packages; one that names them takes precedence over it. */
bool gp_apt_pin_is_general(const struct gp_apt_pin *pin);

/* Whether it names this package, or is for all. Names of source packages are taken for those of
 * packages. */
bool gp_apt_pin_has(const struct gp_apt_pin *pin, const char *package);

#endif
