/* Who waits for GPUs, as the recorder sees it: lists of leases in, rows of a recording out. */
#include "unit.h"

#include "base/err.h"
#include "proc/lease.h"
#include "tape/waits.h"

#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000)
#define WALL (INT64_C(1795800000) * S) /* the clock's time at place 0 of the axis */

enum { ROWS = 64, PAUSE_S = 8, MIA = 1001, TOM = 1002 };

/* The table. */
struct lab {
    struct gp_waits waits;
    struct row {
        int64_t id, first, last;
        uint64_t request;
        char user[32], job[64];
        bool is_watch;
    } rows[ROWS];
    size_t count;
    struct gp_lease leases[8];
    size_t lease_count;
};

static int store(void *ctx, const struct gp_wait *wait)
{
    struct lab *lab = ctx;
    size_t i = 0;
    assert_true(wait->first < wait->last);
    while (i < lab->count && lab->rows[i].id != wait->id)
        i++;
    assert_true(i < ROWS);
    lab->count += i == lab->count;
    struct row *row = &lab->rows[i];
    *row = (struct row){.id = wait->id,
                        .first = wait->first,
                        .last = wait->last,
                        .request = wait->request,
                        .is_watch = !wait->user};
    (void)snprintf(row->user, sizeof(row->user), "%s", wait->user ? wait->user : "");
    (void)snprintf(row->job, sizeof(row->job), "%s", wait->job ? wait->job : "");
    return 0;
}

static int set_up(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    assert_non_null(lab);
    lab->waits = (struct gp_waits){.next_id = 1, .store = store, .ctx = lab};
    *state = lab;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *lab = *state;
    assert_int_equal(gp_waits_end(&lab->waits), 0);
    free(lab);
    return 0;
}

/* A request whose file appeared at second `at`. */
static struct gp_lease *add(struct lab *lab, uint64_t id, uid_t uid, enum gp_lease_state lease,
                            double at)
{
    struct gp_lease *l = &lab->leases[lab->lease_count++];
    *l = (struct gp_lease){.id = id,
                           .uid = uid,
                           .state = lease,
                           .ticket = (uint64_t)(WALL + (int64_t)(at * 1e6)) * 1000,
                           .wanted = 1};
    (void)snprintf(l->user, sizeof(l->user), "%s", uid == MIA ? "mia" : "tom");
    (void)snprintf(l->command, sizeof(l->command), "/opt/bin/train --secret x");
    return l;
}

/* The line at a second, which then is empty again. */
static void look(struct lab *lab, int64_t second)
{
    const struct gp_leases leases = {.items = lab->leases, .count = lab->lease_count};
    assert_int_equal(
        gp_waits_look(&lab->waits, &leases, second * S, WALL + second * S, PAUSE_S * S), 0);
    lab->lease_count = 0;
}

static const struct row *row_of(const struct lab *lab, uint64_t request)
{
    const struct row *found = NULL;
    for (size_t i = 0; i < lab->count; i++)
        if (!lab->rows[i].is_watch && lab->rows[i].request == request)
            found = &lab->rows[i];
    return found;
}

static int64_t watched(const struct lab *lab)
{
    int64_t sum = 0;
    for (size_t i = 0; i < lab->count; i++)
        sum += lab->rows[i].is_watch ? lab->rows[i].last - lab->rows[i].first : 0;
    return sum;
}

static void from_the_file_to_the_gpus(void **state)
{
    struct lab *lab = *state;
    look(lab, 100);
    (void)snprintf(add(lab, 7, MIA, GP_LEASE_WAITING, 100.25)->name, 64, "sweep");
    add(lab, 8, TOM, GP_LEASE_WAITING, 101);
    look(lab, 101);
    (void)snprintf(add(lab, 7, MIA, GP_LEASE_WAITING, 100.25)->name, 64, "sweep");
    look(lab, 102);
    add(lab, 7, MIA, GP_LEASE_HELD, 102.75);
    look(lab, 103);
    const struct row *row = row_of(lab, 7);
    assert_non_null(row);
    assert_int_equal(row->first, 100 * S + 250000);
    assert_int_equal(row->last, 102 * S + 750000);
    assert_string_equal(row->user, "mia");
    assert_string_equal(row->job, "sweep");
    assert_null(row_of(lab, 8)); /* began when it was seen, and was never seen again */
    assert_int_equal(gp_waits_end(&lab->waits), 0);
    assert_int_equal(watched(lab), 3 * S);
}

