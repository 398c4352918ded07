#include "unit.h"

#include "base/io.h"
#include "proc/files.h"
#include "proc/proc.h"
#include "proc_tree.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The real time, and what a test adds to it. */
static uint64_t ahead_ns;

uint64_t __real_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void)
{
    return __real_gp_clock_mono_ns() + ahead_ns;
}

/* ---- reading it ---- */

struct subject {
    struct gp_proc_reader *reader;
};

static struct subject new_subject(void)
{
    struct subject s = {.reader = gp_proc_reader_new(tree_root)};
    assert_non_null(s.reader);
    return s;
}

static void free_subject(struct subject *s)
{
    gp_proc_reader_free(s->reader);
}

static struct gp_proc_info read_one(struct subject *s, unsigned want, unsigned pid)
{
    const struct gp_proc_infos *found = gp_proc_read(s->reader, want, &pid, 1);
    assert_non_null(found);
    return found->infos[0];
}

/* path: NULL for none */
static void check_command(const char *cmdline, size_t size, const char *comm, const char *name,
                          const char *path, const char *command)
{
    struct subject s = new_subject();
    write_pid(4711, "cmdline", cmdline, size);
    write_pid(4711, "comm", comm, strlen(comm));
    struct gp_proc_info info = read_one(&s, GP_PROC_COMMAND | GP_PROC_PATH, 4711);
    assert_true(info.exists);
    assert_string_equal(info.texts->name, name);
    assert_string_equal(info.texts->path ? info.texts->path : "", path ? path : "");
    assert_int_equal(info.texts->path != NULL, path != NULL);
    assert_string_equal(info.texts->command, command);
    free_subject(&s);
}

#define CMDLINE(text) text, sizeof(text)

static void names_come_from_the_arguments(void **state)
{
    (void)state;
    check_command(CMDLINE("/usr/bin/python3\0train.py\0--lr\0"
                          "1e-3"),
                  "pt_main_thread\n", "python3", "/usr/bin/python3",
                  "/usr/bin/python3 train.py --lr 1e-3");
    check_command(CMDLINE("python"), "python\n", "python", "python", "python");
    check_command(CMDLINE("./a.out"), "a.out\n", "a.out", "./a.out", "./a.out");
    /* programs that write a title into their arguments, with blanks up to the old end */
    check_command(CMDLINE("nginx: worker process          "), "nginx\n", "nginx",
                  "nginx: worker process", "nginx: worker process");
    check_command(CMDLINE("ray::train_fn\0\0\0\0"), "ray::train_fn\n", "ray::train_fn",
                  "ray::train_fn", "ray::train_fn");
    check_command(CMDLINE("/"), "x\n", "", "/", "/");
    check_command("no final NUL", 12, "x\n", "no", "no final NUL", "no final NUL");
}

static void kernel_threads_and_zombies_have_only_a_short_name(void **state)
{
    (void)state;
    check_command("", 0, "kworker/0:1-events\n", "kworker/0:1-events", NULL, "kworker/0:1-events");
    check_command("\0\0\0", 3, "(sd-pam)\n", "(sd-pam)", NULL, "(sd-pam)");
    check_command("", 0, "no newline", "no newline", NULL, "no newline");
}

static void hostile_names_are_made_safe(void **state)
{
    (void)state;
    check_command(CMDLINE("/bin/\033[2Jx\0a\nb"), "x\n", "\\x1b[2Jx", "/bin/\\x1b[2Jx",
                  "/bin/\\x1b[2Jx a\\nb");
    check_command(CMDLINE("\xff\xfe"), "x\n", "\uFFFD\uFFFD", "\uFFFD\uFFFD", "\uFFFD\uFFFD");
    check_command("", 0, "a\033b\n", "a\\x1bb", NULL, "a\\x1bb");
}

static void endless_names_are_cut(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    static char endless[SIZE];
    memset(endless, 'A', SIZE);
    struct subject s = new_subject();
    write_pid(4711, "cmdline", endless, SIZE);
    struct gp_proc_info info = read_one(&s, GP_PROC_COMMAND | GP_PROC_PATH, 4711);
    assert_true(strlen(info.texts->name) < 100);
    assert_true(strlen(info.texts->path) < 5000);
    assert_true(strlen(info.texts->command) < 5000);
    assert_memory_equal(info.texts->name, "AAAAAAAAAA", 10);
    free_subject(&s);
}

static void names_with_brackets_and_blanks_do_not_shift_the_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"python", "a b",     "a) R 1 2", "((((",
                                        "))))",   ") S 1 (", "",         "x\ny"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        struct subject s = new_subject();
        write_stat(4711, names[i], 480, 1000, 3);
        struct gp_proc_info info = read_one(&s, GP_PROC_STAT, 4711);
        long hz = sysconf(_SC_CLK_TCK);
        assert_true(info.exists);
        assert_int_equal(info.cpu_ticks, 500);
        assert_int_equal(info.start_ticks, 1000);
        assert_int_equal(info.rss_bytes, 3 * sysconf(_SC_PAGESIZE));
        assert_int_equal(info.start_ns,
                         UINT64_C(1700000000) * GP_NS_PER_S + 1000 * GP_NS_PER_S / (uint64_t)hz);
        free_subject(&s);
    }
}

