/* gpulse-bench: measures how fast GPUs are. */
#include "cmd/app.h"
#include "cmd/bench.h"
#include "cmd/bench_guard.h"
#include "cmd/bench_output.h"
#include "cmd/job_request.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "bench/log.h"
#include "bench/watch.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct gp_cmd command = {.name = "bench",
                                      .usage = "matmul|gemm|memory|latency|multi|burn|check "
                                               "[options]",
                                      .options = gp_bench_table};

enum { SIZES_MAX = 64, ROWS_MOST = 65536, WARM_MOST_S = 3600, EXIT_WRONG = 1 };

/* ---- the tests ---- */

static int read_sizes(const char *list, uint64_t sizes[SIZES_MAX], size_t *ret_count,
                      struct gp_err *err)
{
    char word[24];
    size_t count = 0;
    while (gp_parse_word(&list, ',', word, sizeof(word))) {
        if (!gp_parse_u64(word, &sizes[count]) || sizes[count] == 0 || sizes[count] > ROWS_MOST)
            return gp_err_set(err, GP_EUSAGE, "--sizes: '%s' is not a number of rows from 1 to %d",
                              word, (int)ROWS_MOST);
        if (++count == SIZES_MAX)
            return gp_err_set(err, GP_EUSAGE, "--sizes takes at most %d", (int)SIZES_MAX - 1);
    }
    *ret_count = count;
    return count ? 0 : gp_err_set(err, GP_EUSAGE, "--sizes needs numbers of rows");
}

static int read_precisions(const char *list, unsigned *ret, struct gp_err *err)
{
    char word[24];
    *ret = list ? 0 : (1U << GP_BENCH_PRECISION__COUNT) - 1;
    while (list && gp_parse_word(&list, ',', word, sizeof(word))) {
        enum gp_bench_precision precision;
        if (!gp_bench_precision_find(word, &precision))
            return gp_err_set(err, GP_EUSAGE,
                              "--precision: '%s' is none of: fp64 fp32 tf32 fp16 bf16 fp8 int8",
                              word);
        *ret |= 1U << precision;
    }
    return *ret ? 0 : gp_err_set(err, GP_EUSAGE, "--precision needs a precision");
}

/* What the options say, read before anything is opened. */
struct request {
    const struct gp_bench_options *o;
    uint64_t sizes[SIZES_MAX];
    size_t size_count;
    unsigned precisions;
};

static int test_matmul(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    return gp_bench_matmul(bench, q->sizes, q->size_count, err);
}

static int test_gemm(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    return gp_bench_gemms(bench, q->precisions, q->o->rows, err);
}

static int test_memory(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    return gp_bench_memory(bench, q->o->bytes, err);
}

static int test_latency(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    (void)q;
    return gp_bench_latency(bench, err);
}

static int test_multi(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    return gp_bench_multi(bench, q->o->rows, q->o->bytes, err);
}

static int test_burn(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    const struct gp_bench_burn plan = {.for_ns = q->o->for_ns,
                                       .precisions = q->precisions,
                                       .rows = q->o->rows,
                                       .most_celsius = q->o->most_celsius};
    return gp_bench_burn_all(bench, &plan, err);
}

static int test_check(struct gp_bench *bench, const struct request *q, struct gp_err *err)
{
    return gp_bench_check_all(bench, q->o->rows, q->o->bytes, err);
}

static const struct test {
    const char *name;
    int (*run)(struct gp_bench *bench, const struct request *q, struct gp_err *err);
    bool on_all;         /* GPUs, unless the user says otherwise */
    uint64_t warm_ms;    /* until GPUs are at the clock that they keep */
    const char *options; /* that it has, besides those of all tests */
} tests[] = {
    {"matmul", test_matmul, false, 500, "sizes svg ascii runs warm-up"},
    {"gemm", test_gemm, false, 2000, "precision rows runs warm-up"},
    {"memory", test_memory, false, 500, "size runs warm-up"},
    {"latency", test_latency, false, 500, "runs warm-up"},
    {"multi", test_multi, true, 2000, "rows size runs warm-up"},
    {"burn", test_burn, true, 2000, "precision rows for max-temp"},
    {"check", test_check, true, 2000, "rows size runs warm-up least"},
};

