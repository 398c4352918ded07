#include "jobs/pipeline_run.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <jansson.h>
#include <string.h>

void gp_pipeline_add_names(struct gp_strbuf *sb, const struct gp_pipeline *pipeline, uint64_t set)
{
    const char *between = "";
    for (size_t i = 0; i < pipeline->graph.count; i++) {
        if (!gp_steps_has(set, i))
            continue;
        gp_strbuf_addf(sb, "%s%s", between, pipeline->steps[i].name);
        between = ", ";
    }
}

/* ---- the report ---- */

/* The GPUs from the record of a step: "GPU 2 9216 MiB, 85 % busy". */
static void add_gpus(struct gp_strbuf *sb, const json_t *record)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(json_object_get(record, "gpus"), i, gpu)
    {
        const json_t *busy = json_object_get(gpu, "utilization_mean");
        if (!json_is_true(json_object_get(gpu, "used")))
            continue;
        gp_strbuf_addf(sb, "  GPU %d: %.0f MiB",
                       (int)json_integer_value(json_object_get(gpu, "index")),
                       json_number_value(json_object_get(gpu, "memory_peak")) / 0x1p20);
        if (json_is_number(busy))
            gp_strbuf_addf(sb, ", %.0f %% busy", json_number_value(busy));
    }
}

/* The causes of its last incident. */
static void add_causes(struct gp_strbuf *sb, const json_t *record)
{
    size_t i;
    json_t *cause;
    const json_t *incidents = json_object_get(record, "incidents");
    size_t count = json_array_size(incidents);
    const json_t *last = count > 0 ? json_array_get(incidents, count - 1) : NULL;
    json_array_foreach(json_object_get(last, "causes"), i, cause)
    {
        const char *word = json_string_value(json_object_get(cause, "cause"));
        const char *why = json_string_value(json_object_get(cause, "why"));
        gp_strbuf_addf(sb, "    %s: %s\n", word ? word : "", why ? why : "");
    }
}

/* For a step that has run. */
static void add_outcome(struct gp_strbuf *sb, const struct gp_pipeline_run *run, size_t at)
{
    char path[GP_PATH_SIZE];
    gp_pipeline_step_path(run, at, "run.json", path);
    json_t *record = json_load_file(path, 0, NULL);
    gp_strbuf_addf(sb, "  %8.1f s", run->seconds[at]);
    if (run->batches[at])
        gp_strbuf_addf(sb, "  batch %llu", (unsigned long long)run->batches[at]);
    add_gpus(sb, record);
    if (run->statuses[at])
        gp_strbuf_addf(sb, "  status %d\n", run->statuses[at]);
    else
        gp_strbuf_addc(sb, '\n');
    if (run->statuses[at])
        add_causes(sb, record);
    json_decref(record);
}

void gp_pipeline_add_report(struct gp_strbuf *sb, const struct gp_pipeline_run *run)
{
    const struct gp_steps *graph = &run->pipeline->graph;
    gp_strbuf_addf(sb, "pipeline %s\n", run->pipeline->name);
    for (size_t i = 0; i < graph->count; i++) {
        enum gp_step_state state = graph->states[i];
        gp_strbuf_addf(sb, "  %-16s  ", run->pipeline->steps[i].name);
        if (state == GP_STEP_OK || state == GP_STEP_FAILED) {
            gp_strbuf_addf(sb, "%-10s", gp_step_state_word(state));
            add_outcome(sb, run, i);
        } else if (state == GP_STEP_BLOCKED) {
            gp_strbuf_addf(sb, "%s: %s failed\n", gp_step_state_word(state),
                           run->pipeline->steps[graph->causes[i]].name);
        } else {
            gp_strbuf_addf(sb, "%s\n", gp_step_state_word(state));
        }
    }
}

/* ---- the plan ---- */

static void add_safe(struct gp_strbuf *sb, const char *before, const char *text)
{
    gp_strbuf_adds(sb, before);
    gp_utf8_add_safe(sb, text, strlen(text), SIZE_MAX);
}

/* The GPUs it would get now, apart from those of the steps that start with it. */
static void add_gpus_now(struct gp_strbuf *sb, struct gp_pipeline_run *run, size_t at,
                         struct gp_strbuf *taken)
{
    struct gp_strbuf plan = GP_STRBUF_INIT(1 << 16);
    int status = gp_pipeline_check(run, at, taken->buf, false, &plan);
    if (status != 0 || plan.len == 0) {
        gp_strbuf_adds(sb, "at once, waits for the GPUs of the steps above");
    } else if (strncmp(plan.buf, "must wait: ", strlen("must wait: ")) == 0) {
        add_safe(sb, "", plan.buf);
    } else {
        gp_strbuf_addf(sb, "at once, now on GPU %s", plan.buf);
        gp_strbuf_addf(taken, "%s%s", taken->len > 0 ? "," : "", plan.buf);
    }
    gp_strbuf_fini(&plan);
}

static void add_step(struct gp_strbuf *sb, struct gp_pipeline_run *run, size_t at,
                     struct gp_strbuf *taken)
{
    const struct gp_steps *graph = &run->pipeline->graph;
    const struct gp_step *step = &run->pipeline->steps[at];
    uint64_t waiting = gp_steps_in(graph, GP_STEP_WAITING);
    uint64_t parallel = gp_steps_parallel(graph, at) & waiting;
    gp_strbuf_addf(sb, "%s: gpulse %s", step->name, step->is_fit ? "fit-batch" : "run");
    for (size_t i = 0; i < step->option_count; i++)
        add_safe(sb, " ", step->options[i]);
    /* Steps run in a shell, and the line shall do the same when it is copied. */
    gp_strbuf_adds(sb, " -- sh -c ");
    gp_utf8_add_shell_word(sb, step->command);
    if (graph->after[at] & waiting) {
        gp_strbuf_adds(sb, "\n    after ");
        gp_pipeline_add_names(sb, run->pipeline, graph->after[at] & waiting);
    } else {
        gp_strbuf_adds(sb, "\n    ");
        add_gpus_now(sb, run, at, taken);
    }
    if (parallel) {
        gp_strbuf_adds(sb, "; can run in parallel with ");
        gp_pipeline_add_names(sb, run->pipeline, parallel);
    }
    if (*run->gpu_ids)
        add_safe(sb, "; chooses from GPUs ", run->gpu_ids);
    gp_strbuf_addc(sb, '\n');
}

void gp_pipeline_add_plan(struct gp_strbuf *sb, struct gp_pipeline_run *run)
{
    struct gp_strbuf taken = GP_STRBUF_INIT(4096);
    size_t order[GP_STEPS_MAX];
    gp_steps_order(&run->pipeline->graph, order);
    for (size_t i = 0; i < run->pipeline->graph.count; i++)
        if (run->pipeline->graph.states[order[i]] == GP_STEP_WAITING)
            add_step(sb, run, order[i], &taken);
    gp_strbuf_fini(&taken);
}
