/* The children of processes that use no GPU, looked at on a thread. */
#include "own_clock.h"
#include "proc_tree.h"
#include "tui_machine.h"

#include "tui/children.h"

#include <unistd.h>

enum { PIDS = 5, LOOKS = 10000 };

/* A process may have more of them than another. */
static void each_process_has_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PIDS; i++) {
        write_child(10 + i, 1, 5, "train");
        for (unsigned j = 0; j <= i; j++)
            write_child(100 + 10 * i + j, 10 + i, 6, "loader");
    }
    struct gp_snapshot *s = machine(2, 0);
    assert_true(s->process_count == PIDS);
    for (size_t i = 0; i < PIDS; i++)
        gp_value_set_int(process_value(&s->processes[i], GP_PID), 10 + (int64_t)(PIDS - 1 - i), 1);
    struct gp_children *children = gp_children_new(tree_root);
    assert_non_null(children);
    for (int i = 0; i < LOOKS && !gp_children_find(children, 12); i++) {
        gp_children_look(children, s);
        skip_ms(3000);
        (void)usleep(1000);
    }
    for (unsigned i = 0; i < PIDS; i++) {
        const struct gp_children_sum *sum = gp_children_find(children, 10 + i);
        assert_non_null(sum);
        assert_int_equal(sum->count, i + 1);
    }
    assert_null(gp_children_find(children, 9));
    assert_null(gp_children_find(children, 10 + PIDS));
    assert_true(gp_children_free(children));
    gp_snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(each_process_has_its_own)};
    return cmocka_run_group_tests_name("tui_children", tests, NULL, NULL);
}
