/* Where output goes: an open descriptor, or a file that may be rotated.
 *
 * What is written is a row of pieces (samples), each whole or not there at all: of a piece that
 * does not fit on the disk nothing stays in the file. A rotated FILE becomes FILE.1, that one
 * FILE.2, and so on, by renaming: each of them is one that was written from its beginning to its
 * end. */
#ifndef GP_BASE_OUTFILE_H
#define GP_BASE_OUTFILE_H

#include "base/io.h"

#include <sys/types.h>

struct gp_err;

enum {
    GP_OUTFILE_KEEP = 5, /* old files unless said otherwise */
    GP_OUTFILE_KEEP_MAX = 1000,
};

struct gp_outfile_config {
    const char *path;    /* must outlive the file */
    bool append;         /* go on behind what the file holds */
    uint64_t size_max;   /* rotate before it grows beyond these bytes; 0: never */
    uint64_t age_max_ns; /* rotate when it has been open this long; 0: never */
    mode_t mode;         /* of files that it makes; 0: 0666 */
    unsigned keep;       /* old files that stay, 1 to GP_OUTFILE_KEEP_MAX */
};

struct gp_outfile {
    struct gp_outfile_config config; /* path NULL: a descriptor of somebody else's */
    int fd;
    bool regular;
    uint64_t opened_ns;
};

/* Writes to a descriptor that stays the caller's, such as standard output. */
void gp_outfile_init(struct gp_outfile *f, int fd);

/* Opens the file for writing. Without `append`, what an earlier run left there is overwritten or,
 * if the file is to be rotated, becomes FILE.1. With it, a last line without an end gets one.
 * GP_EIO, GP_EPERM: it cannot be opened, or it can never be rotated. */
int gp_outfile_open(struct gp_outfile *f, const struct gp_outfile_config *config,
                    struct gp_err *err) GP_MUST_CHECK;

/* What a file begins with: up to cap - 1 bytes, NUL-terminated, and how many. 0 for what is empty,
 * is not there, cannot be read, or is not a regular file. */
size_t gp_outfile_peek(const char *path, char *buf, size_t cap);

/* Whether nothing has been written into the file so far, or it is not a file with a size. */
bool gp_outfile_is_empty(const struct gp_outfile *f);

/* Whether the file is to be rotated before the next `len` bytes. */
bool gp_outfile_is_due(const struct gp_outfile *f, size_t len);

/* Closes the file, renames it and its predecessors, and begins a new one. After a failure it is
 * closed. GP_EIO. */
int gp_outfile_rotate(struct gp_outfile *f, struct gp_err *err) GP_MUST_CHECK;

/* Writes all, or nothing if it is a regular file. GP_EIO. */
int gp_outfile_write(struct gp_outfile *f, const void *data, size_t len,
                     struct gp_err *err) GP_MUST_CHECK;

/* Opens a file for writing, or makes it with that mode: the one way to do so for names that were
 * given to this program, as they may stand in a folder where another user has prepared something.
 * Links are followed that are root's or this user's; what is found in a folder where all may write
 * must be theirs, too, and have no second name; a FIFO that nobody reads is an error and does not
 * hang. flags: O_APPEND or 0. −1: err has the reason alone, errno the system's. */
int gp_outfile_create(const char *path, int flags, mode_t mode, struct gp_err *err) GP_MUST_CHECK;

/* The file itself, behind such links. GP_EPERM, GP_EIO. */
int gp_outfile_resolve(const char *path, char ret[GP_PATH_SIZE], struct gp_err *err) GP_MUST_CHECK;

/* Puts data in the place of what the file holds, or makes it: whoever reads it sees the whole old
 * content or the whole new one; with `durable` also after a power failure. What cannot be a file of
 * ours (a device, a folder) stays as it is; a link is replaced, not followed. `mode` is
 * that of a new file, 0600 or 0666 without the mask; an old one's stays, as far as `mode` lets it.
 * GP_EIO. */
int gp_outfile_replace(const char *path, mode_t mode, const void *data, size_t len, bool durable,
                       struct gp_err *err) GP_MUST_CHECK;

/* GP_EIO: some file systems find out only now that there is no room. May be called twice. */
int gp_outfile_close(struct gp_outfile *f, struct gp_err *err) GP_MUST_CHECK;

#endif
