#include "cmd/bench.h"

#define OPT(field) offsetof(struct gp_bench_options, field)

const struct gp_opt gp_bench_table[] = {
    {'g', "gpus", NULL, GP_OPT_STRING, "N", .offset = OPT(gpus), .excludes = "gpu-ids",
     .group = "Select", .help = "number of GPUs, or all (default: 1; multi, burn, check: all)"},
    {0, "gpu-ids", "gpu", GP_OPT_STRING, "GPUS", .offset = OPT(gpu_ids),
     .help = "exactly these GPUs, as in -i"},
    {0, "engine", NULL, GP_OPT_CHOICE, "ENGINE", .choices = "auto cuda opencl",
     .offset = OPT(engine),
     .help = "library to compute with (default auto: CUDA, or else GPUs of OpenCL); opencl also "
             "uses CPUs"},
    {0, "shared", NULL, GP_OPT_FLAG, .offset = OPT(shared),
     .help = "measure GPUs without reserving them; the results are marked"},
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(wait_ns),
     .help = "wait up to TIME for free GPUs"},
    {0, "sizes", NULL, GP_OPT_STRING, "LIST", .offset = OPT(sizes), .group = "Measure",
     .help = "matmul: numbers of rows (default 100,200,500,1000,2000,5000,10000)"},
    {0, "precision", NULL, GP_OPT_STRING, "LIST", .offset = OPT(precision),
     .help = "gemm, burn: fp64, fp32, tf32, fp16, bf16, fp8, int8 (default: all; burn: one that "
             "the GPU has)"},
    {0, "rows", NULL, GP_OPT_U64, "N", .least = 1, .offset = OPT(rows),
     .help = "gemm, burn, multi, check: rows of the matrices, up to 65536 (default: 8192 on "
             "a GPU)"},
    {0, "size", NULL, GP_OPT_SIZE, "SIZE", .least = 4096, .offset = OPT(bytes),
     .help = "memory, multi: size of each array (default: 1 GiB on a GPU; multi: 256 MiB)"},
    {0, "runs", NULL, GP_OPT_U64, "N", .least = 5, .offset = OPT(runs),
     .help = "measurements of each result (default 10, at least 5)"},
    {0, "warm-up", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(warm_ns),
     .help = "minimum time before each measurement (default 0.5s; gemm, multi, check: 2s)"},
    {0, "for", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(for_ns),
     .help = "burn: duration (default 1m)"},
    {0, "max-temp", NULL, GP_OPT_U64, "CELSIUS", .offset = OPT(most_celsius),
     .help = "burn: end with an error when a GPU is hotter"},
    {0, "least", NULL, GP_OPT_U64, "PERCENT", .least = 1, .offset = OPT(least_percent),
     .help = "check, --against: minimum percentage of the other GPUs of this model, and of "
             "the earlier run (default 95, products 90)"},
    {0, "save", NULL, GP_OPT_STRING, "FILE", .offset = OPT(save), .complete = GP_COMPLETE_FILE,
     .help = "also write the results to FILE, for --against"},
    {0, "against", NULL, GP_OPT_STRING, "FILE", .offset = OPT(against),
     .complete = GP_COMPLETE_FILE, .help = "compare with results of an earlier run"},
    {0, "log", NULL, GP_OPT_STRING, "FILE", .offset = OPT(log), .complete = GP_COMPLETE_FILE,
     .help = "also write each sample of clock, power, temperature and throttle reasons to FILE, as "
             "CSV"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text csv json",
     .offset = OPT(format), .group = "Output", .help = "output format (default text)"},
    {0, "svg", NULL, GP_OPT_STRING, "FILE", .offset = OPT(svg), .complete = GP_COMPLETE_FILE,
     .help = "matmul: also draw the curves into FILE"},
    {0, "ascii", NULL, GP_OPT_FLAG, .offset = OPT(ascii),
     .help = "draw the curves without Unicode"},
    GP_OPT_END,
};
