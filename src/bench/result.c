#include "bench/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gp_bench_result *gp_bench_results_add(struct gp_bench_results *results, const char *test,
                                             const char *what, const char *device)
{
    if (results->count == results->room) {
        struct gp_bench_result *list = gp_grown(results->list, &results->room, 32, sizeof(*list));
        if (!list)
            return NULL;
        results->list = list;
    }
    struct gp_bench_result *result = &results->list[results->count++];
    *result = (struct gp_bench_result){.test = test};
    (void)snprintf(result->what, sizeof(result->what), "%s", what);
    (void)snprintf(result->device, sizeof(result->device), "%s", device);
    return result;
}

void gp_bench_results_fini(struct gp_bench_results *results)
{
    free(results->list);
    *results = (struct gp_bench_results){0};
}

void gp_bench_results_drop_unfinished(struct gp_bench_results *results)
{
    size_t kept = 0;
    for (size_t i = 0; i < results->count; i++)
        if (results->list[i].outcome != GP_BENCH_MEASURED || results->list[i].value.count > 0)
            results->list[kept++] = results->list[i];
    results->count = kept;
}

/* Whether it is a result of this device: of "0" are "0", "0->1", "1->0" and "all". */
static bool is_of(const struct gp_bench_result *r, const char *device)
{
    const size_t length = strlen(device);
    const char *arrow = strstr(r->device, "->");
    return strcmp(r->device, "all") == 0 || (arrow && strcmp(arrow + 2, device) == 0) ||
           (strncmp(r->device, device, length) == 0 && strchr("-", r->device[length]));
}

static void describe_hang(const struct gp_bench_result *last, const char *device,
                          uint64_t waited_ns, char *ret_why, size_t size)
{
    const double seconds = (double)waited_ns / 1e9;
    const char *arrow = last ? strstr(last->device, "->") : NULL;
    if (arrow)
        (void)snprintf(ret_why, size,
                       "GPU %.*s or GPU %s has not answered for %.0f s: see gpulse doctor",
                       (int)(arrow - last->device), last->device, arrow + 2, seconds);
    else if (last && last->is_joint)
        (void)snprintf(ret_why, size,
                       "one of the GPUs has not answered for %.0f s: see gpulse doctor", seconds);
    else
        (void)snprintf(ret_why, size, "GPU %s has not answered for %.0f s: see gpulse doctor",
                       device, seconds);
}

void gp_bench_mark_failed(struct gp_bench_results *results, const char *device, uint64_t waited_ns,
                          char *ret_why, size_t size)
{
    struct gp_bench_result *last = NULL;
    for (size_t i = 0; i < results->count; i++)
        if (is_of(&results->list[i], device))
            last = &results->list[i];
    describe_hang(last, device, waited_ns, ret_why, size);
    for (size_t i = 0; i < results->count; i++) {
        struct gp_bench_result *r = &results->list[i];
        const bool is_unfinished = r == last || r->value.count == 0;
        if (!is_of(r, device) || r->outcome != GP_BENCH_MEASURED || !is_unfinished)
            continue;
        r->outcome = GP_BENCH_FAILED;
        (void)snprintf(r->note, sizeof(r->note), "%s", ret_why);
    }
}

const struct gp_bench_result *gp_bench_results_find(const struct gp_bench_results *results,
                                                    const char *test, const char *what,
                                                    const char *device, uint64_t size)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct gp_bench_result *r = &results->list[i];
        if (strcmp(r->test, test) == 0 && strcmp(r->what, what) == 0 &&
            strcmp(r->device, device) == 0 && r->size == size)
            return r;
    }
    return NULL;
}

const char *gp_bench_outcome_word(enum gp_bench_outcome outcome)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_BENCH_OUTCOMES(X)
#undef X
    };
    return words[outcome];
}
