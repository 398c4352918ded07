/* Leases: real files, locks and processes. */
#include "unit.h"

#include "base/err.h"
#include "jobs/lease.h"
#include "proc/files.h"
#include "proc_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gp_lease_room room;
static char folder[128];

static int open_room(void **state)
{
    struct gp_err err = {0};
    if (set_up(state) != 0)
        return -1;
    (void)snprintf(folder, sizeof(folder), "%s/leases", tree_root);
    (void)setenv("GPULSE_STATE_DIR", folder, 1);
    return gp_lease_room_open(&room, &err);
}

static int close_room(void **state)
{
    gp_lease_room_close(&room);
    return tear_down(state);
}

static struct gp_lease example(uint64_t ticket)
{
    return (struct gp_lease){
        .ticket = ticket,
        .state = GP_LEASE_HELD,
        .since_wall_ns = 5,
        .pid = (uint32_t)getpid(),
        .ns = gp_proc_own_ns(),
        .is_shared = true,
        .bytes = 7,
        .wanted = 2,
        .gpus = {"GPU-a", "GPU-b"},
        .gpu_count = 2,
        .name = "a name",
        .command = "python train.py\n--evil \033[2J",
    };
}

static struct gp_leases read_all(void)
{
    struct gp_leases leases;
    struct gp_err err = {0};
    if (gp_leases_read(&room, &leases, &err) < 0)
        fail_msg("%s", err.text);
    return leases;
}

static size_t count(void)
{
    struct gp_leases leases = read_all();
    size_t n = leases.count;
    gp_leases_fini(&leases);
    return n;
}

static int write_lease(const struct gp_lease *lease)
{
    struct gp_err err = {0};
    int fd = -1;
    if (gp_lease_write(&room, lease, &fd, &err) < 0)
        fail_msg("%s", err.text);
    return fd;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct gp_lease lease = example(3);
    int fd = write_lease(&lease);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC); /* the job does not inherit it */
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    assert_int_equal(leases.next_ticket, 4);
    const struct gp_lease *got = &leases.items[0];
    assert_int_equal(got->ticket, 3);
    assert_int_equal(got->state, GP_LEASE_HELD);
    assert_int_equal(got->uid, geteuid());
    assert_int_equal(got->pid, getpid());
    assert_int_equal(got->ns, gp_proc_own_ns());
    assert_true(got->is_shared);
    assert_int_equal(got->bytes, 7);
    assert_int_equal(got->wanted, 2);
    assert_int_equal(got->gpu_count, 2);
    assert_string_equal(got->gpus[1], "GPU-b");
    assert_string_equal(got->name, "a name");
    assert_string_equal(got->command, "python train.py\\n--evil \\x1b[2J");
    gp_leases_fini(&leases);
    gp_lease_drop(&room, &lease, &fd);
    assert_int_equal(fd, -1);
    assert_int_equal(count(), 0);
}

static void the_first_who_asked_comes_first(void **state)
{
    (void)state;
    static const uint64_t tickets[] = {12, 3, 100, 9};
    int fds[GP_ARRAY_LEN(tickets)];
    struct gp_lease leases_of[GP_ARRAY_LEN(tickets)];
    for (size_t i = 0; i < GP_ARRAY_LEN(tickets); i++) {
        leases_of[i] = example(tickets[i]);
        fds[i] = write_lease(&leases_of[i]);
    }
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 4);
    for (size_t i = 1; i < leases.count; i++)
        assert_true(leases.items[i - 1].ticket < leases.items[i].ticket);
    assert_int_equal(leases.next_ticket, 101);
    gp_leases_fini(&leases);
    for (size_t i = 0; i < GP_ARRAY_LEN(tickets); i++)
        gp_lease_drop(&room, &leases_of[i], &fds[i]);
}

/* A lease that waited becomes one that is held without a moment in between. */
static void a_lease_changes_in_its_place(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease lease = example(1);
    lease.state = GP_LEASE_WAITING;
    int fd = write_lease(&lease);
    lease.state = GP_LEASE_HELD;
    lease.gpu_count = 1;
    assert_int_equal(gp_lease_write(&room, &lease, &fd, &err), 0);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    assert_int_equal(leases.items[0].state, GP_LEASE_HELD);
    assert_int_equal(leases.items[0].gpu_count, 1);
    gp_leases_fini(&leases);
    gp_lease_drop(&room, &lease, &fd);
}