static void broken_files_give_no_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "4711", "4711 (x", "4711 (x)", "4711 (x) R 1 2 3", "\n\n", "4711 (x) R a b"};
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        struct subject s = new_subject();
        write_pid(4711, "stat", texts[i], strlen(texts[i]));
        struct gp_proc_info info =
            read_one(&s, GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_USER, 4711);
        assert_int_equal(info.cpu_ticks, 0);
        assert_int_equal(info.rss_bytes, 0);
        assert_int_equal(info.state, 0);
        assert_null(info.texts->name);
        free_subject(&s);
    }
    struct subject s = new_subject();
    write_stat(4711, "x", 0, 1, -5); /* the kernel's counters may be negative for a moment */
    assert_int_equal(read_one(&s, GP_PROC_STAT, 4711).rss_bytes, 0);
    free_subject(&s);
}

static void what_the_line_stat_says(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_text("/proc/4711/stat",
               "4711 (a) D 17 4711 4711 0 -1 4194304 1 2 3 4 30 20 5 6 20 -5 33 0 "
               "1000 99 3 18446744073709551615\n");
    struct gp_proc_info info = read_one(&s, GP_PROC_STAT, 4711);
    assert_int_equal(info.state, 'D');
    assert_int_equal(info.ppid, 17);
    assert_int_equal(info.threads, 33);
    assert_int_equal(info.cpu_ticks, 50);
    /* what is no letter does not get on */
    write_text("/proc/4711/stat", "4711 (a) \033 17 4711 4711 0 -1 0 1 2 3 4 30 20 5 6 20 0 1 0 "
                                  "1000 99 3 0\n");
    info = read_one(&s, GP_PROC_STAT, 4711);
    assert_true(info.exists);
    assert_int_equal(info.state, 0);
    assert_int_equal(info.ppid, 0);
    free_subject(&s);
}

static void where_it_runs(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_text("/proc/4711/cgroup", "0::/system.slice/slurmstepd.scope/job_4/step_0/user/task_0\n");
    struct gp_proc_info info = read_one(&s, GP_PROC_CONTAINER, 4711);
    assert_true(info.exists);
    assert_string_equal(info.texts->container, "slurm:4.0");
    assert_null(read_one(&s, GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND, 4711).texts->container);
    /* nowhere special is not the same as not known */
    write_text("/proc/4711/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
    assert_string_equal(read_one(&s, GP_PROC_CONTAINER, 4711).texts->container, "");
    info = read_one(&s, GP_PROC_CONTAINER, 4712);
    assert_false(info.exists);
    assert_null(info.texts->container);
    free_subject(&s);
}

static void a_process_that_is_gone(void **state)
{
    (void)state;
    struct subject s = new_subject();
    const uint32_t pids[] = {10, 20, 30};
    write_stat(20, "x", 480, 1000, 3);
    write_pid(20, "cmdline", CMDLINE("x"));
    const struct gp_proc_infos *found =
        gp_proc_read(s.reader, GP_PROC_USER | GP_PROC_STAT | GP_PROC_COMMAND, pids, 3);
    assert_non_null(found);
    const struct gp_proc_info *infos = found->infos;
    for (int i = 0; i < 3; i += 2) {
        assert_false(infos[i].exists);
        assert_null(infos[i].texts->user);
        assert_null(infos[i].texts->name);
        assert_null(infos[i].texts->path);
        assert_null(infos[i].texts->command);
    }
    assert_true(infos[1].exists);
    assert_string_equal(infos[1].texts->name, "x");
    free_subject(&s);
}

static void nothing_is_read_that_is_not_wanted(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_stat(4711, "x", 480, 1000, 3);
    write_pid(4711, "cmdline", CMDLINE("x"));
    struct gp_proc_info info = read_one(&s, 0, 4711);
    assert_false(info.exists);
    info = read_one(&s, GP_PROC_COMMAND, 4711);
    assert_string_equal(info.texts->name, "x");
    assert_null(info.texts->user);
    assert_int_equal(info.start_ticks, 0);
    free_subject(&s);
}

static void write_owner(unsigned pid, unsigned uid)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "Name:\tx\nUmask:\t0022\nUid:\t%u\t%u\t%u\t%u\nGid:\t0\n",
                     uid + 1, uid, uid, uid); /* a set-uid program: the effective user counts */
    write_pid(pid, "status", text, (size_t)n);
}

static void users_by_name_or_number(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_owner(4711, 1234);
    assert_string_equal(read_one(&s, GP_PROC_USER, 4711).texts->user,
                        "1234"); /* no passwd at all */
    free_subject(&s);

    write_text("/etc/passwd",
               "root:x:0:0:root:/root:/bin/sh\nbroken line\nshort:x\n:::\nfake:x:12349:1::/:\n"
               "ali ce\033:x:1234:100:Alice:/home:/bin/sh\nother:x:1234:1::/:\n");
    s = new_subject();
    assert_string_equal(read_one(&s, GP_PROC_USER, 4711).texts->user, "ali ce\\x1b");
    /* remembered, without another look */
    write_text("/etc/passwd", "");
    assert_string_equal(read_one(&s, GP_PROC_USER, 4711).texts->user, "ali ce\\x1b");
    free_subject(&s);
}

