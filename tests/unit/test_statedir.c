/* The folders by which users tell each other: where they are, and which ones are not trusted. */
#include "unit.h"

#include "base/err.h"
#include "base/io.h"
#include "base/statedir.h"
#include "base/strbuf.h"
#include "proc_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NOBODY = 65534, SOMEBODY = 65533 };

/* What another process of this user makes just before; NULL: nothing. */
static const char *made_meanwhile;

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
    bool is_now = made_meanwhile && !strchr(name, '.') == !strchr(made_meanwhile, '.');
    if (is_now)
        assert_int_equal(__real_mkdirat(dir, made_meanwhile, 0700), 0);
    return __real_mkdirat(dir, name, mode);
}

/* A file system of 40 used blocks of 4 KiB, and maybe without free files. The name is that of
 * fstatfs() with 64-bit offsets. */
static bool has_no_files;

int __wrap_fstatfs64(int fd, struct statfs *ret);

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
    assert_true(fd >= 0);
    *ret = (struct statfs){.f_bsize = 4096, .f_blocks = 40, .f_files = 10};
    ret->f_ffree = has_no_files ? 0 : 5;
    return 0;
}

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

static mode_t mode_of(const char *name)
{
    struct stat st;
    assert_int_equal(stat(path_of(name), &st), 0);
    return st.st_mode & 07777;
}

/* One's own folder is made, or found, in this place; "": it cannot be. */
static void own_is_in(const char *name)
{
    struct gp_err err = {0};
    struct gp_statedir own;
    struct stat st;
    struct stat named;
    char path[64];
    size_t place;
    int r = gp_statedir_own(tree_root, 0, &own, &place, &err);
    if (!*name) {
        assert_true(r == GP_EIO || r == GP_EPERM);
        assert_ptr_equal(strstr(err.text, "cannot write where other users can read it: '"),
                         err.text);
        return;
    }
    if (r < 0)
        fail_msg("%s", err.text);
    (void)snprintf(path, sizeof(path), "%s/gpulse-%u", name, (unsigned)geteuid());
    assert_int_equal(fstat(own.fd, &st), 0);
    assert_int_equal(stat(path_of(path), &named), 0);
    assert_int_equal(st.st_ino, named.st_ino);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_string_equal(own.path, path_of(path));
    assert_int_equal(own.owner, geteuid());
    assert_true(fcntl(own.fd, F_GETFD) & FD_CLOEXEC);
    (void)close(own.fd);
}

static size_t count(void)
{
    struct gp_statedirs dirs;
    assert_int_equal(gp_statedirs_open(tree_root, &dirs), 0);
    size_t n = 0;
    while (gp_statedirs_next(&dirs))
        n++;
    gp_statedirs_close(&dirs);
    assert_null(dirs.entries);
    return n;
}

static void the_first_place_that_is_there(void **state)
{
    (void)state;
    own_is_in(""); /* no folder to make it in */
    make_folder("/run", 0755);
    own_is_in(""); /* nothing is made in /run */
    assert_int_equal(count(), 0);
    make_folder("/tmp", 01777);
    mode_t before = umask(0777);
    own_is_in("/tmp");
    (void)umask(before);
    own_is_in("/tmp");
    make_folder("/dev", 0755);
    make_folder("/dev/shm", 01777);
    own_is_in("/dev/shm");
    make_folder("/run/gpulse", 01777);
    own_is_in("/run/gpulse");
    assert_int_equal(count(), 3); /* who writes into one reads all */
}

/* What is full is passed over. */
static void the_next_place(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_statedir own;
    size_t place;
    make_folder("/tmp", 01777);
    make_folder("/run", 0755);
    make_folder("/run/gpulse", 01777);
    assert_int_equal(gp_statedir_own(tree_root, 0, &own, &place, &err), 0);
    assert_int_equal(place, 0);
    (void)close(own.fd);
    assert_int_equal(gp_statedir_own(tree_root, place + 1, &own, &place, &err), 0);
    assert_int_equal(place, 2);
    (void)close(own.fd);
    assert_int_equal(gp_statedir_own(tree_root, place + 1, &own, &place, &err), GP_EIO);
    assert_string_equal(err.text,
                        "cannot write where other users can read it: no other place is used");
}

