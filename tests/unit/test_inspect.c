#include "unit.h"

#include "proc/inspect.h"
#include "proc_tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PID = 4711 };

#define BYTES(text) text, sizeof(text) - 1

static void write_link(const char *name, const char *target)
{
    char path[512];
    write_text(name, ""); /* makes the folders */
    (void)snprintf(path, sizeof(path), "%s%s", tree_root, name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
}

static void write_fd(unsigned fd, const char *target)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "/proc/%d/fd/%u", PID, fd);
    write_link(name, target);
}

static struct gp_inspect *inspect(void)
{
    struct gp_inspect *in = gp_proc_inspect(tree_root, PID);
    assert_non_null(in);
    assert_int_equal(in->pid, PID);
    return in;
}

static void check_number(const struct gp_inspect_number *number, uint64_t value)
{
    assert_int_equal(number->error, 0);
    assert_int_equal(number->value, value);
}

static void check_text(const struct gp_inspect_text *text, const char *expected)
{
    assert_int_equal(text->error, 0);
    assert_string_equal(text->text, expected);
}

/* expected: NULL behind the last one */
static void check_list(const struct gp_inspect_list *list, const char *const *expected)
{
    assert_int_equal(list->error, 0);
    size_t count = 0;
    for (; expected[count]; count++) {
        assert_true(count < list->count);
        assert_string_equal(list->items[count], expected[count]);
    }
    assert_int_equal(list->count, count);
    assert_false(list->is_cut);
}

static void write_whole_process(void)
{
    write_text("/proc/4711/stat",
               "4711 (python) S 40 4711 4711 0 -1 4194560 1 2 3 4 250 50 5 6 20 -5 33 0 1000 "
               "99 3 18446744073709551615 1 1 0 0\n");
    write_text("/proc/4711/status",
               "Name:\tpython\nState:\tS (sleeping)\nNSpid:\t4711\t17\t5\nVmSize:\t 4096 kB\n"
               "VmLck:\t  64 kB\nVmRSS:\t 2048 kB\nRssShmem:\t 512 kB\nVmSwap:\t 128 kB\n"
               "Cpus_allowed:\tf0,00000003\nCpus_allowed_list:\t0-1,36-39\n"
               "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n");
    write_text("/proc/4711/io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 8192\n"
                                "write_bytes: 4096\ncancelled_write_bytes: 1\n");
    write_text("/proc/4711/oom_score", "667\n");
    write_text("/proc/4711/comm", "pt_main_thread\n");
    write_text("/proc/4711/cgroup", "0::/system.slice/slurmstepd.scope/job_4/step_0\n");
    write_pid(PID, "cmdline", BYTES("python\0train.py\0\0--lr\0001\0"));
    write_pid(PID, "environ", BYTES("PATH=/bin\0CUDA_VISIBLE_DEVICES=0,1\0EMPTY=\0"));
    write_link("/proc/4711/exe", "/usr/bin/python3.11 (deleted)");
    write_link("/proc/4711/cwd", "/home/alice/\033[2J");
    write_child(40, 30, 900, "bash");
    write_child(30, 1, 800, "slurmstepd: [4.0]");
    write_child(1, 0, 1, "/sbin/init");
}

static void all_that_is_told_of_a_process(void **state)
{
    (void)state;
    write_whole_process();
    struct gp_inspect *in = inspect();
    uint64_t tick_ns = GP_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    assert_int_equal(in->error, 0);
    assert_int_equal(in->stat_error, 0);
    assert_int_equal(in->state, 'S');
    assert_int_equal(in->ppid, 40);
    assert_int_equal(in->nice, -5);
    assert_int_equal(in->threads, 33);
    assert_int_equal(in->start_ticks, 1000);
    assert_int_equal(in->start_ns, UINT64_C(1700000000) * GP_NS_PER_S + 1000 * tick_ns);
    assert_int_equal(in->user_ns, 250 * tick_ns);
    assert_int_equal(in->system_ns, 50 * tick_ns);
    check_number(&in->virtual_bytes, 4096 * 1024);
    check_number(&in->resident_bytes, 2048 * 1024);
    check_number(&in->shared_bytes, 512 * 1024);
    check_number(&in->locked_bytes, 64 * 1024);
    check_number(&in->swapped_bytes, 128 * 1024);
    check_number(&in->voluntary_switches, 150);
    check_number(&in->involuntary_switches, 7);
    check_number(&in->ns_pid, 5);
    check_number(&in->cpus, 6);
    check_number(&in->oom_score, 667);
    check_number(&in->read_bytes, 8192);
    check_number(&in->written_bytes, 4096);
    check_text(&in->name, "pt_main_thread");
    check_text(&in->program, "/usr/bin/python3.11 (deleted)");
    check_text(&in->directory, "/home/alice/\\x1b[2J");
    check_text(&in->container, "slurm:4.0");
    check_text(&in->cgroup, "/system.slice/slurmstepd.scope/job_4/step_0");
    const char *const arguments[] = {"python", "train.py", "", "--lr", "1", NULL};
    check_list(&in->arguments, arguments);
    const char *const environment[] = {"PATH=/bin", "CUDA_VISIBLE_DEVICES=0,1", "EMPTY=", NULL};
    check_list(&in->environment, environment);
    assert_int_equal(in->ancestor_count, 3);
    assert_int_equal(in->ancestors[0].pid, 40);
    assert_string_equal(in->ancestors[0].command, "bash");
    assert_string_equal(in->ancestors[1].command, "slurmstepd: [4.0]");
    assert_int_equal(in->ancestors[2].pid, 1);
    gp_inspect_free(in);
    gp_inspect_free(NULL);
}

