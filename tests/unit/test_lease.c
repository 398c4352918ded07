/* Leases: real files, locks and processes. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "proc/files.h"
#include "proc/lease.h"
#include "proc_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char place[128];
static char own_folder[160];

static int set_place(void **state)
{
    if (set_up(state) != 0)
        return -1;
    (void)snprintf(place, sizeof(place), "%s/place", tree_root);
    (void)snprintf(own_folder, sizeof(own_folder), "%s/gpulse-%u", place, (unsigned)geteuid());
    (void)setenv("GPULSE_STATE_DIR", place, 1);
    assert_int_equal(mkdir(place, 0755), 0);
    return 0;
}

static struct gp_lease example(uint64_t id)
{
    return (struct gp_lease){
        .id = id,
        .state = GP_LEASE_HELD,
        .since_wall_ns = 5,
        .pid = (uint32_t)getpid(),
        .ns = gp_proc_own_ns(),
        .is_shared = true,
        .bytes = 7,
        .limit_ns = 11,
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
    if (gp_leases_read(&leases, &err) < 0)
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

static struct gp_lease_note write_lease(const struct gp_lease *lease)
{
    struct gp_err err = {0};
    struct gp_lease_note note = GP_LEASE_NO_NOTE;
    if (gp_lease_write(&note, lease, &err) < 0)
        fail_msg("%s", err.text);
    return note;
}

static const char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", own_folder, name);
    return path;
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* A file in one's own folder, locked as if it were alive. */
static int put(const char *name, const char *text)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    (void)mkdir(place, 0755);
    (void)mkdir(own_folder, 0755);
    (void)unlink(path_of(name));
    int fd = open(path_of(name), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static const char held_name[] = "held.0000000000000005";

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct gp_lease lease = example(3);
    struct gp_lease_note note = write_lease(&lease);
    assert_true(fcntl(note.fd, F_GETFD) & FD_CLOEXEC); /* the job does not inherit it */
    assert_true(fcntl(note.dir, F_GETFD) & FD_CLOEXEC);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    const struct gp_lease *got = &leases.items[0];
    assert_int_equal(got->id, 3);
    assert_int_equal(got->state, GP_LEASE_HELD);
    assert_int_equal(got->uid, geteuid());
    assert_int_equal(got->pid, getpid());
    assert_int_equal(got->ns, gp_proc_own_ns());
    assert_false(got->is_stopped);
    assert_true(got->is_shared);
    assert_int_equal(got->bytes, 7);
    assert_int_equal(got->limit_ns, 11);
    assert_int_equal(got->wanted, 2);
    assert_int_equal(got->gpu_count, 2);
    assert_string_equal(got->gpus[1], "GPU-b");
    assert_string_equal(got->name, "a name");
    assert_string_equal(got->command, "python train.py\\n--evil \\x1b[2J");
    assert_string_equal(got->path, path_of("held.0000000000000003"));
    gp_leases_fini(&leases);
    gp_lease_drop(&note);
    assert_int_equal(note.fd, -1);
    assert_int_equal(count(), 0);
    assert_false(is_there("held.0000000000000003"));
}

/* By the time at which the kernel has seen them come, whatever is written in them. */
static void the_first_who_asked_comes_first(void **state)
{
    (void)state;
    static const uint64_t ids[] = {12, 3, UINT64_MAX, 9};
    struct gp_lease_note notes[GP_ARRAY_LEN(ids)];
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++) {
        struct gp_lease lease = example(ids[i]);
        lease.state = GP_LEASE_WAITING;
        lease.since_wall_ns = 100 - i;
        notes[i] = write_lease(&lease);
        (void)poll(NULL, 0, 30); /* longer than the clock of files needs to go on */
    }
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(notes[3].dir, notes[3].name, long_ago, 0), 0);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 4);
    for (size_t i = 0; i < leases.count; i++)
        assert_int_equal(leases.items[i].id, ids[i]);
    for (size_t i = 1; i < leases.count; i++)
        assert_true(leases.items[i - 1].ticket < leases.items[i].ticket);
    assert_ptr_equal(gp_leases_find(&leases, 3, GP_LEASE_WAITING), &leases.items[1]);
    assert_null(gp_leases_find(&leases, 3, GP_LEASE_HELD));
    assert_null(gp_leases_find(&leases, 4, GP_LEASE_WAITING));
    gp_leases_leave_out(&leases, 3);
    assert_int_equal(leases.count, 3);
    assert_null(gp_leases_find(&leases, 3, GP_LEASE_WAITING));
    gp_leases_fini(&leases);
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++)
        gp_lease_drop(&notes[i]);
}

