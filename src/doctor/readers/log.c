#include "doctor/readers/log.h"

#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/libvirt.h"
#include "doctor/readers/podlogs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_SIZE = 8192,      /* the maximum length of a /dev/kmsg record */
    TEXT_SIZE = 512,       /* stored per line */
    KNOWN_SIZE = 800,      /* of programs, whose reason may come last */
    MOST_BYTES = 16 << 20, /* at the end of a file */
    LOOK_BACK = 16,
};

static const char kernel_log[] = "/dev/kmsg";

struct reader {
    struct gp_exam *exam;
    struct gp_log *log;
    const char *path;
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

/* ---- known errors ---- */

/* Whether users can write to a log, too. Syslog daemons keep the kernel's facility for the kernel,
 * but in a log of all programs nothing but a tag says where a line is from. */
static bool is_shared(const char *path)
{
    return strcmp(path, "/var/log/syslog") == 0 || strcmp(path, "/var/log/messages") == 0;
}

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)p[i]))
            return false;
    return true;
}

/* "01:00" with nothing that makes it a part of a longer number or a time. */
static bool is_place(const char *text, const char *p)
{
    return is_hex(p, 2) && p[2] == ':' && is_hex(p + 3, 2) && p[5] == '.' && p[6] >= '0' &&
           p[6] <= '7' && !isalnum((unsigned char)p[7]) &&
           (p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != ':' && p[-1] != '.'));
}

