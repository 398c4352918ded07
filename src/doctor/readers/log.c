#include "doctor/readers/log.h"

#include "doctor/exam.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/log_programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_SIZE = 8192,      /* the maximum length of a /dev/kmsg record */
    TEXT_SIZE = 512,       /* stored per line */
    MOST_BYTES = 16 << 20, /* at the end of a file */
    LOOK_BACK = 16,
};

static const char kernel_log[] = "/dev/kmsg";

struct reader {
    struct gp_exam *exam;
    struct gp_log *log;
    const char *path;
    uint64_t number;              /* of the line; 0: unknown */
    bool is_timed;                /* a line with a time since boot was read */
    char subject[GP_KMSG_BUS_ID]; /* the GPU that the previous lines were about */
};

/* ---- lines ---- */

static bool is_same(const struct gp_kmsg *a, const struct gp_kmsg *b)
{
    return a->kind == b->kind && a->code == b->code && a->clock == b->clock && a->pid == b->pid &&
           a->gpu_instance == b->gpu_instance && strcmp(a->bus_id, b->bus_id) == 0 &&
           strcmp(a->process, b->process) == 0;
}

static const char *stamp_of(struct gp_exam *exam, const struct gp_kmsg *k)
{
    return gp_exam_text(exam, "%.*s", (int)k->stamp_length, k->stamp);
}

/* Counts it with a recent line of the same meaning, if there is one. */
static bool join(struct reader *r, const struct gp_kmsg *k)
{
    size_t count = r->log->count;
    for (size_t i = count; i > 0 && i + LOOK_BACK > count; i--) {
        struct gp_log_line *line = &r->log->lines[i - 1];
        if (!is_same(&line->kmsg, k) || k->time_ns > line->last_ns + GP_LOG_SILENCE_NS)
            continue;
        line->repeats++;
        line->last_ns = k->time_ns;
        line->last_stamp = stamp_of(r->exam, k);
        return true;
    }
    return false;
}

static void keep(struct reader *r, const char *text, const struct gp_kmsg *k)
{
    struct gp_log *log = r->log;
    if (join(r, k))
        return;
    if (log->count == GP_LOG_LINES) { /* drop the oldest */
        log->is_cut = true;
        log->count -= GP_LOG_LINES / 4;
        memmove(log->lines, log->lines + GP_LOG_LINES / 4, log->count * sizeof(*log->lines));
    }
    struct gp_log_line *line = &log->lines[log->count];
    const char *kept = gp_exam_text(r->exam, "%.*s", TEXT_SIZE, text);
    *line = (struct gp_log_line){.text = kept, .where = log->path, .last_ns = k->time_ns};
    if (!gp_kmsg_parse(kept, &line->kmsg)) /* again: its texts point into the copy */
        return;
    (void)snprintf(line->kmsg.bus_id, sizeof(line->kmsg.bus_id), "%s", k->bus_id);
    line->last_stamp = stamp_of(r->exam, &line->kmsg);
    if (r->number)
        line->where = gp_exam_text(r->exam, "%s:%llu", log->path, (unsigned long long)r->number);
    log->count++;
}

static void note_loaded(struct reader *r, const struct gp_kmsg *k)
{
    struct gp_log_loaded *loaded = &r->log->loaded;
    if (k->clock != GP_KMSG_SINCE_BOOT || loaded->text)
        return;
    loaded->time_ns = k->time_ns;
    loaded->text = gp_exam_text(r->exam, "%.*s", TEXT_SIZE, k->body);
    loaded->where = r->number
                        ? gp_exam_text(r->exam, "%s:%llu", r->path, (unsigned long long)r->number)
                        : r->path;
}

/* Keeps a line about GPUs if it is notable, for the GPU that it or those before it name. */
static void keep_notable(struct reader *r, const char *text, struct gp_kmsg *k)
{
    if (k->bus_id[0])
        memcpy(r->subject, k->bus_id, sizeof(r->subject));
    else if (k->kind == GP_KMSG_SUBJECT || k->kind == GP_KMSG_LEGACY)
        r->subject[0] = '\0'; /* matches a GPU without an address */
    else
        memcpy(k->bus_id, r->subject, sizeof(k->bus_id));
    if (gp_kmsg_is_notable(k->kind))
        keep(r, text, k);
}

static void take_line(struct reader *r, const char *text)
{
    struct gp_kmsg k;
    gp_log_keep_known(r->exam, r->log, (struct gp_log_place){.path = r->path, .line = r->number},
                      text);
    bool is_about_gpus = gp_kmsg_parse(text, &k);
    if (!r->is_timed && k.clock == GP_KMSG_SINCE_BOOT) {
        r->log->first_ns = k.time_ns; /* the first lines of all have the time 0 */
        r->is_timed = true;
    }
    if (!is_about_gpus)
        return;
    if (k.kind == GP_KMSG_BOOT) {
        r->log->known_count = 0;
        r->log->count = 0; /* the earlier boot is over */
        r->log->loaded = (struct gp_log_loaded){0};
        r->subject[0] = '\0';
        return;
    }
    if (k.kind == GP_KMSG_LOADED)
        note_loaded(r, &k);
    keep_notable(r, text, &k);
}

