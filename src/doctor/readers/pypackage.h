/* The files of Python packages: directory names, versions, requirements. Pure functions on text. */
#ifndef GP_DOCTOR_READERS_PYPACKAGE_H
#define GP_DOCTOR_READERS_PYPACKAGE_H

#include "base/util.h"

enum { GP_PYPACKAGE_NAME = 96, GP_PYPACKAGE_VERSION = 64, GP_PYPACKAGE_SPECIFIER = 256 };

/* "nvidia_cudnn_cu12-9.7.1.26.dist-info", or an egg-info, into "nvidia-cudnn-cu12" and "9.7.1.26".
 * Names are lower-cased, with - between words. False: it is another entry, or has characters that
 * names and versions do not have. */
bool gp_pypackage_split(const char *entry, char name[GP_PYPACKAGE_NAME],
                        char version[GP_PYPACKAGE_VERSION]);

/* "pytorch-2.5.1-cpu_generic_py312_0.json" in conda-meta, with the build after the version. */
bool gp_pypackage_split_conda(const char *entry, char name[GP_PYPACKAGE_NAME],
                              char version[GP_PYPACKAGE_VERSION], char build[GP_PYPACKAGE_VERSION]);

/* The value of a name in a Python file: `cuda: Optional[str] = '12.8'` and `'cuda_version':
 * '12.5'`, also `('cuda_version', '12.5')`; a list is returned whole, "'sm_60', 'sm_70'". "" if it
 * is not text, such as None. False: the name does not occur. */
bool gp_python_value(const char *text, const char *name, char *ret, size_t size);

/* Likewise for a version; "" if it cannot be one. */
bool gp_python_version(const char *text, const char *name, char *ret, size_t size);

struct gp_requirement {
    char name[GP_PYPACKAGE_NAME];
    char version[GP_PYPACKAGE_VERSION];   /* the required version; "": others are allowed too */
    char least[GP_PYPACKAGE_VERSION];     /* the oldest allowed, of ">=2.1"; "": any */
    char allowed[GP_PYPACKAGE_SPECIFIER]; /* the specifier, ">=2.1,<2.7"; "": any version */
    bool is_cut;                          /* that is longer; `allowed` has only its beginning */
    char python[GP_PYPACKAGE_VERSION];    /* "<3.9": only with these versions of Python; "" */
    bool is_of_unknown_python;            /* only with some, which could not be read */
    char machine[16];                     /* "x86_64": only on this architecture; "" */
    bool is_extra;                        /* only with an extra */
    bool is_elsewhere;                    /* only on macOS or Windows */
};

/* The next Requires-Dist of a METADATA file; returns where to continue, or NULL after the last. */
const char *gp_requirement_next(const char *text, struct gp_requirement *ret);

/* Whether a METADATA file, or NULL, requires a package without an extra. */
bool gp_requirement_is_in(const char *text, const char *name);

/* Whether it is a requirement with a version of Python; not if it is for some only, and either is
 * unknown ("3.10"; ""). */
bool gp_requirement_is_for(const struct gp_requirement *requirement, const char *python);

/* Whether it allows a version, as in PEP 440, but without regard to suffixes. */
bool gp_requirement_allows(const struct gp_requirement *requirement, const char *version);

#endif
