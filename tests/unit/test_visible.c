/* CUDA_VISIBLE_DEVICES: what a program sees for what was written. */
#include "unit.h"

#include "jobs/visible.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_gpus),
        cmocka_unit_test(instances),
    };
    return cmocka_run_group_tests_name("visible", tests, NULL, NULL);
}