/* ---- sources ---- */

/* Processes the complete lines of the buffer; moves the rest to its head and returns the length. */
static size_t take_lines(struct reader *r, char *buf, size_t length, bool *is_within)
{
    char *p = buf, *end;
    while ((end = memchr(p, '\n', length - (size_t)(p - buf)))) {
        *end = '\0';
        if (!*is_within)
            take_line(r, p);
        *is_within = false;
        r->number += r->number > 0;
        p = end + 1;
    }
    length -= (size_t)(p - buf);
    if (length + 1 == LINE_SIZE) { /* too long for a kernel line */
        *is_within = true;
        length = 0;
    }
    memmove(buf, p, length);
    return length;
}

static int read_file(struct reader *r, int fd)
{
    char buf[LINE_SIZE];
    size_t length = 0;
    ssize_t n;
    off_t size = lseek(fd, 0, SEEK_END);
    off_t start = size > MOST_BYTES ? size - MOST_BYTES : 0;
    bool is_within = start > 0;
    if (size < 0 || lseek(fd, start, SEEK_SET) < 0)
        return -errno;
    r->log->is_cut = is_within;
    r->number = start == 0;
    while ((n = read(fd, buf + length, sizeof(buf) - 1 - length)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        length = take_lines(r, buf, length + (size_t)n, &is_within);
    }
    buf[length] = '\0';
    if (length > 0 && !is_within)
        take_line(r, buf);
    return 0;
}

/* The number of a record since boot, "6,339,5140900,-;NVRM: …". */
static unsigned long number_of(const char *record)
{
    const char *comma = strchr(record, ',');
    return comma ? strtoul(comma + 1, NULL, 10) : 0;
}

/* One record per read; a record that was overwritten meanwhile is skipped. */
static int read_records(struct reader *r, int fd)
{
    char buf[LINE_SIZE];
    for (bool is_first = true;; is_first = false) {
        ssize_t n = read(fd, buf, sizeof(buf) - 1);
        if (n < 0 && (errno == EINTR || errno == EPIPE))
            continue;
        if (n <= 0)
            return n < 0 && errno != EAGAIN ? -errno : 0;
        buf[n] = '\0';
        buf[strcspn(buf, "\n")] = '\0'; /* device names follow */
        if (is_first)
            r->log->is_cut = number_of(buf) > 0;
        take_line(r, buf);
    }
}

int gp_log_open(const struct gp_files *files, const char **ret_path)
{
    static const char *const paths[] = {kernel_log, "/var/log/kern.log", "/var/log/dmesg",
                                        "/var/log/syslog", "/var/log/messages"};
    int error = -ENOENT;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        int fd = i == 0 ? gp_files_open_kmsg(files) : gp_files_open_file(files, paths[i]);
        *ret_path = paths[i];
        if (fd >= 0)
            return fd;
        if (error == -ENOENT || error == -EINVAL)
            error = fd;
    }
    return error;
}

static void take_record(const struct gp_journal_line *line, void *argument)
{
    take_line(argument, line->text);
}

static struct gp_log *new_log(struct gp_exam *exam)
{
    struct gp_log *log = gp_arena_alloc(&exam->arena, 1, sizeof(*log));
    struct gp_log_line *lines = gp_arena_alloc(&exam->arena, GP_LOG_LINES, sizeof(*lines));
    struct gp_log_known *known = gp_arena_alloc(&exam->arena, GP_LOG_KNOWN, sizeof(*known));
    if (!log || !lines || !known)
        return NULL;
    *log = (struct gp_log){.lines = lines, .known = known};
    return log;
}

/* The kernel's messages from the journal, which users of some groups may read where the kernel
 * gives them to root alone. False: it has none, or fewer than what has been read. */
static bool read_journal(struct gp_exam *exam, struct gp_log *ret)
{
    struct gp_log *log = new_log(exam);
    struct reader r = {.exam = exam, .log = log, .path = gp_journal_kernel_command};
    if (!log)
        return false;
    log->path = r.path;
    long count = gp_journal_kernel(exam, take_record, &r);
    log->is_cut |= count == GP_JOURNAL_KERNEL;
    bool is_more = count > 0 && (!ret->path || log->first_ns < ret->first_ns);
    if (is_more)
        *ret = *log;
    return is_more;
}

static void read_opened(struct gp_exam *exam, struct gp_log *log, const char *path, int fd)
{
    struct reader r = {.exam = exam, .log = log, .path = path};
    struct stat st;
    log->path = path;
    log->is_shared = gp_log_is_shared(path);
    log->error = fstat(fd, &st) < 0    ? -errno
                 : S_ISREG(st.st_mode) ? read_file(&r, fd)
                                       : read_records(&r, fd);
    if (log->error < 0) {
        log->path = NULL;
        log->count = log->known_count = 0;
    }
}

/* From the kernel itself, which keeps a few thousand messages; else from the journal, which says
 * who a message is from; else from a file. */
