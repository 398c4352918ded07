#include "sim/state.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "sim/state_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATE_VERSION = 9 };

static const char state_magic[8] = "GPSTATE";

_Static_assert(sizeof(struct sim_fault) <= SIM_RECORD_WORDS * 8, "a fault fits a slot");
_Static_assert(sizeof((struct sim_fault){0}.past) * 8 == SIM_MAX_DEVICES, "a bit for each GPU");
_Static_assert(sizeof(struct sim_job) <= SIM_RECORD_WORDS * 8, "a job fits a slot");
_Static_assert(sizeof(struct sim_account) <= SIM_RECORD_WORDS * 8, "an account fits a slot");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared memory needs lock-free atomics");

/* ------------------------------------------------------------------------- slots */

void sim_slot_write(struct sim_state_slot *slot, const void *record, size_t size)
{
    unsigned long long words[SIM_RECORD_WORDS] = {0};
    memcpy(words, record, size);
    unsigned int writing = atomic_load(&slot->sequence) | 1;
    atomic_store(&slot->sequence, writing);
    for (size_t i = 0; i < SIM_RECORD_WORDS; i++)
        atomic_store(&slot->words[i], words[i]);
    atomic_store(&slot->sequence, writing + 1);
    atomic_store(&slot->used, 1);
}

