/* gpulse explain: short for gpulse doctor explain, which has the tables. */
#include "cmd/commands.h"
#include "cmd/companion.h"
#include "cmd/doctor.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#define OPT(field) offsetof(struct gp_doctor_options, field)

static const struct gp_opt options[] = {
    {'a', "all", NULL, GP_OPT_FLAG, .offset = OPT(all),
     .help = "include messages that only look like a failure"},
    {0, "no-look", NULL, GP_OPT_FLAG, .offset = OPT(no_look),
     .help = "explain only, and do not look at this machine"},
    {0, "python", NULL, GP_OPT_STRING, "PATH", .offset = OPT(python), .complete = GP_COMPLETE_FILE,
     .help = "look at these Python interpreters or environments, separated by commas"},
    {0, "stats", NULL, GP_OPT_FLAG, .offset = OPT(stats),
     .help = "count the known errors by family"},
    {0, "sources", NULL, GP_OPT_FLAG, .offset = OPT(sources),
     .help = "for a code or a line: print the source of each fact"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "output format (default text)"},
    GP_OPT_END,
};

static int explain_main(int argc, char **argv, struct gp_err *err)
{
    static char verb[] = "explain";
    struct gp_doctor_options o = {0};
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    if (!words)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    words[0] = argv[0];
    words[1] = verb;
    memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    int r = gp_companion_run(&gp_cmd_explain, "gpulse-doctor", &o, true, argc + 1, words, err);
    free(words);
    return r;
}

const struct gp_cmd gp_cmd_explain = {
    .name = "explain",
    .summary = "explain an error from a program's log, a message, or a code",
    .usage = "[options] FILE... | last [N] | list | ERROR",
    .description =
        "FILE is a log, - for standard input, or a directory that gpulse run has recorded; last is "
        "your last recorded job, last 2 the one before, and list lists them. In a log, explain "
        "finds the messages that PyTorch, vLLM, llama.cpp, JAX, TensorFlow, ONNX Runtime, CuPy, "
        "NCCL, Triton, the CUDA libraries, the kernel and Slurm print when GPU or host memory runs "
        "out; for each one it names the cause, with the numbers in the message, and the fix. Then "
        "it explains the other errors that it knows: CUDA and NVML errors, Xids, and messages of "
        "frameworks, the driver and the kernel. Messages that only look like a failure are "
        "ignored.\n"
        "\n"
        "ERROR is a line of an error message, or a code: xid 79, sxid N, cuda 802, nvml 18, exit "
        "137, signal 9, throttle sw_power_cap. gpulse doctor explain is the same command.\n"
        "\n"
        "Which processes used the memory can be seen only at the time of the failure; gpulse run "
        "records it.",
    .examples = "gpulse explain train.log\tshow why a job failed\n"
                "gpulse explain last\tmy last gpulse run\n"
                "gpulse explain list\tmy recorded jobs\n"
                "journalctl -k | gpulse explain -\texplain why the kernel killed a process\n"
                "gpulse explain xid 79\texplain an error number\n",
    .options = options,
    .exit_codes = "0\tan explanation was found\n"
                  "1\tunknown error, or a log cannot be read\n"
                  "2\twrong usage\n",
    .no_loop = true,
    .complete = GP_COMPLETE_FILE,
    .run = explain_main,
};
