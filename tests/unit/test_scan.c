/* What passes over megabytes finds what looks at every line finds, however the bytes are cut. */
#include "unit.h"

#include "base/util.h"
#include "jobs/failure.h"
#include "jobs/scan.h"

enum { ROUNDS = 300, FOUND_MAX = 4000, TEXT = 1 << 18 };

static uint64_t seed;

static size_t below(size_t bound)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(seed >> 33) % bound;
}

/* ---- a text ---- */

static const char *const dull[] = {
    "step 17 epoch 3 loss 0.3141 lr 3.0e-04 tokens/s 93121 mem 61.20 GiB",
    " 45%|####      | 405/900 [00:12<00:15, 31.90it/s, loss=0.31]",
    "CUDA error: out of memor",              /* nearly */
    "Device 3 is ready",                     /* a needle without its expression */
    "Validation: 45%, Configuration: large", /* another */
    "",
    "x",
};

static const char *const bad[] = {
    "RuntimeError: CUDA error: out of memory",
    "\033[31mtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 MiB.\033[0m",
    "GPU 0 has a total capacity of 10.57 GiB of which 11.00 MiB is free.",
    "allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "Device 0 OOM 12 / 34",
};

static const char *const ends[] = {"\n", "\n", "\n", "\r", "\r\n"};

/* Now and then a line that is longer than what is kept of one. */
static size_t make_text(char *text)
{
    size_t size = 0;
    size_t most = 1 + below(TEXT / 2);
    size_t rarity = 2 + below(400);
    while (size < most) {
        bool is_bad = below(rarity) == 0;
        const char *line = is_bad ? bad[below(GP_ARRAY_LEN(bad))] : dull[below(GP_ARRAY_LEN(dull))];
        size_t fill = below(2000) == 0 ? 65000 + below(1000) : 0;
        memset(text + size, 'y', fill);
        size += fill;
        size += (size_t)sprintf(text + size, "%s%s", line, ends[below(GP_ARRAY_LEN(ends))]);
    }
    return size - below(2);
}

/* ---- what is found ---- */

struct seen {
    struct {
        const char *id;
        uint64_t number, known;
        char line[sizeof(((struct gp_incident *)NULL)->line)];
    } found[FOUND_MAX];
    size_t count, began;
};

static void note_began(void *context, const struct gp_incident *incident)
{
    struct seen *seen = context;
    (void)incident;
    seen->began++;
}

static void note_found(void *context, const struct gp_incident *incident)
{
    struct seen *seen = context;
    assert_true(seen->count < FOUND_MAX);
    seen->found[seen->count].id = incident->failure.id;
    seen->found[seen->count].number = incident->line_number;
    seen->found[seen->count].known = incident->failure.known;
    strcpy(seen->found[seen->count].line, incident->line);
    seen->count++;
}

static void ignore(void *context, const char *line)
{
    (void)context;
    (void)line;
}

/* Who wants the lines has every one looked at. */
static struct gp_scan *open_scan(struct seen *seen, bool wants_lines)
{
    const struct gp_scan_calls calls = {note_began, note_found, wants_lines ? ignore : NULL, seen};
    struct gp_scan *scan = gp_scan_new(&calls);
    assert_non_null(scan);
    seen->count = seen->began = 0;
    return scan;
}

static void scan_by_lines(struct seen *seen, const char *text, size_t size)
{
    struct gp_scan *scan = open_scan(seen, true);
    gp_scan_feed(scan, text, size);
    gp_scan_finish(scan);
    gp_scan_free(scan);
}

static void scan_in_pieces(struct seen *seen, const char *text, size_t size, size_t longest)
{
    struct gp_scan *scan = open_scan(seen, false);
    for (size_t at = 0, piece; at < size; at += piece) {
        piece = 1 + below(longest);
        piece = piece < size - at ? piece : size - at;
        gp_scan_feed(scan, text + at, piece);
    }
    gp_scan_finish(scan);
    gp_scan_free(scan);
}

static void pieces_or_lines(void **state)
{
    (void)state;
    static const size_t longest[] = {1, 7, 300, 65536, TEXT};
    static struct seen expected, seen;
    char *text = malloc(TEXT);
    size_t total = 0;
    assert_non_null(text);
    seed = 7;
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t size = make_text(text);
        scan_by_lines(&expected, text, size);
        scan_in_pieces(&seen, text, size, longest[round % GP_ARRAY_LEN(longest)]);
        assert_int_equal(seen.began, expected.began);
        assert_int_equal(seen.count, expected.count);
        for (size_t i = 0; i < seen.count; i++) {
            assert_string_equal(seen.found[i].id, expected.found[i].id);
            assert_string_equal(seen.found[i].line, expected.found[i].line);
            assert_int_equal(seen.found[i].number, expected.found[i].number);
            assert_int_equal(seen.found[i].known, expected.found[i].known);
        }
        total += seen.count;
    }
    assert_true(total > ROUNDS);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_or_lines)};
    gp_failure_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
