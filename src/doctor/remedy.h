/* Remedies: the commands that fix a problem, for each family of distributions. */
#ifndef GP_DOCTOR_REMEDY_H
#define GP_DOCTOR_REMEDY_H

#include "doctor/machine.h"

enum gp_remedy {
#define REMEDY(id, note, ...) GP_REMEDY_##id,
#include "doctor/remedy.def"
#undef REMEDY
    GP_REMEDY__COUNT
};

/* NVIDIA's repositories, and the file that describes that of a distribution with rpm. */
#define GP_NVIDIA_REPOSITORIES "https://developer.download.nvidia.com/compute/cuda/repos/"
#define GP_NVIDIA_REPOSITORY(distro)                                                               \
    GP_NVIDIA_REPOSITORIES distro "/$(uname -m | sed s/aarch64/sbsa/)/cuda-" distro ".repo"

struct gp_remedy_row {
    const char *id;
    const char *note;
    const char *commands[GP_DISTRO__COUNT]; /* lines; NULL: none known, only the note */
};

/* Of a distribution that is in no family, such as NixOS. */
struct gp_remedy_other {
    const char *distro_id; /* "nixos" */
    enum gp_remedy remedy;
    const char *note;
    const char *command; /* NULL: only the note */
};

/* NULL: there is none. */
const struct gp_remedy_other *gp_remedy_other(const char *distro_id, enum gp_remedy remedy);

/* Lines of commands of a related family; NULL: there are none that hold for it, too. */
const char *gp_remedy_of_kin(const char *distro_id, enum gp_remedy remedy);

/* Of some releases, whose commands differ from those of the rest of their family. */
struct gp_remedy_release {
    enum gp_distro family;
    const char *word;         /* in the distribution's id: "leap"; "": any */
    const char *from, *below; /* the first release, and the first one after them */
    enum gp_remedy remedy;
    const char *note;     /* NULL: that of the remedy */
    const char *commands; /* lines; NULL: only the note */
};

/* NULL: the release has none of its own. */
const struct gp_remedy_release *gp_remedy_release(const struct gp_machine *m,
                                                  enum gp_remedy remedy);

/* A program that does on some systems what the usual command of their family does elsewhere. */
struct gp_remedy_tool {
    enum gp_remedy remedy;
    enum gp_distro family; /* GP_DISTRO__COUNT: any */
    const char *file;      /* a file of it */
    const char *note;
    const char *command;
};

struct gp_files;

/* NULL: the system has none. */
const struct gp_remedy_tool *gp_remedy_tool(const struct gp_files *files, enum gp_distro distro,
                                            enum gp_remedy remedy);

extern const struct gp_remedy_row gp_remedies[GP_REMEDY__COUNT];

#endif
