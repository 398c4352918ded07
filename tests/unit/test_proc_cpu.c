/* The CPU use of processes: clock ticks, and the time between two readings of them. */
#include "unit.h"

#include "proc/proc.h"
#include "proc_tree.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static uint64_t look_ns; /* that each look at the clock takes */

uint64_t __real_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void)
{
    static uint64_t ahead_ns;
    ahead_ns += look_ns;
    return __real_gp_clock_mono_ns() + ahead_ns;
}

static struct gp_proc_info read_one(struct gp_proc_reader *reader, uint32_t pid)
{
    const struct gp_proc_infos *found = gp_proc_read(reader, GP_PROC_STAT, &pid, 1);
    assert_non_null(found);
    return found->infos[0];
}

/* A file's time is that of the kernel's last tick, up to 10 ms ago. */
enum { APART_US = 100000 };

static void cpu_since_the_start_then_since_the_last_look(void **state)
{
    (void)state;
    struct gp_proc_reader *reader = gp_proc_reader_new(tree_root);
    long hz = sysconf(_SC_CLK_TCK);
    write_stat(4711, "x", 480, 1000, 3);
    /* it started in November 2023: hardly any CPU since then */
    struct gp_proc_info info = read_one(reader, 4711);
    assert_true(info.cpu_pct >= 0 && info.cpu_pct < 0.01);
    (void)usleep(APART_US);
    /* 10 s of CPU in less than a minute, however slow this machine is */
    write_stat(4711, "x", 480 + 10 * (unsigned long)hz, 1000, 3);
    info = read_one(reader, 4711);
    assert_true(info.cpu_pct > 16 && info.cpu_pct <= 12000);
    /* another process with the same pid: nothing is carried over */
    (void)usleep(APART_US);
    write_stat(4711, "x", 480 + 20 * (unsigned long)hz, 1001, 3);
    info = read_one(reader, 4711);
    assert_true(info.cpu_pct < 0.01);
    /* CPU time that runs backwards is no negative percentage */
    (void)usleep(APART_US);
    write_stat(4711, "x", 1, 1001, 3);
    info = read_one(reader, 4711);
    assert_true(info.cpu_pct >= 0 && info.cpu_pct < 0.01);
    gp_proc_reader_free(reader);
}

/* Writes the file as if that had been some seconds ago. */
static void write_stat_at(unsigned ago_s, unsigned long ticks)
{
    char path[128];
    const struct timespec then = {.tv_sec = time(NULL) - (time_t)ago_s};
    const struct timespec times[] = {then, then};
    write_stat(4711, "x", ticks, 1000, 3);
    (void)snprintf(path, sizeof(path), "%s/proc/4711/stat", tree_root);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A simulated machine writes its files when the driver is called, and a GPU that hangs delays the
 * reading after that. */
static void ticks_of_a_file_are_of_when_it_was_written(void **state)
{
    (void)state;
    struct gp_proc_reader *reader = gp_proc_reader_new(tree_root);
    const unsigned long hz = (unsigned long)sysconf(_SC_CLK_TCK);
    write_stat_at(30, 1000 * hz);
    (void)read_one(reader, 4711);
    write_stat_at(20, 1018 * hz); /* 18 s of CPU in 10 s */
    for (int i = 0; i < 2; i++) { /* which holds until it is written again */
        const double pct = read_one(reader, 4711).cpu_pct;
        assert_true(pct > 150 && pct < 210);
    }
    write_stat_at(10, 1018 * hz);
    assert_true(read_one(reader, 4711).cpu_pct < 0.01);
    gp_proc_reader_free(reader);
}

/* The first processes may take long to read. */
static void each_process_has_a_time_of_its_own(void **state)
{
    (void)state;
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    uint32_t pids[] = {(uint32_t)getppid(), (uint32_t)getpid()};
    qsort(pids, 2, sizeof(*pids), gp_compare_u32);
    look_ns = GP_NS_PER_S;
    const struct gp_proc_infos *all = gp_proc_read(reader, GP_PROC_STAT, pids, 2);
    assert_non_null(all);
    assert_true(all->infos[0].as_of_ns + GP_NS_PER_S <= all->infos[1].as_of_ns);
    look_ns = 0;
    gp_proc_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cpu_since_the_start_then_since_the_last_look),
        TEST(ticks_of_a_file_are_of_when_it_was_written),
        TEST(each_process_has_a_time_of_its_own),
    };
    return cmocka_run_group_tests_name("proc_cpu", tests, NULL, NULL);
}
