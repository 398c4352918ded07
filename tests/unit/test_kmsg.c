/* Lines of the kernel's log: which are about GPUs, and what they say. */
#include "rows.h"

#include "base/clock.h"
#include "doctor/readers/kmsg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 7, LINES = 130 };

static void expect(const char *line, const char *what, const char *is, const char *wanted)
{
    if (strcmp(is[0] ? is : "-", wanted) != 0)
        fail_msg("'%s': the %s is %s, not %s", line, what, is, wanted);
}

static void check_line(void **state)
{
    char **columns = *state;
    char code[16], pid[24];
    const char *line = columns[COLUMNS - 1];
    assert_non_null(line);
    struct gp_kmsg k;
    bool is_known = gp_kmsg_parse(line, &k);
    assert_int_equal(is_known, k.kind != GP_KMSG_NONE);
    (void)snprintf(code, sizeof(code), "%u", k.code);
    (void)snprintf(pid, sizeof(pid), "%lld", (long long)k.pid);
    expect(line, "kind", gp_kmsg_word(k.kind), columns[0]);
    expect(line, "device", k.bus_id, columns[1]);
    expect(line, "code", code, columns[2]);
    expect(line, "pid", pid, columns[3]);
    expect(line, "program", k.process, columns[4]);
}

static void expect_time(const char *line, enum gp_kmsg_clock clock, uint64_t ns, const char *stamp)
{
    struct gp_kmsg k;
    char found[64];
    assert_true(gp_kmsg_parse(line, &k));
    assert_int_equal(k.clock, clock);
    assert_int_equal(k.time_ns, ns);
    (void)snprintf(found, sizeof(found), "%.*s", (int)k.stamp_length, k.stamp);
    assert_string_equal(found, stamp);
}

static void times(void **state)
{
    (void)state;
    const uint64_t of_day = (16 * 3600 + 24 * 60 + 18) * GP_NS_PER_S;
    const uint64_t in_2025 = UINT64_C(20142) * 86400 * GP_NS_PER_S;
    const uint64_t in_1972 = UINT64_C(783) * 86400 * GP_NS_PER_S; /* a line without the year */
    expect_time("NVRM: No NVIDIA GPU found.", GP_KMSG_NO_CLOCK, 0, "");
    expect_time("4,1,5678901234,-;NVRM: No NVIDIA GPU found.", GP_KMSG_SINCE_BOOT, 5678901234000,
                "");
    expect_time("[  966.503025] NVRM: No NVIDIA GPU found.", GP_KMSG_SINCE_BOOT, 966503025000,
                "966.503025");
    expect_time("[Sun Feb 23 16:24:18 2025] NVRM: No NVIDIA GPU found.", GP_KMSG_WALL,
                in_2025 + of_day, "Sun Feb 23 16:24:18 2025");
    expect_time("2025-02-23T16:24:18.5+01:00 h kernel: NVRM: No NVIDIA GPU found.", GP_KMSG_WALL,
                in_2025 + of_day + GP_NS_PER_S / 2, "2025-02-23T16:24:18.5+01:00");
    expect_time("Feb 23 16:24:18 h kernel: NVRM: No NVIDIA GPU found.", GP_KMSG_WALL,
                in_1972 + of_day, "Feb 23 16:24:18");
    expect_time("Feb 23 16:24:18 h kernel: [    7.000001] NVRM: No NVIDIA GPU found.",
                GP_KMSG_SINCE_BOOT, 7000001000, "7.000001");
}

static void members(void **state)
{
    (void)state;
    struct gp_kmsg k;
    assert_true(gp_kmsg_parse("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 94, pid=7194, "
                              "Contained: CE User Channel (0x9).",
                              &k));
    assert_int_equal(k.gpu_instance, 5);
    assert_int_equal(k.compute_instance, 2);
    assert_string_equal(k.message, "Contained: CE User Channel (0x9).");
    assert_false(k.is_fatal);
    assert_true(gp_kmsg_parse("NVRM: Xid (PCI:0000:01:00): 45, channel 0x12 caused by previous Xid "
                              "31",
                              &k));
    assert_int_equal(k.cause, 31);
    assert_int_equal(k.gpu_instance, GP_KMSG_NO_INSTANCE);
    assert_true(gp_kmsg_parse("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 "
                              "LTSSM Fault Up",
                              &k));
    assert_true(k.is_fatal);
    assert_true(gp_kmsg_parse("nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link "
                              "61 egress non-posted PRIV error (First)",
                              &k));
    assert_false(k.is_fatal);
}

static void nvlink(void **state)
{
    (void)state;
    struct gp_kmsg_nvlink n;
    assert_true(gp_kmsg_nvlink("RLW_RXPIPE Nonfatal XC0 i0 Link 12 (0x040980c2 0x00000008 "
                               "0x00000001)",
                               &n));
    assert_string_equal(n.unit, "RLW_RXPIPE");
    assert_false(n.is_fatal);
    assert_int_equal(n.link, 12);
    assert_int_equal(n.reason, 0);
    assert_int_equal(n.status, 8);
    assert_true(gp_kmsg_nvlink("NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", &n));
    assert_true(n.is_fatal);
    assert_int_equal(n.reason, 4);
    assert_true(gp_kmsg_nvlink("X Fatal Link 1 (0x1)", &n));
    assert_false(n.has_status);
    assert_false(gp_kmsg_nvlink("", &n));
    assert_false(gp_kmsg_nvlink("RLW_RXPIPE", &n));
    assert_false(gp_kmsg_nvlink("RLW_RXPIPE Fatal Link 1 (0xfffffffff)", &n));
    assert_false(gp_kmsg_nvlink("A_UNIT_WITH_A_NAME_THAT_IS_TOO_LONG Fatal Link 1 (0x1)", &n));
}

static void recovery(void **state)
{
    (void)state;
    unsigned was, now;
    assert_true(gp_kmsg_recovery("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and "
                                 "Reset)",
                                 &was, &now));
    assert_int_equal(was, 0);
    assert_int_equal(now, 4);
    assert_false(gp_kmsg_recovery("GPU recovery action changed", &was, &now));
    assert_false(gp_kmsg_recovery("recovery action changed from 0x1 (x) to 4", &was, &now));
}

/* What somebody has copied has anything before it, and is taken all the same. */
static void copied(void **state)
{
    (void)state;
    struct gp_kmsg k;
    static const char line[] = "node7: kern.log:12: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen "
                               "off the bus.";
    assert_false(gp_kmsg_parse(line, &k));
    assert_true(gp_kmsg_parse_copied(line, &k));
    assert_int_equal(k.code, 79);
    assert_false(gp_kmsg_parse_copied("I have NVRM: in my log", &k));
}

static size_t line_count;

static void lines_are_there(void **state)
{
    (void)state;
    assert_true(line_count >= LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),    cmocka_unit_test(members), cmocka_unit_test(nvlink),
        cmocka_unit_test(recovery), cmocka_unit_test(copied),  cmocka_unit_test(lines_are_there),
    };
    struct rows rows = {0};
    line_count = rows_add_file(&rows, "kmsg_lines.tsv", COLUMNS, check_line);
    return rows_run(&rows, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
