/* CUDA_VISIBLE_DEVICES: what a program sees for what was written. */
#include "unit.h"

#include "jobs/visible.h"
#include "snapshot_fixture.h"

enum { GPUS = 4 };

static const struct gp_visible_gpu plain[GPUS] = {{.uuid = "GPU-abc01111"},
                                                  {.uuid = "GPU-abd02222"},
                                                  {.uuid = "GPU-abe03333"},
                                                  {.uuid = "GPU-f4444444"}};

static const char *const migs[] = {"MIG-u1111111", "MIG-u2222222"};

/* The second is partitioned, the third is so without instances. */
static const struct gp_visible_gpu mixed[GPUS] = {
    {.uuid = "GPU-abc01111"},
    {.uuid = "GPU-abd02222", .is_partitioned = true, .migs = migs, .mig_count = 2},
    {.uuid = "GPU-abe03333", .is_partitioned = true},
    {.uuid = "GPU-f4444444"}};

/* "0 3", "1:0" for an instance; "" for none. */
static void sees(const struct gp_visible_gpu *gpus, const char *mask, const char *expected)
{
    char text[256] = "";
    struct gp_visible seen;
    gp_visible_resolve(mask, gpus, GPUS, &seen);
    for (size_t i = 0; i < seen.count; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof(text) - n, seen.devices[i].mig < 0 ? "%s%zu" : "%s%zu:%d",
                       i > 0 ? " " : "", seen.devices[i].gpu, seen.devices[i].mig);
    }
    if (strcmp(text, expected) != 0)
        fail_msg("'%s' shows '%s', not '%s'", mask ? mask : "(not set)", text, expected);
}

static void whole_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *mask, *expected;
    } cases[] = {
        {NULL, "0 1 2 3"},
        {"", ""},
        {"2", "2"},
        {"3,1", "3 1"},
        {"1,1", ""}, /* a duplicate hides everything */
        {"0,4,1", "0"},
        {"-1", ""},
        {"0,-1,1", "0"},
        {" 1 , 2", "1 2"},
        {"1x,2", "1 2"},
        {"x", ""},
        {"GPU-abc", "0"},
        {"GPU-ab", ""},          /* of three */
        {"GPU-f4444444,1", "3"}, /* another kind */
        {"1,GPU-f4444444", "1"},
        {"1gpu2,2ampere", "1 2"},
        {"0,,1", "0"},
        {",1", ""},
        {"0,1,", "0 1"},
        {"gpu-F4", "3"},
        {"99999999999999999999", ""},
        {"GPU-", ""},
        {"1,0,1", ""},
        {"GPU-abc01111,GPU-abc", ""},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        sees(plain, cases[i].mask, cases[i].expected);
}

static void instances(void **state)
{
    (void)state;
    static const struct {
        const char *mask, *expected;
    } cases[] =
        {
            {"MIG-u1,MIG-u2", "1:0"}, /* one only */
            {"MIG-u2", "1:1"},
            {"MIG-u", ""},
            {"MIG-x", ""},
            {NULL, "1:0"}, /* and the whole GPUs are not seen */
            {"0,3", "0 3"},
            {"0,1,3", "1:0"},
            {"2,1", "1:0"},
            {"2", ""},
            {"2,3", "3"},
            {"MIG-u2,0", "1:1"},
            {"GPU-abd", "1:0"},
        };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        sees(mixed, cases[i].mask, cases[i].expected);
}

/* ---- of a snapshot ---- */

static struct fixture machine;

/* Two GPUs against the order of the bus, one of them partitioned into two, and one more. */
static int make_machine(void **state)
{
    static const char *const bus_ids[] = {"00000000:53:00.0", "00000000:2A:00.0", "", "",
                                          "00000000:1b:00.0"};
    static const char *const uuids[] = {"GPU-a", "GPU-b", "MIG-b0", "MIG-b1", "GPU-c"};
    (void)state;
    machine = (struct fixture){.snapshot = {.devices = machine.devices, .device_count = 5}};
    for (int i = 0; i < 5; i++) {
        fixture_fill_device(&machine, i, i < 2 ? (unsigned)i : 2, "x");
        *fixture_value(&machine, i, GP_PCI_BUS_ID) = fixture_text(bus_ids[i]);
        *fixture_value(&machine, i, GP_UUID) = fixture_text(uuids[i]);
        machine.devices[i].is_mig = i == 2 || i == 3;
    }
    *fixture_value(&machine, 0, GP_MIG_MODE) = fixture_text("Disabled");
    *fixture_value(&machine, 1, GP_MIG_MODE) = fixture_text("Enabled");
    return 0;
}

/* "4 0": the rows. */
static void rows_are(const char *mask, const char *expected)
{
    static const struct gp_device *rows[GP_VISIBLE_MAX];
    char text[64] = "";
    size_t count = gp_visible_rows(&machine.snapshot, mask, rows);
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof(text) - n, "%s%d", i > 0 ? " " : "",
                       (int)(rows[i] - machine.devices));
    }
    if (strcmp(text, expected) != 0)
        fail_msg("'%s' shows '%s', not '%s'", mask ? mask : "(not set)", text, expected);
}

static void rows_in_the_order_of_the_bus(void **state)
{
    (void)state;
    rows_are("0", "4");
    rows_are("2,0", "0 4");
    rows_are("1", "2"); /* its first instance */
    rows_are("MIG-b1", "3");
    rows_are("MIG-b0", "2");
    rows_are("GPU-a,GPU-c", "0 4");
    rows_are(NULL, "2");
    rows_are("", "");
    *fixture_value(&machine, 1, GP_MIG_MODE) = fixture_text("Disabled");
    machine.devices[2].is_mig = machine.devices[3].is_mig = false;
    machine.devices[2].status = machine.devices[3].status = GP_STATUS_LOST;
    rows_are(NULL, "4 1 0");
    machine.devices[4].status = GP_STATUS_LOST; /* not there for CUDA */
    rows_are(NULL, "1 0");
    rows_are("0,1,2", "1 0");
    machine.snapshot.device_count = 0;
    rows_are(NULL, "");
}

static void rows_without_memory(void **state)
{
    (void)state;
    for (long n = 0; n < 2; n++) {
        alloc_fail_at(n);
        rows_are("0", "");
        alloc_fail_at(-1);
    }
    rows_are("0", "4");
}

static void numbers_of_cuda(void **state)
{
    (void)state;
    static const int expected[] = {2, 1, -1, -1, 0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(gp_visible_index(&machine.snapshot, &machine.devices[i]), expected[i]);
    machine.devices[4].status = GP_STATUS_LOST;
    assert_int_equal(gp_visible_index(&machine.snapshot, &machine.devices[4]), -1);
    assert_int_equal(gp_visible_index(&machine.snapshot, &machine.devices[0]), 1);
    machine.devices[4].status = GP_STATUS_TIMEOUT; /* nobody knows whether CUDA counts it */
    assert_int_equal(gp_visible_index(&machine.snapshot, &machine.devices[0]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_gpus),
        cmocka_unit_test(instances),
        cmocka_unit_test_setup(rows_in_the_order_of_the_bus, make_machine),
        cmocka_unit_test_setup(rows_without_memory, make_machine),
        cmocka_unit_test_setup(numbers_of_cuda, make_machine),
    };
    return cmocka_run_group_tests_name("visible", tests, NULL, NULL);
}