/* Of one request: it is never seen as neither. */
static void one_that_waits_and_then_has_its_gpus(void **state)
{
    (void)state;
    struct gp_lease lease = example(1);
    lease.state = GP_LEASE_WAITING;
    struct gp_lease_note line = write_lease(&lease);
    lease.state = GP_LEASE_CLAIMED;
    lease.gpu_count = 1;
    struct gp_err err = {0};
    struct gp_lease_note held = write_lease(&lease);
    assert_int_equal(count(), 2);
    assert_true(is_there("claim.0000000000000001"));
    assert_int_equal(gp_lease_confirm(&held, &err), 0);
    assert_false(is_there("claim.0000000000000001"));
    assert_int_equal(count(), 2);
    /* dropped, but not removed yet: still one, not found again under its earlier name */
    struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(line.fd, F_OFD_SETLK, &unlock), 0);
    assert_true(is_there("wait.0000000000000001"));
    assert_int_equal(count(), 1);
    gp_lease_drop(&line);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    assert_int_equal(leases.items[0].state, GP_LEASE_HELD);
    assert_int_equal(leases.items[0].gpu_count, 1);
    gp_leases_fini(&leases);
    gp_lease_drop(&held);
}

enum { HOUR = GP_LEASE_OVERTAKE_S };

