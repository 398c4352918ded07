/* gpulse kill: terminates processes on the GPUs and checks that their memory is freed. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_end.h"
#include "cmd/proc_select.h"

#include "base/err.h"
#include "jobs/terminate.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct kill_options {
    struct gp_proc_select select;
    struct gp_end_options end;
};

static const struct gp_opt options[] = {
    GP_PROC_SELECT_ROWS(struct kill_options, select),
    GP_END_ROWS(struct kill_options, end),
    GP_OPT_END,
};

/* ---- the spellings of kill(1) ---- */

static struct {
    const char *number, *name;
    char option[16]; /* ours */
} signals[] = {
    {"2", "INT", "--signal=int"}, {"15", "TERM", "--signal=term"}, {"9", "KILL", "--signal=kill"}};

/* "9", "KILL", "SIGKILL"; NULL: none that gpulse sends. */
static char *option_of(const char *text)
{
    text += strncasecmp(text, "SIG", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (strcmp(signals[i].number, text) == 0 || strcasecmp(signals[i].name, text) == 0)
            return signals[i].option;
    return NULL;
}

/* "-9", "-KILL", "-s 9", "-sKILL", "--signal 9": replaced by the option of gpulse. */
static int read_signals(int argc, char **argv, struct gp_err *err)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char *word = argv[i];
        bool is_option = strcmp(word, "-s") == 0 || strcmp(word, "--signal") == 0;
        bool is_number = word[0] == '-' && isdigit((unsigned char)word[1]);
        bool is_name = word[0] == '-' && isupper((unsigned char)word[1]);
        char *option = is_number || is_name                 ? option_of(word + 1)
                       : strncmp(word, "-s", 2) == 0        ? option_of(word + 2)
                       : strncmp(word, "--signal=", 9) == 0 ? option_of(word + 9)
                                                            : NULL;
        if (is_option && i + 1 < argc && (option = option_of(argv[i + 1])))
            argv[++i] = option + strlen("--signal=");
        else if (option)
            argv[i] = option;
        else if (is_number || is_name)
            return gp_err_set(err, GP_EUSAGE,
                              "%.20s: gpulse kill sends only INT, TERM and KILL; kill(1) sends "
                              "others, and gpulse suspend frees the memory of a job for a while",
                              word);
        else if (strcmp(word, "--force") == 0)
            return gp_err_set(err, GP_EUSAGE,
                              "unknown option '--force'; to send SIGKILL at once: -9 or -s kill");
    }
    return 0;
}

/* "%1" */
static int refuse_shell_jobs(int count, char *const *words, struct gp_err *err)
{
    for (int i = 0; i < count; i++)
        if (words[i][0] == '%' && isdigit((unsigned char)words[i][1]))
            return gp_err_set(err, GP_EUSAGE,
                              "'%.20s' is a job of the shell; use its kill: kill %.20s", words[i],
                              words[i]);
    return 0;
}

/* ---- the command ---- */

static int kill_chosen(struct gp_sampler *sampler, const struct kill_options *o, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    struct gp_procs procs;
    bool ended;
    int r = gp_proc_select_find(&o->select, sampler, &snapshot, &procs, err);
    if (r == 0)
        r = gp_end_processes(sampler, snapshot, &procs, o->select.named, o->select.named_count,
                             &o->end, &ended, err);
    gp_procs_fini(&procs);
    gp_snapshot_free(snapshot);
    return r;
}

static int kill_main(int argc, char **argv, struct gp_err *err)
{
    static struct kill_options o; /* large */
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = gp_terminate_want();
    struct gp_sampler *sampler;
    int positional;
    bool done;
    int r = read_signals(argc, argv, err);
    if (r < 0)
        return r;
    r = gp_app_parse(&gp_cmd_kill, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = refuse_shell_jobs(positional, argv + 1, err);
    if (r == 0)
        r = gp_proc_select_parse(&o.select, argv + 1, positional, err);
    if (r < 0)
        return r;
    gp_proc_select_want(&o.select, &want);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = kill_chosen(sampler, &o, err);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_kill = {
    .name = "kill",
    .summary = "terminate processes on the GPUs and wait for their memory",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Lists the matching processes and asks for confirmation. Then it sends SIGINT, after 10 s "
        "SIGTERM to those that still run, and after another 10 s SIGKILL. It waits until the "
        "driver has freed their memory, and reports on each process. -s chooses a later signal as "
        "the first one; -9, -KILL and -TERM work as in kill(1).\n"
        "\n"
        "Processes are selected by pid, by words as in the filter of gpulse ps (user:alice, "
        "job:4711, gpu:0, cmd:train), and by the options; all conditions must hold. Only root can "
        "terminate other users' processes. Process 1, gpulse itself, its parents, and kernel "
        "threads are never touched; display servers only if given by pid.\n"
        "\n"
        "A recycled pid is never signalled.",
    .examples = "gpulse kill 4711\tone process\n"
                "gpulse kill -9 4711\tone that does not react, at once\n"
                "gpulse kill --job 4711\ta Slurm job's processes on this machine\n"
                "gpulse kill -i 0 --mine --yes\tmy processes on GPU 0, without asking\n"
                "gpulse kill --name train.py --tree\ta training job and its data loaders\n"
                "gpulse kill --mine --idle 10m\tmy idle processes\n",
    .options = options,
    .no_loop = true,
    .run = kill_main,
};
