/* gpulse diff: a separate program, because it needs SQLite and zstd. */
#include "cmd/diff.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

#include "base/err.h"

/* As of diff(1), 1 means that there are differences; errors are 2. */
static int diff_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_diff_options o = {.all = false};
    int r = gp_companion_run(&gp_cmd_diff, "gpulse-diff", &o, true, argc, argv, err);
    return r < 0 ? GP_EUSAGE : r;
}

const struct gp_cmd gp_cmd_diff = {
    .name = "diff",
    .summary = "compare two recordings: what changed beyond noise",
    .usage = "[options] BEFORE AFTER",
    .description =
        "Compares two recordings, two times of one, or two jobs. BEFORE and AFTER are files that "
        "gpulse record has written, or directories that gpulse run has recorded. FILE@FROM..TO "
        "is a time in a recording; @FROM..TO one in the user's own recording. FROM and TO are "
        "times as in --at, and may be omitted.\n"
        "\n"
        "Of each GPU it compares utilization and memory used, power when idle and, while the "
        "utilization is at least 50 %, clocks, activity, bandwidth, power, temperature, PCIe "
        "traffic and the share of time in which a limit slowed the GPU down; errors per hour; "
        "memory and SM use of programs with the same name and user; and of jobs the steps per "
        "second, if they report steps. GPUs are the same if their UUIDs are; otherwise those with "
        "the same index are compared. Versions and settings that changed are listed.\n"
        "\n"
        "A difference is reported only if noise does not explain it. Samples resemble those before "
        "them, so the means of blocks are compared, which are four times as long as that lasts "
        "(Welch's t-test). Errors are compared as Poisson counts; those of a kind within a minute "
        "count once. p is corrected for the number of comparisons (Holm): without any change, the "
        "chance that anything is reported is at most 5 %. Intervals have 95 % confidence. "
        "Differences that are certain but too small to matter are shown with --all.\n"
        "\n"
        "Half an hour on each side, once a second, usually suffices to find a change of 3 %. What "
        "varies more slowly, such as a temperature that rises all the time, needs longer. The test "
        "knows only how values vary within a recording: two recordings on a cool and a hot day "
        "differ, too.",
    .examples = "gpulse diff monday.tape tuesday.tape\twhat changed since monday\n"
                "gpulse diff \"@yesterday 10:00..yesterday 11:00\" @10:00..11:00\ttwo hours of the "
                "own recording\n"
                "gpulse diff --all -f json old.tape new.tape\tevery comparison\n"
                "gpulse diff runs/base runs/new\ttwo jobs that gpulse run --dir recorded\n",
    .options = gp_diff_table,
    .complete = GP_COMPLETE_FILE,
    .no_loop = true,
    .exit_codes = "0\tno difference beyond noise\n"
                  "1\ta difference\n"
                  "2\twrong usage, unreadable input, or too little in it to compare\n"
                  "130\tinterrupted\n",
    .run = diff_main,
};
