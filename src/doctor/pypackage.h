/* What the files of Python packages say: names of their folders, their versions, what they require.
 * Pure functions on text. */
#ifndef GP_DOCTOR_PYPACKAGE_H
#define GP_DOCTOR_PYPACKAGE_H

#include "base/util.h"

enum { GP_PYPACKAGE_NAME = 96, GP_PYPACKAGE_VERSION = 64 };

/* "nvidia_cudnn_cu12-9.7.1.26.dist-info", or an egg-info, into "nvidia-cudnn-cu12" and "9.7.1.26".
 * Names become lower case, with - between their words. False: it is another entry, or has signs
 * that names and versions do not have. */
bool gp_pypackage_split(const char *entry, char name[GP_PYPACKAGE_NAME],
                        char version[GP_PYPACKAGE_VERSION]);

/* "pytorch-2.5.1-cpu_generic_py312_0.json" of conda-meta, with the build behind the version. */
bool gp_pypackage_split_conda(const char *entry, char name[GP_PYPACKAGE_NAME],
                              char version[GP_PYPACKAGE_VERSION], char build[GP_PYPACKAGE_VERSION]);

/* The value of a name in a Python file: `cuda: Optional[str] = '12.8'` and `'cuda_version':
 * '12.5'`, also `('cuda_version', '12.5')`; of a list all of it, "'sm_60', 'sm_70'". "" for what is
 * no text, as None. False: the name is not there. */
bool gp_python_value(const char *text, const char *name, char *ret, size_t size);

/* The same for a version; "" for what cannot be one. */
bool gp_python_version(const char *text, const char *name, char *ret, size_t size);

struct gp_requirement {
    char name[GP_PYPACKAGE_NAME];
    char version[GP_PYPACKAGE_VERSION]; /* that it must be; "": others do too */
    char machine[16];                   /* "x86_64": only there; "" */
    bool is_extra;                      /* only with an extra */
};

/* The next Requires-Dist of a METADATA file; where to go on, or NULL behind the last. */
const char *gp_requirement_next(const char *text, struct gp_requirement *ret);

#endif
