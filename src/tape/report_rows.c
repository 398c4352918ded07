#include "tape/report_internal.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, TEXT_COLUMNS = 400 };

static const char *const words[] = {
#define X(id, word) word,
    GP_REPORT_BYS(X)
#undef X
};

const char *gp_report_by_word(enum gp_report_by by)
{
    return words[by];
}

/* ---- texts ---- */

const char *gp_report_text(struct gp_report *report, const char *text)
{
    char room[256] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, 8 * TEXT_COLUMNS);
    gp_utf8_add_safe(&sb, text, strlen(text), TEXT_COLUMNS);
    const char *copy = sb.error == GP_ENOMEM ? NULL
                       : *sb.buf             ? gp_arena_strdup(&report->arena, sb.buf)
                                             : "";
    gp_strbuf_fini(&sb);
    return copy;
}

/* ---- sums ---- */

int64_t gp_report_clamp(int64_t n, int64_t max)
{
    return n < 0 ? 0 : n > max ? max : n;
}

void gp_report_add_to(int64_t *sum, int64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = INT64_MAX;
}

void gp_report_add_sums(struct gp_report_sums *sums, const struct gp_report_sums *more)
{
    gp_report_add_to(&sums->known_us, more->known_us);
    gp_report_add_to(&sums->held_us, more->held_us);
    gp_report_add_to(&sums->measured_us, more->measured_us);
    gp_report_add_to(&sums->busy_us, more->busy_us);
    gp_report_add_to(&sums->used_us, more->used_us);
    gp_report_add_to(&sums->idle_us, more->idle_us);
    gp_report_add_to(&sums->reserved_us, more->reserved_us);
    gp_report_add_to(&sums->energy_mj, more->energy_mj);
    gp_report_add_to(&sums->listed, more->listed);
    gp_report_add_to(&sums->unlisted_us, more->unlisted_us);
    if (more->memory > sums->memory)
        sums->memory = more->memory;
}

bool gp_report_knows_holders(const struct gp_report *report)
{
    return report->total.listed > 0;
}

bool gp_report_is_seen(const struct gp_report_sums *sums)
{
    return sums->known_us > 0 || sums->held_us > 0 || sums->energy_mj > 0 || sums->memory > 0;
}

bool gp_report_has_load(enum gp_report_by by, const struct gp_report_sums *sums)
{
    return by == GP_REPORT_GPU ? sums->known_us > 0 || sums->measured_us > 0
                               : sums->measured_us > 0;
}

/* A GPU always draws power; a process gets none of it only while it computes nothing. */
bool gp_report_has_energy(enum gp_report_by by, const struct gp_report_sums *sums)
{
    return sums->energy_mj > 0 ||
           (by != GP_REPORT_GPU && sums->measured_us > 0 && sums->busy_us == 0);
}

bool gp_report_has_memory(const struct gp_report_sums *sums)
{
    return sums->memory > 0;
}

/* ---- rows ---- */

/* The place of a key, or the free one for it. */
static uint32_t *place_of(const struct gp_report_table *table, const char *key)
{
    size_t i = gp_hash(GP_HASH_INIT, key) & (table->place_count - 1);
    while (table->places[i] && strcmp(table->rows[table->places[i] - 1].key, key) != 0)
        i = (i + 1) & (table->place_count - 1);
    return &table->places[i];
}

static bool grow(struct gp_report_table *table)
{
    const size_t room = table->room ? 2 * table->room : FIRST_ROOM;
    struct gp_report_row *rows = realloc(table->rows, room * sizeof(*rows));
    if (!rows)
        return false;
    table->rows = rows;
    uint32_t *places = calloc(2 * room, sizeof(*places));
    if (!places)
        return false;
    free(table->places);
    table->places = places;
    table->place_count = 2 * room;
    table->room = room;
    for (size_t i = 0; i < table->count; i++)
        *place_of(table, rows[i].key) = (uint32_t)(i + 1);
    return true;
}

struct gp_report_row *gp_report_row(struct gp_report *report, struct gp_report_table *table,
                                    const char *key)
{
    if (table->count == table->room && !grow(table))
        return NULL;
    uint32_t *place = place_of(table, key);
    if (*place)
        return &table->rows[*place - 1];
    if (table->count == GP_REPORT_ROWS_MAX) {
        struct gp_report_row *last = &table->rows[table->count - 1];
        last->label = "others";
        last->name = last->user = last->command = last->gpu = "";
        return last;
    }
    const char *copy = gp_arena_strdup(&report->arena, key);
    if (!copy)
        return NULL;
    *place = (uint32_t)(table->count + 1);
    table->rows[table->count] = (struct gp_report_row){.key = copy,
                                                       .label = "",
                                                       .name = "",
                                                       .user = "",
                                                       .command = "",
                                                       .uuid = "",
                                                       .gpu = "",
                                                       .reason = ""};
    return &table->rows[table->count++];
}

/* ---- order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_rows(const void *a, const void *b)
{
    const struct gp_report_row *x = a;
    const struct gp_report_row *y = b;
    int order = compare_numbers(x->order, y->order);
    if (order == 0)
        order = compare_numbers(y->sums.held_us, x->sums.held_us);
    if (order == 0)
        order = strcmp(x->key, y->key);
    return order;
}

static int compare_idle(const void *a, const void *b)
{
    const struct gp_report_row *x = a;
    const struct gp_report_row *y = b;
    int order = compare_numbers(y->sums.idle_us, x->sums.idle_us);
    return order ? order : compare_rows(a, b);
}

static int compare_waits(const void *a, const void *b)
{
    const struct gp_report_row *x = a;
    const struct gp_report_row *y = b;
    int order = compare_numbers(y->waited_us, x->waited_us);
    return order ? order : compare_rows(a, b);
}

void gp_report_sort(struct gp_report_table *table)
{
    if (table->count)
        qsort(table->rows, table->count, sizeof(*table->rows),
              table->by == GP_REPORT_IDLE   ? compare_idle
              : table->by == GP_REPORT_WAIT ? compare_waits
                                            : compare_rows);
}

void gp_report_table_fini(struct gp_report_table *table)
{
    free(table->rows);
    free(table->places);
    *table = (struct gp_report_table){.by = table->by};
}
