/* gpulse doctor: its own program, for its tables and libraries. */
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
    .summary = "find out why GPUs do not work, from PCI to the Python wheel",
    .usage = "[options] [advise WHAT | explain ERROR | gpus [MODEL]]",
    .description =
        "Looks at the hardware, the driver, the kernel's log, the GPUs' health, CUDA, the "
        "frameworks in Python environments and the container, and names the first cause, what it "
        "was seen by and the command that mends it on this distribution. It needs neither root nor "
        "a network, imports no framework, and changes and executes nothing.\n\n"
        "A check whose precondition failed is skipped, so that one cause is one finding. What "
        "cannot be read is skipped with the reason, never called well.\n\n"
        "advise torch, tensorflow, jax, cuda or driver: which version fits these GPUs and this "
        "driver, how to install it, and what would need a newer driver. explain xid 79, sxid N, "
        "cuda 802, nvml 18, throttle sw_power_cap, or any line of an error message: what it means, "
        "whose fault it is and what to do (- for a log on standard input; gpulse explain does it "
        "for "
        "the memory of a job). gpus: what the models can do.",
    .examples = "gpulse doctor\tthe whole machine\n"
                "gpulse doctor --only driver,log -v\ttwo groups of checks, in detail\n"
                "gpulse doctor --python ~/venv\tone environment\n"
                "gpulse doctor advise torch\twhich PyTorch to install\n"
                "gpulse doctor advise torch --gpu \"RTX 4090\" --driver 550\tfor another machine\n"
                "gpulse doctor explain xid 79\twhat a number means\n"
                "gpulse doctor explain \"CUDA error: no kernel image is available\"\n"
                "gpulse doctor gpus H100\twhat a model can do\n"
                "gpulse doctor --bundle report.tar.gz\tfor a bug tracker\n",
    .options = gp_doctor_table,
    .no_loop = true,
    .exit_codes = "0\tnothing is wrong; advice, or an explanation, was found\n"
                  "1\tsomething works, but badly; nothing fits, or the error is not known\n"
                  "2\tsomething does not work; or wrong usage\n"
                  "5\t--watch-log may not read the kernel's log\n"
                  "130\tinterrupted\n",
    .run = doctor_main,
};
