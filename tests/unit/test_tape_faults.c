/* Recordings for all users: who may read what; and recording and reading without memory: each
 * allocation, also SQLite's, fails in turn. */
#include "unit.h"

#include "snapshot_fixture.h"

#include "base/err.h"
#include "base/io.h"
#include "source/source.h"
#include "tape/private.h"
#include "tape/recorder.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define START INT64_C(1795800000000000)

struct lab {
    char folder[256];
    char path[300];
    struct fixture machine;
    struct gp_axis_clocks clocks;
};

static int set_up(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    assert_non_null(lab);
    temporary_name(lab->folder, sizeof(lab->folder), "tape");
    assert_non_null(mkdtemp(lab->folder));
    (void)snprintf(lab->path, sizeof(lab->path), "%s/a", lab->folder);
    lab->clocks = (struct gp_axis_clocks){START, 1000000000, "boot"};
    fixture_init(&lab->machine);
    *state = lab;
    return 0;
}

static void empty(const struct lab *lab)
{
    char command[400];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'/*", lab->folder);
    assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
    struct lab *lab = *state;
    empty(lab);
    assert_int_equal(rmdir(lab->folder), 0);
    free(lab);
    return 0;
}

/* ---- recording ---- */

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct lab *lab = ctx;
    *ret = lab->clocks;
}

/* Records three samples. Returns what failed first. */
static int record(struct lab *lab, bool is_shared)
{
    struct gp_recorder *recorder;
    struct gp_err err = {0};
    const struct gp_recorder_config config = {.path = lab->path,
                                              .is_shared = is_shared,
                                              .interval_ns = GP_NS_PER_S,
                                              .clocks = read_clocks,
                                              .ctx = lab};
    int first = gp_recorder_open(&config, &recorder, &err);
    if (first < 0)
        return first;
    for (int i = 0; i < 3; i++) {
        const int r = gp_recorder_sample(recorder, &lab->machine.snapshot, &err);
        first = first < 0 ? first : r;
        lab->clocks.wall_us += 1000000;
        lab->clocks.boottime_us += 1000000;
    }
    const int r = gp_recorder_close(recorder, &err);
    return first < 0 ? first : r;
}

/* ---- private texts ---- */

static struct gp_private *create(const struct lab *lab)
{
    struct gp_private *p;
    assert_int_equal(gp_private_create(lab->path, &p, NULL), 0);
    if (!gp_private_works(p))
        skip_because("the file system has no ACLs");
    return p;
}

static void add(struct gp_private *p, uint32_t uid, uint64_t id, const char *command)
{
    const struct gp_private_entry entry = {
        .id = id, .pid = 10 + id, .start_ns = 20, .texts[GP_PRIVATE_COMMAND] = command};
    assert_true(gp_private_add(p, uid, &entry));
}

/* The command of a process, as this user finds it; NULL: it does not. */
static const char *command_of(const struct lab *lab, uint64_t id)
{
    static char command[64];
    struct gp_private_file file;
    struct gp_private_entry entry;
    assert_true(gp_private_read(lab->path, geteuid(), &file));
    const bool found = gp_private_find(&file, id, 10 + id, 20, &entry);
    if (found)
        (void)snprintf(command, sizeof(command), "%s", entry.texts[GP_PRIVATE_COMMAND]);
    free(file.data);
    return found ? command : NULL;
}

static void texts_are_found_again(void **state)
{
    const struct lab *lab = *state;
    struct gp_private *p = create(lab);
    struct gp_private_file file;
    struct gp_private_entry entry;
    add(p, geteuid(), 1, "one");
    add(p, geteuid(), 2, "two");
    add(p, geteuid(), 1, "one again");
    assert_string_equal(command_of(lab, 1), "one again");
    assert_string_equal(command_of(lab, 2), "two");
    assert_null(command_of(lab, 3));
    assert_true(gp_private_read(lab->path, geteuid(), &file));
    assert_false(gp_private_find(&file, 1, 11, 21, &entry)); /* the pid is another process's */
    assert_false(gp_private_find(&file, 1, 12, 20, &entry));
    assert_true(gp_private_find(&file, 2, 12, 20, &entry));
    assert_null(entry.texts[GP_PRIVATE_CWD]);
    free(file.data);
    /* files of another owner than the recording's do not count */
    assert_true(gp_private_read(lab->path, geteuid() + 1, &file));
    assert_false(gp_private_find(&file, 2, 12, 20, &entry));
    free(file.data);
    gp_private_close(p);
}

