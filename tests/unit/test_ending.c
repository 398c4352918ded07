/* With real processes: the children of this test. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "proc/ending.h"
#include "proc/files.h"
#include "proc/signal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 150, LONG_S = 600 };

/* What children tell: how many of them are ready, and the pids of theirs. */
struct shared {
    atomic_int ready;
    atomic_int pids[8];
};

static struct shared *shared;

static void ignore(int signal)
{
    (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static _Noreturn void rest(void)
{
    atomic_fetch_add(&shared->ready, 1);
    for (;;)
        (void)pause();
}

/* Starts a process, which ends with this test at the latest. */
static pid_t start_child(void (*run)(void))
{
    int before = atomic_load(&shared->ready);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    assert_true(pid > 0);
    for (int i = 0; i < LONG_S * 1000 && atomic_load(&shared->ready) == before; i++)
        (void)usleep(1000);
    assert_true(atomic_load(&shared->ready) > before);
    return pid;
}

static bool read_stat(const char *pid, struct gp_proc_stat *ret)
{
    char path[300];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    return gp_io_read(path, text, sizeof(text)) > 0 && gp_proc_parse_stat(text, ret);
}

/* One that is ready is about to rest. */
static void wait_sleeps(pid_t pid)
{
    char name[16];
    struct gp_proc_stat stat = {.state = 'R'};
    (void)snprintf(name, sizeof(name), "%d", (int)pid);
    for (int i = 0; i < LONG_S * 1000 && read_stat(name, &stat) && stat.state != 'S'; i++)
        (void)usleep(1000);
    assert_int_equal(stat.state, 'S');
}

/* By which signal it has ended. */
static int ended_by(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void hold(struct gp_ending *ending, pid_t pid)
{
    struct gp_err err = {0};
    if (gp_ending_add(ending, pid, gp_clock_wall_ns(), false, &err) < 0)
        fail_msg("%s", err.text);
}

static const int all_signals[] = {SIGINT, SIGTERM, SIGKILL};

static struct gp_ending_plan plan_of(bool tree)
{
    return (struct gp_ending_plan){.signals = all_signals,
                                   .signal_count = GP_ARRAY_LEN(all_signals),
                                   .grace_ns = (uint64_t)GRACE_MS * GP_NS_PER_MS,
                                   .tree = tree};
}

/* ---- who heeds what ---- */

static void heeds_all(void)
{
    rest();
}

static void heeds_term(void)
{
    ignore(SIGINT);
    rest();
}

static void heeds_nothing(void)
{
    ignore(SIGINT);
    ignore(SIGTERM);
    rest();
}

/* A busy machine shall not make a mild signal a late one: the one that helps gets all the time. */
struct patience {
    struct gp_ending_plan *plan;
    int helps;
};

static void be_patient(void *ctx, int signal, size_t left)
{
    struct patience *patience = ctx;
    assert_int_equal(left, signal == SIGINT ? 3 : 2); /* one is dead from the beginning */
    if (signal == patience->helps)
        patience->plan->grace_ns = LONG_S * GP_NS_PER_S;
}

/* Nobody takes notice of its end. */
static void kill_and_leave(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void the_mildest_signal_that_helps(void **state)
{
    (void)state;
    static const struct {
        void (*run)(void);
        int signal;
    } cases[] = {{heeds_all, SIGINT}, {heeds_term, SIGTERM}, {heeds_nothing, SIGKILL}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ending ending = {NULL, 0};
        struct gp_ending_plan plan = plan_of(false);
        pid_t pids[3] = {start_child(heeds_all)};
        plan.on_signal = be_patient;
        plan.ctx = &(struct patience){&plan, cases[i].signal};
        hold(&ending, pids[0]);
        kill_and_leave(pids[0]);
        for (size_t k = 1; k < GP_ARRAY_LEN(pids); k++) {
            pids[k] = start_child(cases[i].run);
            hold(&ending, pids[k]);
            hold(&ending, pids[k]); /* the same one */
        }
        assert_int_equal(ending.count, GP_ARRAY_LEN(pids));
        assert_true(gp_ending_run(&ending, &plan));
        for (size_t k = 0; k < GP_ARRAY_LEN(pids); k++) {
            assert_true(ending.processes[k].ended);
            assert_int_equal(ending.processes[k].signal, k == 0 ? SIGINT : cases[i].signal);
            assert_true(k == 0 || ending.processes[k].after_ns >= i * GRACE_MS * GP_NS_PER_MS);
            assert_int_equal(ended_by(pids[k]), k == 0 ? SIGKILL : cases[i].signal);
        }
        gp_ending_fini(&ending);
    }
}

/* As long as nobody has taken notice of its end, it can be held. */
static void one_that_has_ended_is_not_added_again(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(false);
    plan.grace_ns = LONG_S * GP_NS_PER_S;
    pid_t pid = start_child(heeds_all);
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    hold(&ending, pid);
    assert_int_equal(ending.count, 1);
    assert_int_equal(ended_by(pid), SIGINT);
    gp_ending_fini(&ending);
}

static void without_memory_nothing_is_left_open(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_err err = {0};
    pid_t pid = start_child(heeds_all);
    size_t before = open_file_count();
    size_t failures = 0;
    bool whole = false;
    for (long n = 0; n < 20 && !whole; n++) {
        alloc_fail_at(n);
        int r = gp_ending_add(&ending, pid, gp_clock_wall_ns(), false, &err);
        whole = alloc_count() <= n;
        alloc_fail_from(-1);
        failures += r == GP_ENOMEM;
        assert_int_equal(ending.count, r < 0 ? 0 : 1);
        assert_int_equal(open_file_count(), before + ending.count);
        gp_ending_fini(&ending);
        assert_int_equal(open_file_count(), before);
    }
    assert_true(whole);
    assert_true(failures > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(ended_by(pid), SIGKILL);
}

static void count_signals(void *ctx, int signal, size_t left)
{
    int *seen = ctx;
    assert_int_equal(signal, all_signals[seen[0]]);
    seen[++seen[0]] = (int)left;
}

/* Nobody waits for the rest of the plan. */
static void it_is_over_when_all_have_ended(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(false);
    int seen[4] = {0};
    plan.on_signal = count_signals;
    plan.ctx = seen;
    plan.grace_ns = LONG_S * GP_NS_PER_S;
    pid_t pid = start_child(heeds_all);
    uint64_t before_ns = gp_clock_mono_ns();
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    assert_true(gp_clock_mono_ns() - before_ns < plan.grace_ns);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 1);
    assert_int_equal(ended_by(pid), SIGINT);
    gp_ending_fini(&ending);
}

static void one_that_does_not_end_is_told(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(false);
    plan.signal_count = 1;
    pid_t pid = start_child(heeds_nothing);
    wait_sleeps(pid);
    hold(&ending, pid);
    assert_false(gp_ending_run(&ending, &plan));
    assert_false(ending.processes[0].ended);
    assert_int_equal(ending.processes[0].state, 'S');
    assert_int_equal(ending.processes[0].signal, SIGINT);
    gp_ending_fini(&ending);
    (void)kill(pid, SIGKILL);
    assert_int_equal(ended_by(pid), SIGKILL);
}

static void one_that_stands_still_ends(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(false);
    plan.grace_ns = LONG_S * GP_NS_PER_S;
    pid_t pid = start_child(heeds_all);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    assert_int_equal(ended_by(pid), SIGINT);
    gp_ending_fini(&ending);
}

/* ---- trees ---- */

/* A parent, which leads a group, with two children, one of which has one too. */
static void begets(void)
{
    (void)setpgid(0, 0);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, 0);
            if (i == 1 && fork() == 0) {
                atomic_store(&shared->pids[2], getpid());
                rest();
            }
            atomic_store(&shared->pids[i], getpid());
            rest();
        }
    while (atomic_load(&shared->ready) < 3)
        (void)usleep(1000);
    rest();
}

/* Whether it runs, or one of the group that it leads does. Who has ended may wait for long until
 * its new parent takes notice. */
static bool is_alive(pid_t pid, bool group)
{
    bool alive = false;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (const struct dirent *entry; (entry = readdir(proc));) {
        struct gp_proc_stat stat;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_stat(entry->d_name, &stat))
            continue;
        bool is_meant = group ? stat.group == (uint32_t)pid : atoi(entry->d_name) == pid;
        alive = alive || (is_meant && stat.state != 'Z' && stat.state != 'X');
    }
    (void)closedir(proc);
    return alive;
}

static void wait_ready(int count)
{
    for (int i = 0; i < LONG_S * 1000 && atomic_load(&shared->ready) < count; i++)
        (void)usleep(1000);
    assert_int_equal(atomic_load(&shared->ready), count);
}

static void with_a_tree_all_of_it_ends(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(true);
    atomic_store(&shared->ready, 0);
    pid_t pid = start_child(begets);
    wait_ready(4);
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    assert_int_equal(ending.count, 4);
    assert_false(ending.processes[0].is_child);
    for (size_t i = 1; i < 4; i++)
        assert_true(ending.processes[i].is_child);
    (void)ended_by(pid);
    for (int i = 0; i < 3; i++)
        assert_false(is_alive(atomic_load(&shared->pids[i]), false));
    gp_ending_fini(&ending);
}

static void without_a_tree_only_the_one(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(false);
    atomic_store(&shared->ready, 0);
    pid_t pid = start_child(begets);
    wait_ready(4);
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    assert_int_equal(ending.count, 1);
    (void)ended_by(pid);
    for (int i = 0; i < 3; i++) {
        assert_true(is_alive(atomic_load(&shared->pids[i]), false));
        assert_int_equal(kill(atomic_load(&shared->pids[i]), SIGKILL), 0);
    }
    gp_ending_fini(&ending);
}

/* At every signal that it gets it leaves a new process behind and ends itself. */
static void on_signal_fork(int signal)
{
    (void)signal;
    if (fork() == 0)
        return; /* the child goes on as it did, and heeds the next signal alike */
    _exit(0);
}

static void forks_when_it_dies(void)
{
    (void)setpgid(0, 0);
    (void)sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal_fork}, NULL);
    (void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal_fork}, NULL);
    rest();
}

