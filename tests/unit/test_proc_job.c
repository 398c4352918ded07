/* Which processes are one job. */
#include "unit.h"

#include "proc/job.h"

enum { MOST = 80 };

static struct gp_proc_texts *texts[MOST];
static struct gp_proc_info infos[MOST];
static struct gp_proc_infos list;

/* The next process; pids are given in order. */
static void add(uint32_t pid, uint32_t ppid, const char *name, const char *command)
{
    struct gp_proc_texts *of = calloc(1, sizeof(*of));
    assert_non_null(of);
    of->name = name;
    of->command = command;
    texts[list.count] = of;
    infos[list.count] =
        (struct gp_proc_info){.pid = pid, .ppid = ppid, .exists = true, .texts = of};
    list.infos = infos;
    list.count++;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        free(texts[i]);
    list.count = 0;
    return 0;
}

static int begin(void **state)
{
    (void)end(state);
    add(1, 0, "systemd", "/sbin/init");
    return 0;
}

static void siblings_of_a_launcher(void **state)
{
    (void)state;
    add(10, 1, "sshd: ann", "sshd: ann");
    add(11, 10, "-bash", "-bash");
    add(12, 11, "torchrun", "torchrun train.py");
    add(20, 12, "python", "python train.py");
    add(21, 12, "python", "python train.py");
    add(22, 11, "python", "python other.py");
    assert_int_equal(gp_proc_job(&list, 20), 12);
    assert_int_equal(gp_proc_job(&list, 21), 12);
    assert_int_equal(gp_proc_job(&list, 12), 12);
    assert_int_equal(gp_proc_job(&list, 22), 22);
}

static void what_starts_jobs_is_none(void **state)
{
    static const char *const names[] = {"bash", "tmux: server", "slurmstepd", "gpulse", "node"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        begin(state);
        add(10, 1, names[i], NULL);
        add(11, 10, "python", NULL);
        assert_int_equal(gp_proc_job(&list, 11), 11);
    }
    begin(state);
    add(10, 1, "bashful", NULL); /* only begins like one */
    add(11, 10, "python", NULL);
    assert_int_equal(gp_proc_job(&list, 11), 10);
    add(20, 1, "python", "/usr/bin/python /home/ann/.venv/bin/jupyter-lab --port 8899");
    add(21, 20, "python", "python -m ipykernel_launcher");
    add(30, 1, "python", "python a.py --for jupyter-lab");
    add(31, 30, "python", NULL);
    assert_int_equal(gp_proc_job(&list, 21), 21);
    assert_int_equal(gp_proc_job(&list, 31), 30);
}

static void parents_that_cannot_be_seen(void **state)
{
    (void)state;
    add(10, 0, "python", NULL);
    add(11, 9, "python", NULL);
    add(12, 11, NULL, NULL);
    infos[list.count - 2].exists = false;
    assert_int_equal(gp_proc_job(&list, 10), 10);
    assert_int_equal(gp_proc_job(&list, 12), 12);
    assert_int_equal(gp_proc_job(&list, 99), 99);
    add(20, 21, "python", NULL); /* read while their parents changed */
    add(21, 20, "python", NULL);
    const uint32_t job = gp_proc_job(&list, 20);
    assert_true(job == 20 || job == 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(siblings_of_a_launcher, begin, end),
        cmocka_unit_test_setup_teardown(what_starts_jobs_is_none, begin, end),
        cmocka_unit_test_setup_teardown(parents_that_cannot_be_seen, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
