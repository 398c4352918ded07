/* The NVML source: lists of a GPU on a driver that counts badly, forgets, refuses and fails. */
#include "nvml_rig.h"

#include "abi/nvml_fields.h"

static const struct gp_list *list(enum gp_scope scope)
{
    return &rig.reading->lists[gp_list_index(scope)];
}

static const struct gp_value *cell(size_t row, enum gp_metric m)
{
    enum gp_scope scope = gp_metric_table[m].scope;
    assert_true(row < list(scope)->count);
    return &list(scope)->values[row * gp_scope_width(scope) + (m - gp_scope_table[scope].first)];
}

static void check_cell(size_t row, enum gp_metric m, int64_t expected)
{
    assert_int_equal(cell(row, m)->status, GP_STATUS_OK);
    assert_int_equal(cell(row, m)->i, expected);
}

static void check_cell_absent(size_t row, enum gp_metric m, enum gp_status status)
{
    assert_int_equal(cell(row, m)->status, status);
}

static void check_list(enum gp_scope scope, size_t count, enum gp_status status)
{
    read_ok();
    assert_int_equal(list(scope)->status, status);
    assert_int_equal(list(scope)->count, count);
}

/* All its fields. */
static void want_list(enum gp_scope scope)
{
    rig.want.lists |= UINT32_C(1) << gp_list_index(scope);
    for (size_t i = 0; i < gp_scope_width(scope); i++)
        want(gp_scope_table[scope].first + i);
}

static void number(struct fake_nvml_numbers *numbers, unsigned n)
{
    numbers->entries[numbers->count++] = n;
}

static void some_clocks(void)
{
    want_list(GP_SCOPE_CLOCK);
    number(&rig.fake->memory_clocks, 5001);
    number(&rig.fake->memory_clocks, 405);
    for (unsigned i = 0; i < 300; i++)
        number(&rig.fake->graphics_clocks, 1600 - i);
}

/* ---- counting ---- */

static void a_list_longer_than_the_room_is_fetched_again(void **state)
{
    (void)state;
    some_clocks();
    start();
    check_list(GP_SCOPE_CLOCK, 600, GP_STATUS_OK);
    check_cell(299, GP_CLOCK_PAIR_MEMORY, 5001);
    check_cell(299, GP_CLOCK_PAIR_GRAPHICS, 1301);
    check_cell(300, GP_CLOCK_PAIR_MEMORY, 405);
    assert_int_equal(CALLS(nvmlDeviceGetSupportedMemoryClocks), 1);
    assert_int_equal(CALLS(nvmlDeviceGetSupportedGraphicsClocks), 3);
}

static void a_list_may_grow_between_two_calls(void **state)
{
    (void)state;
    want_list(GP_SCOPE_PAGE);
    rig.fake->pages.count = 60;
    rig.fake->pages.grows = 20;
    for (unsigned i = 0; i < FAKE_NVML_NUMBERS; i++)
        rig.fake->pages.entries[i] = 0x1000 + i;
    start();
    check_list(GP_SCOPE_PAGE, 100, GP_STATUS_OK);
    check_cell(99, GP_PAGE_ADDRESS, 0x1000 + 99);
    assert_string_equal(cell(99, GP_PAGE_CAUSE)->s, "Single Bit ECC");
}

static void fewer_entries_than_announced(void **state)
{
    (void)state;
    some_clocks();
    rig.fake->graphics_clocks.count = 3;
    rig.fake->graphics_clocks.claims = 60000;
    rig.fake->memory_clocks.claims = 9;
    start();
    check_list(GP_SCOPE_CLOCK, 6, GP_STATUS_OK);
}

static void a_list_that_never_fits_is_an_error(void **state)
{
    (void)state;
    some_clocks();
    ANSWERS(nvmlDeviceGetSupportedMemoryClocks, NVML_ERROR_INSUFFICIENT_SIZE);
    start();
    check_list(GP_SCOPE_CLOCK, 0, GP_STATUS_ERROR);
    assert_true(CALLS(nvmlDeviceGetSupportedMemoryClocks) < 20);
}

/* ---- forgetting ---- */

static void a_clock_that_is_not_found_is_left_out(void **state)
{
    (void)state;
    some_clocks();
    rig.fake->unknown_clock = 5001;
    start();
    check_list(GP_SCOPE_CLOCK, 300, GP_STATUS_OK);
    check_cell(0, GP_CLOCK_PAIR_MEMORY, 405);
}

