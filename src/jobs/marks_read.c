#include "jobs/marks_read.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/marks.h"
#include "out/trace.h"
#include "proc/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PROCESSES_MOST = 256,
    TRIES = 8,
    CHUNK = 64,
    ROOM_BYTES = 128 << 20, /* Docker's /dev/shm has 64 MiB, which data loaders use as well */
};

static const char prefix[] = "gpulse-timeline-";

/* A process that writes. Its file is never mapped here: the process may truncate it. */
struct writer {
    int fd;
    uint32_t pid;
    uint32_t place; /* in the trace: the pid, or a number of its own */
    bool is_here;   /* the pid is one of this process's namespace */
    uint64_t tail;  /* the next event */
    uint64_t dropped;
};

struct gp_marks_reader {
    struct gp_marks copy; /* of one of them */
    char folder[64];
    int fd; /* locked as long as this process lives */
    struct writer writers[PROCESSES_MOST];
    size_t count;
    struct gp_pace pace; /* of those that have exited */
    size_t failed;
    uint32_t foreign; /* writers of other namespaces so far */
};

/* ---- the directory ---- */

/* NULL: it cannot be read. */
static DIR *open_list(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (!list && again >= 0)
        (void)close(again);
    return list;
}

static void empty(int fd)
{
    DIR *list = open_list(fd);
    for (struct dirent *entry; list && (entry = readdir(list));)
        (void)unlinkat(fd, entry->d_name, 0);
    if (list)
        (void)closedir(list);
}

/* Removes directories of this user whose reader was killed: nobody holds their lock. */
static void remove_leftovers(const char *place)
{
    DIR *list = opendir(place);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        struct stat st;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        int fd = gp_io_open_beneath(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
            flock(fd, LOCK_EX | LOCK_NB) == 0) {
            empty(fd);
            (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
        }
        if (fd >= 0)
            (void)close(fd);
    }
    if (list)
        (void)closedir(list);
}

