/* What the threads of jobs do, from two or more looks at a /proc made by hand, and at a real one.
 */
#include "proc_tree.h"

#include "base/clock.h"
#include "base/err.h"
#include "proc/tasks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRAINER = 100, LOADER = 101, SHELL = 50, OTHER = 60 };

struct thread {
    char state;
    unsigned long ticks, majors;
    unsigned cpu;
};

static const char line_form[] = "%u (py (x) th) %c %u 1 1 0 -1 0 0 0 %lu 0 %lu 0 0 0 20 0 2 0 %lu "
                                "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 17 "
                                "%u 0 0 0\n";

static void write_thread(unsigned pid, unsigned tid, unsigned parent, struct thread t)
{
    char text[512];
    char name[64];
    int n = snprintf(text, sizeof(text), line_form, tid, t.state, parent, t.majors, t.ticks,
                     5UL * pid, t.cpu);
    (void)snprintf(name, sizeof(name), "task/%u/stat", tid);
    write_pid(pid, name, text, (size_t)n);
}

/* A process with two threads: `all` is its line, of which the first thread's ticks are a part. */
static void write_process(unsigned pid, unsigned parent, struct thread all, struct thread main,
                          struct thread other)
{
    char text[512];
    int n = snprintf(text, sizeof(text), line_form, pid, all.state, parent, all.majors, all.ticks,
                     5UL * pid, all.cpu);
    write_pid(pid, "stat", text, (size_t)n);
    write_thread(pid, pid, parent, main);
    write_thread(pid, pid + 1000, parent, other);
}

static void write_more(unsigned pid, const char *allowed, unsigned long swap_kib,
                       unsigned long read_bytes, unsigned long queue_ns)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "Name:\tpy\nVmSwap:\t%lu kB\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n",
                     swap_kib, allowed);
    write_pid(pid, "status", text, (size_t)n);
    n = snprintf(text, sizeof(text), "rchar: 9\nread_bytes: %lu\n", read_bytes);
    write_pid(pid, "io", text, (size_t)n);
    n = snprintf(text, sizeof(text), "123 %lu 7\n", queue_ns);
    write_pid(pid, "schedstat", text, (size_t)n);
}

static struct gp_tasks_use use_of(const struct gp_tasks *tasks, uint32_t pid, const char *nearest)
{
    struct gp_cpus cpus;
    if (nearest)
        assert_true(gp_cpus_parse(&cpus, nearest));
    return gp_tasks_use(tasks, &pid, 1, nearest ? &cpus : NULL);
}

static bool is_about(double value, double expected)
{
    return value > expected - 0.001 && value < expected + 0.001;
}

static void a_trainer_and_its_loader(void **state)
{
    (void)state;
    const uint32_t pids[] = {TRAINER};
    unsigned long hz = (unsigned long)sysconf(_SC_CLK_TCK);
    struct gp_tasks *tasks = gp_tasks_new(tree_root);
    assert_non_null(tasks);
    write_child(SHELL, 1, 1, "bash");
    write_process(OTHER, SHELL, (struct thread){'R', 0, 0, 0}, (struct thread){'R', 0, 0, 0},
                  (struct thread){'R', 0, 0, 0});
    write_text("/proc/pressure/io",
               "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=0\n");
    write_pid(TRAINER, "cgroup", "0::/pod\n", strlen("0::/pod\n"));
    write_text("/sys/fs/cgroup/pod/cpu.max", "350000 100000\n");
    for (unsigned i = 0; i < 5; i++) { /* 8 seconds */
        unsigned long ticks = 2 * hz * i;
        write_process(TRAINER, SHELL, (struct thread){'S', ticks, 10UL * i, 3},
                      (struct thread){'R', ticks / 4, 0, 3}, (struct thread){'D', 0, 0, 9});
        write_process(LOADER, TRAINER, (struct thread){'R', ticks * 9 / 10, 0, 20},
                      (struct thread){'R', ticks * 9 / 10, 0, 20}, (struct thread){'S', 0, 0, 0});
        write_more(TRAINER, "0-3,8", 1024, 1000000UL * i, 500000000UL * i);
        write_more(LOADER, "0-3", 0, 0, 0);
        assert_int_equal(gp_tasks_look(tasks, pids, 1, (1 + 2 * i) * GP_NS_PER_S), 0);
    }
    struct gp_tasks_use use = use_of(tasks, TRAINER, "0-15");
    assert_true(use.is_known && use.knows_threads);
    assert_true(is_about(use.seconds, 8));
    assert_int_equal(use.looks, 5);
    assert_int_equal(use.processes, 1);
    assert_int_equal(use.workers, 1);
    assert_int_equal(use.threads, 4);
    assert_true(is_about(use.main, 0.25));
    assert_true(is_about(use.others, 0.75));
    assert_true(is_about(use.workers_cpus, 0.9));
    assert_int_equal(use.workers_busy, 1);
    assert_true(is_about(use.cpus, 1.9));
    assert_true(is_about(use.disk, 1));
    assert_true(is_about(use.stopped, 0));
    assert_true(is_about(use.queue, 0.25));
    assert_true(is_about(use.wanted, 0.25));
    assert_true(is_about(use.majors_per_s, 5));
    assert_true(is_about(use.read_bytes_per_s, 500000));
    assert_int_equal(use.swapped_bytes, 1 << 20);
    assert_int_equal(use.allowed, 5);
    assert_true(is_about(use.quota, 3.5));
    assert_true(is_about(use.remote, 0.5)); /* the loader, on CPU 20 */
    assert_true(is_about(use.pressure_io, 0.125));
    assert_true(use.pressure_cpu < 0);
    assert_true(use_of(tasks, TRAINER, NULL).remote < 0);
    assert_false(use_of(tasks, OTHER, NULL).is_known); /* it was not asked for */
    gp_tasks_free(tasks);
}

