/* Allocator settings for the PyTorch that a command would use, which is found by the files of its
 * Python: PyTorch fails on an option that its version does not know. */
#ifndef GP_JOBS_TORCH_H
#define GP_JOBS_TORCH_H

#include "base/util.h"

enum { GP_TORCH_VARIABLES = 3, GP_TORCH_WHY_SIZE = 300 };

/* Adds the variables that turn on expandable_segments in addition to this process's own settings:
 * "NAME=VALUE", NULL after the last one, to be freed by the caller. False, with a message that says
 * why: that PyTorch would fail with them, or was not found. Out of memory, a variable is left
 * out. */
bool gp_torch_expandable(const char *program, char *variables[GP_TORCH_VARIABLES],
                         char why[GP_TORCH_WHY_SIZE]);

#endif
