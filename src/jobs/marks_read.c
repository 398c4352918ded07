#include "jobs/marks_read.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/marks.h"
#include "out/trace.h"
#include "proc/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_MOST = 256, ORDER = 50 };

static const char prefix[] = "gpulse-timeline-";

/* A process that writes. */
struct writer {
    struct gp_marks *marks;
    uint32_t pid;
    bool is_here;  /* the pid is one of this process's namespace */
    uint64_t tail; /* the next event */
    uint64_t dropped;
};

struct gp_marks_reader {
    char folder[64];
    int fd; /* locked as long as this process lives */
    struct writer writers[PROCESSES_MOST];
    size_t count;
};

/* ---- the directory ---- */

static void empty(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    for (struct dirent *entry; list && (entry = readdir(list));)
        (void)unlinkat(fd, entry->d_name, 0);
    if (list)
        (void)closedir(list);
    else if (again >= 0)
        (void)close(again);
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
    if (reader->fd >= 0 && flock(reader->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    const int error = errno;
    if (reader->fd >= 0)
        (void)close(reader->fd);
    (void)rmdir(reader->folder);
    errno = error;
    return false;
}

int gp_marks_reader_new(struct gp_marks_reader **ret, struct gp_err *err)
{
    struct gp_marks_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (!create(reader, "/dev/shm") && !create(reader, "/tmp")) {
        int r = gp_err_set(err, GP_EIO, "cannot create a directory in /dev/shm or /tmp: %s",
                           strerror(errno));
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
        (void)munmap(reader->writers[i].marks, sizeof(struct gp_marks));
    empty(reader->fd);
    (void)rmdir(reader->folder);
    (void)close(reader->fd);
    free(reader);
}

/* ---- events ---- */

/* Texts in shared memory may have no end, and may change at any time. */
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

static void add_event(struct gp_trace *trace, uint32_t kind, const struct gp_trace_event *event)
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
        gp_trace_name_process(trace, event->place.pid, event->name, ORDER);
        break;
    default: /* not written by us */
        break;
    }
}

static uint64_t at_most(uint64_t ns, uint64_t most_ns)
{
    return ns < most_ns ? ns : most_ns;
}

static void read_ring(struct writer *writer, struct gp_trace *trace, uint64_t now_ns)
{
    struct gp_marks *marks = writer->marks;
    for (unsigned i = 0; i < GP_MARKS_SLOTS; i++) {
        struct gp_marks_slot *slot = &marks->slots[writer->tail % GP_MARKS_SLOTS];
        if (atomic_load_explicit(&slot->turn, memory_order_acquire) != writer->tail + 1)
            break;
        const struct name name = name_of(&slot->name);
        const struct gp_trace_event event = {
            .place = {writer->pid, slot->tid},
            .category = name.domain,
            .name = name.text,
            .start_ns = at_most(slot->start_ns, now_ns),
            .end_ns = at_most(slot->end_ns, now_ns),
        };
        add_event(trace, slot->kind, &event);
        atomic_store_explicit(&slot->turn, writer->tail + GP_MARKS_SLOTS, memory_order_release);
        writer->tail++;
    }
    uint64_t dropped = atomic_load_explicit(&marks->dropped, memory_order_relaxed);
    if (dropped > writer->dropped)
        gp_trace_drop(trace, dropped - writer->dropped);
    writer->dropped = dropped;
}

/* ---- ranges that were open at the end ---- */

static void add_open(const struct writer *writer, struct gp_trace *trace, uint32_t kind,
                     uint32_t tid, const struct gp_marks_open *open, uint64_t now_ns)
{
    const struct name name = name_of(&open->name);
    const struct gp_trace_event event = {
        .place = {writer->pid, tid},
        .category = name.domain,
        .name = name.text,
        .start_ns = at_most(open->start_ns, now_ns),
        .end_ns = now_ns,
        .is_unfinished = true,
    };
    add_event(trace, kind, &event);
}

static void finish(struct writer *writer, struct gp_trace *trace, uint64_t now_ns)
{
    const struct gp_marks *marks = writer->marks;
    read_ring(writer, trace, now_ns);
    for (size_t i = 0; i < GP_MARKS_THREADS; i++) {
        const struct gp_marks_thread *thread = &marks->threads[i];
        uint32_t depth = atomic_load_explicit(&thread->depth, memory_order_acquire);
        for (uint32_t k = 0; k < depth && k < GP_MARKS_DEPTH; k++)
            add_open(writer, trace, GP_MARKS_SLICE, atomic_load(&thread->tid), &thread->open[k],
                     now_ns);
    }
    for (size_t i = 0; i < GP_MARKS_RANGES; i++) {
        const struct gp_marks_range *range = &marks->ranges[i];
        if (atomic_load_explicit(&range->state, memory_order_acquire) == GP_MARKS_OPEN)
            add_open(writer, trace, GP_MARKS_RANGE, range->tid, &range->open, now_ns);
    }
    (void)munmap(writer->marks, sizeof(struct gp_marks));
}

/* ---- the processes ---- */

/* NULL: not a file of ours, or not complete yet. */
static struct gp_marks *map(int folder, const char *name)
{
    struct stat st;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_size == (off_t)sizeof(struct gp_marks))
        at = mmap(NULL, sizeof(struct gp_marks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    if (at == MAP_FAILED)
        return NULL;
    struct gp_marks *marks = at;
    if (atomic_load_explicit(&marks->magic, memory_order_acquire) == GP_MARKS_MAGIC)
        return marks;
    (void)munmap(at, sizeof(struct gp_marks));
    return NULL;
}

/* A file that is mapped needs no name any more, and so is gone if this process is killed. */
static void find_new(struct gp_marks_reader *reader)
{
    int again = openat(reader->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (!list && again >= 0)
        (void)close(again);
    for (struct dirent *entry; list && reader->count < PROCESSES_MOST && (entry = readdir(list));) {
        struct gp_marks *marks = entry->d_name[0] != '.' ? map(reader->fd, entry->d_name) : NULL;
        if (!marks)
            continue;
        (void)unlinkat(reader->fd, entry->d_name, 0);
        reader->writers[reader->count++] = (struct writer){
            .marks = marks,
            .pid = marks->pid < GP_TRACE_PID ? marks->pid : 0,
            .is_here = marks->namespace > 0 && marks->namespace == gp_proc_own_ns(),
        };
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
            finish(writer, trace, now_ns);
            continue;
        }
        read_ring(writer, trace, now_ns);
        reader->writers[kept++] = *writer;
    }
    reader->count = kept;
    return kept > 0;
}

void gp_marks_reader_finish(struct gp_marks_reader *reader, struct gp_trace *trace)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    for (find_new(reader); reader->count > 0; find_new(reader)) {
        for (size_t i = 0; i < reader->count; i++)
            finish(&reader->writers[i], trace, now_ns);
        reader->count = 0;
    }
}
