#include "tape/roll.h"

#include "base/err.h"

#include <stdlib.h>

#define S INT64_C(1000000)
#define DAY (86400 * S)

const struct gp_roll_level gp_roll_levels[GP_ROLL_LEVELS] = {
    {1 * S, 1 * DAY},
    {10 * S, 14 * DAY},
    {60 * S, 90 * DAY},
    {600 * S, 2 * 366 * DAY},
};

bool gp_roll_init(struct gp_roll *roll, const struct gp_tape_columns *columns, int64_t interval_us,
                  const int64_t after_us[GP_ROLL_LEVELS])
{
    *roll = (struct gp_roll){.first = 0};
    while (roll->first + 1 < GP_ROLL_LEVELS && gp_roll_levels[roll->first].step_us < interval_us)
        roll->first++;
    bool ok = true;
    for (size_t i = 0; i < GP_ROLL_LEVELS; i++) {
        struct gp_roll_state *level = &roll->levels[i];
        level->number = -1;
        level->after_us = after_us[i];
        level->is_stored = true;
        ok = gp_chunk_init(&level->chunk, columns) && ok;
        ok = gp_scene_init(&level->ranges, columns, true) && ok;
    }
    if (!ok)
        gp_roll_fini(roll);
    return ok;
}

void gp_roll_fini(struct gp_roll *roll)
{
    for (size_t i = 0; i < GP_ROLL_LEVELS; i++) {
        gp_chunk_fini(&roll->levels[i].chunk);
        gp_scene_fini(&roll->levels[i].ranges);
    }
}

/* Whether the number changes from sample to sample, so that more than its last value matters. */
static bool is_moving(const struct gp_tape_column_info *info)
{
    const enum gp_tape_column column = info->column;
    return (int)column < GP_METRIC__COUNT && gp_metric_table[column].type != GP_TYPE_TEXT &&
           gp_metric_table[column].tier != GP_TIER_STATIC &&
           gp_metric_table[column].tier != GP_TIER_SLOW;
}

static void join(struct gp_range *range, const struct gp_range *other)
{
    if (other->count == 0)
        return;
    if (range->count == 0 || other->min < range->min)
        range->min = other->min;
    if (range->count == 0 || other->max > range->max)
        range->max = other->max;
    range->sum += other->sum;
    range->count += other->count;
}

/* Gives the scene the rows of another one; false without memory. */
static bool list_like(struct gp_scene *scene, const struct gp_scene *other)
{
    bool ok = true;
    for (size_t s = GP_TAPE_DEVICE; ok && s < GP_TAPE_SCOPE__COUNT; s++) {
        const struct gp_tape_rows *rows = &other->scopes[s];
        struct gp_tape_key *keys = calloc(rows->count + 1, sizeof(*keys));
        for (size_t i = 0; keys && i < rows->count; i++)
            keys[i] = (struct gp_tape_key){rows->rows[i].id, rows->rows[i].device};
        ok = keys && (gp_scene_is_listed(scene, (enum gp_tape_scope)s, keys, rows->count) ||
                      gp_scene_list(scene, (enum gp_tape_scope)s, keys, rows->count));
        free(keys);
    }
    return ok;
}

typedef void on_range(struct gp_range *range, const struct gp_tape_row *other, unsigned place);

/* Calls it for each range of a moving number, with the same row of another scene. */
static void for_ranges(struct gp_scene *ranges, const struct gp_scene *other, on_range *function)
{
    for (size_t s = 0; s < GP_TAPE_SCOPE__COUNT; s++) {
        const struct gp_tape_rows *rows = &ranges->scopes[s];
        for (unsigned place = 0; place < rows->width; place++) {
            if (!is_moving(&ranges->columns->columns[s][place]))
                continue;
            for (size_t i = 0; i < rows->count; i++)
                function(&rows->rows[i].ranges[place], &other->scopes[s].rows[i], place);
        }
    }
}

static void add_cell(struct gp_range *range, const struct gp_tape_row *row, unsigned place)
{
    const struct gp_tape_cell *cell = &row->cells[place];
    if (cell->status == GP_STATUS_OK && !cell->text)
        join(range, &(struct gp_range){cell->number, cell->number, (double)cell->number, 1});
}

static void add_range(struct gp_range *range, const struct gp_tape_row *row, unsigned place)
{
    join(range, &row->ranges[place]);
}

static void clear_range(struct gp_range *range, const struct gp_tape_row *row, unsigned place)
{
    (void)row;
    (void)place;
    *range = (struct gp_range){0};
}

static int store_chunk(struct gp_roll_state *level, int64_t step_us, gp_roll_store *store,
                       void *ctx)
{
    if (level->is_stored)
        return 0;
    int r = store(ctx, step_us, &level->chunk);
    level->is_stored = r == 0;
    return r;
}

static int end_step(struct gp_roll *roll, size_t i, const struct gp_scene *scene,
                    gp_roll_store *store, void *ctx)
{
    struct gp_roll_state *level = &roll->levels[i];
    const int64_t step_us = gp_roll_levels[i].step_us;
    const int64_t end_us = (level->number + 1) * step_us;
    int r = 0;
    if (i + 1 < GP_ROLL_LEVELS) {
        struct gp_scene *above = &roll->levels[i + 1].ranges;
        if (!list_like(above, scene))
            return GP_ENOMEM;
        for_ranges(above, &level->ranges, add_range);
    }
    if (end_us > level->after_us) {
        level->is_stored = false;
        r = gp_chunk_add(&level->chunk, level->number, scene, &level->ranges);
        level->after_us = end_us;
    }
    if (r == 0 && level->chunk.count >= GP_ROLL_POINTS) {
        r = store_chunk(level, step_us, store, ctx);
        gp_chunk_reset(&level->chunk);
    }
    for_ranges(&level->ranges, scene, clear_range);
    level->number = -1;
    return r;
}

int gp_roll_end(struct gp_roll *roll, int64_t t, const struct gp_scene *scene, gp_roll_store *store,
                void *ctx)
{
    int r = 0;
    for (size_t i = roll->first; r == 0 && i < GP_ROLL_LEVELS; i++)
        if (roll->levels[i].number >= 0 && roll->levels[i].number != t / gp_roll_levels[i].step_us)
            r = end_step(roll, i, scene, store, ctx);
    return r;
}

int gp_roll_add(struct gp_roll *roll, int64_t t, const struct gp_scene *scene)
{
    struct gp_scene *ranges = &roll->levels[roll->first].ranges;
    if (!list_like(ranges, scene))
        return GP_ENOMEM;
    for_ranges(ranges, scene, add_cell);
    for (size_t i = roll->first; i < GP_ROLL_LEVELS; i++)
        roll->levels[i].number = t / gp_roll_levels[i].step_us;
    return 0;
}

int gp_roll_flush(struct gp_roll *roll, gp_roll_store *store, void *ctx)
{
    int r = 0;
    for (size_t i = roll->first; r == 0 && i < GP_ROLL_LEVELS; i++)
        r = store_chunk(&roll->levels[i], gp_roll_levels[i].step_us, store, ctx);
    return r;
}

int64_t gp_roll_needs_us(const struct gp_roll *roll)
{
    int64_t needs_us = INT64_MAX;
    for (size_t i = roll->first; i < GP_ROLL_LEVELS; i++)
        if (roll->levels[i].after_us < needs_us)
            needs_us = roll->levels[i].after_us;
    return needs_us;
}
