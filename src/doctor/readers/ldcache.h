/* /etc/ld.so.cache: which file the dynamic loader picks for a library name. */
#ifndef GP_DOCTOR_READERS_LDCACHE_H
#define GP_DOCTOR_READERS_LDCACHE_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

struct gp_ldcache {
    const char *base; /* the base of its offsets */
    const char *entries;
    size_t count;
};

struct gp_library {
    const char *name; /* "libcuda.so.1" */
    const char *path; /* "/usr/lib/x86_64-linux-gnu/libcuda.so.1" */
    unsigned flags;   /* for gp_library_is_for() */
};

/* Parses the bytes of a cache, which the caller owns and must keep: the format of ldconfig of glibc
 * 2.2 and newer, with or without a section for older versions. Everything is validated here: false
 * if it is another file, truncated or damaged. */
bool gp_ldcache_init(struct gp_ldcache *cache, const void *data, size_t size) GP_MUST_CHECK;

/* An entry, index below count. */
struct gp_library gp_ldcache_at(const struct gp_ldcache *cache, size_t index);

/* The first entry at `from` or later with this name for programs of an architecture ("x86_64", as
 * in gp_machine; NULL: any); the next index in *from. False: no more. A name can occur several
 * times: the loader picks the first one that fits the CPU. */
bool gp_ldcache_find(const struct gp_ldcache *cache, const char *name, const char *arch,
                     size_t *from, struct gp_library *ret);

/* Whether a library is for programs of this architecture; of an unknown architecture all are. */
bool gp_library_is_for(const struct gp_library *library, const char *arch);

/* Reads the machine's cache into the arena. 0, −errno, or −EBADMSG if it is damaged. */
int gp_ldcache_read(struct gp_ldcache *cache, const struct gp_files *files, struct gp_arena *arena);

#endif
