/* Shared libraries that are loaded when they are needed. */
#ifndef GP_BASE_LIBRARY_H
#define GP_BASE_LIBRARY_H

#include "base/util.h"

enum { GP_LIBRARY_REASON = 256 };

/* Loads the library at `path` or, if that is NULL, the first of `places` that is there: a name, as
 * for dlopen(), or an absolute path. Only what is called is bound: a vendor's build may have
 * undefined symbols elsewhere. NULL: it cannot be loaded; `reason` is then what the loader says, or
 * "" if none of the places has it. */
void *gp_library_open(const char *path, const char *const *places, size_t count,
                      char reason[GP_LIBRARY_REASON]);

#endif
