/* Starting a command: what is left open when that fails. What it does otherwise is seen with real
 * commands and terminals, in tests/cli. */
#include "unit.h"

#include "base/err.h"
#include "jobs/child.h"
#include "jobs/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gp_guard guard;

static char *const no_variables[] = {NULL};

/* How it went, with nothing open that was not open before. */
static int start(struct gp_child *child, const char *program, int *ret_status, struct gp_err *err)
{
    char name[64];
    char *argv[] = {name, NULL};
    (void)snprintf(name, sizeof(name), "%s", program);
    size_t before = open_file_count();
    int r = gp_child_start(child, argv, no_variables, ret_status, err);
    static size_t signals; /* stay open */
    assert_int_equal(open_file_count(), before + (signals == 0));
    signals = 1;
    return r;
}

static void one_that_runs(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.guard = &guard, .is_detached = true};
    struct gp_err err = {0};
    int status = -1;
    assert_int_equal(start(&child, "true", &status, &err), 0);
    assert_true(child.pid > 0);
    while (!child.has_ended)
        gp_child_wait(&child, UINT64_MAX);
    assert_int_equal(gp_child_exit_status(&child), 0);
}

static void one_that_cannot_run(void **ctx)
{
    (void)ctx;
    static const struct {
        const char *program;
        int status;
        const char *text;
    } rows[] = {
        {"/nonexistent/program", 127,
         "cannot run '/nonexistent/program': No such file or directory"},
        {"/", 126, "cannot run '/': Permission denied"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        struct gp_child child = {.guard = &guard, .is_detached = true};
        struct gp_err err = {0};
        int status = -1;
        assert_int_equal(start(&child, rows[i].program, &status, &err), GP_EFAIL);
        assert_int_equal(status, rows[i].status);
        assert_string_equal(err.text, rows[i].text);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* the guard is the only child */
    }
}

static void no_memory_for_it(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.guard = &guard, .is_detached = true};
    struct gp_err err = {0};
    int status = -1;
    errno = ENOMEM;
    alloc_fail_from(0);
    int r = start(&child, "true", &status, &err);
    alloc_fail_from(-1);
    assert_int_equal(r, GP_ENOMEM);
    assert_int_equal(child.pid, -1);
}

static void one_whose_guard_is_killed(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.guard = &guard, .is_detached = true};
    struct gp_err err = {0};
    int status = 0;
    char program[] = "sleep";
    char time[] = "1000";
    char *argv[] = {program, time, NULL};
    assert_int_equal(gp_child_start(&child, argv, no_variables, &status, &err), 0);
    assert_int_equal(kill(guard.pid, SIGKILL), 0);
    while (!child.has_ended)
        gp_child_wait(&child, UINT64_MAX);
    assert_true(child.is_unguarded);
    assert_true(gp_child_was_interrupted(&child)); /* it is not tried again */
    assert_int_equal(gp_child_exit_status(&child), 128 + SIGKILL);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    assert_int_equal(gp_child_start(&child, argv, no_variables, &status, &err), GP_EFAIL);
    assert_int_equal(status, 0);
    assert_non_null(strstr(err.text, "was killed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_runs),
        cmocka_unit_test(one_that_cannot_run),
        cmocka_unit_test(no_memory_for_it),
        cmocka_unit_test(one_whose_guard_is_killed),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (gp_guard_start(&guard, NULL) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gp_guard_dismiss(&guard, false);
    return failed;
}
