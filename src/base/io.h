/* Files: whole small reads below a root prefix, whole writes, the directory of this program. */
#ifndef GP_BASE_IO_H
#define GP_BASE_IO_H

#include "base/util.h"

struct gp_err;
struct gp_strbuf;
struct stat;

enum { GP_PATH_SIZE = 4096 };

/* "<root>/<path>", root NULL or "" meaning "/"; path is absolute. False if it does not fit. */
bool gp_io_path(char out[GP_PATH_SIZE], const char *root, const char *path) GP_MUST_CHECK;

/* Reads at most cap − 1 bytes of a small file, such as those in /proc, into buf, NUL-terminated.
 * Returns the number of bytes, or −errno. Uses one open, read and close if one read is enough. */
long gp_io_read(const char *path, char *buf, size_t cap);
/* The same for a path relative to the directory descriptor `dir`. */
long gp_io_read_at(int dir, const char *path, char *buf, size_t cap);

/* Opens a path below the directory descriptor `dir` that another user may have prepared: without
 * following links, and not in another file system, which might never respond. Before Linux 5.6,
 * mounts are not recognized, and `path` must be a single name. A descriptor or −errno. */
int gp_io_open_beneath(int dir, const char *path, int flags);
/* What is there, itself; false: nothing, or it cannot be reached in that way (errno). */
bool gp_io_stat_beneath(int dir, const char *path, struct stat *ret) GP_MUST_CHECK;

/* Ensures that descriptors 0 to 2 are open. If the parent closed one, the next opened file would
 * get its number and receive the output. A closed standard output still fails on write. */
void gp_io_secure_standard_fds(void);

/* Creates a directory and its parents for this user only; succeeds if it exists. 0 or −errno. */
int gp_io_make_folders(const char *path) GP_MUST_CHECK;

/* A directory of this user: "$VARIABLE/gpulse/NAME", where that is set as in XDG_STATE_HOME, else
 * "~/HIDDEN/gpulse/NAME". False without a home, if another user owns the home or one of these
 * folders, if it is root's and others can write to it, or if the name is too long. */
bool gp_io_user_folder(char ret[GP_PATH_SIZE], const char *variable, const char *hidden,
                       const char *name) GP_MUST_CHECK;

/* The name of a user of this machine, or "uid 1234"; returns `ret`. */
enum { GP_USER_TEXT_SIZE = 64 };
const char *gp_io_user_text(unsigned uid, char ret[GP_USER_TEXT_SIZE]);

/* An unpredictable number. */
uint64_t gp_io_random(void);

/* Raises the limit of open files of this process to the maximum. */
void gp_io_raise_file_limit(void);

/* Writes everything, continuing after signals and short writes. 0 or −errno. */
int gp_io_write_all(int fd, const void *data, size_t len) GP_MUST_CHECK;

/* Write "PROGRAM: message" to standard error. A message may quote a file or a name, so it is
 * escaped before it reaches the terminal. */
void gp_io_print_error(const char *program, const struct gp_err *err);
void gp_io_print_note(const char *program, const char *text);

/* Columns for lines on standard output: $COLUMNS if it is a number, otherwise those of the
 * terminal; 0: no limit. */
size_t gp_io_columns(void);

/* The path of the running executable. */
int gp_io_own_program(char ret[GP_PATH_SIZE], struct gp_err *err) GP_MUST_CHECK;

/* Finds a companion file of this program (a helper program, the simulated driver, its machines):
 * next to the running executable (in `sub` below it, in a build tree), otherwise in
 * ../libexec/gpulse, otherwise in ../share/gpulse; a program in libexec/gpulse finds gpulse in
 * ../../bin. */
int gp_io_find_companion(const char *sub, const char *name, char out[GP_PATH_SIZE],
                         struct gp_err *err) GP_MUST_CHECK;

/* Appends the names of the files in a directory that end in `suffix`, without the suffix, sorted,
 * one per line; nothing if the directory cannot be read. */
void gp_io_list_names(const char *dir, const char *suffix, struct gp_strbuf *sb);

#endif
