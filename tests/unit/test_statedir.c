/* The folder that all users share: which one, and which ones are not trusted. */
#include "unit.h"

#include "base/err.h"
#include "base/statedir.h"
#include "proc_tree.h"

#include <fcntl.h>
#include <unistd.h>

enum { NOBODY = 65534, SOMEBODY = 65533 };

static int begin(void **state)
{
    (void)unsetenv("GPULSE_STATE_DIR");
    return set_up(state);
}

static char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s%s", tree_root, name);
    return path;
}

static void make_folder(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(path_of(name), 0700), 0);
    assert_int_equal(chmod(path_of(name), mode), 0);
}

/* Opens the folder of the root, which is then the one of this name; "": there is none. */
static void opens(bool create, const char *name)
{
    struct gp_err err = {0};
    struct stat own;
    struct stat named;
    int fd = gp_statedir_open(tree_root, create, &err);
    if (!*name) {
        assert_true(fd < 0);
        return;
    }
    if (fd < 0)
        fail_msg("%s", err.text);
    assert_int_equal(fstat(fd, &own), 0);
    assert_int_equal(stat(path_of(name), &named), 0);
    assert_int_equal(own.st_ino, named.st_ino);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    (void)close(fd);
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    assert_int_equal(stat(path_of(name), &st), 0);
    return st.st_mode & 07777;
}

static void the_first_place_that_is_there(void **state)
{
    (void)state;
    opens(false, "");
    opens(true, ""); /* no folder to make it in */
    make_folder("/run", 0755);
    opens(true, ""); /* nothing is made in /run */
    make_folder("/tmp", 01777);
    opens(false, "");
    mode_t before = umask(0077);
    opens(true, "/tmp/gpulse");
    (void)umask(before);
    assert_int_equal(mode_of("/tmp/gpulse"), 01777);
    make_folder("/dev", 0755);
    make_folder("/dev/shm", 01777);
    opens(true, "/tmp/gpulse"); /* that is there already */
    make_folder("/dev/shm/gpulse", 01777);
    opens(false, "/dev/shm/gpulse");
    make_folder("/run/gpulse", 0755);
    opens(false, "/run/gpulse");
}

static void it_is_made_in_memory_first(void **state)
{
    (void)state;
    make_folder("/tmp", 01777);
    make_folder("/dev", 0755);
    make_folder("/dev/shm", 01777);
    opens(true, "/dev/shm/gpulse");
    assert_int_not_equal(access(path_of("/tmp/gpulse"), F_OK), 0);
}

static void folders_that_others_could_change(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool is_safe;
    } cases[] = {{01777, true}, {0755, true},  {0700, true}, {0775, false},
                 {0757, false}, {0777, false}, {01775, true}};
    make_folder("/tmp", 01777);
    make_folder("/tmp/gpulse", 0755);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        assert_int_equal(chmod(path_of("/tmp/gpulse"), cases[i].mode), 0);
        int fd = gp_statedir_open(tree_root, false, &err);
        if ((fd >= 0) != cases[i].is_safe)
            fail_msg("mode %o is %s", cases[i].mode, fd >= 0 ? "trusted" : "not trusted");
        if (fd >= 0)
            (void)close(fd);
        else
            assert_non_null(strstr(err.text, "must have mode 1777, or be yours with mode 0755"));
    }
}

static void folders_of_others(void **state)
{
    (void)state;
    static const struct {
        uid_t owner, user;
        bool is_safe;
    } cases[] = {{0, NOBODY, true},
                 {NOBODY, NOBODY, true},
                 {SOMEBODY, NOBODY, false},
                 {SOMEBODY, 0, false},
                 {0, 0, true}};
    if (geteuid() != 0) {
        print_message("only root can give folders to others\n");
        skip();
    }
    make_folder("/tmp", 01777);
    make_folder("/tmp/gpulse", 0755);
    assert_int_equal(chmod(tree_root, 0755), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        assert_int_equal(chown(path_of("/tmp/gpulse"), cases[i].owner, (gid_t)-1), 0);
        assert_int_equal(seteuid(cases[i].user), 0);
        int fd = gp_statedir_open(tree_root, false, NULL);
        assert_int_equal(seteuid(0), 0);
        if ((fd >= 0) != cases[i].is_safe)
            fail_msg("user %u %s that of %u", cases[i].user, fd >= 0 ? "takes" : "does not take",
                     cases[i].owner);
        if (fd >= 0)
            (void)close(fd);
    }
}

static void what_is_no_folder(void **state)
{
    (void)state;
    struct gp_err err = {0};
    make_folder("/tmp", 01777);
    make_folder("/other", 0755);
    char target[256];
    (void)snprintf(target, sizeof(target), "%s", path_of("/other"));
    assert_int_equal(symlink(target, path_of("/tmp/gpulse")), 0);
    opens(false, "");
    opens(true, "");
    assert_true(gp_statedir_open(tree_root, true, &err) < 0);
    assert_int_equal(err.code, GP_EIO);
    assert_non_null(strstr(err.text, "cannot open '"));
}

static void a_folder_that_was_named(void **state)
{
    (void)state;
    struct gp_err err = {0};
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/own", tree_root);
    make_folder("/tmp", 01777);
    (void)setenv("GPULSE_STATE_DIR", "", 1); /* as if it were not set */
    opens(true, "/tmp/gpulse");
    (void)setenv("GPULSE_STATE_DIR", path, 1);
    opens(false, "");
    assert_int_not_equal(access(path, F_OK), 0);
    mode_t before = umask(0777);
    opens(true, "/own");
    (void)umask(before);
    assert_int_equal(mode_of("/own"), 0700);
    assert_int_equal(chmod(path, 0750), 0);
    opens(true, "/own"); /* one that is there stays as it is */
    assert_int_equal(mode_of("/own"), 0750);
    (void)setenv("GPULSE_STATE_DIR", "/dev/null/x", 1);
    assert_true(gp_statedir_open(tree_root, true, &err) < 0);
    assert_int_equal(err.code, GP_EIO);
    assert_string_equal(err.text, "cannot make '/dev/null/x': Not a directory");
    (void)unsetenv("GPULSE_STATE_DIR");
}

#define IN_TREE(name) cmocka_unit_test_setup_teardown(name, begin, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(the_first_place_that_is_there),
        IN_TREE(it_is_made_in_memory_first),
        IN_TREE(folders_that_others_could_change),
        IN_TREE(folders_of_others),
        IN_TREE(what_is_no_folder),
        IN_TREE(a_folder_that_was_named),
    };
    return cmocka_run_group_tests_name("statedir", tests, NULL, NULL);
}
