#include "cmd/doctor.h"

#define OPT(field) offsetof(struct gp_doctor_options, field)

const struct gp_opt gp_doctor_table[] = {
    {0, "only", NULL, GP_OPT_STRING, "CHECKS", .offset = OPT(only),
     .help = "only these checks, or groups of them: driver,cuda.ldpath"},
    {0, "skip", NULL, GP_OPT_STRING, "CHECKS", .offset = OPT(without),
     .help = "all but these checks or groups"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list),
     .help = "list the checks, with what each says when all is well"},
    {0, "python", NULL, GP_OPT_STRING, "PATH", .offset = OPT(python), .complete = GP_COMPLETE_FILE,
     .help =
         "look at this interpreter or environment (a comma list) instead of all that are found"},
    {0, "watch-log", NULL, GP_OPT_FLAG, .offset = OPT(watch_log),
     .help = "follow the kernel's log, and explain each line about a GPU as it comes"},
    {0, "bundle", NULL, GP_OPT_STRING, "FILE", .offset = OPT(bundle), .complete = GP_COMPLETE_FILE,
     .help = "write a report for a bug tracker to FILE.tar.gz or FILE.tar.zst, without names, "
             "passwords, addresses, serial numbers and UUIDs"},
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = OPT(yes),
     .help = "with --bundle: write it without asking for confirmation"},
    {0, "gpu", NULL, GP_OPT_STRING, "MODELS", .offset = OPT(gpu),
     .help = "give advice for these models or compute capabilities (a comma list): 'RTX 4090,8.0'"},
    {0, "driver", NULL, GP_OPT_STRING, "VERSION", .offset = OPT(driver),
     .help = "give advice for this driver, 550.54.15, or the newest of a branch, 550"},
    {0, "sources", NULL, GP_OPT_FLAG, .offset = OPT(sources),
     .help = "say where each fact of a table is from"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "text or json"},
    {0, "json", NULL, GP_OPT_FLAG, .offset = OPT(json), .help = "the same as --format json"},
    {'v', "verbose", NULL, GP_OPT_FLAG, .offset = OPT(verbose),
     .help = "show what is well too, and what it was seen by"},
    GP_OPT_END,
};
