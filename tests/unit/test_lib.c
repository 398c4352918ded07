/* The public library, function by function: what it does when memory is short, with wrong
 * arguments, in threads, and after fork(). What it reports is compared with the commands in
 * check_lib.py. */
#include "unit.h"

#include "abi/nvml.h"
#include "gpulse/gpulse.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char place[4096];

static const struct gpulse_options two = {
    .size = sizeof(two),
    .fields = "index,name,memory.*,utilization.gpu,pid,links.state,driver_version",
    .gpus = "0-1",
    .timeout_ns = UINT64_C(60000000000),
};

/* ---- a call of each function, which succeeds unless memory is short ---- */

static int take(struct gpulse_error *error)
{
    gpulse_session *session;
    gpulse_sample *sample;
    int r = gpulse_open(&two, &session, error);
    if (r < 0)
        return r;
    r = gpulse_take(session, &sample, error);
    assert_true(gpulse_close(session));
    if (r < 0)
        return r;
    /* a sample outlives its session */
    assert_int_equal(gpulse_sample_rows(sample, GPULSE_GPU), 2);
    assert_int_equal(gpulse_sample_gpu_of(sample, gpulse_scope_find("links"), 0), 0);
    for (int metric = 0; metric < gpulse_metric_count(); metric++) {
        struct gpulse_metric_info info;
        struct gpulse_value value;
        double number;
        assert_int_equal(gpulse_metric_describe(metric, &info), 0);
        const enum gpulse_status status = gpulse_sample_get(sample, metric, 0, &value);
        if (status == GPULSE_OK || status == GPULSE_STALE)
            assert_true(gpulse_sample_number(sample, metric, 0, &number) !=
                        (gpulse_sample_text(sample, metric, 0) != NULL));
        else
            assert_true(strlen(value.reason) > 0);
    }
    gpulse_sample_free(sample);
    return 0;
}

static void check_grant(const gpulse_grant *grant, size_t count)
{
    assert_int_equal(gpulse_grant_count(grant), count);
    assert_true(strlen(gpulse_grant_mask(grant)) > 0);
    assert_true(strlen(gpulse_grant_gpus(grant)) > 0);
    assert_non_null(gpulse_grant_uuid(grant, count - 1));
    assert_null(gpulse_grant_uuid(grant, count));
}

static int pick(struct gpulse_error *error)
{
    const struct gpulse_request request = {.size = sizeof(request), .count = 2, .order = "free"};
    gpulse_grant *grant;
    const int r = gpulse_pick(NULL, &request, &grant, error);
    if (r < 0)
        return r;
    check_grant(grant, 2);
    assert_int_equal(gpulse_grant_keep(grant, error), 0);
    gpulse_release(grant);
    return 0;
}

static int reserve(struct gpulse_error *error)
{
    gpulse_grant *grant;
    const int r = gpulse_reserve(NULL, NULL, &grant, error);
    if (r < 0)
        return r;
    check_grant(grant, 1);
    const int kept = gpulse_grant_keep(grant, error);
    gpulse_release(grant);
    return kept;
}

static int watch(struct gpulse_error *error)
{
    struct gpulse_event event = {.size = sizeof(event)};
    gpulse_events *events;
    int r = gpulse_events_open(&two, "health,xid", 0, &events, error);
    if (r < 0)
        return r;
    struct pollfd fd = {gpulse_events_fd(events), POLLIN, 0};
    assert_int_equal(poll(&fd, 1, -1), 1);
    r = gpulse_events_next(events, &event, error);
    assert_true(r < 0 || (r == 1 && strcmp(event.kind, "start") == 0));
    assert_true(gpulse_events_close(events));
    return r < 0 ? r : 0;
}

static int check_rows(gpulse_settings *settings)
{
    struct gpulse_setting setting = {.size = sizeof(setting)};
    const size_t count = gpulse_settings_count(settings);
    for (size_t row = 0; row < count; row++) {
        assert_int_equal(gpulse_settings_get(settings, row, &setting), 0);
        assert_true(setting.status == GPULSE_OK || strlen(setting.reason) > 0);
        assert_non_null(gpulse_settings_undo(settings, row));
    }
    assert_int_equal(gpulse_settings_get(settings, count, &setting), GPULSE_EUSAGE);
    assert_string_equal(gpulse_settings_undo(settings, count), "");
    gpulse_settings_free(settings);
    return count > 0 ? 0 : GPULSE_EFAIL;
}