static void below_a_root_status_says_whose_it_is(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_text("/etc/passwd", "root:x:0:0::/:\nbob:x:77:7::/:\n");
    write_owner(4711, 77);
    assert_string_equal(read_one(&s, GP_PROC_USER, 4711).texts->user, "bob");
    write_owner(4712, 0);
    assert_string_equal(read_one(&s, GP_PROC_USER, 4712).texts->user, "root");
    free_subject(&s);
}

/* What only root may read of a process is not its user's. */
static void an_undumpable_process_is_its_users_but_its_texts_are_roots(void **state)
{
    (void)state;
    const uid_t user = geteuid() == 0 ? 4242 : geteuid();
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setresuid(user, user, user) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    const bool is_ready = read(ready[0], &byte, 1) == 1;
    (void)close(ready[0]);
    if (!is_ready) {
        (void)waitpid(child, NULL, 0);
        skip_because("this user namespace has no other user");
    }
    const uint32_t pid = (uint32_t)child;
    char expected[64];
    (void)gp_proc_user_name(NULL, user, expected, sizeof(expected));
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    assert_non_null(reader);
    const struct gp_proc_infos *infos = gp_proc_read(reader, GP_PROC_OWNER | GP_PROC_USER, &pid, 1);
    assert_string_equal(infos->infos[0].texts->user, expected);
    assert_int_equal(infos->infos[0].texts->owner, 0 + 1);
    gp_proc_reader_free(reader);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* Private texts are for the owner: nobody, if the process is in another user namespace. */
static void owners_of_private_texts(void **state)
{
    (void)state;
    struct subject s = new_subject();
    char map[1024];
    long n = gp_io_read("/proc/self/uid_map", map, sizeof(map));
    assert_true(n > 0);
    for (unsigned pid = 4711; pid <= 4715; pid++)
        write_owner(pid, 77);
    const uint32_t owner = 77 + 1;
    assert_int_equal(read_one(&s, GP_PROC_OWNER, 4711).texts->owner, owner); /* none are known */
    write_pid(4712, "uid_map", map, (size_t)n);
    assert_int_equal(read_one(&s, GP_PROC_OWNER, 4712).texts->owner, owner);
    write_pid(4713, "uid_map", "         0     100000      65536\n", 33);
    assert_int_equal(read_one(&s, GP_PROC_OWNER, 4713).texts->owner, 0);
    write_pid(4714, "uid_map", "", 0); /* a new namespace that has no map yet */
    assert_int_equal(read_one(&s, GP_PROC_OWNER, 4714).texts->owner, 0);
    assert_int_equal(read_one(&s, GP_PROC_USER, 4715).texts->owner, 0); /* not requested */
    free_subject(&s);
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    const uint32_t self = (uint32_t)getpid();
    assert_non_null(reader);
    const struct gp_proc_infos *infos = gp_proc_read(reader, GP_PROC_OWNER, &self, 1);
    assert_int_equal(infos->infos[0].texts->owner, geteuid() + 1);
    gp_proc_reader_free(reader);
}

static void many_users(void **state)
{
    (void)state;
    struct subject s = new_subject();
    for (unsigned i = 0; i < 600; i++) {
        char uid[16];
        write_owner(4711, 10000 + i);
        (void)snprintf(uid, sizeof(uid), "%u", 10000 + i);
        assert_string_equal(read_one(&s, GP_PROC_USER, 4711).texts->user, uid);
    }
    free_subject(&s);
}

enum { ALL_OF_THE_HOST = 63 };

static struct gp_proc_host read_host(struct subject *s, unsigned want)
{
    struct gp_proc_host host;
    memset(&host, 0x55, sizeof(host));
    gp_proc_read_host(s->reader, want, 0, &host);
    return host;
}

static void the_host(void **state)
{
    (void)state;
    struct subject s = new_subject();
    struct gp_proc_host host = read_host(&s, ALL_OF_THE_HOST);
    assert_int_equal(host.known, GP_PROC_HOST_CPU | GP_PROC_HOST_CPU_COUNT);
    assert_true(host.cpu_pct > 19.99 && host.cpu_pct < 20.01); /* since boot: 200 of 1000 */
    assert_int_equal(host.cpu_count, 1);

    write_text("/proc/loadavg", "1.25 0.50 0.25 1/234 5678\n");
    write_text("/proc/meminfo",
               "MemTotal:       16384 kB\nMemFree:    1 kB\nMemAvailable:    8192 kB\n"
               "SwapCached:        5 kB\nSwapTotal:    4096 kB\nSwapFree:     4000 kB\n");
    write_text("/proc/stat", "cpu  175 0 100 725 100 0 0 0 0 0\n");
    write_text("/proc/uptime", "35969.85 71120.54\n");
    host = read_host(&s, ALL_OF_THE_HOST);
    assert_int_equal(host.known, ALL_OF_THE_HOST & ~GP_PROC_HOST_CPU_COUNT);
    assert_true(host.cpu_pct > 74.99 && host.cpu_pct < 75.01); /* since the last look: 75 of 100 */
    assert_true(host.load_1m > 1.24 && host.load_1m < 1.26);
    assert_int_equal(host.memory_total_bytes, 16384 * 1024);
    assert_int_equal(host.memory_available_bytes, 8192 * 1024);
    assert_int_equal(host.swap_total_bytes, 4096 * 1024);
    assert_int_equal(host.swap_used_bytes, 96 * 1024);
    assert_int_equal(host.uptime_s, 35969);

    write_text("/proc/stat", "intr 1\n");
    write_text("/proc/loadavg", "much");
    write_text("/proc/meminfo", "MemTotal: 5 kB\nSwapTotal: 5 kB\n");
    write_text("/proc/uptime", "");
    assert_int_equal(read_host(&s, ALL_OF_THE_HOST).known, 0);
    free_subject(&s);
}

static void of_the_host_only_what_is_wanted_is_read(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_text("/proc/loadavg", "1.25 0.50 0.25 1/234 5678\n");
    write_text("/proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 2 kB\nSwapTotal: 0 kB\n"
                                "SwapFree: 0 kB\n");
    write_text("/proc/uptime", "17.00 1.00\n");
    static const unsigned parts[] = {GP_PROC_HOST_CPU, GP_PROC_HOST_CPU_COUNT, GP_PROC_HOST_LOAD,
                                     GP_PROC_HOST_UPTIME};
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++)
        assert_int_equal(read_host(&s, parts[i]).known, parts[i]);
    struct gp_proc_host host = read_host(&s, GP_PROC_HOST_CPU_COUNT);
    assert_int_equal(host.cpu_count, 1);
    assert_int_equal(host.uptime_s, 0);
    /* a machine without swap is not one whose swap is unknown */
    host = read_host(&s, GP_PROC_HOST_SWAP);
    assert_true(host.known & GP_PROC_HOST_SWAP);
    assert_int_equal(host.swap_total_bytes, 0);
    assert_int_equal(host.swap_used_bytes, 0);
    free_subject(&s);
}

