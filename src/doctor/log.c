#include "doctor/log.h"

#include "doctor/exam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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
    uint64_t number;              /* of the line; 0: unknown */
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

static void take_line(struct reader *r, const char *text)
{
    struct gp_kmsg k;
    if (!gp_kmsg_parse(text, &k))
        return;
    if (k.kind == GP_KMSG_BOOT) {
        r->log->count = 0; /* the earlier boot is over */
        r->subject[0] = '\0';
        return;
    }
    if (k.bus_id[0])
        memcpy(r->subject, k.bus_id, sizeof(r->subject));
    else if (k.kind == GP_KMSG_SUBJECT || k.kind == GP_KMSG_LEGACY)
        r->subject[0] = '\0'; /* matches a GPU without an address */
    else
        memcpy(k.bus_id, r->subject, sizeof(k.bus_id));
    if (gp_kmsg_is_notable(k.kind))
        keep(r, text, &k);
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

/* One record per read; a record that was overwritten meanwhile is skipped. */
static int read_records(struct reader *r, int fd)
{
    char buf[LINE_SIZE];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf) - 1);
        if (n < 0 && (errno == EINTR || errno == EPIPE))
            continue;
        if (n <= 0)
            return n < 0 && errno != EAGAIN ? -errno : 0;
        buf[n] = '\0';
        buf[strcspn(buf, "\n")] = '\0'; /* device names follow */
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

/* Whether users can write to a log, too. Syslog daemons keep the kernel's facility for the kernel,
 * but in a log of all programs nothing but a tag says where a line is from. */
static bool is_shared(const char *path)
{
    return strcmp(path, "/var/log/syslog") == 0 || strcmp(path, "/var/log/messages") == 0;
}

static void read_log(struct gp_exam *exam, struct gp_log *log)
{
    struct reader r = {.exam = exam, .log = log};
    struct stat st;
    int fd = gp_log_open(&exam->files, &log->path);
    log->error = fd < 0 ? fd : 0;
    log->is_shared = is_shared(log->path);
    if (fd >= 0) {
        log->error = fstat(fd, &st) < 0    ? -errno
                     : S_ISREG(st.st_mode) ? read_file(&r, fd)
                                           : read_records(&r, fd);
        (void)close(fd);
    }
    if (log->error < 0) {
        log->path = NULL;
        log->count = 0;
    }
}

const struct gp_log *gp_log_of(struct gp_exam *exam)
{
    static const struct gp_log nothing = {.error = -ENOMEM};
    if (exam->log)
        return exam->log;
    struct gp_log *log = gp_arena_alloc(&exam->arena, 1, sizeof(*log));
    struct gp_log_line *lines = gp_arena_alloc(&exam->arena, GP_LOG_LINES, sizeof(*lines));
    if (!log || !lines)
        return exam->log = &nothing;
    *log = (struct gp_log){.lines = lines};
    exam->log = log;
    read_log(exam, log);
    return log;
}

const struct gp_log_line *gp_log_find_for(struct gp_exam *exam, enum gp_kmsg_kind kind,
                                          const char *bus_id)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = log->count; i > 0; i--) {
        const struct gp_log_line *line = &log->lines[i - 1];
        if (line->kmsg.kind != kind)
            continue;
        if (!bus_id || !line->kmsg.bus_id[0] || strcmp(line->kmsg.bus_id, bus_id) == 0)
            return line;
    }
    return NULL;
}

const struct gp_log_line *gp_log_find(struct gp_exam *exam, enum gp_kmsg_kind kind)
{
    return gp_log_find_for(exam, kind, NULL);
}
