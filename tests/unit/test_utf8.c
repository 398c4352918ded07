#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#define FFFD "\xef\xbf\xbd"

struct decode_case {
    const char *bytes;
    size_t n;
    uint32_t cp;
    size_t len;
};

static void decodes(void **state)
{
    (void)state;
    static const struct decode_case cases[] = {
        {"A", 1, 'A', 1},
        {"\0", 1, 0, 1},
        {"\x7f", 1, 0x7f, 1},
        {"\xc2\x80", 2, 0x80, 2},
        {"\xc3\xa9", 2, 0xe9, 2},
        {"\xdf\xbf", 2, 0x7ff, 2},
        {"\xe0\xa0\x80", 3, 0x800, 3},
        {"\xe2\x82\xac", 3, 0x20ac, 3},
        {"\xef\xbf\xbf", 3, 0xffff, 3},
        {"\xf0\x90\x80\x80", 4, 0x10000, 4},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff, 4},
        /* never valid */
        {"\x80", 1, 0xfffd, 1},
        {"\xbf", 1, 0xfffd, 1},
        {"\xfe", 1, 0xfffd, 1},
        {"\xff", 1, 0xfffd, 1},
        /* longer than needed */
        {"\xc0\x80", 2, 0xfffd, 1},
        {"\xc1\xbf", 2, 0xfffd, 1},
        {"\xe0\x80\x80", 3, 0xfffd, 1},
        {"\xe0\x9f\xbf", 3, 0xfffd, 1},
        {"\xf0\x8f\xbf\xbf", 4, 0xfffd, 1},
        /* surrogates, beyond the last code point */
        {"\xed\xa0\x80", 3, 0xfffd, 1},
        {"\xed\xbf\xbf", 3, 0xfffd, 1},
        {"\xf4\x90\x80\x80", 4, 0xfffd, 1},
        {"\xf5\x80\x80\x80", 4, 0xfffd, 1},
        /* cut off, or followed by something else */
        {"\xc3", 1, 0xfffd, 1},
        {"\xe2\x82", 2, 0xfffd, 1},
        {"\xf0\x9f\x98", 3, 0xfffd, 1},
        {"\xc3(", 2, 0xfffd, 1},
        {"\xe2\x28\xa1", 3, 0xfffd, 1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        /* Copied to the heap, so that the sanitizer sees a read beyond the end. */
        char *exact = test_malloc(cases[i].n);
        memcpy(exact, cases[i].bytes, cases[i].n);
        uint32_t cp = 1;
        assert_int_equal(gp_utf8_decode(exact, cases[i].n, &cp), cases[i].len);
        assert_int_equal(cp, cases[i].cp);
        test_free(exact);
    }
}

static void check_safe(const char *in, size_t n, size_t cols, const char *want)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(10000);
    gp_utf8_add_safe(&sb, in, n, cols);
    assert_int_equal(sb.error, 0);
    assert_string_equal(sb.buf, want);
    assert_true(gp_utf8_width(sb.buf) <= cols);
    gp_strbuf_fini(&sb);
}

#define SAFE(in, want) check_safe(in, sizeof(in) - 1, 1000, want)

static void hostile_text_becomes_visible(void **state)
{
    (void)state;
    SAFE("python3 train.py", "python3 train.py");
    SAFE("", "");
    SAFE("\x1b[2J", "\\x1b[2J");
    SAFE("\x1b]0;title\x07", "\\x1b]0;title\\x07");
    SAFE("a\nb\rc\td", "a\\nb\\rc\\td");
    SAFE("a\0b", "a\\x00b");
    SAFE("\x7f", "\\x7f");
    SAFE("\xc2\x9b" "31m", "\\x9b31m"); /* CSI as one C1 character */
    SAFE("\x9b" "31m", FFFD "31m");      /* the same as a bare byte */
    SAFE("\xe2\x80\xae" "gpj.exe", "\\u{202e}gpj.exe");
    SAFE("\xe2\x81\xa6", "\\u{2066}");
    SAFE("\xe2\x80\xa8", "\\u{2028}");
    SAFE("\xe2\x80\x8f", "\\u{200f}");
    SAFE("\xd8\x9c", "\\u{61c}");
    SAFE("\xff\xfe", FFFD FFFD);
    SAFE("caf\xc3", "caf" FFFD);
    SAFE("caf\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x9a\x80", "caf\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x9a\x80");
}

static void words_for_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"--lr=0.1", "--lr=0.1"},
        {"", "''"},
        {"it is", "'it is'"},
        {"it's", "'it'\\''s'"},
        {"$HOME", "'$HOME'"},
        {"caf\xc3\xa9", "'caf\xc3\xa9'"},
        {"a\x1b'\\z", "$'a\\x1b\\'\\\\z'"},
        {"\xe2\x80\xae", "$'\\xe2\\x80\\xae'"},
        {"\xff", "$'\\xff'"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(100);
        gp_utf8_add_shell_word(&sb, cases[i].word);
        assert_string_equal(sb.buf, cases[i].want);
        gp_strbuf_fini(&sb);
    }
}

static void cuts_within_the_columns(void **state)
{
    (void)state;
    check_safe("abcdef", 6, 6, "abcdef");
    check_safe("abcdef", 6, 5, "abcd…");
    check_safe("abcdef", 6, 1, "…");
    check_safe("abcdef", 6, 0, "");
    check_safe("", 0, 0, "");
    /* A wide character that half fits goes; the mark takes one column. */
    check_safe("你好吗", 9, 6, "你好吗");
    check_safe("你好吗", 9, 5, "你好…");
    check_safe("你好吗", 9, 4, "你…");
    check_safe("你好吗", 9, 3, "你…");
    check_safe("你好吗", 9, 2, "…");
    /* An escape is not cut in its middle. */
    check_safe("ab\x1b" "cd", 5, 5, "ab…");
    check_safe("ab\x1b" "cd", 5, 8, "ab\\x1bcd");
    /* Combining marks cost nothing and stay with their letter. */
    check_safe("e\xcc\x81" "e\xcc\x81", 6, 2, "e\xcc\x81" "e\xcc\x81");
    check_safe("e\xcc\x81" "e\xcc\x81" "e", 7, 2, "e\xcc\x81…");
}

