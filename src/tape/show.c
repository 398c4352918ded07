#include "tape/show.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "source/source.h"
#include "tape/process_texts.h"

#include <string.h>

static const char unrecorded[] = "not recorded";
static const char hole[] = "nothing was recorded at this time";

enum { TEXT_MAX = 65536 };

/* A copy of a text of the file that is safe on a terminal: whoever wrote the file may not be
 * trusted. NULL without memory. */
static const char *safe_copy(struct gp_snapshot *snapshot, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p >= ' ' && *p < 0x7f)
        p++;
    if (!*p)
        return gp_arena_strdup(&snapshot->arena, text);
    struct gp_strbuf safe = GP_STRBUF_INIT(4 * TEXT_MAX);
    gp_utf8_add_safe(&safe, text, strlen(text), TEXT_MAX);
    const char *copy = safe.error ? NULL : gp_arena_strdup(&snapshot->arena, safe.buf);
    gp_strbuf_fini(&safe);
    return copy;
}

/* ---- values ---- */

static bool set_value(const struct gp_show *show, struct gp_snapshot *snapshot,
                      const struct gp_tape_row *row, enum gp_metric m, struct gp_value *ret)
{
    const uint64_t now_ns = snapshot->mono_ns;
    const struct gp_tape_cell *cell = gp_scene_cell(show->scene, row, (int)m);
    const bool is_present =
        cell && (cell->status == GP_STATUS_OK || cell->status == GP_STATUS_STALE);
    if (!cell || (show->is_hole && gp_metric_table[m].tier != GP_TIER_STATIC)) {
        gp_value_set_absent(ret, GP_STATUS_UNSUPPORTED, cell ? hole : unrecorded, now_ns);
        return true;
    }
    if (cell->text) {
        gp_value_set_text(ret, safe_copy(snapshot, cell->text), now_ns);
        if (!ret->s)
            return false;
    } else if (is_present && gp_metric_table[m].type == GP_TYPE_REAL) {
        double number;
        if (gp_scene_number(show->scene, row, (int)m, &number))
            gp_value_set_real(ret, number, now_ns);
    } else if (is_present) {
        gp_value_set_int(ret, cell->number, now_ns);
    } else {
        gp_value_set_absent(ret, cell->status, NULL, now_ns);
    }
    ret->status = cell->status;
    return true;
}

static int64_t state_of(const struct gp_show *show, const struct gp_tape_row *row, int column,
                        int64_t unknown)
{
    const struct gp_tape_cell *cell = gp_scene_cell(show->scene, row, column);
    return cell && cell->status == GP_STATUS_OK ? cell->number : unknown;
}

static enum gp_status status_of(const struct gp_show *show, const struct gp_tape_row *row,
                                int column)
{
    const int64_t n = state_of(show, row, column, GP_STATUS_OK);
    return n >= GP_STATUS_NONE && n <= GP_STATUS_ERROR ? (enum gp_status)n : GP_STATUS_ERROR;
}

/* ---- rows ---- */

static int show_host(const struct gp_show *show, struct gp_snapshot *snapshot)
{
    char time[GP_RFC3339_SIZE];
    const struct gp_tape_row *row = show->scene->scopes[GP_TAPE_HOST].rows;
    bool ok = true;
    for (int m = 0; ok && m < GP_HOST__COUNT; m++)
        ok = set_value(show, snapshot, row, (enum gp_metric)m, &snapshot->host[m]);
    if (!gp_value_is_present(&snapshot->host[GP_HOST_NAME])) /* views need one */
        gp_value_set_text(&snapshot->host[GP_HOST_NAME], "unknown host", snapshot->mono_ns);
    gp_clock_rfc3339(snapshot->wall_ns, time);
    gp_value_set_text(&snapshot->host[GP_TIMESTAMP], gp_arena_strdup(&snapshot->arena, time),
                      snapshot->mono_ns);
    return ok && snapshot->host[GP_TIMESTAMP].s ? 0 : GP_ENOMEM;
}

