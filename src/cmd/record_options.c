#include "cmd/record.h"

#include "base/util.h"

#define OPT(field) offsetof(struct gp_record_options, field)

const struct gp_opt gp_record_table[] = {
    {'o', "output", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE, .offset = OPT(file),
     .help = "record to FILE; an existing recording is continued"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10, .help = "take a sample every TIME (default 1s)"},
    {0, "duration", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(duration_ns),
     .help = "stop after TIME, such as 90s or 12h"},
    {0, "keep", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(keep_ns), .least = 1200 * GP_NS_PER_S,
     .help = "keep every sample for TIME, at least 20m (default 1h); then only summaries"},
    {0, "size", NULL, GP_OPT_SIZE, "SIZE", .offset = OPT(size), .least = 1 << 20,
     .help = "keep the file smaller than SIZE (default 512M)"},
    {0, "age", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(age_ns), .least = 3600 * GP_NS_PER_S,
     .help = "keep nothing for longer than TIME"},
    {0, "before", NULL, GP_OPT_STRING, "TIME", .offset = OPT(before),
     .help = "of an incident, store the TIME before it at ten samples a second (default 10s, at "
             "most 1m; 0: not)"},
    {0, "start", NULL, GP_OPT_STRING, "TIME", .offset = OPT(start),
     .help = "import: when a file without times begins; --interval says how often it was written. "
             "export: from when on; --duration says how long"},
    {0, "shared", NULL, GP_OPT_FLAG, .offset = OPT(shared),
     .help = "record for all users of this machine, to " GP_RECORD_SHARED_FILE " unless -o"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = OPT(quiet),
     .help = "do not say what is recorded, and where"},
    GP_OPT_END,
};
