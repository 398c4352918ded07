#include "bench/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gp_bench_result *gp_bench_results_add(struct gp_bench_results *results, const char *test,
                                             const char *what, const char *device)
{
    if (results->count == results->room) {
        size_t room = results->room ? 2 * results->room : 32;
        struct gp_bench_result *list = realloc(results->list, room * sizeof(*list));
        if (!list)
            return NULL;
        results->list = list;
        results->room = room;
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

void gp_bench_mark_failed(struct gp_bench_results *results, const char *device, const char *why)
{
    const size_t length = strlen(device);
    for (size_t i = 0; i < results->count; i++) {
        struct gp_bench_result *r = &results->list[i];
        const bool is_meant =
            strcmp(r->device, "all") == 0 || (strncmp(r->device, device, length) == 0 &&
                                              strchr("-", r->device[length])); /* "0", "0->1" */
        if (!is_meant || r->outcome != GP_BENCH_MEASURED || r->value.count > 0)
            continue;
        r->outcome = GP_BENCH_FAILED;
        (void)snprintf(r->note, sizeof(r->note), "%s", why);
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
