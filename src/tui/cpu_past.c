#include "tui/cpu_past.h"

#include <stdlib.h>

enum {
    SLOTS = 1024, /* more than rows fit on a screen; a power of two */
    PROBES = 8,
    BLOCK = 0x2581, /* ▁, the first of eight */
    HIGHEST = 6,    /* ▇, which does not touch the row above it */
};

#define GAP (-1.0F)
#define ONE_CPU 100.0F /* percent */
#define MOST (4096 * ONE_CPU)

/* Of a process. Without a free slot, the one that was used the longest ago is taken. */
struct slot {
    int64_t pid;
    uint64_t last_ns;
    uint64_t column; /* number of the newest one, since the machine was started */
    float sum;       /* of its samples */
    unsigned count;
    float older[GP_CPU_PAST_COLUMNS - 1]; /* means, the newest one first */
};

struct gp_cpu_past {
    uint64_t column_ns;
    uint64_t now_column;
    struct slot slots[SLOTS];
};

static size_t place_of(int64_t pid, size_t probe)
{
    return ((size_t)pid + probe) % SLOTS;
}

static const struct slot *find(const struct gp_cpu_past *past, int64_t pid)
{
    for (size_t i = 0; i < PROBES; i++)
        if (past->slots[place_of(pid, i)].pid == pid)
            return &past->slots[place_of(pid, i)];
    return NULL;
}

static void clear(struct slot *slot, int64_t pid, uint64_t column)
{
    *slot = (struct slot){.pid = pid, .column = column};
    for (size_t i = 0; i < GP_ARRAY_LEN(slot->older); i++)
        slot->older[i] = GAP;
}

static struct slot *slot_for(struct gp_cpu_past *past, int64_t pid)
{
    struct slot *oldest = &past->slots[place_of(pid, 0)];
    for (size_t i = 0; i < PROBES; i++) {
        struct slot *slot = &past->slots[place_of(pid, i)];
        if (slot->pid == pid)
            return slot;
        if (slot->last_ns < oldest->last_ns)
            oldest = slot;
    }
    clear(oldest, pid, past->now_column);
    return oldest;
}

static float mean_of(const struct slot *slot)
{
    return slot->count ? slot->sum / (float)slot->count : GAP;
}

/* Moves on to the present column. */
static void move_on(struct slot *slot, uint64_t column)
{
    enum { OLDER = GP_CPU_PAST_COLUMNS - 1 };
    for (; slot->column < column; slot->column++) {
        for (size_t i = OLDER - 1; i > 0; i--)
            slot->older[i] = slot->older[i - 1];
        slot->older[0] = mean_of(slot);
        slot->sum = 0;
        slot->count = 0;
    }
}

static void add(struct gp_cpu_past *past, const struct gp_proc_row *row, uint64_t mono_ns)
{
    const double age_ns = row->age_s.known ? row->age_s.n * (double)GP_NS_PER_S : -1;
    struct slot *slot = slot_for(past, row->pid);
    const bool is_later = slot->last_ns < mono_ns;
    const bool is_other = age_ns >= 0 && slot->last_ns > 0 && is_later &&
                          age_ns + (double)GP_NS_PER_S < (double)(mono_ns - slot->last_ns);
    const bool is_back = slot->last_ns > mono_ns; /* in a recording */
    if (slot->last_ns == mono_ns)
        return; /* another row of the process */
    if (is_other || is_back || past->now_column - slot->column > GP_CPU_PAST_COLUMNS)
        clear(slot, row->pid, past->now_column);
    move_on(slot, past->now_column);
    slot->sum += (float)row->cpu.n;
    slot->count++;
    slot->last_ns = mono_ns;
}

void gp_cpu_past_add(struct gp_cpu_past **past, const struct gp_proc_row *rows, size_t count,
                     uint64_t mono_ns, uint64_t interval_ns)
{
    const uint64_t column_ns = interval_ns * GP_CPU_PAST_PER_COLUMN;
    if (*past && (*past)->column_ns != column_ns) {
        gp_cpu_past_free(*past); /* its columns have another width */
        *past = NULL;
    }
    if (!*past)
        *past = calloc(1, sizeof(**past));
    if (!*past)
        return;
    (*past)->column_ns = column_ns;
    (*past)->now_column = mono_ns / column_ns;
    for (size_t i = 0; i < count; i++)
        if (rows[i].pid > 0 && rows[i].cpu.known && !rows[i].cpu.old)
            add(*past, &rows[i], mono_ns);
}

void gp_draw_cpu_past(const struct gp_box *box, int x, int y, enum gp_ink ink,
                      const struct gp_cpu_past *past, int64_t pid)
{
    const struct slot *slot = past && pid > 0 ? find(past, pid) : NULL;
    float top = ONE_CPU;
    if (!slot || slot->column > past->now_column)
        return;
    const uint64_t ago = past->now_column - slot->column;
    float values[GP_CPU_PAST_COLUMNS];
    for (uint64_t i = 0; i < GP_CPU_PAST_COLUMNS; i++) {
        values[i] = i < ago ? GAP : i == ago ? mean_of(slot) : slot->older[i - ago - 1];
        if (values[i] > MOST) /* no machine: a strange recording */
            values[i] = MOST;
        while (top < values[i]) /* whole CPUs, so that the scale is steady */
            top += ONE_CPU;
    }
    for (int i = 0; i < GP_CPU_PAST_COLUMNS; i++)
        if (values[i] >= 0)
            gp_draw_fill(box, x + GP_CPU_PAST_COLUMNS - 1 - i, y, 1, ink,
                         (uint32_t)(BLOCK + (int)(values[i] / top * HIGHEST + 0.5F)));
}

void gp_cpu_past_free(struct gp_cpu_past *past)
{
    free(past);
}
