#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char file[96];
static uint64_t now_ns;

/* The clock stands where a test puts it. */
uint64_t __wrap_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void)
{
    return now_ns;
}

static int make_folder(void **state)
{
    (void)state;
    temporary_name(folder, sizeof(folder), "outfile");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof(file), "%s/file", folder);
    now_ns = 1;
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        (void)closedir(dir);
    return rmdir(folder);
}

/* The content of file.number (0: file itself); "none" if there is no such file. */
static const char *content(unsigned number)
{
    static char text[256];
    char path[128];
    (void)snprintf(path, sizeof(path), number ? "%s.%u" : "%s", file, number);
    long n = gp_io_read(path, text, sizeof(text));
    return n < 0 ? "none" : text;
}

static void put(struct gp_outfile *f, const char *text)
{
    struct gp_err err = {0};
    if (gp_outfile_is_due(f, strlen(text)) && gp_outfile_rotate(f, &err) < 0)
        fail_msg("%s", err.text);
    if (gp_outfile_write(f, text, strlen(text), &err) < 0)
        fail_msg("%s", err.text);
}

static void open_well(struct gp_outfile *f, struct gp_outfile_config config)
{
    struct gp_err err = {0};
    config.path = file;
    if (gp_outfile_open(f, &config, &err) < 0)
        fail_msg("%s", err.text);
}

static void close_well(struct gp_outfile *f)
{
    struct gp_err err = {0};
    assert_int_equal(gp_outfile_close(f, &err), 0);
    assert_int_equal(gp_outfile_close(f, &err), 0);
}

static void write_once(struct gp_outfile_config config, const char *text)
{
    struct gp_outfile f;
    open_well(&f, config);
    put(&f, text);
    close_well(&f);
}

static void fails(struct gp_outfile_config config, const char *words)
{
    struct gp_outfile f;
    struct gp_err err = {0};
    if (!config.path)
        config.path = file;
    assert_int_equal(gp_outfile_open(&f, &config, &err), GP_EIO);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
    assert_int_equal(gp_outfile_close(&f, NULL), 0);
}

static void a_file_is_begun_anew_or_continued(void **state)
{
    (void)state;
    write_once((struct gp_outfile_config){0}, "a long first line\n");
    write_once((struct gp_outfile_config){0}, "one\n");
    assert_string_equal(content(0), "one\n");
    write_once((struct gp_outfile_config){.append = true}, "two\n");
    assert_string_equal(content(0), "one\ntwo\n");
    write_once((struct gp_outfile_config){0}, "torn li");
    write_once((struct gp_outfile_config){.append = true}, "two\n");
    assert_string_equal(content(0), "torn li\ntwo\n");
    assert_string_equal(content(1), "none");
}

static void rotation_by_size(void **state)
{
    (void)state;
    struct gp_outfile f;
    open_well(&f, (struct gp_outfile_config){.size_max = 8, .keep = 2});
    assert_true(gp_outfile_is_empty(&f));
    put(&f, "1234");
    assert_false(gp_outfile_is_empty(&f));
    put(&f, "5678"); /* just fits */
    assert_string_equal(content(0), "12345678");
    put(&f, "9");
    assert_string_equal(content(0), "9");
    assert_string_equal(content(1), "12345678");
    put(&f, "longer than the limit"); /* is not torn, and stands alone */
    put(&f, "a");
    assert_string_equal(content(0), "a");
    assert_string_equal(content(1), "longer than the limit");
    assert_string_equal(content(2), "9");
    assert_string_equal(content(3), "none");
    close_well(&f);
}

static void rotation_by_age(void **state)
{
    (void)state;
    struct gp_outfile f;
    open_well(&f, (struct gp_outfile_config){.age_max_ns = 10, .keep = 1});
    now_ns += 100;
    put(&f, "1"); /* an empty file is not rotated */
    assert_string_equal(content(1), "none");
    put(&f, "2");
    assert_string_equal(content(0), "2");
    assert_string_equal(content(1), "1");
    now_ns += 9;
    put(&f, "3");
    assert_string_equal(content(0), "23");
    now_ns += 1;
    put(&f, "4");
    assert_string_equal(content(0), "4");
    assert_string_equal(content(1), "23");
    assert_string_equal(content(2), "none");
    close_well(&f);
}

