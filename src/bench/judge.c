#include "bench/judge.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "bench/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double sheet_least = 0.5;

/* ---- an earlier run ---- */

/* The texts of a result that this process keeps: those of the tests are its own. */
static const char *known_test(const char *name)
{
    static const char *const tests[] = {"matmul", "gemm", "memory", "latency", "multi", "burn"};
    for (size_t i = 0; name && i < GP_ARRAY_LEN(tests); i++)
        if (strcmp(tests[i], name) == 0)
            return tests[i];
    return NULL;
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The UUID of a device, or what it is called in the results. */
static const char *identity(const json_t *devices, const char *device)
{
    size_t i;
    json_t *one;
    json_array_foreach(devices, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "device"));
        const char *uuid = json_string_value(json_object_get(one, "uuid"));
        if (name && device && strcmp(name, device) == 0 && uuid)
            return uuid;
    }
    return device;
}

static int add_earlier(struct gp_bench_earlier *earlier, const json_t *devices, const json_t *one)
{
    const char *test = known_test(json_string_value(json_object_get(one, "test")));
    const char *what = json_string_value(json_object_get(one, "what"));
    const char *device = identity(devices, json_string_value(json_object_get(one, "device")));
    const json_t *value = json_object_get(one, "value");
    const char *outcome = json_string_value(json_object_get(one, "outcome"));
    const char *kernel = json_string_value(json_object_get(one, "kernel"));
    if (!test || !what || !device || !json_is_object(value) || !outcome ||
        strcmp(outcome, gp_bench_outcome_word(GP_BENCH_MEASURED)) != 0)
        return 0; /* of a later version, or not measured, or wrong */
    struct gp_bench_result *r = gp_bench_results_add(&earlier->results, test, what, "");
    if (!r)
        return GP_ENOMEM;
    gp_utf8_copy_safe(r->device, sizeof(r->device), device);
    gp_utf8_copy_safe(r->kernel, sizeof(r->kernel), kernel ? kernel : "");
    r->size = (uint64_t)json_integer_value(json_object_get(one, "size"));
    r->value =
        (struct gp_bench_stats){.count = (size_t)json_integer_value(json_object_get(value, "runs")),
                                .median = real(value, "median"),
                                .low = real(value, "low"),
                                .high = real(value, "high")};
    return 0;
}

static int take(struct gp_bench_earlier *earlier, const json_t *document, struct gp_err *err)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));
    const char *time = json_string_value(json_object_get(document, "time"));
    const char *host = json_string_value(json_object_get(document, "host"));
    const json_t *results = json_object_get(document, "results");
    size_t i;
    json_t *one;
    if (!schema || strcmp(schema, "gpulse.bench/1") != 0 || !json_is_array(results))
        return gp_err_set(err, GP_EFORMAT,
                          "'%.200s' is not a result of gpulse bench: --save and -f json write such "
                          "a file",
                          earlier->path);
    gp_utf8_copy_safe(earlier->time, sizeof(earlier->time), time ? time : "");
    gp_utf8_copy_safe(earlier->host, sizeof(earlier->host), host ? host : "");
    json_array_foreach(results, i,
                       one) if (add_earlier(earlier, json_object_get(document, "devices"), one) <
                                0) return gp_err_set(err, GP_ENOMEM, "out of memory");
    return 0;
}

/* A file of a user may be anything: it must be a file, which cannot block. */
static int open_file(const char *path, struct gp_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot read '%.200s'", path);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    (void)close(fd);
    return gp_err_set(err, GP_EIO, "cannot read '%.200s': it is not a file", path);
}

int gp_bench_earlier_read(struct gp_bench_earlier *earlier, const char *path, struct gp_err *err)
{
    json_error_t problem;
    *earlier = (struct gp_bench_earlier){0};
    gp_utf8_copy_safe(earlier->path, sizeof(earlier->path), path);
    int fd = open_file(path, err);
    if (fd < 0)
        return fd;
    json_t *document = json_loadfd(fd, 0, &problem);
    (void)close(fd);
    if (!document)
        return gp_err_set(err, GP_EFORMAT,
                          "'%.200s' is not a result of gpulse bench: line %d: %.100s", path,
                          problem.line, problem.text);
    int r = take(earlier, document, err);
    json_decref(document);
    return r;
}

void gp_bench_earlier_fini(struct gp_bench_earlier *earlier)
{
    gp_bench_results_fini(&earlier->results);
}

/* ---- judging ---- */

/* The index of a result's device; SIZE_MAX: the CPU, or several. */
static size_t device_of(const struct gp_bench *bench, const struct gp_bench_result *r)
{
    for (size_t i = 0; i < bench->count; i++)
        if (strcmp(bench->names[i], r->device) == 0)
            return i;
    return SIZE_MAX;
}

