/* Starting a command: what is left open when that fails. What it does otherwise is seen with real
 * commands and terminals, in tests/cli. */
#include "unit.h"

#include "base/err.h"
#include "jobs/child.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static bool no_pipe, no_fork;

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

int __wrap_pipe2(int fds[2], int flags)
{
    if (!no_pipe)
        return __real_pipe2(fds, flags);
    errno = EMFILE;
    return -1;
}

pid_t __wrap_fork(void)
{
    if (!no_fork)
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

static char *const no_variables[] = {NULL};

/* How it went, with nothing open that was not open before. */
static int start(struct gp_child *child, const char *program, int *ret_status, struct gp_err *err)
{
    char name[64];
    char *argv[] = {name, NULL};
    (void)snprintf(name, sizeof(name), "%s", program);
    size_t before = open_file_count();
    int r = gp_child_start(child, argv, no_variables, ret_status, err);
    assert_int_equal(open_file_count(), before);
    return r;
}

static void one_that_runs(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.is_detached = true};
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
        struct gp_child child = {.is_detached = true};
        struct gp_err err = {0};
        int status = -1;
        assert_int_equal(start(&child, rows[i].program, &status, &err), GP_EFAIL);
        assert_int_equal(status, rows[i].status);
        assert_string_equal(err.text, rows[i].text);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    }
}

static void no_descriptors_for_it(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.is_detached = true};
    struct gp_err err = {0};
    int status = -1;
    no_pipe = true;
    int r = start(&child, "true", &status, &err);
    no_pipe = false;
    assert_int_equal(r, GP_ENOMEM);
    assert_string_equal(err.text, "cannot start a process: Too many open files");
}

static void no_process_for_it(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.is_detached = true};
    struct gp_err err = {0};
    int status = -1;
    no_fork = true;
    int r = start(&child, "true", &status, &err);
    no_fork = false;
    assert_int_equal(r, GP_EFAIL);
    assert_string_equal(err.text, "cannot start a process: Resource temporarily unavailable");
}

static void no_memory_for_it(void **ctx)
{
    (void)ctx;
    struct gp_child child = {.is_detached = true};
    struct gp_err err = {0};
    int status = -1;
    errno = ENOMEM;
    alloc_fail_from(0);
    int r = start(&child, "true", &status, &err);
    alloc_fail_from(-1);
    assert_int_equal(r, GP_ENOMEM);
    assert_int_equal(child.pid, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_runs),         cmocka_unit_test(one_that_cannot_run),
        cmocka_unit_test(no_descriptors_for_it), cmocka_unit_test(no_process_for_it),
        cmocka_unit_test(no_memory_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
