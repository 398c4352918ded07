/* Which GPUs a job may have: on four GPUs by hand, of which each test changes what it is about. */
#include "unit.h"

#include "base/err.h"
#include "jobs/pick.h"
#include "model/select.h"
#include "proc/files.h"
#include "snapshot_fixture.h"
#include "source/source.h"

enum { GPUS = 4, PAIRS = GPUS * GPUS, PEER_VALUES = 16 };

static struct fixture machine;
static struct gp_value peer_values[PAIRS][PEER_VALUES];
static struct gp_entry peers[PAIRS];
static struct gp_lease lease_items[3];
static struct gp_leases leases;

static const char *const uuids[GPUS] = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};

static int64_t gib(double n)
{
    return (int64_t)(n * 0x1p30);
}

static struct gp_value *value(int gpu, enum gp_metric m)
{
    return fixture_value(&machine, gpu, m);
}

/* Four free GPUs of 80 GiB that do nothing, each on a node of its own. */
static int make_machine(void **state)
{
    (void)state;
    machine = (struct fixture){.snapshot = {.devices = machine.devices,
                                            .device_count = GPUS,
                                            .processes = machine.processes}};
    leases = (struct gp_leases){.items = lease_items};
    for (int i = 0; i < GPUS; i++) {
        fixture_fill_device(&machine, i, (unsigned)i, "NVIDIA H100");
        *value(i, GP_UUID) = fixture_text(uuids[i]);
        *value(i, GP_MEMORY_FREE) = fixture_int(gib(70));
        *value(i, GP_UTILIZATION_GPU) = fixture_int(0);
        *value(i, GP_TEMPERATURE_GPU) = fixture_int(30);
        for (int k = 0; k < GPUS; k++) {
            struct gp_value *v = peer_values[i * GPUS + k];
            peers[i * GPUS + k] = (struct gp_entry){.device = (size_t)i, .values = v};
            v[GP_PEER_NUMBER - GP_PEER__FIRST] = fixture_int(k);
            v[GP_PEER_LEVEL - GP_PEER__FIRST] = fixture_text("SYS");
            v[GP_PEER_LINKS - GP_PEER__FIRST] = fixture_int(0);
        }
    }
    machine.snapshot.lists[gp_list_index(GP_SCOPE_PEER)] = (struct gp_entries){peers, PAIRS};
    return 0;
}

/* Both ways. "NV": joined by links. */
static void set_level(int a, int b, const char *level)
{
    const int ways[2] = {a * GPUS + b, b * GPUS + a};
    for (int i = 0; i < 2; i++) {
        struct gp_value *v = peer_values[ways[i]];
        if (strcmp(level, "NV") == 0)
            v[GP_PEER_LINKS - GP_PEER__FIRST] = fixture_int(1);
        else
            v[GP_PEER_LEVEL - GP_PEER__FIRST] = fixture_text(level);
    }
}

/* The processes come in the order of the GPUs. */
static void add_process(int gpu, int64_t pid, const char *type, double memory_gib)
{
    int i = (int)machine.snapshot.process_count++;
    fixture_fill_process(&machine, i, gpu, pid);
    *fixture_process(&machine, i, GP_PROCESS_TYPE) = fixture_text(type);
    *fixture_process(&machine, i, GP_PROCESS_MEMORY) = fixture_int(gib(memory_gib));
}

static struct gp_lease *add_lease(enum gp_lease_state state, const char *uuid)
{
    struct gp_lease *lease = &lease_items[leases.count++];
    *lease = (struct gp_lease){.state = state,
                               .ticket = 5,
                               .pid = 500,
                               .uid = 61000, /* that has no name */
                               .ns = gp_proc_own_ns(),
                               .name = "training",
                               .gpu_count = 1};
    (void)snprintf(lease->gpus[0], sizeof(lease->gpus[0]), "%s", uuid);
    (void)snprintf(lease->path, sizeof(lease->path), "/f");
    return lease;
}

static const struct gp_pick_request one = {
    .count = 1, .most_load = -1, .most_celsius = -1, .ticket = UINT64_MAX};

static struct gp_pick make(const struct gp_pick_request *request)
{
    struct gp_pick pick;
    assert_int_equal(gp_pick_make(&machine.snapshot, &leases, request, &pick), 0);
    return pick;
}