/* A part that is missing takes no other one with it. */
static void parts_that_are_missing(void **state)
{
    (void)state;
    write_text("/proc/4711/stat", "4711 (kworker/0:1) I 2 0 0 0 -1 0 0 0 0 0 0 9 0 0 20 0 1 0 "
                                  "55 0 0 0\n");
    write_text("/proc/4711/status", "Name:\tkworker\nState:\tI (idle)\nCpus_allowed:\t\n"
                                    "NSpid:\nvoluntary_ctxt_switches:\t1\n");
    write_text("/proc/4711/cgroup", "0::/\n");
    write_text("/proc/4711/oom_score", "x\n");
    write_pid(PID, "cmdline", "", 0);
    struct gp_inspect *in = inspect();
    assert_int_equal(in->error, 0);
    assert_int_equal(in->state, 'I');
    const struct gp_inspect_number *const none[] = {
        &in->virtual_bytes, &in->resident_bytes,       &in->shared_bytes, &in->locked_bytes,
        &in->swapped_bytes, &in->involuntary_switches, &in->ns_pid,       &in->cpus,
        &in->oom_score,     &in->read_bytes,           &in->written_bytes};
    for (size_t i = 0; i < GP_ARRAY_LEN(none); i++) {
        assert_int_equal(none[i]->error, ENODATA);
        assert_int_equal(none[i]->value, 0);
    }
    check_number(&in->voluntary_switches, 1);
    assert_int_equal(in->program.error, ENODATA);
    assert_null(in->program.text);
    assert_int_equal(in->directory.error, ENODATA);
    assert_int_equal(in->name.error, ENODATA);
    check_text(&in->cgroup, "/");
    assert_int_equal(in->container.error, ENODATA);
    assert_int_equal(in->arguments.error, 0);
    assert_int_equal(in->arguments.count, 0);
    assert_int_equal(in->environment.error, ENODATA);
    assert_int_equal(in->devices.error, ENODATA);
    assert_int_equal(in->ancestor_count, 0);
    gp_inspect_free(in);
}

static void check_all_parts(const struct gp_inspect *in, int error)
{
    const int errors[] = {in->stat_error,         in->virtual_bytes.error, in->ns_pid.error,
                          in->cpus.error,         in->read_bytes.error,    in->oom_score.error,
                          in->name.error,         in->program.error,       in->directory.error,
                          in->container.error,    in->cgroup.error,        in->arguments.error,
                          in->environment.error,  in->devices.error,       in->written_bytes.error,
                          in->swapped_bytes.error};
    for (size_t i = 0; i < GP_ARRAY_LEN(errors); i++)
        assert_int_equal(errors[i], error);
    assert_int_equal(in->ancestor_count, 0);
}

static void a_process_that_is_gone(void **state)
{
    (void)state;
    struct gp_inspect *in = inspect();
    assert_int_equal(in->error, ESRCH);
    check_all_parts(in, ESRCH);
    gp_inspect_free(in);
    /* it ends when its folder has just been opened */
    write_pid(PID, "other", "", 0);
    in = inspect();
    assert_int_equal(in->error, 0);
    check_all_parts(in, ESRCH);
    gp_inspect_free(in);
    /* there is no /proc at all */
    in = gp_proc_inspect("/nonexistent", PID);
    assert_int_equal(in->error, ENOENT);
    check_all_parts(in, ENOENT);
    gp_inspect_free(in);
}