static void an_account_that_is_gone_is_left_out(void **state)
{
    (void)state;
    want_list(GP_SCOPE_APP);
    for (unsigned i = 1; i <= 3; i++)
        number(&rig.fake->pids, 100 + i);
    rig.fake->forgotten_pid = 102;
    rig.fake->account = (nvmlAccountingStats_t){.gpuUtilization = 71,
                                                .memoryUtilization = UINT32_MAX,
                                                .maxMemoryUsage = UINT64_MAX,
                                                .time = 5270};
    start();
    check_list(GP_SCOPE_APP, 2, GP_STATUS_OK);
    check_cell(1, GP_APP_PID, 103);
    check_cell(1, GP_APP_GPU, 71);
    check_cell(1, GP_APP_TIME, 5270);
    check_cell_absent(1, GP_APP_MEMORY, GP_STATUS_UNSUPPORTED);
    check_cell_absent(1, GP_APP_MAX_MEMORY, GP_STATUS_UNSUPPORTED);
    check_cell_absent(1, GP_APP_START, GP_STATUS_UNSUPPORTED);
    assert_string_equal(cell(1, GP_APP_RUNNING)->s, "No");
}

/* ---- how often ---- */

static void what_lasts_is_asked_once(void **state)
{
    (void)state;
    some_clocks();
    start();
    for (int i = 0; i < 3; i++) {
        check_list(GP_SCOPE_CLOCK, 600, GP_STATUS_OK);
        after_ms(10000);
    }
    assert_int_equal(CALLS(nvmlDeviceGetSupportedMemoryClocks), 1);
}

static void what_is_refused_is_asked_again_now_and_then(void **state)
{
    (void)state;
    some_clocks();
    ANSWERS(nvmlDeviceGetSupportedMemoryClocks, NVML_ERROR_NO_PERMISSION);
    start();
    check_list(GP_SCOPE_CLOCK, 0, GP_STATUS_NO_PERMISSION);
    after_ms(100000);
    check_list(GP_SCOPE_CLOCK, 0, GP_STATUS_NO_PERMISSION);
    assert_int_equal(CALLS(nvmlDeviceGetSupportedMemoryClocks), 1);
    ANSWERS(nvmlDeviceGetSupportedMemoryClocks, NVML_SUCCESS);
    after_ms(30000);
    check_list(GP_SCOPE_CLOCK, 600, GP_STATUS_OK);
}

static void only_lists_that_are_wanted(void **state)
{
    (void)state;
    some_clocks();
    rig.want.lists = 0;
    start();
    read_ok();
    assert_int_equal(list(GP_SCOPE_CLOCK)->status, GP_STATUS_NONE);
    assert_int_equal(CALLS(nvmlDeviceGetSupportedMemoryClocks), 0);
}

/* ---- links ---- */

static void links_beyond_the_range(void **state)
{
    (void)state;
    want_list(GP_SCOPE_LINK);
    rig.fake->links = 200;
    rig.fake->real_links = 6;
    start();
    check_list(GP_SCOPE_LINK, NVML_NVLINK_MAX_LINKS, GP_STATUS_OK);
    assert_string_equal(cell(5, GP_LINK_STATE)->s, "Active");
    check_cell_absent(6, GP_LINK_STATE, GP_STATUS_UNSUPPORTED);
    check_cell_absent(6, GP_LINK_TX, GP_STATUS_UNSUPPORTED);
    check_cell_absent(0, GP_LINK_VERSION, GP_STATUS_UNSUPPORTED);
}

static void rates_of_links(void **state)
{
    (void)state;
    want_list(GP_SCOPE_LINK);
    want(GP_NVLINK_RATE_TX);
    rig.fake->links = rig.fake->real_links = 2;
    rig.fake->link_kib = 1000;
    start();
    read_ok();
    check_cell(1, GP_LINK_TX, 1001 * 1024);
    check_cell_absent(1, GP_LINK_RATE_TX, GP_STATUS_UNSUPPORTED);
    assert_string_equal(cell(1, GP_LINK_RATE_TX)->s, "rates need a second sample");
    after_ms(2000);
    rig.fake->link_kib += 4000;
    read_ok();
    assert_int_equal(cell(1, GP_LINK_RATE_TX)->status, GP_STATUS_OK);
    assert_true(cell(1, GP_LINK_RATE_TX)->f > 2047999 && cell(1, GP_LINK_RATE_TX)->f < 2048001);
    after_ms(2000);
    rig.fake->link_kib = 3; /* the driver was loaded anew */
    read_ok();
    check_cell_absent(1, GP_LINK_RATE_TX, GP_STATUS_UNSUPPORTED);
    after_ms(1000);
    rig.fake->link_kib += 1;
    read_ok();
    assert_true(cell(1, GP_LINK_RATE_TX)->f > 1023 && cell(1, GP_LINK_RATE_TX)->f < 1025);
}

static void a_counter_of_all_ones_is_an_error(void **state)
{
    (void)state;
    want_list(GP_SCOPE_LINK);
    rig.fake->links = rig.fake->real_links = 1;
    rig.fake->link_kib = UINT64_MAX / 1024;
    start();
    read_ok();
    check_cell_absent(0, GP_LINK_TX, GP_STATUS_ERROR);
}

