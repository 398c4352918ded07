/* The writer of marks.h. It runs in other people's programs, so it needs nothing but libc, takes no
 * lock, and has no state that a fork() could leave half changed. */
#include "base/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPARE_BYTES = 32 << 20, /* room that must be left to the program, whose shared memory may lie in
                               the same file system */
    PAUSES = 1000,
    PAUSE_NS = 100000,
    NAMES = 16, /* tries to find an unused file name */
};

enum { FRESH, STARTING, READY, OFF };

static atomic_int state;
static struct gp_marks *_Atomic shared; /* in state READY */

/* Of this thread; valid if `marks` is the current one. */
static __thread struct {
    struct gp_marks *marks;
    struct gp_marks_thread *record; /* NULL: all are taken */
    uint32_t tid;
    unsigned unrecorded; /* open ranges above GP_MARKS_DEPTH */
} self;

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint32_t own_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static void copy(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from, size);
    memcpy(to, from, n);
    if (n < size)
        to[n] = '\0';
}

static void set_name(struct gp_marks_name *name, const char *domain, const char *text)
{
    copy(name->domain, sizeof(name->domain), domain);
    copy(name->text, sizeof(name->text), text);
}

/* ---- the file ---- */

static int create_file(const char *folder)
{
    char path[4096];
    int fd = -1;
    for (unsigned i = 0; fd < 0 && i < NAMES; i++) {
        int n = snprintf(path, sizeof(path), "%s/%ld-%u", folder, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof(path))
            return -1;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return fd;
}

/* The pages are allocated now: a full file system would otherwise kill the program with SIGBUS. */
static struct gp_marks *map_file(int fd)
{
    struct statvfs room;
    if (fstatvfs(fd, &room) != 0 ||
        (uint64_t)room.f_bavail * room.f_frsize < SPARE_BYTES + sizeof(struct gp_marks) ||
        posix_fallocate(fd, 0, (off_t)sizeof(struct gp_marks)) != 0) {
        (void)!ftruncate(fd, 0);
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct gp_marks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct gp_marks *create(void)
{
    const char *folder = secure_getenv(GP_MARKS_VARIABLE);
    int fd = folder && folder[0] == '/' ? create_file(folder) : -1;
    struct gp_marks *marks = fd >= 0 ? map_file(fd) : NULL;
    struct stat ns;
    if (fd >= 0)
        (void)close(fd);
    if (!marks)
        return NULL;
    marks->pid = (uint32_t)getpid();
    marks->namespace = stat("/proc/self/ns/pid", &ns) == 0 ? ns.st_ino : 0;
    for (uint64_t i = 0; i < GP_MARKS_SLOTS; i++)
        atomic_store_explicit(&marks->slots[i].turn, i, memory_order_relaxed);
    atomic_store_explicit(&marks->magic, GP_MARKS_MAGIC, memory_order_release);
    return marks;
}

/* The child of a fork() gets a file of its own when it needs one. */
static void begin_anew(void)
{
    if (atomic_load(&state) != OFF)
        atomic_store(&state, FRESH);
}

static void put(struct gp_marks *marks, enum gp_marks_kind kind, const struct gp_marks_open *open,
                uint64_t end_ns, uint32_t tid);

static void put_name(struct gp_marks *marks, enum gp_marks_kind kind, const char *text,
                     uint32_t tid)
{
    struct gp_marks_open open = {.start_ns = now_ns()};
    set_name(&open.name, "", text);
    put(marks, kind, &open, 0, tid);
}

/* The command line of this process, or the name of its program. */
static void put_command(struct gp_marks *marks)
{
    char text[GP_MARKS_TEXT + 1] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, GP_MARKS_TEXT) : 0;
    if (fd >= 0)
        (void)close(fd);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    put_name(marks, GP_MARKS_PROCESS, n > 0 ? text : program_invocation_short_name, own_tid());
}

/* Another thread creates the file, which takes a millisecond, or longer on a busy machine: waits
 * for it, but not for long. After a fork() without its handlers, that thread may not exist. */
static struct gp_marks *wait_for_file(void)
{
    int starting = STARTING;
    const int error = errno;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0; i < PAUSES && atomic_load(&state) == STARTING; i++)
        (void)nanosleep(&pause, NULL);
    errno = error;
    if (atomic_compare_exchange_strong(&state, &starting, OFF) || starting != READY)
        return NULL;
    return atomic_load(&shared);
}

/* NULL: no timeline. */
static struct gp_marks *get(void)
{
    int fresh = FRESH;
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now == READY)
        return atomic_load_explicit(&shared, memory_order_relaxed);
    if (now == STARTING)
        return wait_for_file();
    if (now != FRESH || !atomic_compare_exchange_strong(&state, &fresh, STARTING))
        return NULL;
    static bool follows_forks; /* only one thread at a time is here */
    if (!follows_forks && pthread_atfork(NULL, NULL, begin_anew) != 0) {
        atomic_store(&state, OFF);
        return NULL;
    }
    follows_forks = true;
    const int error = errno; /* a program does not expect that this call changes it */
    struct gp_marks *marks = create();
    atomic_store(&shared, marks);
    atomic_store(&state, marks ? READY : OFF);
    if (marks)
        put_command(marks);
    errno = error;
    return marks;
}