static void devices_that_are_open(void **state)
{
    (void)state;
    write_whole_process();
    write_fd(0, "/dev/null");
    write_fd(1, "pipe:[4711]");
    write_fd(7, "/dev/nvidia10");
    write_fd(9, "/dev/nvidia2");
    write_fd(30, "/dev/nvidiactl");
    write_fd(12, "/dev/nvidia2");
    write_fd(8, "/dev/nvidia2");
    write_fd(13, "/dev/nvidia-uvm");
    write_fd(14, "/dev/nvidia-caps/nvidia-cap2");
    write_fd(15, "/dev/dri/renderD128");
    write_fd(16, "/dev/kfd");
    write_fd(17, "/home/dev/nvidia0");
    write_fd(18, "/dev/nvidia\033");
    write_text("/proc/4711/fd/no-number", "");
    struct gp_inspect *in = inspect();
    const struct gp_inspect_devices *d = &in->devices;
    static const struct gp_inspect_device expected[] = {{"/dev/dri/renderD128", 15, 1},
                                                        {"/dev/kfd", 16, 1},
                                                        {"/dev/nvidia-caps/nvidia-cap2", 14, 1},
                                                        {"/dev/nvidia-uvm", 13, 1},
                                                        {"/dev/nvidia2", 8, 3},
                                                        {"/dev/nvidia10", 7, 1},
                                                        {"/dev/nvidia\\x1b", 18, 1},
                                                        {"/dev/nvidiactl", 30, 1}};
    assert_int_equal(d->error, 0);
    assert_int_equal(d->open_files, 13);
    assert_false(d->is_cut);
    assert_int_equal(d->count, GP_ARRAY_LEN(expected));
    for (size_t i = 0; i < d->count; i++) {
        assert_string_equal(d->items[i].path, expected[i].path);
        assert_int_equal(d->items[i].first_fd, expected[i].first_fd);
        assert_int_equal(d->items[i].opens, expected[i].opens);
    }
    gp_inspect_free(in);
}

static void more_devices_than_there_is_room_for(void **state)
{
    (void)state;
    write_whole_process();
    for (unsigned i = 0; i < GP_INSPECT_DEVICES + 3; i++) {
        char target[64];
        (void)snprintf(target, sizeof(target), "/dev/nvidia%u", i);
        write_fd(i, target);
    }
    struct gp_inspect *in = inspect();
    assert_int_equal(in->devices.error, 0);
    assert_true(in->devices.is_cut);
    assert_int_equal(in->devices.count, GP_INSPECT_DEVICES);
    gp_inspect_free(in);
}

static void hostile_and_endless_environments(void **state)
{
    (void)state;
    write_whole_process();
    /* what is left of one over which a title was written: nothing between NULs is nothing */
    write_pid(PID, "environ", BYTES("\0\0A=\033]0;x\007\0\0\xff\xfe=b\nc\0\0\0"));
    struct gp_inspect *in = inspect();
    const char *const safe[] = {"A=\\x1b]0;x\\x07", "\uFFFD\uFFFD=b\\nc", NULL};
    check_list(&in->environment, safe);
    gp_inspect_free(in);

    enum { SIZE = GP_INSPECT_LIST_BYTES + 4096 };
    static char endless[SIZE];
    memset(endless, '\001', SIZE);
    endless[5] = '\0';
    write_pid(PID, "environ", endless, SIZE);
    write_pid(PID, "cmdline", endless, SIZE);
    in = inspect();
    assert_int_equal(in->environment.error, 0);
    assert_true(in->environment.is_cut);
    assert_int_equal(in->environment.count, 2);
    assert_string_equal(in->environment.items[0], "\\x01\\x01\\x01\\x01\\x01");
    assert_int_equal(strlen(in->environment.items[1]), 4 * (GP_INSPECT_LIST_BYTES - 6));
    assert_int_equal(in->arguments.count, 2);
    gp_inspect_free(in);

    /* as many as there can be */
    for (size_t i = 0; i < SIZE; i++)
        endless[i] = i % 2 ? '\0' : 'x';
    write_pid(PID, "environ", endless, SIZE);
    in = inspect();
    assert_int_equal(in->environment.count, GP_INSPECT_LIST_BYTES / 2);
    assert_string_equal(in->environment.items[in->environment.count - 1], "x");
    gp_inspect_free(in);
}