/* Before the second signal the first one has had its effect, however slow the machine is. */
static void await_first_end(void *ctx, int signal, size_t left)
{
    siginfo_t info;
    (void)left;
    if (signal == SIGTERM)
        assert_int_equal(waitid(P_PID, (id_t) * (pid_t *)ctx, &info, WEXITED | WNOWAIT), 0);
}

static void what_forks_while_it_ends_ends_too(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_ending_plan plan = plan_of(true);
    pid_t pid = start_child(forks_when_it_dies);
    plan.on_signal = await_first_end;
    plan.ctx = &pid;
    hold(&ending, pid);
    assert_true(gp_ending_run(&ending, &plan));
    assert_true(ending.count > 1);
    assert_int_equal(ended_by(pid), 0);
    assert_false(is_alive(pid, true));
    gp_ending_fini(&ending);
}

/* ---- who is left alone ---- */

static int lowest_free_descriptor(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    return fd;
}

static void some_are_left_alone(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_err err = {0};
    const struct {
        pid_t pid;
        const char *words;
    } cases[] = {
        {1, "process 1 cannot be signalled"},
        {getpid(), "cannot be signalled"},
        {getppid(), "is an ancestor of this gpulse"},
        {2, "is a kernel thread"},
        {4194303, "has exited"},
    };
    int next_fd = lowest_free_descriptor();
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char comm[32] = "";
        FILE *f = cases[i].pid == 2 ? fopen("/proc/2/comm", "re") : NULL;
        bool has_kernel = f && fgets(comm, sizeof(comm), f) && strcmp(comm, "kthreadd\n") == 0;
        if (f)
            (void)fclose(f);
        if (cases[i].pid == 2 && !has_kernel)
            continue; /* in a namespace it is another one */
        assert_true(gp_ending_add(&ending, cases[i].pid, gp_clock_wall_ns(), true, &err) < 0);
        if (!strstr(err.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].words);
    }
    assert_int_equal(ending.count, 0);
    assert_int_equal(lowest_free_descriptor(), next_fd);
    gp_ending_fini(&ending);
}

