/* gpulse bench: a separate program, for its tables, and because it loads libraries that compute. */
#include "cmd/bench.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

static int bench_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_bench_options o = {0};
    return gp_companion_run(&gp_cmd_bench, "gpulse-bench", &o, true, argc, argv, err);
}

const struct gp_cmd gp_cmd_bench = {
    .name = "bench",
    .summary = "measure how fast GPUs are, with verified results",
    .usage = "matmul|gemm|memory|latency|multi|burn|check [options]",
    .description =
        "matmul: products of matrices of growing size on the CPU and on a GPU, with and without "
        "copying them from and to pinned memory; from which size on the GPU is faster; as a table "
        "and a graph.\n"
        "gemm: large products in each precision that the GPU has, and what part of the data "
        "sheet's rate that is.\n"
        "memory: reading, writing, copying and adding arrays in the GPU's memory; copies between "
        "it and the host, and between GPUs.\n"
        "latency: starting a kernel, waiting for it, copying 4 bytes, allocating and freeing "
        "memory, creating a context.\n"
        "multi: the same work on one GPU, two, and so on: what each adds, and which is the "
        "slowest; the sum of an array of each, by NCCL.\n"
        "burn: full load for some time; every result is compared, and a wrong one is an error.\n"
        "check: in about a minute for each GPU, whether it is as fast as the others of its kind, "
        "as its data sheet says, and as in an earlier run (--against). Exits with 1 if one is not, "
        "and with 6 if there was nothing to compare one with.\n"
        "\n"
        "The GPUs are reserved while they are measured, and a GPU that others use is refused, "
        "unless --shared is given. Each result is the median of several runs, after a warm-up "
        "that lasts until it is steady, with the interval that contains the true median with "
        "about 95 % confidence. Products are checked on the CPU. With each result are the clock, "
        "the power, the temperature, and what limited the clock, as the driver reports them.\n"
        "\n"
        "Nothing has to be installed but the driver. cuBLAS is used where it is found: in the "
        "system, in a CUDA toolkit, or in the active Python environment, as PyTorch brings it. "
        "Without it, gpulse uses kernels of its own, which are slower, and says so. Other GPUs are "
        "measured through OpenCL, with CLBlast. The CPU needs OpenBLAS, MKL or BLIS.\n"
        "\n"
        "Simulated GPUs have no speed, and are refused.",
    .examples = "gpulse bench check\tis each GPU as fast as it should be?\n"
                "gpulse bench check --save new.json\tkeep the results, for later\n"
                "gpulse bench check --against new.json\thas a GPU become slower?\n"
                "gpulse bench matmul --svg curve.svg\tCPU and GPU, with a drawing\n"
                "gpulse bench gemm --precision bf16,fp8\tthe rate of the tensor cores\n"
                "gpulse bench burn --for 10m -g all\tfull load, verified\n",
    .options = gp_bench_table,
    .no_loop = true,
    .run = bench_main,
};
