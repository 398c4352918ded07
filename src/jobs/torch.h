/* Which PyTorch a command would use, from the files of its Python: an allocator option that a
 * version does not know ends the program. */
#ifndef GP_JOBS_TORCH_H
#define GP_JOBS_TORCH_H

#include "base/util.h"

struct gp_torch {
    bool is_found;
    unsigned major, minor;
};

/* By the program that argv[0] names: a Python, or a script that names one in its first line, as
 * torchrun does. Looks beside that Python, as in a virtual environment. */
struct gp_torch gp_torch_of(const char *program);

/* At least this version. */
static inline bool gp_torch_is(const struct gp_torch *torch, unsigned major, unsigned minor)
{
    return torch->is_found &&
           (torch->major > major || (torch->major == major && torch->minor >= minor));
}

#endif