/* What was chosen, the best first: "3,2"; or why nothing was. */
static void choice_is(const struct gp_pick_request *request, const char *expected)
{
    struct gp_pick pick = make(request);
    char text[512] = "";
    size_t n = 0;
    size_t marked = 0;
    for (size_t i = 0; i < pick.chosen_count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i > 0 ? "," : "",
                              pick.units[pick.chosen[i]].device->index);
    for (size_t i = 0; i < pick.count; i++)
        marked += pick.units[i].is_chosen;
    assert_int_equal(marked, pick.chosen_count);
    if (pick.state != GP_PICK_FITS)
        (void)snprintf(text, sizeof(text), "%s: %s",
                       pick.state == GP_PICK_NEVER ? "never" : "later", pick.why);
    assert_string_equal(text, expected);
    gp_pick_fini(&pick);
    assert_null(pick.units);
}

/* What is said of GPU 0: "free", "later: why". */
static void verdict_is(const struct gp_pick_request *request, const char *expected)
{
    struct gp_pick pick = make(request);
    const struct gp_pick_unit *unit = &pick.units[0];
    char text[512];
    (void)snprintf(text, sizeof(text), "%s%s",
                   unit->state == GP_PICK_FITS    ? "free"
                   : unit->state == GP_PICK_LATER ? "later: "
                                                  : "never: ",
                   unit->why);
    assert_string_equal(text, expected);
    gp_pick_fini(&pick);
}

static struct gp_selection *selection(const char *list, struct gp_selection *ret)
{
    struct gp_err err = {0};
    assert_int_equal(gp_selection_parse(list, ret, &err), 0);
    return ret;
}

/* ---- what stands in the way ---- */

static void what_no_waiting_mends(void **state)
{
    static const struct {
        enum gp_metric metric;
        const char *text;
        bool no_display;
        const char *expected;
    } cases[] = {
        {GP_COMPUTE_MODE, "Default", false, "free"},
        {GP_COMPUTE_MODE, "Prohibited", false, "never: its compute mode is Prohibited"},
        {GP_COMPUTE_MODE, "Exclusive_Process", false, "free"},
        {GP_DISPLAY_ACTIVE, "Enabled", false, "free"},
        {GP_DISPLAY_ACTIVE, "Enabled", true, "never: it drives a display"},
        {GP_DISPLAY_ACTIVE, "Disabled", true, "free"},
        {GP_REMAPPED_FAILURE, "No", false, "free"},
        {GP_REMAPPED_FAILURE, "Yes", false,
         "never: its memory has failed: a row could not be remapped"},
        {GP_REMAPPED_PENDING, "No", false, "free"},
        {GP_REMAPPED_PENDING, "Yes", false,
         "later: needs a GPU reset to remap a faulty memory row"},
        {GP_RECOVERY_ACTION, "None", false, "free"},
        {GP_RECOVERY_ACTION, "Reset", false, "later: the driver requests: Reset"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        (void)make_machine(state);
        *value(0, cases[i].metric) = fixture_text(cases[i].text);
        request.no_display = cases[i].no_display;
        verdict_is(&request, cases[i].expected);
    }
}

static void one_that_does_not_answer_may_come_back(void **state)
{
    (void)state;
    fixture_set_status(&machine, 0, GP_STATUS_TIMEOUT, "no answer for 12 s");
    verdict_is(&one, "later: it does not respond: no answer for 12 s");
}

static void memory_heat_and_load(void **state)
{
    static const struct {
        uint64_t bytes, total_bytes;
        double most_load, most_celsius;
        const char *expected;
    } cases[] = {
        {UINT64_C(70) << 30, 0, -1, -1, "free"},
        {(UINT64_C(70) << 30) + 1, 0, -1, -1, "later: 70.0 GiB free, 70.0 GiB requested"},
        {0, UINT64_C(80) << 30, -1, -1, "free"},
        {0, (UINT64_C(80) << 30) + 1, -1, -1, "never: 80.0 GiB per GPU, 80.0 GiB requested"},
        {(UINT64_C(80) << 30) + 1, 0, -1, -1, "never: 80.0 GiB per GPU, 80.0 GiB requested"},
        {0, 0, 40, -1, "free"},
        {0, 0, 39, -1, "later: its utilization is 40 %"},
        {0, 0, 0, -1, "later: its utilization is 40 %"},
        {0, 0, -1, 55, "free"},
        {0, 0, -1, 54, "later: its temperature is 55 °C"},
        {0, 0, -1, 0, "later: its temperature is 55 °C"},
    };
    (void)state;
    *value(0, GP_UTILIZATION_GPU) = fixture_int(40);
    *value(0, GP_TEMPERATURE_GPU) = fixture_int(55);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        request.bytes = cases[i].bytes;
        request.total_bytes = cases[i].total_bytes;
        request.most_load = cases[i].most_load;
        request.most_celsius = cases[i].most_celsius;
        verdict_is(&request, cases[i].expected);
    }
}