static const struct test *find_test(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(tests); i++)
        if (strcmp(tests[i].name, name) == 0)
            return &tests[i];
    return NULL;
}

static int refuse_log(struct gp_err *err)
{
    return gp_err_set(
        err, GP_EUSAGE,
        "--log needs the NVIDIA driver: OpenCL reports no clock, power or temperature");
}

/* An option of another test would change nothing, which its user would not expect. */
static int check_options(const struct test *test, const struct gp_bench_options *o,
                         struct gp_err *err)
{
    const struct {
        const char *name;
        bool is_set;
    } options[] = {
        {"sizes", o->sizes}, {"precision", o->precision},
        {"rows", o->rows},   {"size", o->bytes},
        {"runs", o->runs},   {"warm-up", o->warm_ns},
        {"for", o->for_ns},  {"max-temp", o->most_celsius},
        {"svg", o->svg},     {"ascii", o->ascii},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++)
        if (options[i].is_set &&
            !gp_cli_list_has(test->options, options[i].name, strlen(options[i].name)))
            return gp_err_set(err, GP_EUSAGE, "bench %s has no option --%s", test->name,
                              options[i].name);
    if (o->least_percent && test->run != test_check && !o->against)
        return gp_err_set(err, GP_EUSAGE, "--least needs gpulse bench check, or --against");
    if (o->log && strcmp(o->engine, "opencl") == 0)
        return refuse_log(err);
    if (o->rows > ROWS_MOST)
        return gp_err_set(err, GP_EUSAGE, "--rows takes at most %d", (int)ROWS_MOST);
    if (o->runs > GP_BENCH_RUNS_MAX)
        return gp_err_set(err, GP_EUSAGE, "--runs takes at most %d", (int)GP_BENCH_RUNS_MAX);
    if (o->warm_ns > WARM_MOST_S * GP_NS_PER_S)
        return gp_err_set(err, GP_EUSAGE, "--warm-up takes at most %d seconds", (int)WARM_MOST_S);
    return 0;
}

static int read_request(const struct test *test, const struct gp_bench_options *o,
                        struct request *ret, struct gp_err *err)
{
    *ret = (struct request){.o = o};
    int r = check_options(test, o, err);
    r = r < 0 ? r
              : read_sizes(o->sizes ? o->sizes : "100,200,500,1000,2000,5000,10000", ret->sizes,
                           &ret->size_count, err);
    return r < 0 ? r : read_precisions(o->precision, &ret->precisions, err);
}

/* ---- the devices ---- */

struct opened {
    struct gp_bench_session session;
    struct gp_sampler *sampler;
    struct gp_bench_log log;
    bool has_log;
};

static void on_wait(void *context, const char *why)
{
    char text[300];
    (void)context;
    (void)snprintf(text, sizeof(text), "waiting: %.280s", why);
    gp_io_print_note("gpulse", text);
}

static int check_count(const struct test *test, const struct gp_bench *bench, struct gp_err *err)
{
    return test->run != test_multi || bench->count > 1
               ? 0
               : gp_err_set(err, GP_EUSAGE,
                            "multi compares several GPUs, and there is one; gemm measures it");
}

/* As late as possible: a run that does not start leaves an earlier log as it is. */
static int open_log(struct opened *opened, const char *path, struct gp_err *err)
{
    if (!path)
        return 0;
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that ends does not end the measurement */
    int r = gp_bench_log_open(&opened->log, path, gp_bench_tell_aside, err);
    opened->has_log = r == 0;
    return r;
}

