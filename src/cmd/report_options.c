#include "cmd/report.h"

#include "base/util.h"

#define OPT(field) offsetof(struct gp_report_options, field)

const struct gp_opt gp_report_option_table[] = {
    {0, "since", NULL, GP_OPT_STRING, "TIME", .offset = OPT(since), .group = "Select",
     .help = "begin at TIME, for example 7d, yesterday, 2026-11-01 or \"2026-11-01 08:00\" "
             "(default: the start of the recording)"},
    {0, "until", NULL, GP_OPT_STRING, "TIME", .offset = OPT(until),
     .help = "end at TIME (default: the end of the recording)"},
    {'u', "user", NULL, GP_OPT_STRING, "USERS", .offset = OPT(users),
     .help = "only processes of these users, separated by commas"},
    {0, "group", NULL, GP_OPT_STRING, "GROUPS", .offset = OPT(groups),
     .help = "only processes of users in these groups (getent group), separated by commas"},
    {0, "by", NULL, GP_OPT_CHOICE, "WHAT", .choices = GP_REPORT_TABLES, .offset = OPT(by),
     .group = "Show",
     .help = "print a table for each WHAT, separated by commas (default gpu,user)"},
    {0, "idle-held", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(idle_held_ns),
     .help =
         "list processes that held a GPU at 0 % utilization for at least TIME in total, longest "
         "first"},
    {0, "price", NULL, GP_OPT_STRING, "PRICE", .offset = OPT(price),
     .help = "add the cost, at PRICE for each hour that a GPU is held, such as 2.1/h or 2.1€/h"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = GP_REPORT_FORMATS,
     .offset = OPT(format), .group = "Output", .help = "output format (default text)"},
    {'o', "output", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE, .offset = OPT(file),
     .help = "write to FILE instead of standard output; an existing FILE is replaced"},
    GP_OPT_END,
};
