/* Events out of snapshots and reports: each thing is told once, whoever noticed it first. */
#include "unit.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "sample/changes.h"
#include "sample/waiter.h"

enum { GPUS = 2, MIGS = 2, PROCESSES = 4 };

/* Two GPUs, the first one with MIG instances behind it if there are some. */
static struct bench {
    struct gp_changes changes;
    gp_event_kinds delivered;
    struct gp_device gpus[GPUS];
    struct gp_device migs[MIGS];
    size_t mig_count;
    struct gp_process processes[PROCESSES];
    struct gp_value cells[PROCESSES][GP_PROCESS__COUNT];
    size_t process_count;
    size_t told; /* events that the test has looked at */
} b;

static const gp_event_kinds everything = (UINT64_C(1) << GP_EVENT__COUNT) - 1;

static void set_int(struct gp_device *d, enum gp_metric m, int64_t i)
{
    gp_value_set_int(gp_device_value(d->values, m), i, 1);
}

static void set_text(struct gp_device *d, enum gp_metric m, const char *s)
{
    gp_value_set_text(gp_device_value(d->values, m), s, 1);
}

static int set_up(void **state)
{
    (void)state;
    memset(&b, 0, sizeof(b));
    gp_changes_init(&b.changes, everything);
    for (unsigned i = 0; i < GPUS; i++) {
        struct gp_device *d = &b.gpus[i];
        *d = (struct gp_device){.index = i,
                                .status = GP_STATUS_OK,
                                .status_text = "",
                                .processes_status = GP_STATUS_OK};
        set_text(d, GP_UUID, i ? "GPU-b" : "GPU-a");
        set_text(d, GP_PCI_BUS_ID, "00000000:01:00.0");
        set_text(d, GP_PSTATE, "P0");
        set_text(d, GP_RECOVERY_ACTION, "None");
        set_int(d, GP_ECC_CORRECTED_VOLATILE, 5);
        set_int(d, GP_PCIE_WIDTH, 16);
        set_int(d, GP_REASONS_ACTIVE, 0);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    size_t left = b.changes.out.count - b.told;
    gp_changes_fini(&b.changes);
    return left == 0 ? 0 : -1;
}

static gp_event_kinds delivered(void *ctx, unsigned index)
{
    (void)ctx;
    (void)index;
    return b.delivered;
}

static void compare(void)
{
    static struct gp_device devices[GPUS + MIGS];
    struct gp_snapshot snapshot = {
        .mono_ns = 7, .wall_ns = 8, .devices = devices, .processes = b.processes};
    devices[snapshot.device_count++] = b.gpus[0];
    for (size_t i = 0; i < b.mig_count; i++)
        devices[snapshot.device_count++] = b.migs[i];
    devices[snapshot.device_count++] = b.gpus[1];
    snapshot.process_count = b.process_count;
    gp_changes_compare(&b.changes, &snapshot, delivered, NULL);
    assert_false(b.changes.no_memory);
}

static bool report(unsigned gpu, enum gp_event_kind kind, uint64_t number)
{
    const struct gp_source_event event = {.kind = kind,
                                          .device = gpu,
                                          .wall_ns = 100,
                                          .mono_ns = 99,
                                          .number = number,
                                          .gpu_instance = GP_EVENT_NO_INSTANCE,
                                          .compute_instance = GP_EVENT_NO_INSTANCE,
                                          .words = ""};
    return gp_changes_report(&b.changes, &event);
}

/* The next event, which the test expects to be this one. */
static const struct gp_event *told(unsigned gpu, enum gp_event_kind kind, bool from_driver,
                                   const char *text)
{
    if (b.told == b.changes.out.count)
        fail_msg("nothing is told, expected: %s", text);
    const struct gp_event *event = &b.changes.out.items[b.told++];
    assert_string_equal(event->text, text);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->index, gpu);
    assert_int_equal(event->from_driver, from_driver);
    assert_true(event->has_gpu);
    assert_int_equal(event->wall_ns, from_driver ? 100 : 8);
    return event;
}

