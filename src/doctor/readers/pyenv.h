/* The Python environments of a machine, and the GPU packages in them: read from directory names,
 * without running Python. */
#ifndef GP_DOCTOR_READERS_PYENV_H
#define GP_DOCTOR_READERS_PYENV_H

#include "base/io.h"

struct gp_exam;

/* X(id, word) */
#define GP_PYENV_KINDS(X)                                                                          \
    X(VENV, "virtual environment")                                                                 \
    X(CONDA, "conda environment")                                                                  \
    X(PYTHON, "standalone Python") /* from pyenv, uv, or built by hand */                          \
    X(SYSTEM, "the distribution's Python")                                                         \
    X(USER, "the user's packages") /* ~/.local: used by all except virtual environments */

enum gp_pyenv_kind {
#define X(id, word) GP_PYENV_##id,
    GP_PYENV_KINDS(X)
#undef X
};

const char *gp_pyenv_kind_word(enum gp_pyenv_kind kind);

struct gp_pypackage {
    const char *name;    /* "nvidia-cudnn-cu12" */
    const char *version; /* "9.7.1.26" */
    const char *entry;   /* its directory or file: "torch-2.7.1.dist-info" */
    bool is_conda;       /* from conda-meta; then `entry` ends with the build */
};

/* A package directory; a prefix with two Pythons has two of them. */
struct gp_pyenv {
    const char *prefix; /* "/home/ada/venv" */
    const char *site;   /* "/home/ada/venv/lib/python3.11/site-packages" */
    const char *python; /* "3.11"; "": unknown */
    enum gp_pyenv_kind kind;
    bool is_named;                       /* by --python */
    bool is_active;                      /* what the user's shell would start */
    bool has_torch;                      /* it has a directory of this name */
    int error;                           /* 0, or −errno: it cannot be read */
    const struct gp_pypackage *packages; /* those related to GPUs, sorted by entry */
    size_t count;
};

enum { GP_PYENVS = 256 };

struct gp_pyenvs {
    struct gp_pyenv list[GP_PYENVS];
    size_t count;
    bool is_cut; /* the limit was reached */
};

/* Searched on first use; never NULL. */
const struct gp_pyenvs *gp_pyenvs_of(struct gp_exam *exam);

/* Whether all environments found could be read. */
bool gp_pyenvs_readable(const struct gp_pyenvs *envs);

/* The package with this name; NULL: not installed. Of two, one installed by pip takes precedence.
 */
const struct gp_pypackage *gp_pyenv_package(const struct gp_pyenv *env, const char *name);

/* Whether conda has installed this version of one of those, which then has a directory of metadata,
 * too, as pip's packages have. PyTorch is "pytorch" there. */
bool gp_pyenv_is_of_conda(const struct gp_pyenv *env, const char *name, const char *version);

/* The first whose name has this prefix. */
const struct gp_pypackage *gp_pyenv_package_like(const struct gp_pyenv *env, const char *prefix);

/* The path of a file among the packages; false if it is too long. */
bool gp_pyenv_path(const struct gp_pyenv *env, const char *file, char ret[GP_PATH_SIZE]);

/* A text file among an environment's packages, "" if there is none. In the exam's arena. */
const char *gp_pyenv_text(struct gp_exam *exam, const struct gp_pyenv *env, const char *file);

#endif
