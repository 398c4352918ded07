/* The files of the examined machine, below a root: "/" or a directory with a copy of a machine.
 *
 * Links are resolved within the root, as the machine itself would. Only regular files are read, and
 * without waiting: a FIFO, a device or a link loop is an error like any other. A path on a file
 * system known not to respond returns -ETIMEDOUT. */
#ifndef GP_DOCTOR_FILES_H
#define GP_DOCTOR_FILES_H

#include "base/io.h"

#include <sys/stat.h>

struct gp_arena;
struct gp_err;
struct gp_stall;

struct gp_files {
    int fd;                 /* of the root; −1: none */
    bool is_here;           /* the root is "/" */
    struct gp_stall *stall; /* records calls that may block forever; NULL: no watchdog */
    char root[GP_PATH_SIZE];
};

/* `root` NULL or "" is "/". All paths below are absolute paths of the machine. */
int gp_files_open(struct gp_files *files, const char *root, struct gp_err *err) GP_MUST_CHECK;
void gp_files_close(struct gp_files *files);

/* A descriptor to read a regular file, or −errno; anything else is −EINVAL. */
int gp_files_open_file(const struct gp_files *files, const char *path) GP_MUST_CHECK;

/* The kernel's own log, /dev/kmsg. On the machine itself it is the device, where each read returns
 * one record, and −EAGAIN after the last; below another root it is a file. A descriptor, or −errno.
 */
int gp_files_open_kmsg(const struct gp_files *files) GP_MUST_CHECK;

/* The first cap − 1 bytes of a file, NUL-terminated; returns their number, or −errno. A file from
 * elsewhere may contain NUL bytes. */
long gp_files_read(const struct gp_files *files, const char *path, char *buf, size_t cap);

/* Likewise in the arena: at most `max` bytes, followed by two NULs; NULL with errno if it cannot be
 * read. */
char *gp_files_text(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length);

/* The last `max` bytes of a file, from the beginning of a line on; otherwise likewise. */
char *gp_files_tail(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length);

/* The first line of the file without trailing whitespace; false if it cannot be read. */
bool gp_files_line(const struct gp_files *files, const char *path, char *buf, size_t cap);

/* 0 or −errno; stat_link() does not follow the last link. */
int gp_files_stat(const struct gp_files *files, const char *path, struct stat *ret);
int gp_files_stat_link(const struct gp_files *files, const char *path, struct stat *ret);
bool gp_files_exist(const struct gp_files *files, const char *path);
/* The first of these paths that exists; the list ends with NULL, which is also the result for none.
 */
const char *gp_files_first(const struct gp_files *files, const char *const *paths);

/* The target of a link, and the final path after all links (a path of the machine). False if it is
 * not a link, or leads nowhere. */
bool gp_files_link(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE]);
bool gp_files_real(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE]);

/* The names in a directory, sorted by bytes, in the arena; at most GP_FILES_NAMES. Returns their
 * number, or −errno. */
enum { GP_FILES_NAMES = 65536 };
long gp_files_list(const struct gp_files *files, struct gp_arena *arena, const char *path,
                   char ***ret);

/* A whole file, mapped for reading; false if that fails, or if it is empty. Release it with
 * munmap(). If the file shrinks meanwhile, the process gets SIGBUS: use it only for files that
 * packages install. */
bool gp_files_map(const struct gp_files *files, const char *path, const void **ret, size_t *size);

#endif
