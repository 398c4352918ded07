/* Which words may stand in a published report. */
#include "unit.h"

#include "base/strbuf.h"
#include "doctor/bundle/redact.h"
#include "doctor/bundle/words.h"

#include <string.h>

static const struct {
    const char *text;
    size_t known;
} rows[] = {
    {"driver", 6},
    {"Driver.", 6},
    {"libcuda.so.580.105.08", 11},
    {"python3.94", 6},
    {"nvidia-utils-580-server", 13},
    {"580.105.08", 3},
    {"80GB", 4},
    {"25T08", 5},
    {"0ubuntu1", 8},
    {"0x1f2a", 6},
    {"v12.4", 1},
    {"x", 1},
    {"_smi", 1},
    {"12345678", 0}, /* as a serial number is */
    {"0x123456789", 0},
    {"0xzz", 0},
    {"80zorq", 0},
    {"0a1b2c3d", 0},
    {"0ubuntu12345678", 0},
    {"driverx", 0},
    {"zorquv", 0},
    {"zorquv-driver", 0},
    {"gpu01", 0},
    {"node-3", 0},
    {"python4zorq", 0},
    {"python12345678", 0},
    {"driver\xc3\xa9", 0},
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (gp_words_known(rows[i].text, strlen(rows[i].text), false) != rows[i].known)
            fail_msg("'%s': %zu", rows[i].text,
                     gp_words_known(rows[i].text, strlen(rows[i].text), false));
    assert_int_equal(gp_words_known("035999999999999997", 18, true), 18);
    for (size_t i = 1; i < gp_word_count; i++)
        assert_true(strcmp(gp_words[i - 1], gp_words[i]) < 0);
}

/* With the redactor: what is left of a line. */
static const struct {
    const char *text, *expected;
} lines[] = {
    {"the driver of zorquv is 580.105.08", "the driver of … is 580.105.08"},
    {"/usr/lib/zorquv/libcuda.so.1", "/usr/lib/…/libcuda.so.1"},
    {"kernel 6.8.0-45-generic, 0000:c1:00.0", "kernel 6.8.0-45-generic, 0000:c1:00.0"},
    {"GPU-zorquv, MIG-8badf00d-1234-4321-aaaa-bbbbccccdddd",
     "GPU-…, MIG-00000000-0000-0000-0000-000000000001"},
    {"80GB_zorquv, 580-zorquv", "80GB_…, 580-…"},
    {"at 10.111.\n175.194 end", "at …\n… end"},
    {"no 1655518\n412345", "no …\n…"},
    {"{\"ms\": 0.035999999999999997}", "{\"ms\": 0.035999999999999997}"},
};

static void test_lines(void **state)
{
    static struct gp_redactor redactor;
    (void)state;
    redactor.known = gp_words_known;
    for (size_t i = 0; i < GP_ARRAY_LEN(lines); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 12);
        gp_redact_add(&redactor, &sb, lines[i].text, strlen(lines[i].text));
        assert_string_equal(sb.buf, lines[i].expected);
        gp_strbuf_fini(&sb);
    }
    assert_int_equal(redactor.counts[GP_REDACT_RULES], 9);
    assert_string_equal(gp_redact_kind(GP_REDACT_RULES), "other words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