static int open_cuda(struct opened *opened, const struct test *test,
                     const struct gp_bench_options *o, struct gp_err *err)
{
    struct gp_job_options request_options = GP_JOB_DEFAULTS;
    const struct gp_observed *observed = gp_app_observed();
    struct gp_pick_request request;
    char room[GP_PATH_SIZE];
    const char *cuda;
    struct gp_want want = {.processes = true};
    request_options.gpus =
        o->gpus || o->gpu_ids || gp_common()->id || !test->on_all ? o->gpus : "all";
    request_options.gpu_ids = o->gpu_ids;
    gp_bench_session_want(&want);
    int r = gp_job_request(&request_options, &request, err);
    request.no_mig = true;
    r = r < 0 ? r : gp_observed_cuda(observed, room, &cuda, err);
    r = r < 0 ? r : gp_job_open(&request, &want, &opened->sampler, err);
    if (r < 0)
        return r;
    opened->session.origin.is_simulated = observed->sim;
    opened->session.test = test->name;
    opened->session.plan.wait_ns = o->wait_ns;
    opened->session.plan.on_wait = on_wait;
    r = gp_job_suggest_wait(
        gp_bench_session_cuda(&opened->session, &request, o->shared, cuda, opened->sampler, err),
        err);
    r = r < 0 ? r : check_count(test, &opened->session.bench, err);
    r = r < 0 ? r : open_log(opened, o->log, err);
    return r < 0 ? r
                 : gp_bench_session_watch(&opened->session, opened->sampler,
                                          opened->has_log ? &opened->log : NULL, err);
}

/* A simulated GPU has no speed. A libcuda that the user names may compute, whatever it is. */
static int refuse_simulated(struct gp_err *err)
{
    const char *cuda = getenv("GPULSE_CUDA");
    if (!gp_app_observed()->sim || (cuda && *cuda))
        return 0;
    return gp_err_set(err, GP_ENODEV,
                      "simulated GPUs have no speed: no benchmark; without --sim and GPULSE_SIM, "
                      "this machine's GPUs are measured");
}

/* Devices of OpenCL, whose numbers are not those of the driver: without a choice of GPUs. */
static int open_opencl(struct opened *opened, const struct test *test,
                       const struct gp_bench_options *o, bool all, struct gp_err *err)
{
    if (o->gpus)
        return gp_err_set(err, GP_EUSAGE,
                          "OpenCL's devices are chosen by number: --gpu-ids, not --gpus");
    int r = gp_bench_session_opencl(&opened->session, all,
                                    o->gpu_ids ? o->gpu_ids : gp_common()->id, err);
    return r < 0 ? r : check_count(test, &opened->session.bench, err);
}

static int open_devices(struct opened *opened, const struct test *test,
                        const struct gp_bench_options *o, struct gp_err *err)
{
    struct gp_err reason = {0};
    const bool is_chosen = o->gpus || o->gpu_ids || gp_common()->id;
    if (strcmp(o->engine, "opencl") == 0)
        return open_opencl(opened, test, o, true, err);
    int r = open_cuda(opened, test, o, err);
    /* without a driver of NVIDIA: the GPUs of others */
    if (r == 0 || strcmp(o->engine, "cuda") == 0 || opened->sampler || is_chosen ||
        (r != GP_EDRIVER && r != GP_ENODEV))
        return r;
    if (o->log)
        return refuse_log(err);
    if (gp_bench_session_opencl(&opened->session, false, NULL, &reason) == 0)
        return check_count(test, &opened->session.bench, err);
    const struct gp_err first = *err;
    return gp_err_set(err, r, "%.180s; %.180s", first.text, reason.text);
}

