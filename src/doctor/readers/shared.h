/* A shared library's file: the libraries that it loads, and the functions that it takes from them.
 */
#ifndef GP_DOCTOR_READERS_SHARED_H
#define GP_DOCTOR_READERS_SHARED_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

/* Only of 64-bit little-endian files; in the arena. */
struct gp_elf {
    const char *strings;
    size_t strings_size;
    const void *symbols, *entries; /* Elf64_Sym, Elf64_Dyn */
    size_t symbol_count, entry_count;
};

/* False: it cannot be read, or is no such library. */
bool gp_elf_read(struct gp_elf *shared, const struct gp_files *files, struct gp_arena *arena,
                 const char *path);

/* Likewise without its functions, which are many in a large library. */
bool gp_elf_read_libraries(struct gp_elf *shared, const struct gp_files *files,
                           struct gp_arena *arena, const char *path);

/* The next library that it loads, "libcudnn.so.8"; the next index in *from. NULL: no more. */
const char *gp_elf_needed(const struct gp_elf *shared, size_t *from);

/* Where it looks for them first, "$ORIGIN/../lib:…"; "": nowhere. */
const char *gp_elf_run_path(const struct gp_elf *shared);

/* Whether it looks there even before LD_LIBRARY_PATH. */
bool gp_elf_is_path_first(const struct gp_elf *shared);

/* The next function with this beginning that it takes from elsewhere; the next index in *from.
 * NULL: no more. */
const char *gp_elf_import(const struct gp_elf *shared, const char *start, size_t *from);

/* The functions that a library has, sorted by name; in the arena. */
struct gp_elf_exports {
    const char *const *names;
    size_t count;
};

/* False: they are unknown, or too many. */
bool gp_elf_exports_of(struct gp_elf_exports *exports, const struct gp_elf *shared,
                       struct gp_arena *arena);

/* The first function with this beginning that it takes from elsewhere and `other` does not have;
 * NULL: there is none, or the functions of one are unknown, or *lookups are used up, of which each
 * function with this beginning takes one. */
const char *gp_elf_lacks(const struct gp_elf *shared, const char *start,
                         const struct gp_elf_exports *other, size_t *lookups);

#endif
