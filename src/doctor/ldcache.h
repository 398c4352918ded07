/* /etc/ld.so.cache: which file the dynamic loader takes for the name of a library. */
#ifndef GP_DOCTOR_LDCACHE_H
#define GP_DOCTOR_LDCACHE_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

struct gp_ldcache {
    const char *base; /* where its offsets count from */
    const char *entries;
    size_t count;
};

struct gp_library {
    const char *name; /* "libcuda.so.1" */
    const char *path; /* "/usr/lib/x86_64-linux-gnu/libcuda.so.1" */
    unsigned flags;   /* gp_library_is_for() reads them */
};

/* Takes the bytes of a cache, which stay with the caller and must outlive it: what ldconfig of
 * glibc 2.2 and newer writes, behind a part for older ones or without. Everything is checked here:
 * false if it is another file, cut off or damaged. */
bool gp_ldcache_init(struct gp_ldcache *cache, const void *data, size_t size) GP_MUST_CHECK;

/* An entry, index below count. */
struct gp_library gp_ldcache_at(const struct gp_ldcache *cache, size_t index);

/* The first entry with this name for programs of an architecture ("x86_64", as of gp_machine; NULL:
 * any), at `from` or behind; the index behind it in *from. False: there is no more. The same name
 * can stand there often: the loader takes the first that fits the processor. */
bool gp_ldcache_find(const struct gp_ldcache *cache, const char *name, const char *arch,
                     size_t *from, struct gp_library *ret);

/* Whether a library is for programs of this architecture; of one that is not known all are. */
bool gp_library_is_for(const struct gp_library *library, const char *arch);

/* Reads the machine's cache into memory of the arena. 0, −errno, or −EBADMSG if it is damaged. */
int gp_ldcache_read(struct gp_ldcache *cache, const struct gp_files *files, struct gp_arena *arena);

#endif