static void ancestors_that_cannot_be(void **state)
{
    (void)state;
    write_whole_process();
    write_child(30, 40, 800, "a loop");
    struct gp_inspect *in = inspect();
    assert_int_equal(in->ancestor_count, 2);
    gp_inspect_free(in);
    write_child(30, PID, 800, "a loop over itself");
    in = inspect();
    assert_int_equal(in->ancestor_count, 2);
    gp_inspect_free(in);
    write_child(30, 1, 901, "younger than its child");
    in = inspect();
    assert_int_equal(in->ancestor_count, 1);
    gp_inspect_free(in);
    for (unsigned pid = 40; pid < 200; pid++)
        write_child(pid, pid + 1, 1, "x");
    in = inspect();
    assert_int_equal(in->ancestor_count, GP_INSPECT_ANCESTORS);
    assert_int_equal(in->ancestors[GP_INSPECT_ANCESTORS - 1].pid, 40 + GP_INSPECT_ANCESTORS - 1);
    gp_inspect_free(in);
}

/* Each byte is shown as four characters. */
static void a_path_of_bytes_that_are_no_text(void **state)
{
    (void)state;
    char path[3001];
    char old[256];
    memset(path, '\x01', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    write_whole_process();
    (void)snprintf(old, sizeof(old), "%s/proc/4711/exe", tree_root);
    assert_int_equal(unlink(old), 0);
    write_link("/proc/4711/exe", path);
    struct gp_inspect *in = inspect();
    assert_non_null(in->program.text);
    assert_memory_equal(in->program.text, "/\\x01\\x01", 9);
    assert_in_range(strlen(in->program.text), 4000, 4096);
    gp_inspect_free(in);
}

/* A program that was started without the standard files. */
static void the_first_descriptor_is_one_like_any_other(void **state)
{
    (void)state;
    write_whole_process();
    int input = dup(STDIN_FILENO);
    (void)close(STDIN_FILENO);
    struct gp_inspect *in = inspect();
    if (input >= 0) {
        (void)dup2(input, STDIN_FILENO);
        (void)close(input);
    }
    assert_int_equal(in->error, 0);
    assert_int_equal(in->state, 'S');
    gp_inspect_free(in);
}

static void without_memory(void **state)
{
    (void)state;
    write_whole_process();
    write_fd(3, "/dev/nvidia0");
    bool whole = false;
    for (long n = 0; n < 200 && !whole; n++) {
        alloc_fail_at(n);
        struct gp_inspect *in = gp_proc_inspect(tree_root, PID);
        whole = alloc_count() <= n;
        alloc_fail_from(-1);
        if (!in)
            continue;
        /* each part is there, or says why not */
        assert_int_equal(in->threads, 33);
        assert_int_equal(in->name.error, in->name.text ? 0 : ENOMEM);
        assert_int_equal(in->program.error, in->program.text ? 0 : ENOMEM);
        assert_int_equal(in->container.error, in->container.text ? 0 : ENOMEM);
        assert_int_equal(in->environment.error, in->environment.count == 3 ? 0 : ENOMEM);
        assert_int_equal(in->arguments.error, in->arguments.count == 5 ? 0 : ENOMEM);
        assert_int_equal(in->devices.error, in->devices.count == 1 ? 0 : ENOMEM);
        gp_inspect_free(in);
    }
    assert_true(whole);
}

/* ---- real processes ---- */

/* Starts a program with an environment of its own, which ends with this process at the latest. */
static pid_t start_program(void)
{
    static const char *const environment[] = {"KEY=value", "CUDA_VISIBLE_DEVICES=0,1", "X=\033[2J",
                                              NULL};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    cpu_set_t one;
    CPU_ZERO(&one);
    (void)sched_getaffinity(0, sizeof(one), &one);
    for (int cpu = 0; CPU_COUNT(&one) > 1; cpu++)
        CPU_CLR(cpu, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
    (void)setpriority(PRIO_PROCESS, 0, 7);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir("/") == 0)
        (void)execle("/bin/sleep", "sleep", "600", (char *)NULL, environment);
    _exit(127);
}

/* Looks at it when it has come as far as to sleep. */
static struct gp_inspect *inspect_sleeper(pid_t pid)
{
    for (int i = 0; i < 120000; i++) {
        struct gp_inspect *in = gp_proc_inspect(NULL, (uint32_t)pid);
        assert_non_null(in);
        if (in->state == 'S' && in->arguments.count == 2)
            return in;
        gp_inspect_free(in);
        (void)usleep(5000);
    }
    fail_msg("the program does not start");
    return NULL;
}

static void a_real_process(void **state)
{
    (void)state;
    pid_t pid = start_program();
    struct gp_inspect *in = inspect_sleeper(pid);
    const char *const environment[] = {"KEY=value", "CUDA_VISIBLE_DEVICES=0,1", "X=\\x1b[2J", NULL};
    const char *const arguments[] = {"sleep", "600", NULL};
    check_list(&in->environment, environment);
    check_list(&in->arguments, arguments);
    check_text(&in->directory, "/");
    assert_int_equal(in->program.error, 0);
    assert_int_equal(in->program.text[0], '/');
    check_text(&in->name, "sleep");
    assert_int_equal(in->ppid, getpid());
    assert_int_equal(in->nice, 7);
    assert_int_equal(in->threads, 1);
    assert_int_equal(in->ns_pid.error, 0);
    check_number(&in->cpus, 1);
    assert_int_equal(in->resident_bytes.error, 0);
    assert_true(in->virtual_bytes.value > 100000);
    assert_true(in->virtual_bytes.value >= in->resident_bytes.value);
    assert_int_equal(in->oom_score.error, 0);
    assert_int_equal(in->devices.error, 0);
    assert_true(in->devices.open_files >= 3);
    assert_int_equal(in->cgroup.error, 0);
    assert_true(in->ancestor_count >= 1);
    assert_int_equal(in->ancestors[0].pid, getpid());
    assert_non_null(strstr(in->ancestors[0].command, "test_inspect"));
    gp_inspect_free(in);
    (void)kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);

    /* it has ended, but is not collected: a zombie has nothing left to tell */
    in = gp_proc_inspect(NULL, (uint32_t)pid);
    assert_int_equal(in->state, 'Z');
    assert_int_equal(in->arguments.count, 0);
    assert_int_equal(in->environment.count, 0);
    assert_int_equal(in->resident_bytes.error, ENODATA);
    assert_true(in->program.error == ENODATA || in->program.error == EACCES);
    gp_inspect_free(in);
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    in = gp_proc_inspect(NULL, (uint32_t)pid);
    assert_int_equal(in->error, ESRCH);
    check_all_parts(in, ESRCH);
    gp_inspect_free(in);
}

