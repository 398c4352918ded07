/* A small program as tables: what test_cli.c parses and test_cli_doc.c explains. */
#ifndef GP_TESTS_CLI_FIXTURE_H
#define GP_TESTS_CLI_FIXTURE_H

#include "base/cli.h"

struct values {
    bool all;
    bool dry;
    const char *name;
    const char *format;
    uint64_t interval_ns;
    uint64_t count;
    uint64_t size_bytes;
    uint64_t watch_ns;
};

struct common_values {
    const char *sim;
    bool quiet;
    const char *color;
};

static const struct gp_opt show_options[] = {
    {'a', "all", NULL, GP_OPT_FLAG, .offset = offsetof(struct values, all),
     .help = "show everything"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = offsetof(struct values, dry),
     .help = "only say what would be done"},
    {'o', "output", "out", GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = offsetof(struct values, name), .help = "write to FILE"},
    {'f', "format", "fmt style", GP_OPT_CHOICE, "FORMAT", .choices = "table csv json",
     .offset = offsetof(struct values, format), .help = "how to print"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = offsetof(struct values, interval_ns),
     .help = "time between two readings"},
    {'c', "count", NULL, GP_OPT_U64, "N", .offset = offsetof(struct values, count),
     .help = "end after N readings", .least = 2},
    {0, "memory", NULL, GP_OPT_SIZE, "SIZE", .offset = offsetof(struct values, size_bytes),
     .help = "memory to take"},
    {'w', "watch", NULL, GP_OPT_DURATION, "TIME", .fallback = "2",
     .offset = offsetof(struct values, watch_ns),
     .help = "repeat every TIME, which is long enough a sentence to be wrapped to the next line of "
             "the page",
     .least = GP_NS_PER_S / 4},
    {0, "old-name", NULL, GP_OPT_FLAG, .offset = offsetof(struct values, dry), .help = NULL},
    GP_OPT_END,
};

static const struct gp_opt common_options[] = {
    {0, "sim", NULL, GP_OPT_STRING, "MACHINE", .complete = GP_COMPLETE_MACHINE,
     .offset = offsetof(struct common_values, sim), .help = "use a simulated machine"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = offsetof(struct common_values, quiet),
     .help = "say less", .for_loops = true},
    {0, "color", NULL, GP_OPT_CHOICE, "WHEN", .fallback = "always", .choices = "auto always never",
     .offset = offsetof(struct common_values, color), .help = "colours"},
    GP_OPT_END,
};

#endif