static void thousands_of_cpus_are_counted(void **state)
{
    (void)state;
    struct subject s = new_subject();
    enum { CPUS = 4096 };
    static char text[CPUS * 128];
    int n = snprintf(text, sizeof(text), "cpu  175 0 100 725 100 0 0 0 0 0\n");
    /* numbers are left out where a CPU is offline */
    for (int i = 0; i < CPUS; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "cpu%d 1234567890 0 1234567890 9876543210 12345 0 12345 0 0 0\n", 2 * i);
    (void)snprintf(text + n, sizeof(text) - (size_t)n, "intr 1 2 3\nctxt 4\ncpu9 no line of it\n");
    write_text("/proc/stat", text);
    assert_int_equal(read_host(&s, ALL_OF_THE_HOST).cpu_count, CPUS);
    free_subject(&s);
}

static void a_host_whose_counters_ran_backwards(void **state)
{
    (void)state;
    struct subject s = new_subject();
    (void)read_host(&s, GP_PROC_HOST_CPU);
    /* idle and iowait have been seen to decrease */
    write_text("/proc/stat", "cpu  100 0 100 650 90 0 0 0\n");
    struct gp_proc_host host = read_host(&s, GP_PROC_HOST_CPU);
    assert_true(host.cpu_pct >= 0 && host.cpu_pct <= 100);
    write_text("/proc/stat", "cpu  50 0 50 2000 90 0 0 0\n");
    host = read_host(&s, GP_PROC_HOST_CPU);
    assert_true(host.cpu_pct >= 0 && host.cpu_pct <= 100);
    /* what is free may be read a moment later than what there is */
    write_text("/proc/meminfo", "SwapTotal: 100 kB\nSwapFree: 104 kB\n");
    assert_int_equal(read_host(&s, GP_PROC_HOST_SWAP).swap_used_bytes, 0);
    free_subject(&s);
}

static void without_memory_the_processes_are_still_there(void **state)
{
    (void)state;
    write_stat(4711, "x", 480, 1000, 3);
    write_pid(4711, "cmdline", CMDLINE("/bin/x\0y"));
    write_pid(4711, "cgroup", "0::/lxc/a\n", 10);
    for (long n = 1; n < 25; n++) {
        struct subject s = new_subject();
        alloc_fail_from(n);
        struct gp_proc_info info = read_one(&s, 31, 4711);
        alloc_fail_from(-1);
        assert_true(info.exists);
        assert_int_equal(info.start_ticks, 1000);
        free_subject(&s);
    }
    struct subject s = new_subject();
    alloc_fail_from(0);
    assert_null(gp_proc_reader_new(tree_root));
    assert_null(gp_proc_read(s.reader, GP_PROC_STAT, &(uint32_t){4711}, 1));
    alloc_fail_from(-1);
    free_subject(&s);
}

