/* gpulse-sim: the tool of the simulated driver; `gpulse sim COMMAND` runs it. */
#include "sim/tool.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <string.h>

static const struct gp_cmd *const commands[] = {
    &sim_cmd_list,  &sim_cmd_exec,   &sim_cmd_load,   &sim_cmd_fault, &sim_cmd_import,
    &sim_cmd_reset, &sim_cmd_record, &sim_cmd_verify, NULL,
};

static const struct gp_program program = {
    .name = "gpulse sim",
    .summary = "simulate GPUs at the driver interface",
    .description = "The simulated driver answers NVML programs from a machine file, which "
                   "describes a captured machine: its GPUs, users, processes, jobs and faults. It "
                   "never touches a real GPU, and its processes are never signalled.",
    .version = GPULSE_VERSION,
    .commands = commands,
    .exit_codes = "0\tsuccess\n"
                  "1\tfailed, or the simulated job ran out of memory\n"
                  "2\twrong usage, or malformed file\n"
                  "5\tpermission denied\n",
    .environment =
        "GPULSE_SIM\tthe machine\n"
        "GPULSE_SIM_STILL\t1: freeze the simulated values\n"
        "GPULSE_SIM_STRICT\t1: terminate a program with a message where a real library would "
        "crash\n"
        "GPULSE_SIM_COUNT\tfile to write the number of calls of each function to\n"
        "GPULSE_SIM_ROOT\twhether settings may be changed: 1 or 0 (default: only by root)\n"
        "GPULSE_SIM_TIMEOUT\tdefault of --timeout on simulated machines (default: same as for a "
        "real driver)\n"
        "GPULSE_SIM_STATE\tdirectory for faults, jobs and hosts (default: "
        "$XDG_RUNTIME_DIR/gpulse-sim, otherwise /tmp/gpulse-sim-UID)\n",
};

/* Prints a text; returns the exit status. */
static int print(struct gp_strbuf *sb)
{
    struct gp_err err = {0};
    if (sim_tool_print(sb, &err) < 0)
        gp_io_print_error(program.name, &err);
    return gp_err_exit_status(err.code);
}

static void expand_names(struct gp_strbuf *sb, enum gp_complete kind)
{
    char home[GP_PATH_SIZE], dir[GP_PATH_SIZE];
    if (kind == GP_COMPLETE_MACHINE && sim_tool_home(home, NULL) == GP_OK &&
        sim_machine_directory(home, dir, sizeof(dir), NULL) == GP_OK)
        gp_io_list_names(dir, ".json", sb);
}

static bool is_help(const char *arg)
{
    return arg && (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0);
}

int main(int argc, char **argv)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_err err = {0};
    const struct gp_cmd *cmd = NULL;
    gp_io_secure_standard_fds();
    if (argc < 2 || is_help(argv[1])) {
        gp_cli_help(&sb, &program);
        return print(&sb);
    }
    if (strcmp(argv[1], "--version") == 0) {
        gp_strbuf_addf(&sb, "%s %s\n", program.name, program.version);
        return print(&sb);
    }
    /* Used by the build and by shell completion; not in the help. */
    if (strcmp(argv[1], "__man") == 0) {
        gp_cli_man(&sb, &program);
        return print(&sb);
    }
    if (strcmp(argv[1], "__complete") == 0) {
        int first = argc > 3 && strcmp(argv[2], "--") == 0 ? 3 : 2;
        gp_cli_complete(&sb, &program, argc - first, argv + first, expand_names);
        return print(&sb);
    }
    int result = gp_cli_find(commands, argv[1], &cmd, &err);
    for (int i = 2; result == GP_OK && i < argc; i++) {
        /* The words after it may belong to another program. */
        if (strcmp(argv[i], "--") == 0 || (cmd->raw_rest && argv[i][0] != '-'))
            break;
        if (is_help(argv[i])) {
            gp_cli_help_command(&sb, &program, cmd);
            return print(&sb);
        }
    }
    if (result == GP_OK)
        result = cmd->run(argc - 1, argv + 1, &err);
    if (result != GP_OK && err.text[0])
        gp_io_print_error(program.name, &err);
    return gp_err_exit_status(result);
}