static void nothing_more(void)
{
    if (b.told < b.changes.out.count)
        fail_msg("told too: %s", b.changes.out.items[b.told].text);
}

/* ---- differences ---- */

static void the_first_snapshot_is_no_event(void **state)
{
    (void)state;
    compare();
    compare();
    nothing_more();
}

static void differences_are_told_at_once_where_nobody_reports_them(void **state)
{
    (void)state;
    compare();
    set_text(&b.gpus[1], GP_PSTATE, "P8");
    set_int(&b.gpus[1], GP_PCIE_WIDTH, 8);
    compare();
    const struct gp_event *event = told(1, GP_EVENT_PSTATE, false, "performance state P0 → P8");
    assert_string_equal(event->uuid, "GPU-b");
    assert_string_equal(event->was, "P0");
    assert_string_equal(event->now, "P8");
    assert_false(event->numeric);
    event = told(1, GP_EVENT_PCIE, false, "PCIe width 16 → 8");
    assert_true(event->numeric);
    nothing_more();
    compare();
    nothing_more();
}

static void counters_that_fall_were_reset(void **state)
{
    (void)state;
    compare();
    set_int(&b.gpus[0], GP_ECC_CORRECTED_VOLATILE, 0);
    compare();
    nothing_more();
    set_int(&b.gpus[0], GP_ECC_CORRECTED_VOLATILE, 1);
    compare();
    told(0, GP_EVENT_ECC_CORRECTED, false,
         "1 corrected memory error (1 since the driver was loaded)");
    set_int(&b.gpus[0], GP_ECC_CORRECTED_VOLATILE, 4);
    compare();
    told(0, GP_EVENT_ECC_CORRECTED, false,
         "3 corrected memory errors (4 since the driver was loaded)");
}

static void reasons_in_words(void **state)
{
    (void)state;
    compare();
    set_int(&b.gpus[0], GP_REASONS_ACTIVE, 0x1); /* idle holds nobody back */
    compare();
    nothing_more();
    set_int(&b.gpus[0], GP_REASONS_ACTIVE, 0x84);
    compare();
    const struct gp_event *event =
        told(0, GP_EVENT_THROTTLE, false, "clocks limited by the power limit, the power brake");
    assert_string_equal(event->now, "0x0000000000000084");
    set_int(&b.gpus[0], GP_REASONS_ACTIVE, 0x1fe);
    compare();
    assert_true(strlen(b.changes.out.items[b.told++].text) > 100);
    set_int(&b.gpus[0], GP_REASONS_ACTIVE, 0x1);
    compare();
    told(0, GP_EVENT_THROTTLE, false, "clocks no longer limited");
}

static void an_absent_value_is_no_change(void **state)
{
    (void)state;
    compare();
    gp_value_set_absent(gp_device_value(b.gpus[0].values, GP_PSTATE), GP_STATUS_ERROR, NULL, 1);
    compare();
    set_text(&b.gpus[0], GP_PSTATE, "P0");
    compare();
    nothing_more();
    gp_value_set_absent(gp_device_value(b.gpus[0].values, GP_PSTATE), GP_STATUS_ERROR, NULL, 1);
    compare();
    set_text(&b.gpus[0], GP_PSTATE, "P2");
    compare();
    told(0, GP_EVENT_PSTATE, false, "performance state P0 → P2");
}

static void only_what_is_wanted(void **state)
{
    (void)state;
    gp_changes_fini(&b.changes);
    gp_changes_init(&b.changes, gp_event_bit(GP_EVENT_PSTATE));
    compare();
    set_int(&b.gpus[0], GP_PCIE_WIDTH, 8);
    b.gpus[1].status = GP_STATUS_LOST;
    assert_false(report(0, GP_EVENT_XID, 13));
    compare();
    nothing_more();
    struct gp_want want = {0};
    gp_changes_want(gp_event_bit(GP_EVENT_PSTATE), &want);
    assert_true(gp_metric_set_has(&want.metrics, GP_PSTATE));
    assert_false(gp_metric_set_has(&want.metrics, GP_PCIE_WIDTH));
    assert_false(want.processes || want.mig);
    assert_true(want.fresh);
}