static void this_process(void **state)
{
    (void)state;
    struct subject s = {.reader = gp_proc_reader_new(NULL)};
    struct gp_proc_info info =
        read_one(&s, GP_PROC_USER | GP_PROC_STAT | GP_PROC_COMMAND, (unsigned)getpid());
    assert_true(info.exists);
    assert_non_null(info.texts->user);
    assert_string_equal(info.texts->name, "test_proc");
    assert_true(info.rss_bytes > 100000);
    assert_int_equal(info.state, 'R');
    assert_int_equal(info.ppid, getppid());
    assert_int_equal(info.threads, 1);
    assert_true(info.start_ns > UINT64_C(1700000000) * GP_NS_PER_S);
    const struct gp_proc_infos *family =
        gp_proc_read(s.reader, GP_PROC_STAT | GP_PROC_ANCESTORS, &info.pid, 1);
    assert_non_null(family);
    assert_true(family->count > 1 || getppid() == 0);
    struct gp_proc_host host = read_host(&s, ALL_OF_THE_HOST);
    assert_int_equal(host.known, ALL_OF_THE_HOST);
    assert_int_equal(host.cpu_count, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(host.uptime_s > 0);
    free_subject(&s);
}

/* The parts by bit: CPU, number of CPUs, load, memory, swap, uptime. */
static void check_read_again(struct subject *s, uint64_t after_s, uint64_t every_s,
                             const bool expected[6])
{
    struct gp_proc_host before = read_host(s, ALL_OF_THE_HOST);
    struct gp_proc_host after;
    ahead_ns += after_s * GP_NS_PER_S;
    gp_proc_read_host(s->reader, ALL_OF_THE_HOST, every_s * GP_NS_PER_S, &after);
    assert_int_equal(after.known, ALL_OF_THE_HOST);
    for (int i = 0; i < GP_PROC_HOST_PARTS; i++)
        assert_int_equal(after.read_ns[i] > before.read_ns[i], expected[i]);
}

static void values_of_the_host_are_kept(void **state)
{
    (void)state;
    struct subject s = {.reader = gp_proc_reader_new(NULL)};
    static const bool all_but_the_slow[] = {true, false, false, true, true, true};
    static const bool all_but_the_number[] = {true, false, true, true, true, true};
    static const bool all[] = {true, true, true, true, true, true};
    static const bool the_load[] = {false, false, true, false, false, false};
    check_read_again(&s, 3, 0, all_but_the_slow);
    check_read_again(&s, 3, 0, all_but_the_number); /* after 6 seconds in all */
    check_read_again(&s, 3, 2, all_but_the_slow);
    check_read_again(&s, 3, 4, the_load);
    check_read_again(&s, 60, 0, all);
    struct gp_proc_host host = read_host(&s, GP_PROC_HOST_MEMORY);
    assert_int_equal(host.known, GP_PROC_HOST_MEMORY);
    ahead_ns = 0;
    free_subject(&s);
}

/* A command line is not read again at every tick, but for another process with the same pid, and
 * after a while. */
/* As long as the same program runs. */
static void an_environment_is_read_once(void **state)
{
    (void)state;
    struct subject s = new_subject();
    const unsigned want = GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_ORIGIN;
    write_stat(40, "job", 100, 500, 8);
    write_pid(40, "cmdline", "bash", 5);
    write_pid(40, "environ", "TMUX_PANE=%1", 13);
    assert_string_equal(read_one(&s, want, 40).texts->origin, "tmux %1");
    write_pid(40, "environ", "TMUX_PANE=%2", 13);
    ahead_ns = 17 * GP_NS_PER_S;
    assert_string_equal(read_one(&s, want, 40).texts->origin, "tmux %1");
    write_pid(40, "cmdline", "python", 7); /* it has become another one */
    ahead_ns = 34 * GP_NS_PER_S;
    assert_string_equal(read_one(&s, want, 40).texts->origin, "tmux %2");
    ahead_ns = 0;
    free_subject(&s);
}

static void what_seldom_changes_is_kept(void **state)
{
    (void)state;
    struct subject s = new_subject();
    const unsigned want = GP_PROC_USER | GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_CONTAINER;
    write_stat(40, "first", 100, 500, 8);
    write_pid(40, "cgroup", "0::/lxc/a\n", 10);
    write_pid(40, "cmdline", "/bin/first\0x", 13);
    assert_string_equal(read_one(&s, want, 40).texts->command, "/bin/first x");
    write_pid(40, "cmdline", "/bin/second", 12);
    write_pid(40, "cgroup", "0::/lxc/b\n", 10);
    struct gp_proc_info info = read_one(&s, want, 40);
    assert_string_equal(info.texts->container, "lxc:a");
    assert_string_equal(info.texts->command, "/bin/first x");
    assert_string_equal(info.texts->name, "first");
    assert_non_null(info.texts->user);
    ahead_ns = 17 * GP_NS_PER_S;
    info = read_one(&s, want, 40);
    assert_string_equal(info.texts->command, "/bin/second");
    assert_string_equal(info.texts->container, "lxc:b");
    write_pid(40, "cmdline", "/bin/third", 11);
    assert_string_equal(read_one(&s, want, 40).texts->command, "/bin/second");
    /* what was not asked for is not there yet */
    assert_string_equal(read_one(&s, want | GP_PROC_PATH, 40).texts->path, "/bin/third");
    write_pid(40, "cmdline", "/bin/fourth", 12);
    assert_string_equal(read_one(&s, want, 40).texts->command, "/bin/third");
    write_stat(40, "other", 1, 900, 8);
    assert_string_equal(read_one(&s, want, 40).texts->command, "/bin/fourth");
    write_pid(40, "cmdline", "/bin/fifth", 11);
    assert_string_equal(read_one(&s, GP_PROC_COMMAND, 40).texts->command, "/bin/fifth");
    ahead_ns = 0;
    free_subject(&s);
}

/* A snapshot has them longer than the reader. */
static void who_holds_texts_has_them_for_longer(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_stat(40, "first", 100, 500, 8);
    write_pid(40, "cmdline", CMDLINE("/bin/first"));
    struct gp_proc_info info = read_one(&s, GP_PROC_STAT | GP_PROC_COMMAND, 40);
    assert_non_null(gp_shared_hold(&info.texts->shared));
    write_stat(40, "other", 1, 900, 8);
    write_pid(40, "cmdline", CMDLINE("/bin/other"));
    assert_string_equal(read_one(&s, GP_PROC_STAT | GP_PROC_COMMAND, 40).texts->command,
                        "/bin/other");
    free_subject(&s);
    assert_string_equal(info.texts->command, "/bin/first");
    assert_int_equal(strlen(info.texts->start), 29);
    gp_shared_drop(&info.texts->shared);
}

/* What is not on the screen is looked at again only after a while, and says so. */
static void only_what_is_watched_is_read_at_every_tick(void **state)
{
    (void)state;
    struct subject s = new_subject();
    const unsigned want = GP_PROC_STAT | GP_PROC_COMMAND;
    const uint32_t watched[] = {50};
    const uint32_t pids[] = {50, 60};
    const struct gp_proc_info *infos = NULL;
    for (long tick = 0; tick < 4; tick++) {
        write_stat(50, "seen", 100, 500, 8 + tick);
        write_stat(60, "hidden", 100, 500, 8 + tick);
        write_pid(50, "cmdline", "seen", 5);
        write_pid(60, "cmdline", "hidden", 7);
        gp_proc_watch(s.reader, tick >= 2 ? watched : NULL, 1, false);
        infos = gp_proc_read(s.reader, want, pids, 2)->infos;
        long old = tick >= 2 ? 9 : 8 + tick;
        assert_int_equal(infos[0].rss_bytes, (8 + tick) * sysconf(_SC_PAGESIZE));
        assert_false(infos[0].is_old);
        assert_int_equal(infos[1].rss_bytes, old * sysconf(_SC_PAGESIZE));
        assert_int_equal(infos[1].is_old, tick >= 2);
        assert_int_equal(infos[1].state, 'R');
        assert_int_equal(infos[1].ppid, 1);
        assert_int_equal(infos[1].threads, 16);
        assert_true(infos[1].exists);
        assert_string_equal(infos[1].texts->command, "hidden");
    }
    uint64_t then_ns = infos[1].as_of_ns;
    ahead_ns = 30 * GP_NS_PER_S;
    infos = gp_proc_read(s.reader, want, pids, 2)->infos;
    assert_true(infos[1].is_old);
    ahead_ns = 65 * GP_NS_PER_S;
    infos = gp_proc_read(s.reader, want, pids, 2)->infos;
    assert_false(infos[1].is_old);
    assert_true(infos[1].as_of_ns >= then_ns + ahead_ns);
    assert_int_equal(infos[1].rss_bytes, 11 * sysconf(_SC_PAGESIZE));
    ahead_ns = 0;
    free_subject(&s);
}

/* Where their numbers decide who is seen, all come up, a part of them at each tick. */
static void who_is_not_watched_has_its_turn(void **state)
{
    (void)state;
    enum { COUNT = 5000, TICKS = 1 + COUNT / 2048 };
    struct subject s = new_subject();
    static const uint32_t watched[] = {50};
    static uint32_t pids[COUNT];
    unsigned fresh[COUNT] = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        pids[i] = 50 + i;
        write_stat((long)pids[i], "one of many", 100, 500, 8);
    }
    (void)gp_proc_read(s.reader, GP_PROC_STAT, pids, COUNT);
    gp_proc_watch(s.reader, watched, 1, true);
    for (int tick = 0; tick < TICKS; tick++) {
        const struct gp_proc_infos *all = gp_proc_read(s.reader, GP_PROC_STAT, pids, COUNT);
        unsigned read = 0;
        for (size_t i = 0; i < COUNT; i++) {
            fresh[i] += !all->infos[i].is_old;
            read += !all->infos[i].is_old;
        }
        assert_in_range(read, COUNT / TICKS, COUNT / TICKS + 2);
    }
    assert_int_equal(fresh[0], TICKS);
    for (size_t i = 1; i < COUNT; i++)
        assert_int_equal(fresh[i], 1);
    /* few are all read */
    const struct gp_proc_infos *few = gp_proc_read(s.reader, GP_PROC_STAT, pids, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_false(few->infos[i].is_old);
    free_subject(&s);
}

/* A child of this process that does nothing. */
static uint32_t new_idle_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    assert_true(pid > 0);
    return (uint32_t)pid;
}

