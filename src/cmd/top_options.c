#include "cmd/top.h"

#define OPT(field) offsetof(struct gp_top_options, field)

const struct gp_opt gp_top_table[] = {
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .help = "time between two samples (default 1s); + and - change it", .least = GP_NS_PER_S / 10},
    {0, "filter", NULL, GP_OPT_STRING, "WORDS", .offset = OPT(filter),
     .help = "only processes that have all these words; user: pid: gpu: cmd: type: may stand "
             "before one"},
    {0, "sort", NULL, GP_OPT_CHOICE, "COLUMN",
     .choices = "memory sm cpu rss time pid user gpu command", .offset = OPT(sort),
     .help = "what processes are sorted by (default memory)"},
    {0, "view", NULL, GP_OPT_CHOICE, "HOW", .choices = "card bar line grid auto",
     .offset = OPT(view), .help = "how GPUs are shown (default auto: the richest that has room)"},
    {0, "blocks", NULL, GP_OPT_FLAG, .offset = OPT(blocks),
     .help = "graphs of blocks, where the font has no dots"},
    {0, "ascii", NULL, GP_OPT_FLAG, .offset = OPT(ascii), .help = "ASCII only"},
    {0, "plain", NULL, GP_OPT_FLAG, .offset = OPT(plain),
     .help =
         "in lines, for screen readers and terminals that cannot place text; without --interval "
         "every ten seconds"},
    {0, "count", NULL, GP_OPT_U64, "N", .offset = OPT(count),
     .help = "with --plain: end after N samples", .least = 1},
    {0, "read-only", NULL, GP_OPT_FLAG, .offset = OPT(read_only),
     .help = "no key sends a signal or changes anything"},
    {0, "no-gpus", NULL, GP_OPT_FLAG, .offset = OPT(no_gpus), .help = "processes only"},
    {0, "no-processes", NULL, GP_OPT_FLAG, .offset = OPT(no_processes), .help = "GPUs only"},
    GP_OPT_END,
};
