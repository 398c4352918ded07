/* Recordings whose pages were changed: the input is a list of changes to one that was just made,
 * each of three bytes with a place, one with a length, and the new bytes.
 * fuzz-sources: src/tape/axis.c src/tape/before.c src/tape/bytes.c src/tape/chunk.c
 * fuzz-sources: src/tape/columns.c src/tape/moments.c src/tape/walk.c
 * fuzz-sources: src/tape/derive.c src/tape/frame.c src/tape/keeper.c src/tape/private.c
 * fuzz-sources: src/tape/process_texts.c src/tape/queue.c src/tape/recorder.c
 * fuzz-sources: src/tape/registry.c src/tape/roll.c src/tape/scene.c src/tape/show.c
 * fuzz-sources: src/tape/sql.c src/tape/store.c src/tape/store_write.c src/tape/tape.c
 * fuzz-sources: src/tape/vfs.c src/tape/waits.c src/model/event.c src/model/metric.c
 * fuzz-sources: src/model/snapshot.c src/sample/thread.c
 * fuzz-sources: src/base/arena.c src/base/cli.c src/base/clock.c src/base/err.c
 * fuzz-sources: src/base/io.c src/base/parse.c
 * fuzz-sources: src/base/shared.c src/base/strbuf.c src/base/utf8.c
 * fuzz-libs: sqlite3 libzstd */
#include "../unit/snapshot_fixture.h"

#include "base/err.h"
#include "base/io.h"
#include "model/event.h"
#include "source/source.h"
#include "tape/recorder.h"
#include "tape/tape.h"
#include "tape/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[256];
static char path[300];
static uint8_t *whole;
static size_t whole_size;
static int file = -1;

static void remove_files(void)
{
    char name[300];
    static const char *const names[] = {"t", "t-wal", "t-lock"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        (void)snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
        (void)unlink(name);
    }
    (void)rmdir(folder);
}

static struct gp_axis_clocks clocks = {INT64_C(1795800000000000), INT64_C(1000000000), "boot"};

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    (void)ctx;
    *ret = clocks;
}

static const char *const uuids[FIXTURE_DEVICES] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static void pass(int64_t us)
{
    clocks.wall_us += us;
    clocks.boottime_us += us;
}

/* An incident with samples around it. */
static void lose_a_gpu(struct gp_recorder *recorder, const struct fixture *machine)
{
    const struct gp_event event = {.kind = GP_EVENT_LOST};
    struct gp_snapshot brief = machine->snapshot;
    brief.process_count = 0;
    for (int i = 0; i < 50; i++) {
        if (gp_recorder_glance(recorder, &brief, NULL) < 0 ||
            (i == 25 && gp_recorder_event(recorder, &event, NULL) < 0))
            abort();
        pass(100000);
    }
}

/* Ten minutes, so that there are summaries, too. */
static void record(void)
{
    static struct fixture machine;
    struct gp_recorder *recorder;
    const struct gp_recorder_config config = {.path = path,
                                              .interval_ns = 30 * GP_NS_PER_S,
                                              .before_ns = 10 * GP_NS_PER_S,
                                              .clocks = read_clocks};
    fixture_init(&machine);
    for (int i = 0; i < FIXTURE_DEVICES; i++)
        *fixture_value(&machine, i, GP_UUID) = fixture_text(uuids[i]);
    if (gp_recorder_open(&config, &recorder, NULL) < 0)
        abort();
    for (int i = 0; i < 25; i++) {
        if (gp_recorder_sample(recorder, &machine.snapshot, NULL) < 0)
            abort();
        gp_value_set_int(fixture_value(&machine, FIXTURE_WELL, GP_UTILIZATION_GPU), i % 100,
                         FIXTURE_NOW_NS);
        if (i == 23)
            lose_a_gpu(recorder, &machine);
        pass(30000000);
    }
    if (gp_recorder_close(recorder, NULL) < 0)
        abort();
}

static void make_file(void)
{
    struct stat st;
    const char *place = getenv("TMPDIR"); /* which tests/run empties, also after a crash */
    (void)snprintf(folder, sizeof(folder), "%s/gpulse-fuzz-XXXXXX", place ? place : "/dev/shm");
    if (!mkdtemp(folder) || atexit(remove_files) != 0)
        abort();
    (void)snprintf(path, sizeof(path), "%s/t", folder);
    record();
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) < 0)
        abort();
    whole_size = (size_t)st.st_size;
    whole = malloc(whole_size);
    if (!whole || pread(file, whole, whole_size, 0) != (ssize_t)whole_size)
        abort();
}

/* Every change, or back. */
static void change(const uint8_t *data, size_t size, bool back)
{
    while (size > 4) {
        const size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % whole_size;
        size_t len = (size_t)data[3] % 64 + 1;
        data += 4;
        size -= 4;
        len = len < size ? len : size;
        len = len < whole_size - at ? len : whole_size - at;
        if (pwrite(file, back ? whole + at : data, len, (off_t)at) != (ssize_t)len)
            abort();
        data += len;
        size -= len;
    }
}

static void look(struct gp_tape *tape, size_t which)
{
    struct gp_tape_bounds bounds;
    const struct gp_want want = gp_recorder_want();
    if (gp_tape_bounds(tape, &bounds, NULL) < 0)
        return;
    const int64_t places[] = {bounds.first, bounds.last, INT64_C(1795800692000000), 0,
                              INT64_MAX,    INT64_MIN};
    int64_t next;
    (void)gp_tape_step(tape, &bounds, places[2], 0, which % 2 ? 3 : -3, &next, NULL);
    for (size_t i = which % 3; i < GP_ARRAY_LEN(places); i += 3) {
        struct gp_tape_found found;
        struct gp_snapshot *snapshot;
        (void)gp_tape_place(tape, gp_tape_wall(tape, places[i]));
        if (gp_tape_seek(tape, places[i], &found, NULL) < 0 ||
            gp_tape_show(tape, &found, places[i], &want, &snapshot, NULL) < 0)
            continue;
        gp_snapshot_free(snapshot);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1795800000}, {.tv_sec = 1795800000}};
    struct gp_tape *tape;
    struct gp_err err = {0};
    if (file < 0)
        make_file();
    change(data, size, false);
    if (futimens(file, long_ago) < 0)
        abort();
    if (gp_tape_open(path, &tape, &err) == 0) {
        look(tape, size);
        gp_tape_close(tape);
    } else if (!err.text[0]) {
        abort();
    }
    change(data, size, true);
    return 0;
}
