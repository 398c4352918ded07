/* What errors mean: by their numbers, and from lines that were printed. */
#include "rows.h"

#include "abi/nvml_return.h"
#include "base/arena.h"
#include "base/err.h"
#include "doctor/checks/all.h"
#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/explain/explain_line.h"
#include "doctor/explain/explain_words.h"
#include "doctor/readers/kmsg.h"
#include "doctor/tables.h"
#include "jobs/failure.h"
#include "model/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_COLUMNS = 2 };

static size_t known_count, decoy_count; /* lines that were looked at */

/* What is said of a line: nothing of a decoy, whose id is "-". */
static void check_line(void **state)
{
    char **columns = *state;
    const char *id = columns[0], *line = columns[1];
    struct gp_arena arena = {NULL};
    struct gp_explanation e;
    assert_non_null(line);
    bool is_known = gp_explain_line(&arena, line, &e);
    if (strcmp(is_known ? e.id : "-", id) != 0)
        fail_msg("'%s' is taken for %s, not %s", line, is_known ? e.id : "nothing", id);
    if (is_known && (!e.words[0] || !e.title[0] || !e.advice[0]))
        fail_msg("'%s': there is nothing to say", line);
    gp_arena_fini(&arena);
    known_count += strcmp(id, "-") != 0;
    decoy_count += strcmp(id, "-") == 0;
}

static void lines_are_there(void **state)
{
    (void)state;
    assert_true(known_count >= 260 && decoy_count >= 50);
}

static void expect_topic(const char *topic, const char *what, const char *id)
{
    struct gp_arena arena = {NULL};
    struct gp_explanation e;
    struct gp_err err = {0};
    int r = gp_explain_topic(&arena, topic, what, &e, &err);
    if (!id) {
        assert_true(r < 0);
        assert_true(err.text[0]);
    } else {
        assert_int_equal(r, 0);
        assert_string_equal(e.id, id);
        assert_true(e.words[0]);
    }
    gp_arena_fini(&arena);
}

static void topics(void **state)
{
    (void)state;
    expect_topic("xid", "79", "xid.79");
    expect_topic("XID", "13", "xid.13");
    expect_topic("xid", "0", NULL);
    expect_topic("xid", "177", NULL);
    expect_topic("xid", "x", NULL);
    expect_topic("xid", "4294967375", NULL); /* 79 in 32 bits */
    expect_topic("sxid", "20034", "sxid.20034");
    expect_topic("cuda", "802", "cuda.802");
    expect_topic("cuda", "cudaErrorNoDevice", "cuda.100");
    expect_topic("cuda", "CUDA_ERROR_NO_DEVICE", "cuda.100");
    expect_topic("cuda", "cudaerrornodevice", "cuda.100");
    expect_topic("cuda", "", NULL);
    expect_topic("nvml", "18", "nvml.18");
    expect_topic("nvml", "NVML_ERROR_GPU_IS_LOST", "nvml.15");
    expect_topic("throttle", "sw_power_cap", "throttle.sw_power_cap");
    expect_topic("throttle", "0x40", "throttle.hw_thermal_slowdown");
    expect_topic("throttle", "0x3", NULL);
    expect_topic("recovery", "4", "recovery.drain-and-reset");
    expect_topic("memory", "remap_pending", "memory.remap_pending");
    expect_topic("weather", "1", NULL);
}

/* Every Xid has words, whose fault and what to do: here, or in model/xid.def, and not in both. */
static void xid(void **state)
{
    const struct gp_xid_row *row = *state;
    const struct gp_xid_info *info = gp_xid_find(row->code);
    struct gp_xid_row whole;
    char number[16], id[32];
    assert_int_equal(info == NULL, row->words[0] != '\0');
    assert_int_equal(info == NULL, row->fault[0] != '\0');
    assert_int_equal(info == NULL, row->advice[0] != '\0');
    assert_true(gp_xid_row_find(row->code, &whole));
    assert_true(whole.words[0] && whole.fault[0]);
    if (row->is_application)
        assert_true(whole.verdict < GP_VERDICT_FAIL);
    (void)snprintf(number, sizeof(number), "%u", row->code);
    (void)snprintf(id, sizeof(id), "xid.%s", number);
    expect_topic("xid", number, id);
}

static void xids_are_all_there(void **state)
{
    (void)state;
    assert_int_equal(gp_xid_row_count, 176);
}

static void add_xids(struct rows *rows)
{
    static char names[256][16];
    for (size_t i = 0; i < gp_xid_row_count && i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "Xid %u", gp_xid_rows[i].code);
        rows_add(rows, names[i], xid, (void *)(uintptr_t)&gp_xid_rows[i]);
    }
}

static void nvml(void **state)
{
    (void)state;
    static const struct {
        unsigned number;
        const char *name, *text;
    } codes[] = {
#define X(name, code, text) {code, #name, text},
        NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++) {
        char id[24], line[256];
        struct gp_arena arena = {NULL};
        struct gp_explanation e;
        (void)snprintf(id, sizeof(id), "nvml.%u", codes[i].number);
        assert_non_null(gp_entry_find(id));
        assert_string_equal(gp_entry_find(id)->name, codes[i].name);
        (void)snprintf(line, sizeof(line), "NVML error: %s", codes[i].text);
        if (codes[i].number > 0 && (!gp_explain_line(&arena, line, &e) || strcmp(e.id, id) != 0))
            fail_msg("'%s' is not %s", line, id);
        gp_arena_fini(&arena);
    }
}

