/* A source that does what the test says: GPUs that answer, hang, are lost, sleep, change places.
 *
 * Every rule of source.h that a sampler could break is watched, and a breach is counted: use of a
 * handle of an earlier session, a session that ends beside a call, a device that is let go twice.
 */
#ifndef GP_TESTS_FAKE_SOURCE_H
#define GP_TESTS_FAKE_SOURCE_H

#include "unit.h"

#include "base/err.h"
#include "source/source.h"

#include <pthread.h>

enum { FAKE_GPUS = 16, FAKE_PROCESSES = 4 };

enum fake_mode {
    FAKE_WELL,
    FAKE_LOST,   /* for the rest of the session, even if it is well again before */
    FAKE_HANGS,  /* inside read, until it is well again */
    FAKE_ASLEEP, /* refuses to be attached, gives its name */
    FAKE_DENIED, /* refuses to be attached */
    FAKE_STUCK,  /* inside attach, until it is well again */
};

/* A GPU, wherever the driver lists it. */
struct fake_gpu {
    const char *uuid;
    enum fake_mode mode;
    int64_t temperature;
    unsigned lost_in; /* the session that lost it */
    size_t mig_count;
    struct gp_source_process processes[FAKE_PROCESSES];
    size_t process_count;
    enum gp_status processes_status;
    enum gp_status fans_status;
    size_t fan_count;
};

struct fake {
    struct gp_source source;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* what happens */
    struct fake_gpu gpus[FAKE_GPUS];
    unsigned order[FAKE_GPUS]; /* which GPU stands at this index of the driver */
    unsigned count;
    int open_result;
    bool open_hangs;
    bool close_hangs; /* that of a session */
    enum gp_power power;
    unsigned gather; /* a read waits until so many are inside together */
    /* what was seen */
    unsigned session;
    bool is_open;
    bool busy; /* inside open or close */
    unsigned opens, closes, frees, attaches, reads;
    unsigned held;   /* devices attached and not detached */
    unsigned inside; /* reads and attaches in progress */
    unsigned most_inside;
    unsigned breaches;
    struct gp_want want; /* of the last read */
    pthread_t reader;    /* the thread that made it */
};

struct fake_device {
    struct fake *fake;
    unsigned session;
    struct fake_gpu *gpu;
    char uuid[96];
    gp_call_name *call;
};

static inline struct fake *to_fake(struct gp_source *source)
{
    return (struct fake *)source;
}

static inline void fake_breach_if(struct fake *fake, bool breach)
{
    fake->breaches += breach;
}

static inline bool fake_is_lost(const struct fake *fake, struct fake_gpu *gpu)
{
    if (gpu->mode == FAKE_LOST)
        gpu->lost_in = fake->session;
    return gpu->lost_in == fake->session;
}

static inline void fake_enter(struct fake *fake)
{
    fake_breach_if(fake, fake->busy || !fake->is_open);
    if (++fake->inside > fake->most_inside)
        fake->most_inside = fake->inside;
    (void)pthread_cond_broadcast(&fake->changed);
}

static inline void fake_leave(struct fake *fake)
{
    fake->inside--;
    (void)pthread_cond_broadcast(&fake->changed);
}

static inline int fake_open(struct gp_source *source, unsigned *ret_count, struct gp_err *err)
{
    struct fake *fake = to_fake(source);
    (void)pthread_mutex_lock(&fake->lock);
    fake_breach_if(fake, fake->busy || fake->is_open || fake->inside > 0 || fake->held > 0);
    fake->busy = true;
    fake->opens++;
    while (fake->open_hangs)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    int r = fake->open_result;
    if (r == 0) {
        fake->is_open = true;
        fake->session++;
        *ret_count = fake->count;
    }
    fake->busy = false;
    (void)pthread_mutex_unlock(&fake->lock);
    return r < 0 ? gp_err_set(err, r, "the fake driver refuses") : 0;
}