static void which_are_meant(void **state)
{
    (void)state;
    static struct gp_selection only, avoid;
    const struct gp_device *const shown[] = {&machine.devices[1], &machine.devices[2]};
    struct gp_pick_request request = one;
    request.only = selection("1-2", &only);
    verdict_is(&request, "never: not requested");
    choice_is(&request, "2");
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 2);
    request.avoid = selection("GPU-c", &avoid);
    choice_is(&request, "1");
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 1);
    request.only = NULL;
    choice_is(&request, "3");
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 3);
    request.visible = shown;
    request.visible_count = 2;
    verdict_is(&request, "never: hidden by CUDA_VISIBLE_DEVICES (see --ignore-mask)");
    choice_is(&request, "1");
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 1);
    /* those that are named count even if they are hidden */
    request.only = selection("0-1", &only);
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 2);
    request.visible_count = 0;
    choice_is(&request,
              "never: 1 GPU requested, but no GPU of this machine meets the request; GPUs 0 and 1: "
              "hidden by CUDA_VISIBLE_DEVICES (see --ignore-mask)");
}

static void mig_instances(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    *value(0, GP_MIG_MODE) = fixture_text("Enabled");
    *value(3, GP_MIG_MODE) = fixture_text("Disabled");
    fixture_fill_mig(&machine, 1, 0);
    *value(1, GP_MIG_MODE) = fixture_text("Enabled");
    struct gp_pick pick = make(&request);
    assert_int_equal(pick.count, 3); /* without the GPU that is partitioned */
    assert_ptr_equal(pick.units[0].device, &machine.devices[1]);
    assert_int_equal(pick.units[0].state, GP_PICK_FITS);
    gp_pick_fini(&pick);
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 3);
    request.count = 2;
    verdict_is(&request, "never: a program can use only one MIG instance");
    request.no_mig = true;
    assert_int_equal(gp_pick_count_all(&machine.snapshot, &request), 2);
    pick = make(&request);
    assert_int_equal(pick.state, GP_PICK_FITS);
    assert_string_equal(pick.units[0].why, "it is a MIG instance, and whole GPUs are requested");
    assert_false(pick.units[0].is_chosen);
    gp_pick_fini(&pick);
}

/* ---- who is there ---- */