/* Every kind of line that is notable has an entry; every entry looks at checks that exist. */
static void entries(void **state)
{
    (void)state;
    for (int kind = GP_KMSG_NONE + 1; kind < GP_KMSG__COUNT; kind++)
        if (gp_kmsg_is_notable(kind) && kind != GP_KMSG_XID && kind != GP_KMSG_SXID &&
            kind != GP_KMSG_OOM && !gp_entry_find(gp_kmsg_word(kind)))
            fail_msg("nothing is said of %s", gp_kmsg_word(kind));
    for (size_t i = 0; i < gp_entry_count; i++) {
        const struct gp_error_entry *e = &gp_entries[i];
        size_t length;
        if (gp_exam_unknown(&gp_checks_all, e->look, &length))
            fail_msg("%s looks at %s: there is no such check", e->id, e->look);
        assert_ptr_equal(gp_entry_find(e->id), e);
        assert_non_null(gp_family_find(e->family));
    }
}

/* Programs and people put anything in front of a line, color it, or cut it out of a longer text. */
static void check_example(const struct gp_error_entry *entry, const char *before, const char *line,
                          const char *after)
{
    char whole[4096];
    struct gp_arena arena = {NULL};
    struct gp_explanation e;
    (void)snprintf(whole, sizeof(whole), "%s%s%s", before, line, after);
    if (!gp_explain_line(&arena, whole, &e) || strcmp(e.id, entry->id) != 0)
        fail_msg("'%s' is not explained by %s", whole, entry->id);
    gp_arena_fini(&arena);
}

static void examples(void **state)
{
    (void)state;
    assert_true(gp_entry_example_count > 200);
    for (size_t i = 0; i < gp_entry_example_count; i++) {
        const struct gp_error_entry *entry = &gp_entries[gp_entry_examples[i].entry];
        const char *line = gp_entry_examples[i].line;
        check_example(entry, "", line, "");
        check_example(entry, "[rank3]: ", line, "");
        check_example(entry, "web-1  | 2026-01-05T10:00:00.123Z \033[31mERROR\033[0m ", line,
                      "\033[0m");
        check_example(entry, "Jan  5 10:00:00 host app[77]: ", line, " (pid 7)");
    }
}

static void explain(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    assert_true(gp_explain_line(arena, line, ret));
}

static void details(void **state)
{
    (void)state;
    struct gp_arena arena = {NULL};
    struct gp_explanation e;
    explain(&arena,
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, Contained: CE User",
            &e);
    assert_string_equal(e.details, "GPU 0000:01:00.0, MIG instance 5, process 7194 (python3)");
    explain(&arena,
            "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 "
            "0x00000000)",
            &e);
    assert_non_null(strstr(e.words, "a fatal NVLink error in unit NETIR_LINK_EVT of link 8"));
    assert_non_null(strstr(e.advice, "check the link quality"));
    /* The driver calls fatal what the table does not: the driver is believed. */
    explain(&arena,
            "NVRM: Xid (PCI:0019:01:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 12 (0x040980c2 "
            "0x00000008)",
            &e);
    assert_string_equal(e.advice, "reset the GPU");
    explain(&arena,
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
            "(Node Reboot Required)",
            &e);
    assert_non_null(strstr(e.words, "reboot"));
    explain(&arena, "NVRM: Xid (PCI:0009:01:00): 45, x caused by previous Xid 31", &e);
    assert_string_equal(e.note, "It was caused by Xid 31.");
    gp_arena_fini(&arena);
}

static void words_without_an_error(void **state)
{
    char number[] = "79", topic[] = "cuda", status[] = "137";
    char *const words[] = {number, topic, status};
    struct gp_err err;
    (void)state;
    assert_int_equal(gp_explain_check_words(0, NULL, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "missing ERROR"));
    assert_int_equal(gp_explain_check_words(1, &words[0], &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "79 of what?"));
    assert_int_equal(gp_explain_check_words(1, &words[1], &err), GP_EUSAGE);
    assert_int_equal(gp_explain_check_words(2, &words[0], &err), 0);
    assert_int_equal(gp_explain_check_words(1, &words[2], &err), 0);
}

static int prepare(void **state)
{
    (void)state;
    gp_failure_prepare();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topics),
        cmocka_unit_test(xids_are_all_there),
        cmocka_unit_test(nvml),
        cmocka_unit_test(entries),
        cmocka_unit_test(examples),
        cmocka_unit_test(details),
        cmocka_unit_test(lines_are_there),
        cmocka_unit_test(words_without_an_error),
    };
    struct rows rows = {0};
    (void)rows_add_file(&rows, "explain_lines.tsv", LINE_COLUMNS, check_line);
    add_xids(&rows);
    return rows_run(&rows, tests, sizeof(tests) / sizeof(tests[0]), prepare);
}
