/* Where Python environments are looked for. */
#ifndef GP_DOCTOR_READERS_PYPLACES_H
#define GP_DOCTOR_READERS_PYPLACES_H

#include "doctor/readers/pyenv.h"

/* ~ is a user's home, . the working directory; one * stands for all names there. */
struct gp_pyplace {
    const char *path;
    enum gp_pyenv_kind kind;
    bool is_loose; /* only what is marked as an environment: programs bring a Python, too */
};

extern const struct gp_pyplace gp_pyplaces[];
extern const size_t gp_pyplace_count;

#endif