static void who_need_not_look(void **state)
{
    (void)state;
    struct gp_lease items[2] = {example(3), example(5)};
    struct gp_leases leases = {.items = items, .count = 2};
    struct gp_lease own = example(7);
    assert_false(gp_lease_is_behind(&leases, &own)); /* they do not wait */
    items[0].state = GP_LEASE_WAITING;
    assert_true(gp_lease_is_behind(&leases, &own));
    own.ticket = 2; /* it asked before */
    assert_false(gp_lease_is_behind(&leases, &own));
    own.ticket = 7;
    own.wanted = 1;
    assert_true(gp_lease_is_behind(&leases, &own));
    items[0].gpu_count = 1; /* the other one could not use GPU-b */
    assert_false(gp_lease_is_behind(&leases, &own));
    own.wanted = 2;
    assert_true(gp_lease_is_behind(&leases, &own));
}

/* However its supervisor ends: nothing is left of it, and who waits hears of that. */
static void a_lease_ends_with_its_process(void **state)
{
    (void)state;
    char byte;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct gp_err err;
        struct gp_lease lease = example(8);
        int fd = -1;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        lease.pid = (uint32_t)getpid();
        if (gp_lease_write(&room, &lease, &fd, &err) == 0)
            (void)!write(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(count(), 1);
    int watch = gp_lease_room_watch(&room);
    assert_true(watch >= 0);
    struct pollfd fd = {watch, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(poll(&fd, 1, 600000), 1);
    (void)close(watch);
    char path[256];
    char fresh[256]; /* of one that was killed while it wrote */
    (void)snprintf(path, sizeof(path), "%s/lease.8.%d", folder, (int)pid);
    (void)snprintf(fresh, sizeof(fresh), "%s/new.9.%d", folder, (int)pid);
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(count(), 0);
    assert_int_not_equal(access(path, F_OK), 0); /* swept */
    assert_int_not_equal(access(fresh, F_OK), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void the_lock_is_one_at_a_time_and_names_its_holder(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease_room other;
    char pid[24];
    assert_int_equal(gp_lease_room_open(&other, &err), 0);
    assert_int_equal(gp_lease_room_lock(&room, GP_NS_PER_S, &err), 0);
    assert_int_equal(gp_lease_room_lock(&other, GP_NS_PER_S / 20, &err), GP_ETIMEOUT);
    (void)snprintf(pid, sizeof(pid), "process %d", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    gp_lease_room_unlock(&room);
    assert_int_equal(gp_lease_room_lock(&other, GP_NS_PER_S, &err), 0);
    gp_lease_room_close(&other);
}

/* What somebody has put there: text that is none, links, pipes, without end; and a lock on it. */
static void hostile_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "gpulse-lease 2\npid 1\n",
        "gpulse-lease 1\n",
        "gpulse-lease 1\npid 0\n",
        "gpulse-lease 1\npid -1\n",
        "gpulse-lease 1\npid 99999999999\n",
        "gpulse-lease 1\npid 5\nbytes x\n",
        "gpulse-lease 1\npid 5\nno value\nwanted\n",
    };
    char name[64];
    char path[256];
    int fds[GP_ARRAY_LEN(texts)];
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        (void)snprintf(name, sizeof(name), "/leases/lease.%zu.5", i + 1);
        write_text(name, texts[i]);
        (void)snprintf(path, sizeof(path), "%s%s", tree_root, name);
        fds[i] = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(flock(fds[i], LOCK_EX), 0); /* as if it were alive */
    }
    (void)snprintf(path, sizeof(path), "%s/lease.77.1", folder);
    assert_int_equal(mkfifo(path, 0644), 0);
    (void)snprintf(path, sizeof(path), "%s/lease.78.1", folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    write_text("/leases/lease.99999999999999999999.1", "gpulse-lease 1\npid 5\n");
    write_text("/leases/lease.x.1", "gpulse-lease 1\npid 5\n");
    assert_int_equal(count(), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        (void)close(fds[i]);
}

/* A lease of a later version, or one that is damaged: its GPUs are not given away. */
static void what_is_not_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_shared;
    } cases[] = {
        {"gpulse-lease 1\npid 1\nboot 3f2a-11\nshared 1\ngpu GPU-a\n", true},
        {"gpulse-lease 2\npid 1\nshared 1\ngpu GPU-a\n", false},
        {"gpulse-lease 1\npid x\nshared 1\ngpu GPU-a\n", false},
    };
    char path[256];
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        write_text("/leases/lease.1.5", cases[i].text);
        (void)snprintf(path, sizeof(path), "%s/lease.1.5", folder);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        struct gp_leases leases = read_all();
        assert_int_equal(leases.count, 1);
        assert_int_equal(leases.items[0].state, GP_LEASE_HELD);
        assert_int_equal(leases.items[0].is_shared, cases[i].is_shared);
        assert_string_equal(leases.items[0].gpus[0], "GPU-a");
        gp_leases_fini(&leases);
        (void)close(fd);
    }
}

static void a_lock_that_was_removed(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease_room other;
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gp_lease_room_open(&other, &err), 0); /* makes a new one */
    assert_int_equal(gp_lease_room_lock(&other, GP_NS_PER_S, &err), 0);
    assert_int_equal(gp_lease_room_lock(&room, GP_NS_PER_S / 20, &err), GP_ETIMEOUT);
    gp_lease_room_close(&other);
    struct gp_lease lease = example(1);
    int fd = write_lease(&lease);
    assert_false(gp_lease_was_removed(fd));
    (void)snprintf(path, sizeof(path), "%s/lease.1.%d", folder, (int)getpid());
    assert_int_equal(unlink(path), 0);
    assert_true(gp_lease_was_removed(fd));
    gp_lease_drop(&room, &lease, &fd);
}