static int settings_read(struct gpulse_error *error)
{
    gpulse_settings *settings;
    const int r = gpulse_settings_read(&two, &settings, error);
    return r < 0 ? r : check_rows(settings);
}

static int settings_check(struct gpulse_error *error)
{
    gpulse_settings *settings;
    const int r = gpulse_settings_change(&two, "power-limit=600 persistence-mode=on",
                                         GPULSE_CHECK_ONLY, &settings, error);
    if (r < 0)
        gpulse_settings_free(settings);
    return r < 0 ? r : check_rows(settings);
}

static void check_text(char *text)
{
    assert_non_null(strstr(text, "\"schema\""));
    gpulse_text_free(text);
}

static int explain(struct gpulse_error *error)
{
    char *text;
    const int r =
        gpulse_explain("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus", &text, error);
    if (r == 0)
        check_text(text);
    return r;
}

static int explain_log(struct gpulse_error *error)
{
    char path[sizeof(place) + 8];
    char *text;
    (void)snprintf(path, sizeof(path), "%s/log", place);
    const int r = gpulse_explain_log(path, &text, error);
    if (r == 0)
        check_text(text);
    return r;
}

static int estimate(struct gpulse_error *error)
{
    const struct gpulse_model model = {.size = sizeof(model), .params = "7B"};
    struct gpulse_estimate result = {.size = sizeof(result)};
    const int r = gpulse_estimate_model(&model, &result, error);
    assert_true(r < 0 || (result.count > 0 && result.total > 14e9));
    return r;
}

static const struct step {
    const char *name;
    int (*call)(struct gpulse_error *error);
} steps[] = {
    {"open and take", take},
    {"pick", pick},
    {"reserve", reserve},
    {"events", watch},
    {"settings_read", settings_read},
    {"settings_change", settings_check},
    {"explain", explain},
    {"explain_log", explain_log},
    {"estimate_model", estimate},
};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* ---- tests ---- */

/* The files of a thread that was given up are closed when it has returned. */
static bool is_back_at(size_t files)
{
    for (int i = 0; i < 12000 && (gpulse_is_stuck() || open_file_count() != files); i++)
        (void)usleep(5000);
    return open_file_count() == files;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        struct gpulse_error error = {0};
        assert_int_equal(steps[i].call(&error), 0);
        const size_t files = open_file_count();
        bool whole = false;
        long refused = 0;
        for (long n = 0; !whole; n++) {
            alloc_fail_at(n);
            const int r = steps[i].call(&error);
            whole = alloc_count() <= n;
            alloc_fail_at(-1);
            const bool is_short = r == GPULSE_ENOMEM ||
                                  (r == GPULSE_EDRIVER && error.driver_code == NVML_ERROR_MEMORY);
            if (r != 0 && !is_short)
                fail_msg("%s, allocation %ld: %d, %s", steps[i].name, n, r, error.text);
            assert_true(r == 0 || strlen(error.text) > 0);
            refused += r != 0;
            if (!is_back_at(files))
                fail_msg("%s, allocation %ld: %zu files are open instead of %zu", steps[i].name, n,
                         open_file_count(), files);
        }
        if (steps[i].call != estimate) /* it allocates nothing */
            assert_true(refused > 0);
    }
    assert_false(gpulse_is_stuck());
}

static void null_is_allowed_where_it_is_said(void **state)
{
    (void)state;
    gpulse_session *session;
    gpulse_grant *grant;
    gpulse_events *events;
    gpulse_settings *settings;
    char *text;
    struct gpulse_estimate result = {.size = sizeof(result)};
    const struct gpulse_options wrong = {
        .size = sizeof(wrong), .fields = "nothing", .gpus = "nothing"};
    const struct gpulse_request never = {.size = sizeof(never), .count = 9};
    assert_true(gpulse_close(NULL));
    assert_true(gpulse_events_close(NULL));
    gpulse_sample_free(NULL);
    gpulse_release(NULL);
    gpulse_settings_free(NULL);
    gpulse_text_free(NULL);
    assert_int_equal(gpulse_metric_find("nothing", NULL), GPULSE_EUSAGE);
    assert_int_equal(gpulse_metric_describe(-1, NULL), GPULSE_EUSAGE);
    assert_int_equal(gpulse_metric_describe(gpulse_metric_count(), NULL), GPULSE_EUSAGE);
    assert_int_equal(gpulse_scope_find("nothing"), GPULSE_EUSAGE);
    assert_int_equal(gpulse_open(&wrong, &session, NULL), GPULSE_EUSAGE);
    assert_int_equal(gpulse_pick(&wrong, NULL, &grant, NULL), GPULSE_ENODEV);
    assert_int_equal(gpulse_pick(NULL, &never, &grant, NULL), GPULSE_ENEVER);
    assert_int_equal(gpulse_reserve(&wrong, NULL, &grant, NULL), GPULSE_ENODEV);
    assert_int_equal(gpulse_events_open(NULL, "nothing", 0, &events, NULL), GPULSE_EUSAGE);
    assert_int_equal(gpulse_settings_read(&wrong, &settings, NULL), GPULSE_ENODEV);
    assert_int_equal(gpulse_settings_change(NULL, "", 0, &settings, NULL), GPULSE_EUSAGE);
    assert_null(settings);
    assert_int_equal(gpulse_explain("xid 99999", &text, NULL), GPULSE_EFAIL);
    assert_int_equal(gpulse_explain_log("/nothing/here", &text, NULL), GPULSE_EFAIL);
    assert_int_equal(gpulse_estimate_model(NULL, &result, NULL), GPULSE_EUSAGE);
}

