#include "tape/registry.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- GPUs ---- */

static int add_gpu(struct gp_registry *g, const char *uuid, uint64_t id)
{
    struct gp_registry_gpu *grown = realloc(g->gpus, (g->gpu_count + 1) * sizeof(*grown));
    if (!grown)
        return GP_ENOMEM;
    g->gpus = grown;
    struct gp_registry_gpu *gpu = &grown[g->gpu_count++];
    *gpu = (struct gp_registry_gpu){.id = id};
    (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", uuid);
    return 0;
}

static int take_gpu(struct gp_registry *g, const struct gp_device *device,
                    const struct gp_registry_news *news, uint64_t *ret)
{
    char name[96];
    char label[GP_DEVICE_LABEL_SIZE];
    gp_device_label(device, label);
    (void)snprintf(name, sizeof(name), "GPU %s", label);
    const char *uuid = gp_device_text(device, GP_UUID, name);
    for (size_t i = 0; i < g->gpu_count; i++)
        if (strcmp(g->gpus[i].uuid, uuid) == 0) {
            *ret = g->gpus[i].id;
            return 0;
        }
    *ret = g->next_gpu;
    int r = add_gpu(g, uuid, g->next_gpu);
    if (r == 0 && (r = news->on_gpu(news->ctx, g->next_gpu, uuid, device)) < 0)
        g->gpu_count--;
    g->next_gpu += r == 0;
    return r;
}

/* ---- processes ---- */

#define START_TOLERANCE_NS (2 * GP_NS_PER_S)

/* Start times are worked out from the time of boot, which moves a little when the clock is set. */
static bool is_same_start(uint64_t a_ns, uint64_t b_ns)
{
    const uint64_t apart_ns = a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
    return !a_ns == !b_ns && apart_ns < START_TOLERANCE_NS;
}

/* Where this process is, or would be. */
static size_t place_of(const struct gp_registry *g, uint32_t pid, uint64_t start_ns)
{
    size_t at = (size_t)(pid * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (g->process_room - 1);
    while (g->processes[at].id &&
           (g->processes[at].pid != pid || !is_same_start(g->processes[at].start_ns, start_ns)))
        at = (at + 1) & (g->process_room - 1);
    return at;
}

enum { FORGOTTEN_AFTER = 1000 }; /* samples: a GPU that hangs for a while lists nothing */

/* Makes room for one more, without those that were not listed for long. */
static int grow(struct gp_registry *g)
{
    if (2 * (g->process_count + 1) <= g->process_room)
        return 0;
    const struct gp_registry before = *g;
    size_t room = 64;
    while (room < 4 * (g->process_count + 1))
        room *= 2;
    g->processes = calloc(room, sizeof(*g->processes));
    if (!g->processes) {
        g->processes = before.processes;
        return GP_ENOMEM;
    }
    g->process_room = room;
    g->process_count = 0;
    for (size_t i = 0; i < before.process_room; i++) {
        const struct gp_registry_process *p = &before.processes[i];
        if (!p->id || p->round + FORGOTTEN_AFTER < g->round)
            continue;
        g->processes[place_of(g, p->pid, p->start_ns)] = *p;
        g->process_count++;
    }
    free(before.processes);
    return 0;
}

static int add_process(struct gp_registry *g, uint32_t pid, uint64_t start_ns, uint64_t id)
{
    int r = grow(g);
    if (r < 0)
        return r;
    struct gp_registry_process *p = &g->processes[place_of(g, pid, start_ns)];
    g->process_count += p->id == 0;
    *p = (struct gp_registry_process){start_ns, pid, g->round, id};
    return 0;
}

static int take_process(struct gp_registry *g, const struct gp_process *process,
                        const struct gp_registry_news *news, uint64_t *ret)
{
    const struct gp_value *start = gp_process_value(process, GP_PROCESS_START);
    const uint32_t pid = (uint32_t)gp_process_value(process, GP_PID)->i;
    uint64_t start_ns = 0;
    if (gp_value_is_present(start) && !gp_clock_parse_rfc3339(start->s, &start_ns))
        start_ns = 0;
    int r = grow(g);
    if (r < 0)
        return r;
    struct gp_registry_process *p = &g->processes[place_of(g, pid, start_ns)];
    /* without a start time, the pid may be another process's by now */
    if (p->id && (start_ns || p->round + 1 >= g->round)) {
        p->round = g->round;
        *ret = p->id;
        return 0;
    }
    *ret = g->next_process;
    r = news->on_process(news->ctx, g->next_process, process, pid, start_ns);
    if (r == 0) /* there is room for it */
        r = add_process(g, pid, start_ns, g->next_process++);
    return r;
}

/* ---- a sample ---- */

static bool make_room(uint64_t **ids, size_t *room, size_t count)
{
    if (count <= *room)
        return true;
    uint64_t *grown = realloc(*ids, 2 * count * sizeof(*grown));
    if (!grown)
        return false;
    *ids = grown;
    *room = 2 * count;
    return true;
}

int gp_registry_take(struct gp_registry *g, const struct gp_snapshot *snapshot,
                     const struct gp_registry_news *news)
{
    int r = 0;
    if (!make_room(&g->device_ids, &g->device_room, snapshot->device_count) ||
        !make_room(&g->process_ids, &g->id_room, snapshot->process_count))
        return GP_ENOMEM;
    g->round++;
    for (size_t i = 0; r == 0 && i < snapshot->device_count; i++)
        r = take_gpu(g, &snapshot->devices[i], news, &g->device_ids[i]);
    for (size_t i = 0; r == 0 && i < snapshot->process_count; i++)
        r = take_process(g, &snapshot->processes[i], news, &g->process_ids[i]);
    return r;
}

void gp_registry_forget(struct gp_registry *g)
{
    g->process_count = 0;
    for (size_t i = 0; i < g->process_room; i++)
        g->processes[i] = (struct gp_registry_process){.id = 0};
}

void gp_registry_fini(struct gp_registry *g)
{
    free(g->gpus);
    free(g->processes);
    free(g->device_ids);
    free(g->process_ids);
    *g = (struct gp_registry){0};
}

/* ---- going on ---- */

int gp_registry_load(struct gp_registry *g, struct gp_store *store, bool is_same_boot,
                     struct gp_err *err)
{
    int64_t gpus;
    int64_t processes;
    *g = (struct gp_registry){.round = 1};
    int r = gp_store_get_number(store, "SELECT max(id) FROM gpu", 0, &gpus, err);
    if (r == 0)
        r = gp_store_get_number(store, "SELECT max(id) FROM process", 0, &processes, err);
    if (r < 0)
        return r;
    g->next_gpu = (uint64_t)gpus + 1;
    g->next_process = (uint64_t)processes + 1;
    sqlite3_stmt *rows = gp_store_statement(store, "SELECT id, uuid FROM gpu", "");
    while ((r = gp_store_step(store, rows, err)) == 1)
        if (add_gpu(g, gp_store_text(rows, 1), (uint64_t)gp_store_int(rows, 0)) < 0) {
            (void)sqlite3_reset(rows);
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    if (r < 0 || !is_same_boot)
        return r;
    /* without a start time, the pid may be another process's by now */
    rows = gp_store_statement(
        store, "SELECT id, pid, start FROM process WHERE ended = 0 AND start > 0", "");
    while ((r = gp_store_step(store, rows, err)) == 1)
        if (add_process(g, (uint32_t)gp_store_int(rows, 1), (uint64_t)gp_store_int(rows, 2),
                        (uint64_t)gp_store_int(rows, 0)) < 0) {
            (void)sqlite3_reset(rows);
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    return r;
}
