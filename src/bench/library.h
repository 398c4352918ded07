/* Libraries that are loaded when they are needed. They stay loaded: some cannot be unloaded. */
#ifndef GP_BENCH_LIBRARY_H
#define GP_BENCH_LIBRARY_H

#include "base/util.h"

/* A function, and where its pointer is in a table of them. */
struct gp_bench_symbol {
    const char *name;
    size_t offset;
};

/* The first of these names (a NULL-terminated list) that the loader finds; NULL: none. */
void *gp_bench_library_open(const char *const *names);

/* Loads libraries until one can be used: try(library, context). First those in the packages of the
 * active virtual or conda environment, of the Python that the user's shell would start, and of the
 * user: `sites` (NULL-terminated) are relative to site-packages, and may have wildcards. Then
 * `names` in the lib of the conda environment. A file counts only if nobody but root and this user
 * can change it or what is above it. Then `names`, as the loader finds them. False: there is none.
 */
bool gp_bench_library_try(const char *const *sites, const char *const *names,
                          bool (*try)(void *library, void *context), void *context);

/* Fills the table. Returns the name of the first function that is missing; NULL: none. */
const char *gp_bench_library_find(void *library, const struct gp_bench_symbol *symbols,
                                  size_t count, void *table);

#endif