static void what_cannot_be_read_is_unknown(void **state)
{
    (void)state;
    const uint32_t pids[] = {TRAINER};
    struct gp_tasks *tasks = gp_tasks_new(tree_root);
    for (unsigned i = 0; i < 2; i++) {
        write_stat(TRAINER, "py", 100 * i, 7, 5); /* no threads, no other files */
        assert_int_equal(gp_tasks_look(tasks, pids, 1, (1 + i) * GP_NS_PER_S), 0);
    }
    struct gp_tasks_use use = use_of(tasks, TRAINER, NULL);
    assert_true(use.is_known && !use.knows_threads);
    assert_true(is_about(use.cpus, 100.0 / (double)(unsigned long)sysconf(_SC_CLK_TCK)));
    assert_true(use.queue < 0 && use.remote < 0 && use.read_bytes_per_s < 0);
    assert_int_equal(use.allowed, 0);
    gp_tasks_free(tasks);

    tasks = gp_tasks_new("/nowhere");
    assert_int_equal(gp_tasks_look(tasks, pids, 1, GP_NS_PER_S), 0);
    assert_int_equal(gp_tasks_look(tasks, pids, 1, 2 * GP_NS_PER_S), 0);
    assert_false(use_of(tasks, TRAINER, NULL).is_known);
    gp_tasks_free(tasks);
    gp_tasks_free(NULL);
}

/* A pid that another process gets while it is watched: its numbers do not run backwards. */
static void another_process_with_the_pid(void **state)
{
    (void)state;
    const uint32_t pids[] = {TRAINER};
    struct gp_tasks *tasks = gp_tasks_new(tree_root);
    for (unsigned i = 0; i < 4; i++) {
        write_stat(TRAINER, "py", i < 2 ? 50000 + i : 10 * i, i < 2 ? 7 : 8, 5);
        assert_int_equal(gp_tasks_look(tasks, pids, 1, (1 + i) * GP_NS_PER_S), 0);
    }
    struct gp_tasks_use use = use_of(tasks, TRAINER, NULL);
    assert_int_equal(use.processes, 2);
    assert_true(use.cpus > 0 && use.cpus < 1);
    gp_tasks_free(tasks);
}

static void without_memory(void **state)
{
    (void)state;
    const uint32_t pids[] = {TRAINER};
    write_process(TRAINER, 1, (struct thread){'R', 1, 0, 3}, (struct thread){'R', 1, 0, 3},
                  (struct thread){'S', 0, 0, 0});
    alloc_fail_from(0);
    assert_null(gp_tasks_new(tree_root));
    alloc_fail_from(-1);
    int refused = 0;
    for (long n = 0; n < 3; n++) {
        struct gp_tasks *tasks = gp_tasks_new(tree_root);
        alloc_fail_at(n);
        int r = gp_tasks_look(tasks, pids, 1, GP_NS_PER_S);
        alloc_fail_from(-1);
        assert_true(r == 0 || r == GP_ENOMEM);
        refused += r == GP_ENOMEM;
        gp_tasks_free(tasks);
    }
    assert_true(refused > 0);
}

static void a_real_process(void **state)
{
    (void)state;
    enum { ENOUGH = 20 };
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            continue;
    }
    const uint32_t pids[] = {(uint32_t)child};
    struct gp_tasks *tasks = gp_tasks_new(NULL);
    struct gp_tasks_use use = {0};
    for (int i = 0; !(i > ENOUGH && use.main > 0); i++) {
        assert_int_equal(gp_tasks_look(tasks, pids, 1, gp_clock_mono_ns()), 0);
        use = use_of(tasks, pids[0], NULL);
        (void)usleep(10000);
    }
    /* a sanitizer may have a thread of its own */
    assert_true(use.knows_threads && use.processes == 1 && use.workers == 0 && use.threads >= 1);
    assert_true(use.allowed > 0 && use.read_bytes_per_s >= 0 && use.queue >= 0 &&
                use.stopped < 0.5);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    gp_tasks_free(tasks);
    tasks = gp_tasks_new(NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gp_tasks_look(tasks, pids, 1, gp_clock_mono_ns()), 0);
        (void)usleep(10000);
    }
    assert_true(is_about(use_of(tasks, pids[0], NULL).stopped, 1));
    gp_tasks_free(tasks);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void lists_of_cpus(void **state)
{
    (void)state;
    static const char *const wrong[] = {"4096", "3-1", "1,x", "1-99999999999", "-1"};
    struct gp_cpus cpus;
    assert_true(gp_cpus_parse(&cpus, "0-3,64,4090-4095\n"));
    assert_int_equal(gp_cpus_count(&cpus), 11);
    assert_true(gp_cpus_parse(&cpus, ""));
    assert_int_equal(gp_cpus_count(&cpus), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(wrong); i++) {
        assert_false(gp_cpus_parse(&cpus, wrong[i]));
        assert_int_equal(gp_cpus_count(&cpus), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_trainer_and_its_loader),     TEST(what_cannot_be_read_is_unknown),
        TEST(another_process_with_the_pid), TEST(without_memory),
        cmocka_unit_test(a_real_process),   cmocka_unit_test(lists_of_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
