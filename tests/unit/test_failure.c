/* What programs say when they find no memory, and why they found none. */
#include "rows.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/failure.h"
#include "jobs/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, LINES = 86 };

static void words_of(struct gp_failure *f, char *text, size_t size)
{
    const struct gp_causes causes = gp_causes_of(f);
    text[0] = '\0';
    for (size_t i = 0; i < causes.count; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, size - n, "%s%s", i > 0 ? " " : "",
                       gp_cause_word(causes.items[i]));
    }
}

/* "tried 1024, ordinal 0": what is known, in the order of the fields; "-": nothing. */
static void numbers_of(const struct gp_failure *f, char *text, size_t size)
{
    static const char *const names[] = {
#define X(id, word) word,
        GP_FAILURE_FIELDS(X)
#undef X
    };
    (void)snprintf(text, size, "-");
    for (size_t i = 0, n = 0; i < GP_ARRAY_LEN(names); i++) {
        if (!gp_failure_knows(f, (enum gp_failure_field)i))
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s%s %" PRIu64, n > 0 ? ", " : "", names[i],
                              f->values[i]);
        assert_true(n < size);
    }
}

static size_t line_count;

static void check_line(void **state)
{
    char **columns = *state;
    const char *id = columns[0], *causes = columns[1], *numbers = columns[2];
    char *line = columns[COLUMNS - 1];
    struct gp_failure f;
    char words[256] = "";
    assert_non_null(line);
    gp_failure_clean_line(line);
    bool is_known = gp_failure_find(line, &f);
    if (strcmp(is_known ? f.id : "-", id) != 0)
        fail_msg("'%s' is taken for %s, not %s", line, is_known ? f.id : "nothing", id);
    if (is_known && !gp_failure_suspect(line, strlen(line)))
        fail_msg("'%s' is passed over", line);
    if (!is_known)
        return;
    gp_failure_read_details(&f, line);
    words_of(&f, words, sizeof(words));
    if (strcmp(words, strcmp(causes, "-") == 0 ? "" : causes) != 0)
        fail_msg("'%s' is judged '%s', not '%s'", line, words, causes);
    numbers_of(&f, words, sizeof(words));
    if (strcmp(words, numbers) != 0)
        fail_msg("'%s' has the numbers '%s', not '%s'", line, words, numbers);
}

static struct gp_failure read_text(const char *first, const char *text)
{
    struct gp_failure f;
    assert_true(gp_failure_find(first, &f));
    gp_failure_read_details(&f, text);
    return f;
}

static void numbers(void **state)
{
    (void)state;
    static const char line[] =
        "CUDA out of memory. Tried to allocate 290.00 MiB. GPU 0 has a total capacity of 93.00 GiB "
        "of which 134.94 MiB is free. Process 118636 has 71.62 GiB memory in use. Including "
        "non-PyTorch memory, this process has 21.24 GiB memory in use. Of the allocated memory "
        "19.85 GiB is allocated by PyTorch, and 731.17 MiB is reserved by PyTorch but unallocated.";
    struct gp_failure f = read_text(line, line);
    assert_int_equal(f.values[GP_FAILURE_TRIED], 290 << 20);
    assert_int_equal(f.values[GP_FAILURE_TOTAL], UINT64_C(93) << 30);
    assert_int_equal(f.values[GP_FAILURE_FREE], (uint64_t)(134.94 * 0x1p20));
    assert_int_equal(f.values[GP_FAILURE_CACHED], (uint64_t)(731.17 * 0x1p20));
    assert_int_equal(f.other_count, 1);
    assert_int_equal(f.others[0].pid, 118636);
    assert_int_equal(f.others[0].bytes, (uint64_t)(71.62 * 0x1p30));
    assert_true(gp_failure_knows(&f, GP_FAILURE_ORDINAL));
    f = read_text("failed to allocate 1900,50 MiB of pinned memory", "");
    assert_int_equal(f.values[GP_FAILURE_TRIED], (uint64_t)(1900.5 * 0x1p20));
    f = read_text(
        "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes", "");
    assert_int_equal(f.values[GP_FAILURE_TRIED], 25600000);
    f = read_text("Tried to allocate 20.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already "
                  "allocated; 2.88 MiB free; 1.25 GiB reserved in total by PyTorch)",
                  "Tried to allocate 20.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already "
                  "allocated; 2.88 MiB free; 1.25 GiB reserved in total by PyTorch)");
    assert_true(f.values[GP_FAILURE_CACHED] < 12 << 20); /* what is reserved beside */
}