static void who_may_overtake(void **state)
{
    (void)state;
    static const struct {
        uint64_t waited_s, limit_s;
        bool may;
    } cases[] = {
        {0, 0, false},         {0, 1, true},          {0, HOUR, true},     {0, HOUR + 1, false},
        {10, HOUR - 10, true}, {10, HOUR - 9, false}, {HOUR - 1, 1, true}, {HOUR - 1, 2, false},
        {HOUR, 1, false},      {2 * HOUR, 1, false},  {HOUR, 0, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_lease earlier = example(3);
        earlier.ticket = 1000 * GP_NS_PER_S;
        assert_int_equal(gp_lease_may_overtake(&earlier, cases[i].limit_s * GP_NS_PER_S,
                                               earlier.ticket + cases[i].waited_s * GP_NS_PER_S),
                         cases[i].may);
    }
    struct gp_lease earlier = example(3);
    earlier.ticket = 1000 * GP_NS_PER_S; /* the clock was set back */
    assert_true(gp_lease_may_overtake(&earlier, HOUR * GP_NS_PER_S, 5));
    assert_false(gp_lease_may_overtake(&earlier, UINT64_MAX, 5));
}

static void the_position_in_the_line(void **state)
{
    (void)state;
    struct gp_lease items[3] = {example(3), example(5), example(7)};
    struct gp_leases leases = {.items = items, .count = 3};
    for (size_t i = 0; i < 3; i++)
        items[i].ticket = i + 1;
    items[1].state = items[2].state = GP_LEASE_WAITING;
    assert_int_equal(gp_lease_position(&leases, &items[0]), 0);
    assert_int_equal(gp_lease_position(&leases, &items[1]), 1);
    assert_int_equal(gp_lease_position(&leases, &items[2]), 2);
}

static void who_need_not_look(void **state)
{
    (void)state;
    static const uint64_t NOW_NS = 10;
    struct gp_lease items[2] = {example(3), example(5)};
    struct gp_leases leases = {.items = items, .count = 2};
    struct gp_lease own = example(7);
    own.limit_ns = 0;
    items[0].ticket = 3;
    items[1].ticket = 5;
    own.ticket = 7;
    assert_false(gp_lease_is_behind(&leases, &own, NOW_NS)); /* they do not wait */
    items[0].state = GP_LEASE_WAITING;
    assert_true(gp_lease_is_behind(&leases, &own, NOW_NS));
    own.limit_ns = GP_NS_PER_S; /* it may overtake, and must look whether it can */
    assert_false(gp_lease_is_behind(&leases, &own, NOW_NS));
    own.limit_ns = 0;
    own.ticket = 2; /* it asked before */
    assert_false(gp_lease_is_behind(&leases, &own, NOW_NS));
    own.ticket = 7;
    own.wanted = 1;
    assert_true(gp_lease_is_behind(&leases, &own, NOW_NS));
    items[0].gpu_count = 1; /* the other one could not use GPU-b */
    assert_false(gp_lease_is_behind(&leases, &own, NOW_NS));
    own.wanted = 2;
    assert_true(gp_lease_is_behind(&leases, &own, NOW_NS));
    items[0].is_stopped = true; /* it cannot take them */
    assert_false(gp_lease_is_behind(&leases, &own, NOW_NS));
}

static void two_who_hold_one_gpu(void **state)
{
    (void)state;
    struct gp_lease items[2] = {example(3), example(5)};
    struct gp_leases leases = {.items = items, .count = 2};
    assert_false(gp_leases_conflict(&leases)); /* they share it */
    assert_null(gp_leases_rival(&leases, &items[0]));
    items[0].is_shared = false;
    assert_ptr_equal(gp_leases_rival(&leases, &items[0]), &items[1]);
    items[1].is_shared = false;
    assert_true(gp_leases_conflict(&leases));
    assert_ptr_equal(gp_leases_rival(&leases, &items[1]), &items[0]);
    (void)snprintf(items[1].gpus[0], sizeof(items[1].gpus[0]), "GPU-b"); /* twice in one is none */
    (void)snprintf(items[0].gpus[1], sizeof(items[0].gpus[1]), "GPU-a");
    assert_false(gp_leases_conflict(&leases));
    assert_null(gp_leases_rival(&leases, &items[0]));
    items[0] = items[1];
    items[0].id = 3;
    assert_true(gp_leases_conflict(&leases));
    items[0].state = GP_LEASE_CLAIMED;
    assert_false(gp_leases_conflict(&leases));
    items[0].state = GP_LEASE_HELD;
    items[1].gpu_count = 1;
    (void)snprintf(items[1].gpus[0], sizeof(items[1].gpus[0]), "GPU-c");
    assert_false(gp_leases_conflict(&leases));
}

/* However its supervisor ends: nothing is left of it, and who waits hears of that. */
static void a_lease_ends_with_its_process(void **state)
{
    (void)state;
    char byte;
    int ready[2];
    int watch = -1;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct gp_err err;
        struct gp_lease lease = example(8);
        struct gp_lease_note note = GP_LEASE_NO_NOTE;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        lease.pid = (uint32_t)getpid();
        if (gp_lease_write(&note, &lease, &err) == 0)
            (void)!write(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(count(), 1);
    gp_statedirs_watch(NULL, &watch);
    assert_true(watch >= 0);
    struct pollfd fd = {watch, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(poll(&fd, 1, 600000), 1);
    assert_true(gp_statedirs_changed(watch));
    assert_false(gp_statedirs_changed(watch));
    (void)close(watch);
    assert_true(is_there("held.0000000000000008"));
    assert_int_equal(count(), 0);
    assert_false(is_there("held.0000000000000008")); /* swept */
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* A folder that is made while one waits, and files that are none of ours. */
static void who_comes_later_is_heard_of(void **state)
{
    (void)state;
    int watch = -1;
    gp_statedirs_watch(NULL, &watch);
    write_text("/place/something", "");
    assert_false(gp_statedirs_changed(watch));
    struct gp_lease lease = example(8);
    struct gp_lease_note note = write_lease(&lease);
    assert_true(gp_statedirs_changed(watch));
    gp_statedirs_watch(NULL, &watch);
    gp_lease_drop(&note);
    assert_true(gp_statedirs_changed(watch));
    (void)close(watch);
}

/* What somebody has put there: text that is none, links, pipes, names that are none. */
static void hostile_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "gpulse-lease 3\npid 1\n",
        "gpulse-lease 2\n",
        "gpulse-lease 2\npid 0\n",
        "gpulse-lease 2\npid -1\n",
        "gpulse-lease 2\npid 99999999999\n",
        "gpulse-lease 2\npid 5\nbytes x\n",
        "gpulse-lease 2\npid 5\nno value\nwanted\n",
    };
    static const char *const names[] = {
        "held.5",
        "held.00000000000000005",
        "held.000000000000000G",
        "held.000000000000000A",
        "held. 000000000000005",
        "held.0000000000000005.x",
        "lease.0.1",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        int fd = put(held_name, texts[i]);
        assert_int_equal(count(), 0);
        assert_true(is_there(held_name)); /* it is alive, whatever it is */
        (void)close(fd);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        int fd = put(names[i], "gpulse-lease 2\npid 5\nns 1\ngpu GPU-a\n");
        assert_int_equal(count(), 0);
        (void)close(fd);
    }
    assert_int_equal(mkfifo(path_of("held.0000000000000007"), 0644), 0);
    assert_int_equal(symlink("/etc/passwd", path_of("held.0000000000000008")), 0);
    assert_int_equal(mkdir(path_of("held.0000000000000009"), 0755), 0);
    assert_int_equal(count(), 0);
}

/* A lease of a later version, or one that is damaged: its GPUs are not given away. */
static void what_is_not_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_shared;
    } cases[] = {
        {"gpulse-lease 2\npid 1\nboot 3f2a-11\nshared 1\ngpu GPU-a\n", true},
        {"gpulse-lease 3\npid 1\nshared 1\ngpu GPU-a\n", false},
        {"gpulse-lease 2\npid x\nshared 1\ngpu GPU-a\n", false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        int fd = put(held_name, cases[i].text);
        struct gp_leases leases = read_all();
        assert_int_equal(leases.count, 1);
        assert_int_equal(leases.items[0].state, GP_LEASE_HELD);
        assert_int_equal(leases.items[0].is_shared, cases[i].is_shared);
        assert_string_equal(leases.items[0].gpus[0], "GPU-a");
        gp_leases_fini(&leases);
        (void)close(fd);
    }
}

/* Nobody who may only read the file keeps it alive, and nobody's lock makes it look dead. */
static void locks_of_others(void **state)
{
    (void)state;
    struct gp_lease lease = example(1);
    struct gp_lease_note note = write_lease(&lease);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int reader = open(path_of("held.0000000000000001"), O_RDONLY | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(fcntl(reader, F_OFD_SETLK, &lock), -1);
    assert_int_equal(flock(reader, LOCK_EX), 0);
    assert_int_equal(count(), 1);
    (void)close(note.fd);
    (void)close(note.dir);
    assert_int_equal(fcntl(reader, F_OFD_SETLK, &lock), 0);
    assert_int_equal(count(), 0);
    (void)close(reader);
}

static void a_file_that_was_removed(void **state)
{
    (void)state;
    struct gp_lease lease = example(1);
    struct gp_lease_note note = write_lease(&lease);
    struct gp_lease_note none = GP_LEASE_NO_NOTE;
    assert_false(gp_lease_was_removed(&note));
    assert_false(gp_lease_was_removed(&none));
    /* a hard link of somebody's does not hide it */
    char kept[256];
    (void)snprintf(kept, sizeof(kept), "%s/kept", place);
    assert_int_equal(link(path_of("held.0000000000000001"), kept), 0);
    assert_int_equal(unlink(path_of("held.0000000000000001")), 0);
    assert_true(gp_lease_was_removed(&note));
    assert_int_equal(count(), 0);
    struct gp_err err = {0};
    assert_int_equal(gp_lease_write(&note, &lease, &err), 0);
    assert_false(gp_lease_was_removed(&note));
    assert_int_equal(count(), 1);
    gp_lease_drop(&note);
    gp_lease_drop(&none);
}

static size_t count_kept(struct gp_leases_kept *kept)
{
    struct gp_leases leases;
    assert_int_equal(gp_leases_read_kept(&leases, kept, NULL), 0);
    size_t n = leases.count;
    gp_leases_fini(&leases);
    return n;
}

/* Who has seen it counts it for as long as its owner has it. */
static void a_removed_file_that_was_seen(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_leases_kept kept = {.leases.items = NULL};
    struct gp_lease lease = example(1);
    size_t before = open_file_count();
    struct gp_lease_note note = write_lease(&lease);
    assert_int_equal(count_kept(&kept), 1);
    assert_int_equal(unlink(path_of("held.0000000000000001")), 0);
    assert_int_equal(count(), 0);
    assert_int_equal(count_kept(&kept), 1);
    assert_int_equal(count_kept(&kept), 1);
    assert_int_equal(gp_lease_write(&note, &lease, &err), 0);
    assert_int_equal(count_kept(&kept), 1); /* not twice */
    assert_int_equal(unlink(path_of("held.0000000000000001")), 0);
    assert_int_equal(count_kept(&kept), 1); /* the new file was seen, too */
    gp_lease_drop(&note);
    assert_int_equal(count_kept(&kept), 0);
    note = write_lease(&lease);
    assert_int_equal(count_kept(&kept), 1);
    gp_lease_drop(&note);
    assert_int_equal(count_kept(&kept), 0);
    gp_leases_kept_fini(&kept);
    assert_int_equal(open_file_count(), before);
}

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

/* What is read of the process that a lease of this user names; −1: it is no lease. */
static int64_t named_process(pid_t pid, uint64_t ns)
{
    struct gp_lease lease = example(6);
    lease.pid = (uint32_t)pid;
    lease.ns = ns;
    struct gp_lease_note note = write_lease(&lease);
    struct gp_leases leases = read_all();
    int64_t named = leases.count == 1 ? (int64_t)leases.items[0].pid : -1;
    gp_leases_fini(&leases);
    gp_lease_drop(&note);
    return named;
}

/* Else anybody could say of somebody's process that the GPUs on which it is were promised to it. */
static void a_lease_names_processes_of_its_owner_only(void **state)
{
    (void)state;
    uint64_t ns = gp_proc_own_ns();
    pid_t own = start_process(geteuid());
    assert_int_equal(named_process(own, ns), own);
    end_process(own);
    assert_int_equal(named_process(own, ns), -1); /* it has ended */
    /* in another pid namespace it is another process, of which nothing is known here */
    assert_int_equal(named_process(own, ns + 1), own);
    if (geteuid() != 0)
        return;
    pid_t roots = start_process(0);
    assert_int_equal(chmod(tree_root, 0755), 0);
    assert_int_equal(chmod(place, 01777), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    int64_t named = named_process(roots, ns);
    assert_int_equal(seteuid(0), 0);
    end_process(roots);
    assert_int_equal(named, 0);
}

static void who_is_stopped_is_not_waited_for(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t pid = start_process(geteuid());
    struct gp_lease lease = example(6);
    lease.state = GP_LEASE_WAITING;
    lease.pid = (uint32_t)pid;
    struct gp_lease_note note = write_lease(&lease);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.count, 1);
    assert_true(leases.items[0].is_stopped);
    gp_leases_fini(&leases);
    end_process(pid);
    gp_lease_drop(&note);
}

/* In a folder that is another user's, or to which others may write, nothing counts; nor a file of
 * another user in one's own. */
static void folders_and_files_of_others(void **state)
{
    (void)state;
    char path[256];
    struct gp_lease lease = example(1);
    struct gp_lease_note note = write_lease(&lease);
    assert_int_equal(chmod(own_folder, 0777), 0);
    assert_int_equal(count(), 0);
    assert_int_equal(chmod(own_folder, 0755), 0);
    assert_int_equal(count(), 1);
    (void)snprintf(path, sizeof(path), "%s/gpulse-%u", place, (unsigned)geteuid() + 1);
    assert_int_equal(rename(own_folder, path), 0);
    assert_int_equal(count(), 0);
    (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), ".abc");
    assert_int_equal(count(), 0);
    (void)snprintf(path, sizeof(path), "%s/gpulse-%u", place, (unsigned)geteuid() + 1);
    assert_int_equal(rename(path, own_folder), 0);
    assert_int_equal(count(), 1);
    if (geteuid() == 0) {
        assert_int_equal(fchown(note.fd, NOBODY, (gid_t)-1), 0);
        assert_int_equal(count(), 0);
        assert_int_equal(fchown(note.fd, 0, (gid_t)-1), 0);
    }
    gp_lease_drop(&note);
}

/* Who has taken its name keeps nobody out. */
static void a_name_that_was_taken(void **state)
{
    (void)state;
    struct gp_lease lease = example(1);
    struct gp_leases leases;
    char expected[192];
    write_text(own_folder + strlen(tree_root), "");
    struct gp_lease_note note = write_lease(&lease);
    struct gp_lease other = example(2);
    struct gp_lease_note second = write_lease(&other);
    leases = read_all();
    assert_int_equal(leases.count, 2);
    (void)snprintf(expected, sizeof(expected), "%s.", own_folder);
    for (size_t i = 0; i < leases.count; i++)
        assert_ptr_equal(strstr(leases.items[i].path, expected), leases.items[i].path);
    gp_leases_fini(&leases);
    gp_lease_drop(&note);
    gp_lease_drop(&second);
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
        (void)snprintf(text, sizeof(text), "gpulse-lease 2\npid 1\nns 1\nshared 1\ngpu GPU-a\n%s\n",
                       cases[i].line);
        int fd = put(held_name, text);
        struct gp_leases leases = read_all();
        assert_int_equal(leases.count, 1);
        bool fits = leases.items[0].is_shared;
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
    struct gp_lease_note note = write_lease(&lease);
    struct gp_leases leases = read_all();
    assert_int_equal(leases.items[0].gpu_count, GP_LEASE_GPUS);
    assert_true(leases.items[0].is_shared);
    assert_true(gp_lease_has_gpu(&leases.items[0], lease.gpus[GP_LEASE_GPUS - 1]));
    gp_leases_fini(&leases);
    assert_true(lseek(note.fd, 0, SEEK_END) > 0);
    assert_int_equal(write(note.fd, "gpu x\n", 6), 6); /* one more */
    leases = read_all();
    assert_int_equal(leases.items[0].gpu_count, GP_LEASE_GPUS);
    assert_false(leases.items[0].is_shared);
    gp_leases_fini(&leases);
    gp_lease_drop(&note);
    lease.gpus[0][0] = '\0';
    assert_false(gp_lease_has_gpu(&lease, "")); /* one that does not tell who it is */
    assert_false(gp_lease_has_gpu(&lease, "GPU-x"));
}

static void as_many_as_a_user_may_have(void **state)
{
    (void)state;
    static struct gp_lease_note notes[GP_LEASES_PER_USER];
    struct gp_err err = {0};
    struct gp_lease_note more = GP_LEASE_NO_NOTE;
    for (size_t i = 0; i < GP_LEASES_PER_USER; i++) {
        struct gp_lease lease = example(i + 1);
        notes[i] = write_lease(&lease);
    }
    struct gp_lease lease = example(1000);
    assert_int_equal(gp_lease_write(&more, &lease, &err), GP_EIO);
    assert_non_null(strstr(err.text, "holds 256 reservations"));
    assert_int_equal(more.fd, -1);
    int fd = put("held.00000000000003e9", "gpulse-lease 2\npid 1\nns 1\ngpu GPU-a\n");
    assert_int_equal(count(), GP_LEASES_PER_USER);
    (void)close(fd);
    for (size_t i = 0; i < GP_LEASES_PER_USER; i++)
        gp_lease_drop(&notes[i]);
    assert_int_equal(gp_lease_write(&more, &lease, &err), 0);
    gp_lease_drop(&more);
}

static void only_what_is_ones_own_is_swept(void **state)
{
    (void)state;
    char path[256];
    (void)close(put("other", "x"));
    (void)close(put(held_name, "gpulse-lease 2\npid 5\n"));
    (void)close(put("new.0000000000000005", "")); /* just now: it may be being written */
    assert_int_equal(count(), 0);
    assert_false(is_there(held_name));
    assert_true(is_there("other"));
    assert_true(is_there("new.0000000000000005"));
    if (geteuid() != 0)
        return;
    (void)snprintf(path, sizeof(path), "%s/gpulse-%d", place, NOBODY);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chown(path, NOBODY, (gid_t)-1), 0);
    (void)snprintf(path, sizeof(path), "%s/gpulse-%d/%s", place, NOBODY, held_name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(fchown(fd, NOBODY, (gid_t)-1), 0);
    (void)close(fd);
    assert_int_equal(count(), 0);
    assert_int_equal(access(path, F_OK), 0);
}

/* Whatever the mask of who comes first: others must be able to read. */
static void others_can_read_what_is_made(void **state)
{
    (void)state;
    struct stat st;
    struct gp_lease lease = example(3);
    mode_t before = umask(0777);
    assert_int_equal(chmod(place, 01777), 0);
    struct gp_lease_note note = write_lease(&lease);
    (void)umask(before);
    assert_int_equal(stat(own_folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(fstat(note.fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    gp_lease_drop(&note);
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease lease = example(5);
    struct gp_lease_note note = GP_LEASE_NO_NOTE;
    (void)close(put("other", ""));
    assert_int_equal(mkdir(path_of(held_name), 0755), 0); /* in its place */
    assert_int_equal(gp_lease_write(&note, &lease, &err), GP_EIO);
    assert_non_null(strstr(err.text, "cannot write a reservation in '"));
    assert_int_equal(note.fd, -1);
    assert_false(is_there("new.0000000000000005"));
    (void)setenv("GPULSE_STATE_DIR", "/dev/null/x", 1);
    assert_int_equal(gp_lease_write(&note, &lease, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "GPULSE_STATE_DIR is '/dev/null/x': Not a directory"));
    assert_int_equal(count(), 0);
}

static void nothing_stays_open(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_lease lease = example(1);
    size_t before = open_file_count();
    struct gp_lease_note note = write_lease(&lease);
    assert_int_equal(gp_lease_write(&note, &lease, &err), 0); /* in its place */
    assert_int_equal(open_file_count(), before + 2);
    assert_int_equal(count(), 1);
    assert_int_equal(open_file_count(), before + 2);
    gp_lease_drop(&note);
    assert_int_equal(gp_io_random() == gp_io_random(), 0);
    assert_int_equal(open_file_count(), before);
}

static void without_memory(void **state)
{
    (void)state;
    struct gp_leases leases;
    struct gp_err err = {0};
    struct gp_lease lease = example(3);
    struct gp_lease_note note = write_lease(&lease);
    size_t before = open_file_count();
    bool refused = false;
    bool whole = false;
    for (long n = 0; n < 32 && !whole; n++) {
        alloc_fail_at(n);
        int r = gp_leases_read(&leases, &err);
        whole = alloc_count() <= n;
        alloc_fail_at(-1);
        refused = refused || r == GP_ENOMEM;
        if (r < 0) {
            assert_null(leases.items);
            assert_int_equal(leases.count, 0);
        }
        gp_leases_fini(&leases);
        assert_int_equal(open_file_count(), before);
    }
    assert_true(whole);
    assert_true(refused);
    gp_lease_drop(&note);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, set_place, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(what_is_written_is_read),
        IN_PLACE(the_first_who_asked_comes_first),
        IN_PLACE(one_that_waits_and_then_has_its_gpus),
        IN_PLACE(two_who_hold_one_gpu),
        IN_PLACE(who_need_not_look),
        IN_PLACE(who_may_overtake),
        IN_PLACE(the_position_in_the_line),
        IN_PLACE(a_lease_ends_with_its_process),
        IN_PLACE(who_comes_later_is_heard_of),
        IN_PLACE(hostile_files),
        IN_PLACE(what_is_not_understood),
        IN_PLACE(locks_of_others),
        IN_PLACE(a_file_that_was_removed),
        IN_PLACE(a_removed_file_that_was_seen),
        IN_PLACE(a_lease_names_processes_of_its_owner_only),
        IN_PLACE(who_is_stopped_is_not_waited_for),
        IN_PLACE(folders_and_files_of_others),
        IN_PLACE(a_name_that_was_taken),
        IN_PLACE(bounds_of_what_is_read),
        IN_PLACE(as_many_gpus_as_there_is_room_for),
        IN_PLACE(as_many_as_a_user_may_have),
        IN_PLACE(only_what_is_ones_own_is_swept),
        IN_PLACE(others_can_read_what_is_made),
        IN_PLACE(what_cannot_be_written),
        IN_PLACE(nothing_stays_open),
        IN_PLACE(without_memory),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
