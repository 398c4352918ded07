/* Environments as jobs have them, and what they tell. */
#include "unit.h"

#include "proc/origin.h"

#define ENV(text) text, sizeof(text) - 1

static void what_an_environment_tells(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        size_t size;
        const char *origin;
    } cases[] = {
        {ENV(""), ""},
        {ENV("PATH=/bin\0HOME=/root\0"), ""},
        /* torchrun and accelerate */
        {ENV("RANK=3\0LOCAL_RANK=3\0WORLD_SIZE=8\0"), "rank 3/8"},
        {ENV("WORLD_SIZE=8\0XRANK=1\0RANK=0\0RANK=5\0"), "rank 0/8"},
        {ENV("RANK=0\0WORLD_SIZE=1\0"), ""}, /* alone */
        {ENV("RANK=3\0"), ""},
        {ENV("RANK=three\0WORLD_SIZE=8\0"), ""},
        {ENV("RANK=\0WORLD_SIZE=8\0"), ""},
        {ENV("RANK=-1\0WORLD_SIZE=8\0"), ""},
        {ENV("RANK=12345678901\0WORLD_SIZE=8\0"), ""},
        /* other launchers; the framework's own word first */
        {ENV("OMPI_COMM_WORLD_SIZE=4\0OMPI_COMM_WORLD_RANK=2\0"), "rank 2/4"},
        {ENV("PMI_SIZE=4\0PMI_RANK=1\0"), "rank 1/4"},
        {ENV("SLURM_PROCID=6\0SLURM_NTASKS=16\0"), "rank 6/16"},
        {ENV("SLURM_PROCID=0\0SLURM_NTASKS=2\0RANK=5\0WORLD_SIZE=16\0"), "rank 5/16"},
        {ENV("SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=0\0WORLD_SIZE=1\0"), "rank 1/2"},
        /* notebooks */
        {ENV("JPY_SESSION_NAME=/home/a/notes/train.ipynb\0JPY_PARENT_PID=7\0"),
         "notebook train.ipynb"},
        {ENV("JPY_SESSION_NAME=train.ipynb\0"), "notebook train.ipynb"},
        {ENV("JPY_PARENT_PID=7\0"), "notebook"},
        /* terminals and logins */
        {ENV("TMUX=/tmp/tmux-1000/default,123,0\0TMUX_PANE=%3\0"), "tmux %3"},
        {ENV("STY=1234.pts-0.node7\0"), "screen 1234.pts-0.node7"},
        {ENV("SSH_CONNECTION=192.0.2.7 51234 192.0.2.1 22\0"), "ssh 192.0.2.7"},
        {ENV("SSH_CONNECTION=2001:db8::7 51234 2001:db8::1 22\0"), "ssh 2001:db8::7"},
        {ENV("RAY_JOB_ID=01000000\0"), "ray 01000000"},
        /* several */
        {ENV("SSH_CONNECTION=192.0.2.7 1 2 3\0TMUX_PANE=%1\0RANK=1\0WORLD_SIZE=2\0"),
         "rank 1/2, tmux %1, ssh 192.0.2.7"},
        /* hostile: what a terminal obeys, no end, no '=' */
        {ENV("TMUX_PANE=\033[31mred\0"), "tmux \\x1b[31mred"},
        {ENV("TMUX_PANE=%3"), ""}, /* cut in its middle */
        {ENV("TMUX_PANE\0=\0\0\0TMUX_PANE=%4\0"), "tmux %4"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char origin[GP_PROC_ORIGIN_SIZE] = "not touched";
        gp_proc_origin(cases[i].environment, cases[i].size, origin);
        if (strcmp(origin, cases[i].origin) != 0)
            fail_msg("case %zu: '%s', not '%s'", i, origin, cases[i].origin);
    }
}

static void long_values_are_cut(void **state)
{
    (void)state;
    static char environment[20000];
    char origin[GP_PROC_ORIGIN_SIZE];
    size_t n = 0;
    static const char *const keys[] = {
        "JPY_SESSION_NAME=", "RAY_JOB_ID=", "TMUX_PANE=", "STY=", "SSH_CONNECTION="};
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        size_t length = strlen(keys[i]);
        memcpy(environment + n, keys[i], length);
        memset(environment + n + length, 'x', 3000);
        n += length + 3001;
    }
    gp_proc_origin(environment, n, origin);
    assert_true(strlen(origin) < GP_PROC_ORIGIN_SIZE);
    assert_int_equal(strncmp(origin, "notebook xxx", 12), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_environment_tells),
        cmocka_unit_test(long_values_are_cut),
    };
    return cmocka_run_group_tests_name("origin", tests, NULL, NULL);
}
