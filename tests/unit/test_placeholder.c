/* {batch} in the commands of steps, and what only looks like it. */
#include "unit.h"

#include "base/strbuf.h"
#include "jobs/placeholder.h"

static uint64_t batch_of(void *context, const char *name)
{
    (void)context;
    return *name ? strlen(name) : 96;
}

static void becomes(const char *text, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_placeholder_fill(&sb, text, batch_of, NULL);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void filled(void **state)
{
    (void)state;
    becomes("", "");
    becomes("train --bs {batch}", "train --bs 96");
    becomes("{batch}{batch:abc}{batch:a.b-c_d}", "9637");
    becomes("x{batch}y {batch}", "x96y 96");
}

static void left_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",       "{batch",      "{batch:}",      "{batches}",      "{ batch}",  "{batch }",
        "${batch}", "${batch:-8}", "{batch:-8}",    "{batch:a b}",    "{batch:.}", "{batch:a/b}",
        "batch}",   "{Batch}",     "awk '{print}'", "f\"{batch!s}\"",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        becomes(texts[i], texts[i]);
    becomes("{{batch}}", "{96}");
    becomes("{batch}${batch}", "96${batch}");
}

static void long_names(void **state)
{
    (void)state;
    char text[GP_STEP_NAME_SIZE + 20];
    struct gp_placeholder p;
    (void)snprintf(text, sizeof(text), "{batch:%0*d}", GP_STEP_NAME_SIZE - 1, 7);
    assert_true(gp_placeholder_next(text, &p));
    assert_int_equal(strlen(p.name), GP_STEP_NAME_SIZE - 1);
    assert_int_equal(p.length, strlen(text));
    (void)snprintf(text, sizeof(text), "{batch:%0*d}", GP_STEP_NAME_SIZE, 7);
    assert_false(gp_placeholder_next(text, &p));
}

static void names(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", ".a", "-a", "a b", "a/b", "\033[31m", "ä", "a,b"};
    assert_true(gp_step_is_name("train_2.5-b"));
    for (size_t i = 0; i < GP_ARRAY_LEN(bad); i++)
        assert_false(gp_step_is_name(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filled),
        cmocka_unit_test(left_alone),
        cmocka_unit_test(long_names),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