static bool show_device(const struct gp_show *show, struct gp_snapshot *snapshot,
                        const struct gp_tape_row *row, struct gp_device *device)
{
    const struct gp_tape_cell *text = gp_scene_cell(show->scene, row, GP_TAPE_STATUS_TEXT);
    const int64_t mig = state_of(show, row, GP_TAPE_MIG_INDEX, -1);
    const int64_t silent_ms = state_of(show, row, GP_TAPE_SILENT, 0);
    *device = (struct gp_device){
        .index = (unsigned)state_of(show, row, GP_TAPE_INDEX, 0),
        .is_mig = mig >= 0,
        .mig_index = mig >= 0 ? (unsigned)mig : 0,
        .status = status_of(show, row, GP_TAPE_STATUS),
        .status_text = text && text->text ? safe_copy(snapshot, text->text) : "",
        .driver_code = (int)state_of(show, row, GP_TAPE_DRIVER_CODE, 0),
        .refused = state_of(show, row, GP_TAPE_REFUSED, 0) != 0,
        .reserved_by = (uint32_t)state_of(show, row, GP_TAPE_RESERVED_BY, 0),
        .silent_s = (double)silent_ms / 1000,
        .processes_status = status_of(show, row, GP_TAPE_PROCESSES_STATUS),
    };
    bool ok = device->status_text != NULL;
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        device->list_status[i] = GP_STATUS_UNSUPPORTED;
    for (int m = GP_DEVICE__FIRST; ok && m < GP_PROCESS__FIRST; m++)
        ok = set_value(show, snapshot, row, (enum gp_metric)m,
                       gp_device_value(device->values, (enum gp_metric)m));
    return ok;
}

static int show_devices(const struct gp_show *show, struct gp_snapshot *snapshot)
{
    const struct gp_tape_rows *rows = &show->scene->scopes[GP_TAPE_DEVICE];
    snapshot->devices =
        gp_arena_alloc(&snapshot->arena, rows->count + 1, sizeof(*snapshot->devices));
    bool ok = snapshot->devices != NULL;
    for (size_t i = 0; ok && i < rows->count; i++)
        ok = show_device(show, snapshot, &rows->rows[i], &snapshot->devices[i]);
    snapshot->device_count = ok ? rows->count : 0;
    return ok ? 0 : GP_ENOMEM;
}

/* What is kept with a process and not in samples. */
static int show_texts(const struct gp_show *show, struct gp_snapshot *snapshot,
                      const struct gp_tape_row *row, struct gp_value values[GP_PROCESS__COUNT])
{
    static const enum gp_metric metrics[GP_PRIVATE__COUNT] = {
        [GP_PRIVATE_PATH] = GP_PROCESS_PATH,
        [GP_PRIVATE_COMMAND] = GP_PROCESS_COMMAND,
        [GP_PRIVATE_CWD] = GP_PROCESS_CWD,
        [GP_PRIVATE_CONTAINER_NAME] = GP_PROCESS_CONTAINER_NAME,
        [GP_PRIVATE_ORIGIN] = GP_PROCESS_ORIGIN,
    };
    const char *texts[GP_PRIVATE__COUNT];
    int r = gp_process_texts(show->store, row->id, texts);
    for (size_t i = 0; r == 0 && i < GP_PRIVATE__COUNT; i++) {
        struct gp_value *v = &values[metrics[i] - GP_PROCESS__FIRST];
        if (gp_scene_cell(show->scene, row, (int)metrics[i]))
            continue; /* it is among the samples */
        if (!texts[i] || show->is_hole) {
            gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, unrecorded, snapshot->mono_ns);
            continue;
        }
        gp_value_set_text(v, safe_copy(snapshot, texts[i]), snapshot->mono_ns);
        if (!v->s)
            r = GP_ENOMEM;
    }
    return r;
}