/* What is sampled for each kind of difference, and what one of it looks like. */
static const struct kind_case {
    enum gp_event_kind kind;
    enum gp_metric metric;
    bool numeric;
    const char *text; /* a text "yes" after "no", or a number 7 after 4 */
} kind_cases[] = {
    {GP_EVENT_RECOVERY, GP_RECOVERY_ACTION, false, "recovery action no → yes"},
    {GP_EVENT_ECC_CORRECTED, GP_ECC_CORRECTED_VOLATILE, true,
     "3 corrected memory errors (7 since the driver was loaded)"},
    {GP_EVENT_ECC_UNCORRECTED, GP_ECC_UNCORRECTED_VOLATILE, true,
     "3 uncorrectable memory errors (7 since the driver was loaded)"},
    {GP_EVENT_RETIREMENT, GP_RETIRED_PENDING, false, "memory pages pending retirement: no → yes"},
    {GP_EVENT_RETIREMENT, GP_REMAPPED_PENDING, false, "memory rows pending remapping: no → yes"},
    {GP_EVENT_RETIREMENT, GP_REMAPPED_FAILURE, false,
     "memory rows that failed to be remapped: no → yes"},
    {GP_EVENT_PSTATE, GP_PSTATE, false, "performance state no → yes"},
    {GP_EVENT_THROTTLE, GP_REASONS_ACTIVE, false,
     "clocks limited by a clock setting, the power limit"},
    {GP_EVENT_PCIE, GP_PCIE_GEN, true, "PCIe generation 4 → 7"},
    {GP_EVENT_PCIE, GP_PCIE_WIDTH, true, "PCIe width 4 → 7"},
    {GP_EVENT_MIG, GP_MIG_MODE, false, "MIG mode no → yes"},
    {GP_EVENT_PERSISTENCE, GP_PERSISTENCE_MODE, false, "persistence mode no → yes"},
    {GP_EVENT_ECC_MODE, GP_ECC_MODE, false, "ECC mode no → yes"},
};

static void each_difference_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(kind_cases); i++) {
        const struct kind_case *c = &kind_cases[i];
        bool is_text = gp_metric_table[c->metric].type == GP_TYPE_TEXT;
        gp_changes_fini(&b.changes);
        (void)set_up(NULL);
        for (int later = 0; later < 2; later++) {
            if (is_text)
                set_text(&b.gpus[1], c->metric, later ? "yes" : "no");
            else
                set_int(&b.gpus[1], c->metric, later ? 7 : 4);
            compare();
        }
        const struct gp_event *event = told(1, c->kind, false, c->text);
        assert_int_equal(event->numeric, c->numeric);
        nothing_more();
    }
}

static size_t metrics_of(const struct gp_want *want)
{
    size_t n = 0;
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        n += gp_metric_set_has(&want->metrics, (enum gp_metric)m);
    return n;
}

static void each_kind_has_what_it_needs_sampled(void **state)
{
    (void)state;
    for (int kind = 0; kind < GP_EVENT__COUNT; kind++) {
        struct gp_want want = {0};
        size_t expected = 2; /* who it is */
        bool is_process =
            gp_event_group_kinds(GP_EVENT_GROUP_PROCESS) & gp_event_bit((enum gp_event_kind)kind);
        bool asks = false;
        gp_changes_want(gp_event_bit((enum gp_event_kind)kind), &want);
        for (size_t i = 0; i < GP_ARRAY_LEN(kind_cases); i++)
            if (kind_cases[i].kind == (enum gp_event_kind)kind) {
                assert_true(gp_metric_set_has(&want.metrics, kind_cases[i].metric));
                asks = true;
                expected++;
            }
        assert_int_equal(gp_metric_set_has(&want.metrics, GP_STATUS), !asks);
        assert_int_equal(gp_metric_set_has(&want.metrics, GP_PID), is_process);
        assert_int_equal(gp_metric_set_has(&want.metrics, GP_PROCESS_NAME), is_process);
        assert_int_equal(gp_metric_set_has(&want.metrics, GP_PROCESS_USER), is_process);
        assert_int_equal(gp_metric_set_has(&want.metrics, GP_MIG_PROFILE), kind == GP_EVENT_MIG);
        assert_true(gp_metric_set_has(&want.metrics, GP_UUID));
        assert_true(gp_metric_set_has(&want.metrics, GP_PCI_BUS_ID));
        assert_int_equal(want.mig, kind == GP_EVENT_MIG);
        assert_int_equal(want.processes, is_process);
        expected += (asks ? 0 : 1) + (is_process ? 3 : 0) + (kind == GP_EVENT_MIG ? 1 : 0);
        assert_int_equal(metrics_of(&want), expected);
    }
}