bool gp_marks_is_on(void)
{
    return get() != NULL;
}

/* ---- threads ---- */

/* Whether a record can be this thread's: it is free, or its thread has exited. */
static bool take(struct gp_marks_thread *record)
{
    uint32_t tid = atomic_load(&record->tid);
    if (tid != 0 && tid != self.tid &&
        (syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH))
        return false;
    return atomic_compare_exchange_strong(&record->tid, &tid, self.tid);
}

/* Finds a record, and tells the name of the thread. */
static void enter(struct gp_marks *marks)
{
    const int error = errno;
    char name[16] = "";
    self.marks = marks;
    self.record = NULL;
    self.unrecorded = 0;
    self.tid = own_tid();
    for (unsigned i = 0; !self.record && i < GP_MARKS_THREADS; i++) {
        struct gp_marks_thread *record = &marks->threads[(self.tid + i) % GP_MARKS_THREADS];
        if (!take(record))
            continue;
        atomic_store(&record->depth, 0);
        self.record = record;
    }
    if (prctl(PR_GET_NAME, name) == 0)
        put_name(marks, GP_MARKS_THREAD, name, self.tid);
    errno = error;
}

static struct gp_marks *enter_if_on(void)
{
    struct gp_marks *marks = get();
    if (marks && self.marks != marks)
        enter(marks);
    return marks;
}

/* ---- the ring ---- */

static void drop(struct gp_marks *marks)
{
    (void)atomic_fetch_add_explicit(&marks->dropped, 1, memory_order_relaxed);
}

static void put(struct gp_marks *marks, enum gp_marks_kind kind, const struct gp_marks_open *open,
                uint64_t end_ns, uint32_t tid)
{
    uint64_t at = atomic_load_explicit(&marks->head, memory_order_relaxed);
    struct gp_marks_slot *slot;
    for (;;) {
        slot = &marks->slots[at % GP_MARKS_SLOTS];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn < at) { /* not read yet */
            if (kind < GP_MARKS_THREAD)
                drop(marks);
            return;
        }
        if (turn > at) /* another thread was faster */
            at = atomic_load_explicit(&marks->head, memory_order_relaxed);
        else if (atomic_compare_exchange_weak(&marks->head, &at, at + 1))
            break;
    }
    slot->start_ns = open->start_ns;
    slot->end_ns = end_ns;
    slot->tid = tid;
    slot->kind = (uint32_t)kind;
    slot->name = open->name;
    atomic_store_explicit(&slot->turn, at + 1, memory_order_release);
}

void gp_marks_mark(const char *domain, const char *text)
{
    struct gp_marks *marks = enter_if_on();
    struct gp_marks_open open = {.start_ns = marks ? now_ns() : 0};
    if (!marks)
        return;
    set_name(&open.name, domain, text);
    put(marks, GP_MARKS_MARK, &open, 0, self.tid);
}