/* Variables of the libraries that would change what is measured, or where they write. */
static void settle_environment(void)
{
    static const struct {
        const char *name, *harmless, *why;
    } unwanted[] = {{"CUDA_LAUNCH_BLOCKING", "0", "it makes each launch wait for its end"},
                    {"NVIDIA_TF32_OVERRIDE", "", "it changes the precision of products"},
                    {"NCCL_DEBUG", "", "NCCL would write between the results"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(unwanted); i++) {
        const char *value = getenv(unwanted[i].name);
        char text[120];
        (void)snprintf(text, sizeof(text), "%s is ignored: %s", unwanted[i].name, unwanted[i].why);
        if (value && strcmp(value, unwanted[i].harmless) != 0)
            gp_io_print_note("gpulse", text);
        (void)unsetenv(unwanted[i].name);
    }
}

static void close_devices(struct opened *opened)
{
    gp_bench_session_close(&opened->session);
    if (opened->has_log)
        gp_bench_log_close(&opened->log);
    if (opened->sampler)
        gp_app_close(opened->sampler);
}

/* ---- measuring ---- */

/* Whether a result is wrong, a device failed, or nothing was measured at all. */
static bool has_wrong(const struct gp_bench_results *results)
{
    bool is_measured = false;
    for (size_t i = 0; i < results->count; i++) {
        if (results->list[i].outcome == GP_BENCH_WRONG ||
            results->list[i].outcome == GP_BENCH_FAILED)
            return true;
        is_measured |= results->list[i].outcome == GP_BENCH_MEASURED;
    }
    return !is_measured;
}

/* How long a GPU may take to answer. The slowest ones multiply in FP64 at 0.04 TFLOP/s by cuBLAS,
 * and slower by kernels of gpulse; the slowest copies are those over one lane of an old PCIe. */
static uint64_t answer_ns_of(const struct test *test, const struct request *q)
{
    enum { ANSWER_S = 60, LEAST_FLOP_PER_NS = 20, BYTE_NS = 10 /* 100 MB/s */ };
    uint64_t rows = q->o->rows;
    for (size_t i = 0; test->run == test_matmul && i < q->size_count; i++)
        rows = q->sizes[i] > rows ? q->sizes[i] : rows;
    const uint64_t bytes = q->o->bytes < UINT64_MAX / BYTE_NS / 2 ? q->o->bytes : 0;
    return ANSWER_S * GP_NS_PER_S + 2 * rows * rows * rows / LEAST_FLOP_PER_NS + bytes * BYTE_NS;
}

static void set_pace(struct gp_bench *bench, const struct test *test, const struct request *q)
{
    const struct gp_bench_options *o = q->o;
    enum { BLOCK_MS = 50, RUNS = 10, MOST_S = 20 };
    bench->pace = (struct gp_bench_pace){
        .warm_ns = o->warm_ns ? o->warm_ns : test->warm_ms * GP_NS_PER_MS,
        .block_ns = BLOCK_MS * GP_NS_PER_MS,
        .runs = o->runs ? o->runs : RUNS,
        .most_ns = o->runs ? UINT64_MAX : MOST_S * GP_NS_PER_S,
        .answer_ns = answer_ns_of(test, q),
        .is_cancelled = gp_app_is_stopped,
    };
    bench->seed = 1;
    bench->tell = isatty(STDERR_FILENO) ? gp_bench_tell : NULL;
}

/* What was measured is printed whatever happened then. */
static int conclude(struct gp_bench_session *s, const struct test *test,
                    const struct gp_bench_options *o, const struct gp_bench_earlier *earlier, int r,
                    struct gp_err *err)
{
    struct gp_err problem = {0};
    gp_bench_session_end_watch(s);
    gp_bench_tell_no_more();
    if (r < 0 || gp_app_is_stopped())
        gp_bench_results_drop_unfinished(&s->bench.results);
    int printed =
        s->bench.results.count > 0
            ? gp_bench_print(&s->bench, &s->origin, o, r == 0 && !gp_app_is_stopped(), &problem)
            : 0;
    if (r == 0 && printed == 0)
        return test->run == test_check || o->against
                   ? gp_bench_print_judgement(s, o, o->against ? earlier : NULL, err)
                   : 0;
    return r < 0 ? r : gp_err_copy(err, &problem);
}

/* When a GPU hangs. Its observation goes on until the process ends: other devices use it. */
struct last_words {
    const struct gp_bench_session *session;
    const struct gp_bench_options *o;
};

static void print_last(void *context, const struct gp_bench_results *results)
{
    const struct last_words *last = context;
    const struct gp_bench *from = &last->session->bench;
    struct gp_bench_origin origin = last->session->origin;
    struct gp_err err = {0};
    /* what other threads may still write is left out */
    struct gp_bench bench = {
        .count = from->count, .blas = from->blas, .has_blas = from->has_blas, .results = *results};
    memcpy(bench.devices, from->devices, sizeof(bench.devices));
    memcpy(bench.names, from->names, sizeof(bench.names));
    memcpy(bench.cards, from->cards, sizeof(bench.cards));
    if (from->watch)
        gp_bench_watch_lost(from->watch, origin.lost, sizeof(origin.lost));
    if (results->count > 0 && gp_bench_print(&bench, &origin, last->o, false, &err) < 0)
        gp_io_print_error("gpulse", &err);
}

static int run_guarded(struct gp_bench_session *session, const struct test *test,
                       const struct request *q, struct gp_err *err)
{
    struct last_words last = {session, q->o};
    struct gp_bench_guard guard = {.bench = &session->bench,
                                   .tell = gp_bench_tell_aside,
                                   .print = print_last,
                                   .context = &last};
    int r = gp_bench_guard_start(&guard, err);
    if (r < 0)
        return r;
    r = test->run(&session->bench, q, err);
    gp_bench_watch_stop(session->bench.watch); /* it may wait, which a signal must end, too */
    gp_bench_guard_stop(&guard);
    return r;
}

static int measure(const struct test *test, const struct request *q,
                   const struct gp_bench_earlier *earlier, struct gp_err *err)
{
    static struct opened opened; /* large */
    struct gp_bench *bench = &opened.session.bench;
    settle_environment();
    gp_bench_session_init(&opened.session);
    set_pace(bench, test, q);
    int r = refuse_simulated(err);
    r = r < 0 ? r : gp_bench_check_path(q->o->save, err);
    r = r < 0 ? r : gp_bench_check_path(q->o->svg, err);
    r = r < 0 ? r : gp_bench_check_path(q->o->log, err);
    if (r < 0)
        return r;
    r = open_devices(&opened, test, q->o, err);
    if (r == 0) {
        gp_app_catch_signals();
        r = run_guarded(&opened.session, test, q, err);
        r = conclude(&opened.session, test, q->o, earlier, r, err);
    }
    if ((r == 0 || r == GP_EPARTIAL) && has_wrong(&bench->results))
        r = EXIT_WRONG;
    if (r >= 0 && gp_app_is_stopped())
        r = GP_EINTR;
    close_devices(&opened);
    return r;
}

static const char *test_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_ARRAY_LEN(tests) ? tests[i].name : NULL;
}

