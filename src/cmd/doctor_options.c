#include "cmd/doctor.h"

#define OPT(field) offsetof(struct gp_doctor_options, field)

const struct gp_opt gp_doctor_table[] = {
    {0, "only", NULL, GP_OPT_STRING, "CHECKS", .offset = OPT(only), .group = "Checks",
     .help = "run only these checks or groups, for example driver,cuda.ldpath"},
    {0, "skip", NULL, GP_OPT_STRING, "CHECKS", .offset = OPT(without),
     .help = "skip these checks or groups"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list), .help = "list all checks"},
    {0, "python", NULL, GP_OPT_STRING, "PATH", .offset = OPT(python), .complete = GP_COMPLETE_FILE,
     .help = "check these Python interpreters or environments, separated by commas"},
    {0, "watch-log", NULL, GP_OPT_FLAG, .offset = OPT(watch_log),
     .help = "follow the kernel log and explain new lines about GPUs"},
    {0, "gpu", NULL, GP_OPT_STRING, "MODELS", .offset = OPT(gpu), .group = "Advise",
     .help = "models or compute capabilities, for example 'RTX 4090,8.0'"},
    {0, "driver", NULL, GP_OPT_STRING, "VERSION", .offset = OPT(driver),
     .help = "driver version (550.54.15) or branch (550)"},
    {'a', "all", NULL, GP_OPT_FLAG, .offset = OPT(all), .group = "Explain",
     .help = "in a log: include messages that only look like a failure"},
    {'v', "verbose", NULL, GP_OPT_FLAG, .offset = OPT(verbose), .group = "Output",
     .help = "include checks that passed, with evidence"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "output format (default text)"},
    {0, "json", NULL, GP_OPT_FLAG, .offset = OPT(json), .help = "same as --format json"},
    {0, "sources", NULL, GP_OPT_FLAG, .offset = OPT(sources),
     .help = "with advise, explain or gpus: print the source of each fact"},
    {0, "bundle", NULL, GP_OPT_STRING, "FILE", .offset = OPT(bundle), .complete = GP_COMPLETE_FILE,
     .help = "write an anonymized report (.tar.gz or .tar.zst)"},
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = OPT(yes),
     .help = "with --bundle: do not ask for confirmation"},
    GP_OPT_END,
};