static void not_that_of_another_user(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_err err = {0};
    if (geteuid() != 0)
        skip_because("only root can become somebody else");
    pid_t pid = start_child(heeds_all);
    assert_int_equal(seteuid(65534), 0);
    int r = gp_ending_add(&ending, pid, gp_clock_wall_ns(), true, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(r, GP_EPERM);
    assert_non_null(strstr(err.text, "belongs to another user; only root can terminate it"));
    assert_int_equal(gp_ending_add(&ending, pid, gp_clock_wall_ns(), true, &err), 0);
    gp_ending_fini(&ending);
    (void)kill(pid, SIGKILL);
    (void)ended_by(pid);
}

static char screen[96];

static void is_the_screen(void)
{
    atomic_fetch_add(&shared->ready, 1);
    (void)execl(screen, screen, "600", (char *)NULL);
}

static void calls_itself_the_screen(void)
{
    (void)prctl(PR_SET_NAME, "Xorg");
    rest();
}

static bool runs(pid_t pid, const char *program)
{
    char path[64];
    char target[256];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return strcmp(target, program) == 0;
}

/* By the program, which must be root's, and not by what a process calls itself. */
static void a_screen_only_if_it_is_named(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_err err = {0};
    char folder[64];
    char command[256];
    pid_t pid = start_child(calls_itself_the_screen);
    assert_int_equal(gp_ending_add(&ending, pid, gp_clock_wall_ns(), false, &err), 0);
    gp_ending_fini(&ending);
    (void)kill(pid, SIGKILL);
    (void)ended_by(pid);
    temporary_name(folder, sizeof(folder), "ending");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(screen, sizeof(screen), "%s/Xorg", folder);
    (void)snprintf(command, sizeof(command), "cp \"$(readlink -f \"$(command -v sleep)\")\" %s",
                   screen);
    assert_int_equal(system(command), 0);
    pid = start_child(is_the_screen);
    for (int i = 0; i < LONG_S * 1000 && !runs(pid, screen); i++)
        (void)usleep(1000);
    int r = gp_ending_add(&ending, pid, gp_clock_wall_ns(), false, &err);
    assert_int_equal(r, geteuid() == 0 ? GP_EPERM : 0); /* else it is just somebody's program */
    if (r < 0)
        assert_non_null(strstr(err.text, "to terminate it, give its pid"));
    assert_int_equal(gp_ending_add(&ending, pid, gp_clock_wall_ns(), true, &err), 0);
    assert_int_equal(ending.count, 1);
    gp_ending_fini(&ending);
    (void)kill(pid, SIGKILL);
    (void)ended_by(pid);
    assert_int_equal(unlink(screen), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void not_one_that_began_later(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    struct gp_err err = {0};
    pid_t pid = start_child(heeds_all);
    uint64_t seen_ns = gp_clock_wall_ns() - 60 * GP_NS_PER_S;
    assert_int_equal(gp_ending_add(&ending, pid, seen_ns, true, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "was recycled by another process"));
    assert_int_equal(ending.count, 0);
    gp_ending_fini(&ending);
    (void)kill(pid, SIGKILL);
    (void)ended_by(pid);
}

/* ---- pids that are used again ---- */

/* What happens before a process is held: once. */
static void (*before_hold)(pid_t pid);

int __real_gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err);
int __wrap_gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err);
int __wrap_gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err)
{
    void (*before)(pid_t) = before_hold;
    before_hold = NULL;
    if (before)
        before((pid_t)pid);
    return __real_gp_proc_hold(pid, seen_wall_ns, ret_fd, err);
}

