/* The output of a job whose reader does not read. */
#include "unit.h"

#include "base/clock.h"
#include "jobs/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

enum { QUIET_MS = 300 };

static atomic_size_t calls;

static void on_line(void *context, const char *line)
{
    (void)context;
    (void)line;
    atomic_fetch_add(&calls, 1);
}

static bool is_enough(void)
{
    return true;
}

/* Until nobody has taken any of it for a while: the channels are full. */
static void fill(int fd)
{
    char lines[4096];
    memset(lines, '\n', sizeof(lines));
    struct pollfd room = {fd, POLLOUT, 0};
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (poll(&room, 1, QUIET_MS) == 1)
        assert_true(write(fd, lines, sizeof(lines)) > 0 || errno == EAGAIN);
}

static size_t drain(int fd)
{
    static char bytes[1 << 16];
    struct pollfd more = {fd, POLLIN, 0};
    size_t size = 0;
    while (poll(&more, 1, QUIET_MS) == 1) {
        ssize_t n = read(fd, bytes, sizeof(bytes));
        assert_true(n > 0);
        size += (size_t)n;
    }
    return size;
}

static void nothing_is_called_when_it_was_given_up(void **state)
{
    (void)state;
    int reader[2];
    int given[3];
    struct gp_err err;
    static struct gp_output *output;
    assert_int_equal(pipe(reader), 0);
    const struct gp_output_plan plan = {.to = reader[1], .on_line = on_line};
    assert_int_equal(gp_output_open(&output, &plan, &err), 0);
    gp_output_give(output, given);
    fill(given[1]);
    assert_int_equal(gp_output_finish(output, is_enough), 0);
    const size_t before = atomic_load(&calls);
    const size_t size = drain(reader[0]);
    assert_true(before > 0 && size > before); /* there were more lines */
    assert_int_equal(atomic_load(&calls), before);
    gp_output_free(output); /* it is left to the thread, which may still use it */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_called_when_it_was_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
