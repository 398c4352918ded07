/* The kernel log of the examined machine, read once, on first use. */
#ifndef GP_DOCTOR_READERS_LOG_H
#define GP_DOCTOR_READERS_LOG_H

#include "doctor/check.h"
#include "doctor/readers/kmsg.h"

struct gp_exam;
struct gp_files;

enum { GP_LOG_LINES = 1024, GP_LOG_KNOWN = 48 };

/* Xids with gaps shorter than this belong together. */
#define GP_LOG_SILENCE_NS (180 * GP_NS_PER_S)

/* A line, and the ones with the same meaning for the same GPU and program soon after it. */
struct gp_log_line {
    struct gp_kmsg kmsg; /* if it names no GPU, that of the lines before it */
    const char *text;
    const char *where; /* "/var/log/kern.log:1204", or "/dev/kmsg" */
    uint64_t repeats;  /* number of repetitions */
    uint64_t last_ns;  /* time of the last one */
    const char *last_stamp;
};

/* A line that a known error explains which is a finding by itself (gp_entry's `log`): its first
 * occurrence for a device since boot of those that are as severe. */
struct gp_log_known {
    const char *id, *family, *look, *cause, *fix; /* of the error, as gp_entry has them */
    enum gp_verdict verdict;
    const char *text, *path, *where;
    const char *unit;             /* the service that has printed it; NULL: unknown */
    char address[GP_KMSG_BUS_ID]; /* of the device in the text; "" */
    unsigned long long times;
    uint64_t since_boot_ns; /* of a line in the journal; 0: unknown */
    bool is_shared;         /* users could have written it */
    bool is_told;           /* a check has reported it */
    bool is_general;        /* it says that something failed, others why */
};

/* That NVIDIA's module was loaded for the first time, as a kernel log with times since boot tells.
 */
struct gp_log_loaded {
    const char *text, *where; /* NULL: it is not told */
    uint64_t time_ns;         /* since boot */
};

struct gp_log {
    const char *path;          /* what was read; NULL: nothing could be */
    int error;                 /* why nothing could be: −EACCES, −ENOENT, … */
    bool is_shared;            /* users can write to it, too: "logger -t kernel" */
    struct gp_log_line *lines; /* those that are notable, since the machine was started */
    size_t count;
    struct gp_log_known *known;
    size_t known_count;
    uint64_t first_ns; /* the time since boot of the first line that has one; 0: or none has */
    struct gp_log_loaded loaded;
    bool is_cut; /* lines were dropped, or not read */
};

/* Opens the first file that can be a kernel log, for non-blocking reads: a descriptor, or −errno.
 */
int gp_log_open(const struct gp_files *files, const char **ret_path) GP_MUST_CHECK;

/* In the exam's arena; never NULL. */
const struct gp_log *gp_log_of(struct gp_exam *exam);

/* What the journal has of the boot before, as gp_journal_earlier() says; it has no known errors.
 * Likewise. */
const struct gp_log *gp_log_earlier(struct gp_exam *exam);

/* The first line of a kind, if it is from the start of the machine, rather than from when a program
 * asked for the driver later; NULL. */
const struct gp_log_line *gp_log_at_boot(struct gp_exam *exam, enum gp_kmsg_kind kind);

/* The last line of this kind since boot; NULL: there is none. */
const struct gp_log_line *gp_log_find(struct gp_exam *exam, enum gp_kmsg_kind kind);

/* Likewise for one GPU, "0000:65:00.0"; lines that name none match any GPU. */
const struct gp_log_line *gp_log_find_for(struct gp_exam *exam, enum gp_kmsg_kind kind,
                                          const char *bus_id);

/* The last Xid with this number of a GPU since boot; NULL: there is none. */
const struct gp_log_line *gp_log_xid(struct gp_exam *exam, const char *bus_id, unsigned xid);

/* The most severe known error in the logs of these families (a comma list), for a check that
 * reports what it led to; a line that names another device than this GPU ("": any) is none. It
 * counts as reported. NULL: there is none. */
const struct gp_log_known *gp_log_reason(struct gp_exam *exam, const char *families,
                                         const char *bus_id);

/* One of these errors (ids, a comma list) in the logs; it does not count as reported. NULL: there
 * is none. */
const struct gp_log_known *gp_log_find_known(struct gp_exam *exam, const char *ids);

/* One of these errors (ids, a comma list) in the logs; it counts as reported. NULL: there is none.
 */
const struct gp_log_known *gp_log_known_of(struct gp_exam *exam, const char *ids);

/* Likewise for one GPU; a line that names another device is none. */
const struct gp_log_known *gp_log_known_for(struct gp_exam *exam, const char *ids,
                                            const char *bus_id);

#endif