enum { NOBODY = 65534 };

/* A process of that user, which only waits. */
static pid_t start_process(uid_t uid)
{
    char byte = 0;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ok = uid == geteuid() || setresuid(uid, uid, uid) == 0;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user would take it back */
        if (ok)
            (void)!write(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void end_process(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A file of that owner that names this process; *ret_fd keeps it locked. */
static void put_lease(uid_t owner, pid_t pid, uint64_t ns, int *ret_fd)
{
    char text[128];
    char path[256];
    (void)snprintf(text, sizeof(text), "gpulse-lease 1\npid %d\nns %llu\ngpu GPU-a\n", (int)pid,
                   (unsigned long long)ns);
    (void)snprintf(path, sizeof(path), "%s/lease.1.5", folder);
    (void)unlink(path); /* it may be another user's */
    write_text("/leases/lease.1.5", text);
    if (owner != geteuid())
        assert_int_equal(chown(path, owner, (gid_t)-1), 0);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(*ret_fd, LOCK_EX), 0);
}

/* What is read of the process that such a file names. */
static uint32_t named_process(uid_t owner, pid_t pid, uint64_t ns)
{
    int fd;
    put_lease(owner, pid, ns, &fd);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    assert_int_equal(leases.items[0].uid, owner);
    uint32_t named = leases.items[0].pid;
    gp_leases_fini(&leases);
    (void)close(fd);
    return named;
}

/* Else anybody could say of somebody's process that the GPUs on which it is were promised to it. */
static void a_lease_names_processes_of_its_owner_only(void **state)
{
    (void)state;
    uint64_t ns = gp_proc_own_ns();
    pid_t own = start_process(geteuid());
    assert_int_equal(named_process(geteuid(), own, ns), own);
    end_process(own);
    assert_int_equal(named_process(geteuid(), own, ns), 0); /* it has ended */
    /* in another pid namespace it is another process, of which nothing is known here */
    assert_int_equal(named_process(geteuid(), own, ns + 1), own);
}

static void a_lease_of_another_user_names_only_that_users_processes(void **state)
{
    (void)state;
    uint64_t ns = gp_proc_own_ns();
    struct stat first;
    if (geteuid() != 0) {
        if (stat("/proc/1", &first) != 0 || first.st_uid == geteuid()) {
            print_message("no process of another user is seen here\n");
            skip();
        }
        assert_int_equal(named_process(geteuid(), 1, ns), 0);
        return;
    }
    pid_t roots = start_process(0);
    pid_t others = start_process(NOBODY);
    assert_int_equal(named_process(NOBODY, roots, ns), 0);
    assert_int_equal(named_process(NOBODY, others, ns), others);
    assert_int_equal(named_process(0, others, ns), others); /* root may say so of all */
    end_process(roots);
    end_process(others);
}

static bool is_there(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Who only looks changes nothing: what is left of the dead stays, and no folder is made. */
static void looking_leaves_all_as_it_is(void **state)
{
    (void)state;
    struct gp_leases leases;
    struct gp_err err = {0};
    struct gp_lease lease = example(4);
    int fd = write_lease(&lease);
    write_text("/leases/lease.9.1", "gpulse-lease 1\npid 1\n");
    write_text("/leases/new.9.1", "gpulse-lease 1\npid 1\n");
    assert_int_equal(gp_leases_look(&leases, &err), 0);
    assert_int_equal(leases.count, 1);
    assert_int_equal(leases.items[0].ticket, 4);
    gp_leases_fini(&leases);
    assert_null(leases.items);
    assert_int_equal(leases.count, 0);
    assert_true(is_there("lease.9.1") && is_there("new.9.1"));
    assert_int_equal(count(), 1); /* who decides sweeps */
    assert_false(is_there("lease.9.1") || is_there("new.9.1"));
    gp_lease_drop(&room, &lease, &fd);
    char none[160];
    (void)snprintf(none, sizeof(none), "%s/none", tree_root);
    (void)setenv("GPULSE_STATE_DIR", none, 1);
    assert_int_equal(gp_leases_look(&leases, &err), 0);
    assert_int_equal(leases.count, 0);
    assert_int_not_equal(access(none, F_OK), 0);
}

/* Root sweeps for all, somebody else only his own; what is no lease is nobody's to sweep. */
static void only_what_is_ones_own_is_swept(void **state)
{
    (void)state;
    char path[256];
    write_text("/leases/other", "x");
    write_text("/leases/lease.1.5", "gpulse-lease 1\npid 5\n");
    if (geteuid() != 0) {
        assert_int_equal(count(), 0);
        assert_false(is_there("lease.1.5"));
    } else {
        (void)snprintf(path, sizeof(path), "%s/lease.2.5", folder);
        write_text("/leases/lease.2.5", "gpulse-lease 1\npid 5\n");
        assert_int_equal(chown(path, NOBODY, (gid_t)-1), 0);
        assert_int_equal(chmod(folder, 0777), 0);
        assert_int_equal(chmod(tree_root, 0755), 0);
        assert_int_equal(seteuid(NOBODY), 0);
        size_t alive = count();
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(alive, 0);
        assert_true(is_there("lease.1.5"));
        assert_false(is_there("lease.2.5"));
        (void)snprintf(path, sizeof(path), "%s/lease.1.5", folder);
        assert_int_equal(chown(path, NOBODY, (gid_t)-1), 0);
        assert_int_equal(count(), 0);
        assert_false(is_there("lease.1.5"));
    }
    assert_true(is_there("other"));
}

/* Locked texts, and what of them is believed; beyond the bounds the GPUs are somebody's alone. */
static void bounds_of_what_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool fits;
    } cases[] = {
        {"pid 2147483647", true},
        {"pid 2147483648", false},
        {"wanted 64", true},
        {"wanted 65", false},
        {"shared 0", true},
        {"shared 1", true},
        {"shared 2", false},
        {"bytes 9223372036854775807", true},
        {"bytes 9223372036854775808", false},
        {"since 18446744073709551615", true},
        {"ns 18446744073709551616", false},
        {"gpu 12345678901234567890123456789012345678901234567890123456789012345678901234567890"
         "123456789012345",
         true},
        {"gpu 12345678901234567890123456789012345678901234567890123456789012345678901234567890"
         "1234567890123456",
         false},
    };
    char text[256];
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char path[256];
        (void)snprintf(text, sizeof(text), "gpulse-lease 1\npid 1\nstate waiting\ngpu GPU-a\n%s\n",
                       cases[i].line);
        write_text("/leases/lease.1.5", text);
        (void)snprintf(path, sizeof(path), "%s/lease.1.5", folder);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        struct gp_leases leases = read_all();
        assert_int_equal(leases.count, 1);
        bool fits = leases.items[0].state == GP_LEASE_WAITING;
        if (fits != cases[i].fits)
            fail_msg("'%s' is %s", cases[i].line, fits ? "believed" : "not believed");
        gp_leases_fini(&leases);
        (void)close(fd);
    }
}

