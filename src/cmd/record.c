/* gpulse record: a separate program, because it needs SQLite and zstd. */
#include "cmd/record.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

static int record_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_record_options o = {.file = NULL};
    return gp_companion_run(&gp_cmd_record, "gpulse-record", &o, true, argc, argv, err);
}

const struct gp_cmd gp_cmd_record = {
    .name = "record",
    .summary = "record everything that the GPUs do, for later",
    .usage = "[start|stop|status|import FILE|export FILE] [options] [-- COMMAND]",
    .description =
        "Records all values of the GPUs, the processes on them and the events, once a second, "
        "until Ctrl-C, --duration or the end of COMMAND. Other commands show the recording with "
        "--tape FILE, at any time in it with --at.\n"
        "\n"
        "Every sample is kept for an hour (--keep), and then summaries: of each second for a day, "
        "of 10 s for two weeks, of a minute for three months, of 10 minutes for two years. When "
        "the file exceeds --size, the oldest of the finest are dropped.\n"
        "\n"
        "Power, temperatures, clocks, utilization, memory, fan and what limits the clocks are also "
        "read ten times a second. This is only kept in memory, and stored if there is an incident: "
        "a GPU is lost or silent, has an uncorrectable memory error or an Xid that no program "
        "causes. Then the recording has the ten seconds before it (--before) and two after it, at "
        "most six times in an hour.\n"
        "\n"
        "start records in the background to the user's own recording, "
        "~/.local/state/gpulse/record/gpulse.tape, which is also the one without -o; stop ends "
        "that, and status says what it contains.\n"
        "\n"
        "import makes a recording of what other programs have written: nvidia-smi --query-gpu as "
        "CSV, nvidia-smi dmon, dcgmi dmon, gpulse query as CSV or NDJSON, and answers of "
        "Prometheus for a time range. export makes a trace for ui.perfetto.dev and "
        "chrome://tracing; for CSV or NDJSON: gpulse query --tape FILE --at start -n TIME.\n"
        "\n"
        "A full or slow disk delays no sample: they wait in memory, and of more than fit, a hole "
        "is recorded. After a crash, at most the last second is missing. The recording contains "
        "the command lines of the processes that you may see, so only you can read the file.\n"
        "\n"
        "--shared records for all users of the machine: everybody can read the file, but a command "
        "line only its owner and root. The systemd service gpulse-record does that. status without "
        "-o is about your own recording or, if you have none, that of the machine.",
    .examples = "gpulse record start\trecord in the background\n"
                "gpulse record status\tsince when, how much\n"
                "gpulse record -o night.tape -n 10s --duration 12h\tinto a file of its own\n"
                "gpulse record -o run.tape -- python train.py\twhile a command runs\n"
                "gpulse record import smi.csv -o old.tape\twhat nvidia-smi has written\n"
                "systemctl enable --now gpulse-record\tas a service, for all users\n"
                "gpulse --tape night.tape top\tlook at it\n"
                "gpulse ps --tape night.tape --at \"yesterday 03:10\"\twho was that?\n",
    .options = gp_record_table,
    .no_loop = true,
    .run = record_main,
};
