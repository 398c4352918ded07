/* A name before each line, however the bytes are cut; writes that the kernel does not mix. */
#include "unit.h"

#include "base/strbuf.h"
#include "jobs/label.h"

#include <errno.h>

struct place {
    struct gp_strbuf text;
    size_t writes, torn; /* torn: that do not end with a line */
    int r;
};

static int take(void *context, const char *bytes, size_t size)
{
    struct place *place = context;
    assert_in_range(size, 1, PIPE_BUF);
    gp_strbuf_add(&place->text, bytes, size);
    place->writes++;
    place->torn += bytes[size - 1] != '\n';
    return place->r;
}

static struct gp_label open_label(struct place *place)
{
    *place = (struct place){.text = GP_STRBUF_INIT(1 << 20)};
    return (struct gp_label){.text = "a", .write = take, .context = place};
}

static void any_cut(void **state)
{
    (void)state;
    static const char text[] = "one\n\ntwo\r three\r\nfour";
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        struct place place;
        struct gp_label label = open_label(&place);
        for (size_t at = 0; at < strlen(text); at += piece)
            assert_int_equal(gp_label_add(&label, text + at,
                                          strlen(text) - at < piece ? strlen(text) - at : piece),
                             0);
        assert_int_equal(gp_label_finish(&label), 0);
        assert_string_equal(place.text.buf, "a| one\na| \na| two\ra|  three\r\na| four\n");
        gp_strbuf_fini(&place.text);
    }
}

static void what_has_no_end(void **state)
{
    (void)state;
    struct place place;
    struct gp_label label = open_label(&place);
    assert_int_equal(gp_label_add(&label, "one\ntw", 6), 0);
    assert_string_equal(place.text.buf, "a| one\n");
    assert_int_equal(gp_label_flush(&label), 0);
    assert_string_equal(place.text.buf, "a| one\na| tw");
    assert_int_equal(gp_label_flush(&label), 0); /* nothing is left */
    assert_int_equal(place.writes, 2);
    assert_int_equal(gp_label_add(&label, "o\n", 2), 0);
    assert_int_equal(gp_label_finish(&label), 0);
    assert_string_equal(place.text.buf, "a| one\na| two\n");
    gp_strbuf_fini(&place.text);
}

static void many_lines(void **state)
{
    (void)state;
    enum { LINES = 3000 };
    struct place place;
    struct gp_label label = open_label(&place);
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 20), expected = GP_STRBUF_INIT(1 << 20);
    for (int i = 0; i < LINES; i++) {
        gp_strbuf_addf(&text, "%0*d\n", 1 + i % 97, i);
        gp_strbuf_addf(&expected, "a| %0*d\n", 1 + i % 97, i);
    }
    assert_int_equal(gp_label_add(&label, text.buf, text.len), 0);
    assert_string_equal(place.text.buf, expected.buf);
    assert_int_equal(place.torn, 0);
    assert_true(place.writes < LINES / 20);
    gp_strbuf_reset(&text);
    gp_strbuf_reset(&place.text);
    gp_strbuf_fill(&text, 'x', 3 * PIPE_BUF); /* no line has room for it */
    assert_int_equal(gp_label_add(&label, text.buf, text.len), 0);
    assert_int_equal(gp_label_finish(&label), 0);
    assert_int_equal(place.text.len, 3 + 3 * PIPE_BUF + 1);
    gp_strbuf_fini(&text);
    gp_strbuf_fini(&expected);
    gp_strbuf_fini(&place.text);
}

static void a_place_that_is_full(void **state)
{
    (void)state;
    struct place place;
    struct gp_label label = open_label(&place);
    place.r = -ENOSPC;
    assert_int_equal(gp_label_add(&label, "one\n", 4), -ENOSPC);
    gp_strbuf_fini(&place.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut),
        cmocka_unit_test(what_has_no_end),
        cmocka_unit_test(many_lines),
        cmocka_unit_test(a_place_that_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
