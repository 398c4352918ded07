/* Pins: what apt's preferences say about which versions it installs. See apt_preferences(5). */
#ifndef GP_DOCTOR_READERS_APT_PINS_H
#define GP_DOCTOR_READERS_APT_PINS_H

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

struct gp_apt_pins {
    struct gp_apt_pin list[GP_APT_PINS];
    size_t count;
};

/* In apt's order: of several for one package, the first counts. Read at the first call. */
const struct gp_apt_pins *gp_apt_pins_of(struct gp_exam *exam);

/* Whether it is for all packages; one that names them takes precedence over it. */
bool gp_apt_pin_is_general(const struct gp_apt_pin *pin);

/* Whether it may be for this package: it names it, perhaps for another architecture or as a source
 * package, or has a regular expression, or is for all. */
bool gp_apt_pin_has(const struct gp_apt_pin *pin, const char *package);

/* Whether it is certainly for this package, by its name or a pattern. */
bool gp_apt_pin_names(const struct gp_apt_pin *pin, const char *package);

#endif
