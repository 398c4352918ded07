/* One NVML source on a driver whose every answer the test dictates; time is the test's too. */
#ifndef GP_TESTS_NVML_RIG_H
#define GP_TESTS_NVML_RIG_H

#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "fake_nvml.h"
#include "source/nvml/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

/* ---- time ---- */

static uint64_t now_ns;

uint64_t __wrap_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_wall_ns(void);

uint64_t __wrap_gp_clock_mono_ns(void)
{
    return now_ns;
}

uint64_t __wrap_gp_clock_wall_ns(void)
{
    return now_ns + 1000000 * GP_NS_PER_S;
}

static inline void after_ms(uint64_t ms)
{
    now_ns += ms * GP_NS_PER_MS;
}

/* The wall time `ms` ago, as the driver stamps its samples. */
static inline unsigned long long stamp_us(uint64_t ms)
{
    return gp_clock_wall_ns() / 1000 - 1000 * ms;
}

/* ---- one source on one such driver ---- */

static struct {
    struct fake_nvml *fake;
    char root[64];
    struct gp_source *source;
    unsigned count;
    gp_call_name call;
    struct gp_source_device *device;
    struct gp_want want;
    struct gp_reading *reading;
} rig;

static inline struct fake_nvml *load_fake(void)
{
    void *library = dlopen(getenv("GPULSE_FAKE_NVML"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    void *symbol = dlsym(library, FAKE_NVML_GET);
    fake_nvml_get_fn get;
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

static inline int set_up(void **state)
{
    (void)state;
    struct fake_nvml *fake = rig.fake ? rig.fake : load_fake();
    memset(&rig, 0, sizeof(rig));
    memset(fake, 0, sizeof(*fake));
    rig.fake = fake;
    now_ns = 1000 * GP_NS_PER_S;
    temporary_name(rig.root, sizeof(rig.root), "nvml");
    assert_non_null(mkdtemp(rig.root));
    fake->driver_version = "580.95.05";
    fake->gpu_count = 1;
    fake->gpus[0] = (struct nvmlDevice_st){.uuid = "GPU-a", .name = "NVIDIA A"};
    fake->gpus[1] = (struct nvmlDevice_st){.uuid = "GPU-b", .name = "NVIDIA B"};
    fake->memory = (nvmlMemory_v2_t){.total = 1000, .reserved = 100, .used = 300, .free = 600};
    return 0;
}

static inline void leave(void)
{
    rig.source->ops->detach(rig.device);
    rig.device = NULL;
    rig.source->ops->close(rig.source);
}

static inline int tear_down(void **state)
{
    (void)state;
    char command[128];
    gp_reading_unref(rig.reading);
    if (rig.source) {
        leave();
        rig.source->ops->free(rig.source);
    }
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", rig.root);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

static inline void open_source(void)
{
    const struct gp_nvml_config config = {.library = getenv("GPULSE_FAKE_NVML"), .root = rig.root};
    struct gp_err err = {0};
    if (!rig.source)
        rig.source = gp_nvml_new(&config);
    assert_non_null(rig.source);
    if (rig.source->ops->open(rig.source, &rig.count, &err) < 0)
        fail_msg("%s", err.text);
}

static inline int attach(unsigned index)
{
    gp_reading_unref(rig.reading);
    rig.reading = gp_reading_new();
    assert_non_null(rig.reading);
    return rig.source->ops->attach(rig.source, index, &rig.call, &rig.device, rig.reading);
}

static inline void start(void)
{
    open_source();
    assert_int_equal(attach(0), 0);
    assert_string_equal(rig.source->ops->uuid(rig.device), "GPU-a");
}

static inline void want(enum gp_metric m)
{
    gp_metric_set_add(&rig.want.metrics, m);
}

static inline void read_once(void)
{
    gp_reading_unref(rig.reading);
    rig.reading = gp_reading_new();
    assert_non_null(rig.reading);
    rig.source->ops->read(rig.device, &rig.want, rig.reading);
}

static inline void read_ok(void)
{
    read_once();
    if (rig.reading->status != GP_STATUS_OK)
        fail_msg("%s", rig.reading->status_text);
}

static inline const struct gp_value *value(enum gp_metric m)
{
    return gp_device_value(rig.reading->values, m);
}

static inline void check_number(enum gp_metric m, int64_t expected)
{
    assert_int_equal(value(m)->status, GP_STATUS_OK);
    assert_int_equal(value(m)->i, expected);
}

static inline void check_absent(enum gp_metric m, enum gp_status status)
{
    if (value(m)->status != (uint8_t)status)
        fail_msg("%s is %d, expected %d", GP_METRIC_NAME(m), value(m)->status, (int)status);
}

static inline void check_impossible(enum gp_metric m)
{
    check_absent(m, GP_STATUS_ERROR);
    assert_string_equal(value(m)->s, "impossible value");
}

#define CALLS(name) (rig.fake->calls[FAKE_##name])
#define ANSWERS(name, code) (rig.fake->rc[FAKE_##name] = (code))

static inline unsigned all_calls(void)
{
    unsigned sum = 0;
    for (size_t i = 0; i < FAKE_NVML_COUNT; i++)
        sum += rig.fake->calls[i];
    return sum;
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
