/* gpulse-sim: the tool of the simulated driver; `gpulse sim COMMAND` runs it. */
#include "sim/tool.h"

#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct gp_cmd *const commands[] = {
    &sim_cmd_list,   &sim_cmd_exec,  &sim_cmd_load,   &sim_cmd_fault,
    &sim_cmd_import, &sim_cmd_reset, &sim_cmd_record, NULL,
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

int sim_tool_home(char home[GP_PATH_SIZE], struct gp_err *err)
{
    ssize_t n = readlink("/proc/self/exe", home, GP_PATH_SIZE - 1);
    if (n <= 0)
        return gp_err_set(err, GP_EIO, "cannot find this program: %s", strerror(errno));
    home[n] = '\0';
    *strrchr(home, '/') = '\0';
    return GP_OK;
}

int sim_tool_open(const char *machine_option, const char **ret_spec,
                  struct sim_machine **ret_machine, struct sim_state **ret_state,
                  struct gp_err *err)
{
    char home[GP_PATH_SIZE];
    const char *spec = machine_option ? machine_option : getenv("GPULSE_SIM");
    if (!spec || !*spec)
        return gp_err_set(err, GP_EUSAGE, "no machine given; use -m, for example -m h100x8");
    int result = sim_tool_home(home, err);
    if (result == GP_OK)
        result = sim_machine_open(spec, home, ret_machine, err);
    if (result == GP_OK && ret_state) {
        result = sim_state_open(spec, ret_state, err);
        if (result < 0) {
            sim_machine_free(*ret_machine);
            *ret_machine = NULL;
        }
    }
    if (result == GP_OK)
        *ret_spec = spec;
    return result;
}

static int write_text(const char *path, const char *text, struct gp_err *err)
{
    struct gp_err why = {0};
    struct stat st;
    int fd = path ? gp_outfile_create(path, 0, 0644, &why) : STDOUT_FILENO;
    if (fd < 0)
        return gp_err_set(err, why.code, "cannot create '%s': %s", path, why.text);
    bool is_file = path && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int r = is_file && ftruncate(fd, 0) != 0 ? -errno : 0;
    if (r == 0)
        r = gp_io_write_all(fd, text, strlen(text));
    if (r == 0)
        r = gp_io_write_all(fd, "\n", 1);
    if (path && close(fd) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        return gp_err_set(err, GP_EIO, "cannot write %s: %s", path ? path : "the machine",
                          strerror(-r));
    return GP_OK;
}

int sim_tool_write_json(const char *path, const json_t *json, struct gp_err *err)
{
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    int result = text ? write_text(path, text, err) : gp_err_set(err, GP_ENOMEM, "out of memory");
    free(text);
    return result;
}

int sim_tool_print(struct gp_strbuf *sb, struct gp_err *err)
{
    int r = sb->error ? -ENOMEM : gp_io_write_all(STDOUT_FILENO, sb->buf, sb->len);
    gp_strbuf_fini(sb);
    return r < 0 ? gp_err_set(err, GP_EIO, "cannot write the output: %s", strerror(-r)) : GP_OK;
}

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
