/* The AMD GPUs that an installation of ROCm or of PyTorch has code for: their names for the
 * compiler, "gfx1030". */
#ifndef GP_DOCTOR_READERS_GFXLIST_H
#define GP_DOCTOR_READERS_GFXLIST_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

enum { GP_GFX_NAME = 12, GP_GFX_NAMES = 48 };

struct gp_gfxlist {
    char names[GP_GFX_NAMES][GP_GFX_NAME];
    size_t count;
};

bool gp_gfxlist_has(const struct gp_gfxlist *list, const char *name);

/* Adds the names in some bytes that follow this mark; each is kept once. */
void gp_gfxlist_find(struct gp_gfxlist *list, const char *data, size_t size, const char *mark);

/* Adds those in the names of a directory's files, such as rocBLAS' kernels:
 * "TensileLibrary_lazy_gfx1030.dat". */
void gp_gfxlist_of_folder(struct gp_gfxlist *list, const struct gp_files *files,
                          struct gp_arena *arena, const char *path);

/* Adds those in a library, which names each of its code objects. Reads at most `budget` bytes, and
 * subtracts what it has read. */
void gp_gfxlist_of_library(struct gp_gfxlist *list, const struct gp_files *files, const char *path,
                           uint64_t *budget);

#endif