/* The address in a line, "0000:01:00.0"; "": it has none. */
static void find_address(const char *text, char ret[GP_KMSG_BUS_ID])
{
    *ret = '\0';
    for (const char *p = text; *p; p++) {
        bool is_whole = is_hex(p, 4) && p[4] == ':' && is_hex(p + 5, 2) && p[7] == ':' &&
                        is_hex(p + 8, 2) && (p == text || !isalnum((unsigned char)p[-1]));
        if (is_whole)
            (void)snprintf(ret, GP_KMSG_BUS_ID, "%.10s.%c", p,
                           p[10] == '.' && isdigit((unsigned char)p[11]) ? p[11] : '0');
        else if (is_place(text, p))
            (void)snprintf(ret, GP_KMSG_BUS_ID, "0000:%.7s", p);
        else
            continue;
        for (char *c = ret; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        return;
    }
}

/* Whether a line is about a GPU of the machine, or about no PCI device. */
static bool is_of_gpu(const struct gp_exam *exam, const char *address)
{
    enum { SAME_DEVICE = 10 }; /* "0000:01:00": a GPU's sound and USB-C are functions of it */
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (strncmp(exam->machine.gpus[i].bus_id, address, SAME_DEVICE) == 0)
            return true;
    return !address[0];
}

/* Keeps a line that is a finding by itself; of each error on a device the first one, and how often
 * its file has it. */
static void keep_known(struct reader *r, const char *text)
{
    struct gp_log *log = r->log;
    char address[GP_KMSG_BUS_ID];
    unsigned weight;
    const struct gp_error_entry *entry = gp_entry_of_line(text, &weight);
    if (!entry || entry->log == GP_VERDICT_OK)
        return;
    find_address(text, address);
    if (!is_of_gpu(r->exam, address))
        return;
    for (size_t i = 0; i < log->known_count; i++)
        if (log->known[i].id == entry->id && strcmp(log->known[i].address, address) == 0) {
            log->known[i].times += log->known[i].path == r->path;
            return;
        }
    if (log->known_count == GP_LOG_KNOWN)
        return;
    const char *where =
        r->number ? gp_exam_text(r->exam, "%s:%llu", r->path, (unsigned long long)r->number)
                  : r->path;
    log->known[log->known_count++] =
        (struct gp_log_known){.id = entry->id,
                              .family = entry->family,
                              .look = entry->look,
                              .cause = entry->cause,
                              .fix = entry->fix,
                              .verdict = (enum gp_verdict)entry->log,
                              .text = gp_exam_text(r->exam, "%.*s", KNOWN_SIZE, text),
                              .path = r->path,
                              .where = where,
                              .times = 1,
                              .is_shared = is_shared(r->path),
                              .is_general = gp_entry_is_generic(weight)};
    memcpy(log->known[log->known_count - 1].address, address, sizeof(address));
}

static void take_line(struct reader *r, const char *text)
{
    struct gp_kmsg k;
    keep_known(r, text);
    if (!gp_kmsg_parse(text, &k))
        return;
    if (k.kind == GP_KMSG_BOOT) {
        r->log->known_count = 0;
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

/* Whether a program writes this line when it starts: what is before it is past. */
static bool is_start(const char *text)
{
    static const char toolkit[] =
        "-- WARNING, the following logs are for debugging purposes only --";
    return strcmp(text, toolkit) == 0 || strstr(text, ": starting up libvirt version: ");
}

/* The lines of one log since the last boot that it tells; in some, since the program's last start.
 */
static void read_program(struct gp_exam *exam, struct gp_log *log, const char *path,
                         const char *all, size_t length)
{
    char text[LINE_SIZE];
    size_t n, before = log->known_count;
    struct reader r = {.exam = exam, .log = log, .path = path};
    const char *line;
    struct gp_lines lines = gp_lines_of(all, all ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        struct gp_kmsg k;
        (void)snprintf(text, sizeof(text), "%.*s", (int)(n < LINE_SIZE ? n : LINE_SIZE - 1), line);
        if (is_start(text) || (gp_kmsg_parse(text, &k) && k.kind == GP_KMSG_BOOT))
            log->known_count = before;
        keep_known(&r, text);
    }
}

enum { MOST_TEXT = 1 << 20, MOST_FILES = 64 };

/* Likewise, of the end of a file. */
static void read_end(struct gp_exam *exam, struct gp_log *log, const char *path, size_t most)
{
    size_t length = 0;
    const char *all = gp_files_tail(&exam->files, &exam->arena, path, most, &length);
    read_program(exam, log, path, all, length);
}

/* The programs' messages in the logs of a syslog daemon, where the kernel's own are, too, and in
 * logs of their own. */
static void read_programs(struct gp_exam *exam, struct gp_log *log)
{
    static const char *const paths[] = {"/var/log/syslog",
                                        "/var/log/messages",
                                        "/var/log/daemon.log",
                                        "/var/log/docker.log",
                                        "/var/log/slurm/slurmd.log",
                                        "/var/log/slurm-llnl/slurmd.log",
                                        "/var/log/slurmd.log",
                                        "/var/log/ollama.log",
                                        "/var/log/nvidia-container-toolkit.log",
                                        "/var/log/nvidia-container-runtime.log",
                                        "/var/log/nvidia-mps/control.log",
                                        "/var/log/nvidia-mps/server.log",
                                        "/var/log/nv-hostengine.log"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (!log->path || strcmp(log->path, paths[i]) != 0)
            read_end(exam, log, paths[i], MOST_TEXT);
}

/* What NVIDIA's containers on a node of Kubernetes have printed. */
static void read_pods(struct gp_exam *exam, struct gp_log *log)
{
    const char *paths[GP_POD_LOGS];
    size_t count = gp_pod_logs(exam, paths);
    for (size_t i = 0; i < count; i++)
        read_end(exam, log, paths[i], MOST_TEXT / 4);
}

/* Drops lines that name no device: they are about others than the GPU, or continue the line before.
 */
static void drop_nameless(struct gp_log *log, size_t first)
{
    size_t n = first;
    for (size_t i = first; i < log->known_count; i++)
        if (log->known[i].address[0])
            log->known[n++] = log->known[i];
    log->known_count = n;
}

/* What QEMU said of libvirt's virtual machines that have a GPU now, and were started since the
 * boot: the logs stay when a machine is deleted. */
static void read_virtual_machines(struct gp_exam *exam, struct gp_log *log)
{
    static const char folder[] = "/var/log/libvirt/qemu";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names), count = 0;
    for (long i = 0; i < n && count < MOST_FILES; i++) {
        size_t size = strlen(names[i]);
        if (size < 4 || strcmp(names[i] + size - 4, ".log") != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *name = gp_exam_text(exam, "%.*s", (int)(size - 4), names[i]);
        if (!gp_log_is_of_boot(exam, path) || !gp_libvirt_has_gpu(exam, name))
            continue;
        size_t first = log->known_count;
        read_end(exam, log, path, MOST_TEXT / 16);
        drop_nameless(log, first);
        count++;
    }
}

/* Whether nothing shows that a GPU was wanted for the container. */
static bool is_without_gpu(const struct gp_docker_container *c)
{
    const char *runtime = gp_docker_text(c->host, "Runtime");
    return c->host && !gp_docker_has_device(c, "/dev/dri") &&
           !gp_docker_has_device(c, "/dev/kfd") && !gp_docker_has_device(c, "/dev/nvidia") &&
           json_array_size(gp_docker_requests(c)) == 0 &&
           !(runtime && (strstr(runtime, "nvidia") || strstr(runtime, "amd")));
}

/* Programs that try a GPU say so where there is none: no fault, and not worth a line where they
 * are configured for the CPU. */
static void lower_tried(struct gp_log *log, size_t first, bool is_for_cpu)
{
    static const char tried[] = "cuda.100,cuda.count-100,ffmpeg.cuinit-none,ld.libcuda,ld.nvml,"
                                "nvdec.library,ollama.fallback,ollama.no-gpu,video.libcuda";
    for (size_t i = first; i < log->known_count; i++)
        if (gp_exam_is_listed(tried, log->known[i].id)) {
            log->known[i].verdict = GP_VERDICT_INFO;
            log->known[i].is_told = is_for_cpu;
        }
}

/* What a running container of docker has printed since it was started; why another one did not
 * start: "failed to …\nnvidia-container-cli: …" */
static void read_container(struct gp_exam *exam, const struct gp_docker_container *c,
                           void *argument)
{
    struct gp_log *log = argument;
    const json_t *state = json_object_get(c->config, "State");
    const char *error = gp_docker_text(state, "Error");
    size_t length = 0;
    if (!c->is_running && error) {
        read_program(exam, log, c->config_path, gp_exam_text(exam, "%s", error), strlen(error));
    } else if (c->is_running) {
        const char *all = gp_docker_printed(exam, c, &length);
        size_t first = log->known_count;
        read_program(exam, log, c->log_path, all, length);
        const char *path, *own = gp_docker_jellyfin(exam, c, &path, &length);
        if (own)
            read_program(exam, log, path, own, length);
        if (is_without_gpu(c) || gp_docker_is_for_cpu(c))
            lower_tried(log, first, gp_docker_is_for_cpu(c));
    }
}

/* Programs that write a file each time, with the time in its name: the last one tells what is so
 * now. A folder without a slash at its start is below the home directory. */
static const struct {
    const char *folder, *start;
} dated[] = {
    {"/var/log/jellyfin", "FFmpeg.Transcode"},
    {".config/obs-studio/logs", "20"},
    {".var/app/com.obsproject.Studio/config/obs-studio/logs", "20"},
};

static void read_dated(struct gp_exam *exam, struct gp_log *log)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    for (size_t i = 0; i < GP_ARRAY_LEN(dated); i++) {
        const char *folder = dated[i].folder, *start = dated[i].start;
        char **names;
        if (folder[0] != '/')
            folder = gp_exam_text(exam, "%s/%s", home && home[0] == '/' ? home : "/root", folder);
        long last = gp_files_list(&exam->files, &exam->arena, folder, &names) - 1;
        while (last >= 0 && strncmp(names[last], start, strlen(start)) != 0)
            last--;
        if (last >= 0)
            read_end(exam, log, gp_exam_text(exam, "%s/%s", folder, names[last]), MOST_TEXT / 16);
    }
}

static void read_log(struct gp_exam *exam, struct gp_log *log)
{
    struct reader r = {.exam = exam, .log = log};
    struct stat st;
    int fd = gp_log_open(&exam->files, &log->path);
    r.path = log->path;
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
        log->count = log->known_count = 0;
    }
    read_programs(exam, log);
    read_pods(exam, log);
    read_virtual_machines(exam, log);
    (void)gp_docker_each(exam, read_container, log);
    read_dated(exam, log);
}

const struct gp_log *gp_log_of(struct gp_exam *exam)
{
    static const struct gp_log nothing = {.error = -ENOMEM};
    if (exam->log)
        return exam->log;
    struct gp_log *log = gp_arena_alloc(&exam->arena, 1, sizeof(*log));
    struct gp_log_line *lines = gp_arena_alloc(&exam->arena, GP_LOG_LINES, sizeof(*lines));
    struct gp_log_known *known = gp_arena_alloc(&exam->arena, GP_LOG_KNOWN, sizeof(*known));
    if (!log || !lines || !known)
        return exam->log = &nothing;
    *log = (struct gp_log){.lines = lines, .known = known};
    exam->log = log;
    read_log(exam, log);
    return log;
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

long long gp_log_booted_at(struct gp_exam *exam)
{
    static const char key[] = "\nbtime ";
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/stat", 1 << 18, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    return found ? strtoll(found + sizeof(key) - 1, NULL, 10) : 0;
}

bool gp_log_is_of_boot(struct gp_exam *exam, const char *path)
{
    long long booted = gp_log_booted_at(exam);
    struct stat st;
    return booted > 0 && gp_files_stat(&exam->files, path, &st) == 0 && st.st_mtime >= booted;
}