/* Starts a child with this pid, which is free; skips the test if that is not allowed. */
static void start_as(pid_t pid, void (*run)(void))
{
    pid_t ids[] = {pid};
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uintptr_t)ids, .set_tid_size = GP_ARRAY_LEN(ids)};
    int before = atomic_load(&shared->ready);
    long r = -1;
    for (int i = 0; i < LONG_S * 1000; i++) {
        r = syscall(SYS_clone3, &args, sizeof(args));
        if (r >= 0 || errno != EEXIST) /* as it is for a moment after its process has gone */
            break;
        (void)usleep(1000);
    }
    if (r == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    if (r < 0 && (errno == EPERM || errno == ENOSYS || errno == E2BIG))
        skip_because("no pid can be chosen here");
    assert_int_equal(r, pid);
    wait_ready(before + 1);
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(ended_by(pid), SIGKILL);
}

/* Before a test has something to release. */
static void need_chosen_pids(void)
{
    pid_t pid = start_child(heeds_all);
    kill_and_reap(pid);
    start_as(pid, heeds_all);
    kill_and_reap(pid);
}

/* A parent with a child, of whose end nobody has to take notice. */
static void begets_one(void)
{
    (void)signal(SIGCHLD, SIG_IGN);
    const pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) /* it may have died before the line above */
            (void)pause();
        _exit(0);
    }
    atomic_store(&shared->pids[0], pid);
    rest();
}