static int refuse_words(int count, char **argv, struct gp_err *err)
{
    if (count > 1)
        return gp_err_set(err, GP_EUSAGE, "gpulse bench takes one test, got %d", count);
    return gp_err_set(err, GP_EUSAGE,
                      count ? "there is no test '%.40s'%s; gpulse bench takes one of: matmul gemm "
                              "memory latency multi burn check"
                            : "%s%sgpulse bench takes one of: matmul gemm memory latency multi "
                              "burn check",
                      count ? argv[1] : "",
                      count ? gp_cli_hint(argv[1], test_name, NULL).text : "");
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct gp_bench_options o = {.engine = "auto", .format = "text"};
    struct gp_bench_earlier earlier = {0};
    struct request request;
    int positional;
    bool done;
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    const struct test *test = positional == 1 ? find_test(argv[1]) : NULL;
    if (!test)
        return refuse_words(positional, argv, err);
    r = read_request(test, &o, &request, err);
    if (r == 0 && o.against)
        r = gp_bench_earlier_read(&earlier, o.against, err);
    if (!o.for_ns)
        o.for_ns = 60 * GP_NS_PER_S;
    if (r == 0)
        r = measure(test, &request, &earlier, err);
    gp_bench_earlier_fini(&earlier);
    return r;
}

int main(int argc, char **argv)
{
    struct gp_err err = {0};
    gp_app_init_helper(&command);
    (void)setlocale(LC_CTYPE, "");
    int r = run(argc, argv, &err);
    if (r == GP_EINTR && gp_app_is_stopped())
        gp_app_end_by_signal();
    if (r < 0 && err.code)
        gp_io_print_error("gpulse", &err);
    int status = r > 0 ? r : gp_err_exit_status(r);
    if (gp_app_is_stuck())
        _exit(status);
    return status;
}
