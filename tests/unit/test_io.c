#include "unit.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];
static char file[192];

static int make_folder(void **state)
{
    (void)state;
    temporary_name(folder, sizeof(folder), "io");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof(file), "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(file);
    return rmdir(folder);
}

static void write_file(const void *data, size_t len)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(gp_io_write_all(fd, data, len), 0);
    assert_int_equal(close(fd), 0);
}

static void paths_stand_below_the_root(void **state)
{
    (void)state;
    char path[GP_PATH_SIZE];
    assert_true(gp_io_path(path, NULL, "/proc/1/stat"));
    assert_string_equal(path, "/proc/1/stat");
    assert_true(gp_io_path(path, "", "/sys"));
    assert_string_equal(path, "/sys");
    assert_true(gp_io_path(path, "/tmp/root", "/sys"));
    assert_string_equal(path, "/tmp/root/sys");
    static char too_long[GP_PATH_SIZE];
    memset(too_long, 'x', sizeof(too_long) - 1);
    assert_false(gp_io_path(path, too_long, "/sys"));
    assert_false(gp_io_path(path, "/", too_long));
}

static void small_reads(void **state)
{
    (void)state;
    char buf[8];
    write_file("12345", 5);
    assert_int_equal(gp_io_read(file, buf, sizeof(buf)), 5);
    assert_string_equal(buf, "12345");
    assert_int_equal(gp_io_read(file, buf, 6), 5);
    assert_string_equal(buf, "12345");
    assert_int_equal(gp_io_read(file, buf, 5), 4); /* cut */
    assert_string_equal(buf, "1234");
    assert_int_equal(gp_io_read(file, buf, 1), 0);
    assert_string_equal(buf, "");
    write_file("", 0);
    assert_int_equal(gp_io_read(file, buf, sizeof(buf)), 0);
    assert_string_equal(buf, "");
}

static void failing_reads_say_why(void **state)
{
    (void)state;
    char buf[8] = "old";
    assert_int_equal(gp_io_read("/nowhere/at/all", buf, sizeof(buf)), -ENOENT);
    assert_int_equal(gp_io_read("/", buf, sizeof(buf)), -EISDIR);
}

static void *read_slowly(void *arg)
{
    char buf[1000];
    long total = 0;
    ssize_t n;
    while ((n = read(*(int *)arg, buf, sizeof(buf))) > 0)
        total += n;
    return (void *)(intptr_t)total;
}

/* A pipe takes 64 KiB at a time: the write is cut into several. */
static void writes_everything_into_a_pipe(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_slowly, &ends[0]), 0);
    char *data = test_calloc(SIZE, 1);
    assert_int_equal(gp_io_write_all(ends[1], data, SIZE), 0);
    assert_int_equal(close(ends[1]), 0);
    void *total;
    assert_int_equal(pthread_join(reader, &total), 0);
    assert_int_equal((intptr_t)total, SIZE);
    assert_int_equal(close(ends[0]), 0);
    test_free(data);
}

static void failing_writes_say_why(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(gp_io_write_all(fd, "x", 1), -ENOSPC);
    assert_int_equal(gp_io_write_all(fd, "", 0), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(gp_io_write_all(-1, "x", 1), -EBADF);
}

static void finds_companions_beside_the_program(void **state)
{
    (void)state;
    char path[GP_PATH_SIZE];
    struct gp_err err = {0};
    assert_int_equal(gp_io_find_companion("", "test_io", path, &err), 0);
    assert_int_equal(access(path, X_OK), 0);
    assert_int_equal(gp_io_find_companion("../unit", "test_io", path, &err), 0);
    assert_int_equal(gp_io_find_companion("sub", "no-such-helper", path, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "no-such-helper"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_stand_below_the_root),
        cmocka_unit_test(small_reads),
        cmocka_unit_test(failing_reads_say_why),
        cmocka_unit_test(writes_everything_into_a_pipe),
        cmocka_unit_test(failing_writes_say_why),
        cmocka_unit_test(finds_companions_beside_the_program),
    };
    return cmocka_run_group_tests_name("io", tests, make_folder, remove_folder);
}