/* Which starts in another tick: more than one has passed. */
static void replace_by_a_stranger(pid_t pid)
{
    (void)usleep(2 * 1000 * 1000 / (useconds_t)sysconf(_SC_CLK_TCK));
    assert_int_equal(pid, atomic_load(&shared->pids[0]));
    assert_int_equal(kill(pid, SIGKILL), 0);
    for (int i = 0; i < LONG_S * 1000 && kill(pid, 0) == 0; i++)
        (void)usleep(1000);
    start_as(pid, heeds_all);
}

static void a_child_whose_pid_is_used_again_before_it_is_held(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    need_chosen_pids();
    pid_t parent = start_child(begets_one);
    pid_t child = atomic_load(&shared->pids[0]);
    hold(&ending, parent);
    before_hold = replace_by_a_stranger;
    gp_ending_add_tree(&ending);
    assert_null(before_hold);
    assert_int_equal(ending.count, 1);
    kill_and_reap(child);
    kill_and_reap(parent);
    gp_ending_fini(&ending);
}

/* In a session of its own, as that of another user is. */
static void begets_one_elsewhere(void)
{
    (void)setsid();
    begets_one();
}

static void a_parent_whose_pid_is_used_again(void **state)
{
    (void)state;
    struct gp_ending ending = {NULL, 0};
    need_chosen_pids();
    pid_t parent = start_child(heeds_all);
    hold(&ending, parent);
    kill_and_reap(parent);
    start_as(parent, begets_one_elsewhere);
    gp_ending_add_tree(&ending);
    assert_int_equal(ending.count, 1);
    kill_and_reap(parent);
    gp_ending_fini(&ending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mildest_signal_that_helps),
        cmocka_unit_test(one_that_has_ended_is_not_added_again),
        cmocka_unit_test(without_memory_nothing_is_left_open),
        cmocka_unit_test(it_is_over_when_all_have_ended),
        cmocka_unit_test(one_that_does_not_end_is_told),
        cmocka_unit_test(one_that_stands_still_ends),
        cmocka_unit_test(with_a_tree_all_of_it_ends),
        cmocka_unit_test(without_a_tree_only_the_one),
        cmocka_unit_test(what_forks_while_it_ends_ends_too),
        cmocka_unit_test(some_are_left_alone),
        cmocka_unit_test(not_that_of_another_user),
        cmocka_unit_test(a_screen_only_if_it_is_named),
        cmocka_unit_test(not_one_that_began_later),
        cmocka_unit_test(a_child_whose_pid_is_used_again_before_it_is_held),
        cmocka_unit_test(a_parent_whose_pid_is_used_again),
    };
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("ending", tests, NULL, NULL);
}
