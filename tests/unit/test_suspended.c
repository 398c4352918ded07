/* Notes about suspended processes. */
#include "unit.h"

#include "base/err.h"
#include "base/statedir.h"
#include "jobs/suspend.h"
#include "proc/suspended.h"
#include "proc_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PID = 77, START = 4711 };

static const struct gp_suspended example = {
    .pid = PID,
    .start_ticks = START,
    .gpus = {{"GPU-a", 10}, {"GPU-b", 20}},
    .gpu_count = 2,
};

static char own_folder[64];

/* A root of its own, in which the process runs. */
static void make_machine(void)
{
    write_text("/tmp/x", "");
    (void)snprintf(own_folder, sizeof(own_folder), "/tmp/gpulse-%u", (unsigned)geteuid());
    write_stat(PID, "python", 0, START, 1);
}

static void note(const struct gp_suspended *s)
{
    struct gp_err err = {0};
    int fd;
    if (gp_suspended_take(tree_root, s, &fd, &err) < 0 || gp_suspended_write(fd, s, &err) < 0)
        fail_msg("%s", err.text);
    (void)close(fd);
}

static size_t count(void)
{
    struct gp_suspended_list list;
    assert_int_equal(gp_suspended_read(tree_root, &list, NULL), 0);
    size_t n = list.count;
    gp_suspended_fini(&list);
    return n;
}

static void what_is_noted_is_read(void **state)
{
    (void)state;
    struct gp_suspended_list list;
    make_machine();
    assert_int_equal(count(), 0);
    note(&example);
    assert_int_equal(gp_suspended_read(tree_root, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    const struct gp_suspended *s = gp_suspended_find(&list, PID);
    assert_non_null(s);
    assert_null(gp_suspended_find(&list, PID + 1));
    assert_int_equal(s->start_ticks, START);
    assert_int_equal(s->gpu_count, 2);
    assert_string_equal(s->gpus[1].uuid, "GPU-b");
    assert_int_equal(s->gpus[1].bytes, 20);
    gp_suspended_fini(&list);
    assert_int_equal(gp_suspended_forget(tree_root, &example, -1, NULL), 0);
    assert_int_equal(count(), 0);
}

static void a_later_process_with_its_pid_is_another_one(void **state)
{
    (void)state;
    make_machine();
    note(&example);
    write_stat(PID, "python", 0, START + 1, 1);
    assert_int_equal(count(), 0);
    /* the next note takes away what is over */
    struct gp_suspended later = example;
    later.start_ticks++;
    note(&later);
    assert_int_equal(count(), 1);
    write_stat(PID, "python", 0, START, 1);
    assert_int_equal(count(), 0);
}

static char note_name[128];

/* What stands in the note instead. */
static void write_note(const char *ns, const char *rest)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "ns %s\n%s", ns, rest);
    write_text(note_name, text);
}

static void what_is_no_note_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "gpu GPU-a\n",
        "gpu GPU-a -1\n",
        "gpu GPU-a 99999999999999999999\n",
        "gpu GPU-a 9223372036854775807\n",
        "gpu GPU-a 1\ngpu GPU-a 1\n",
        "nonsense\n",
    };
    struct stat st;
    char ns[32];
    make_machine();
    note(&example); /* makes the folder */
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    (void)snprintf(ns, sizeof(ns), "%llu", (unsigned long long)st.st_ino);
    (void)snprintf(note_name, sizeof(note_name), "%s/suspended.%d.%d", own_folder, PID, START);
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        write_note(ns, texts[i]);
        assert_int_equal(count(), 0);
    }
    write_note("7", "gpu GPU-a 1\n"); /* another namespace's pid */
    assert_int_equal(count(), 0);
    write_note(ns, "gpu GPU-a 1\n");
    assert_int_equal(count(), 1);
    static const char *const names[] = {"suspended.77", "suspended.x.4711", "other",
                                        "suspended.077.4711", "suspended.77.04711"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        (void)snprintf(note_name, sizeof(note_name), "%s/%s", own_folder, names[i]);
        write_note(ns, "gpu GPU-a 1\n");
        assert_int_equal(count(), 1);
    }
}

