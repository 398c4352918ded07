#include "cmd/habits.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* A command that has such an option itself never looks it up here. */
#define REPEATING "status ps query events top"
#define BY_ID "status ps top kill mem reclaim suspend resume query events queue set"
#define OF_SMI "gpulse set"
#define JOBS "run pick"
#define OF_GPUS JOBS " fit-batch"
#define OBSERVING "why advise"

#define CANCEL "kill PID (of the shell), where gpulse queue shows the PID"
#define ALL_PS "gpulse ps, which lists the processes of all users"
#define SUBMIT "gpulse run --wait -- COMMAND"

/* In each row: the commands, the word, and what to type instead. If there is a `value`, the
 * argument after the word is appended, or this name of it. */
static const struct {
    const char *commands, *word, *meant, *value;
} habits[] = {
    {"gpulse", "free", "gpulse pick --explain"},
    {"gpulse", "watch", "gpulse top"},
    {"gpulse", "--watch", "gpulse status --watch, or gpulse top"},
    {"gpulse", "list", "gpulse status"},
    {"gpulse", "info", "gpulse status -a"},
    {"gpulse", "-l", "gpulse smi -l"},
    {"gpulse", "-q", "gpulse smi -q"},
    {"gpulse", "-L", "gpulse smi -L"},
    {"gpulse", "dmon", "gpulse smi dmon"},
    {"gpulse", "pmon", "gpulse smi pmon"},
    {"gpulse", "topo", "gpulse smi topo -m"},
    {"gpulse", "nvlink", "gpulse smi nvlink"},
    {"gpulse", "nvidia-smi", "gpulse smi"},
    {"gpulse", "gpustat", "gpulse status -cpu"},
    {"gpulse", "nvitop", "gpulse top"},
    {"gpulse", "nvtop", "gpulse top"},
    {"gpulse", "-o", "gpulse top -i GPUS"},
    {"gpulse", "monitor", "gpulse top"},
    {"gpulse", "show", "gpulse status"},
    {"gpulse", "gpu", "gpulse status"},
    {"gpulse", "gpus", "gpulse status"},
    {"gpulse", "processes", "gpulse ps"},
    {"gpulse", "who", "gpulse ps"},
    {"gpulse", "users", "gpulse ps --by user"},
    {"gpulse", "--mine", "gpulse ps --mine"},
    {"gpulse", "ls", "gpulse status, gpulse ps or gpulse sim list"},
    {"gpulse", "log", "gpulse query FIELDS -o FILE, or gpulse events"},
    {"gpulse", "stop", "gpulse kill ", "PID"},
    {"gpulse", "killall", "gpulse kill --name ", "TEXT"},
    {"gpulse", "pkill", "gpulse kill --name TEXT"},
    {"gpulse", "pause", "gpulse suspend ", "PID"},
    {"gpulse", "continue", "gpulse resume ", "PID"},
    {"gpulse", "cancel", CANCEL},
    {"gpulse", "scancel", CANCEL},
    {"gpulse", "wait", "gpulse run --wait"},
    {"gpulse", "reserve", "gpulse run"},
    {"gpulse", "submit", "gpulse run --wait"},
    {"gpulse", "sbatch", SUBMIT},
    {"gpulse", "srun", SUBMIT},
    {"gpulse", "exec", "gpulse run -- COMMAND"},
    {"gpulse", "alloc", "gpulse run -- COMMAND"},
    {"gpulse", "salloc", "gpulse run --wait -- bash"},
    {"gpulse", "jobs", "gpulse queue"},
    {"gpulse", "squeue", "gpulse queue"},
    {"gpulse", "sinfo", "gpulse pick --explain"},
    {"gpulse", "sacct", "gpulse explain list"},
    {"gpulse", "scontrol", "gpulse queue, or gpulse explain list"},
    {"gpulse", "history", "gpulse explain list"},
    {"gpulse", "pipeline", "gpulse run --pipeline FILE"},
    {"gpulse", "xid", "gpulse explain xid 79"},
    {"gpulse", "reset", "gpulse smi -r -i GPU"},
    {"gpulse", "clocks", "gpulse query 'clocks.*', or gpulse set --list"},
    {"gpulse", "mig", "gpulse smi mig, or gpulse set mig-mode=on"},
    {"gpulse", "mps", "gpulse ps --type M"},
    {"gpulse", "power", "gpulse query power.draw"},
    {"gpulse", "temp", "gpulse query temperature.gpu"},
    {"gpulse", "logs", "gpulse explain last, or gpulse explain FILE"},
    {"gpulse", "--gpu-reset", "gpulse smi --gpu-reset -i GPU"},
    {"gpulse", "-d", "gpulse top -n ", "TIME"},
    {"gpulse", "exporter", "gpulse query '*' -f openmetrics -n 5 -o FILE --replace"},
    {"gpulse", "--json", "gpulse status --json"},
    {"gpulse", "--once", "gpulse status"},
    {"gpulse", "-1", "gpulse status"},
    {"gpulse", "-v", "gpulse --version"},
    {"gpulse", "query-gpu", "gpulse query FIELDS"},
    {"gpulse", "--query-gpu", "gpulse smi --query-gpu=… --format=csv, or gpulse query"},
    {"gpulse", "--query-compute-apps",
     "gpulse smi --query-compute-apps=…, or gpulse query --processes"},
    {"gpulse query", "--help-query-gpu", "gpulse query --list"},
    {"gpulse", "-n", "gpulse status -n TIME"},
    {"gpulse", "-u", "gpulse ps -u USER"},
    {"gpulse", "-p", "gpulse ps -p PID"},
    {"gpulse", "-lms", "gpulse smi -lms ", "MILLISECONDS"},

    /* nvidia-smi's options that change settings */
    {OF_SMI, "-pl", "gpulse set power-limit=", "WATTS"},
    {OF_SMI, "--power-limit", "gpulse set power-limit=", "WATTS"},
    {OF_SMI, "-pm", "gpulse set persistence-mode=", "on"},
    {OF_SMI, "--persistence-mode", "gpulse set persistence-mode=", "on"},
    {OF_SMI, "-lgc", "gpulse set lock-gpu-clocks=", "MIN,MAX"},
    {OF_SMI, "-rgc", "gpulse set lock-gpu-clocks=reset"},
    {OF_SMI, "-lmc", "gpulse set lock-memory-clocks=", "MIN,MAX"},
    {OF_SMI, "-rmc", "gpulse set lock-memory-clocks=reset"},
    {OF_SMI, "-ac", "gpulse set application-clocks=", "MEMORY,GRAPHICS"},
    {OF_SMI, "-rac", "gpulse set application-clocks=default"},
    {OF_SMI, "-am", "gpulse set accounting-mode=", "on"},
    {OF_SMI, "-mig", "gpulse set mig-mode=", "on"},
    {"set", "-c", "gpulse set compute-mode=exclusive-process, or default or prohibited"},
    {"set", "-e", "gpulse set ecc-mode=", "on"},
    {OF_SMI, "-r", "gpulse smi -r -i GPU"},
    {"gpulse", "-c", "gpulse status -c, or gpulse set compute-mode=MODE"},
    {"gpulse", "-e", "gpulse status -e, or gpulse set ecc-mode=on"},
    {"set", "--undo", "the command that the change printed after undo:, or --restore FILE"},

    /* options that several commands lack */
    {BY_ID, "-g", "-i ", "GPUS"},
    {"ps", "-l", "gpulse ps without -l, or -n TIME to repeat"},
    {REPEATING, "-d", "-n ", "TIME"},
    {REPEATING, "--delay", "-n ", "TIME"},
    {REPEATING, "-l", "-n ", "TIME"},
    {REPEATING, "--loop", "-n ", "TIME"},
    {BY_ID, "--gpus", "-i ", "GPUS"},
    {"status ps top", "--duration", "-n TIME --count N"},
    {"status ps top", "--for", "-n TIME --count N"},
    {"query events record", "--for", "--duration ", "TIME"},
    {OBSERVING " bench", "--duration", "--for ", "TIME"},
    {OBSERVING " bench", "--time", "--for ", "TIME"},
    {OBSERVING, "-t", "--for ", "TIME"},
    {"why", "--pid", "gpulse why ", "PID"},
    {"why", "-p", "gpulse why ", "PID"},
    {"advise", "--pid", "gpulse advise ", "PID"},
    {"advise", "-p", "gpulse advise ", "PID"},
    {"status", "--cp", "-cp"},
    {"ps query", "--cp", "gpulse status -cp"},
    {"status", "--process", "-cp, or gpulse ps"},
    {"status", "--processes", "-cp, or gpulse ps"},
    {"status", "--format", "--json"},
    {"status mem query", "--pid", "gpulse ps -p ", "PID"},
    {"status mem query", "--user", "gpulse ps -u ", "USER"},
    {"mem query", "-u", "gpulse ps -u ", "USER"},
    {"status mem query", "--mine", "gpulse ps --mine"},
    {"top", "-b", "gpulse top --plain, or gpulse status -n TIME"},
    {"top", "-s", "gpulse status, which prints once"},
    {"top", "-C", "NO_COLOR=1 gpulse top"},
    {"gpulse", "-C", "NO_COLOR=1 gpulse top"},
    {"gpulse top", "-m", "gpulse top --view=bar, or =line or =grid"},
    {"gpulse top", "--monitor", "gpulse top --view=bar, or =line or =grid"},
    {"gpulse top", "--light", "gpulse top --theme light"},
    {"status", "json", "--json"},
    {"events", "--json", "-f ndjson"},

    {"query", "-q", "gpulse smi -q"},
    {"query", "-p", "gpulse ps -p ", "PID"},
    {"queue", "-u", "gpulse queue | grep ", "USER"},
    {"queue", "--user", "gpulse queue | grep ", "USER"},
    {"queue", "--mine", "gpulse queue | grep \"$USER\""},
    {"queue", "--me", "gpulse queue | grep \"$USER\""},
    {"queue", "-j", "gpulse queue | grep ", "PID"},
    {"queue", "--all", "gpulse queue, which shows the jobs of all users"},
    {"queue", "-a", "gpulse queue, which shows the jobs of all users"},
    {"queue", "--watch", "watch gpulse queue"},
    {"queue", "-w", "watch gpulse queue"},
    {"queue", "-l", "gpulse queue, which shows all columns"},

    {"ps", "aux", ALL_PS},
    {"ps", "-a", ALL_PS},
    {"ps", "-A", ALL_PS},
    {"ps", "-e", ALL_PS},
    {"ps", "-w", "COLUMNS=300 gpulse ps"},
    {"ps", "-o", "--columns ", "COLUMNS"},
    {"ps", "pid", "-p ", "PID"},
    {"ps", "--forest", "--tree"},
    {"ps", "-H", "--tree"},
    {"ps", "-9", "gpulse kill -9 PID"},
    {"top", "-o", "--sort ", "COLUMNS"},
    {"query", "--log", "-o ", "FILE"},

    {"kill", "-f", "--name ", "TEXT"},
    {"kill", "-l", "-s int, -s term or -s kill"},

    {"run", "-t", "--timeout ", "TIME"},
    {"run", "--time", "--timeout ", "TIME"},
    {"run", "-J", "--name ", "TEXT"},
    {"run", "--job-name", "--name ", "TEXT"},
    {"run", "-N", "-g ", "N"},
    {"run", "-d", "--pipeline FILE, in which a step has after = STEP"},
    {"run", "--dependency", "--pipeline FILE, in which a step has after = STEP"},
    {"run", "--exclusive", "gpulse run without it: a job has its GPUs alone unless --share"},
    {"run", "-o", "--keep-output, or > FILE behind the command"},
    {"run", "--output", "--keep-output, or > FILE behind the command"},
    {"run", "--after", "--pipeline FILE, in which a step has after = STEP"},
    {"run", "--cpus", "taskset -c CPUS in front of the command: only GPUs are reserved"},
    {"run", "--cpus-per-task", "taskset -c CPUS in front of the command: only GPUs are reserved"},
    {OF_GPUS, "--gres", "-g N"},
    {OF_GPUS, "--num-gpus", "-g ", "N"},
    {OF_GPUS, "--num_gpus", "-g ", "N"},
    {OF_GPUS, "--ngpus", "-g ", "N"},
    {OF_GPUS, "--ngpu", "-g ", "N"},
    {OF_GPUS, "--num", "-g ", "N"},
    {OF_GPUS, "--memory", "--mem ", "SIZE"},
    {OF_GPUS, "--vram", "--mem ", "SIZE"},
    {"explain", "--last", "gpulse explain last"},
    {"explain", "--list", "gpulse explain list"},
    {"explain", "--xid", "gpulse explain xid ", "N"},
    {"doctor", "--fix", "gpulse doctor, which shows the fix of each problem"},
    {"set", "--power", "gpulse set power-limit=", "WATTS"},
    {"report", "--from", "--since ", "TIME"},
    {"mem", "--model", "--params ", "N"},
    {"sim", "up", "gpulse --sim ", "MACHINE"},
    {"sim", "start", "gpulse --sim ", "MACHINE"},
    {"sim", "use", "gpulse --sim ", "MACHINE"},
    {"sim", "run", "gpulse --sim MACHINE run -- COMMAND, or gpulse sim exec -m MACHINE -- COMMAND"},
};

