/* Packages that are installed, as the files of dpkg and pacman say. Texts in, rows out. */
#ifndef GP_DOCTOR_PACKAGES_H
#define GP_DOCTOR_PACKAGES_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

struct gp_package {
    char name[96];
    char version[64];
    char state[24]; /* dpkg's: "installed", "half-configured", "unpacked", "config-files", …;
                       pacman's are "installed" */
};

/* The next stanza of dpkg's status file; false behind the last. One without a name is left out. */
struct gp_lines;
bool gp_packages_next(struct gp_lines *lines, struct gp_package *ret);

/* A folder of pacman's: "nvidia-utils-590.48.01-2"; false if it is no such name. */
bool gp_packages_of_folder(const char *folder, struct gp_package *ret);

/* The number that ends the name, or stands before "-server" or "-open": 580 of
 * "libnvidia-compute-580-server"; 0: none. */
unsigned gp_packages_branch(const char *name);

/* Packages whose name begins with one of the words (up to NULL): their number, GP_PACKAGES at most,
 * in memory of the arena. −errno if neither database is there or can be read. */
enum { GP_PACKAGES = 256 };
long gp_packages_read(const struct gp_files *files, struct gp_arena *arena,
                      const char *const *words, struct gp_package **ret);

#endif