static void this_process(void **state)
{
    (void)state;
    struct gp_inspect *in = gp_proc_inspect(NULL, (uint32_t)getpid());
    assert_int_equal(in->state, 'R');
    assert_non_null(strstr(in->program.text, "test_inspect"));
    assert_true(in->start_ns > UINT64_C(1700000000) * GP_NS_PER_S);
    assert_true(in->user_ns + in->system_ns < 600 * GP_NS_PER_S);
    gp_inspect_free(in);
}

/* What another user may see: 0 if it is as it should be. */
static int look_as_another_user(pid_t pid)
{
    int wrong = 0;
    struct gp_inspect *in = gp_proc_inspect(NULL, (uint32_t)pid);
    if (!in)
        return 1;
    const int refused[] = {in->environment.error, in->program.error, in->directory.error,
                           in->devices.error, in->read_bytes.error};
    for (size_t i = 0; i < GP_ARRAY_LEN(refused); i++)
        wrong += refused[i] != EACCES;
    const int allowed[] = {in->stat_error,   in->resident_bytes.error, in->arguments.error,
                           in->cgroup.error, in->name.error,           in->cpus.error};
    for (size_t i = 0; i < GP_ARRAY_LEN(allowed); i++)
        wrong += allowed[i] != 0;
    wrong += in->environment.count > 0 || in->devices.count > 0 || in->program.text;
    gp_inspect_free(in);
    return wrong;
}

static void what_is_not_permitted_is_not_gone(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can become somebody else");
    pid_t pid = start_program();
    gp_inspect_free(inspect_sleeper(pid));
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0)
        _exit(setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0
                  ? 99
                  : look_as_another_user(pid));
    int status = 0;
    assert_int_equal(waitpid(other, &status, 0), other);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 99)
        skip_because("cannot become somebody else here");
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_that_is_told_of_a_process),
        TEST(parts_that_are_missing),
        TEST(a_process_that_is_gone),
        TEST(devices_that_are_open),
        TEST(more_devices_than_there_is_room_for),
        TEST(hostile_and_endless_environments),
        TEST(ancestors_that_cannot_be),
        TEST(a_path_of_bytes_that_are_no_text),
        TEST(the_first_descriptor_is_one_like_any_other),
        TEST(without_memory),
        cmocka_unit_test(a_real_process),
        cmocka_unit_test(this_process),
        cmocka_unit_test(what_is_not_permitted_is_not_gone),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
