/* The assembler alone: a test lays readings into slots and looks at the snapshot. What /proc, the
 * clocks and the notes of suspended processes say is the test's, too; for tests linked with --wrap
 * of the functions below. */
#ifndef GP_TESTS_ASSEMBLE_BENCH_H
#define GP_TESTS_ASSEMBLE_BENCH_H

#include "rows.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/shared.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/proc.h"
#include "sample/assemble.h"

#include <unistd.h>

enum { BENCH_GPUS = 3, BENCH_PROCESSES = 8 };

#define BENCH_MONO_NS (1000 * GP_NS_PER_S)
#define BENCH_READ_NS (990 * GP_NS_PER_S) /* of readings */
#define BENCH_WALL_NS (1700000000 * GP_NS_PER_S)

static struct {
    struct gp_assembler a;
    struct gp_selection selection;
    struct gp_want want;
    struct gp_slot slots[BENCH_GPUS];
    struct gp_snapshot *snapshot;
    struct gp_err err;
    /* what there is in /proc: sorted by pid */
    struct gp_proc_info infos[BENCH_PROCESSES];
    size_t info_count;
    struct gp_proc_infos answer;
    struct gp_proc_host host;
    const char *host_name; /* NULL: it is not known */
    struct gp_suspended suspended[2];
    size_t suspended_count;
    /* what was asked */
    unsigned proc_want;
    uint32_t pids[BENCH_PROCESSES];
    size_t pid_count;
    unsigned host_want, host_reads, suspended_reads;
    uint64_t host_every_ns;
} bench;

uint64_t __wrap_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_wall_ns(void);
int __wrap_gethostname(char *name, size_t size);
const struct gp_proc_infos *__wrap_gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                                const uint32_t *pids, size_t count);
void __wrap_gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, uint64_t every_ns,
                              struct gp_proc_host *ret);
int __wrap_gp_suspended_read(const char *root, struct gp_suspended_list *ret, struct gp_err *err);

uint64_t __wrap_gp_clock_mono_ns(void)
{
    return BENCH_MONO_NS;
}

uint64_t __wrap_gp_clock_wall_ns(void)
{
    return BENCH_WALL_NS;
}

int __wrap_gethostname(char *name, size_t size)
{
    if (!bench.host_name)
        return -1;
    strncpy(name, bench.host_name, size); /* ends with no NUL where it is too long */
    return 0;
}

const struct gp_proc_infos *__wrap_gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                                const uint32_t *pids, size_t count)
{
    assert_non_null(reader);
    assert_in_range(count, 0, BENCH_PROCESSES);
    bench.proc_want = want;
    bench.pid_count = count;
    if (count > 0)
        memcpy(bench.pids, pids, count * sizeof(*pids));
    bench.answer = (struct gp_proc_infos){bench.infos, bench.info_count};
    return &bench.answer;
}

void __wrap_gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, uint64_t every_ns,
                              struct gp_proc_host *ret)
{
    assert_non_null(reader);
    bench.host_want = want;
    bench.host_every_ns = every_ns;
    bench.host_reads++;
    *ret = bench.host;
}

int __wrap_gp_suspended_read(const char *root, struct gp_suspended_list *ret, struct gp_err *err)
{
    assert_null(err);
    assert_string_equal(root, "/root-of-it");
    bench.suspended_reads++;
    ret->items = calloc(2, sizeof(*ret->items));
    if (!ret->items)
        return GP_ENOMEM;
    memcpy(ret->items, bench.suspended, sizeof(bench.suspended));
    ret->count = bench.suspended_count;
    return 0;
}

/* Empty slots, and the choice of GPUs; NULL: all. */
static inline void begin(const char *choice)
{
    memset(&bench, 0, sizeof(bench));
    bench.host_name = "box";
    for (unsigned i = 0; i < BENCH_GPUS; i++)
        bench.slots[i].index = i;
    if (choice)
        assert_int_equal(gp_selection_parse(choice, &bench.selection, NULL), 0);
}

static inline void want(enum gp_metric m)
{
    gp_metric_set_add(&bench.want.metrics, m);
}

static inline void make(void)
{
    assert_int_equal(
        gp_assembler_init(&bench.a, &bench.selection, &bench.want, "/root-of-it", &bench.err), 0);
}

static inline void end(void)
{
    for (unsigned i = 0; i < BENCH_GPUS; i++) {
        gp_reading_unref(bench.slots[i].latest);
        gp_reading_unref(bench.slots[i].good);
    }
    gp_assembler_fini(&bench.a);
    gp_snapshot_free(bench.snapshot);
    bench.snapshot = NULL;
    for (size_t i = 0; i < bench.info_count; i++) {
        assert_int_equal(atomic_load(&bench.infos[i].texts->shared.holders), 1);
        gp_shared_drop(&bench.infos[i].texts->shared);
    }
}

