/* What limits a GPU or a process, on its page. */
#include "unit.h"

#include "base/clock.h"
#include "snapshot_fixture.h"
#include "tui/verdict.h"

enum { PID = 4711 };

static void look(struct gp_verdict_observation *verdict, unsigned second, int64_t busy)
{
    static struct fixture f;
    fixture_init(&f);
    f.snapshot.device_count = 1;
    f.snapshot.process_count = 1;
    f.snapshot.mono_ns = (100 + second) * GP_NS_PER_S;
    f.devices[0].process_count = 0;
    *fixture_value(&f, 0, GP_UTILIZATION_GPU) = fixture_int(busy);
    *fixture_value(&f, 0, GP_REASONS_ACTIVE) = fixture_int(0);
    fixture_fill_process(&f, 0, 0, PID);
    gp_verdict_add(verdict, &f.snapshot);
}

/* The page as text: "likely|The GPU …\n". */
static const char *page_of(const struct gp_verdict_observation *verdict)
{
    static char text[2000];
    struct gp_page page;
    gp_page_init(&page);
    gp_verdict_write(&verdict->answer, &page);
    text[0] = '\0';
    for (size_t i = 0; i < page.count; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof(text) - n, "%s\n", gp_page_value(&page, i));
    }
    gp_page_fini(&page);
    return text;
}

static void it_takes_some_seconds(void **state)
{
    (void)state;
    struct gp_verdict_observation verdict = {.topic = {.pid = PID}};
    assert_string_equal(page_of(&verdict), "");
    look(&verdict, 0, 20);
    assert_non_null(strstr(page_of(&verdict), "page was opened: for 0 of the 10 s"));
    for (unsigned second = 2; second <= 10; second += 2)
        look(&verdict, second, 20);
    assert_non_null(strstr(page_of(&verdict), "The GPU is idle for much of the time.\nGPU busy 20 "
                                              "% of the time\n"));
    assert_non_null(strstr(page_of(&verdict), "at most 5.0 times as fast\n"));
    gp_verdict_fini(&verdict);
    assert_string_equal(page_of(&verdict), "");
}

static void it_is_about_the_last_half_minute(void **state)
{
    (void)state;
    struct gp_verdict_observation verdict = {.topic = {.gpu = 0}};
    unsigned second = 0;
    for (; second <= 60; second += 2)
        look(&verdict, second, 20);
    for (; second <= 70; second += 2)
        look(&verdict, second, 95);
    assert_null(strstr(page_of(&verdict), "nothing stands out"));
    for (; second <= 76; second += 2)
        look(&verdict, second, 95);
    assert_non_null(strstr(page_of(&verdict), "nothing stands out\nGPU busy 95 % of the time"));
    gp_verdict_fini(&verdict);
}

/* A process on three GPUs, one of which is not used: the surest verdict, and where it holds. */
static void one_of_several_gpus(void **state)
{
    (void)state;
    static struct fixture f;
    struct gp_verdict_observation of_process = {.topic = {.pid = PID}};
    struct gp_verdict_observation of_gpu = {.topic = {.gpu = 2}};
    for (unsigned second = 0; second <= 12; second++) {
        fixture_init(&f);
        f.snapshot.device_count = 3;
        f.snapshot.process_count = 3;
        f.snapshot.mono_ns = (100 + second) * GP_NS_PER_S;
        for (int i = 0; i < 3; i++) {
            fixture_fill_device(&f, i, (unsigned)i, "NVIDIA H100");
            *fixture_value(&f, i, GP_UTILIZATION_GPU) = fixture_int(i == 1 ? 0 : 96);
            *fixture_value(&f, i, GP_REASONS_ACTIVE) = fixture_int(0);
            fixture_fill_process(&f, i, i, PID);
        }
        gp_verdict_add(&of_process, &f.snapshot);
        gp_verdict_add(&of_gpu, &f.snapshot);
    }
    assert_non_null(strstr(page_of(&of_process), "1\nThe job does not use this GPU.\n"));
    assert_non_null(strstr(page_of(&of_process), "the job used 2 of its 3 GPUs\n"));
    assert_non_null(strstr(page_of(&of_gpu), "nothing stands out\nGPU busy 96 %"));
    gp_verdict_fini(&of_process);
    gp_verdict_fini(&of_gpu);
}

/* Its page says so above: the verdict must not deny it. */
static void the_usual_power_limit(void **state)
{
    (void)state;
    static struct fixture f;
    struct gp_verdict_observation verdict = {.topic = {.gpu = 0}};
    for (unsigned second = 0; second <= 12; second++) {
        fixture_init(&f);
        f.snapshot.device_count = f.snapshot.process_count = 1;
        f.snapshot.mono_ns = (100 + second) * GP_NS_PER_S;
        fixture_fill_device(&f, 0, 0, "NVIDIA H100");
        *fixture_value(&f, 0, GP_UTILIZATION_GPU) = fixture_int(96);
        *fixture_value(&f, 0, GP_REASONS_ACTIVE) = fixture_int(4);
        fixture_fill_process(&f, 0, 0, PID);
        gp_verdict_add(&verdict, &f.snapshot);
    }
    assert_non_null(strstr(page_of(&verdict), "nothing but the power limit, as on any busy GPU\n"));
    gp_verdict_fini(&verdict);
}

static void another_process(void **state)
{
    (void)state;
    struct gp_verdict_observation verdict = {.topic = {.pid = 1}};
    for (unsigned second = 0; second <= 20; second++)
        look(&verdict, second, 20);
    assert_string_equal(page_of(&verdict), "");
    gp_verdict_fini(&verdict);
}

static void without_memory(void **state)
{
    (void)state;
    for (long n = 0; n < 8; n++) {
        struct gp_verdict_observation verdict = {.topic = {.pid = PID}};
        alloc_fail_at(n);
        for (unsigned second = 0; second <= 40; second += 2)
            look(&verdict, second, 20);
        alloc_fail_at(-1);
        assert_non_null(strstr(page_of(&verdict), "The GPU is idle for much of the time.\n"));
        gp_verdict_fini(&verdict);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_some_seconds), cmocka_unit_test(it_is_about_the_last_half_minute),
        cmocka_unit_test(one_of_several_gpus),   cmocka_unit_test(another_process),
        cmocka_unit_test(the_usual_power_limit), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
