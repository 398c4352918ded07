/* CPU time of what comes from a process. */
#include "unit.h"

#include "base/clock.h"
#include "proc/tasks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENOUGH_MS = 50 };

static _Noreturn void work(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        continue;
}

/* A child that sleeps, whose own child works. */
static pid_t start_family(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fork() == 0)
        work();
    for (;;)
        (void)pause();
}

static void grandchildren_count(void **state)
{
    (void)state;
    pid_t child = start_family();
    assert_true(child > 0);
    while (gp_proc_descendants_cpu_ns((uint32_t)child) < ENOUGH_MS * GP_NS_PER_MS)
        (void)usleep(1000);
    uint64_t before_ns = gp_proc_descendants_cpu_ns((uint32_t)child);
    assert_true(gp_proc_descendants_cpu_ns((uint32_t)getpid()) >= before_ns);
    while (gp_proc_descendants_cpu_ns((uint32_t)child) == before_ns)
        (void)usleep(1000);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void its_own_does_not_count(void **state)
{
    (void)state;
    volatile uint64_t sum = 0;
    for (clock_t end = clock() + CLOCKS_PER_SEC / 20; clock() < end;)
        sum += 1;
    assert_int_equal(gp_proc_descendants_cpu_ns((uint32_t)getpid()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_does_not_count),
        cmocka_unit_test(grandchildren_count),
    };
    return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