static bool is_same_thing(const struct gp_bench_result *a, const struct gp_bench_result *b)
{
    return strcmp(a->test, b->test) == 0 && strcmp(a->what, b->what) == 0 && a->size == b->size;
}

/* By the first word: another version of a library may well be slower, which should be told. */
static bool is_same_kernel(const struct gp_bench_result *a, const struct gp_bench_result *b)
{
    size_t n = strcspn(a->kernel, " ");
    return n == strcspn(b->kernel, " ") && memcmp(a->kernel, b->kernel, n) == 0;
}

/* Whether `now` is worse than expected, by more than noise and by more than is allowed. */
static bool is_short(const struct gp_bench_result *r, const struct gp_bench_stats *expected,
                     double least, double *ret_part)
{
    if (expected->median <= 0 || r->value.median <= 0)
        return false;
    *ret_part = r->is_lower_better ? expected->median / r->value.median
                                   : r->value.median / expected->median;
    enum gp_bench_change change = gp_bench_compare(expected, &r->value, 0);
    return *ret_part < least && change == (r->is_lower_better ? GP_BENCH_HIGHER : GP_BENCH_LOWER);
}

/* The results of the other devices of the same model, as one: the median of their medians, with
 * the widest of their intervals. */
static struct gp_bench_stats others_of(const struct gp_bench *bench,
                                       const struct gp_bench_result *r)
{
    double medians[GP_BENCH_DEVICES];
    size_t count = 0;
    size_t own = device_of(bench, r);
    double spread = 0;
    for (size_t i = 0; own != SIZE_MAX && i < bench->results.count; i++) {
        const struct gp_bench_result *other = &bench->results.list[i];
        size_t device = device_of(bench, other);
        if (other == r || device == SIZE_MAX || device == own || !is_same_thing(other, r) ||
            other->outcome != GP_BENCH_MEASURED || !is_same_kernel(other, r) ||
            other->value.count == 0 || count == GP_BENCH_DEVICES ||
            strcmp(bench->devices[device]->name, bench->devices[own]->name) != 0)
            continue;
        medians[count++] = other->value.median;
        double own_spread = gp_bench_spread(&other->value);
        spread = own_spread > spread ? own_spread : spread;
    }
    struct gp_bench_stats stats = gp_bench_stats_of(medians, count);
    stats.low = stats.median * (1 - spread);
    stats.high = stats.median * (1 + spread);
    return stats;
}

static const struct gp_bench_result *earlier_of(const struct gp_bench *bench, const char *host,
                                                const struct gp_bench_earlier *earlier,
                                                const struct gp_bench_result *r)
{
    size_t device = device_of(bench, r);
    bool has_uuid = device != SIZE_MAX && bench->devices[device]->uuid[0];
    if (!has_uuid && strcmp(host, earlier->host) != 0)
        return NULL;
    return gp_bench_results_find(&earlier->results, r->test, r->what,
                                 has_uuid ? bench->devices[device]->uuid : r->device, r->size);
}

/* What part of its standard a result must reach. The rates of products follow the clock that power
 * and heat allow, which differs between GPUs of a model; copies between host and device depend on
 * where the host's memory lies, and latencies on everything. `least`: what the user wants of the
 * first two kinds, 0: the default. */
static double least_of(const struct gp_bench_result *r, double least)
{
    static const struct {
        const char *test, *what; /* what: a part of it; "": all */
        double least;
        bool is_upper_limit; /* whatever the user wants */
    } kinds[] = {
        {"latency", "", 0.5, true},
        {"memory", " ", 0.8, true}, /* "to GPU" */
        {"memory", "", 0.95, false},
        {"", "", 0.9, false},
    };
    size_t k = 0;
    while (strncmp(r->test, kinds[k].test, strlen(kinds[k].test)) != 0 ||
           !strstr(r->what, kinds[k].what))
        k++;
    if (least <= 0)
        return kinds[k].least;
    return kinds[k].is_upper_limit && kinds[k].least < least ? kinds[k].least : least;
}

/* Compares a result with a standard. */
static void compare(const struct gp_bench *bench, const struct gp_bench_result *r,
                    enum gp_bench_standard standard, const struct gp_bench_stats *expected,
                    double least, struct gp_bench_judgement *ret)
{
    size_t device = device_of(bench, r);
    double part = 0;
    if (expected->median <= 0)
        return;
    ret->by_standard[standard]++;
    if (device != SIZE_MAX)
        ret->by_device[device]++;
    if (!is_short(r, expected, least, &part))
        return;
    if (ret->count < GP_BENCH_SHORTFALLS)
        ret->list[ret->count] = (struct gp_bench_shortfall){r, standard, expected->median, part};
    ret->count++;
}