static void a_forgotten_size_is_an_error(void **state)
{
    (void)state;
    const struct gpulse_options options = {.fields = "name"};
    const struct gpulse_request request = {.count = 2};
    const struct gpulse_model model = {.params = "7B"};
    const struct gpulse_model sized = {.size = sizeof(sized), .params = "7B"};
    struct gpulse_estimate estimate = {.size = 0};
    struct gpulse_setting setting = {.size = 0};
    struct gpulse_event event = {.size = 0};
    struct gpulse_error error;
    gpulse_session *session = (gpulse_session *)place;
    gpulse_grant *grant = (gpulse_grant *)place;
    gpulse_events *events;
    gpulse_settings *settings;
    assert_int_equal(gpulse_open(&options, &session, &error), GPULSE_EUSAGE);
    assert_non_null(strstr(error.text, "struct gpulse_options must be its sizeof"));
    assert_null(session);
    assert_int_equal(gpulse_pick(NULL, &request, &grant, &error), GPULSE_EUSAGE);
    assert_non_null(strstr(error.text, "struct gpulse_request"));
    assert_null(grant);
    assert_int_equal(gpulse_pick(&options, NULL, &grant, &error), GPULSE_EUSAGE);
    assert_int_equal(gpulse_reserve(NULL, &request, &grant, &error), GPULSE_EUSAGE);
    assert_int_equal(gpulse_settings_read(&options, &settings, &error), GPULSE_EUSAGE);
    estimate.size = sizeof(estimate);
    assert_int_equal(gpulse_estimate_model(&model, &estimate, &error), GPULSE_EUSAGE);
    estimate.size = 0;
    assert_int_equal(gpulse_estimate_model(&sized, &estimate, &error), GPULSE_EUSAGE);
    assert_int_equal(gpulse_settings_read(&two, &settings, NULL), 0);
    assert_int_equal(gpulse_settings_get(settings, 0, &setting), GPULSE_EUSAGE);
    gpulse_settings_free(settings);
    assert_int_equal(gpulse_events_open(&options, NULL, 0, &events, &error), GPULSE_EUSAGE);
    assert_null(events);
    assert_int_equal(gpulse_events_open(&two, NULL, 0, &events, &error), 0);
    assert_int_equal(gpulse_events_next(events, &event, &error), GPULSE_EUSAGE);
    assert_true(gpulse_events_close(events));
}

static void rows_that_do_not_exist(void **state)
{
    (void)state;
    gpulse_session *session;
    gpulse_sample *sample;
    struct gpulse_value value;
    double number;
    const int name = gpulse_metric_find("name", NULL);
    const int pid = gpulse_metric_find("pid", NULL);
    assert_int_equal(gpulse_open(&two, &session, NULL), 0);
    assert_int_equal(gpulse_take(session, &sample, NULL), 0);
    assert_true(gpulse_sample_time(sample) > 0);
    assert_false(gpulse_sample_is_partial(sample));
    assert_int_equal(gpulse_sample_rows(sample, -1), 0);
    assert_int_equal(gpulse_sample_rows(sample, 1000), 0);
    assert_int_equal(gpulse_sample_gpu_of(sample, GPULSE_GPU, 2), GPULSE_EUSAGE);
    assert_int_equal(gpulse_sample_gpu_of(sample, GPULSE_HOST, 0), GPULSE_EUSAGE);
    assert_int_equal(gpulse_sample_get(sample, name, 2, &value), GPULSE_NONE);
    assert_int_equal(gpulse_sample_get(sample, -1, 0, &value), GPULSE_NONE);
    assert_false(gpulse_sample_number(sample, name, 0, &number));
    assert_null(gpulse_sample_text(sample, pid, 0));
    assert_int_equal(gpulse_sample_signal(sample, SIZE_MAX, SIGTERM, NULL), GPULSE_EUSAGE);
    gpulse_sample_free(sample);
    assert_true(gpulse_close(session));
}

