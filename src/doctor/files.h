/* The files of the machine that is examined, below a root: "/" or a folder that holds a copy of
 * one.
 *
 * Links are followed within the root, as the machine itself would. Only regular files are read, and
 * none is waited for: a FIFO, a device or a loop of links is an error like any other. What lies on
 * a file system that does not answer is -ETIMEDOUT, once that is known. */
#ifndef GP_DOCTOR_FILES_H
#define GP_DOCTOR_FILES_H

#include "base/io.h"

#include <sys/stat.h>

struct gp_arena;
struct gp_err;
struct gp_stall;

struct gp_files {
    int fd;                 /* of the root, −1: none */
    bool is_here;           /* it is "/" */
    struct gp_stall *stall; /* told of what may take for ever; NULL: nobody looks */
    char root[GP_PATH_SIZE];
};

/* `root` NULL or "" is "/". Paths below are absolute ones of the machine. */
int gp_files_open(struct gp_files *files, const char *root, struct gp_err *err) GP_MUST_CHECK;
void gp_files_close(struct gp_files *files);

/* A descriptor to read a regular file, or −errno; what is no file is −EINVAL. */
int gp_files_open_file(const struct gp_files *files, const char *path) GP_MUST_CHECK;

/* The kernel's own log, /dev/kmsg: of the machine itself the device, whose reads give a record each
 * and −EAGAIN behind the last; below another root a file. A descriptor, or −errno. */
int gp_files_open_kmsg(const struct gp_files *files) GP_MUST_CHECK;

/* The first cap − 1 bytes of a file, NUL-terminated; their number, or −errno. A file that was made
 * elsewhere may have NUL bytes in it. */
long gp_files_read(const struct gp_files *files, const char *path, char *buf, size_t cap);

/* The same in memory of the arena, `max` bytes at most, with two NULs behind them; NULL with errno
 * if it cannot be read. */
char *gp_files_text(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length);

/* The last `max` bytes of a file, from the beginning of a line on; otherwise the same. */
char *gp_files_tail(const struct gp_files *files, struct gp_arena *arena, const char *path,
                    size_t max, size_t *ret_length);

/* The file without the blanks at the end of its first line; false if it cannot be read. */
bool gp_files_line(const struct gp_files *files, const char *path, char *buf, size_t cap);

/* 0 or −errno; stat_link() does not follow the last link. */
int gp_files_stat(const struct gp_files *files, const char *path, struct stat *ret);
int gp_files_stat_link(const struct gp_files *files, const char *path, struct stat *ret);
bool gp_files_exist(const struct gp_files *files, const char *path);

/* What a link says, and where a path leads to behind all links (a path of the machine). False if it
 * is no link, or leads nowhere. */
bool gp_files_link(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE]);
bool gp_files_real(const struct gp_files *files, const char *path, char ret[GP_PATH_SIZE]);

/* The names in a folder, sorted by bytes, in memory of the arena; GP_FILES_NAMES at most. Returns
 * their number, or −errno. */
enum { GP_FILES_NAMES = 65536 };
long gp_files_list(const struct gp_files *files, struct gp_arena *arena, const char *path,
                   char ***ret);

/* A whole file, mapped for reading; false if it cannot be, or is empty. To be unmapped with
 * munmap(). A file that shrinks meanwhile kills: only for files that packages install. */
bool gp_files_map(const struct gp_files *files, const char *path, const void **ret, size_t *size);

#endif
