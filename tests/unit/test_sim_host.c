/* The member "host" of a machine file: what it becomes, and what is refused with which place. */
#include "unit.h"

#include "sim/host.h"

#include "base/err.h"

#define START "{'name': 'n', 'cpus': 4, 'memory_bytes': 1024, 'uptime_s': 9, 'users': {'mia': 7}"

/* Loads a document with ' for ". */
static int load(const char *text, struct gp_arena *arena, struct sim_host *ret, struct gp_err *err)
{
    char quoted[1024];
    size_t n = 0;
    for (; text[n] && n + 1 < sizeof(quoted); n++)
        quoted[n] = text[n] == '\'' ? '"' : text[n];
    quoted[n] = '\0';
    json_t *json = json_loads(quoted, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    int r = sim_host_load(json, arena, ret, err);
    json_decref(json);
    return r;
}

static void takes_a_process(void **state)
{
    (void)state;
    struct gp_arena arena = {NULL};
    struct sim_host host = {0};
    struct gp_err err = {0};
    int r = load(START ", 'processes': [{'pid': 12, 'user': 'mia', 'command': ['/bin/x', '-v'], "
                       "'environment': {'A': 'b'}, 'cpu': 50}]}",
                 &arena, &host, &err);
    assert_int_equal(r, GP_OK);
    assert_int_equal(host.user_count, 2);
    const struct sim_host_process *p = sim_host_find(&host, 12);
    assert_non_null(p);
    assert_null(sim_host_find(&host, 13));
    assert_int_equal(p->uid, 7);
    assert_int_equal(p->ppid, 1);
    assert_int_equal(p->group, 12);
    assert_int_equal(p->ns_pid, 12);
    assert_string_equal(p->name, "x");
    assert_string_equal(p->cwd, "/");
    assert_int_equal(p->command.size, sizeof("/bin/x") + sizeof("-v"));
    assert_memory_equal(p->command.text, "/bin/x\0-v", p->command.size);
    assert_memory_equal(p->environment.text, "A=b", p->environment.size);
    gp_arena_fini(&arena);
}

static void takes_files_and_leases(void **state)
{
    (void)state;
    struct gp_arena arena = {NULL};
    struct sim_host host = {0};
    struct gp_err err = {0};
    int r = load(START ", 'files': {'/a': 'one', '/b': ['two', 'three']}, 'leases': [{'user': "
                       "'mia', 'pid': 3, 'gpus': [0, 63], 'command': 'c', 'waits_for': 1}]}",
                 &arena, &host, &err);
    assert_int_equal(r, GP_OK);
    assert_int_equal(host.file_count, 2);
    assert_string_equal(host.files[0].text, "one");
    assert_string_equal(host.files[1].text, "two\nthree\n");
    assert_int_equal(host.lease_count, 1);
    assert_true(host.leases[0].gpus == (UINT64_C(1) << 63 | 1));
    gp_arena_fini(&arena);
}

static void refuses_with_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"1", "expected an object"},
        {"{}", "name: is missing"},
        {"{'name': 1}", "name: expected a string"},
        {"{'name': 'n', 'cpus': 0, 'memory_bytes': 1, 'uptime_s': 1}",
         "cpus: expected a number from 1 to 4096"},
        {START ", 'hats': 1}", "unknown key 'hats'"},
        {START ", 'processes': 1}", "processes: expected an array of at most 4096 entries"},
        {START ", 'processes': [1]}", "processes[0]: expected an object"},
        {START ", 'processes': [{'pid': 0, 'user': 'mia', 'command': ['x']}]}",
         "processes[0]: pid: expected a number from 1 to 2147483647"},
        {START ", 'processes': [{'pid': 1, 'user': 'mia'}]}", "processes[0]: command: is missing"},
        {START ", 'processes': [{'user': 'eve'}]}",
         "processes[0]: user: expected the name of one of the users"},
        {START ", 'processes': [{'command': []}]}",
         "processes[0]: command: expected an array of strings"},
        {START ", 'processes': [{'command': ['a', 1]}]}",
         "processes[0]: command: expected an array of strings"},
        {START ", 'processes': [{'environment': {'A': 1}}]}",
         "processes[0]: environment: expected an object of strings"},
        {START ", 'processes': [{'rss_bytes': -1}]}",
         "processes[0]: rss_bytes: expected a number from 0 on"},
        {START ", 'processes': [{'pid': 1, 'user': 'mia', 'command': ['x'], 'state': 'SS'}]}",
         "processes[0]: state: expected R, S, D, Z, T, t or I"},
        {START ", 'leases': [{'gpus': [64]}]}", "leases[0]: gpus: expected numbers from 0 to 63"},
        {START ", 'files': {'a': ''}}", "files: 'a': expected an absolute path"},
        {START ", 'files': {'/../a': ''}}", "files: '/../a': expected an absolute path"},
        {START ", 'files': {'/a': 1}}", "files: /a: expected a string"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_arena arena = {NULL};
        struct sim_host host = {0};
        struct gp_err err = {0};
        assert_int_equal(load(cases[i].text, &arena, &host, &err), GP_EFORMAT);
        assert_string_equal(err.text, cases[i].words);
        gp_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_process),
        cmocka_unit_test(takes_files_and_leases),
        cmocka_unit_test(refuses_with_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