static int show_process(const struct gp_show *show, struct gp_snapshot *snapshot,
                        const struct gp_tape_row *row, struct gp_process *process)
{
    struct gp_value values[GP_PROCESS__COUNT] = {{{0}, 0, 0}};
    bool ok = true;
    for (int m = 0; ok && m < GP_PROCESS__COUNT; m++)
        ok = set_value(show, snapshot, row, (enum gp_metric)(GP_PROCESS__FIRST + m), &values[m]);
    const struct gp_value *pid = &values[GP_PID - GP_PROCESS__FIRST];
    if (ok && !gp_value_is_present(pid))
        gp_value_set_int(&values[GP_PID - GP_PROCESS__FIRST], 0, snapshot->mono_ns);
    int r = ok ? show_texts(show, snapshot, row, values) : GP_ENOMEM;
    const int64_t job = state_of(show, row, GP_TAPE_JOB, 0);
    process->job = job > 0 && job <= UINT32_MAX && !show->is_hole ? (uint32_t)job : 0;
    for (size_t i = 0; r == 0 && i < GP_PROCESS__COUNT; i++)
        if (snapshot->columns.places[i])
            process->cells[snapshot->columns.places[i] - 1] = values[i];
    return r;
}

/* The processes of a GPU follow each other, in the order of the GPUs. */
static int show_processes(const struct gp_show *show, struct gp_snapshot *snapshot)
{
    const struct gp_tape_rows *rows = &show->scene->scopes[GP_TAPE_PROCESS];
    const size_t width = snapshot->columns.count;
    struct gp_process *processes =
        gp_arena_alloc(&snapshot->arena, rows->count + 1, sizeof(*processes));
    struct gp_value *cells =
        gp_arena_alloc(&snapshot->arena, rows->count * width + 1, sizeof(*cells));
    int r = processes && cells ? 0 : GP_ENOMEM;
    snapshot->processes = processes;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        const uint32_t at = rows->rows[i].device;
        if (at >= snapshot->device_count || (i > 0 && at < rows->rows[i - 1].device))
            return GP_EFORMAT;
        struct gp_device *device = &snapshot->devices[at];
        processes[i] = (struct gp_process){.device = at,
                                           .place = (uint32_t)device->process_count,
                                           .columns = &snapshot->columns,
                                           .cells = &cells[i * width]};
        if (device->process_count++ == 0)
            device->first_process = i;
        r = show_process(show, snapshot, &rows->rows[i], &processes[i]);
        snapshot->process_count = i + 1;
    }
    return r;
}

/* An unrecorded list is a single entry without values. */
static int show_lists(const struct gp_show *show, struct gp_snapshot *snapshot)
{
    for (size_t k = 0; k < GP_LIST__COUNT; k++) {
        const size_t width = gp_scope_width((enum gp_scope)(GP_SCOPE_LIST__FIRST + k));
        struct gp_entries *list = &snapshot->lists[k];
        if (!(show->want->lists >> k & 1))
            continue;
        struct gp_value *values = gp_arena_alloc(&snapshot->arena, width, sizeof(*values));
        list->entries =
            gp_arena_alloc(&snapshot->arena, snapshot->device_count + 1, sizeof(*list->entries));
        if (!values || !list->entries)
            return GP_ENOMEM;
        for (size_t i = 0; i < width; i++)
            gp_value_set_absent(&values[i], GP_STATUS_UNSUPPORTED, unrecorded, snapshot->mono_ns);
        for (size_t i = 0; i < snapshot->device_count; i++)
            if (!snapshot->devices[i].is_mig)
                list->entries[list->count++] = (struct gp_entry){i, values};
    }
    return 0;
}

int gp_show(const struct gp_show *show, struct gp_snapshot **ret)
{
    struct gp_snapshot *snapshot = gp_snapshot_new();
    if (!snapshot)
        return GP_ENOMEM;
    struct gp_metric_set metrics = show->want->metrics;
    for (int m = GP_PROCESS__FIRST; m < GP_CLOCK__FIRST; m++)
        gp_metric_set_add(&metrics, (enum gp_metric)m);
    snapshot->columns = gp_process_columns(&metrics);
    snapshot->wall_ns = (uint64_t)show->wall_us * GP_NS_PER_US;
    snapshot->mono_ns = (uint64_t)show->mono_us * GP_NS_PER_US;
    int r = show_host(show, snapshot);
    if (r == 0)
        r = show_devices(show, snapshot);
    if (r == 0 && show->want->processes)
        r = show_processes(show, snapshot);
    if (r == 0)
        r = show_lists(show, snapshot);
    if (r < 0)
        gp_snapshot_free(snapshot);
    else
        *ret = snapshot;
    return r;
}
