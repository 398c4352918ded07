/* Many strings looked for at once: exactly those are found that strstr() finds. */
#include "unit.h"

#include "jobs/needles.h"

enum { ROUNDS = 4000, TEXT = 400, NEEDLES = 40 };

static uint64_t seed;

static size_t below(size_t bound)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(seed >> 33) % bound;
}

/* Of few letters, so that words repeat, overlap and nearly match. */
static void fill(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = "ab "[below(3)];
    text[size] = '\0';
}

static void add_random(struct gp_needles *needles, char texts[NEEDLES][GP_NEEDLE_LEAST + 8])
{
    memset(needles, 0, sizeof(*needles));
    for (size_t i = 0, count = 1 + below(NEEDLES); i < count; i++) {
        fill(texts[i], GP_NEEDLE_LEAST + below(7));
        gp_needles_add(needles, texts[i]);
    }
}

/* Lines of random length that mostly have no needle. */
static void fill_lines(char *text, size_t size)
{
    fill(text, size);
    for (size_t i = 0; i < size; i++)
        if (below(16) == 0)
            text[i] = below(3) == 0 ? '\n' : 'x';
}

static size_t line_of(const char *text, const char *at)
{
    size_t line = 0;
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    return line;
}

static void check_text(const struct gp_needles *needles, const char *text, size_t size)
{
    const struct gp_needle_set set = gp_needles_in(needles, text, size);
    const char *found = gp_needles_find(needles, text, size);
    size_t first_line = SIZE_MAX;
    for (size_t i = 0; i < needles->count; i++) {
        const char *at = strstr(text, needles->texts[i]);
        if (gp_needle_set_has(&set, i) != (at != NULL))
            fail_msg("'%s' in '%s', seed %llu", needles->texts[i], text, (unsigned long long)seed);
        if (at && line_of(text, at) < first_line)
            first_line = line_of(text, at);
    }
    if (first_line == SIZE_MAX)
        assert_null(found);
    else if (!found || line_of(text, found) != first_line)
        fail_msg("first in line %zu of '%s'", first_line, text);
}

static void as_strstr_does(void **state)
{
    (void)state;
    static struct gp_needles needles;
    char texts[NEEDLES][GP_NEEDLE_LEAST + 8];
    size_t with = 0;
    seed = 11;
    for (size_t round = 0; round < ROUNDS; round++) {
        char text[TEXT + 1];
        add_random(&needles, texts);
        fill_lines(text, below(TEXT));
        check_text(&needles, text, strlen(text));
        with += gp_needles_find(&needles, text, strlen(text)) != NULL;
    }
    assert_in_range(with, ROUNDS / 10, ROUNDS * 9 / 10); /* both happen */
}

/* Not a byte outside of the text counts, or is looked at: it is as large as its memory. */
static void at_the_edges(void **state)
{
    (void)state;
    static struct gp_needles needles;
    static const char word[] = "no memory";
    enum { LENGTH = sizeof(word) - 1, ROOM = 16 };
    gp_needles_add(&needles, word);
    for (size_t before = 0; before < ROOM; before++) {
        for (size_t cut = 0; cut <= LENGTH; cut++) {
            size_t size = before + LENGTH - cut;
            char *text = malloc(size ? size : 1);
            assert_non_null(text);
            memset(text, '.', before < size ? before : size);
            memcpy(text + before, word, LENGTH - cut);
            assert_ptr_equal(gp_needles_find(&needles, text, size), cut ? NULL : text + before);
            if (size > 0) /* its first byte is missing */
                assert_ptr_equal(gp_needles_find(&needles, text + 1, size - 1),
                                 cut || before == 0 ? NULL : text + before);
            free(text);
        }
    }
}

static void of_none(void **state)
{
    (void)state;
    static const struct gp_needles needles;
    assert_null(gp_needles_find(&needles, "some text", 9));
    assert_null(gp_needles_find(&needles, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_strstr_does),
        cmocka_unit_test(at_the_edges),
        cmocka_unit_test(of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
