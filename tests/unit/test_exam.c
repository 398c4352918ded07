/* The frame of the doctor: files below a root, what they say of the machine, the order of checks.
 */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "doctor/checks/all.h"
#include "doctor/exam.h"
#include "doctor/version.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[256];

/* ---- a file system that does not respond ---- */

static const char *_Atomic silent; /* nobody comes back who opens a path that begins so */
static _Atomic int waiting;
static _Atomic int renames; /* as many times the kernel asks to try again, as after a rename */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    long arg[6];
    va_list args;
    va_start(args, number);
    for (size_t i = 0; i < GP_ARRAY_LEN(arg); i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    const char *prefix = silent;
    if (number == SYS_openat2 && prefix &&
        strncmp((const char *)arg[1], prefix, strlen(prefix)) == 0) {
        waiting++;
        for (;;)
            (void)pause();
    }
    if (number == SYS_openat2 && renames > 0) {
        renames--;
        errno = EAGAIN;
        return -1;
    }
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- a system that starts no threads ---- */

static bool has_no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg)
{
    return has_no_threads ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

/* ---- */

static void make_folders(char *path)
{
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
}

static void put(const char *path, const char *text, size_t size)
{
    char whole[512];
    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    make_folders(whole);
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
    char whole[512];
    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    make_folders(whole);
    assert_int_equal(symlink(target, whole), 0);
}

static int begin(void **state)
{
    (void)state;
    temporary_name(root, sizeof(root), "exam");
    return mkdtemp(root) ? 0 : -1;
}

static int finish(void **state)
{
    char command[300];
    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command);
}

/* ---- files ---- */

static struct gp_files opened(void)
{
    struct gp_files files;
    assert_int_equal(gp_files_open(&files, root, NULL), 0);
    return files;
}

static void links_stay_below_the_root(void **state)
{
    char buf[64], path[GP_PATH_SIZE];
    (void)state;
    put_text("/usr/lib/libcuda.so.570.1", "it");
    put_link("/usr/lib/libcuda.so.1", "libcuda.so.570.1");
    put_link("/lib", "/usr/lib");
    put_link("/etc/far", "../../../../../../../usr/lib/libcuda.so.570.1");
    put_link("/etc/passwd", "/etc/shadow");
    put_link("/etc/loop", "loop");
    struct gp_files files = opened();
    assert_int_equal(gp_files_read(&files, "/lib/libcuda.so.1", buf, sizeof(buf)), 2);
    assert_string_equal(buf, "it");
    assert_int_equal(gp_files_read(&files, "/etc/far", buf, sizeof(buf)), 2);
    assert_int_equal(gp_files_read(&files, "/etc/passwd", buf, sizeof(buf)), -ENOENT);
    assert_int_equal(gp_files_read(&files, "/etc/loop", buf, sizeof(buf)), -ELOOP);
    assert_int_equal(gp_files_read(&files, "/../../../../etc/passwd", buf, sizeof(buf)), -ENOENT);
    assert_true(gp_files_real(&files, "/lib/libcuda.so.1", path));
    assert_string_equal(path, "/usr/lib/libcuda.so.570.1");
    assert_true(gp_files_link(&files, "/lib/libcuda.so.1", path));
    assert_string_equal(path, "libcuda.so.570.1");
    assert_false(gp_files_link(&files, "/usr/lib/libcuda.so.570.1", path));
    assert_false(gp_files_real(&files, "/etc/loop", path));
    assert_true(gp_files_exist(&files, "/lib"));
    assert_false(gp_files_exist(&files, "/etc/passwd"));
    gp_files_close(&files);
}

static void others_rename_their_files(void **state)
{
    char buf[64];
    (void)state;
    put_text("/sys/devices/pci0/vendor", "0x10de");
    put_link("/sys/bus/pci/devices/gpu", "../../../devices/pci0");
    struct gp_files files = opened();
    renames = 3;
    assert_int_equal(gp_files_read(&files, "/sys/bus/pci/devices/gpu/vendor", buf, sizeof(buf)), 6);
    assert_int_equal(renames, 0);
    renames = INT_MAX; /* somebody who does nothing else */
    assert_int_equal(gp_files_read(&files, "/sys/bus/pci/devices/gpu/vendor", buf, sizeof(buf)),
                     -EAGAIN);
    renames = 0;
    gp_files_close(&files);
}