static void as_many_gpus_as_there_is_room_for(void **state)
{
    (void)state;
    struct gp_lease lease = example(1);
    lease.gpu_count = GP_LEASE_GPUS;
    for (size_t i = 0; i < lease.gpu_count; i++)
        (void)snprintf(lease.gpus[i], sizeof(lease.gpus[i]), "GPU-%091zu", i);
    int fd = write_lease(&lease);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.items[0].gpu_count, GP_LEASE_GPUS);
    assert_true(leases.items[0].is_shared);
    assert_true(gp_lease_has_gpu(&leases.items[0], lease.gpus[GP_LEASE_GPUS - 1]));
    gp_leases_fini(&leases);
    assert_true(lseek(fd, 0, SEEK_END) > 0);
    assert_int_equal(write(fd, "gpu x\n", 6), 6); /* one more */
    leases = read_all();
    assert_int_equal(leases.items[0].gpu_count, GP_LEASE_GPUS);
    assert_false(leases.items[0].is_shared);
    gp_leases_fini(&leases);
    gp_lease_drop(&room, &lease, &fd);
    lease.gpus[0][0] = '\0';
    assert_false(gp_lease_has_gpu(&lease, "")); /* one that does not tell who it is */
    assert_false(gp_lease_has_gpu(&lease, "GPU-x"));
}