/* ---- gaps ---- */

static void a_gap_in_words(void **state)
{
    (void)state;
    char from[GP_RFC3339_SIZE], to[GP_RFC3339_SIZE], text[300];
    struct gp_waiter_gap gap = {.devices = 1,
                                .name = 7,
                                .from_ns = gp_clock_mono_ns() - 3600 * GP_NS_PER_S,
                                .to_ns = gp_clock_mono_ns(),
                                .kinds = gp_event_bit(GP_EVENT_XID),
                                .why = "of the weather"};
    for (gap.devices = 1; gap.devices < 3; gap.devices++) {
        gp_changes_gap(&b.changes, &gap);
        assert_int_equal(b.changes.out.count, b.told + 1);
        const struct gp_event *event = &b.changes.out.items[b.told++];
        assert_int_equal(event->kind, GP_EVENT_MISSED);
        assert_true(event->to_ns > event->from_ns + 3599 * GP_NS_PER_S);
        gp_clock_plain(event->from_ns, from);
        gp_clock_plain(event->to_ns, to);
        (void)snprintf(text, sizeof(text),
                       "driver events of %s from %s to %s may be missing: of the weather",
                       gap.devices == 1 ? "GPU 7" : "2 GPUs", from, to);
        assert_string_equal(event->text, text);
        assert_false(event->has_gpu);
    }
    /* nobody wants what is missing */
    gp_changes_fini(&b.changes);
    gp_changes_init(&b.changes, gp_event_bit(GP_EVENT_PSTATE));
    b.told = 0;
    gp_changes_gap(&b.changes, &gap);
    nothing_more();
}

/* ---- lost, silent, asleep ---- */

static void a_gpu_that_goes_and_comes(void **state)
{
    (void)state;
    static const struct {
        enum gp_status status;
        enum gp_event_kind kind;
    } steps[] = {
        {GP_STATUS_TIMEOUT, GP_EVENT_SILENT}, {GP_STATUS_LOST, GP_EVENT_LOST},
        {GP_STATUS_OK, GP_EVENT_BACK},        {GP_STATUS_ASLEEP, GP_EVENT_ASLEEP},
        {GP_STATUS_OK, GP_EVENT_AWAKE},       {GP_STATUS_RELEASED, GP_EVENT_RELEASED},
        {GP_STATUS_OK, GP_EVENT_BACK},        {GP_STATUS_NO_PERMISSION, GP_EVENT_LOST},
    };
    compare();
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++) {
        b.gpus[1].status = steps[i].status;
        b.gpus[1].status_text = steps[i].status == GP_STATUS_OK ? "" : "why";
        compare();
        assert_int_equal(b.changes.out.count, b.told + 1);
        const struct gp_event *event = &b.changes.out.items[b.told++];
        assert_int_equal(event->kind, steps[i].kind);
        assert_string_equal(event->text, steps[i].status != GP_STATUS_OK   ? "why"
                                         : steps[i].kind == GP_EVENT_AWAKE ? "awake again"
                                                                           : "responds again");
        compare();
        nothing_more();
    }
}