static void only_one_user_may_read(void **state)
{
    const struct lab *lab = *state;
    struct gp_private *p = create(lab);
    char path[400];
    uint8_t acl[64];
    struct stat st;
    add(p, 4242, 1, "secret");
    (void)snprintf(path, sizeof(path), "%s-private/4242", lab->path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640); /* the group's bits are the most that an ACL gives */
    assert_int_equal(getxattr(path, "system.posix_acl_access", acl, sizeof(acl)), 44);
    const uint8_t user[] = {0x02, 0, 4, 0, 4242 & 0xff, 4242 >> 8, 0, 0};
    const uint8_t group[] = {0x04, 0, 0, 0};
    const uint8_t others[] = {0x20, 0, 0, 0};
    assert_memory_equal(acl + 12, user, sizeof(user));
    assert_memory_equal(acl + 20, group, sizeof(group));
    assert_memory_equal(acl + 36, others, sizeof(others));
    gp_private_close(p);
}

static bool is_even(void *ctx, uint64_t id)
{
    (void)ctx;
    return id % 2 == 0;
}

static void what_is_not_kept_goes(void **state)
{
    const struct lab *lab = *state;
    struct gp_private *p = create(lab);
    for (uint64_t id = 1; id <= 4; id++)
        add(p, geteuid(), id, "x");
    gp_private_prune(p, is_even, NULL);
    for (uint64_t id = 1; id <= 4; id++)
        assert_true((command_of(lab, id) != NULL) == (id % 2 == 0));
    add(p, geteuid(), 5, "y");
    assert_non_null(command_of(lab, 5));
    assert_non_null(command_of(lab, 4));
    gp_private_close(p);
}

/* A user who starts many processes with long command lines cannot fill the disk. */
static void a_file_does_not_grow_for_ever(void **state)
{
    const struct lab *lab = *state;
    struct gp_private *p = create(lab);
    char path[400];
    struct stat st;
    char *command = malloc(100000);
    assert_non_null(command);
    memset(command, 'x', 99999);
    command[99999] = '\0';
    (void)snprintf(path, sizeof(path), "%s-private/%u", lab->path, geteuid());
    for (uint64_t id = 1; id <= 200; id++) {
        add(p, geteuid(), id, command);
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size <= GP_PRIVATE_SIZE_MAX);
    }
    assert_non_null(command_of(lab, 200));
    assert_null(command_of(lab, 1));
    free(command);
    gp_private_close(p);
}

/* ---- files ---- */

/* A reader that finds no log any more must not create one: the recorder, perhaps another user,
 * could not use it. */
static void a_reader_creates_no_log(void **state)
{
    struct lab *lab = *state;
    struct gp_store *store;
    struct gp_err err = {0};
    struct stat st;
    char log[320];
    sqlite3 *db;
    assert_int_equal(record(lab, false), 0);
    assert_int_equal(gp_store_open(lab->path, &store, &err), 0);
    gp_store_close(store);
    (void)snprintf(log, sizeof(log), "%s-wal", lab->path);
    assert_int_equal(stat(log, &st), -1);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE;
    assert_int_equal(sqlite3_open_v2(lab->path, &db, flags, "gpulse-read"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM gpu", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(stat(log, &st), -1);
}

/* ---- without memory ---- */

/* SQLite's allocator: in front of each block is its size. */
enum { HEAD = 16 };

static void *allocate(int size)
{
    char *block = malloc((size_t)size + HEAD);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof(size));
    return block + HEAD;
}

static void release(void *p)
{
    if (p)
        free((char *)p - HEAD);
}

static void *resize(void *p, int size)
{
    char *block = realloc((char *)p - HEAD, (size_t)size + HEAD);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof(size));
    return block + HEAD;
}