/* ---- files that change while they are looked at ---- */

static _Atomic bool swapping;

static void *swap_files(void *folder)
{
    char names[3][300];
    (void)snprintf(names[0], sizeof(names[0]), "%s/fifo", (const char *)folder);
    (void)snprintf(names[1], sizeof(names[1]), "%s/good", (const char *)folder);
    (void)snprintf(names[2], sizeof(names[2]), "%s/next", (const char *)folder);
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/file", (const char *)folder);
    for (unsigned i = 0; atomic_load(&swapping); i++)
        if (link(names[i % 2], names[2]) == 0)
            (void)rename(names[2], file);
    return NULL;
}

/* What somebody swaps in between the look and the opening is not opened, if it is no file: that of
 * a device may start something. */
static void what_is_looked_at_is_what_is_opened(void **state)
{
    (void)state;
    char path[300];
    char events[4096];
    pthread_t thread;
    struct gp_files files;
    unsigned good = 0;
    put_text("/good", "x");
    put_text("/file", "x");
    (void)snprintf(path, sizeof(path), "%s/fifo", root);
    assert_int_equal(mkfifo(path, 0600), 0);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0); /* not told of O_PATH */
    assert_int_equal(gp_files_open(&files, root, NULL), 0);
    atomic_store(&swapping, true);
    assert_int_equal(pthread_create(&thread, NULL, swap_files, root), 0);
    for (int i = 0; i < 5000 || (good == 0 && i < 5000000); i++) {
        int fd = gp_files_open_file(&files, "/file");
        good += fd >= 0;
        if (fd >= 0)
            (void)close(fd);
    }
    atomic_store(&swapping, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    gp_files_close(&files);
    assert_true(good > 0);
    assert_int_equal(read(watch, events, sizeof(events)), -1);
    (void)close(watch);
}

static void nothing_is_waited_for(void **state)
{
    char buf[64], whole[512];
    struct gp_arena arena = {0};
    (void)state;
    put_text("/etc/file", "x");
    (void)snprintf(whole, sizeof(whole), "%s/etc/pipe", root);
    assert_int_equal(mkfifo(whole, 0644), 0);
    struct gp_files files = opened();
    assert_int_equal(gp_files_read(&files, "/etc/pipe", buf, sizeof(buf)), -EINVAL);
    assert_int_equal(gp_files_read(&files, "/etc", buf, sizeof(buf)), -EISDIR);
    assert_null(gp_files_text(&files, &arena, "/etc/pipe", 100, NULL));
    gp_files_close(&files);
    gp_arena_fini(&arena);
}

static void whole_files_and_parts(void **state)
{
    static char large[20000];
    struct gp_arena arena = {0};
    char buf[8], **names;
    size_t size;
    const void *data;
    (void)state;
    memset(large, 'a', sizeof(large));
    put("/large", large, sizeof(large));
    put_text("/line", "580.95.05 \t\r\nmore");
    put_text("/empty", "");
    put_text("/names/b", "");
    put_text("/names/a", "");
    put_text("/names/\xff", "");
    struct gp_files files = opened();
    assert_int_equal(gp_files_read(&files, "/large", buf, sizeof(buf)), 7);
    assert_int_equal(strlen(gp_files_text(&files, &arena, "/large", 1 << 20, &size)), 20000);
    assert_int_equal(size, 20000);
    assert_non_null(gp_files_text(&files, &arena, "/large", 5000, &size));
    assert_int_equal(size, 5000);
    assert_true(gp_files_line(&files, "/line", large, 100));
    assert_string_equal(large, "580.95.05");
    assert_true(gp_files_line(&files, "/empty", large, 100));
    assert_string_equal(large, "");
    assert_int_equal(gp_files_list(&files, &arena, "/names", &names), 3);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[2], "\xff");
    assert_int_equal(gp_files_list(&files, &arena, "/line", &names), -ENOTDIR);
    assert_true(gp_files_map(&files, "/large", &data, &size));
    assert_int_equal(size, 20000);
    assert_false(gp_files_map(&files, "/empty", &data, &size));
    gp_files_close(&files);
    gp_arena_fini(&arena);
}