bool sim_slot_read(struct sim_state_slot *slot, void *record, size_t size)
{
    for (int tries = 0; tries < 100; tries++) {
        unsigned int before = atomic_load(&slot->sequence);
        if (!atomic_load(&slot->used))
            return false;
        unsigned long long words[SIM_RECORD_WORDS];
        for (size_t i = 0; i < SIM_RECORD_WORDS; i++)
            words[i] = atomic_load(&slot->words[i]);
        if (before % 2 == 0 && atomic_load(&slot->sequence) == before) {
            memcpy(record, words, size);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------- the file */

int sim_state_directory(char path[GP_PATH_SIZE], int *ret_fd, struct gp_err *err)
{
    const char *dir = getenv("GPULSE_SIM_STATE");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n;
    if (dir && *dir)
        n = snprintf(path, GP_PATH_SIZE, "%s", dir);
    else if (runtime && *runtime)
        n = snprintf(path, GP_PATH_SIZE, "%s/gpulse-sim", runtime);
    else
        n = snprintf(path, GP_PATH_SIZE, "/tmp/gpulse-sim-%u", (unsigned)geteuid());
    if (n < 0 || n >= GP_PATH_SIZE)
        return gp_err_set(err, GP_EIO, "the path of the simulator's state is too long");

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return gp_err_system(err, errno, GP_EIO, "cannot create '%s'", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot open '%s'", path);
    struct stat st;
    const bool is_own = fstat(fd, &st) == 0 && st.st_uid == geteuid();
    if (!is_own || (st.st_mode & 077) != 0)
        (void)close(fd);
    if (!is_own)
        return gp_err_set(err, GP_EPERM, "'%s' must be a directory that belongs to you", path);
    if ((st.st_mode & 077) != 0)
        return gp_err_set(err, GP_EPERM, "run chmod 700 '%s': it is open to other users", path);
    *ret_fd = fd;
    return GP_OK;
}

/* A file is identified by its real path, so that two spellings are one machine. FNV-1a is
 * sufficient: a collision would only make two of the user's own machines share their faults. */
void sim_state_name(const char *spec, const char *suffix, char out[SIM_STATE_NAME_SIZE])
{
    char real[GP_PATH_SIZE];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    bool plain = strlen(spec) < 40 && !strchr(spec, '/') && !strchr(spec, '.');
    if (plain) {
        (void)snprintf(out, SIM_STATE_NAME_SIZE, "%s.%s", spec, suffix);
        return;
    }
    const char *path = realpath(spec, real) ? real : spec;
    for (const char *p = path; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    (void)snprintf(out, SIM_STATE_NAME_SIZE, "file-%016llx.%s", (unsigned long long)hash, suffix);
}

static int prepare_file(int fd, const char *name, struct gp_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot examine '%s'", name);
    if (st.st_size == 0) {
        char fresh[offsetof(struct sim_state_layout, fault_count)];
        const uint32_t numbers[] = {STATE_VERSION, sizeof(struct sim_state_layout)};
        memcpy(fresh, state_magic, sizeof(state_magic));
        memcpy(fresh + offsetof(struct sim_state_layout, version), numbers, sizeof(numbers));
        int r = -posix_fallocate(fd, 0, sizeof(struct sim_state_layout));
        if (r == 0)
            r = gp_io_write_all(fd, fresh, sizeof(fresh));
        if (r < 0)
            return gp_err_system(err, -r, GP_EIO, "cannot write '%s'", name);
        return GP_OK;
    }
    struct sim_state_layout *seen = NULL;
    char head[offsetof(struct sim_state_layout, fault_count)];
    if (pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
        memcmp(head, state_magic, sizeof(state_magic)) == 0) {
        uint32_t version, size;
        memcpy(&version, head + offsetof(struct sim_state_layout, version), sizeof(version));
        memcpy(&size, head + offsetof(struct sim_state_layout, size), sizeof(size));
        if (version == STATE_VERSION && size == sizeof(*seen) && st.st_size >= (off_t)size)
            return GP_OK;
    }
    return gp_err_set(err, GP_EFORMAT,
                      "the simulator's state file '%s' has another version; remove it", name);
}

int sim_state_open(const char *spec, struct sim_state **ret, struct gp_err *err)
{
    int dir;
    char path[GP_PATH_SIZE], name[SIM_STATE_NAME_SIZE];
    int result = sim_state_directory(path, &dir, err);
    if (result < 0)
        return result;
    sim_state_name(spec, "state", name);
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    (void)close(dir);
    if (fd < 0)
        return gp_err_system(err, saved, GP_EIO, "cannot open the simulator's state '%s'", name);

    struct sim_state *state = calloc(1, sizeof(*state));
    if (!state) {
        (void)close(fd);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    state->fd = fd;
    (void)pthread_mutex_init(&state->lock, NULL);
    state->map = MAP_FAILED;
    result = sim_state_lock(state, err);
    if (result == GP_OK) {
        result = prepare_file(fd, name, err);
        sim_state_unlock(state);
    }
    if (result == GP_OK) {
        state->map = mmap(NULL, sizeof(*state->map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (state->map == MAP_FAILED)
            result = gp_err_system(err, errno, GP_EIO, "cannot map '%s'", name);
    }
    if (result < 0) {
        sim_state_close(state);
        return result;
    }
    *ret = state;
    return GP_OK;
}

struct sim_state *sim_state_new_private(void)
{
    struct sim_state *state = calloc(1, sizeof(*state));
    if (!state)
        return NULL;
    state->fd = -1;
    (void)pthread_mutex_init(&state->lock, NULL);
    state->map =
        mmap(NULL, sizeof(*state->map), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (state->map == MAP_FAILED) {
        free(state);
        return NULL;
    }
    return state;
}

void sim_state_close(struct sim_state *state)
{
    if (!state)
        return;
    if (state->map != MAP_FAILED)
        (void)munmap(state->map, sizeof(*state->map));
    if (state->fd >= 0)
        (void)close(state->fd);
    (void)pthread_mutex_destroy(&state->lock);
    while (state->made) {
        struct sim_device *next = state->made->next_made;
        free(state->made);
        state->made = next;
    }
    free(state);
}

int sim_state_lock(struct sim_state *state, struct gp_err *err)
{
    (void)pthread_mutex_lock(&state->lock);
    while (state->fd >= 0 && flock(state->fd, LOCK_EX) < 0) {
        if (errno == EINTR)
            continue;
        int saved = errno;
        (void)pthread_mutex_unlock(&state->lock);
        return gp_err_system(err, saved, GP_EIO, "cannot lock the simulator's state");
    }
    return GP_OK;
}

void sim_state_unlock(struct sim_state *state)
{
    if (state->fd >= 0)
        (void)flock(state->fd, LOCK_UN);
    (void)pthread_mutex_unlock(&state->lock);
}

/* ------------------------------------------------------------------------- faults */

/* Wakes clients that wait for an event, because a fault may concern them too. */
static void ring(struct sim_state *state)
{
    atomic_fetch_add(&state->map->event_bell, 1);
    (void)syscall(SYS_futex, &state->map->event_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool sim_state_has_faults(struct sim_state *state)
{
    return atomic_load_explicit(&state->map->fault_count, memory_order_acquire) > 0;
}

bool sim_state_fault(struct sim_state *state, size_t slot, struct sim_fault *ret)
{
    return sim_slot_read(&state->map->faults[slot], ret, sizeof(*ret)) &&
           ret->kind < SIM_FAULT_KINDS;
}

int sim_state_add_fault(struct sim_state *state, const struct sim_fault *fault, struct gp_err *err)
{
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++) {
        if (atomic_load(&state->map->faults[i].used))
            continue;
        sim_slot_write(&state->map->faults[i], fault, sizeof(*fault));
        atomic_fetch_add(&state->map->fault_count, 1);
        ring(state);
        return GP_OK;
    }
    return gp_err_set(err, GP_ETOOBIG, "all %d fault slots are in use; clear some faults",
                      SIM_MAX_FAULTS);
}

void sim_state_forget_answer(struct sim_state *state, int gpu, uint32_t slot)
{
    struct sim_fault fault;
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++) {
        if (!sim_state_fault(state, i, &fault) || fault.kind != SIM_FAULT_SET || fault.slot != slot)
            continue;
        if (gpu != SIM_ALL_GPUS && fault.gpu == SIM_ALL_GPUS) {
            fault.past[gpu / 64] |= UINT64_C(1) << gpu % 64;
            sim_slot_write(&state->map->faults[i], &fault, sizeof(fault));
        }
        if (gpu != SIM_ALL_GPUS && fault.gpu != gpu)
            continue;
        atomic_store(&state->map->faults[i].used, 0);
        atomic_fetch_sub(&state->map->fault_count, 1);
    }
}

void sim_state_clear_faults(struct sim_state *state, int gpu)
{
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++) {
        struct sim_fault fault;
        if (!sim_state_fault(state, i, &fault) || (gpu != SIM_ALL_GPUS && fault.gpu != gpu))
            continue;
        atomic_store(&state->map->faults[i].used, 0);
        atomic_fetch_sub(&state->map->fault_count, 1);
    }
}

/* ------------------------------------------------------------------------- energy */

uint64_t sim_state_counter(struct sim_state *state, size_t device, enum sim_counter counter,
                           uint64_t per_s, uint64_t first)
{
    struct sim_state_counter *c = &state->map->counters[device][counter];
    unsigned long long now = gp_clock_wall_ns() / 1000;
    unsigned long long last = atomic_load(&c->time_us);
    /* The process that advances the time adds the growth of that period; the others only read. */
    if (now > last && atomic_compare_exchange_strong(&c->time_us, &last, now))
        atomic_fetch_add(&c->count,
                         last ? (uint64_t)((double)per_s * (double)(now - last) / 1e6) : first);
    return atomic_load(&c->count);
}

/* ------------------------------------------------------------------------- settings */

struct sim_settings *sim_state_settings(struct sim_state *state)
{
    return &state->map->settings;
}

struct sim_device **sim_state_made_devices(struct sim_state *state)
{
    return &state->made;
}

/* ------------------------------------------------------------------------- events */

uint64_t sim_state_next_event(struct sim_state *state)
{
    return atomic_load(&state->map->event_count);
}

void sim_state_post_event(struct sim_state *state, const struct sim_event *event)
{
    struct sim_state_layout *map = state->map;
    uint64_t number = atomic_load(&map->event_count);
    struct sim_state_event *slot = &map->events[number % SIM_MAX_EVENTS];
    atomic_store(&slot->sequence, 0);
    atomic_store(&slot->words[0], (uint64_t)event->gpu << 32 | event->type);
    atomic_store(&slot->words[1], event->data);
    atomic_store(&slot->words[2], (uint64_t)event->compute_instance << 32 | event->gpu_instance);
    atomic_store(&slot->sequence, number + 1);
    atomic_store(&map->event_count, number + 1);
    ring(state);
}

bool sim_state_event(struct sim_state *state, uint64_t number, struct sim_event *ret)
{
    struct sim_state_event *slot = &state->map->events[number % SIM_MAX_EVENTS];
    if (atomic_load(&slot->sequence) != number + 1)
        return false;
    uint64_t words[3];
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        words[i] = atomic_load(&slot->words[i]);
    *ret = (struct sim_event){
        .type = (uint32_t)words[0],
        .gpu = (uint32_t)(words[0] >> 32),
        .data = words[1],
        .gpu_instance = (uint32_t)words[2],
        .compute_instance = (uint32_t)(words[2] >> 32),
    };
    return atomic_load(&slot->sequence) == number + 1;
}

unsigned int sim_state_bell(struct sim_state *state)
{
    return atomic_load(&state->map->event_bell);
}

void sim_state_await_bell(struct sim_state *state, unsigned int since, uint64_t until_ns)
{
    uint64_t now_ns = gp_clock_mono_ns();
    if (now_ns >= until_ns)
        return;
    struct timespec rest = gp_clock_timespec(until_ns - now_ns);
    /* A private futex would not be woken by other processes. */
    (void)syscall(SYS_futex, &state->map->event_bell, FUTEX_WAIT, since, &rest, NULL, 0);
}
