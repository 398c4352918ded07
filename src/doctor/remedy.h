/* Remedies: what to type to mend something, for each family of distributions. */
#ifndef GP_DOCTOR_REMEDY_H
#define GP_DOCTOR_REMEDY_H

#include "doctor/machine.h"

enum gp_remedy {
#define REMEDY(id, note, ...) GP_REMEDY_##id,
#include "doctor/remedy.def"
#undef REMEDY
    GP_REMEDY__COUNT
};

struct gp_remedy_row {
    const char *id;
    const char *note;
    const char *commands[GP_DISTRO__COUNT]; /* lines; NULL: none is known, the note must do */
};

extern const struct gp_remedy_row gp_remedies[GP_REMEDY__COUNT];

#endif