/* mkdtemp() closes the directory to others. */
static bool create(struct gp_marks_reader *reader, const char *place)
{
    remove_leftovers(place);
    (void)snprintf(reader->folder, sizeof(reader->folder), "%s/%sXXXXXX", place, prefix);
    if (!mkdtemp(reader->folder))
        return false;
    reader->fd = open(reader->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (reader->fd >= 0 && flock(reader->fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(reader->fd, &st) == 0 && st.st_nlink > 0)
        return true;
    /* it is busy, or gone: another reader that removes leftovers was faster */
    const int error = errno;
    if (reader->fd >= 0)
        (void)close(reader->fd);
    (void)rmdir(reader->folder);
    errno = error;
    return false;
}

static bool has_room(const char *place)
{
    struct statvfs room;
    return statvfs(place, &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize >= ROOM_BYTES;
}

int gp_marks_reader_new(struct gp_marks_reader **ret, struct gp_err *err)
{
    struct gp_marks_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    static const char *const places[] = {"/dev/shm", "/tmp"};
    const bool first = !has_room(places[0]) && has_room(places[1]);
    bool is_created = false;
    for (unsigned i = 0; i < TRIES && !is_created; i++)
        is_created = create(reader, places[first]) || create(reader, places[!first]);
    if (!is_created) {
        int r = gp_err_system(err, errno, GP_EIO, "cannot create a directory in /dev/shm or /tmp");
        free(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

const char *gp_marks_reader_folder(const struct gp_marks_reader *reader)
{
    return reader->folder;
}

void gp_marks_reader_free(struct gp_marks_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->count; i++)
        (void)close(reader->writers[i].fd);
    empty(reader->fd);
    (void)rmdir(reader->folder);
    (void)close(reader->fd);
    free(reader);
}

/* ---- events ---- */

/* Texts in the file may have no end. */
struct name {
    char domain[GP_MARKS_DOMAIN + 1], text[GP_MARKS_TEXT + 1];
};

static struct name name_of(const struct gp_marks_name *from)
{
    struct name name;
    memcpy(name.domain, from->domain, GP_MARKS_DOMAIN);
    memcpy(name.text, from->text, GP_MARKS_TEXT);
    name.domain[GP_MARKS_DOMAIN] = name.text[GP_MARKS_TEXT] = '\0';
    return name;
}

static void name_process(const struct writer *writer, struct gp_trace *trace, const char *command)
{
    char text[GP_MARKS_TEXT + 40];
    int n = snprintf(text, sizeof(text), "%s", command);
    if (!writer->is_here)
        (void)snprintf(text + n, sizeof(text) - (size_t)n, " (pid %u of a container)", writer->pid);
    gp_trace_name_process(trace, writer->place, text, GP_TRACE_ORDER);
}

static void add_event(const struct writer *writer, struct gp_trace *trace, uint32_t kind,
                      const struct gp_trace_event *event)
{
    switch (kind) {
    case GP_MARKS_MARK:
        gp_trace_add_mark(trace, event);
        break;
    case GP_MARKS_SLICE:
        gp_trace_add_slice(trace, event);
        break;
    case GP_MARKS_RANGE:
        gp_trace_add_range(trace, event);
        break;
    case GP_MARKS_THREAD:
        gp_trace_name_thread(trace, event->place, event->name);
        break;
    case GP_MARKS_PROCESS:
        name_process(writer, trace, event->name);
        break;
    default: /* not written by us */
        break;
    }
}

static uint64_t at_most(uint64_t ns, uint64_t most_ns)
{
    return ns < most_ns ? ns : most_ns;
}

/* False: the file is shorter, because its process has cut it. */
static bool read_at(const struct writer *writer, size_t offset, void *to, size_t size)
{
    return pread(writer->fd, to, size, (off_t)offset) == (ssize_t)size;
}

static void add_slot(const struct writer *writer, struct gp_trace *trace,
                     const struct gp_marks_slot *slot, uint64_t now_ns)
{
    const struct name name = name_of(&slot->name);
    const struct gp_trace_event event = {
        .place = {writer->place, slot->tid},
        .category = name.domain,
        .name = name.text,
        .start_ns = at_most(slot->start_ns, now_ns),
        .end_ns = at_most(slot->end_ns, now_ns),
    };
    add_event(writer, trace, slot->kind, &event);
}

/* The next slots, up to the end of the ring. They are read twice: what a slot holds is complete if
 * it was read after its turn. Returns how many are complete; -1: the file was cut. */
static int next_slots(const struct writer *writer, struct gp_marks_slot *slots)
{
    const size_t at = writer->tail % GP_MARKS_SLOTS;
    const size_t most = GP_MARKS_SLOTS - at < CHUNK ? GP_MARKS_SLOTS - at : CHUNK;
    const size_t offset = offsetof(struct gp_marks, slots) + at * sizeof(*slots);
    int count = 0;
    if (!read_at(writer, offset, slots, most * sizeof(*slots)))
        return -1;
    while ((size_t)count < most &&
           atomic_load(&slots[count].turn) == writer->tail + (uint64_t)count + 1)
        count++;
    return count == 0 || read_at(writer, offset, slots, (size_t)count * sizeof(*slots)) ? count
                                                                                        : -1;
}

/* Frees the slot of the next event. */
static void advance(struct writer *writer)
{
    const size_t at = writer->tail % GP_MARKS_SLOTS;
    const uint64_t turn = writer->tail++ + GP_MARKS_SLOTS;
    (void)!pwrite(writer->fd, &turn, sizeof(turn),
                  (off_t)(offsetof(struct gp_marks, slots) + at * sizeof(struct gp_marks_slot)));
}

/* False: the file was cut, and nothing more can be read. */
static bool read_ring(struct writer *writer, struct gp_trace *trace, uint64_t now_ns)
{
    struct gp_marks_slot slots[CHUNK];
    uint64_t dropped;
    int count = CHUNK;
    for (unsigned read = 0; count > 0 && read < GP_MARKS_SLOTS; read += (unsigned)count) {
        count = next_slots(writer, slots);
        for (int i = 0; i < count; i++) {
            add_slot(writer, trace, &slots[i], now_ns);
            advance(writer);
        }
    }
    if (count < 0 ||
        !read_at(writer, offsetof(struct gp_marks, dropped), &dropped, sizeof(dropped)))
        return false;
    if (dropped > writer->dropped)
        gp_trace_drop(trace, dropped - writer->dropped);
    writer->dropped = dropped;
    return true;
}

/* At the end: an event that its thread began, but never completed, hides those behind it. */
static void read_rest(struct writer *writer, struct gp_trace *trace, uint64_t now_ns)
{
    uint64_t head;
    for (unsigned i = 0; i < GP_MARKS_SLOTS && read_ring(writer, trace, now_ns); i++) {
        if (!read_at(writer, offsetof(struct gp_marks, head), &head, sizeof(head)) ||
            writer->tail >= head)
            return;
        gp_trace_drop(trace, 1);
        advance(writer);
    }
}

/* ---- ranges that were open at the end ---- */

static void add_open(const struct writer *writer, struct gp_trace *trace, uint32_t kind,
                     uint32_t tid, const struct gp_marks_open *open, uint64_t now_ns)
{
    const struct name name = name_of(&open->name);
    const struct gp_trace_event event = {
        .place = {writer->place, tid},
        .category = name.domain,
        .name = name.text,
        .start_ns = at_most(open->start_ns, now_ns),
        .end_ns = now_ns,
        .is_unfinished = true,
    };
    add_event(writer, trace, kind, &event);
}

static void add_all_open(const struct writer *writer, struct gp_trace *trace,
                         const struct gp_marks *marks, uint64_t now_ns)
{
    for (size_t i = 0; i < GP_MARKS_THREADS; i++) {
        const struct gp_marks_thread *thread = &marks->threads[i];
        uint32_t depth = atomic_load(&thread->depth);
        for (uint32_t k = 0; k < depth && k < GP_MARKS_DEPTH; k++)
            add_open(writer, trace, GP_MARKS_SLICE, atomic_load(&thread->tid), &thread->open[k],
                     now_ns);
    }
    for (size_t i = 0; i < GP_MARKS_RANGES; i++) {
        const struct gp_marks_range *range = &marks->ranges[i];
        if (atomic_load(&range->state) == GP_MARKS_OPEN)
            add_open(writer, trace, GP_MARKS_RANGE, range->tid, &range->open, now_ns);
    }
}

/* ---- the end of a process ---- */

static void add_steps(struct gp_pace *pace, uint64_t steps, uint64_t first_ns, uint64_t last_ns)
{
    if (steps > pace->reports)
        *pace = (struct gp_pace){.reports = steps,
                                 .steps = (double)(steps - 1),
                                 .first_ns = first_ns,
                                 .last_ns = last_ns};
}

static void finish(struct gp_marks_reader *reader, struct writer *writer, struct gp_trace *trace,
                   uint64_t now_ns)
{
    struct gp_marks *marks = &reader->copy;
    if (trace)
        read_rest(writer, trace, now_ns);
    const bool is_whole = read_at(writer, 0, marks, offsetof(struct gp_marks, slots));
    (void)close(writer->fd);
    if (is_whole)
        add_steps(&reader->pace, atomic_load(&marks->steps), atomic_load(&marks->first_step_ns),
                  atomic_load(&marks->last_step_ns));
    if (is_whole && trace)
        add_all_open(writer, trace, marks, now_ns);
}

/* ---- the processes ---- */

/* False: not a file of ours, or not complete yet. */
static bool open_file(struct gp_marks_reader *reader, const char *name, struct writer *ret)
{
    struct stat st;
    struct gp_marks *marks = &reader->copy;
    *ret = (struct writer){
        .fd = openat(reader->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    if (ret->fd >= 0 && fstat(ret->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_size == (off_t)sizeof(*marks) &&
        read_at(ret, 0, marks, offsetof(struct gp_marks, threads)) &&
        atomic_load(&marks->magic) == GP_MARKS_MAGIC) {
        ret->pid = marks->pid < GP_TRACE_PID ? marks->pid : 0;
        ret->is_here = marks->namespace > 0 && marks->namespace == gp_proc_own_ns();
        ret->place = ret->is_here ? ret->pid : GP_TRACE_FOREIGN + reader->foreign++;
        return true;
    }
    if (ret->fd >= 0)
        (void)close(ret->fd);
    return false;
}

/* A file that is open needs no name any more, and so is gone if this process is killed. */
static void find_new(struct gp_marks_reader *reader)
{
    DIR *list = open_list(reader->fd);
    for (struct dirent *entry; list && reader->count < PROCESSES_MOST && (entry = readdir(list));) {
        struct writer *writer = &reader->writers[reader->count];
        if (entry->d_name[0] == '.' || !open_file(reader, entry->d_name, writer))
            continue;
        (void)unlinkat(reader->fd, entry->d_name, 0);
        reader->count++;
    }
    if (list)
        (void)closedir(list);
}

static bool has_exited(const struct writer *writer)
{
    return writer->is_here && writer->pid > 0 && kill((pid_t)writer->pid, 0) != 0 && errno == ESRCH;
}

bool gp_marks_reader_read(struct gp_marks_reader *reader, struct gp_trace *trace)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    size_t kept = 0;
    find_new(reader);
    for (size_t i = 0; i < reader->count; i++) {
        struct writer *writer = &reader->writers[i];
        if (has_exited(writer)) {
            finish(reader, writer, trace, now_ns);
            continue;
        }
        if (trace && !read_ring(writer, trace, now_ns)) {
            gp_trace_drop(trace, 1);
            (void)close(writer->fd);
            continue;
        }
        reader->writers[kept++] = *writer;
    }
    reader->count = kept;
    return kept > 0;
}

/* A writer without room leaves an empty file. */
static void count_failed(struct gp_marks_reader *reader)
{
    DIR *list = open_list(reader->fd);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        struct stat st;
        if (fstatat(reader->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_size == 0 && unlinkat(reader->fd, entry->d_name, 0) == 0)
            reader->failed++;
    }
    if (list)
        (void)closedir(list);
}

void gp_marks_reader_finish(struct gp_marks_reader *reader, struct gp_trace *trace)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    for (find_new(reader); reader->count > 0; find_new(reader)) {
        for (size_t i = 0; i < reader->count; i++)
            finish(reader, &reader->writers[i], trace, now_ns);
        reader->count = 0;
    }
    count_failed(reader);
}

struct gp_pace gp_marks_reader_take_pace(struct gp_marks_reader *reader)
{
    const struct gp_pace pace = reader->pace;
    reader->pace = (struct gp_pace){0};
    return pace;
}

struct gp_pace gp_marks_reader_pace(const struct gp_marks_reader *reader)
{
    struct gp_pace pace = reader->pace;
    uint64_t found[3];
    const size_t at = offsetof(struct gp_marks, steps);
    static_assert(offsetof(struct gp_marks, last_step_ns) == offsetof(struct gp_marks, steps) + 16,
                  "steps, first_step_ns and last_step_ns follow each other");
    for (size_t i = 0; i < reader->count; i++)
        if (read_at(&reader->writers[i], at, found, sizeof(found)))
            add_steps(&pace, found[0], found[1], found[2]);
    return pace;
}

size_t gp_marks_reader_take_failed(struct gp_marks_reader *reader)
{
    const size_t failed = reader->failed;
    reader->failed = 0;
    return failed;
}