static inline void fake_close(struct gp_source *source)
{
    struct fake *fake = to_fake(source);
    (void)pthread_mutex_lock(&fake->lock);
    fake_breach_if(fake, fake->busy || fake->inside > 0 || fake->held > 0);
    fake->closes++;
    fake->is_open = false;
    while (fake->close_hangs && fake->session > 0)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline void fake_read_host(struct gp_source *source, const struct gp_metric_set *want,
                                  struct gp_value host[GP_HOST__COUNT])
{
    (void)want;
    struct fake *fake = to_fake(source);
    (void)pthread_mutex_lock(&fake->lock);
    fake_breach_if(fake, fake->inside > 0);
    host[GP_DRIVER_VERSION] = (struct gp_value){
        .s = fake->session == 1 ? "1.0" : "2.0", .time_us = 1, .status = GP_STATUS_OK};
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline void fake_set_text(struct gp_reading *reading, enum gp_metric m, const char *s)
{
    const char *copy = gp_arena_strdup(&reading->arena, s);
    struct gp_value *v = gp_device_value(reading->values, m);
    gp_value_set_text(v, copy, reading->time_ns);
    if (!copy)
        v->status = GP_STATUS_ERROR;
}

static inline int fake_refuse(struct gp_reading *reading, enum gp_status status, const char *words)
{
    reading->status = status;
    reading->needs_reinit = status == GP_STATUS_LOST;
    (void)snprintf(reading->status_text, sizeof(reading->status_text), "%s", words);
    if (status == GP_STATUS_ASLEEP)
        fake_set_text(reading, GP_NAME, "sleepy");
    return GP_EDRIVER;
}

static inline int fake_attach(struct gp_source *source, unsigned index, gp_call_name *call,
                              struct gp_source_device **ret, struct gp_reading *reading)
{
    struct fake *fake = to_fake(source);
    (void)pthread_mutex_lock(&fake->lock);
    fake_enter(fake);
    fake_breach_if(fake, index >= fake->count);
    fake->attaches++;
    atomic_store(call, "attach");
    struct fake_gpu *gpu = &fake->gpus[fake->order[index]];
    while (gpu->mode == FAKE_STUCK)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    struct fake_device *device = calloc(1, sizeof(*device));
    int r = 0;
    if (!device)
        r = fake_refuse(reading, GP_STATUS_ERROR, "out of memory");
    else if (fake_is_lost(fake, gpu))
        r = fake_refuse(reading, GP_STATUS_LOST, "lost at attach");
    else if (gpu->mode == FAKE_DENIED)
        r = fake_refuse(reading, GP_STATUS_NO_PERMISSION, "denied");
    else if (gpu->mode == FAKE_ASLEEP)
        r = fake_refuse(reading, GP_STATUS_ASLEEP, "asleep");
    if (r < 0) {
        free(device);
    } else {
        *device = (struct fake_device){fake, fake->session, gpu, "", call};
        (void)snprintf(device->uuid, sizeof(device->uuid), "%s", gpu->uuid);
        fake->held++;
        *ret = (struct gp_source_device *)device;
    }
    fake_leave(fake);
    (void)pthread_mutex_unlock(&fake->lock);
    return r;
}

static inline void fake_detach(struct gp_source_device *base)
{
    struct fake_device *device = (struct fake_device *)base;
    if (!device)
        return;
    struct fake *fake = device->fake;
    (void)pthread_mutex_lock(&fake->lock);
    fake_breach_if(fake, fake->held == 0 || device->session != fake->session);
    fake->held--;
    (void)pthread_mutex_unlock(&fake->lock);
    free(device);
}

static inline const char *fake_uuid(const struct gp_source_device *base)
{
    return ((const struct fake_device *)base)->uuid;
}

static inline void fake_add_migs(const struct fake_gpu *gpu, struct gp_reading *reading)
{
    reading->mig = gp_arena_alloc(&reading->arena, gpu->mig_count, sizeof(*reading->mig));
    for (size_t i = 0; reading->mig && i < gpu->mig_count; i++) {
        struct gp_value *values = reading->mig[i].values;
        reading->mig[i].index = 2 * (unsigned)i; /* the driver leaves gaps */
        const struct gp_value instance = {.i = (int64_t)i, .status = GP_STATUS_OK};
        *gp_device_value(values, GP_MIG_GPU_INSTANCE) = instance;
        *gp_device_value(values, GP_MIG_COMPUTE_INSTANCE) = instance;
        *gp_device_value(values, GP_MEMORY_USED) = instance;
        reading->mig_count++;
    }
}

/* The list of fans: each with its number, and a range that lasts. */
static inline void fake_add_fans(const struct fake_gpu *gpu, struct gp_reading *reading)
{
    struct gp_list *fans = &reading->lists[gp_list_index(GP_SCOPE_FAN)];
    size_t width = gp_scope_width(GP_SCOPE_FAN);
    *fans = (struct gp_list){.status = gpu->fans_status, .words = "because"};
    fans->values =
        gp_arena_alloc(&reading->arena, gpu->fan_count * width + 1, sizeof(*fans->values));
    if (!fans->values || gpu->fans_status != GP_STATUS_OK)
        return;
    for (size_t i = 0; i < gpu->fan_count * width; i++) {
        enum gp_metric m = gp_scope_table[GP_SCOPE_FAN].first + i % width;
        if (gp_metric_table[m].type == GP_TYPE_TEXT)
            gp_value_set_text(&fans->values[i], gp_arena_strdup(&reading->arena, "Automatic"),
                              reading->time_ns);
        else
            gp_value_set_int(&fans->values[i], (int64_t)(i / width), reading->time_ns);
    }
    fans->count = gpu->fan_count;
}

static inline void fake_answer(const struct fake_gpu *gpu, const struct gp_want *want,
                               struct gp_reading *reading)
{
    reading->status = GP_STATUS_OK;
    fake_set_text(reading, GP_NAME, gpu->uuid[0] ? gpu->uuid + 4 : "nameless");
    fake_set_text(reading, GP_UUID, gpu->uuid);
    gp_value_set_int(gp_device_value(reading->values, GP_TEMPERATURE_GPU), gpu->temperature,
                     reading->time_ns);
    gp_value_set_absent(gp_device_value(reading->values, GP_FAN_SPEED), GP_STATUS_UNSUPPORTED, NULL,
                        reading->time_ns);
    fake_add_migs(gpu, reading);
    if (want->lists)
        fake_add_fans(gpu, reading);
    reading->processes_status = gpu->processes_status;
    reading->processes =
        gp_arena_alloc(&reading->arena, FAKE_PROCESSES, sizeof(*reading->processes));
    if (reading->processes) {
        memcpy(reading->processes, gpu->processes, sizeof(gpu->processes));
        reading->process_count = gpu->process_count;
    }
}

static inline void fake_read(struct gp_source_device *base, const struct gp_want *want,
                             struct gp_reading *reading)
{
    struct fake_device *device = (struct fake_device *)base;
    struct fake *fake = device->fake;
    (void)pthread_mutex_lock(&fake->lock);
    fake_enter(fake);
    fake_breach_if(fake, device->session != fake->session);
    fake->reads++;
    fake->want = *want;
    fake->reader = pthread_self();
    atomic_store(device->call, "fakeRead");
    struct fake_gpu *gpu = device->gpu;
    while (gpu->mode == FAKE_HANGS || fake->most_inside < fake->gather)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    if (fake_is_lost(fake, gpu))
        (void)fake_refuse(reading, GP_STATUS_LOST, "lost at read");
    else
        fake_answer(gpu, want, reading);
    fake_leave(fake);
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline enum gp_power fake_power(struct gp_source *source)
{
    return to_fake(source)->power;
}

/* Only counted: the test looks at the fake afterwards. */
static inline void fake_free(struct gp_source *source)
{
    struct fake *fake = to_fake(source);
    (void)pthread_mutex_lock(&fake->lock);
    fake->frees++;
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline void fake_init(struct fake *fake, unsigned count)
{
    static const struct gp_source_ops ops = {
        .open = fake_open,
        .close = fake_close,
        .read_host = fake_read_host,
        .power = fake_power,
        .attach = fake_attach,
        .detach = fake_detach,
        .uuid = fake_uuid,
        .read = fake_read,
        .free = fake_free,
    };
    static const char *const uuids[] = {"GPU-a", "GPU-b", "GPU-c", "GPU-d",
                                        "GPU-e", "GPU-f", "GPU-g", "GPU-h"};
    *fake = (struct fake){.source = {.ops = &ops}, .count = count};
    (void)pthread_mutex_init(&fake->lock, NULL);
    (void)pthread_cond_init(&fake->changed, NULL);
    for (unsigned i = 0; i < GP_ARRAY_LEN(uuids); i++) {
        fake->gpus[i] = (struct fake_gpu){.uuid = uuids[i],
                                          .temperature = 50 + (int64_t)i,
                                          .processes_status = GP_STATUS_OK,
                                          .fans_status = GP_STATUS_OK,
                                          .fan_count = 2};
        fake->order[i] = i;
    }
}

static inline void fake_set_mode(struct fake *fake, unsigned index, enum fake_mode mode)
{
    (void)pthread_mutex_lock(&fake->lock);
    fake->gpus[index].mode = mode;
    (void)pthread_cond_broadcast(&fake->changed);
    (void)pthread_mutex_unlock(&fake->lock);
}

#endif
