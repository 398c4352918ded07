#include "model/snapshot.h"

#include "base/shared.h"
#include "base/strbuf.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char *gp_device_state(enum gp_status status)
{
    static const char *const words[] = {
#define X(id, word) [GP_STATUS_##id] = (word),
        GP_DEVICE_STATES(X)
#undef X
    };
    const char *word = status < GP_ARRAY_LEN(words) ? words[status] : NULL;
    return word ? word : words[GP_STATUS_ERROR];
}

const char *gp_device_trouble(const struct gp_device *device)
{
    return device->status == GP_STATUS_LOST ? "lost: reset or reboot needed; see gpulse doctor"
                                            : device->status_text;
}

static const struct gp_value none;

const struct gp_value *gp_process_value(const struct gp_process *process, enum gp_metric m)
{
    unsigned at = (unsigned)m - GP_PROCESS__FIRST;
    unsigned place = process->columns ? process->columns->places[at] : at + 1;
    return place ? &process->cells[place - 1] : &none;
}

bool gp_process_computes(const struct gp_process *process)
{
    const struct gp_value *type = gp_process_value(process, GP_PROCESS_TYPE);
    return gp_value_is_present(type) && strpbrk(type->s, "CM"); /* M: a client of MPS */
}

struct gp_process_columns gp_process_columns(const struct gp_metric_set *metrics)
{
    struct gp_process_columns columns = {0};
    for (int i = 0; i < GP_PROCESS__COUNT; i++)
        if (gp_metric_set_has(metrics, (enum gp_metric)(GP_PROCESS__FIRST + i)))
            columns.places[i] = (uint8_t)++columns.count;
    return columns;
}

const struct gp_value *gp_snapshot_value(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device,
                                         const struct gp_process *process, enum gp_metric m)
{
    if (m < GP_DEVICE__FIRST)
        return &snapshot->host[m];
    if (m < GP_PROCESS__FIRST)
        return device ? &device->values[m - GP_DEVICE__FIRST] : &none;
    bool has = process && gp_metric_table[m].scope == GP_SCOPE_PROCESS;
    return has ? gp_process_value(process, m) : &none;
}

bool gp_device_number(const struct gp_device *device, enum gp_metric m, double *ret)
{
    const struct gp_value *v = &device->values[m - GP_DEVICE__FIRST];
    if (!gp_value_is_present(v))
        return false;
    *ret = gp_metric_number(m, v);
    return true;
}

bool gp_device_number_now(const struct gp_device *device, enum gp_metric m, double *ret)
{
    return device->values[m - GP_DEVICE__FIRST].status == GP_STATUS_OK &&
           gp_device_number(device, m, ret);
}

void gp_device_label(const struct gp_device *device, char ret[GP_DEVICE_LABEL_SIZE])
{
    char room[GP_DEVICE_LABEL_SIZE] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, sizeof(room) - 1);
    gp_strbuf_add_int(&sb, device->index);
    if (device->is_mig) {
        gp_strbuf_addc(&sb, ':');
        gp_strbuf_add_int(&sb, device->mig_index);
    }
    memcpy(ret, room, sizeof(room));
}

const char *gp_device_text(const struct gp_device *device, enum gp_metric m, const char *other)
{
    const struct gp_value *v = &device->values[m - GP_DEVICE__FIRST];
    return gp_value_is_present(v) ? v->s : other;
}

bool gp_snapshot_lists(const struct gp_snapshot *snapshot, int64_t pid)
{
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (gp_process_value(&snapshot->processes[i], GP_PID)->i == pid)
            return true;
    return false;
}

/* A freed snapshot, for the next one. They are freed by another thread than the one that builds
 * them. */
static _Atomic(struct gp_snapshot *) spare;

struct gp_snapshot *gp_snapshot_new(void)
{
    struct gp_snapshot *snapshot = atomic_exchange(&spare, NULL);
    if (!snapshot)
        return calloc(1, sizeof(*snapshot));
    struct gp_arena arena = snapshot->arena;
    gp_arena_reset(&arena);
    *snapshot = (struct gp_snapshot){.arena = arena};
    return snapshot;
}

void gp_snapshot_free(struct gp_snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (size_t i = 0; i < snapshot->process_count; i++)
        gp_shared_drop(snapshot->processes[i].texts);
    for (size_t i = 0; i < snapshot->ancestor_count; i++)
        gp_shared_drop(snapshot->ancestors[i].texts);
    snapshot = atomic_exchange(&spare, snapshot);
    if (!snapshot)
        return;
    gp_arena_fini(&snapshot->arena);
    free(snapshot);
}
