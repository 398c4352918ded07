/* gpulse sim verify: a separate program, because it knows nvidia-smi's outputs and what may be
 * published. */
#include "sim/tool.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_S = 30 };

struct verify_options {
    const char *nvidia_smi, *format;
    uint64_t timeout_ns;
    bool identities;
};

#define OPT(field) offsetof(struct verify_options, field)

static const struct gp_opt options[] = {
    {0, "nvidia-smi", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(nvidia_smi), .help = "the program to compare with (default: that in PATH)"},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(timeout_ns),
     .help = "wait up to TIME for each run of a program (default 30s)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "output format (default text)"},
    {0, "identities", NULL, GP_OPT_FLAG, .offset = OPT(identities),
     .help = "print UUIDs, serial numbers, bus ids and names; otherwise they are hidden"},
    GP_OPT_END,
};

static int find_program(char path[GP_PATH_SIZE], struct gp_err *err)
{
    if (gp_io_find_companion("..", "gpulse-verify", path, NULL) == 0) /* in a build tree */
        return 0;
    return gp_io_find_companion("", "gpulse-verify", path, err);
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct verify_options o = {.format = "text", .timeout_ns = DEFAULT_TIMEOUT_S * GP_NS_PER_S};
    const struct gp_opt_target target = {options, &o};
    static char path[GP_PATH_SIZE];
    struct gp_strbuf words[3];
    char *args[6] = {path};
    char identities[] = "--identities";
    int positional, n = 1;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional > 0)
        result = gp_err_set(err, GP_EUSAGE, "verify takes no argument '%.60s'", argv[1]);
    if (result == GP_OK)
        result = find_program(path, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        gp_strbuf_init(&words[i], GP_PATH_SIZE + 64);
    gp_strbuf_addf(&words[0], "--timeout=%lluns", (unsigned long long)o.timeout_ns);
    gp_strbuf_addf(&words[1], "--format=%s", o.format);
    gp_strbuf_addf(&words[2], "--nvidia-smi=%s", o.nvidia_smi ? o.nvidia_smi : "");
    for (size_t i = 0; i < (o.nvidia_smi ? 3u : 2u); i++)
        args[n++] = words[i].buf;
    if (o.identities)
        args[n++] = identities;
    (void)execv(path, args);
    result = gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", path, strerror(errno));
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        gp_strbuf_fini(&words[i]);
    return result;
}

const struct gp_cmd sim_cmd_verify = {
    .name = "verify",
    .summary = "compare gpulse with nvidia-smi on this machine",
    .usage = "[options]",
    .description =
        "Compares every value of gpulse query and of gpulse smi (-q, --query-gpu with all fields, "
        "-L and the table) with what nvidia-smi prints, and prints a score and each difference, "
        "to attach to a bug report. The programs run in turn, twice each, and again while "
        "something differs. A value that moves, such as a clock or a time, is equal if it lies "
        "within the span that the other program saw, or if both moved.\n"
        "\n"
        "Values that nvidia-smi reads by private calls are listed as known differences, and do not "
        "count.\n"
        "\n"
        "The exit status is 0 if all values are equal, 1 if some differ, 2 if the program prints "
        "something else than nvidia-smi, and 4 without nvidia-smi or if it does not end in time.",
    .examples = "gpulse sim verify\tcompare on a machine with an NVIDIA driver\n"
                "gpulse sim verify -f json >verify.json\tthe same for a bug report\n",
    .options = options,
    .run = run,
};
