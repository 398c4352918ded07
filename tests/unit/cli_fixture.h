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
    {'a', "all", NULL, GP_OPT_FLAG, NULL, NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, all), "show everything"},
    {0, "dry-run", NULL, GP_OPT_FLAG, NULL, NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, dry), "only say what would be done"},
    {'o', "output", "out", GP_OPT_STRING, "FILE", NULL, NULL, GP_COMPLETE_FILE,
     offsetof(struct values, name), "write to FILE"},
    {'f', "format", "fmt style", GP_OPT_CHOICE, "FORMAT", NULL, "table csv json", GP_COMPLETE_NONE,
     offsetof(struct values, format), "how to print"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, interval_ns), "time between two readings"},
    {'c', "count", NULL, GP_OPT_U64, "N", NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, count), "end after N readings", .least = 2},
    {0, "memory", NULL, GP_OPT_SIZE, "SIZE", NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, size_bytes), "memory to take"},
    {'w', "watch", NULL, GP_OPT_DURATION, "TIME", "2", NULL, GP_COMPLETE_NONE,
     offsetof(struct values, watch_ns),
     "repeat every TIME, which is long enough a sentence to be wrapped to the next line of "
     "the page",
     .least = GP_NS_PER_S / 4},
    {0, "old-name", NULL, GP_OPT_FLAG, NULL, NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct values, dry), NULL},
    GP_OPT_END,
};

static const struct gp_opt common_options[] = {
    {0, "sim", NULL, GP_OPT_STRING, "MACHINE", NULL, NULL, GP_COMPLETE_MACHINE,
     offsetof(struct common_values, sim), "use a simulated machine"},
    {'q', "quiet", NULL, GP_OPT_FLAG, NULL, NULL, NULL, GP_COMPLETE_NONE,
     offsetof(struct common_values, quiet), "say less", .for_loops = true},
    {0, "color", NULL, GP_OPT_CHOICE, "WHEN", "always", "auto always never", GP_COMPLETE_NONE,
     offsetof(struct common_values, color), "colours"},
    GP_OPT_END,
};

#endif