/* The numbers may stand in the lines behind it. */
static void several_lines(void **state)
{
    (void)state;
    struct gp_failure f = read_text(
        "ValueError: To serve at least one request with the models's max seq len (262144), (24.0 "
        "GiB "
        "KV cache is needed, which is larger than the available KV cache memory (3.18 GiB).",
        "KV cache memory (3.18 GiB).\nBased on the available memory, the estimated maximum model "
        "length is 34736.");
    assert_int_equal(f.values[GP_FAILURE_MOST], 34736);
}

static void says(void (*add)(struct gp_strbuf *, enum gp_cause, const struct gp_failure *),
                 enum gp_cause cause, const struct gp_failure *f, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    add(&sb, cause, f);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void sentences(void **state)
{
    (void)state;
    struct gp_failure f = read_text("RuntimeError: CUDA error: out of memory", "");
    says(gp_cause_add_why, GP_CAUSE_TOO_BIG, &f, "the program itself needs more than there is");
    gp_failure_set(&f, GP_FAILURE_TOTAL, UINT64_C(24) << 30);
    says(gp_cause_add_why, GP_CAUSE_TOO_BIG, &f,
         "the program itself needs more than there is; the GPU has 24.00 GiB");
    f = read_text("Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired "
                  "GPU memory utilization (0.9, 19.84 GiB).",
                  "");
    says(gp_cause_add_next, GP_CAUSE_VLLM_FRACTION, &f,
         "--gpu-memory-utilization 0.88 would fit; or free memory on the GPU: gpulse ps");
    f = read_text("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
                  "");
    f.others[0] =
        (struct gp_failure_other){.pid = 7, .bytes = 3 << 20, .who = "ann: python eval.py"};
    f.others[1] = (struct gp_failure_other){.pid = 8, .bytes = 5 << 20};
    f.other_count = 2;
    says(gp_cause_add_why, GP_CAUSE_OTHERS, &f,
         "other processes use 8.0 MiB: pid 7 of ann: python eval.py (3.0 MiB), pid 8 (5.0 "
         "MiB)");
}

/* No sentence has a name that nothing is put in for. */
static void every_sentence(void **state)
{
    (void)state;
    struct gp_failure f = read_text("CUDA error: out of memory", "");
    for (int i = 0; i < GP_FAILURE_FIELD__COUNT; i++)
        gp_failure_set(&f, (enum gp_failure_field)i, UINT64_C(1) << (30 + i));
    f.others[0] = (struct gp_failure_other){.pid = 7, .bytes = 3 << 20};
    f.other_count = 1;
    f.values[GP_FAILURE_TOTAL] = UINT64_C(1) << 37;
    f.values[GP_FAILURE_SELF] = UINT64_C(1) << 35;
    for (int i = GP_CAUSE_BY_NUMBERS + 1; i < GP_CAUSE__COUNT; i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(4096);
        gp_cause_add_why(&sb, (enum gp_cause)i, &f);
        assert_true(sb.len > 10);
        gp_cause_add_next(&sb, (enum gp_cause)i, &f);
        if (strpbrk(sb.buf, "?{}"))
            fail_msg("%s: %s", gp_cause_word((enum gp_cause)i), sb.buf);
        gp_strbuf_fini(&sb);
    }
}

static void clean(void **state)
{
    (void)state;
    char colours[] = "\033[1;31mCUDA error\033[0m: out";
    gp_failure_clean_line(colours);
    assert_string_equal(colours, "CUDA error: out");
    char cut[] = "a\033[3";
    gp_failure_clean_line(cut);
    assert_string_equal(cut, "a");
}

static void suspects(void **state)
{
    (void)state;
    static const char dull[] = "Epoch 3: memory usage 12.1 GiB, batch 64, loss 0.31\n";
    static const char bad[] = "RuntimeError: CUDA error: out of memory\n";
    char text[sizeof(dull) + sizeof(bad)];
    (void)snprintf(text, sizeof(text), "%s%s", dull, bad);
    assert_null(gp_failure_suspect(dull, strlen(dull)));
    assert_ptr_equal(gp_failure_suspect(text, strlen(text)),
                     strstr(text, "CUDA error: out of memory"));
    assert_null(gp_failure_suspect(bad, 24)); /* cut */
    assert_null(gp_failure_suspect("", 0));
}

struct seen {
    unsigned began, found;
    struct gp_incident last;
};

static void count_began(void *context, const struct gp_incident *incident)
{
    struct seen *seen = context;
    (void)incident;
    seen->began++;
}

static void count_found(void *context, const struct gp_incident *incident)
{
    struct seen *seen = context;
    seen->found++;
    seen->last = *incident;
}

/* However the bytes are cut. */
static struct seen scan_in_pieces(const char *text, size_t piece)
{
    struct seen seen = {.began = 0};
    const struct gp_scan_calls calls = {count_began, count_found, NULL, &seen};
    struct gp_scan *scan = gp_scan_new(&calls);
    assert_non_null(scan);
    for (size_t at = 0, size = strlen(text); at < size; at += piece)
        gp_scan_feed(scan, text + at, size - at < piece ? size - at : piece);
    gp_scan_finish(scan);
    assert_false(gp_scan_is_open(scan));
    gp_scan_free(scan);
    return seen;
}

static void scanning(void **state)
{
    (void)state;
    static const char text[] =
        "a dull line\n 10%\r 20%\r\033[31mtorch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 12.00 MiB.\033[0m\r\nGPU 0 has a total capacity of 10.57 GiB of which 11.00 MiB "
        "is "
        "free.\n\nbye\n";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        const struct seen seen = scan_in_pieces(text, piece);
        assert_int_equal(seen.began, 1);
        assert_int_equal(seen.found, 1);
        assert_int_equal(seen.last.line_number, 2);
        assert_int_equal(seen.last.failure.values[GP_FAILURE_FREE], 11 << 20);
    }
}

