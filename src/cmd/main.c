/* gpulse: finds the command and runs it, prints its error, and returns its status. The programs
 * behind commands (NAME_main.c) do so for themselves. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/habits.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/event.h"
#include "out/field_help.h"
#include "source/control.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order of the help. */
static const struct gp_cmd *const commands[] = {
    &gp_cmd_top,       &gp_cmd_status,     &gp_cmd_events,  &gp_cmd_record, &gp_cmd_replay,
    &gp_cmd_report,    &gp_cmd_diff,       &gp_cmd_ps,      &gp_cmd_kill,   &gp_cmd_reclaim,
    &gp_cmd_suspend,   &gp_cmd_resume,     &gp_cmd_run,     &gp_cmd_queue,  &gp_cmd_pick,
    &gp_cmd_fit_batch, &gp_cmd_doctor,     &gp_cmd_explain, &gp_cmd_why,    &gp_cmd_advise,
    &gp_cmd_bench,     &gp_cmd_mem,        &gp_cmd_query,   &gp_cmd_set,    &gp_cmd_smi,
    &gp_cmd_serve,     &gp_cmd_completion, &gp_cmd_sim,     &gp_cmd_demo,   NULL};

static const struct gp_program program = {
    .name = "gpulse",
    .summary = "monitor, share and diagnose NVIDIA GPUs",
    .description =
        "Without a command, gpulse runs top on a terminal and status otherwise. gpulse help "
        "COMMAND opens the manual page of a command.",
    .version = GPULSE_VERSION,
    .commands = commands,
    .common = gp_common_options,
    .exit_codes = "0\tsuccess\n"
                  "1\tfailed\n"
                  "2\twrong usage, or malformed input\n"
                  "3\tno GPU, or none that matches\n"
                  "4\tdriver problem\n"
                  "5\tpermission denied\n"
                  "6\tpartial result: some GPUs did not respond\n"
                  "69\trun, pick: not enough free GPUs\n"
                  "75\trun, pick, resume: still not enough when --wait ran out\n"
                  "78\trun, pick: the request can never be met\n"
                  "124\trun: --timeout ran out\n"
                  "130\tinterrupted\n",
    .environment =
        "GPULSE_SIM\tsame as --sim\n"
        "GPULSE_SIM_STILL\tsame as --sim-still, if not empty\n"
        "GPULSE_ROOT\tsame as --root\n"
        "GPULSE_NVML\tpath of the libnvidia-ml.so.1 to load\n"
        "GPULSE_CUDA\tpath of the libcuda.so.1 to load (suspend, resume, bench)\n"
        "GPULSE_STATE_DIR\tdirectory for reservations and notes about suspended processes; must be "
        "the absolute path of an existing directory (default: /run/gpulse, /dev/shm or /tmp)\n"
        "COLUMNS\tcolumns of the output (default: those of the terminal, otherwise no limit)\n"
        "NO_COLOR\tno colors unless --color=always\n",
    .signals = "SIGUSR1\twhen repeating: close the driver, for a GPU reset or a driver update; a "
               "second SIGUSR1 opens it again\n"
               "SIGINT, SIGTERM\twhen repeating: finish the output and stop\n",
};

/* ---- for the build and for shells; not in the help ---- */

static void expand_names(struct gp_strbuf *sb, enum gp_complete kind)
{
    char dir[GP_PATH_SIZE];
    if (kind == GP_COMPLETE_METRICS)
        for (int m = 0; m < GP_METRIC__COUNT; m++)
            gp_strbuf_addf(sb, "%s\t%s\n", GP_METRIC_NAME(m), GP_METRIC_HELP(m));
    if (kind == GP_COMPLETE_CONTROLS)
        for (int i = 0; i < GP_CONTROL__COUNT; i++)
            gp_strbuf_addf(sb, "%s=\t%s\n", gp_control_table[i].name, gp_control_table[i].syntax);
    for (int k = 0; kind == GP_COMPLETE_EVENTS && k < GP_EVENT__COUNT; k++)
        gp_strbuf_addf(sb, "%s\t%s\n", gp_event_table[k].name, gp_event_table[k].help);
    for (int g = 0; kind == GP_COMPLETE_EVENTS && g < GP_EVENT_GROUP__COUNT; g++)
        gp_strbuf_addf(sb, "%s\n", gp_event_group_names[g]);
    if (kind == GP_COMPLETE_THEMES &&
        gp_io_user_folder(dir, "XDG_CONFIG_HOME", ".config", "themes"))
        gp_io_list_names(dir, ".theme", sb);
    if (kind == GP_COMPLETE_MACHINE && gp_io_find_companion("sim", "machines", dir, NULL) == 0)
        gp_io_list_names(dir, ".json", sb);
}