/* Our own kernels, and those that CLBlast tuned for another device, say little about a GPU. */
static bool is_tuned(const struct gp_bench_result *r)
{
    return strcmp(r->test, "memory") == 0 || strncmp(r->kernel, "cuBLAS", 6) == 0;
}

void gp_bench_judge(const struct gp_bench *bench, const char *host,
                    const struct gp_bench_earlier *earlier, double least,
                    struct gp_bench_judgement *ret)
{
    *ret = (struct gp_bench_judgement){.count = 0};
    for (size_t i = 0; i < bench->results.count; i++) {
        const struct gp_bench_result *r = &bench->results.list[i];
        if (r->outcome != GP_BENCH_MEASURED || r->value.count == 0)
            continue;
        const struct gp_bench_stats others = others_of(bench, r);
        compare(bench, r, GP_BENCH_BY_OTHERS, &others, least_of(r, least), ret);
        const double peak = r->peak_at_clock > 0 ? r->peak_at_clock : r->peak;
        const struct gp_bench_stats sheet = {1, peak, peak, peak, peak, peak};
        if (is_tuned(r))
            compare(bench, r, GP_BENCH_BY_SHEET, &sheet, sheet_least, ret);
        const struct gp_bench_result *before = earlier ? earlier_of(bench, host, earlier, r) : NULL;
        if (before && is_same_kernel(before, r))
            compare(bench, r, GP_BENCH_BY_EARLIER, &before->value, least_of(r, least), ret);
        ret->other_kernels += before && !is_same_kernel(before, r);
    }
}

bool gp_bench_is_incomplete(const struct gp_bench *bench, const struct gp_bench_judgement *j)
{
    for (size_t i = 0; i < bench->count; i++)
        if (j->by_device[i] == 0)
            return true;
    return false;
}

/* ---- text ---- */

static void add_shortfall(struct gp_strbuf *sb, const struct gp_bench *bench,
                          const struct gp_bench_shortfall *shortfall)
{
    static const char *const standards[] = {
        [GP_BENCH_BY_OTHERS] = "of the other GPUs of this model",
        [GP_BENCH_BY_SHEET] = "of the data sheet",
        [GP_BENCH_BY_EARLIER] = "of the earlier run",
    };
    const struct gp_bench_result *r = shortfall->result;
    size_t device = device_of(bench, r);
    char title[GP_BENCH_TITLE_SIZE];
    (void)snprintf(title, sizeof(title), "%.31s", r->device);
    if (device != SIZE_MAX)
        gp_bench_title(bench, device, title);
    gp_strbuf_addf(sb, "SLOW   %s, %s %s: ", title, r->test, r->what);
    gp_bench_add_number(sb, r->value.median);
    gp_strbuf_addf(sb, " %s, ", r->unit);
    if (r->is_lower_better)
        gp_strbuf_addf(sb, "%.2f times that ", 1 / shortfall->part);
    else
        gp_strbuf_addf(sb, "%.0f %% ", 100 * shortfall->part);
    gp_strbuf_addf(sb, "%s (", standards[shortfall->standard]);
    gp_bench_add_number(sb, shortfall->expected);
    gp_strbuf_addf(sb, ")%s\n", r->is_steady ? "" : "; not steady: repeat it");
}

void gp_bench_add_judgement(struct gp_strbuf *sb, const struct gp_bench *bench,
                            const struct gp_bench_earlier *earlier,
                            const struct gp_bench_judgement *j)
{
    const size_t *n = j->by_standard;
    size_t all = n[GP_BENCH_BY_OTHERS] + n[GP_BENCH_BY_SHEET] + n[GP_BENCH_BY_EARLIER];
    gp_strbuf_addc(sb, '\n');
    for (size_t i = 0; i < j->count && i < GP_BENCH_SHORTFALLS; i++)
        add_shortfall(sb, bench, &j->list[i]);
    if (all > 0)
        gp_strbuf_addf(sb,
                       "%s%zu results were compared with other GPUs, %zu with the data sheet, %zu "
                       "with an earlier run.\n",
                       j->count == 0 ? "Nothing is slower than it should be: " : "",
                       n[GP_BENCH_BY_OTHERS], n[GP_BENCH_BY_SHEET], n[GP_BENCH_BY_EARLIER]);
    if (earlier)
        gp_strbuf_addf(sb, "The earlier run is %s, of %s.\n", earlier->path, earlier->time);
    if (j->other_kernels > 0)
        gp_strbuf_addf(sb, "%zu results of it were computed by another library or kernel.\n",
                       j->other_kernels);
    for (size_t i = 0; i < bench->count; i++) {
        char title[GP_BENCH_TITLE_SIZE];
        gp_bench_title(bench, i, title);
        if (j->by_device[i] == 0)
            gp_strbuf_addf(sb,
                           "%s: nothing to compare it with. --save keeps the results for "
                           "--against.\n",
                           title);
    }
}