/* A process that /proc is asked about, behind those with smaller pids. */
static inline struct gp_proc_info *add_info(uint32_t pid)
{
    struct gp_proc_info *info = &bench.infos[bench.info_count++];
    *info = (struct gp_proc_info){.pid = pid, .texts = gp_shared_new(sizeof(*info->texts))};
    assert_non_null(info->texts);
    return info;
}

static inline struct gp_reading *new_reading(enum gp_status status)
{
    struct gp_reading *reading = gp_reading_new();
    assert_non_null(reading);
    reading->status = status;
    reading->time_ns = BENCH_READ_NS;
    return reading;
}

/* A GPU that has answered: its reading, to be filled. */
static inline struct gp_reading *answer(unsigned slot)
{
    bench.slots[slot].latest = new_reading(GP_STATUS_OK);
    bench.slots[slot].good = gp_reading_ref(bench.slots[slot].latest);
    return bench.slots[slot].latest;
}

static inline void set_int(struct gp_value *values, enum gp_metric m, int64_t i)
{
    gp_value_set_int(gp_device_value(values, m), i, BENCH_READ_NS);
}

static inline void set_text(struct gp_value *values, enum gp_metric m, const char *s)
{
    gp_value_set_text(gp_device_value(values, m), s, BENCH_READ_NS);
}

static inline void set_absent(struct gp_value *values, enum gp_metric m, enum gp_status status,
                              const char *words)
{
    gp_value_set_absent(gp_device_value(values, m), status, words, BENCH_READ_NS);
}

/* Room for so many instances; GPU instance and compute instance of each have its place. */
static inline struct gp_mig_reading *add_instances(struct gp_reading *reading, size_t count)
{
    reading->mig = gp_arena_alloc(&reading->arena, count, sizeof(*reading->mig));
    assert_non_null(reading->mig);
    reading->mig_count = count;
    for (size_t i = 0; i < count; i++) {
        reading->mig[i].index = 10 + (unsigned)i;
        set_int(reading->mig[i].values, GP_MIG_GPU_INSTANCE, 20 + (int64_t)i);
        set_int(reading->mig[i].values, GP_MIG_COMPUTE_INSTANCE, 30 + (int64_t)i);
    }
    return reading->mig;
}

static inline void open_tick(size_t slots)
{
    assert_int_equal(gp_assembler_prepare(&bench.a, &bench.err), 0);
    assert_int_equal(gp_assembler_start(&bench.a, slots, (unsigned)slots, &bench.err), 0);
}

static inline void take(unsigned slot, enum gp_status status, const char *text)
{
    gp_assembler_take(&bench.a, &bench.slots[slot], status, status == GP_STATUS_OK ? 0 : 2.5, text);
}

static inline int close_tick(void)
{
    gp_snapshot_free(bench.snapshot);
    bench.snapshot = NULL;
    return gp_assembler_finish(&bench.a, &bench.snapshot, &bench.err);
}

/* A tick in which so many GPUs have answered. */
static inline void tick_all(unsigned count)
{
    open_tick(count);
    for (unsigned i = 0; i < count; i++)
        take(i, GP_STATUS_OK, "");
    assert_int_equal(close_tick(), 0);
}

/* A tick of one GPU that stands so. */
static inline void tick_one(enum gp_status status, const char *text)
{
    open_tick(1);
    take(0, status, text);
    assert_int_equal(close_tick(), 0);
}

static inline const struct gp_value *value(size_t row, enum gp_metric m)
{
    assert_true(row < bench.snapshot->device_count);
    return gp_snapshot_value(bench.snapshot, &bench.snapshot->devices[row], NULL, m);
}

static inline void check_int(const struct gp_value *v, enum gp_status status, int64_t i)
{
    assert_int_equal(v->status, status);
    assert_int_equal(v->i, i);
}

static inline void check_text(const struct gp_value *v, enum gp_status status, const char *s)
{
    assert_int_equal(v->status, status);
    assert_non_null(v->s);
    assert_string_equal(v->s, s);
}

/* words: NULL where it does not say more. */
static inline void check_absent(const struct gp_value *v, enum gp_status status, const char *words)
{
    assert_int_equal(v->status, status);
    if (words)
        assert_string_equal(v->s, words);
    else
        assert_null(v->s);
}

#endif
