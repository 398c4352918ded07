/* What only the owner of a process and root may read of a recording that everybody may read: its
 * path, command line, working directory, and what its environment and the files of its container
 * say. It is in a file for each user, FILE-private/UID, which a POSIX ACL lets this user read.
 *
 * Such a file is written by appending entries, and read without locks: who reads ignores an entry
 * that is not complete yet. */
#ifndef GP_TAPE_PRIVATE_H
#define GP_TAPE_PRIVATE_H

#include "base/util.h"

struct gp_err;
struct gp_private;
struct stat;

enum gp_private_text {
    GP_PRIVATE_PATH,
    GP_PRIVATE_COMMAND,
    GP_PRIVATE_CWD,
    GP_PRIVATE_CONTAINER_NAME,
    GP_PRIVATE_ORIGIN,
    GP_PRIVATE__COUNT,
};

/* Of a process; NULL: unknown. */
struct gp_private_entry {
    uint64_t id; /* in the recording; together with the next two, as numbers are reused */
    uint64_t pid;
    uint64_t start_ns;
    const char *texts[GP_PRIVATE__COUNT];
};

enum { GP_PRIVATE_SIZE_MAX = 8 << 20 }; /* of a user's file; then, the older half goes */

/* ---- writing ---- */

/* Opens the directory next to the recording, or creates it. GP_EPERM: somebody else prepared it. */
int gp_private_create(const char *tape, struct gp_private **ret, struct gp_err *err) GP_MUST_CHECK;
void gp_private_close(struct gp_private *p);

/* Whether the file system has the ACLs that it takes; otherwise, nothing is stored. */
bool gp_private_works(const struct gp_private *p);

/* Appends an entry to the file of this user. False: it is not stored. */
bool gp_private_add(struct gp_private *p, uint32_t uid,
                    const struct gp_private_entry *entry) GP_MUST_CHECK;

/* Drops the entries of processes that `keeps` does not want, from all files. */
void gp_private_prune(struct gp_private *p, bool (*keeps)(void *ctx, uint64_t id), void *ctx);

/* ---- reading ---- */

struct gp_private_file {
    uint8_t *data;
    size_t size;
};

enum { GP_PRIVATE_READ_MAX = 64 << 20 }; /* of all files together */

/* Reads the file of this user; for root, all files. They must belong to the owner of the recording,
 * others are ignored; so are those that this user may not read. False without memory. Freed by the
 * caller. */
bool gp_private_read(const char *tape, uint32_t owner, struct gp_private_file *ret) GP_MUST_CHECK;

/* The last entry of a process; its texts are in the data, and not sanitized. */
bool gp_private_find(const struct gp_private_file *file, uint64_t id, uint64_t pid,
                     uint64_t start_ns, struct gp_private_entry *ret) GP_MUST_CHECK;

#endif