/* gpulse __complete -- WORD…: candidates for the last word. */
static int complete(int argc, char **argv, struct gp_err *err)
{
    int first = argc > 2 && strcmp(argv[2], "--") == 0 ? 3 : 2;
    if (argc > first + 1 && first == 3 && strcmp(argv[first], "sim") == 0) {
        /* The arguments after "sim" are gpulse-sim's: sim __complete -- WORD… */
        char *const moved[] = {argv[3], argv[1], argv[2]};
        memcpy(argv + 1, moved, sizeof(moved));
        return gp_cmd_sim.run(argc - 1, argv + 1, err);
    }
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_cli_complete(&sb, &program, argc - first, argv + first, expand_names);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* gpulse __man gpulse|metrics|COMMAND: scdoc source of a manual page. */
static int man(int argc, char **argv, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    const struct gp_cmd *cmd = NULL;
    const char *page = argc > 2 ? argv[2] : "gpulse";
    int r = 0;
    if (strcmp(page, "gpulse") == 0)
        gp_cli_man(&sb, &program);
    else if (strcmp(page, "metrics") == 0)
        gp_field_help_man(&sb);
    else
        r = gp_cli_find(commands, page, &cmd, err);
    if (cmd)
        gp_cli_man_command(&sb, &program, cmd);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- the command line ---- */

/* NULL: that of the program */
static int print_help(const struct gp_cmd *cmd, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (cmd)
        gp_cli_help_command(&sb, &program, cmd);
    else
        gp_cli_help(&sb, &program);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* Shows the manual page of a command, from the build tree or installed. Returns if there is none,
 * no man(1), or no terminal to show it on. */
static void open_manual(const struct gp_cmd *cmd)
{
    static const char *const places[] = {"docs/gpulse-", "../share/man/man1/gpulse-"};
    static const char *const endings[] = {".1", ".1.gz"};
    char name[96];
    char page[GP_PATH_SIZE];
    for (size_t i = 0; isatty(STDOUT_FILENO) && i < 4; i++) {
        (void)snprintf(name, sizeof(name), "%s%s%s", places[i / 2], cmd->name, endings[i % 2]);
        if (gp_io_find_companion("", name, page, NULL) == 0)
            (void)execlp("man", "man", "-l", page, (char *)NULL);
    }
}

/* gpulse without a command, but possibly with common options: live on a terminal, unless the
 * package does not include that program. */
static int run_default(struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    char top[] = "top";
    char status[] = "status";
    char watch[] = "--watch";
    char *argv[] = {top, NULL};
    char *status_argv[] = {status, watch, NULL};
    bool is_live = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (is_live && gp_io_find_companion("", "gpulse-top", path, NULL) == 0)
        return gp_cmd_top.run(1, argv, err);
    return gp_cmd_status.run(isatty(STDOUT_FILENO) ? 2 : 1, status_argv, err);
}

/* Called under this name, perhaps through a link, gpulse is the tool of that name. */
static bool is_called(const char *path, const char *name)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return path && strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Letters of gpustat's options, which gpulse status takes: "-cpu". */
static bool is_of_status(const char *word)
{
    const char *p = word + 1;
    while (word[0] == '-' && *p && gp_cli_option(gp_cmd_status.options, "", 0, *p))
        p++;
    return word[0] == '-' && p > word + 1 && !*p;
}

/* The message for an unknown option or, if there is none, for argv[1], which is no command. */
static int suggest(int argc, char **argv, const struct gp_cli_unknown *unknown, int r,
                   struct gp_err *err)
{
    const int at = unknown->at > 0 ? unknown->at : 1;
    char meant[GP_HABIT_SIZE] = "";
    const char *word = argv[at];
    if (gp_habit_find("gpulse", word, at + 1 < argc ? argv[at + 1] : NULL, meant))
        ;
    else if (is_of_status(word))
        (void)snprintf(meant, sizeof(meant), "gpulse status %.60s", word);
    else if (gp_habit_find_option("gpulse", argc, argv, unknown, meant))
        ;
    else if (word[0] && !word[strspn(word, "0123456789,")])
        (void)snprintf(meant, sizeof(meant), "gpulse status -i %.60s", word);
    return *meant ? gp_err_set(err, r, "unknown command or option '%.80s'; try %s", word, meant)
                  : r;
}

static int run(int argc, char **argv, struct gp_err *err)
{
    if (is_called(argv[0], "nvidia-smi"))
        return gp_cmd_smi.run(argc, argv, err);
    if (argc > 1 && strcmp(argv[1], "__complete") == 0)
        return complete(argc, argv, err);
    if (argc > 1 && strcmp(argv[1], "__man") == 0)
        return man(argc, argv, err);
    const struct gp_opt_target target = {gp_common_options, gp_common()};
    int words;
    struct gp_cli_unknown unknown;
    int r = gp_cli_parse(argc, argv, &target, 1, true, &words, &unknown, err);
    if (r < 0)
        return suggest(argc, argv, &unknown, r, err);
    if (argc > 1 && strcmp(argv[1], "version") == 0)
        gp_common()->version = true;
    if (gp_common()->version)
        return gp_app_print_version(err);
    if (words == 0)
        return gp_common()->help ? print_help(NULL, err) : run_default(err);
    bool wants_help = strcmp(argv[1], "help") == 0;
    if (wants_help && (words == 1 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
        return print_help(NULL, err);
    const struct gp_cmd *cmd;
    if (wants_help) {
        gp_common()->help = true;
        argv++;
        words = 1;
    }
    r = gp_cli_find(commands, argv[1], &cmd, err);
    if (r < 0)
        return suggest(words + 1, argv, &unknown, r, err);
    if (wants_help)
        open_manual(cmd);
    if (wants_help && cmd->no_common) /* smi: its own --help is nvidia-smi's */
        return print_help(cmd, err);
    argv[words + 1] = NULL;
    return cmd->run(words, argv + 1, err);
}

int main(int argc, char **argv)
{
    gp_app_init(&program);
    /* A closed pipe terminates gpulse like any filter, whatever the parent process had set. */
    (void)signal(SIGPIPE, SIG_DFL);
    /* One heap for all threads: a heap per pool thread would cost more than its work. */
    (void)mallopt(M_ARENA_MAX, 1);
    /* Each sample frees what the last one allocated: do not return it to the kernel in between. */
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 16 << 20);
    struct gp_err err = {0};
    int r = run(argc, argv, &err);
    if (r < 0 && err.code)
        gp_app_print_error(&err);
    int status = r > 0 ? r : gp_err_exit_status(r);
    if (gp_app_is_stuck())
        _exit(status);
    return status;
}