static void read_kernel(struct gp_exam *exam, struct gp_log *log)
{
    const char *path;
    int fd = gp_log_open(&exam->files, &path);
    bool is_device = fd >= 0 && strcmp(path, kernel_log) == 0;
    log->error = fd < 0 ? fd : 0;
    if (is_device)
        read_opened(exam, log, path, fd);
    bool is_whole = is_device && !log->is_cut;
    bool is_of_journal = !is_whole && read_journal(exam, log);
    if (fd >= 0 && !is_device && !is_of_journal)
        read_opened(exam, log, path, fd);
    if (fd >= 0)
        (void)close(fd);
}

static void read_log(struct gp_exam *exam, struct gp_log *log)
{
    read_kernel(exam, log);
    gp_log_read_programs(exam, log);
}

static const struct gp_log no_memory = {.error = -ENOMEM};

const struct gp_log *gp_log_of(struct gp_exam *exam)
{
    struct gp_log *log = exam->log ? NULL : new_log(exam);
    if (!exam->log)
        exam->log = log ? log : &no_memory;
    if (log)
        read_log(exam, log);
    return exam->log;
}

static void take_earlier(const struct gp_journal_line *line, void *argument)
{
    struct gp_kmsg k;
    if (gp_kmsg_parse(line->text, &k))
        keep_notable(argument, line->text, &k);
}

const struct gp_log *gp_log_earlier(struct gp_exam *exam)
{
    struct gp_log *log = exam->earlier ? NULL : new_log(exam);
    struct reader r = {.exam = exam, .log = log, .path = gp_journal_earlier_command};
    if (!exam->earlier)
        exam->earlier = log ? log : &no_memory;
    if (log) {
        log->path = r.path;
        long count = gp_journal_earlier(exam, take_earlier, &r);
        log->error = count < 0 ? (int)count : 0;
    }
    return exam->earlier;
}

const struct gp_log_line *gp_log_at_boot(struct gp_exam *exam, enum gp_kmsg_kind kind)
{
    static const uint64_t settled_ns = 120 * GP_NS_PER_S;
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_kmsg *k = &log->lines[i].kmsg;
        if (k->kind == kind)
            return k->clock == GP_KMSG_SINCE_BOOT && k->time_ns < settled_ns ? &log->lines[i]
                                                                             : NULL;
    }
    return NULL;
}

const struct gp_log_line *gp_log_find_for(struct gp_exam *exam, enum gp_kmsg_kind kind,
                                          const char *bus_id)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = log->count; i > 0; i--) {
        const struct gp_kmsg *k = &log->lines[i - 1].kmsg;
        if (k->kind == kind && (!bus_id || !k->bus_id[0] || strcmp(k->bus_id, bus_id) == 0))
            return &log->lines[i - 1];
    }
    return NULL;
}

const struct gp_log_line *gp_log_find(struct gp_exam *exam, enum gp_kmsg_kind kind)
{
    return gp_log_find_for(exam, kind, NULL);
}

const struct gp_log_line *gp_log_xid(struct gp_exam *exam, const char *bus_id, unsigned xid)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = log->count; i > 0; i--) {
        const struct gp_kmsg *k = &log->lines[i - 1].kmsg;
        if (k->kind == GP_KMSG_XID && k->code == xid && strcmp(k->bus_id, bus_id) == 0)
            return &log->lines[i - 1];
    }
    return NULL;
}

/* ---- known errors, for checks ---- */

/* Whether the line is about this GPU ("": any), or names no device. */
static bool may_concern(const struct gp_log_known *known, const char *bus_id)
{
    enum { SAME_DEVICE = 10 }; /* "0000:01:00": its functions differ only in the last digit */
    return !known->address[0] || !bus_id[0] || strncmp(known->address, bus_id, SAME_DEVICE) == 0;
}

const struct gp_log_known *gp_log_reason(struct gp_exam *exam, const char *families,
                                         const char *bus_id)
{
    const struct gp_log *log = gp_log_of(exam);
    struct gp_log_known *best = NULL;
    for (size_t i = 0; i < log->known_count; i++) {
        struct gp_log_known *known = &log->known[i];
        if (gp_exam_is_listed(families, known->family) && known->verdict >= GP_VERDICT_WARN &&
            may_concern(known, bus_id) &&
            (!best || best->is_general || (known->verdict > best->verdict && !known->is_general)))
            best = known;
    }
    if (best)
        best->is_told = true;
    return best;
}

const struct gp_log_known *gp_log_find_known(struct gp_exam *exam, const char *ids)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (gp_exam_is_listed(ids, log->known[i].id))
            return &log->known[i];
    return NULL;
}

const struct gp_log_known *gp_log_known_of(struct gp_exam *exam, const char *ids)
{
    return gp_log_known_for(exam, ids, "");
}

const struct gp_log_known *gp_log_known_for(struct gp_exam *exam, const char *ids,
                                            const char *bus_id)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++) {
        if (!gp_exam_is_listed(ids, log->known[i].id) || !may_concern(&log->known[i], bus_id))
            continue;
        log->known[i].is_told = true;
        return &log->known[i];
    }
    return NULL;
}