/* What is not below the name that the root had is not told by a name below it. */
static void a_root_that_is_moved(void **state)
{
    char path[GP_PATH_SIZE] = "", moved[300];
    (void)state;
    put_text("/etc/file", "x");
    struct gp_files files = opened();
    assert_true(gp_files_real(&files, "/etc/file", path));
    assert_string_equal(path, "/etc/file");
    assert_true(gp_files_real(&files, "/", path));
    assert_string_equal(path, "/");
    (void)snprintf(moved, sizeof(moved), "%s", root);
    moved[strlen(moved) - 1] = '~';
    assert_int_equal(rename(root, moved), 0);
    assert_false(gp_files_real(&files, "/etc/file", path));
    gp_files_close(&files);
    assert_int_equal(rename(moved, root), 0);
}

static void roots_that_are_none(void **state)
{
    struct gp_files files;
    struct gp_err err = {0};
    (void)state;
    assert_int_equal(gp_files_open(&files, "/nowhere/at/all", &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_int_equal(gp_files_open(&files, "/dev/null", &err), GP_EUSAGE);
}

/* ---- the machine ---- */

static struct gp_machine machine_of(struct gp_arena *arena)
{
    struct gp_machine machine;
    struct gp_files files = opened();
    gp_machine_read(&machine, &files, arena);
    gp_files_close(&files);
    return machine;
}

static void distributions(void **state)
{
    static const struct {
        const char *text;
        enum gp_distro distro;
    } cases[] = {
        {"ID=ubuntu\nID_LIKE=debian\n", GP_DISTRO_UBUNTU},
        {"NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", GP_DISTRO_UBUNTU},
        {"ID=pop\nID_LIKE=\"ubuntu debian\"", GP_DISTRO_UBUNTU},
        {"ID='debian'\r\n", GP_DISTRO_DEBIAN},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", GP_DISTRO_RHEL},
        {"ID=fedora\n", GP_DISTRO_FEDORA},
        {"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", GP_DISTRO_SUSE},
        {"ID=endeavouros\nID_LIKE=arch\n", GP_DISTRO_ARCH},
        {"ID=nobara\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=42\n", GP_DISTRO_FEDORA},
        {"ID=eurolinux\nID_LIKE=\"rhel fedora centos\"\nVERSION_ID=\"9.4\"\n", GP_DISTRO_RHEL},
        /* like another one, without its packages */
        {"ID=manjaro\nID_LIKE=arch\n", GP_DISTRO_OTHER},
        {"ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n", GP_DISTRO_OTHER},
        {"ID=\"sles\"\nID_LIKE=\"suse\"\nVERSION_ID=\"15.6\"\n", GP_DISTRO_OTHER},
        {"ID=nixos\n", GP_DISTRO_OTHER},
        {"ID=\n", GP_DISTRO_OTHER},
        {"\0\xff\xfe=", GP_DISTRO_OTHER},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_arena arena = {0};
        put_text("/etc/os-release", cases[i].text);
        assert_int_equal(machine_of(&arena).distro, cases[i].distro);
        gp_arena_fini(&arena);
    }
}

static void drivers(void **state)
{
    static const struct {
        const char *text, *version;
        bool is_open;
    } cases[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct  6 21:38:55 UTC 2022\n"
         "GCC version:  gcc version 11.3.0 (Ubuntu)\n",
         "520.56.06", false},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  "
         "(dvs-builder@U16-I3-B03-4-3)  Tue Jun 25 01:26:03 UTC 2024\n",
         "555.58.02", true},
        {"NVRM version: NVIDIA UNIX Kernel Module", "", false},
        {"", "", false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_arena arena = {0};
        put_text("/proc/driver/nvidia/version", cases[i].text);
        struct gp_machine machine = machine_of(&arena);
        assert_string_equal(machine.driver, cases[i].version);
        assert_int_equal(machine.is_driver_open, cases[i].is_open);
        gp_arena_fini(&arena);
    }
}

static void variables(void **state)
{
    static const char environment[] = "AB=1\0A=2\0EMPTY=\0LAST=x";
    struct gp_arena arena = {0};
    (void)state;
    put("/proc/self/environ", environment, sizeof(environment) - 1);
    struct gp_machine machine = machine_of(&arena);
    assert_string_equal(gp_machine_variable(&machine, "A"), "2");
    assert_string_equal(gp_machine_variable(&machine, "EMPTY"), "");
    assert_string_equal(gp_machine_variable(&machine, "LAST"), "x");
    assert_null(gp_machine_variable(&machine, "B"));
    gp_arena_fini(&arena);
}

static void versions(void **state)
{
    (void)state;
    assert_true(gp_version_compare("570.124.06", "570.124.4") > 0);
    assert_int_equal(gp_version_compare("12.4", "12.4.0"), 0);
    assert_true(gp_version_compare("9.1", "10.0") < 0);
    assert_int_equal(gp_version_compare("2.7.1+cu128", "2.7.1"), 0);
    assert_true(gp_version_compare("", "1") < 0);
    assert_int_equal(gp_version_compare("x", "y"), 0);
    assert_int_equal(gp_version_major("580.65.06"), 580);
    assert_int_equal(gp_version_major("R580"), 0);
}

/* ---- checks ---- */

static void every_need_is_a_check_above(void **state)
{
    (void)state;
    for (size_t i = 0; gp_check_at(&gp_checks_all, i); i++) {
        const struct gp_check *check = gp_check_at(&gp_checks_all, i);
        assert_non_null(check->title);
        assert_non_null(check->run);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(check->id, gp_check_at(&gp_checks_all, k)->id);
        for (size_t n = 0; n < GP_CHECK_NEEDS && check->needs[n]; n++) {
            bool is_above = false;
            for (size_t k = 0; k < i; k++)
                is_above =
                    is_above || strcmp(gp_check_at(&gp_checks_all, k)->id, check->needs[n]) == 0;
            if (!is_above)
                fail_msg("%s needs %s, which is no check above it", check->id, check->needs[n]);
        }
        assert_true(i < GP_EXAM_CHECKS);
    }
}

/* A remedy has no more than two arguments, and none of another distribution's managers. */
static void remedies(void **state)
{
    static const char *const managers[GP_DISTRO__COUNT][4] = {
        [GP_DISTRO_DEBIAN] = {"apt", "dpkg"},     [GP_DISTRO_UBUNTU] = {"apt", "dpkg"},
        [GP_DISTRO_FEDORA] = {"dnf", "akmods"},   [GP_DISTRO_RHEL] = {"dnf"},
        [GP_DISTRO_ARCH] = {"pacman", "makepkg"}, [GP_DISTRO_SUSE] = {"zypper"},
    };
    (void)state;
    for (size_t r = 0; r < GP_REMEDY__COUNT; r++) {
        const struct gp_remedy_row *row = &gp_remedies[r];
        assert_true(row->note && row->note[0]);
        for (size_t d = 0; d < GP_DISTRO__COUNT; d++) {
            const char *commands = row->commands[d];
            for (size_t other = 0; commands && other < GP_DISTRO__COUNT; other++)
                for (size_t m = 0; m < 4 && managers[other][m]; m++) {
                    char word[32];
                    bool is_own = false;
                    for (size_t own = 0; own < 4 && managers[d][own]; own++)
                        is_own = is_own || strcmp(managers[d][own], managers[other][m]) == 0;
                    (void)snprintf(word, sizeof(word), "sudo %s ", managers[other][m]);
                    if (!is_own && strstr(commands, word))
                        fail_msg("%s proposes '%s' for %s", row->id, word,
                                 gp_distro_word((enum gp_distro)d));
                }
        }
    }
}

static struct gp_exam *examined(const char *only, const char *without)
{
    static struct gp_exam exam;
    assert_int_equal(gp_exam_open(&exam, &gp_checks_all, root, NULL), 0);
    gp_exam_run(&exam, only, without);
    return &exam;
}

static size_t run_count(const struct gp_exam *exam)
{
    size_t count = 0;
    for (size_t i = 0; gp_check_at(&gp_checks_all, i); i++)
        count += exam->outcomes[i].is_run;
    return count;
}

static void put_wsl(void)
{
    put_text("/etc/os-release", "ID=debian\n");
    put_text("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
}

static void a_failure_has_those_that_need_it_skipped(void **state)
{
    (void)state;
    put_wsl();
    struct gp_exam *exam = examined("platform", NULL);
    const struct gp_finding *first = gp_exam_first(exam);
    assert_int_equal(run_count(exam), 2);
    assert_string_equal(first->check->id, "platform.wsl");
    assert_int_equal(first->verdict, GP_VERDICT_FAIL);
    assert_int_equal(first->next->verdict, GP_VERDICT_SKIP);
    assert_ptr_equal(first->next->because, first->check);
    assert_null(first->next->next);
    gp_exam_close(exam);
}

static void without_threads_it_runs_all_the_same(void **state)
{
    (void)state;
    put_wsl();
    has_no_threads = true;
    struct gp_exam *exam = examined("platform", NULL);
    has_no_threads = false;
    assert_int_equal(run_count(exam), 2);
    assert_string_equal(gp_exam_first(exam)->check->id, "platform.wsl");
    gp_exam_close(exam);
}

static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

/* Every way to read a file closes it again. */
static void nothing_is_left_open(void **state)
{
    char buf[64], path[GP_PATH_SIZE], **names;
    struct gp_arena arena = {0};
    struct stat st;
    const void *data;
    size_t size;
    (void)state;
    put_text("/etc/file", "x\ny\n");
    put_link("/etc/link", "file");
    int before = lowest_free();
    struct gp_files files = opened();
    int within = lowest_free();
    for (int i = 0; i < 2; i++) {
        const char *file = i == 0 ? "/etc/file" : "/etc/link";
        assert_int_equal(gp_files_read(&files, file, buf, sizeof(buf)), 4);
        assert_int_equal(gp_files_read(&files, file, buf, 2), 1);
        assert_true(gp_files_read(&files, "/etc", buf, sizeof(buf)) < 0);
        assert_true(gp_files_line(&files, file, buf, sizeof(buf)));
        assert_non_null(gp_files_text(&files, &arena, file, 100, &size));
        assert_null(gp_files_text(&files, &arena, "/etc", 100, &size));
        assert_non_null(gp_files_tail(&files, &arena, file, 3, &size));
        assert_int_equal(gp_files_stat(&files, file, &st), 0);
        assert_true(gp_files_exist(&files, file));
        assert_true(gp_files_real(&files, file, path));
        assert_int_equal(gp_files_link(&files, file, path), i);
        assert_int_equal(gp_files_list(&files, &arena, "/etc", &names), 2);
        assert_true(gp_files_list(&files, &arena, file, &names) < 0);
        assert_true(gp_files_map(&files, file, &data, &size));
        (void)munmap((void *)(uintptr_t)data, size);
        assert_false(gp_files_map(&files, "/etc", &data, &size));
        assert_int_equal(lowest_free(), within);
    }
    gp_files_close(&files);
    assert_int_equal(lowest_free(), before);
    gp_arena_fini(&arena);
}

static void checks_are_chosen(void **state)
{
    (void)state;
    put_wsl();
    struct gp_exam *exam = examined("platform.wsl-shadow", NULL);
    assert_int_equal(run_count(exam), 1);
    assert_int_equal(exam->findings->verdict, GP_VERDICT_OK);
    assert_string_equal(exam->findings->check->id, "platform.wsl-shadow");
    gp_exam_close(exam);
    exam = examined("platform", "platform.wsl");
    assert_int_equal(run_count(exam), 1);
    gp_exam_close(exam);
}

/* What a file says never becomes a command of its own. */
static void words_are_quoted(void **state)
{
    static struct gp_exam exam;
    (void)state;
    put_text("/etc/os-release", "ID=ubuntu\n");
    assert_int_equal(gp_exam_open(&exam, &gp_checks_all, root, NULL), 0);
    assert_string_equal(gp_exam_quoted(&exam, "/home/ada/venv-3.11"), "/home/ada/venv-3.11");
    assert_string_equal(gp_exam_quoted(&exam, "a b"), "'a b'");
    assert_string_equal(gp_exam_quoted(&exam, "x'; rm -rf ~ #"), "'x'\\''; rm -rf ~ #'");
    assert_string_equal(gp_exam_quoted(&exam, ""), "''");
    gp_exam_report(&exam, GP_VERDICT_FAIL, "a finding");
    gp_exam_remedy(&exam, GP_REMEDY_INSTALL_HEADERS, "6.8.0-45-generic", NULL);
    gp_exam_remedy(&exam, GP_REMEDY_INSTALL_HEADERS, "6.8;reboot", NULL);
    const struct gp_fix *fix = exam.last->fixes;
    assert_string_equal(fix->command, "sudo apt install linux-headers-6.8.0-45-generic");
    assert_null(fix->next->command);
    assert_null(fix->next->next);
    gp_exam_close(&exam);
}

static void interpreters_are_a_list(void **state)
{
    static struct gp_exam exam;
    char list[64 * 2 + 3] = "";
    struct gp_err err;
    (void)state;
    assert_int_equal(gp_exam_open(&exam, &gp_checks_all, root, NULL), 0);
    assert_int_equal(gp_exam_set_pythons(&exam, ",/opt/a,,/opt/b b,", &err), 0);
    assert_string_equal(exam.pythons[0], "/opt/a");
    assert_string_equal(exam.pythons[1], "/opt/b b");
    assert_null(exam.pythons[2]);
    for (size_t i = 0; i < 64; i++)
        (void)strcat(list, "a,");
    assert_int_equal(gp_exam_set_pythons(&exam, list, &err), 0);
    assert_string_equal(exam.pythons[63], "a");
    assert_null(exam.pythons[64]);
    (void)strcat(list, "b");
    assert_int_equal(gp_exam_set_pythons(&exam, list, &err), GP_EUSAGE);
    assert_string_equal(err.text, "--python: more than 64 places; give fewer");
    gp_exam_close(&exam);
}

/* Whatever allocation fails, an exam ends, and what it says of a failure stands. */
static void without_memory(void **state)
{
    (void)state;
    put_wsl();
    struct gp_exam *exam = examined(NULL, NULL);
    gp_exam_close(exam);
    (void)alloc_count();
    exam = examined(NULL, NULL);
    gp_exam_close(exam);
    long most = alloc_count();
    for (long n = 0; n < most; n++) {
        static struct gp_exam one;
        alloc_fail_at(n);
        if (gp_exam_open(&one, &gp_checks_all, root, NULL) == 0)
            gp_exam_run(&one, NULL, NULL);
        alloc_fail_at(-1);
        gp_exam_close(&one);
    }
}

static const struct gp_finding *finding_about(const struct gp_exam *exam, const char *words)
{
    const struct gp_finding *finding = exam->findings;
    while (finding && !strstr(finding->summary, words))
        finding = finding->next;
    return finding;
}

static void a_silent_file_system_costs_what_is_on_it(void **state)
{
    static struct gp_exam exam; /* threads that do not come back know it */
    static const char *const pythons[] = {"/net/ada/venv", "/opt/venv", NULL};
    (void)state;
    put_text("/etc/os-release", "ID=debian\n");
    put_text("/net/ada/venv/pyvenv.cfg", "home = /usr/bin\n");
    put_text("/opt/venv/pyvenv.cfg", "home = /usr/bin\n");
    put_text("/opt/venv/lib/python3.11/site-packages/torch/version.py",
             "__version__ = '2.7.1+cpu'\ncuda = None\n");
    put_text("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put_text("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
    assert_int_equal(gp_exam_open(&exam, &gp_checks_all, root, NULL), 0);
    exam.patience_ns = GP_NS_PER_S;
    exam.pythons = pythons;
    silent = "/net/";
    gp_exam_run(&exam, NULL, NULL);
    silent = NULL;
    const struct gp_finding *finding = finding_about(&exam, "/net/ada/venv does not respond");
    assert_non_null(finding);
    assert_int_equal(finding->verdict, GP_VERDICT_WARN);
    assert_string_equal(finding->evidence->text, "no response for 1 s");
    assert_string_equal(finding->evidence->where, "/net/ada/venv");
    assert_string_equal(
        finding->why,
        "Every program that accesses it hangs just as long, and no signal ends that; this happens "
        "to a network mount when its server is gone. Files on it were not checked.");
    assert_null(finding->fixes->command);
    assert_string_equal(finding->fixes->note,
                        "check that the server of that mount is up and reachable");
    assert_null(finding->fixes->next);
    assert_true(exam.is_stuck);
    assert_int_equal(waiting, 1); /* touched once, and refused from then on */
    assert_non_null(finding_about(&exam, "1 Python environment"));
    size_t last = 0;
    while (gp_check_at(&gp_checks_all, last + 1))
        last++;
    assert_int_equal(exam.place, last + 1);
}

static void refused_paths(void **state)
{
    static struct gp_stall stall;
    (void)state;
    gp_stall_init(&stall);
    assert_false(gp_stall_refuses(&stall, "/net/a"));
    gp_stall_refuse(&stall, "/net/a");
    assert_true(gp_stall_refuses(&stall, "/net/a"));
    assert_true(gp_stall_refuses(&stall, "/net/a/b"));
    assert_false(gp_stall_refuses(&stall, "/net/ab"));
    for (int i = 0; i < GP_STALL_REFUSED; i++)
        gp_stall_refuse(&stall, "/net/b");
    assert_true(gp_stall_refuses(&stall, "/etc"));
    assert_false(gp_stall_refuses(NULL, "/net/a"));
}

/* In a chroot below a mount point the root is none. */
static bool root_is_mounted(void)
{
    char line[4096];
    bool found = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && !found && fgets(line, sizeof(line), mounts)) {
        char point[sizeof(line)];
        found = sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1 && strcmp(point, "/") == 0;
    }
    if (mounts)
        (void)fclose(mounts);
    return found;
}

static void mounts(void **state)
{
    struct gp_mount mount;
    (void)state;
    if (access("/proc/self/mountinfo", R_OK) != 0)
        skip_because("/proc is not mounted");
    assert_true(gp_mount_of("/proc/self/stat", &mount));
    assert_string_equal(mount.folder, "/proc");
    assert_string_equal(mount.type, "proc");
    assert_false(mount.is_remote);
    bool has_root = root_is_mounted();
    assert_int_equal(gp_mount_of("/nowhere/at/all", &mount), has_root);
    if (has_root)
        assert_string_equal(mount.folder, "/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_stay_below_the_root, begin, finish),
        cmocka_unit_test_setup_teardown(others_rename_their_files, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_looked_at_is_what_is_opened, begin, finish),
        cmocka_unit_test_setup_teardown(nothing_is_waited_for, begin, finish),
        cmocka_unit_test_setup_teardown(whole_files_and_parts, begin, finish),
        cmocka_unit_test_setup_teardown(a_root_that_is_moved, begin, finish),
        cmocka_unit_test(roots_that_are_none),
        cmocka_unit_test_setup_teardown(distributions, begin, finish),
        cmocka_unit_test_setup_teardown(drivers, begin, finish),
        cmocka_unit_test_setup_teardown(variables, begin, finish),
        cmocka_unit_test(versions),
        cmocka_unit_test(every_need_is_a_check_above),
        cmocka_unit_test(remedies),
        cmocka_unit_test_setup_teardown(a_failure_has_those_that_need_it_skipped, begin, finish),
        cmocka_unit_test_setup_teardown(without_threads_it_runs_all_the_same, begin, finish),
        cmocka_unit_test_setup_teardown(nothing_is_left_open, begin, finish),
        cmocka_unit_test_setup_teardown(checks_are_chosen, begin, finish),
        cmocka_unit_test_setup_teardown(words_are_quoted, begin, finish),
        cmocka_unit_test_setup_teardown(interpreters_are_a_list, begin, finish),
        cmocka_unit_test_setup_teardown(without_memory, begin, finish),
        cmocka_unit_test_setup_teardown(a_silent_file_system_costs_what_is_on_it, begin, finish),
        cmocka_unit_test(refused_paths),
        cmocka_unit_test(mounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