static void a_command_line_is_not_recorded(void **state)
{
    struct lab *lab = *state;
    for (int second = 0; second < 3; second++) {
        add(lab, 1, TOM, GP_LEASE_WAITING, 0);
        look(lab, second);
    }
    look(lab, 3);
    assert_string_equal(row_of(lab, 1)->job, "train");
    assert_int_equal(row_of(lab, 1)->last, 2 * S); /* it gave up: nobody saw when */
}

/* What was before the recorder began, and while it could not look, is unknown. */
static void unknown_times(void **state)
{
    struct lab *lab = *state;
    static const int seconds[] = {1000, 1005, 1010, 1100, 1105};
    for (size_t i = 0; i < 5; i++) {
        add(lab, 3, MIA, GP_LEASE_WAITING, 10);
        look(lab, seconds[i]);
    }
    assert_int_equal(gp_waits_end(&lab->waits), 0);
    int64_t sum = 0;
    for (size_t i = 0; i < lab->count; i++)
        sum += lab->rows[i].is_watch ? 0 : lab->rows[i].last - lab->rows[i].first;
    assert_int_equal(sum, 15 * S);
    assert_int_equal(watched(lab), 15 * S);
    assert_int_equal(lab->count, 4);
}

/* Times of files that the clock does not explain. */
static void clocks_that_jump(void **state)
{
    struct lab *lab = *state;
    look(lab, 50);
    add(lab, 1, MIA, GP_LEASE_WAITING, 1e6);
    add(lab, 2, TOM, GP_LEASE_WAITING, -1e8);
    look(lab, 55);
    add(lab, 1, MIA, GP_LEASE_HELD, -1e8);
    add(lab, 2, TOM, GP_LEASE_HELD, 1e6);
    look(lab, 60);
    assert_null(row_of(lab, 1));
    assert_int_equal(row_of(lab, 2)->first, 50 * S);
    assert_int_equal(row_of(lab, 2)->last, 60 * S);
}

/* The same request of two users is two requests. */
static void numbers_of_others(void **state)
{
    struct lab *lab = *state;
    look(lab, 0);
    add(lab, 5, MIA, GP_LEASE_WAITING, 0.5);
    look(lab, 1);
    add(lab, 5, TOM, GP_LEASE_WAITING, 0.5);
    look(lab, 2);
    add(lab, 5, TOM, GP_LEASE_HELD, 2.5);
    look(lab, 3);
    assert_int_equal(lab->count, 2);
    assert_string_equal(lab->rows[0].user, "mia");
    assert_int_equal(lab->rows[0].last - lab->rows[0].first, S / 2);
    assert_string_equal(lab->rows[1].user, "tom");
    assert_int_equal(lab->rows[1].last - lab->rows[1].first, 3 * S / 2);
}

static void once_a_minute(void **state)
{
    struct lab *lab = *state;
    for (int second = 0; second <= 61; second++) {
        add(lab, 9, MIA, GP_LEASE_WAITING, 0);
        look(lab, second);
        assert_int_equal(lab->count, second < 60 ? 0 : 2);
    }
    assert_int_equal(row_of(lab, 9)->last, 60 * S);
}

static void without_memory(void **state)
{
    struct lab *lab = *state;
    struct gp_leases leases = {.items = lab->leases};
    look(lab, 0);
    for (int n = 0, r = -1; r < 0; n++) {
        lab->lease_count = 0;
        add(lab, 4, MIA, GP_LEASE_WAITING, 0.5);
        add(lab, 6, TOM, GP_LEASE_WAITING, 0.5);
        leases.count = lab->lease_count;
        alloc_fail_from(n);
        r = gp_waits_look(&lab->waits, &leases, S, WALL + S, PAUSE_S * S);
        alloc_fail_from(-1);
        assert_true(r == 0 || r == GP_ENOMEM);
        assert_true(n > 0 || r < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(from_the_file_to_the_gpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_line_is_not_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clocks_that_jump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_of_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(once_a_minute, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
