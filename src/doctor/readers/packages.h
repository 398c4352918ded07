/* Installed packages, from the files of dpkg and pacman. Pure functions on text. */
#ifndef GP_DOCTOR_READERS_PACKAGES_H
#define GP_DOCTOR_READERS_PACKAGES_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

struct gp_package {
    char name[96];
    char version[64];
    char state[24]; /* dpkg: "installed", "half-configured", "unpacked", "config-files", …; pacman:
                       "installed" */
    char arch[16];  /* dpkg: "amd64", "i386", "all" */
    bool is_held;   /* dpkg: updates leave it as it is */
};

/* The next stanza of dpkg's status file; false after the last. A stanza without a name is skipped,
 * and one whose name would not be one word to a shell. */
struct gp_lines;
bool gp_packages_next(struct gp_lines *lines, struct gp_package *ret);

/* A directory name of pacman: "nvidia-utils-590.48.01-2"; false if it is not one. */
bool gp_packages_of_folder(const char *folder, struct gp_package *ret);

/* The number at the end of the name, or before "-server" or "-open": 580 of
 * "libnvidia-compute-580-server"; 0: none. */
unsigned gp_packages_branch(const char *name);

/* Whether the name has the word "open": "nvidia-dkms-580-open", but not "nvidia-opencl-icd". */
bool gp_packages_is_open(const char *name);

/* Whether dpkg began to install it, and did not finish. */
bool gp_packages_is_broken(const struct gp_package *package);

/* The package that only leads to the one of a newer branch: its version is not that of its name, as
 * of "nvidia-utils-460 470.103.01-0ubuntu0.20.04.1". */
bool gp_packages_is_transitional(const struct gp_package *package);

/* Packages whose name begins with one of the words (up to NULL): their number, at most GP_PACKAGES,
 * in the arena. −errno if neither database exists or can be read. */
enum { GP_PACKAGES = 256 };
long gp_packages_read(const struct gp_files *files, struct gp_arena *arena,
                      const char *const *words, struct gp_package **ret);

/* The installed package of exactly this name, in the arena; NULL: there is none, or that is
 * unknown. */
const struct gp_package *gp_packages_installed(const struct gp_files *files, struct gp_arena *arena,
                                               const char *name);

#endif