static bool is_value(const char *next)
{
    return next && *next && *next != '-';
}

bool gp_habit_find(const char *command, const char *word, const char *next, char ret[GP_HABIT_SIZE])
{
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < GP_ARRAY_LEN(habits); i++) {
        if (strlen(habits[i].word) != n || memcmp(habits[i].word, word, n) != 0 ||
            !gp_cli_list_has(habits[i].commands, command, strlen(command)))
            continue;
        const char *value = habits[i].value ? habits[i].value : "";
        if (*value && word[n] && word[n + 1])
            value = word + n + 1;
        else if (*value && is_value(next))
            value = next;
        (void)snprintf(ret, GP_HABIT_SIZE, "%s%.60s", habits[i].meant, value);
        return true;
    }
    return false;
}

bool gp_habit_find_option(const char *command, int argc, char *const *argv,
                          const struct gp_cli_unknown *unknown, char ret[GP_HABIT_SIZE])
{
    const char *word = argv[unknown->at];
    const char *next = unknown->at + 1 < argc ? argv[unknown->at + 1] : NULL;
    if (unknown->at == 0)
        return false;
    if (gp_habit_find(command, word, next, ret))
        return true;
    /* "-ef", "-g3" */
    const char *glued = unknown->letter ? unknown->letter + 1 : "";
    const char one[] = {'-', unknown->letter ? *unknown->letter : '\0', '\0'};
    return unknown->letter && gp_habit_find(command, one, *glued ? glued : next, ret);
}

int gp_habit_check_words(const char *command, int count, char *const *words, struct gp_err *err)
{
    char meant[GP_HABIT_SIZE];
    for (int i = 0; i < count; i++)
        if (gp_habit_find(command, words[i], i + 1 < count ? words[i + 1] : NULL, meant))
            return gp_err_set(err, GP_EUSAGE, "%s takes no argument '%.60s'; try %s", command,
                              words[i], meant);
    return 0;
}