static void no_links_in_mig_mode(void **state)
{
    (void)state;
    want_list(GP_SCOPE_LINK);
    rig.fake->links = 18;
    rig.fake->mig_enabled = true;
    start();
    check_list(GP_SCOPE_LINK, 0, GP_STATUS_UNSUPPORTED);
    assert_string_equal(list(GP_SCOPE_LINK)->words, "not reported in MIG mode");
}

/* ---- peers ---- */

static void peers_are_asked_once(void **state)
{
    (void)state;
    want_list(GP_SCOPE_PEER);
    rig.fake->gpu_count = 2;
    start();
    for (int i = 0; i < 3; i++) {
        check_list(GP_SCOPE_PEER, 1, GP_STATUS_OK);
        check_cell(0, GP_PEER_NUMBER, 1);
        assert_string_equal(cell(0, GP_PEER_UUID)->s, "GPU-b");
        assert_string_equal(cell(0, GP_PEER_LEVEL)->s, "PHB");
        assert_string_equal(cell(0, GP_PEER_CONNECTION)->s, "PHB");
        after_ms(10000);
    }
    assert_int_equal(CALLS(nvmlDeviceGetTopologyCommonAncestor), 1);
}

/* ---- failing ---- */

static void everything(void)
{
    for (int scope = GP_SCOPE_LIST__FIRST; scope < GP_SCOPE__COUNT; scope++)
        want_list((enum gp_scope)scope);
    some_clocks();
    number(&rig.fake->pids, 7);
    number(&rig.fake->pages, 7);
    rig.fake->links = rig.fake->real_links = 4;
    rig.fake->gpu_count = 2;
}

/* Whichever call of a list loses the GPU: its reading says so, and the next session is well. */
static void a_gpu_that_is_lost_in_a_list(void **state)
{
    (void)state;
    static const enum fake_nvml_function calls[] = {
        FAKE_nvmlDeviceGetSupportedMemoryClocks, FAKE_nvmlDeviceGetSupportedGraphicsClocks,
        FAKE_nvmlDeviceGetAccountingPids,        FAKE_nvmlDeviceGetAccountingStats,
        FAKE_nvmlDeviceGetRetiredPages_v2,       FAKE_nvmlDeviceGetNvLinkState,
        FAKE_nvmlDeviceGetFieldValues,           FAKE_nvmlDeviceGetMigMode,
    };
    everything();
    start();
    for (size_t i = 0; i < GP_ARRAY_LEN(calls); i++) {
        leave();
        start();
        rig.fake->rc[calls[i]] = NVML_ERROR_GPU_IS_LOST;
        read_once();
        if (rig.reading->status != GP_STATUS_LOST || !rig.reading->needs_reinit)
            fail_msg("call %zu: status %d", i, (int)rig.reading->status);
        rig.fake->rc[calls[i]] = NVML_SUCCESS;
    }
}

static void whichever_allocation_fails_nothing_is_wrong(void **state)
{
    (void)state;
    everything();
    start();
    bool complete = false;
    for (long n = 0; !complete && n < 2000; n++) {
        leave();
        open_source();
        assert_int_equal(attach(0), 0);
        struct gp_reading *reading = gp_reading_new();
        assert_non_null(reading);
        alloc_fail_from(n);
        rig.source->ops->read(rig.device, &rig.want, reading);
        complete = alloc_count() <= n;
        alloc_fail_from(-1);
        for (size_t i = 0; i < GP_LIST__COUNT; i++) {
            const struct gp_list *l = &reading->lists[i];
            assert_true(l->status == GP_STATUS_OK || l->count == 0);
        }
        gp_reading_unref(reading);
    }
    assert_true(complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_list_longer_than_the_room_is_fetched_again),
        RIG_TEST(a_list_may_grow_between_two_calls),
        RIG_TEST(fewer_entries_than_announced),
        RIG_TEST(a_list_that_never_fits_is_an_error),
        RIG_TEST(a_clock_that_is_not_found_is_left_out),
        RIG_TEST(an_account_that_is_gone_is_left_out),
        RIG_TEST(what_lasts_is_asked_once),
        RIG_TEST(what_is_refused_is_asked_again_now_and_then),
        RIG_TEST(only_lists_that_are_wanted),
        RIG_TEST(links_beyond_the_range),
        RIG_TEST(rates_of_links),
        RIG_TEST(a_counter_of_all_ones_is_an_error),
        RIG_TEST(no_links_in_mig_mode),
        RIG_TEST(peers_are_asked_once),
        RIG_TEST(a_gpu_that_is_lost_in_a_list),
        RIG_TEST(whichever_allocation_fails_nothing_is_wrong),
    };
    return cmocka_run_group_tests_name("nvml_lists", tests, NULL, NULL);
}