static void places_that_others_could_change(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool is_safe;
    } cases[] = {{01777, true}, {0755, true},  {0700, true}, {0775, false},
                 {0757, false}, {0777, false}, {01775, true}};
    make_folder("/tmp", 01777);
    own_is_in("/tmp");
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        assert_int_equal(chmod(path_of("/tmp"), cases[i].mode), 0);
        if (count() != cases[i].is_safe)
            fail_msg("mode %o is %s", cases[i].mode, cases[i].is_safe ? "not trusted" : "trusted");
        own_is_in(cases[i].is_safe ? "/tmp" : "");
    }
    struct gp_err err = {0};
    struct gp_statedir own;
    size_t place;
    assert_int_equal(chmod(path_of("/tmp"), 0777), 0);
    assert_int_equal(gp_statedir_own(tree_root, 2, &own, &place, &err), GP_EPERM);
    assert_non_null(strstr(err.text, "/tmp' must have mode 1777"));
}

/* A place is trusted that is root's, or one's own. */
static void places_of_others(void **state)
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
    assert_int_equal(chmod(tree_root, 0755), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        struct gp_statedir own;
        size_t place;
        assert_int_equal(chown(path_of("/tmp"), cases[i].owner, (gid_t)-1), 0);
        assert_int_equal(seteuid(cases[i].user), 0);
        int r = gp_statedir_own(tree_root, 2, &own, &place, &err);
        assert_int_equal(seteuid(0), 0);
        if ((r == 0) != cases[i].is_safe)
            fail_msg("user %u %s that of %u", cases[i].user, r == 0 ? "takes" : "does not take",
                     cases[i].owner);
        if (r == 0)
            (void)close(own.fd);
        else
            assert_non_null(strstr(err.text, "/tmp' belongs to uid 65533, not to root"));
    }
}

static void folders_that_do_not_count(void **state)
{
    (void)state;
    char name[64];
    static const char *const names[] = {
        "/tmp/gpulse-", "/tmp/gpulse-x", "/tmp/gpulse--1",        "/tmp/gpulse-99999999999",
        "/tmp/gpulse",  "/tmp/other",    "/tmp/gpulse-4294967296"};
    make_folder("/tmp", 01777);
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        make_folder(names[i], 0755);
    (void)snprintf(name, sizeof(name), "/tmp/gpulse-%u", (unsigned)geteuid() + 1);
    make_folder(name, 0755); /* in another user's name */
    assert_int_equal(count(), 0);
    (void)snprintf(name, sizeof(name), "/tmp/gpulse-%u", (unsigned)geteuid());
    assert_int_equal(symlink("other", path_of(name)), 0);
    assert_int_equal(count(), 0);
    assert_int_equal(unlink(path_of(name)), 0);
    assert_int_equal(mkfifo(path_of(name), 0644), 0);
    assert_int_equal(count(), 0);
    assert_int_equal(unlink(path_of(name)), 0);
    make_folder(name, 0755);
    assert_int_equal(count(), 1);
    static const mode_t modes[] = {0775, 0757, 01777};
    for (size_t i = 0; i < GP_ARRAY_LEN(modes); i++) {
        assert_int_equal(chmod(path_of(name), modes[i]), 0);
        assert_int_equal(count(), 0);
    }
}

/* As many as somebody likes: a few of each user are looked at. */
static void many_folders_of_one_user(void **state)
{
    (void)state;
    char name[64];
    make_folder("/tmp", 01777);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "/tmp/gpulse-%u.%d", (unsigned)geteuid(), i);
        make_folder(name, 0755);
    }
    assert_int_equal(count(), 4);
}

/* Two processes that find none, and make one at the same time, use the same one: whoever looks at a
 * few of each user sees both. */
static void made_at_the_same_time(void **state)
{
    (void)state;
    struct gp_statedir own;
    size_t place;
    char name[64];
    char path[128];
    for (int is_taken = 0; is_taken <= 1; is_taken++) {
        make_folder(is_taken ? "/run/gpulse" : "/tmp", 01777);
        (void)snprintf(name, sizeof(name), "gpulse-%u%s", (unsigned)geteuid(),
                       is_taken ? ".!" : "");
        if (is_taken) {
            (void)snprintf(path, sizeof(path), "/run/gpulse/gpulse-%u", (unsigned)geteuid());
            write_text(path, ""); /* by somebody else */
        }
        made_meanwhile = name;
        int r = gp_statedir_own(tree_root, 0, &own, &place, NULL);
        made_meanwhile = NULL;
        assert_int_equal(r, 0);
        assert_string_equal(strrchr(own.path, '/') + 1, name);
        (void)snprintf(path, sizeof(path), "%s/%s", is_taken ? "/run/gpulse" : "/tmp", name);
        assert_int_equal(mode_of(path), 0755);
        assert_int_equal(count(), 1 + is_taken);
        (void)close(own.fd);
        if (!is_taken)
            make_folder("/run", 0755);
    }
}

