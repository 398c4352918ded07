/* gpulse bench: its options. gpulse uses them for help and completion, gpulse-bench parses them. */
#ifndef GP_CMD_BENCH_H
#define GP_CMD_BENCH_H

#include "base/cli.h"

struct gp_bench_options {
    const char *gpus, *gpu_ids, *engine;
    const char *sizes, *precision;
    uint64_t rows, bytes, runs;
    uint64_t warm_ns, for_ns, wait_ns;
    uint64_t most_celsius, least_percent;
    const char *save, *against, *log;
    const char *format, *svg;
    bool shared, ascii;
};

extern const struct gp_opt gp_bench_table[];

#endif