/* In a folder where all may make files somebody may have made these. */
static void files_of_others_and_other_files(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    char path[256];
    char target[128];
    make_machine();
    note(&example);
    (void)snprintf(path, sizeof(path), "%s%s/suspended.%d.%d", tree_root, own_folder, PID, START);
    (void)snprintf(target, sizeof(target), "%s/tmp/moved", tree_root);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, NOBODY, NOBODY), 0);
        assert_int_equal(count(), 0);
        assert_int_equal(chown(path, 0, 0), 0);
        assert_int_equal(count(), 1);
    }
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(count(), 0);
    struct gp_err err = {0};
    int fd;
    assert_int_not_equal(gp_suspended_take(tree_root, &example, &fd, &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(count(), 0); /* and nothing waits for a writer */
    assert_int_not_equal(gp_suspended_take(tree_root, &example, &fd, &err), 0);
}

enum { ANN = 65533, BOB = 65532 };

static bool are_users_there(void)
{
    char process[128];
    if (geteuid() != 0)
        return false;
    make_machine();
    assert_int_equal(chmod(tree_root, 0755), 0);
    (void)snprintf(process, sizeof(process), "%s/tmp", tree_root);
    assert_int_equal(chmod(process, 01777), 0);
    (void)snprintf(process, sizeof(process), "%s/proc/%d", tree_root, PID);
    assert_int_equal(chmod(process, 0755), 0);
    (void)snprintf(process, sizeof(process), "%s/proc", tree_root);
    return chmod(process, 0755) == 0;
}

static void process_is_of(uid_t uid)
{
    char process[128];
    (void)snprintf(process, sizeof(process), "%s/proc/%d", tree_root, PID);
    assert_int_equal(chown(process, uid, (gid_t)-1), 0);
}

static void note_by(uid_t uid, const struct gp_suspended *s)
{
    assert_int_equal(seteuid(uid), 0);
    note(s);
    assert_int_equal(seteuid(0), 0);
}

static void forget_by(uid_t uid)
{
    struct gp_err err = {0};
    int fd;
    assert_int_equal(seteuid(uid), 0);
    int r = gp_suspended_take(tree_root, &example, &fd, &err);
    if (r == 0) {
        r = gp_suspended_forget(tree_root, &example, fd, &err);
        (void)close(fd);
    }
    assert_int_equal(seteuid(0), 0);
    if (r < 0)
        fail_msg("%s", err.text);
}

static void the_owner_of_a_process_may_note_it(void **state)
{
    (void)state;
    static const struct {
        uid_t process, note;
        bool counts;
    } cases[] = {
        {ANN, ANN, true}, {ANN, 0, true}, {ANN, BOB, false}, {0, 0, true}, {0, ANN, false},
    };
    if (!are_users_there()) {
        print_message("only root can become others\n");
        skip();
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        process_is_of(cases[i].process);
        note_by(cases[i].note, &example);
        if (count() != cases[i].counts)
            fail_msg("a note of %u about a process of %u %s", cases[i].note, cases[i].process,
                     cases[i].counts ? "does not count" : "counts");
        forget_by(0); /* all of them, whosever they are */
        forget_by(cases[i].note);
        assert_int_equal(count(), 0);
    }
}

/* What root has written no other user can change: not even the process's owner, who can say that it
 * runs again; what is said later counts. */
static void roots_notes_are_roots(void **state)
{
    (void)state;
    struct gp_suspended less = example;
    struct gp_suspended_list list;
    struct stat st;
    char path[256];
    less.gpus[0].bytes = 1;
    if (!are_users_there()) {
        print_message("only root can become others\n");
        skip();
    }
    process_is_of(ANN);
    note_by(0, &example);
    (void)snprintf(path, sizeof(path), "%s%s/suspended.%d.%d", tree_root, own_folder, PID, START);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    (void)poll(NULL, 0, 30);
    note_by(BOB, &less);
    assert_int_equal(gp_suspended_read(tree_root, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].gpus[0].bytes, 10);
    gp_suspended_fini(&list);
    forget_by(ANN); /* it runs again */
    assert_int_equal(count(), 0);
    assert_int_equal(access(path, F_OK), 0);
    (void)poll(NULL, 0, 30);
    note_by(0, &example); /* and root suspends it once more */
    assert_int_equal(count(), 1);
    forget_by(0);
    assert_int_equal(count(), 0);
}

/* Root and the owner of a process do not move it at the same time; a stranger's lock keeps nobody
 * off. */
static void one_at_a_time_whoever_it_is(void **state)
{
    (void)state;
    struct gp_err err = {0};
    int first;
    int second;
    if (!are_users_there()) {
        print_message("only root can become others\n");
        skip();
    }
    process_is_of(ANN);
    assert_int_equal(gp_suspended_take(tree_root, &example, &first, &err), 0);
    assert_int_equal(seteuid(ANN), 0);
    int r = gp_suspended_take(tree_root, &example, &second, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(r, GP_EFAIL);
    (void)close(first);
    assert_int_equal(seteuid(BOB), 0);
    r = gp_suspended_take(tree_root, &example, &first, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(r, 0);
    assert_int_equal(gp_suspended_take(tree_root, &example, &second, &err), 0);
    (void)close(first);
    (void)close(second);
}

static void only_one_has_a_note(void **state)
{
    (void)state;
    struct gp_err err = {0};
    int first;
    int second;
    make_machine();
    assert_int_equal(gp_suspended_take(tree_root, &example, &first, &err), 0);
    assert_int_equal(gp_suspended_take(tree_root, &example, &second, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "another gpulse"));
    (void)close(first);
    assert_int_equal(gp_suspended_take(tree_root, &example, &second, &err), 0);
    (void)close(second);
}

static int files_named(const char *prefix)
{
    char path[256];
    int n = 0;
    const struct dirent *entry;
    (void)snprintf(path, sizeof(path), "%s%s", tree_root, own_folder);
    DIR *listing = opendir(path);
    while (listing && (entry = readdir(listing)))
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (listing)
        (void)closedir(listing);
    return n;
}

/* Everybody may read a note, and keep a reader's lock on it for ever. */
static void locks_of_readers_do_not_count(void **state)
{
    (void)state;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    struct rlimit limit;
    struct gp_err err = {0};
    char path[256];
    int first;
    int second;
    make_machine();
    note(&example);
    (void)snprintf(path, sizeof(path), "%s%s/suspended.%d.%d", tree_root, own_folder, PID, START);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(fcntl(reader, F_OFD_SETLK, &lock), 0);
    /* without room for a copy the note stays as it is */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int r = gp_suspended_take(tree_root, &example, &first, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(r, GP_EIO);
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(files_named("new."), 0);
    assert_int_equal(count(), 1);
    /* with it the note has another file, and nobody else takes it */
    assert_int_equal(gp_suspended_take(tree_root, &example, &first, &err), 0);
    assert_int_equal(gp_suspended_take(tree_root, &example, &second, &err), GP_EFAIL);
    assert_int_equal(count(), 1);
    assert_int_equal(files_named("new."), 0);
    assert_int_equal(gp_suspended_forget(tree_root, &example, first, &err), 0);
    (void)close(first);
    assert_int_equal(count(), 0); /* the reader's lock does not keep it */
    (void)close(reader);
}

static void a_folder_that_others_may_change_is_not_used(void **state)
{
    (void)state;
    struct gp_err err = {0};
    char path[128];
    make_machine();
    note(&example);
    (void)snprintf(path, sizeof(path), "%s/tmp", tree_root);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(count(), 0);
    int fd;
    assert_int_equal(gp_suspended_take(tree_root, &example, &fd, &err), GP_EPERM);
    assert_non_null(strstr(err.text, "1777"));
    assert_int_equal(chmod(path, 01777), 0);
    assert_int_equal(count(), 1);
}

static void too_many_gpus(void **state)
{
    (void)state;
    struct gp_suspended many = example;
    make_machine();
    many.gpu_count = GP_SUSPENDED_GPUS;
    for (size_t i = 0; i < many.gpu_count; i++)
        (void)snprintf(many.gpus[i].uuid, sizeof(many.gpus[i].uuid), "GPU-%090zu", i);
    note(&many);
    assert_int_equal(count(), 1);
}

static void a_folder_that_was_told(void **state)
{
    (void)state;
    char path[128];
    make_machine();
    (void)snprintf(path, sizeof(path), "%s/own", tree_root);
    (void)setenv("GPULSE_STATE_DIR", path, 1);
    assert_int_equal(mkdir(path, 0700), 0);
    note(&example);
    assert_int_equal(count(), 1);
    (void)unsetenv("GPULSE_STATE_DIR");
    assert_int_equal(count(), 0);
}

/* ---- whether main memory has room ---- */

/* 300 MiB on two GPUs, and 100 on one: with 256 to spare, 656. */
static const struct gp_suspended two[] = {
    {.pid = PID, .gpus = {{"GPU-a", 100 << 20}, {"GPU-b", 200 << 20}}, .gpu_count = 2},
    {.pid = PID + 1, .gpus = {{"GPU-a", 100 << 20}}, .gpu_count = 1},
};

static void available_is(unsigned kib)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "MemAvailable: %u kB\n", kib);
    write_text("/proc/meminfo", text);
}

static void room_for_all_and_some_to_spare(void **state)
{
    (void)state;
    struct gp_err err = {0};
    available_is(656 << 10);
    assert_int_equal(gp_suspend_check_room(tree_root, two, 2, &err), 0);
    available_is((656 << 10) - 1);
    assert_int_equal(gp_suspend_check_room(tree_root, two, 2, &err), GP_EFAIL);
    assert_string_equal(err.text,
                        "656 MiB of host memory needed, but process 77 can use only 656 MiB");
    available_is(556 << 10);
    assert_int_equal(gp_suspend_check_room(tree_root, two, 1, &err), 0);
    assert_int_equal(gp_suspend_check_room(tree_root, two, 2, &err), GP_EFAIL);
    assert_int_equal(gp_suspend_check_room(tree_root, two, 0, &err), 0);
}

/* The limit of a control group of any of them counts for all: they may be in the same. */
static void room_in_the_group_of_each(void **state)
{
    (void)state;
    struct gp_err err = {0};
    available_is(64 << 20);
    write_pid(PID + 1, "cgroup", "0::/job\n", 8);
    write_text("/sys/fs/cgroup/job/memory.current", "0\n");
    write_text("/sys/fs/cgroup/job/memory.max", "687865856\n"); /* 656 MiB */
    assert_int_equal(gp_suspend_check_room(tree_root, two, 2, &err), 0);
    write_text("/sys/fs/cgroup/job/memory.current", "1048576\n");
    assert_int_equal(gp_suspend_check_room(tree_root, two, 2, &err), GP_EFAIL);
    assert_string_equal(err.text,
                        "656 MiB of host memory needed, but process 78 can use only 655 MiB");
}

/* As in a chroot where nobody has mounted it: nothing is known of the processes. */
static void without_proc(void **state)
{
    (void)state;
    char proc[128];
    char elsewhere[128];
    make_machine();
    note(&example);
    size_t before = open_file_count();
    assert_int_equal(count(), 1);
    (void)snprintf(proc, sizeof(proc), "%s/proc", tree_root);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", tree_root);
    assert_int_equal(rename(proc, elsewhere), 0);
    assert_int_equal(count(), 0);
    assert_int_equal(open_file_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_noted_is_read),
        TEST(a_later_process_with_its_pid_is_another_one),
        TEST(what_is_no_note_is_passed_over),
        TEST(files_of_others_and_other_files),
        TEST(only_one_has_a_note),
        TEST(a_folder_that_others_may_change_is_not_used),
        TEST(too_many_gpus),
        TEST(without_proc),
        TEST(a_folder_that_was_told),
        TEST(the_owner_of_a_process_may_note_it),
        TEST(roots_notes_are_roots),
        TEST(one_at_a_time_whoever_it_is),
        TEST(locks_of_readers_do_not_count),
        TEST(room_for_all_and_some_to_spare),
        TEST(room_in_the_group_of_each),
    };
    (void)unsetenv("GPULSE_STATE_DIR");
    return cmocka_run_group_tests_name("suspended", tests, NULL, NULL);
}