static void a_gpu_that_is_lost_from_the_beginning(void **state)
{
    (void)state;
    b.gpus[0].status = GP_STATUS_LOST;
    b.gpus[0].status_text = "gone";
    compare();
    told(0, GP_EVENT_LOST, false, "gone");
}

/* What changed while it was away is told when it is back; its reset counters are not. */
static void a_change_behind_a_loss(void **state)
{
    (void)state;
    compare();
    b.gpus[0].status = GP_STATUS_LOST;
    compare();
    b.told++;
    b.gpus[0].status = GP_STATUS_OK;
    set_text(&b.gpus[0], GP_RECOVERY_ACTION, "Reset");
    set_int(&b.gpus[0], GP_ECC_CORRECTED_VOLATILE, 0);
    compare();
    told(0, GP_EVENT_BACK, false, "responds again");
    told(0, GP_EVENT_RECOVERY, false, "recovery action None → Reset");
}

/* ---- reports ---- */

static void a_report_that_no_reading_explains_is_told_alone(void **state)
{
    (void)state;
    compare();
    assert_false(report(1, GP_EVENT_XID, 79));
    const struct gp_event *event =
        told(1, GP_EVENT_XID, true,
             "Xid 79: the GPU has fallen off the bus (hardware); reboot, preferably with a power "
             "cycle; then check power, seating, temperature and PCIe errors");
    assert_int_equal(event->number, 79);
    assert_false(report(7, GP_EVENT_XID, 13)); /* a GPU that nobody has chosen */
    assert_true(report(1, GP_EVENT_PSTATE, 0));
    nothing_more(); /* until the readings have been looked at */
    compare();
    told(1, GP_EVENT_PSTATE, true, "the performance state changed");
}

static void a_report_and_its_difference_are_one_event(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_PSTATE);
    compare();
    /* the report first */
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    set_text(&b.gpus[0], GP_PSTATE, "P8");
    compare();
    told(0, GP_EVENT_PSTATE, true, "performance state P0 → P8");
    compare();
    nothing_more();
    /* the difference first */
    set_text(&b.gpus[0], GP_PSTATE, "P0");
    compare();
    nothing_more();
    assert_true(gp_changes_is_holding(&b.changes));
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    compare();
    told(0, GP_EVENT_PSTATE, true, "performance state P8 → P0");
    assert_false(gp_changes_is_holding(&b.changes));
    compare();
    nothing_more();
}

static void a_report_of_another_gpu_explains_nothing(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_PSTATE);
    compare();
    assert_true(report(1, GP_EVENT_PSTATE, 0));
    set_text(&b.gpus[0], GP_PSTATE, "P8");
    compare();
    told(1, GP_EVENT_PSTATE, true, "the performance state changed");
    compare();
    told(0, GP_EVENT_PSTATE, false, "performance state P0 → P8");
}

/* A driver that should report it and does not. */
static void a_difference_waits_for_its_report_once(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_RECOVERY);
    compare();
    set_text(&b.gpus[0], GP_RECOVERY_ACTION, "Reset");
    compare();
    nothing_more();
    compare();
    told(0, GP_EVENT_RECOVERY, false, "recovery action None → Reset");
    compare();
    nothing_more();
}

/* A report that comes when its difference has been passed on: nothing new, but only once. */
static void a_report_right_behind_its_difference(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_PSTATE);
    compare();
    set_text(&b.gpus[0], GP_PSTATE, "P8");
    compare();
    compare();
    told(0, GP_EVENT_PSTATE, false, "performance state P0 → P8");
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    compare();
    nothing_more();
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    compare();
    told(0, GP_EVENT_PSTATE, true, "the performance state changed");
    compare();
    /* and a later one is another event */
    set_text(&b.gpus[0], GP_PSTATE, "P0");
    compare();
    compare();
    compare();
    told(0, GP_EVENT_PSTATE, false, "performance state P8 → P0");
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    compare();
    told(0, GP_EVENT_PSTATE, true, "the performance state changed");
}