static void tickets_leave_room_for_those_to_come(void **state)
{
    (void)state;
    static const struct {
        uint64_t ticket;
        size_t count;
    } cases[] = {{UINT64_C(1) << 53, 1}, {(UINT64_C(1) << 53) + 1, 0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_lease lease = example(cases[i].ticket);
        int fd = write_lease(&lease);
        assert_int_equal(count(), cases[i].count);
        gp_lease_drop(&room, &lease, &fd);
    }
    /* one ticket twice: by pid */
    int fds[2] = {-1, -1};
    struct gp_err err = {0};
    struct gp_lease pair[2] = {example(7), example(7)};
    pair[0].pid = 9;
    pair[1].pid = 8;
    for (size_t i = 0; i < 2; i++) {
        pair[i].ns++; /* not looked for here */
        assert_int_equal(gp_lease_write(&room, &pair[i], &fds[i], &err), 0);
    }
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 2);
    assert_int_equal(leases.items[0].pid, 8);
    assert_int_equal(leases.items[1].pid, 9);
    gp_leases_fini(&leases);
    for (size_t i = 0; i < 2; i++)
        gp_lease_drop(&room, &pair[i], &fds[i]);
}

/* Whatever the mask of who comes first: others must be able to lock and to read. */
static void others_can_read_what_is_made(void **state)
{
    (void)state;
    static const char *const names[] = {"lock", "lease.3.4711"};
    struct gp_err err = {0};
    struct gp_lease lease = example(3);
    char path[256];
    int fd = -1;
    lease.pid = 4711;
    gp_lease_room_close(&room);
    assert_int_equal(room.dir, -1);
    assert_int_equal(room.lock, -1);
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    assert_int_equal(unlink(path), 0);
    mode_t before = umask(0077);
    int r = gp_lease_room_open(&room, &err);
    r = r < 0 ? r : gp_lease_write(&room, &lease, &fd, &err);
    (void)umask(before);
    assert_int_equal(r, 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
    }
    gp_lease_drop(&room, &lease, &fd);
}

