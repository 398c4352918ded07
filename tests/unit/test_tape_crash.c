/* Recorders that are killed, and recordings that are cut: what was stored stays, and no value is
 * wrong. GPULSE_TEST_LONG does it a thousand times. */
#include "unit.h"

#include "snapshot_fixture.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "source/source.h"
#include "tape/recorder.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define S INT64_C(1000000)
#define START (INT64_C(1795800000) * S)

enum { SIDE_BY_SIDE = 8 };

static char folder[200];
static uint64_t seed;

static uint64_t chance(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static bool is_long(void)
{
    return getenv("GPULSE_TEST_LONG") != NULL;
}

/* ---- a recorder whose values say which sample they are of ---- */

struct lab {
    struct fixture machine;
    struct gp_axis_clocks clocks;
    char path[256];
};

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct lab *lab = ctx;
    *ret = lab->clocks;
}

static void init(struct lab *lab, int number)
{
    memset(lab, 0, sizeof(*lab));
    fixture_init(&lab->machine);
    *fixture_value(&lab->machine, FIXTURE_WELL, GP_UUID) = fixture_text("GPU-well");
    lab->clocks = (struct gp_axis_clocks){START, 1000 * S, "boot"};
    (void)snprintf(lab->path, sizeof(lab->path), "%s/%d.tape", folder, number);
}

static struct gp_recorder *start(struct lab *lab)
{
    struct gp_recorder *recorder;
    struct gp_err err = {0};
    const struct gp_recorder_config config = {
        .path = lab->path, .interval_ns = GP_NS_PER_S, .clocks = read_clocks, .ctx = lab};
    if (gp_recorder_open(&config, &recorder, &err) < 0) {
        print_message("# %s\n", err.text);
        abort();
    }
    return recorder;
}

/* Sample i: it is of second i, and its memory is i MiB. */
static void sample(struct lab *lab, struct gp_recorder *recorder, int64_t i)
{
    struct gp_err err = {0};
    lab->clocks.wall_us = START + i * S;
    lab->clocks.boottime_us = 1000 * S + i * S;
    gp_value_set_int(fixture_value(&lab->machine, FIXTURE_WELL, GP_MEMORY_USED), i << 20,
                     FIXTURE_NOW_NS);
    gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW), (double)(i % 97),
                      FIXTURE_NOW_NS);
    if (gp_recorder_sample(recorder, &lab->machine.snapshot, &err) < 0)
        abort();
}

/* Checks every sample that is left; returns the number of the last one, −1: there is none. */
static int64_t check(const char *path)
{
    struct gp_tape *tape;
    struct gp_tape_bounds bounds;
    struct gp_tape_found found;
    struct gp_snapshot *snapshot;
    struct gp_err err = {0};
    const struct gp_want want = gp_recorder_want();
    double bytes;
    double watts;
    int r = gp_tape_open(path, &tape, &err);
    if (r < 0) {
        if (!strstr(err.text, "nothing is recorded") && !strstr(err.text, "No such file") &&
            r != GP_EFORMAT)
            fail_msg("%s", err.text);
        return -1;
    }
    assert_int_equal(gp_tape_bounds(tape, &bounds, &err), 0);
    const int64_t last = (bounds.last - START) / S;
    for (int64_t i = (bounds.samples - START) / S; i <= last; i++) {
        if (gp_tape_seek(tape, START + i * S + S / 2, &found, &err) < 0)
            fail_msg("second %lld: %s", (long long)i, err.text);
        assert_int_equal(gp_tape_show(tape, &found, START + i * S, &want, &snapshot, &err), 0);
        const int64_t of = (found.t - START) / S;
        assert_true(gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_MEMORY_USED, &bytes));
        assert_true(gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_DRAW, &watts));
        assert_int_equal((int64_t)bytes >> 20, of);
        assert_int_equal((int64_t)watts, of % 97);
        gp_snapshot_free(snapshot);
    }
    gp_tape_close(tape);
    return last;
}

/* ---- killed ---- */

/* In another process, until it is killed: *stored is the number of the last sample of which the
 * recorder says that it is in the file. */
static _Noreturn void record_until_killed(int number, int64_t from, atomic_llong *stored)
{
    struct lab lab;
    init(&lab, number);
    struct gp_recorder *recorder = start(&lab);
    struct gp_recorder_state state;
    for (int64_t i = from;; i++) {
        sample(&lab, recorder, i);
        gp_recorder_state(recorder, &state);
        if (state.stored)
            atomic_store(stored, from + (int64_t)state.stored - 1);
        (void)usleep(300);
    }
}