static void what_an_earlier_run_left_is_kept(void **state)
{
    (void)state;
    const struct gp_outfile_config rotated = {.size_max = 8, .keep = 3};
    const struct gp_outfile_config appended = {.size_max = 8, .keep = 3, .append = true};
    write_once(rotated, "1");
    write_once(rotated, "2");
    assert_string_equal(content(0), "2");
    assert_string_equal(content(1), "1");
    write_once(appended, "3\n");
    assert_string_equal(content(0), "2\n3\n");
    write_once(appended, "45678"); /* the limit holds over runs */
    assert_string_equal(content(0), "45678");
    assert_string_equal(content(1), "2\n3\n");
    assert_string_equal(content(2), "1");
}

static void a_file_that_somebody_else_took_away(void **state)
{
    (void)state;
    struct gp_outfile f;
    open_well(&f, (struct gp_outfile_config){.size_max = 2, .keep = 1});
    put(&f, "12");
    assert_int_equal(unlink(file), 0);
    put(&f, "34");
    assert_string_equal(content(0), "34");
    assert_string_equal(content(1), "none");
    assert_int_equal(truncate(file, 0), 0); /* as logrotate's copytruncate does */
    put(&f, "5");
    assert_string_equal(content(0), "5");
    close_well(&f);
}

/* Nothing is created or changed by looking. */
static void looks(struct gp_outfile_config config, const char *words)
{
    struct gp_err err = {0};
    const int r = gp_outfile_check(&config, &err);
    assert_int_equal(r, words ? GP_EIO : 0);
    if (words && !strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

static void what_can_be_written_later(void **state)
{
    (void)state;
    char nowhere[128];
    (void)snprintf(nowhere, sizeof(nowhere), "%s/none/file", folder);
    looks((struct gp_outfile_config){.path = file}, NULL);
    looks((struct gp_outfile_config){.path = file, .keep = 1}, NULL);
    looks((struct gp_outfile_config){.path = file, .size_max = 1}, NULL);
    assert_string_equal(content(0), "none");
    looks((struct gp_outfile_config){.path = "/dev/null"}, NULL);
    looks((struct gp_outfile_config){.path = "/dev/null", .size_max = 1},
          "cannot rotate '/dev/null': it is not a regular file");
    looks((struct gp_outfile_config){.path = folder}, "Is a directory");
    looks((struct gp_outfile_config){.path = nowhere}, "No such file or directory");
    looks((struct gp_outfile_config){.path = nowhere, .size_max = 1}, "No such file or directory");
    assert_int_equal(symlink(nowhere, file), 0);
    looks((struct gp_outfile_config){.path = file}, "No such file or directory");
    assert_int_equal(unlink(file), 0);
    write_once((struct gp_outfile_config){.keep = 1}, "1");
    looks((struct gp_outfile_config){.path = file, .keep = 1}, NULL);
    assert_string_equal(content(0), "1");
}

static void what_cannot_be_rotated(void **state)
{
    (void)state;
    const struct gp_outfile_config rotated = {.size_max = 8, .keep = 1};
    struct gp_outfile_config config = rotated;
    config.path = "/dev/null";
    fails(config, "cannot rotate '/dev/null': it is not a regular file");
    config.path = folder;
    fails(config, "it is not a regular file");
    assert_int_equal(mkfifo(file, 0600), 0);
    fails(rotated, "it is not a regular file");
    assert_int_equal(unlink(file), 0);
    char longer[GP_PATH_SIZE];
    memset(longer, 'x', sizeof(longer));
    longer[GP_PATH_SIZE - 3] = '\0';
    config.path = longer;
    fails(config, "its name is too long");
    char nowhere[128];
    (void)snprintf(nowhere, sizeof(nowhere), "%s/none/file", folder);
    config.path = nowhere;
    fails(config, "No such file or directory");
    config = (struct gp_outfile_config){.path = nowhere};
    fails(config, "No such file or directory");
}

static void a_name_that_is_taken_by_a_folder(void **state)
{
    (void)state;
    struct gp_outfile f;
    struct gp_err err = {0};
    char taken[128];
    (void)snprintf(taken, sizeof(taken), "%s.1", file);
    assert_int_equal(mkdir(taken, 0700), 0);
    open_well(&f, (struct gp_outfile_config){.size_max = 1, .keep = 1});
    put(&f, "1");
    assert_true(gp_outfile_is_due(&f, 1));
    assert_int_equal(gp_outfile_rotate(&f, &err), GP_EIO);
    assert_non_null(strstr(err.text, "cannot rename it to"));
    assert_string_equal(content(0), "1");
    assert_int_equal(gp_outfile_close(&f, &err), 0);
    assert_int_equal(rmdir(taken), 0);
}

/* A limit on the size of files stands for a disk that is full. */
static void a_piece_that_does_not_fit_leaves_nothing(void **state)
{
    (void)state;
    struct gp_outfile f;
    struct gp_err err = {0};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    open_well(&f, (struct gp_outfile_config){0});
    put(&f, "whole\n");
    const struct rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = gp_outfile_write(&f, "too long\n", 9, &err);
    int fits = gp_outfile_write(&f, "end\n", 4, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, action);
    assert_int_equal(r, GP_EIO);
    assert_non_null(strstr(err.text, "/file': File too large"));
    assert_int_equal(fits, 0);
    close_well(&f);
    assert_string_equal(content(0), "whole\nend\n");
}

static void a_descriptor_of_somebody_else(void **state)
{
    (void)state;
    struct gp_outfile f;
    struct gp_err err = {0};
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    gp_outfile_init(&f, fd);
    put(&f, "text");
    assert_false(gp_outfile_is_due(&f, 1 << 20));
    assert_int_equal(gp_outfile_close(&f, &err), 0);
    assert_true(fcntl(fd, F_GETFD) >= 0); /* it stays open */
    assert_int_equal(close(fd), 0);
    assert_string_equal(content(0), "text");
    gp_outfile_init(&f, fd);
    assert_int_equal(gp_outfile_write(&f, "x", 1, &err), GP_EIO);
    assert_string_equal(err.text, "cannot write the output: Bad file descriptor");
}

static void a_file_is_replaced_at_once(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct stat st;
    char text[128];
    int old = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(gp_io_write_all(old, "old", 3), 0);
    assert_int_equal(gp_outfile_replace(file, 0666, "new\n", 4, true, &err), 0);
    assert_string_equal(content(0), "new\n");
    assert_int_equal(pread(old, text, sizeof(text), 0), 3); /* who has it open reads on */
    assert_int_equal(close(old), 0);
    assert_int_equal(gp_outfile_replace("/dev/null", 0666, "x", 1, true, &err), GP_EIO);
    assert_string_equal(err.text, "cannot replace '/dev/null': it is not a regular file");
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(gp_outfile_replace(folder, 0666, "x", 1, true, &err), GP_EIO);
    (void)snprintf(text, sizeof(text), "%s/none/file", folder);
    assert_int_equal(gp_outfile_replace(text, 0666, "x", 1, true, &err), GP_EIO);
    char words[200];
    (void)snprintf(words, sizeof(words), "cannot write '%s': No such file or directory", text);
    assert_string_equal(err.text, words);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_file_is_begun_anew_or_continued),
        WITH_FOLDER(rotation_by_size),
        WITH_FOLDER(rotation_by_age),
        WITH_FOLDER(what_an_earlier_run_left_is_kept),
        WITH_FOLDER(a_file_that_somebody_else_took_away),
        WITH_FOLDER(what_can_be_written_later),
        WITH_FOLDER(what_cannot_be_rotated),
        WITH_FOLDER(a_name_that_is_taken_by_a_folder),
        WITH_FOLDER(a_piece_that_does_not_fit_leaves_nothing),
        WITH_FOLDER(a_file_is_replaced_at_once),
        WITH_FOLDER(a_descriptor_of_somebody_else),
    };
    return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}