/* A report that comes before the reading shows it: told alone, and not once more. */
static void a_difference_right_behind_its_report(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_PSTATE);
    compare();
    assert_true(report(0, GP_EVENT_PSTATE, 0));
    compare();
    told(0, GP_EVENT_PSTATE, true, "the performance state changed");
    set_text(&b.gpus[0], GP_PSTATE, "P8");
    compare();
    compare();
    nothing_more();
    /* but a later one is another event */
    set_text(&b.gpus[0], GP_PSTATE, "P0");
    compare();
    compare();
    told(0, GP_EVENT_PSTATE, false, "performance state P8 → P0");
}

static void reports_of_a_storm_are_all_told(void **state)
{
    (void)state;
    b.delivered = gp_event_bit(GP_EVENT_ECC_CORRECTED);
    compare();
    for (int i = 0; i < 1000; i++)
        assert_true(report(0, GP_EVENT_ECC_CORRECTED, 0));
    set_int(&b.gpus[0], GP_ECC_CORRECTED_VOLATILE, 1005);
    compare();
    told(0, GP_EVENT_ECC_CORRECTED, true,
         "1000 corrected memory errors (1005 since the driver was loaded)");
    for (int i = 1; i < 1000; i++)
        told(0, GP_EVENT_ECC_CORRECTED, true, "a memory error was corrected");
    nothing_more();
}

/* ---- MIG and processes ---- */

static void set_mig(size_t i, const char *uuid, int gpu_instance)
{
    b.migs[i] = (struct gp_device){.index = 0,
                                   .is_mig = true,
                                   .status = GP_STATUS_OK,
                                   .status_text = "",
                                   .processes_status = GP_STATUS_OK};
    set_text(&b.migs[i], GP_UUID, uuid);
    set_text(&b.migs[i], GP_MIG_PROFILE, "1g.10gb");
    set_int(&b.migs[i], GP_MIG_GPU_INSTANCE, gpu_instance);
    set_int(&b.migs[i], GP_MIG_COMPUTE_INSTANCE, 0);
}

static void instances_come_and_go(void **state)
{
    (void)state;
    compare();
    set_mig(0, "MIG-a", 3);
    set_mig(1, "MIG-b", 4);
    b.mig_count = 2;
    compare();
    const struct gp_event *event =
        told(0, GP_EVENT_MIG, false, "MIG instance 1g.10gb created, MIG-a");
    assert_int_equal(event->gpu_instance, 3);
    assert_int_equal(event->compute_instance, 0);
    assert_string_equal(event->uuid, "GPU-a");
    told(0, GP_EVENT_MIG, false, "MIG instance 1g.10gb created, MIG-b");
    /* the place of one is used again */
    set_mig(0, "MIG-c", 3);
    compare();
    told(0, GP_EVENT_MIG, false, "MIG instance 1g.10gb removed, MIG-a");
    told(0, GP_EVENT_MIG, false, "MIG instance 1g.10gb created, MIG-c");
    /* a lost GPU shows none: that is not a change */
    b.gpus[0].status = GP_STATUS_LOST;
    b.mig_count = 0;
    compare();
    b.told++;
    b.gpus[0].status = GP_STATUS_OK;
    b.mig_count = 2;
    compare();
    told(0, GP_EVENT_BACK, false, "responds again");
}

static void set_process(size_t i, size_t device, uint32_t pid, const char *name)
{
    struct gp_process *p = &b.processes[i];
    *p = (struct gp_process){.device = (uint32_t)device, .cells = b.cells[i]};
    gp_value_set_int(&p->cells[GP_PID - GP_PROCESS__FIRST], pid, 1);
    gp_value_set_text(&p->cells[GP_PROCESS_NAME - GP_PROCESS__FIRST], name, 1);
    gp_value_set_text(&p->cells[GP_PROCESS_USER - GP_PROCESS__FIRST], "ann", 1);
}