static void what_cannot_be_written_or_opened(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease lease = example(3);
    char path[256];
    int fd = -1;
    (void)snprintf(path, sizeof(path), "%s/lease.3.%d", folder, (int)getpid());
    assert_int_equal(mkdir(path, 0755), 0); /* in its place */
    assert_int_equal(gp_lease_write(&room, &lease, &fd, &err), GP_EIO);
    assert_non_null(strstr(err.text, "cannot write a lease"));
    assert_int_equal(fd, -1);
    (void)snprintf(path, sizeof(path), "new.3.%d", (int)getpid());
    assert_false(is_there(path));
    assert_false(gp_lease_was_removed(-1));
    gp_lease_drop(&room, &lease, &fd); /* there is none: nothing happens */
    assert_int_equal(fd, -1);
    gp_lease_room_close(&room);
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(gp_lease_room_open(&room, &err), GP_EIO);
    assert_non_null(strstr(err.text, "cannot open the lock of the leases"));
    assert_int_equal(room.dir, -1);
    (void)setenv("GPULSE_STATE_DIR", "/dev/null/x", 1);
    assert_int_equal(gp_lease_room_open(&room, &err), GP_EIO);
}

/* One that another process has for a moment is waited for. */
static void a_lock_is_waited_for(void **state)
{
    (void)state;
    struct gp_err err = {0};
    char byte;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gp_lease_room other;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (gp_lease_room_open(&other, &err) == 0 &&
            gp_lease_room_lock(&other, 30 * GP_NS_PER_S, &err) == 0)
            (void)!write(ready[1], "x", 1);
        (void)poll(NULL, 0, 100);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(gp_lease_room_lock(&room, 30 * GP_NS_PER_S, &err), 0);
    gp_lease_room_unlock(&room);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void nothing_stays_open(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease lease = example(1);
    struct gp_lease_room before = room;
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gp_lease_room_lock(&room, GP_NS_PER_S, &err), 0); /* makes a new one */
    assert_int_not_equal(room.lock, before.lock);
    assert_false(is_open(before.lock));
    int first = write_lease(&lease);
    int fd = first;
    assert_int_equal(gp_lease_write(&room, &lease, &fd, &err), 0);
    assert_false(is_open(first));
    int second = fd;
    gp_lease_drop(&room, &lease, &fd);
    assert_false(is_open(second));
    /* without its folder there is nobody to share the lock with */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    before = room;
    gp_lease_room_unlock(&room);
    assert_int_equal(gp_lease_room_lock(&room, GP_NS_PER_S / 20, &err), 0);
    gp_lease_room_close(&room);
    assert_false(is_open(before.lock) || is_open(before.dir));
    assert_int_equal(gp_lease_room_watch(&room), -1);
}

static void without_memory(void **state)
{
    (void)state;
    struct gp_leases leases;
    struct gp_err err = {0};
    struct gp_lease lease = example(3);
    int fd = write_lease(&lease);
    bool refused = false;
    for (long n = 0; n < 8; n++) {
        alloc_fail_at(n);
        int r = gp_leases_read(&room, &leases, &err);
        alloc_fail_at(-1);
        refused = refused || r == GP_ENOMEM;
        if (r < 0) {
            assert_null(leases.items);
            assert_int_equal(leases.count, 0);
        }
        gp_leases_fini(&leases);
    }
    assert_true(refused);
    gp_lease_drop(&room, &lease, &fd);
}

#define IN_ROOM(test) cmocka_unit_test_setup_teardown(test, open_room, close_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOM(what_is_written_is_read),
        IN_ROOM(the_first_who_asked_comes_first),
        IN_ROOM(a_lease_changes_in_its_place),
        IN_ROOM(who_need_not_look),
        IN_ROOM(a_lease_ends_with_its_process),
        IN_ROOM(the_lock_is_one_at_a_time_and_names_its_holder),
        IN_ROOM(hostile_files),
        IN_ROOM(what_is_not_understood),
        IN_ROOM(a_lock_that_was_removed),
        IN_ROOM(a_lease_names_processes_of_its_owner_only),
        IN_ROOM(a_lease_of_another_user_names_only_that_users_processes),
        IN_ROOM(looking_leaves_all_as_it_is),
        IN_ROOM(only_what_is_ones_own_is_swept),
        IN_ROOM(bounds_of_what_is_read),
        IN_ROOM(as_many_gpus_as_there_is_room_for),
        IN_ROOM(tickets_leave_room_for_those_to_come),
        IN_ROOM(others_can_read_what_is_made),
        IN_ROOM(what_cannot_be_written_or_opened),
        IN_ROOM(a_lock_is_waited_for),
        IN_ROOM(nothing_stays_open),
        IN_ROOM(without_memory),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
