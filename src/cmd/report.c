/* gpulse report: a separate program, because it needs SQLite and zstd. */
#include "cmd/report.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

static int report_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_report_options o = {.file = NULL};
    return gp_companion_run(&gp_cmd_report, "gpulse-report", &o, true, argc, argv, err);
}

const struct gp_cmd gp_cmd_report = {
    .name = "report",
    .summary = "report who used the GPUs of a recording, and how much",
    .usage = "[FILE] [options]",
    .description =
        "Sums up a recording of gpulse record: how long each GPU was held, busy and idle, by which "
        "users, jobs, containers, programs or processes, their energy and cost, and the incidents. "
        "FILE is the recording; without it, the user's own one is read, which gpulse record start "
        "writes.\n"
        "\n"
        "The sums are kept in periods of ten minutes, so a report begins and ends at whole ones. "
        "It "
        "says which time it covers, and for how much of it the recorder saw the GPUs. What is "
        "unknown is N/A, and not included in any sum.\n"
        "\n"
        "SEEN: the utilization of the GPU was known. HELD: a compute process had the GPU open. "
        "BUSY: the time, multiplied by the utilization; of processes, their SM time. IDLE: held at "
        "a "
        "utilization of 0 %. UTIL: the mean utilization while held. MEMORY: the most that was used "
        "of a GPU, or by one process on one GPU. ENERGY: of the GPU; of processes, an estimate: "
        "the "
        "GPU's energy, divided by SM time. INCIDENTS: errors and limited clocks, on GPUs that the "
        "processes were using then.\n"
        "\n"
        "--by wait lists the jobs that waited for GPUs in gpulse run --wait, and for how long.\n"
        "\n"
        "A user with several processes on a GPU holds it once. A GPU that several users hold "
        "counts "
        "in full for each of them. A MIG instance counts as a GPU.",
    .examples =
        "gpulse report\twhat the GPUs did, and for whom\n"
        "gpulse report --since 7d --by user,program\tthe last week\n"
        "gpulse report --since yesterday --until today -i 3 --by process\twho used GPU 3?\n"
        "gpulse report --group lab --by user\tthe users of one group\n"
        "gpulse report --by wait\thow long did jobs wait for GPUs?\n"
        "gpulse report --idle-held 2h\twho holds GPUs without using them?\n"
        "gpulse report --since 30d --price 2.1€/h -f html -o month.html\ta page with charts\n"
        "gpulse report night.tape -f csv -o night.csv\tfor a spreadsheet\n",
    .options = gp_report_option_table,
    .no_loop = true,
    .takes_tape = true,
    .complete = GP_COMPLETE_FILE,
    .run = report_main,
};