int gp_marks_push(uint64_t domain_id, const char *domain, const char *text)
{
    struct gp_marks *marks = enter_if_on();
    struct gp_marks_thread *record = marks ? self.record : NULL;
    if (marks && !record) /* too many threads */
        drop(marks);
    if (!record)
        return -1;
    uint32_t depth = atomic_load_explicit(&record->depth, memory_order_relaxed);
    if (depth >= GP_MARKS_DEPTH) {
        drop(marks);
        self.unrecorded++;
        return -1;
    }
    struct gp_marks_open *open = &record->open[depth];
    open->start_ns = now_ns();
    open->domain = domain_id;
    set_name(&open->name, domain, text);
    atomic_store_explicit(&record->depth, depth + 1, memory_order_release);
    return (int)depth;
}

int gp_marks_pop(uint64_t domain_id)
{
    struct gp_marks *marks = enter_if_on();
    struct gp_marks_thread *record = marks ? self.record : NULL;
    uint32_t depth = record ? atomic_load_explicit(&record->depth, memory_order_relaxed) : 0;
    depth = depth < GP_MARKS_DEPTH ? depth : GP_MARKS_DEPTH; /* of a child that shares it, say */
    uint32_t at = depth;
    if (record && self.unrecorded > 0) {
        self.unrecorded--;
        return -1;
    }
    while (at > 0 && record->open[at - 1].domain != domain_id)
        at--;
    if (at == 0)
        return -1;
    at--;
    put(marks, at + 1 == depth ? GP_MARKS_SLICE : GP_MARKS_RANGE, &record->open[at], now_ns(),
        self.tid);
    if (at + 1 < depth)
        memmove(&record->open[at], &record->open[at + 1],
                (depth - at - 1) * sizeof(record->open[0]));
    atomic_store_explicit(&record->depth, depth - 1, memory_order_release);
    return (int)at;
}

uint64_t gp_marks_start(const char *domain, const char *text)
{
    static _Atomic uint64_t rounds;
    struct gp_marks *marks = enter_if_on();
    for (unsigned i = 0; marks && i < GP_MARKS_RANGES; i++) {
        struct gp_marks_range *range = &marks->ranges[i];
        uint32_t none = GP_MARKS_FREE;
        if (!atomic_compare_exchange_strong(&range->state, &none, GP_MARKS_TAKEN))
            continue;
        uint64_t round = atomic_fetch_add(&rounds, 1) + 1;
        range->tid = self.tid;
        range->id = round * GP_MARKS_RANGES + i;
        range->open.start_ns = now_ns();
        set_name(&range->open.name, domain, text);
        atomic_store_explicit(&range->state, GP_MARKS_OPEN, memory_order_release);
        return range->id;
    }
    if (marks)
        drop(marks);
    return 0;
}

void gp_marks_end(uint64_t id)
{
    struct gp_marks *marks = enter_if_on();
    struct gp_marks_range *range = marks ? &marks->ranges[id % GP_MARKS_RANGES] : NULL;
    uint32_t open = GP_MARKS_OPEN;
    if (id == 0 || !range || range->id != id ||
        !atomic_compare_exchange_strong(&range->state, &open, GP_MARKS_TAKEN))
        return;
    put(marks, GP_MARKS_RANGE, &range->open, now_ns(), range->tid);
    atomic_store_explicit(&range->state, GP_MARKS_FREE, memory_order_release);
}

void gp_marks_step(void)
{
    struct gp_marks *marks = get();
    if (!marks)
        return;
    const uint64_t now = now_ns();
    if (atomic_fetch_add_explicit(&marks->steps, 1, memory_order_relaxed) == 0)
        atomic_store_explicit(&marks->first_step_ns, now, memory_order_relaxed);
    atomic_store_explicit(&marks->last_step_ns, now, memory_order_relaxed);
}

void gp_marks_name_thread(uint32_t tid, const char *name)
{
    struct gp_marks *marks = enter_if_on();
    if (marks)
        put_name(marks, GP_MARKS_THREAD, name, tid ? tid : self.tid);
}
