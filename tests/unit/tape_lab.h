/* A machine that is recorded with clocks of its own: hours of it in a moment. */
#ifndef GP_TEST_TAPE_LAB_H
#define GP_TEST_TAPE_LAB_H

#include "unit.h"

#include "snapshot_fixture.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/event.h"
#include "tape/recorder.h"

#include <sys/stat.h>
#include <unistd.h>

#define S INT64_C(1000000)
#define START (INT64_C(1795800000) * S) /* a multiple of ten minutes */

struct lab {
    char folder[256];
    char path[300];
    struct fixture machine;
    char uuids[FIXTURE_DEVICES][16];
    struct gp_recorder *recorder;
    struct gp_axis_clocks clocks;
    uint64_t before_ns, age_max_ns, size_max; /* of the recorder's configuration */
};

static inline void lab_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct lab *lab = ctx;
    *ret = lab->clocks;
}

static inline void lab_start(struct lab *lab, uint64_t interval_ns)
{
    struct gp_err err = {0};
    const struct gp_recorder_config config = {
        .path = lab->path,
        .interval_ns = interval_ns,
        .before_ns = lab->before_ns,
        .age_max_ns = lab->age_max_ns,
        .size_max = lab->size_max,
        .clocks = lab_clocks,
        .ctx = lab,
    };
    if (gp_recorder_open(&config, &lab->recorder, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void lab_stop(struct lab *lab)
{
    struct gp_err err = {0};
    if (gp_recorder_close(lab->recorder, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void lab_pass(struct lab *lab, int64_t us)
{
    lab->clocks.wall_us += us;
    lab->clocks.boottime_us += us;
}

static inline void lab_sample(struct lab *lab)
{
    struct gp_err err = {0};
    if (gp_recorder_sample(lab->recorder, &lab->machine.snapshot, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void lab_event(struct lab *lab, enum gp_event_kind kind, const char *text)
{
    struct gp_err err = {0};
    struct gp_event event = {.kind = kind,
                             .has_gpu = true,
                             .gpu_instance = GP_EVENT_NO_INSTANCE,
                             .compute_instance = GP_EVENT_NO_INSTANCE};
    (void)snprintf(event.uuid, sizeof(event.uuid), "%s", lab->uuids[FIXTURE_WELL]);
    (void)snprintf(event.text, sizeof(event.text), "%s", text);
    if (gp_recorder_event(lab->recorder, &event, &err) < 0)
        fail_msg("%s", err.text);
}

static inline int lab_set_up(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    assert_non_null(lab);
    temporary_name(lab->folder, sizeof(lab->folder), "tape");
    assert_non_null(mkdtemp(lab->folder));
    (void)snprintf(lab->path, sizeof(lab->path), "%s/a.tape", lab->folder);
    lab->clocks = (struct gp_axis_clocks){START, 1000 * S, "boot"};
    fixture_init(&lab->machine);
    for (int i = 0; i < FIXTURE_DEVICES; i++) {
        (void)snprintf(lab->uuids[i], sizeof(lab->uuids[i]), "GPU-%d", i);
        *fixture_value(&lab->machine, i, GP_UUID) = fixture_text(lab->uuids[i]);
    }
    *state = lab;
    return 0;
}

static inline int lab_tear_down(void **state)
{
    struct lab *lab = *state;
    char command[400];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", lab->folder);
    assert_int_equal(system(command), 0);
    free(lab);
    return 0;
}

#endif