/* Real ones, for as long as they live: what is kept open of one that has ended is not taken for
 * another one. */
static void files_are_kept_open(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    uint32_t pids[COUNT];
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    assert_non_null(reader);
    for (size_t i = 0; i < COUNT; i++)
        pids[i] = new_idle_child();
    size_t before = open_file_count();
    const struct gp_proc_infos *infos = gp_proc_read(reader, GP_PROC_STAT, pids, COUNT);
    uint64_t start = infos->infos[0].start_ticks;
    assert_int_equal(open_file_count(), before); /* a single look keeps nothing */
    for (int tick = 0; tick < 3; tick++) {
        infos = gp_proc_read(reader, GP_PROC_STAT, pids, COUNT);
        assert_int_equal(infos->infos[0].start_ticks, start);
        assert_true(infos->infos[2].exists);
        assert_int_equal(open_file_count(), before + COUNT);
    }
    (void)kill((pid_t)pids[2], SIGKILL);
    assert_int_equal(waitpid((pid_t)pids[2], NULL, 0), (pid_t)pids[2]);
    infos = gp_proc_read(reader, GP_PROC_STAT, pids, COUNT);
    assert_false(infos->infos[2].exists);
    assert_true(infos->infos[1].exists);
    assert_int_equal(open_file_count(), before + COUNT - 1);
    /* those that nobody asks for any more are let go */
    infos = gp_proc_read(reader, GP_PROC_STAT, pids, 1);
    assert_int_equal(infos->count, 1);
    assert_int_equal(open_file_count(), before + 1);
    gp_proc_watch(reader, pids, 0, false);
    (void)gp_proc_read(reader, GP_PROC_STAT, pids, 1);
    gp_proc_reader_free(reader);
    assert_int_equal(open_file_count(), before - 1); /* that of /proc */
    for (size_t i = 0; i < COUNT - 1; i++) {
        (void)kill((pid_t)pids[i], SIGKILL);
        (void)waitpid((pid_t)pids[i], NULL, 0);
    }
}

