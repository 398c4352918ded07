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

/* The file of a library in the packages of the Python that the user's shell would start, or of the
 * active virtual or conda environment: `site` is relative to its site-packages, and may have
 * wildcards. Only files that belong to root or to this user are loaded. NULL: none. */
void *gp_bench_library_in_python(const char *const *sites);

/* Fills the table. Returns the name of the first function that is missing; NULL: none. */
const char *gp_bench_library_find(void *library, const struct gp_bench_symbol *symbols,
                                  size_t count, void *table);

#endif
