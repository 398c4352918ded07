/* The kernel's log of the machine that is examined, read once, when a check first asks for it. */
#ifndef GP_DOCTOR_LOG_H
#define GP_DOCTOR_LOG_H

#include "doctor/kmsg.h"

struct gp_exam;
struct gp_files;

enum { GP_LOG_LINES = 1024 };

/* Xids with less silence than this between them belong together. */
#define GP_LOG_SILENCE_NS (180 * GP_NS_PER_S)

/* A line, and those that say the same of the same GPU and program soon after it. */
struct gp_log_line {
    struct gp_kmsg kmsg; /* a GPU that it does not name is that of the lines before it */
    const char *text;
    const char *where; /* "/var/log/kern.log:1204"; of the kernel's own memory "/dev/kmsg" */
    uint64_t repeats;  /* so many more */
    uint64_t last_ns;  /* when the last of them came */
    const char *last_stamp;
};

struct gp_log {
    const char *path;          /* what was read; NULL: nothing could be */
    int error;                 /* why nothing could be: −EACCES, −ENOENT, … */
    bool is_shared;            /* users can write to it, too: "logger -t kernel" */
    struct gp_log_line *lines; /* those that are notable, since the machine was started */
    size_t count;
    bool is_cut; /* there was more than is kept, or read */
};

/* Opens the first of the files that can be one, to be read without waiting: a descriptor, or
 * −errno.
 */
int gp_log_open(const struct gp_files *files, const char **ret_path) GP_MUST_CHECK;

/* In memory of the exam; never NULL. */
const struct gp_log *gp_log_of(struct gp_exam *exam);

/* The last line of this kind since the machine was started; NULL: there is none. */
const struct gp_log_line *gp_log_find(struct gp_exam *exam, enum gp_kmsg_kind kind);

/* The same about one GPU, "0000:65:00.0"; lines that name none count for all. */
const struct gp_log_line *gp_log_find_for(struct gp_exam *exam, enum gp_kmsg_kind kind,
                                          const char *bus_id);

#endif
