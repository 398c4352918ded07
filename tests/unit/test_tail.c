/* The last bytes of a stream, however it is cut. */
#include "unit.h"

#include "jobs/tail.h"

#include <string.h>

static struct gp_tail tail;
static char stream[3 * GP_TAIL_BYTES];

static void feed_in_pieces(size_t piece)
{
    memset(&tail, 0, sizeof(tail));
    for (size_t at = 0; at < sizeof(stream); at += piece) {
        size_t n = sizeof(stream) - at < piece ? sizeof(stream) - at : piece;
        gp_tail_add(&tail, stream + at, n);
    }
}

static void the_last_bytes_remain(void **state)
{
    static const size_t pieces[] = {
        1000, 4096, GP_TAIL_BYTES - 1, GP_TAIL_BYTES, GP_TAIL_BYTES + 1, 3 * GP_TAIL_BYTES};
    (void)state;
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (char)(i * 7 % 251);
    for (size_t i = 0; i < GP_ARRAY_LEN(pieces); i++) {
        feed_in_pieces(pieces[i]);
        assert_int_equal(tail.size, GP_TAIL_BYTES);
        assert_memory_equal(tail.bytes, stream + 2 * GP_TAIL_BYTES, GP_TAIL_BYTES);
    }
}

static void a_short_stream_remains_whole(void **state)
{
    (void)state;
    memset(&tail, 0, sizeof(tail));
    gp_tail_add(&tail, "one\n", 4);
    gp_tail_add(&tail, "", 0);
    gp_tail_add(&tail, "two\n", 4);
    assert_int_equal(tail.size, 8);
    assert_memory_equal(tail.bytes, "one\ntwo\n", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bytes_remain),
        cmocka_unit_test(a_short_stream_remains_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