static void complains(int e, const char *what, uid_t uid)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    struct gp_statedir dir = {.fd = -1};
    char expected[sizeof(dir.path) + 128];
    (void)snprintf(dir.path, sizeof(dir.path), "%s/tmp/gpulse-1", tree_root);
    gp_statedir_complain(&sb, &dir, e);
    int n = snprintf(expected, sizeof(expected), "'%s': %s", dir.path, what);
    char user[GP_USER_TEXT_SIZE];
    if (uid != (uid_t)-1)
        (void)snprintf(expected + n, sizeof(expected) - (size_t)n, ", most of it used by %s",
                       gp_io_user_text(uid, user));
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

/* Of what is full it is said who has filled it, if that is known: at least half of it. */
static void who_has_filled_it(void **state)
{
    (void)state;
    static char data[64 << 10];
    const uid_t none = (uid_t)-1;
    make_folder("/tmp", 01777);
    complains(-EACCES, "Permission denied", none);
    for (int i = 0; i < 3; i++) {
        char name[16];
        complains(-ENOSPC, "No space left on device", none);
        (void)snprintf(name, sizeof(name), "/tmp/.%d", i); /* a file per folder */
        make_folder(name, 0755);
        (void)snprintf(name, sizeof(name), "/tmp/.%d/x", i);
        write_file(name, data, i == 2 ? 0 : sizeof(data));
        if (i == 1)
            complains(-ENOSPC, "No space left on device", geteuid());
        if (i == 1 && geteuid() == 0)
            assert_int_equal(chown(path_of(name), SOMEBODY, (gid_t)-1), 0);
        if (i == 1 && geteuid() != 0)
            return;
    }
    complains(-ENOSPC, "No space left on device", none); /* each has 16 of 40 blocks */
    has_no_files = true;
    complains(-ENOSPC, "No space left on device", geteuid()); /* 5 of 10 files */
    has_no_files = false;
}

static void a_place_that_was_told(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_statedir own;
    size_t place;
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/own", tree_root);
    make_folder("/tmp", 01777);
    (void)setenv("GPULSE_STATE_DIR", "", 1); /* as if it were not set */
    own_is_in("/tmp");
    (void)setenv("GPULSE_STATE_DIR", path, 1);
    assert_int_equal(count(), 0);
    assert_int_equal(gp_statedir_own(tree_root, 0, &own, &place, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "/own': No such file or directory; create it"));
    assert_int_not_equal(access(path, F_OK), 0);
    make_folder("/own", 0750);
    own_is_in("/own"); /* one that is there stays as it is */
    assert_int_equal(mode_of("/own"), 0750);
    assert_int_equal(count(), 1);
    (void)setenv("GPULSE_STATE_DIR", "/dev/null/x", 1);
    assert_int_equal(gp_statedir_own(tree_root, 0, &own, &place, &err), GP_EUSAGE);
    assert_string_equal(err.text, "GPULSE_STATE_DIR is '/dev/null/x': Not a directory; create it "
                                  "with mkdir -m 1777");
    (void)setenv("GPULSE_STATE_DIR", "own", 1);
    assert_int_equal(gp_statedir_own(tree_root, 0, &own, &place, &err), GP_EUSAGE);
    assert_string_equal(err.text, "GPULSE_STATE_DIR is 'own'; it must be an absolute path");
    (void)unsetenv("GPULSE_STATE_DIR");
}

static void what_is_noted(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_err err = {0};
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/own", tree_root);
    make_folder("/own", 01777);
    (void)setenv("GPULSE_STATE_DIR", path, 1);
    assert_int_equal(gp_statedir_check(&sb, &err), 0);
    assert_string_equal(sb.buf, ""); /* all can use it */
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(gp_statedir_check(&sb, &err), 0);
    assert_non_null(
        strstr(sb.buf, "/own' (GPULSE_STATE_DIR): they are not visible to other users"));
    (void)setenv("GPULSE_STATE_DIR", "/nonexistent", 1);
    assert_int_equal(gp_statedir_check(&sb, &err), GP_EUSAGE);
    (void)unsetenv("GPULSE_STATE_DIR");
    gp_strbuf_fini(&sb);
}

#define IN_TREE(name) cmocka_unit_test_setup_teardown(name, begin, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(the_first_place_that_is_there),   IN_TREE(the_next_place),
        IN_TREE(places_that_others_could_change), IN_TREE(places_of_others),
        IN_TREE(folders_that_do_not_count),       IN_TREE(many_folders_of_one_user),
        IN_TREE(made_at_the_same_time),           IN_TREE(who_has_filled_it),
        IN_TREE(a_place_that_was_told),           IN_TREE(what_is_noted),
    };
    return cmocka_run_group_tests_name("statedir", tests, NULL, NULL);
}
