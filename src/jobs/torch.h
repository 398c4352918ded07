/* Which PyTorch a command would use, from the files of its Python: PyTorch fails on an allocator
 * option that its version does not know. */
#ifndef GP_JOBS_TORCH_H
#define GP_JOBS_TORCH_H

#include "base/util.h"

struct gp_torch {
    bool is_found;
    unsigned major, minor;
};

/* Starts from argv[0]: a Python, or a script that names one in its first line, such as torchrun.
 * Searches next to that Python, as in a virtual environment. */
struct gp_torch gp_torch_of(const char *program);

/* At least this version. */
static inline bool gp_torch_is(const struct gp_torch *torch, unsigned major, unsigned minor)
{
    return torch->is_found &&
           (torch->major > major || (torch->major == major && torch->minor >= minor));
}

#endif