static void processes_come_and_go(void **state)
{
    (void)state;
    set_process(0, 1, 300, "old");
    b.process_count = 1;
    compare();
    nothing_more();
    set_process(0, 1, 400, "c");
    set_process(1, 1, 200, "a");
    set_process(2, 1, 300, "old");
    set_process(3, 1, 200, "a"); /* compute and graphics */
    b.process_count = 4;
    compare();
    const struct gp_event *event =
        told(1, GP_EVENT_PROCESS_START, false, "process 200 started: a of ann");
    assert_int_equal(event->number, 200);
    told(1, GP_EVENT_PROCESS_START, false, "process 400 started: c of ann");
    /* without a list nothing has ended */
    b.gpus[1].processes_status = GP_STATUS_NO_PERMISSION;
    b.process_count = 0;
    compare();
    nothing_more();
    b.gpus[1].processes_status = GP_STATUS_OK;
    set_process(0, 1, 400, "c");
    b.process_count = 1;
    compare();
    told(1, GP_EVENT_PROCESS_END, false, "process 200 ended: a of ann");
    told(1, GP_EVENT_PROCESS_END, false, "process 300 ended: old of ann");
}

/* Between its last breath and the driver's next list nobody knows a process's name any more. */
static void processes_keep_their_name(void **state)
{
    (void)state;
    compare();
    set_process(0, 1, 400, "c");
    b.process_count = 1;
    compare();
    told(1, GP_EVENT_PROCESS_START, false, "process 400 started: c of ann");
    gp_value_set_text(&b.cells[0][GP_PROCESS_NAME - GP_PROCESS__FIRST], "", 2);
    gp_value_set_text(&b.cells[0][GP_PROCESS_USER - GP_PROCESS__FIRST], "", 2);
    compare();
    nothing_more();
    b.process_count = 0;
    compare();
    told(1, GP_EVENT_PROCESS_END, false, "process 400 ended: c of ann");
}

static void processes_alone_may_be_wanted(void **state)
{
    (void)state;
    gp_changes_fini(&b.changes);
    gp_changes_init(&b.changes, gp_event_bit(GP_EVENT_PROCESS_START));
    compare();
    set_process(0, 1, 10, "train");
    b.process_count = 1;
    b.gpus[1].process_count = 1;
    set_text(&b.gpus[1], GP_PSTATE, "P5");
    compare();
    assert_int_equal(b.changes.out.count, 1);
    assert_int_equal(b.changes.out.items[b.told++].kind, GP_EVENT_PROCESS_START);
    b.process_count = 0;
    b.gpus[1].process_count = 0;
    compare();
    nothing_more();
}

static void without_memory_it_is_noted(void **state)
{
    (void)state;
    compare();
    b.gpus[0].status = GP_STATUS_LOST;
    const struct gp_source_event event = {.kind = GP_EVENT_XID, .words = ""};
    alloc_fail_from(0);
    (void)gp_changes_report(&b.changes, &event);
    alloc_fail_from(-1);
    assert_true(b.changes.no_memory);
    nothing_more();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_snapshot_is_no_event),
        TEST(differences_are_told_at_once_where_nobody_reports_them),
        TEST(counters_that_fall_were_reset),
        TEST(reasons_in_words),
        TEST(an_absent_value_is_no_change),
        TEST(only_what_is_wanted),
        TEST(each_difference_in_words),
        TEST(each_kind_has_what_it_needs_sampled),
        TEST(a_gap_in_words),
        TEST(a_gpu_that_goes_and_comes),
        TEST(a_gpu_that_is_lost_from_the_beginning),
        TEST(a_change_behind_a_loss),
        TEST(a_report_that_no_reading_explains_is_told_alone),
        TEST(a_report_and_its_difference_are_one_event),
        TEST(a_report_of_another_gpu_explains_nothing),
        TEST(a_difference_waits_for_its_report_once),
        TEST(a_report_right_behind_its_difference),
        TEST(a_difference_right_behind_its_report),
        TEST(reports_of_a_storm_are_all_told),
        TEST(instances_come_and_go),
        TEST(processes_come_and_go),
        TEST(processes_keep_their_name),
        TEST(processes_alone_may_be_wanted),
        TEST(without_memory_it_is_noted),
    };
    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
