#include "tape/diff_side.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

const struct gp_diff_fact_info gp_diff_facts[GP_DIFF_FACT__COUNT] = {
#define X(metric) [GP_DIFF_FACT_##metric] = {GP_##metric},
    GP_DIFF_HOST_FACTS(X) GP_DIFF_GPU_FACTS(X)
#undef X
};

bool gp_diff_side_init(struct gp_diff_side *side, const char *source, int64_t step_us)
{
    *side = (struct gp_diff_side){.step_us = step_us > 0 ? step_us : 1};
    gp_utf8_copy_safe(side->source, sizeof(side->source), source);
    side->gpus = calloc(GP_DIFF_GPUS_MOST, sizeof(*side->gpus));
    side->programs = calloc(GP_DIFF_PROGRAMS_MOST, sizeof(*side->programs));
    gp_line_init(&side->pace, side->step_us);
    if (side->gpus && side->programs)
        return true;
    gp_diff_side_fini(side);
    return false;
}

void gp_diff_side_drop(struct gp_diff_side *side, size_t place)
{
    for (size_t m = 0; m < GP_DIFF__COUNT; m++)
        gp_line_fini(&side->gpus[place].lines[m]);
    side->gpu_count--;
    memmove(&side->gpus[place], &side->gpus[place + 1],
            (side->gpu_count - place) * sizeof(*side->gpus));
}

static void forget(struct gp_diff_side *side)
{
    while (side->gpu_count > 0)
        gp_diff_side_drop(side, side->gpu_count - 1);
    for (size_t i = 0; i < side->program_count; i++) {
        gp_line_fini(&side->programs[i].memory);
        gp_line_fini(&side->programs[i].sm);
    }
    gp_line_fini(&side->pace);
    side->gpu_count = side->program_count = 0;
}

void gp_diff_side_fini(struct gp_diff_side *side)
{
    forget(side);
    free(side->gpus);
    free(side->programs);
    side->gpus = NULL;
    side->programs = NULL;
}

void gp_diff_side_reset(struct gp_diff_side *side)
{
    forget(side);
    side->seen_us = 0;
    memset(side->facts, 0, sizeof(side->facts));
    gp_line_init(&side->pace, side->step_us);
}

struct gp_diff_gpu *gp_diff_side_gpu(struct gp_diff_side *side, uint64_t id)
{
    for (size_t i = 0; i < side->gpu_count; i++)
        if (side->gpus[i].id == id)
            return &side->gpus[i];
    if (side->gpu_count == GP_DIFF_GPUS_MOST)
        return NULL;
    struct gp_diff_gpu *gpu = &side->gpus[side->gpu_count++];
    *gpu = (struct gp_diff_gpu){.id = id};
    for (size_t m = 0; m < GP_DIFF__COUNT; m++)
        gp_line_init(&gpu->lines[m], side->step_us);
    return gpu;
}

struct gp_diff_program *gp_diff_side_program(struct gp_diff_side *side, const char *name,
                                             const char *user)
{
    char safe_name[GP_DIFF_TEXT_SIZE];
    char safe_user[GP_DIFF_TEXT_SIZE];
    gp_utf8_copy_safe(safe_name, sizeof(safe_name), name);
    gp_utf8_copy_safe(safe_user, sizeof(safe_user), user);
    for (size_t i = 0; i < side->program_count; i++)
        if (strcmp(side->programs[i].name, safe_name) == 0 &&
            strcmp(side->programs[i].user, safe_user) == 0)
            return &side->programs[i];
    if (side->program_count == GP_DIFF_PROGRAMS_MOST)
        return NULL;
    struct gp_diff_program *program = &side->programs[side->program_count++];
    *program = (struct gp_diff_program){.seen_us = 0};
    memcpy(program->name, safe_name, sizeof(safe_name));
    memcpy(program->user, safe_user, sizeof(safe_user));
    gp_line_init(&program->memory, side->step_us);
    gp_line_init(&program->sm, side->step_us);
    return program;
}

void gp_diff_set_text(struct gp_diff_fact *fact, const char *text)
{
    if (!fact->is_known || strcmp(fact->text, text) != 0)
        gp_utf8_copy_safe(fact->text, sizeof(fact->text), text);
    fact->is_known = true;
}

void gp_diff_set_number(struct gp_diff_fact *fact, double number)
{
    fact->number = number;
    fact->is_known = true;
}
