/* gpulse doctor: a separate program, for its tables and libraries. */
#include "cmd/doctor.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

static int doctor_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_doctor_options o = {0};
    return gp_companion_run(&gp_cmd_doctor, "gpulse-doctor", &o, true, argc, argv, err);
}

const struct gp_cmd gp_cmd_doctor = {
    .name = "doctor",
    .group = "Diagnose",
    .summary = "diagnose GPU problems, from PCI to the Python wheel",
    .usage = "[options] [advise WHAT | explain ERROR | gpus [MODEL]]",
    .description =
        "Examines the hardware, the driver, the kernel log, GPU health, CUDA, the frameworks in "
        "Python environments and the container. It reports the root cause, the evidence, and the "
        "command that fixes it on this distribution. It needs neither root nor a network, imports "
        "no framework, and neither changes nor executes anything.\n"
        "\n"
        "A check that depends on a failed check is skipped, so that one cause gives one finding. A "
        "check that cannot read what it needs is skipped, with the reason; it is never reported as "
        "passed.\n"
        "\n"
        "advise WHAT: for torch, tensorflow, jax, cuda or driver, shows which version fits these "
        "GPUs and this driver, how to install it, and what would need a newer driver. With a "
        "version, as in torch==2.8, shows whether that version works, and which of its builds.\n"
        "\n"
        "explain ERROR: shows what an error means, its likely origin and what to do. ERROR is xid "
        "79, sxid N, cuda 802, nvml 18, throttle sw_power_cap, any line of an error message, a "
        "log, or - for standard input; gpulse explain is the same command.\n"
        "\n"
        "gpus [MODEL]: shows the capabilities of GPU models.\n"
        "\n"
        "The facts about versions, models and error numbers are compiled in. Newer tables replace "
        "them: the newest in /usr/share/gpulse/tables or ~/.local/share/gpulse/tables (or below "
        "$XDG_DATA_HOME), by the date in their file DATE, or those of --tables.",
    .examples = "gpulse doctor\texamine the whole machine\n"
                "gpulse doctor --only driver,log -v\trun two groups of checks, with details\n"
                "gpulse doctor --python ~/venv\tcheck one environment\n"
                "gpulse doctor advise torch\tfind the PyTorch to install\n"
                "gpulse doctor advise torch==2.8 --gpu \"RTX 5090\" --driver 560\tcheck whether a "
                "version works on another machine\n"
                "gpulse doctor explain xid 79\texplain an error number\n"
                "gpulse doctor explain \"CUDA error: no kernel image is available for execution on "
                "the device\"\n"
                "gpulse doctor gpus H100\tshow the capabilities of a model\n"
                "gpulse doctor --bundle report.tar.gz\twrite a report for a bug tracker\n",
    .options = gp_doctor_table,
    .no_loop = true,
    .exit_codes = "0\tno problem found; for advise and explain: an answer was found\n"
                  "1\twarnings only; for advise: nothing fits; for explain: unknown error\n"
                  "2\tsomething failed, or wrong usage\n"
                  "5\t--watch-log: no permission to read the kernel log\n"
                  "130\tinterrupted\n",
    .run = doctor_main,
};