/* Seconds, rounded, since the numbers of a process were read; the clock is at `at_s`. */
static uint64_t age_s(struct gp_proc_reader *reader, const uint32_t *pids, size_t i, uint64_t at_s)
{
    ahead_ns = at_s * GP_NS_PER_S;
    const struct gp_proc_infos *all = gp_proc_read(reader, GP_PROC_STAT, pids, 2);
    const struct gp_proc_info *info = gp_proc_find(all, pids[i]);
    assert_true(info && info->exists && !info->is_old);
    const uint64_t now_ns = __wrap_gp_clock_mono_ns();
    return (now_ns - info->as_of_ns + GP_NS_PER_S / 2) / GP_NS_PER_S;
}

/* One that sleeps, and has for a while. */
static void who_rests_is_read_less_often(void **state)
{
    (void)state;
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    assert_non_null(reader);
    uint32_t pids[] = {(uint32_t)getpid(), new_idle_child()};
    const pid_t child = (pid_t)pids[1];
    if (pids[0] > pids[1])
        qsort(pids, 2, sizeof(*pids), gp_compare_u32);
    const size_t idle = pids[1] == (uint32_t)child;
    gp_proc_watch(reader, pids, 2, false);
    while (gp_proc_read(reader, GP_PROC_STAT, pids, 2)->infos[idle].state != 'S')
        (void)sched_yield();
    for (uint64_t at_s = 1; at_s < 10; at_s++)
        assert_int_equal(age_s(reader, pids, idle, at_s), 0);
    assert_int_equal(age_s(reader, pids, idle, 20), 0);
    assert_int_equal(age_s(reader, pids, idle, 21), 1);
    assert_int_equal(age_s(reader, pids, !idle, 22), 0); /* this one works */
    assert_int_equal(age_s(reader, pids, idle, 22), 2);
    assert_int_equal(age_s(reader, pids, idle, 23), 0);
    /* after a minute in every fifth second */
    assert_int_equal(age_s(reader, pids, idle, 70), 0);
    assert_int_equal(age_s(reader, pids, idle, 74), 4);
    assert_int_equal(age_s(reader, pids, idle, 75), 0);
    /* one that is stopped may go on at any time, and a user waits for that */
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_int_equal(age_s(reader, pids, idle, 80), 0);
    assert_int_equal(age_s(reader, pids, idle, 81), 0);
    gp_proc_reader_free(reader);
    ahead_ns = 0;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* ---- where they come from ---- */

enum { FAMILY = GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND | GP_PROC_ANCESTORS };

/* The ancestors of these processes as text: "1 10:1 …", pid:ppid. */
static const char *family_of(struct subject *s, const uint32_t *pids, size_t count)
{
    static char text[1024];
    const struct gp_proc_infos *family = gp_proc_read(s->reader, FAMILY, pids, count);
    assert_non_null(family);
    text[0] = '\0';
    for (size_t i = 0; i < family->count; i++) {
        const struct gp_proc_info *info = &family->infos[i];
        size_t n = strlen(text);
        assert_true(info->exists);
        if (info->is_ancestor)
            (void)snprintf(text + n, sizeof(text) - n, "%s%u:%u", n > 0 ? " " : "", info->pid,
                           info->ppid);
    }
    return text;
}

static void parents_of_parents_up_to_the_first_process(void **state)
{
    (void)state;
    struct subject s = new_subject();
    write_child(1, 0, 1, "/sbin/init");
    write_child(900, 1, 5, "sshd");
    write_child(30, 900, 6, "bash");
    write_child(40, 30, 7, "python");
    write_child(50, 40, 8, "python worker");
    write_child(60, 1, 9, "daemon");
    write_child(70, 60, 9, "daemon");
    const uint32_t pids[] = {40, 50, 70};
    /* what is listed itself is no ancestor, and who has two children comes in once */
    assert_string_equal(family_of(&s, pids, 3), "1:0 30:900 60:1 900:1");
    assert_string_equal(family_of(&s, pids + 1, 1), "1:0 30:900 40:30 900:1");
    const uint32_t first[] = {1};
    assert_string_equal(family_of(&s, first, 1), "");
    assert_string_equal(family_of(&s, NULL, 0), "");
    free_subject(&s);
}

static void families_that_cannot_be(void **state)
{
    (void)state;
    struct subject s = new_subject();
    const uint32_t orphan[] = {100};
    write_child(100, 99, 5, "its parent has ended");
    assert_string_equal(family_of(&s, orphan, 1), "");
    write_pid(99, "stat", "99 (x", 5);
    assert_string_equal(family_of(&s, orphan, 1), "");
    /* the parent's pid was given to somebody else */
    write_child(99, 1, 6, "younger than its child");
    assert_string_equal(family_of(&s, orphan, 1), "");
    write_child(99, 1, 5, "as old as its child");
    assert_string_equal(family_of(&s, orphan, 1), "99:1");
    /* loops end: each other's parent, its own, and back to one that is listed */
    write_child(200, 201, 5, "a");
    write_child(201, 202, 5, "b");
    write_child(202, 201, 5, "c");
    write_child(300, 300, 5, "d");
    write_child(400, 401, 5, "e");
    write_child(401, 400, 5, "f");
    const uint32_t loops[] = {200, 300, 400};
    assert_string_equal(family_of(&s, loops, 3), "201:202 202:201 401:400");
    free_subject(&s);
}

static void a_family_without_end_is_cut(void **state)
{
    (void)state;
    struct subject s = new_subject();
    for (unsigned pid = 5000; pid < 5000 + GP_PROC_ANCESTORS_MAX + 100; pid++)
        write_child(pid, pid + 1, 5, "x");
    const struct gp_proc_infos *family = gp_proc_read(s.reader, FAMILY, &(uint32_t){5000}, 1);
    assert_non_null(family);
    assert_int_equal(family->count, 1 + GP_PROC_ANCESTORS_MAX);
    for (size_t i = 0; i < family->count; i++)
        assert_int_equal(family->infos[i].pid, 5000 + i);
    free_subject(&s);
}

/* They are read as all others are: CPU time since the last look, command lines only now and then,
 * and those that nobody watches too. */
static void ancestors_are_remembered(void **state)
{
    (void)state;
    struct subject s = new_subject();
    static const uint32_t watched[] = {1000};
    unsigned long hz = (unsigned long)sysconf(_SC_CLK_TCK);
    write_child(1000, 70, 900, "job");
    for (unsigned long tick = 0; tick < 4; tick++) {
        ahead_ns = tick * GP_NS_PER_S;
        write_stat(70, "shell", 100 + tick * hz / 2, 500, 8);
        write_pid(70, "cmdline", tick < 2 ? "first" : "other", 6);
        gp_proc_watch(s.reader, tick == 3 ? watched : NULL, 1, false);
        const struct gp_proc_infos *family = gp_proc_read(s.reader, FAMILY, &(uint32_t){1000}, 1);
        assert_int_equal(family->count, 2);
        const struct gp_proc_info *shell = &family->infos[0];
        assert_string_equal(shell->texts->command, "first");
        assert_int_equal(shell->is_old, tick == 3);
        assert_true(shell->is_ancestor);
        assert_false(family->infos[1].is_old);
        if (tick > 0)
            assert_true(shell->cpu_pct > 30 && shell->cpu_pct < 51);
    }
    ahead_ns = 0;
    free_subject(&s);
}

static void ancestors_without_memory(void **state)
{
    (void)state;
    write_child(10, 1, 5, "shell");
    write_child(20, 10, 6, "job");
    write_child(1, 0, 1, "init");
    const uint32_t pid = 20;
    for (long n = 1; n < 40; n++) {
        struct subject s = new_subject();
        alloc_fail_from(n);
        const struct gp_proc_infos *family = gp_proc_read(s.reader, FAMILY, &pid, 1);
        alloc_fail_from(-1);
        assert_int_equal(family->count, 3);
        assert_int_equal(gp_proc_find(family, 20)->ppid, 10);
        assert_int_equal(gp_proc_read(s.reader, FAMILY, &pid, 1)->count, 3);
        free_subject(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_seldom_changes_is_kept),
        TEST(an_environment_is_read_once),
        TEST(who_holds_texts_has_them_for_longer),
        TEST(only_what_is_watched_is_read_at_every_tick),
        TEST(who_is_not_watched_has_its_turn),
        TEST(files_are_kept_open),
        TEST(who_rests_is_read_less_often),
        TEST(names_come_from_the_arguments),
        TEST(kernel_threads_and_zombies_have_only_a_short_name),
        TEST(hostile_names_are_made_safe),
        TEST(endless_names_are_cut),
        TEST(names_with_brackets_and_blanks_do_not_shift_the_numbers),
        TEST(what_the_line_stat_says),
        TEST(where_it_runs),
        TEST(broken_files_give_no_numbers),
        TEST(a_process_that_is_gone),
        TEST(nothing_is_read_that_is_not_wanted),
        TEST(users_by_name_or_number),
        TEST(owners_of_private_texts),
        TEST(below_a_root_status_says_whose_it_is),
        TEST(an_undumpable_process_is_its_users_but_its_texts_are_roots),
        TEST(many_users),
        TEST(the_host),
        TEST(of_the_host_only_what_is_wanted_is_read),
        TEST(thousands_of_cpus_are_counted),
        TEST(values_of_the_host_are_kept),
        TEST(a_host_whose_counters_ran_backwards),
        TEST(without_memory_the_processes_are_still_there),
        TEST(this_process),
        TEST(parents_of_parents_up_to_the_first_process),
        TEST(families_that_cannot_be),
        TEST(a_family_without_end_is_cut),
        TEST(ancestors_are_remembered),
        TEST(ancestors_without_memory),
    };
    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
