/* An output destination: an open descriptor, or a file that may be rotated.
 *
 * The output is a sequence of pieces (samples). Each is written whole or not at all: a piece that
 * does not fit on the disk leaves nothing in the file. Rotation renames FILE to FILE.1, that to
 * FILE.2, and so on, so each file is one that was written from start to finish. */
#ifndef GP_BASE_OUTFILE_H
#define GP_BASE_OUTFILE_H

#include "base/io.h"

#include <sys/types.h>

struct gp_err;

enum {
    GP_OUTFILE_KEEP = 5, /* number of old files by default */
    GP_OUTFILE_KEEP_MAX = 1000,
};

struct gp_outfile_config {
    const char *path;    /* must outlive the file */
    bool append;         /* continue after the existing content */
    uint64_t size_max;   /* rotate before it grows beyond this size in bytes; 0: never */
    uint64_t age_max_ns; /* rotate when it has been open for this long; 0: never */
    mode_t mode;         /* of new files; 0: 0666 */
    unsigned keep;       /* number of old files to keep, up to GP_OUTFILE_KEEP_MAX; 0: none */
};

struct gp_outfile {
    struct gp_outfile_config config; /* path NULL: a descriptor owned by the caller */
    int fd;
    bool regular;
    uint64_t opened_ns;
};

/* Writes to a descriptor that remains the caller's, such as standard output. */
void gp_outfile_init(struct gp_outfile *f, int fd);

/* Opens the file for writing. Without `append`, an existing file becomes FILE.1; it is overwritten
 * if none is to be kept, or if FILE is a link and not to be rotated. With `append`, an unterminated
 * last line gets a newline. GP_EIO, GP_EPERM: it cannot be opened, or could never be rotated. */
int gp_outfile_open(struct gp_outfile *f, const struct gp_outfile_config *config,
                    struct gp_err *err) GP_MUST_CHECK;

/* Reports what is known to make gp_outfile_open() fail, without touching anything: GP_EIO,
 * GP_EPERM. */
int gp_outfile_check(const struct gp_outfile_config *config, struct gp_err *err) GP_MUST_CHECK;

/* Reads the start of a file: up to cap - 1 bytes, NUL-terminated. Returns their number; 0 if the
 * file is empty, missing, unreadable, or not a regular file. */
size_t gp_outfile_peek(const char *path, char *buf, size_t cap);

/* Whether nothing has been written to the file yet, or it has no size (it is not a regular
 * file). */
bool gp_outfile_is_empty(const struct gp_outfile *f);

/* Whether the file must be rotated before the next `len` bytes. */
bool gp_outfile_is_due(const struct gp_outfile *f, size_t len);

/* Closes the file, renames it and its predecessors, and opens a new one. After a failure it is
 * closed. GP_EIO. */
int gp_outfile_rotate(struct gp_outfile *f, struct gp_err *err) GP_MUST_CHECK;

/* Writes everything, or nothing if it is a regular file. GP_EIO. */
int gp_outfile_write(struct gp_outfile *f, const void *data, size_t len,
                     struct gp_err *err) GP_MUST_CHECK;

/* Writes before the end of a document: replaces the last `end` bytes of a regular file by these,
 * whose own last `end` bytes are the same ones. So the file is a whole document all the time. After
 * a failure it is as before. GP_EIO. */
int gp_outfile_extend(struct gp_outfile *f, const void *data, size_t len, size_t end,
                      struct gp_err *err) GP_MUST_CHECK;

/* Opens a file for writing, or creates it with that mode. All files named by a user must be opened
 * this way, because another user may have prepared something in their directory. Follows only links
 * that belong to root or this user. In a directory that is world-writable or sticky, an existing
 * file, FIFO or device must belong to them, too, and a file must have no second hard link. A FIFO
 * without a reader is an error and does not block.
 * flags: O_APPEND or 0. Returns −1 on failure: err then has only the reason, and errno is set. */
int gp_outfile_create(const char *path, int flags, mode_t mode, struct gp_err *err) GP_MUST_CHECK;

/* Resolves such links to the file itself. GP_EPERM, GP_EIO. */
int gp_outfile_resolve(const char *path, char ret[GP_PATH_SIZE], struct gp_err *err) GP_MUST_CHECK;

/* Replaces the content of a file, or creates it. A reader sees either all of the old content or all
 * of the new; with `durable`, this holds after a power failure, too. Anything that is not a regular
 * file (a device, a directory) is left unchanged; a link is replaced, not followed. `mode` is that
 * of a new file, 0600 or 0666 before the umask; an existing file keeps its mode, restricted to
 * `mode`. GP_EIO. */
int gp_outfile_replace(const char *path, mode_t mode, const void *data, size_t len, bool durable,
                       struct gp_err *err) GP_MUST_CHECK;

/* GP_EIO: some file systems report a full disk only on close. May be called twice. */
int gp_outfile_close(struct gp_outfile *f, struct gp_err *err) GP_MUST_CHECK;

#endif