static gpulse_sample *shared;

static void *work(void *arg)
{
    const size_t first = (size_t)(uintptr_t)arg;
    struct gpulse_error error;
    char name[64];
    const int index = gpulse_metric_find("index", NULL);
    for (size_t i = 0; i < STEPS; i++) {
        double gpu = -1;
        const struct step *step = &steps[(first + i) % STEPS];
        const int r = step->call(&error);
        /* the others may have both free GPUs */
        if (r != 0 && !(r == GPULSE_EBUSY && (step->call == reserve || step->call == pick)))
            return (void *)(uintptr_t)step->name;
        (void)snprintf(name, sizeof(name), "%s",
                       gpulse_sample_text(shared, gpulse_metric_find("name", NULL), 0));
        if (strcmp(name, "NVIDIA H100 80GB HBM3") != 0)
            return (void *)(uintptr_t) "the shared sample";
        if (!gpulse_sample_number(shared, index, first % 2, &gpu) || (size_t)gpu != first % 2)
            return (void *)(uintptr_t) "a row of the shared sample";
    }
    return NULL;
}

static void eight_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    gpulse_session *session;
    assert_int_equal(gpulse_open(&two, &session, NULL), 0);
    assert_int_equal(gpulse_take(session, &shared, NULL), 0);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < 8; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        if (failed)
            fail_msg("thread %zu: %s", i, (const char *)failed);
    }
    gpulse_sample_free(shared);
    assert_true(gpulse_close(session));
}

/* What is wrong in the child; 0: nothing. */
static int use_after_fork(gpulse_session *session, gpulse_events *events, gpulse_grant *grant)
{
    struct gpulse_event event = {.size = sizeof(event)};
    struct gpulse_error error;
    gpulse_sample *sample;
    if (gpulse_take(session, &sample, &error) != GPULSE_EFORK)
        return 1;
    if (gpulse_events_next(events, &event, &error) != GPULSE_EFORK)
        return 2;
    if (gpulse_grant_keep(grant, &error) != GPULSE_EFORK)
        return 3;
    gpulse_release(grant); /* does not end the reservation of the parent */
    if (!gpulse_events_close(events) || !gpulse_close(session))
        return 4;
    return 0;
}

static void after_fork(void **state)
{
    (void)state;
    gpulse_session *session;
    gpulse_events *events;
    gpulse_grant *grant;
    int status;
    assert_int_equal(gpulse_open(&two, &session, NULL), 0);
    assert_int_equal(gpulse_events_open(&two, NULL, 0, &events, NULL), 0);
    assert_int_equal(gpulse_reserve(NULL, NULL, &grant, NULL), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_after_fork(session, events, grant));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gpulse_grant_keep(grant, NULL), 0);
    gpulse_release(grant);
    assert_true(gpulse_events_close(events));
    assert_true(gpulse_close(session));
}

/* ---- the machine ---- */

/* The first call chooses this machine with the library in $GPULSE_NVML, which is the simulated
 * driver: it needs no companions, which a test has not. */
static int set_up(void **state)
{
    char path[sizeof(place) + 8];
    gpulse_session *session;
    (void)state;
    (void)unsetenv("GPULSE_SIM");
    (void)setenv("GPULSE_NVML", getenv("GPULSE_SIM_LIBRARY"), 1);
    if (gpulse_open(&two, &session, NULL) != GPULSE_EDRIVER)
        return -1;
    (void)setenv("GPULSE_SIM", "h100x8", 1);
    temporary_name(place, sizeof(place), "lib");
    if (!mkdtemp(place))
        return -1;
    (void)setenv("GPULSE_STATE_DIR", place, 1);
    (void)snprintf(path, sizeof(path), "%s/log", place);
    FILE *log = fopen(path, "w");
    return !log || fputs("torch.OutOfMemoryError: CUDA out of memory.\n", log) < 0 ||
           fclose(log) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(null_is_allowed_where_it_is_said),
        cmocka_unit_test(a_forgotten_size_is_an_error),
        cmocka_unit_test(rows_that_do_not_exist),
        cmocka_unit_test(eight_threads),
        cmocka_unit_test(after_fork),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