static void a_cut_keeps_what_stood_before(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(100);
    gp_strbuf_adds(&sb, "name: ");
    gp_utf8_add_safe(&sb, "abcdef", 6, 3);
    assert_string_equal(sb.buf, "name: ab…");
    gp_strbuf_fini(&sb);
}

static void ceiling_leaves_a_terminated_string(void **state)
{
    (void)state;
    for (size_t max = 0; max < 12; max++) {
        struct gp_strbuf sb = {0};
        gp_strbuf_init(&sb, max);
        gp_utf8_add_safe(&sb, "ab\x1b" "cdefgh", 9, 6);
        assert_true(sb.len <= max);
        assert_int_equal(strlen(sb.buf), sb.len);
        gp_strbuf_fini(&sb);
    }
}

static void no_byte_sequence_gets_through(void **state)
{
    (void)state;
    /* Every pair of bytes, and every byte behind the head of a longer sequence. */
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    for (unsigned i = 0; i < 65536 * 2; i++) {
        const char in[3] = {(char)(i < 65536 ? 'x' : 0xe2), (char)(i >> 8), (char)i};
        gp_strbuf_reset(&sb);
        gp_utf8_add_safe(&sb, in, sizeof(in), 100);
        for (size_t k = 0; k < sb.len;) {
            uint32_t cp;
            size_t len = gp_utf8_decode(sb.buf + k, sb.len - k, &cp);
            assert_true(cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0));
            assert_false(cp == 0xfffd && len == 1);
            assert_false(cp >= 0x2028 && cp <= 0x202e);
            k += len;
        }
    }
    gp_strbuf_fini(&sb);
}

static void measures_columns(void **state)
{
    (void)state;
    assert_int_equal(gp_utf8_width(""), 0);
    assert_int_equal(gp_utf8_width("abc"), 3);
    assert_int_equal(gp_utf8_width("°C µs"), 5);
    assert_int_equal(gp_utf8_width("e\xcc\x81"), 1);
    assert_int_equal(gp_utf8_width("你好"), 4);
    assert_int_equal(gp_utf8_width("한글"), 4);
    assert_int_equal(gp_utf8_width("🚀"), 2);
    assert_int_equal(gp_utf8_width("⚡"), 2);
    assert_int_equal(gp_utf8_width("█▌…│"), 4);
    assert_int_equal(gp_utf8_width("\xff\xfe"), 2);
}

static void ends_of_ranges(void **state)
{
    static const struct {
        uint32_t cp;
        int columns;
    } rows[] = {
        {0x02ff, 1},  {0x0300, 0},  {0x036f, 0},  {0x0370, 1},   {0x10ff, 1},  {0x1100, 2},
        {0x115f, 2},  {0x1160, 0},  {0x2319, 1},  {0x231a, 2},   {0x231c, 1},  {0x28ff, 1},
        {0x2b55, 2},  {0x2e7f, 1},  {0x2e80, 2},  {0x303e, 2},   {0x303f, 1},  {0xd7a3, 2},
        {0xfeff, 0},  {0xff60, 2},  {0xff61, 1},  {0x16fe0, 2},  {0x1f004, 2}, {0x1f005, 1},
        {0x1f64f, 2}, {0x1f650, 1}, {0x1f680, 2}, {0x1faff, 2},  {0x3fffd, 2}, {0x3fffe, 1},
        {0xe0001, 0}, {0xe01ef, 0}, {0xe01f0, 1}, {0x10ffff, 1},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (gp_utf8_columns(rows[i].cp) != rows[i].columns)
            fail_msg("U+%04x has %d columns", rows[i].cp, gp_utf8_columns(rows[i].cp));
}

static void check_padded(const char *in, size_t cols, bool cut_left, const char *want)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    gp_utf8_add_padded(&sb, in, cols, cut_left);
    assert_string_equal(sb.buf, want);
    gp_strbuf_fini(&sb);
}

static void pads_and_cuts_on_the_left(void **state)
{
    (void)state;
    check_padded("ab", 4, false, "ab  ");
    check_padded("ab", 4, true, "ab  ");
    check_padded("你", 4, false, "你  ");
    check_padded("abcdef", 4, false, "abcdef");
    check_padded("abcdef", 4, true, "…def");
    check_padded("abcdef", 1, true, "…");
    check_padded("abcdef", 0, true, "");
    check_padded("", 2, true, "  ");
    /* A wide character that cannot be halved leaves a blank. */
    check_padded("你好吗", 4, true, "…吗 ");
    check_padded("你好吗", 5, true, "…好吗");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),
        cmocka_unit_test(hostile_text_becomes_visible),
        cmocka_unit_test(words_for_a_shell),
        cmocka_unit_test(cuts_within_the_columns),
        cmocka_unit_test(a_cut_keeps_what_stood_before),
        cmocka_unit_test(ceiling_leaves_a_terminated_string),
        cmocka_unit_test(no_byte_sequence_gets_through),
        cmocka_unit_test(measures_columns),
        cmocka_unit_test(ends_of_ranges),
        cmocka_unit_test(pads_and_cuts_on_the_left),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