static void merged_messages(void **state)
{
    (void)state;
    struct seen seen =
        scan_in_pieces("allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory\n"
                       "alloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624\n"
                       "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n",
                       4096);
    assert_int_equal(seen.found, 1);
    assert_string_equal(seen.last.failure.id, "ggml_alloc");
    seen = scan_in_pieces("[rank0]: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
                          "[rank1]: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
                          4096);
    assert_int_equal(seen.found, 2); /* two processes */
}

/* Lines without end, and more than a record of lines behind a message. */
static void long_lines(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    char *text = malloc(LONG + 100);
    assert_non_null(text);
    memset(text, 'x', LONG);
    (void)snprintf(text + LONG, 100, "\nCUDA error: out of memory\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    const struct seen seen = scan_in_pieces(text, 1000);
    assert_int_equal(seen.found, 1);
    assert_int_equal(seen.last.line_number, 2);
    free(text);
}

static void lines_are_there(void **state)
{
    (void)state;
    assert_true(line_count >= LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_there), cmocka_unit_test(numbers),
        cmocka_unit_test(several_lines),   cmocka_unit_test(sentences),
        cmocka_unit_test(every_sentence),  cmocka_unit_test(clean),
        cmocka_unit_test(suspects),        cmocka_unit_test(scanning),
        cmocka_unit_test(merged_messages), cmocka_unit_test(long_lines),
    };
    struct rows rows = {0};
    line_count = rows_add_file(&rows, "failure_lines.tsv", COLUMNS, check_line);
    gp_failure_prepare();
    return rows_run(&rows, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