static void processes_in_the_way(void **state)
{
    static const struct {
        const char *mode, *type;
        bool is_shared;
        const char *expected;
    } cases[] = {
        {"Default", "C", false, "later: pid 77, 5.0 GiB: ?"},
        {"Default", "C+G", false, "later: pid 77, 5.0 GiB: ?"},
        {"Default", "M", false, "later: pid 77, 5.0 GiB: ?"},
        {"Default", "G", false, "free"},
        {"Default", "C", true, "free"},
        {"Exclusive_Process", "C", true, "later: pid 77, 5.0 GiB: ?"},
        {"Exclusive_Process", "G", true, "free"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        (void)make_machine(state);
        *value(0, GP_COMPUTE_MODE) = fixture_text(cases[i].mode);
        add_process(0, 77, cases[i].type, 5);
        request.is_shared = cases[i].is_shared;
        verdict_is(&request, cases[i].expected);
    }
    *fixture_process(&machine, 0, GP_PROCESS_TYPE) = fixture_text("C");
    *fixture_process(&machine, 0, GP_PROCESS_USER) = fixture_text("ann");
    *fixture_process(&machine, 0, GP_PROCESS_COMMAND) = fixture_text("python train.py");
    verdict_is(&one, "later: pid 77 (ann), 5.0 GiB: python train.py");
    *fixture_process(&machine, 0, GP_PROCESS_MEMORY) = fixture_absent(GP_STATUS_UNSUPPORTED);
    verdict_is(&one, "later: pid 77 (ann), 0.0 GiB: python train.py");
}

static void memory_of_nobody(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    *value(0, GP_MEMORY_UNATTRIBUTED) = fixture_int(gib(1));
    verdict_is(&one, "free");
    *value(0, GP_MEMORY_UNATTRIBUTED) = fixture_int(gib(1) + 1);
    verdict_is(&one, "later: 1.0 GiB in use by processes not listed: gpulse ps --explain -i "
                     "0");
    request.is_shared = true;
    verdict_is(&request, "free");
}

/* A process of a job on the GPU that was reserved by that job is no stranger; elsewhere it is. */
static void processes_of_a_job(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    struct gp_lease *lease = add_lease(GP_LEASE_HELD, "GPU-b");
    add_process(0, 77, "C", 5);
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(500);
    lease->is_shared = true;
    verdict_is(&request, "later: pid 77, 5.0 GiB: ?");
    (void)snprintf(lease->gpus[0], sizeof(lease->gpus[0]), "GPU-a");
    verdict_is(&request, "later: reserved by training (uid 61000)");
    request.is_shared = true;
    verdict_is(&request, "free");
    lease->name[0] = '\0';
    (void)snprintf(lease->command, sizeof(lease->command), "python x.py");
    lease->is_shared = false;
    verdict_is(&request, "later: reserved by python x.py (uid 61000)");
    lease->is_shared = true;
    *value(0, GP_COMPUTE_MODE) = fixture_text("Exclusive_Process");
    verdict_is(&request, "later: reserved by python x.py (uid 61000)");
}

static void who_has_waited_longer_comes_first(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    (void)add_lease(GP_LEASE_WAITING, "GPU-a");
    request.ticket = 5;
    verdict_is(&request, "free");
    request.ticket = 6;
    lease_items[0].is_stopped = true; /* it cannot take it */
    verdict_is(&request, "free");
    lease_items[0].is_stopped = false;
    verdict_is(&request, "later: training (uid 61000) has waited for it longer");
    (void)snprintf(lease_items[0].gpus[0], GP_LEASE_UUID_SIZE, "GPU-b");
    verdict_is(&request, "free");
    /* a process of one that waits is where it has no business yet */
    (void)snprintf(lease_items[0].gpus[0], GP_LEASE_UUID_SIZE, "GPU-a");
    request.ticket = 5;
    add_process(0, 500, "C", 5);
    verdict_is(&request, "later: pid 500, 5.0 GiB: ?");
    /* who has the GPU is more than who wants it */
    request.ticket = 6;
    verdict_is(&request, "later: pid 500, 5.0 GiB: ?");
}

static void what_a_waiting_request_waits_for(void **state)
{
    (void)state;
    struct gp_lease *waiting = add_lease(GP_LEASE_WAITING, "GPU-a");
    const struct gp_device *devices[4];
    struct gp_pick pick;
    size_t at = 0;
    size_t count = 0;
    (void)snprintf(waiting->gpus[waiting->gpu_count++], GP_LEASE_UUID_SIZE, "GPU-b");
    waiting->wanted = 2;
    waiting->ticket = 5;
    add_lease(GP_LEASE_WAITING, "GPU-a")->ticket = 6; /* later */
    assert_int_equal(gp_pick_make_waiting(&machine.snapshot, &leases, waiting, &pick), 0);
    assert_int_equal(pick.state, GP_PICK_FITS);
    assert_null(gp_pick_next_obstacle(&pick, &at, devices, &count));
    gp_pick_fini(&pick);
    add_process(0, 500, "C", 5);
    struct gp_lease *held = add_lease(GP_LEASE_HELD, "GPU-b");
    (void)snprintf(held->gpus[held->gpu_count++], GP_LEASE_UUID_SIZE, "GPU-c");
    at = 0;
    assert_int_equal(gp_pick_make_waiting(&machine.snapshot, &leases, waiting, &pick), 0);
    assert_string_equal(gp_pick_next_obstacle(&pick, &at, devices, &count)->why,
                        "pid 500, 5.0 GiB: ?");
    assert_int_equal(count, 1);
    assert_ptr_equal(devices[0], &machine.snapshot.devices[0]);
    assert_string_equal(gp_pick_next_obstacle(&pick, &at, devices, &count)->why,
                        "reserved by training (uid 61000)");
    assert_int_equal(count, 1); /* not GPU c, which it has not asked for */
    assert_null(gp_pick_next_obstacle(&pick, &at, devices, &count));
    gp_pick_fini(&pick);
    /* one reason for both is said once */
    (void)snprintf(held->gpus[held->gpu_count++], GP_LEASE_UUID_SIZE, "GPU-a");
    at = 0;
    assert_int_equal(gp_pick_make_waiting(&machine.snapshot, &leases, waiting, &pick), 0);
    assert_non_null(gp_pick_next_obstacle(&pick, &at, devices, &count));
    assert_int_equal(count, 2);
    assert_null(gp_pick_next_obstacle(&pick, &at, devices, &count));
    gp_pick_fini(&pick);
}

/* GPU 0 is free. A job has waited for ten minutes for so many of GPUs 0 and 1. */
static void who_may_go_into_a_gap(void **state)
{
    static const struct {
        unsigned wanted;  /* by the one that waits */
        uint64_t limit_s; /* of the later one */
        bool is_reserved; /* GPU 1, by somebody else */
        bool is_in_use;   /* GPU 1, by somebody without a reservation */
        bool is_silent;   /* GPU 1 */
        bool shares;      /* all of them */
        bool may;
    } cases[] = {
        {2, 60, true, false, false, false, true},    {2, 3000, true, false, false, false, true},
        {2, 3001, true, false, false, false, false}, /* ends too late */
        {2, 0, true, false, false, false, false},    /* may never end */
        {1, 60, true, false, false, false, false},   /* the earlier one can start */
        {2, 60, false, false, false, false, false},  /* likewise */
        {2, 60, false, true, false, false, true},    {2, 60, false, false, true, false, true},
        {2, 60, true, false, false, true, false}, /* the earlier one may share GPU 1 */
        {0, 60, true, false, false, false, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        assert_int_equal(make_machine(state), 0);
        machine.snapshot.wall_ns = 10000 * GP_NS_PER_S;
        struct gp_lease *waiting = add_lease(GP_LEASE_WAITING, "GPU-a");
        (void)snprintf(waiting->gpus[waiting->gpu_count++], GP_LEASE_UUID_SIZE, "GPU-b");
        waiting->ticket = machine.snapshot.wall_ns - 600 * GP_NS_PER_S;
        waiting->wanted = cases[i].wanted;
        waiting->is_shared = request.is_shared = cases[i].shares;
        if (cases[i].is_reserved)
            add_lease(GP_LEASE_HELD, "GPU-b")->is_shared = cases[i].shares;
        if (cases[i].is_in_use)
            add_process(1, 900, "C", 5);
        if (cases[i].is_silent)
            fixture_set_status(&machine, 1, GP_STATUS_TIMEOUT, "no answer for 12 s");
        request.limit_ns = cases[i].limit_s * GP_NS_PER_S;
        verdict_is(&request, cases[i].may ? "free"
                                          : "later: training (uid 61000) has waited "
                                            "for it longer");
    }
}

static void what_was_promised_and_is_not_in_use_is_not_free(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    struct gp_lease *lease = add_lease(GP_LEASE_HELD, "GPU-a");
    request.is_shared = true;
    lease->is_shared = true;
    lease->bytes = UINT64_C(30) << 30;
    request.bytes = UINT64_C(40) << 30;
    verdict_is(&request, "free");
    request.bytes++;
    verdict_is(&request, "later: 40.0 GiB free, 40.0 GiB requested");
    add_process(0, 77, "C", 10); /* a third of it has been taken */
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(500);
    request.bytes = UINT64_C(50) << 30;
    verdict_is(&request, "free");
    request.bytes++;
    verdict_is(&request, "later: 50.0 GiB free, 50.0 GiB requested");
    *fixture_process(&machine, 0, GP_PROCESS_MEMORY) = fixture_int(gib(35)); /* more than that */
    request.bytes = UINT64_C(70) << 30;
    verdict_is(&request, "free");
    request.bytes++; /* nothing is added for that */
    verdict_is(&request, "later: 70.0 GiB free, 70.0 GiB requested");
    lease->bytes = UINT64_C(200) << 30;
    verdict_is(&request, "later: 0.0 GiB free, 70.0 GiB requested");
}

static void whose_a_process_is(void **state)
{
    (void)state;
    struct gp_process ancestor = {.cells = machine.process_values[2]};
    struct gp_snapshot *snapshot = &machine.snapshot;
    struct gp_lease lease = *add_lease(GP_LEASE_HELD, "GPU-a");
    double bytes = 1;
    add_process(0, 77, "C", 5);
    add_process(0, 78, "C", 6);
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(60);
    *fixture_process(&machine, 1, GP_PROCESS_PPID) = fixture_int(1);
    *fixture_process(&machine, 2, GP_PID) = fixture_int(60);
    *fixture_process(&machine, 2, GP_PROCESS_PPID) = fixture_int(500);
    assert_true(gp_pick_comes_from(snapshot, 77, 77));
    assert_true(gp_pick_comes_from(snapshot, 77, 60));
    assert_false(gp_pick_comes_from(snapshot, 77, 500)); /* 60 is not seen */
    snapshot->ancestors = &ancestor;
    snapshot->ancestor_count = 1;
    assert_true(gp_pick_comes_from(snapshot, 77, 500));
    assert_false(gp_pick_comes_from(snapshot, 78, 500));
    assert_false(gp_pick_comes_from(snapshot, 0, 0));
    *fixture_process(&machine, 2, GP_PROCESS_PPID) = fixture_int(77); /* a circle */
    assert_false(gp_pick_comes_from(snapshot, 77, 500));
    *fixture_process(&machine, 2, GP_PROCESS_PPID) = fixture_int(500);

    assert_true(gp_pick_observed(snapshot, &machine.devices[0], &lease, &bytes));
    assert_int_equal((int64_t)bytes, gib(5));
    assert_true(gp_pick_observed(snapshot, &machine.devices[1], &lease, &bytes));
    assert_int_equal((int64_t)bytes, 0);
    lease.ns++;
    assert_false(gp_pick_observed(snapshot, &machine.devices[0], &lease, &bytes));
    lease.ns--;
    lease.pid = 0;
    assert_false(gp_pick_observed(snapshot, &machine.devices[0], &lease, &bytes));
    lease.pid = 500;
    *fixture_process(&machine, 0, GP_PROCESS_MEMORY) = fixture_absent(GP_STATUS_UNSUPPORTED);
    assert_false(gp_pick_observed(snapshot, &machine.devices[0], &lease, &bytes));
}

/* ---- the best of them ---- */

static void the_order_decides(void **state)
{
    static const struct {
        enum gp_pick_order order;
        const char *expected;
    } cases[] = {
        {GP_PICK_DEFAULT, "3,2,0,1"}, {GP_PICK_FREE, "1,3,2,0"},  {GP_PICK_LOAD, "3,2,1,0"},
        {GP_PICK_COOL, "0,3,2,1"},    {GP_PICK_INDEX, "0,1,2,3"},
    };
    static const struct {
        int free_gib, load, celsius;
    } gpus[GPUS] = {{10, 50, 40}, {70, 30, 60}, {20, 10, 50}, {20, 10, 50}};
    (void)state;
    for (int i = 0; i < GPUS; i++) {
        *value(i, GP_MEMORY_FREE) = fixture_int(gib(gpus[i].free_gib));
        *value(i, GP_UTILIZATION_GPU) = fixture_int(gpus[i].load);
        *value(i, GP_TEMPERATURE_GPU) = fixture_int(gpus[i].celsius);
    }
    add_process(1, 77, "G", 1);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        char first[2] = {cases[i].expected[0], '\0'};
        request.order = cases[i].order;
        choice_is(&request, first);
        request.count = GPUS;
        choice_is(&request, cases[i].expected);
    }
}

static void what_is_preferred_comes_before_any_order(void **state)
{
    (void)state;
    static struct gp_selection prefer;
    struct gp_pick_request request = one;
    request.prefer = selection("1,2", &prefer);
    choice_is(&request, "2");
    *value(1, GP_MEMORY_FREE) = fixture_int(gib(71));
    choice_is(&request, "1");
    add_process(1, 77, "C", 5); /* preferred is not demanded */
    choice_is(&request, "2");
    request.count = 4;
    choice_is(&request, "later: 3 of the 4 requested GPUs are free; GPU 1: pid 77, 5.0 GiB: ?");
    request.count = 5;
    choice_is(&request, "never: 5 GPUs requested, but this machine has 4");
}

/* A refusal names what passes soonest, of all GPUs to which it applies. */
static void the_obstacle_that_matters(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    add_process(0, 77, "C", 5);
    (void)add_lease(GP_LEASE_HELD, "GPU-b");
    struct gp_lease *lease = add_lease(GP_LEASE_HELD, "GPU-c");
    machine.devices[3].status = GP_STATUS_TIMEOUT;
    choice_is(&request, "later: no GPU is free; GPUs 1 and 2: reserved by training (uid 61000); "
                        "for GPUs 0 and 3, see gpulse pick --explain");
    (void)snprintf(lease->name, sizeof(lease->name), "other");
    *value(2, GP_MEMORY_FREE) = fixture_int(gib(75)); /* more than the other one */
    choice_is(&request, "later: no GPU is free; GPU 2: reserved by other (uid 61000); "
                        "for GPUs 0, 1 and 3, see gpulse pick --explain");
    leases.count = 0;
    request.bytes = UINT64_C(78) << 30;
    choice_is(&request, "later: no GPU is free; GPU 2: 75.0 GiB free, 78.0 GiB requested; "
                        "for GPUs 0, 1 and 3, see gpulse pick --explain");
    *value(1, GP_COMPUTE_MODE) = fixture_text("Prohibited");
    *value(2, GP_COMPUTE_MODE) = fixture_text("Prohibited");
    choice_is(&request, "later: no GPU is free; GPU 0: pid 77, 5.0 GiB: ?; GPU 3: it does "
                        "not respond: ");
    request.count = 3;
    choice_is(&request,
              "never: 3 GPUs requested, but only 2 of 4 can ever be used; GPUs 1 and 2: its "
              "compute mode is Prohibited");
}

static void all_come_in_their_order(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    request.count = 3;
    set_level(1, 3, "NV");
    choice_is(&request, "3,1,2");
    request.is_all = true;
    choice_is(&request, "3,2,1"); /* by the order that was asked for alone */
    request.order = GP_PICK_INDEX;
    choice_is(&request, "0,1,2");
}

/* ---- several that are near each other ---- */

static void those_that_are_nearest(void **state)
{
    static const struct {
        int a, b;
        const char *level;
        const char *expected; /* of two */
    } cases[] = {
        {0, 1, "SYS", "3,2"}, {0, 1, "PHB", "1,0"}, {0, 1, "NODE", "1,0"},  {0, 1, "PXB", "1,0"},
        {0, 1, "PIX", "1,0"}, {0, 2, "NV", "2,0"},  {0, 1, "what?", "3,2"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_pick_request request = one;
        (void)make_machine(state);
        set_level(cases[i].a, cases[i].b, cases[i].level);
        request.count = 2;
        choice_is(&request, cases[i].expected);
    }
    /* what is nearer wins, and among equals what comes first in the order */
    static const struct {
        const char *farther, *nearer, *equal;
    } pairs[] = {
        {"SYS", "PHB", "NODE"}, {"NODE", "PXB", "PIX"}, {"PHB", "PIX", "PXB"}, {"PIX", "NV", "NV"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(pairs); i++) {
        struct gp_pick_request request = one;
        (void)make_machine(state);
        request.count = 2;
        set_level(2, 3, pairs[i].farther);
        set_level(0, 1, pairs[i].nearer);
        choice_is(&request, "1,0");
        set_level(2, 3, pairs[i].equal);
        choice_is(&request, "3,2");
    }
}

/* Of three, each must be near all that are there. */
static void the_farthest_two_count(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    request.count = 3;
    request.same_node = true;
    set_level(3, 2, "PIX");
    set_level(2, 1, "PIX");
    choice_is(&request, "never: no 3 free GPUs are on one NUMA node"); /* 3 and 1 are not */
    for (int i = 1; i < GPUS; i++)
        set_level(0, i, "NODE");
    choice_is(&request, "3,2,0");
}

static void only_on_one_node(void **state)
{
    static const struct {
        const char *level;
        const char *expected;
    } cases[] = {
        {"PHB", "1,0"}, {"NODE", "1,0"}, {"PXB", "1,0"},
        {"PIX", "1,0"}, {"NV", "1,0"},   {"SYS", "never: no 2 free GPUs are on one NUMA node"},
    };
    struct gp_pick_request request = one;
    request.same_node = true;
    choice_is(&request, "3"); /* one is always on one */
    request.count = 2;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        (void)make_machine(state);
        set_level(0, 1, cases[i].level);
        choice_is(&request, cases[i].expected);
    }
    set_level(0, 1, "NODE");
    add_process(0, 77, "C", 5); /* that can end */
    choice_is(&request, "later: no 2 free GPUs are on one NUMA node");
    request.same_node = false;
    choice_is(&request, "3,2");
}

static void only_joined_by_nvlink(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    request.nvlink = true;
    choice_is(&request, "3");
    request.count = 2;
    set_level(2, 3, "PIX");
    choice_is(&request, "never: no 2 free GPUs are connected by NVLink");
    set_level(0, 2, "NV");
    choice_is(&request, "2,0");
    add_process(2, 77, "C", 5);
    choice_is(&request, "later: no 2 free GPUs are connected by NVLink");
}

/* A driver that does not tell how they are joined. */
static void nearness_that_is_not_known(void **state)
{
    (void)state;
    struct gp_pick_request request = one;
    request.count = 2;
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < PEER_VALUES; k++)
            peer_values[i][k] = fixture_absent(GP_STATUS_UNSUPPORTED);
    choice_is(&request, "3,2");
    request.same_node = true;
    choice_is(&request, "never: no 2 free GPUs are on one NUMA node");
    machine.snapshot.lists[gp_list_index(GP_SCOPE_PEER)].count = 0;
    choice_is(&request, "never: no 2 free GPUs are on one NUMA node");
}

static void what_is_asked_of_the_gpus(void **state)
{
    (void)state;
    struct gp_want want = {.mig = false};
    gp_pick_want(&want, false);
    assert_true(want.mig && want.processes && want.process_names && want.ancestors);
    assert_int_equal(want.lists, 0);
    assert_true(gp_metric_set_has(&want.metrics, GP_RECOVERY_ACTION));
    assert_false(gp_metric_set_has(&want.metrics, GP_PEER_LEVEL));
    gp_pick_want(&want, true);
    assert_int_equal(want.lists, 1U << gp_list_index(GP_SCOPE_PEER));
    static const enum gp_metric of_peers[] = {GP_PEER_NUMBER, GP_PEER_LEVEL, GP_PEER_LINKS};
    for (size_t i = 0; i < GP_ARRAY_LEN(of_peers); i++)
        assert_true(gp_metric_set_has(&want.metrics, of_peers[i]));
}

static void without_memory(void **state)
{
    (void)state;
    for (long n = 0; n < 4; n++) {
        struct gp_pick pick;
        alloc_fail_at(n);
        int r = gp_pick_make(&machine.snapshot, &leases, &one, &pick);
        alloc_fail_at(-1);
        assert_int_equal(r, GP_ENOMEM);
        assert_null(pick.units);
        assert_null(pick.chosen);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, make_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_no_waiting_mends),
        TEST(one_that_does_not_answer_may_come_back),
        TEST(memory_heat_and_load),
        TEST(which_are_meant),
        TEST(mig_instances),
        TEST(processes_in_the_way),
        TEST(memory_of_nobody),
        TEST(processes_of_a_job),
        TEST(who_has_waited_longer_comes_first),
        TEST(what_a_waiting_request_waits_for),
        TEST(who_may_go_into_a_gap),
        TEST(what_was_promised_and_is_not_in_use_is_not_free),
        TEST(whose_a_process_is),
        TEST(the_order_decides),
        TEST(what_is_preferred_comes_before_any_order),
        TEST(the_obstacle_that_matters),
        TEST(all_come_in_their_order),
        TEST(those_that_are_nearest),
        TEST(the_farthest_two_count),
        TEST(only_on_one_node),
        TEST(only_joined_by_nvlink),
        TEST(nearness_that_is_not_known),
        TEST(what_is_asked_of_the_gpus),
        TEST(without_memory),
    };
    return cmocka_run_group_tests_name("pick", tests, NULL, NULL);
}