static void killed_at_any_moment(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip_because("threads of a process that was forked are not for TSan");
#endif
    const int rounds = is_long() ? 1000 / SIDE_BY_SIDE : 3;
    int64_t from[SIDE_BY_SIDE] = {0};
    int64_t most = 0;
    atomic_llong *stored = mmap(NULL, sizeof(*stored) * SIDE_BY_SIDE, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stored, MAP_FAILED);
    for (int round = 0; round < rounds || most <= 100; round++) { /* a slow machine: more rounds */
        pid_t pids[SIDE_BY_SIDE];
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            atomic_store(&stored[i], -1);
            pids[i] = fork();
            if (pids[i] == 0)
                record_until_killed(i, from[i], &stored[i]);
            assert_true(pids[i] > 0);
        }
        (void)usleep(950 * 1000);
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            int status;
            (void)usleep((useconds_t)chance(100 * 1000));
            assert_int_equal(kill(pids[i], SIGKILL), 0);
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            struct lab lab;
            init(&lab, i);
            const int64_t last = check(lab.path);
            if (last < atomic_load(&stored[i]))
                fail_msg("%lld was stored, but %lld is the last one",
                         (long long)atomic_load(&stored[i]), (long long)last);
            from[i] = last + 1;
            most = last > most ? last : most;
        }
    }
    assert_int_equal(munmap(stored, sizeof(*stored) * SIDE_BY_SIDE), 0);
}

/* ---- cut ---- */

static char *load(const char *path, size_t *ret_size)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    char data[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    while ((n = read(fd, data, sizeof(data))) > 0)
        gp_strbuf_add(&sb, data, (size_t)n);
    assert_int_equal(close(fd), 0);
    assert_int_equal(sb.error, 0);
    *ret_size = sb.len;
    return sb.buf;
}

static void save(const char *path, const char *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    assert_int_equal(close(fd), 0);
}

/* What a power cut can leave: a log that ends anywhere, or with what was never written. */
static void a_log_that_is_cut(void **state)
{
    (void)state;
    struct lab lab;
    char log_path[300];
    size_t sizes[2];
    init(&lab, 100);
    struct gp_recorder *recorder = start(&lab);
    struct gp_recorder_state now = {0};
    int64_t i = 0;
    for (; i < 400 || now.waiting > 0; i++) { /* several transactions */
        sample(&lab, recorder, i);
        (void)usleep(i < 400 ? 10000 : 200000);
        gp_recorder_state(recorder, &now);
        if (i > 400 && now.stored > 400)
            break;
    }
    (void)snprintf(log_path, sizeof(log_path), "%s-wal", lab.path);
    char *file = load(lab.path, &sizes[0]);
    char *log = load(log_path, &sizes[1]);
    struct gp_err err = {0};
    assert_int_equal(gp_recorder_close(recorder, &err), 0);
    assert_true(sizes[1] > 8192);
    struct lab copy;
    init(&copy, 101);
    (void)snprintf(log_path, sizeof(log_path), "%s-wal", copy.path);
    int64_t best = -1;
    for (int n = 0; n < (is_long() ? 3000 : 60); n++) {
        size_t size = chance(sizes[1] + 1);
        char *cut = malloc(sizes[1] + 1);
        assert_non_null(cut);
        memcpy(cut, log, sizes[1]);
        if (n % 3 == 0) /* pages that did not arrive */
            for (size_t k = size; k < sizes[1] && k < size + 4096; k++)
                cut[k] = n % 2 ? '\0' : (char)chance(256);
        save(copy.path, file, sizes[0]);
        save(log_path, cut, n % 3 == 0 ? sizes[1] : size);
        const int64_t last = check(copy.path);
        best = last > best ? last : best;
        free(cut);
        /* and it is continued */
        if (n % 20 == 0) {
            recorder = start(&copy);
            sample(&copy, recorder, last + 1);
            assert_int_equal(gp_recorder_close(recorder, &err), 0);
            assert_int_equal(check(copy.path), last + 1);
        }
        assert_int_equal(unlink(copy.path), 0);
        assert_true(unlink(log_path) == 0 || errno == ENOENT);
    }
    assert_true(best > 0);
    free(file);
    free(log);
}

static int set_up(void **state)
{
    (void)state;
    const char *given = getenv("GPULSE_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)getpid();
    print_message("# GPULSE_TEST_SEED=%llu\n", (unsigned long long)seed);
    temporary_name(folder, sizeof(folder), "crash");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_moment),
        cmocka_unit_test(a_log_that_is_cut),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