static int size_of(void *p)
{
    int size = 0;
    if (p)
        memcpy(&size, (char *)p - HEAD, sizeof(size));
    return size;
}

static int round_up(int size)
{
    return (size + 7) & ~7;
}

static int start_up(void *data)
{
    (void)data;
    return SQLITE_OK;
}

static void shut_down(void *data)
{
    (void)data;
}

/* How many allocations to go on by: all fail in turn only if there is time. */
static long stride(void)
{
    static long seed = -1;
    const char *given = getenv("GPULSE_TEST_SEED");
    if (getenv("GPULSE_TEST_LONG"))
        return 1;
    if (seed < 0) {
        seed = given ? strtol(given, NULL, 10) : (long)time(NULL) % 100000;
        print_message("# GPULSE_TEST_SEED=%ld\n", seed);
        srandom((unsigned)seed);
    }
    return 1 + random() % 100;
}

static int look(const struct lab *lab)
{
    struct gp_tape *tape;
    struct gp_tape_found found;
    struct gp_snapshot *snapshot;
    struct gp_err err = {0};
    const struct gp_want want = gp_recorder_want();
    int r = gp_tape_open(lab->path, &tape, &err);
    if (r < 0)
        return r;
    r = gp_tape_seek(tape, lab->clocks.wall_us, &found, &err);
    if (r == 0)
        r = gp_tape_show(tape, &found, found.t, &want, &snapshot, &err);
    if (r == 0) {
        assert_int_equal(snapshot->device_count, FIXTURE_DEVICES);
        gp_snapshot_free(snapshot);
    }
    gp_tape_close(tape);
    return r;
}

/* Whatever fails, what is in the file can be read, and can be continued. */
static void recording_without_memory(struct lab *lab, bool is_shared)
{
    size_t before = 0;
    bool refused = false;
    bool whole = false;
    for (long n = 0; !whole; n += stride()) {
        empty(lab);
        lab->clocks.boot = "boot";
        alloc_fail_at(n);
        const int r = record(lab, is_shared);
        whole = alloc_count() <= n;
        alloc_fail_at(-1);
        if (r != 0 && r != GP_ENOMEM && r != GP_EIO)
            fail_msg("allocation %ld: %d", n, r);
        refused = refused || r < 0;
        if (before)
            assert_int_equal(open_file_count(), before);
        before = open_file_count();
        if (record(lab, is_shared) < 0 || look(lab) < 0)
            fail_msg("after allocation %ld, the recording cannot be continued", n);
    }
    assert_true(refused);
}

static void each_allocation_of_a_recorder_fails(void **state)
{
    recording_without_memory(*state, false);
}

static void each_allocation_of_a_shared_recorder_fails(void **state)
{
    recording_without_memory(*state, true);
}

static void each_allocation_of_a_reader_fails(void **state)
{
    struct lab *lab = *state;
    bool refused = false;
    bool whole = false;
    assert_int_equal(record(lab, false), 0);
    (void)usleep(60000); /* it is not being written */
    const size_t before = open_file_count();
    for (long n = 0; !whole; n += stride()) {
        alloc_fail_at(n);
        const int r = look(lab);
        whole = alloc_count() <= n;
        alloc_fail_at(-1);
        if (r != 0 && r != GP_ENOMEM)
            fail_msg("allocation %ld: %d", n, r);
        refused = refused || r < 0;
        assert_int_equal(open_file_count(), before);
    }
    assert_true(refused);
    assert_int_equal(look(lab), 0);
}

int main(void)
{
    static const sqlite3_mem_methods methods = {allocate, release,  resize,    size_of,
                                                round_up, start_up, shut_down, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_one_user_may_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_kept_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_does_not_grow_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_creates_no_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_allocation_of_a_recorder_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_allocation_of_a_shared_recorder_fails, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_allocation_of_a_reader_fails, set_up, tear_down),
    };
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
