#include "sample/assemble.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/proc.h"
#include "sample/assemble_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

enum { FOR_ANCESTORS = GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND | GP_PROC_ANCESTORS };

static unsigned proc_want(const struct gp_metric_set *set)
{
    static const struct {
        enum gp_metric metric;
        unsigned want;
    } needs[] = {
        {GP_PROCESS_USER, GP_PROC_USER},
        {GP_PROCESS_NAME, GP_PROC_COMMAND},
        {GP_PROCESS_PATH, GP_PROC_PATH},
        {GP_PROCESS_COMMAND, GP_PROC_COMMAND},
        {GP_PROCESS_CPU, GP_PROC_STAT},
        {GP_PROCESS_RSS, GP_PROC_STAT},
        {GP_PROCESS_START, GP_PROC_STAT},
        {GP_PROCESS_PPID, GP_PROC_STAT},
        {GP_PROCESS_STATE, GP_PROC_STAT},
        {GP_PROCESS_THREADS, GP_PROC_STAT},
        {GP_PROCESS_CONTAINER, GP_PROC_CONTAINER},
        {GP_PROCESS_CONTAINER_NAME, GP_PROC_CONTAINER},
        {GP_PROCESS_ORIGIN, GP_PROC_ORIGIN},
        {GP_PROCESS_NS_PID, GP_PROC_NS_PID},
        {GP_PROCESS_SESSION, GP_PROC_STAT},
        {GP_PROCESS_CWD, GP_PROC_CWD},
    };
    unsigned want = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(needs); i++)
        if (gp_metric_set_has(set, needs[i].metric))
            want |= needs[i].want;
    return want;
}

static bool wants_memory_account(const struct gp_assembler *a)
{
    return gp_metric_set_has(&a->want.metrics, GP_MEMORY_PROCESSES) ||
           gp_metric_set_has(&a->want.metrics, GP_MEMORY_UNATTRIBUTED);
}

/* Selects the process columns, and the values that the assembler computes itself. */
static void choose_columns(struct gp_assembler *a)
{
    static const enum gp_metric own[] = {GP_PID, GP_PROCESS_TYPE, GP_PROCESS_MEMORY};
    static const enum gp_metric of_ancestors[] = {
        GP_PROCESS_NAME, GP_PROCESS_USER,  GP_PROCESS_COMMAND, GP_PROCESS_CPU,   GP_PROCESS_RSS,
        GP_PROCESS_PPID, GP_PROCESS_STATE, GP_PROCESS_THREADS, GP_PROCESS_START,
    };
    struct gp_metric_set metrics = a->want.metrics;
    for (size_t i = 0; i < GP_ARRAY_LEN(own); i++)
        gp_metric_set_add(&metrics, own[i]);
    for (size_t i = 0; a->want.ancestors && i < GP_ARRAY_LEN(of_ancestors); i++)
        gp_metric_set_add(&metrics, of_ancestors[i]);
    if (a->want.process_names)
        gp_metric_set_add(&metrics, GP_PROCESS_NAME);
    a->columns = gp_process_columns(&metrics);
}

int gp_assembler_init(struct gp_assembler *a, struct gp_selection *selection,
                      const struct gp_want *want, const char *root, struct gp_err *err)
{
    *a = (struct gp_assembler){.selection = selection, .want = *want, .internal = *want};
    struct gp_metric_set *need = &a->internal.metrics;
    gp_metric_set_join(need, &want->more);
    if (!gp_selection_is_by_index(selection)) {
        gp_metric_set_add(need, GP_UUID);
        gp_metric_set_add(need, GP_NAME);
        gp_metric_set_add(need, GP_PCI_BUS_ID);
    }
    if (gp_selection_names_serials(selection))
        gp_metric_set_add(need, GP_SERIAL);
    /* The state of a GPU only shows when it is queried. */
    if (gp_metric_set_has(&want->metrics, GP_STATUS) ||
        gp_metric_set_has(&want->metrics, GP_STATUS_TEXT))
        gp_metric_set_add(need, GP_TEMPERATURE_GPU);
    if (gp_metric_set_has(&want->metrics, GP_MIG_GPU_UUID) || gp_wants_reservations(&want->metrics))
        gp_metric_set_add(need, GP_UUID);
    if (want->mig) {
        gp_metric_set_add(need, GP_MIG_GPU_INSTANCE);
        gp_metric_set_add(need, GP_MIG_COMPUTE_INSTANCE);
    }
    if (gp_wants_activity(&want->metrics))
        gp_metric_set_add(need, GP_PROCESS_SM);
    if (wants_memory_account(a)) {
        gp_metric_set_add(need, GP_MEMORY_USED);
        a->internal.processes = true;
    }
    a->internal.process_names = want->process_names ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_NAME) ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_PATH) ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_COMMAND);
    a->internal.processes = a->internal.processes || want->ancestors;
    a->proc_want = proc_want(&want->metrics);
    if (want->ancestors)
        a->proc_want |= FOR_ANCESTORS;
    choose_columns(a);
    gp_shared_state_init(&a->shared, root);
    a->shared.wants_leases = gp_wants_reservations(&want->metrics) && !want->host_only;
    a->shared.wants_suspended = gp_metric_set_has(&want->metrics, GP_PROCESS_SUSPENDED);
    a->proc = gp_proc_reader_new(root);
    return a->proc ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

void gp_assembler_add_activity(struct gp_assembler *a)
{
    gp_metric_set_add(&a->internal.metrics, GP_UTILIZATION_GPU);
    a->internal.processes = true;
}

void gp_assembler_watch(struct gp_assembler *a, const uint32_t *pids, size_t count,
                        bool others_matter)
{
    gp_proc_watch(a->proc, pids, count, others_matter);
}

void gp_assembler_set_lists(struct gp_assembler *a, uint32_t lists)
{
    a->more_lists = lists;
}

void gp_assembler_add_lists(struct gp_assembler *a, uint32_t lists)
{
    a->want.lists |= lists;
}

void gp_assembler_set_ancestors(struct gp_assembler *a, bool wanted)
{
    if (wanted)
        a->proc_want |= FOR_ANCESTORS;
    else
        a->proc_want &= ~(unsigned)GP_PROC_ANCESTORS;
}

bool gp_snapshot_has_work(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_value *v =
            &snapshot->devices[i].values[GP_UTILIZATION_GPU - GP_DEVICE__FIRST];
        if (gp_value_is_present(v) && v->i > 0)
            return true;
    }
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_value *v = gp_process_value(&snapshot->processes[i], GP_PROCESS_TYPE);
        if (gp_value_is_present(v) && strcmp(v->s, "G") != 0 &&
            strcmp(v->s, GP_TYPE_SUSPENDED) != 0)
            return true;
    }
    return false;
}

static void drop_taken(struct gp_assembler *a)
{
    for (size_t i = 0; i < a->taken_count; i++) {
        gp_reading_unref(a->taken[i].latest);
        gp_reading_unref(a->taken[i].good);
    }
    a->taken_count = 0;
    gp_arena_reset(&a->scratch);
}

void gp_assembler_fini(struct gp_assembler *a)
{
    drop_taken(a);
    gp_arena_fini(&a->scratch);
    gp_snapshot_free(a->snapshot);
    gp_shared_state_fini(&a->shared);
    gp_activity_fini(&a->activity);
    gp_proc_reader_free(a->proc);
    gp_arena_fini(&a->driver_texts);
}

bool gp_assembler_needs_source(const struct gp_assembler *a)
{
    for (enum gp_metric m = GP_DRIVER_VERSION; m <= GP_CC_READY; m++)
        if (gp_metric_set_has(&a->want.metrics, m))
            return true;
    return !a->want.host_only;
}

const struct gp_want *gp_assembler_want(const struct gp_assembler *a)
{
    return &a->internal;
}

void gp_assembler_set_driver(struct gp_assembler *a, const struct gp_value host[GP_HOST__COUNT])
{
    gp_arena_fini(&a->driver_texts);
    for (int m = 0; m < GP_HOST__COUNT; m++) {
        struct gp_value *v = &a->driver_host[m];
        *v = host[m];
        if (v->status != GP_STATUS_OK || gp_metric_table[m].type != GP_TYPE_TEXT)
            continue;
        v->s = gp_arena_strdup(&a->driver_texts, host[m].s);
        if (!v->s)
            gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", gp_value_time_ns(v));
    }
}

/* Copies the driver's host values including their texts, because a later session may change
 * them. */
static bool copy_driver_host(struct gp_assembler *a, struct gp_snapshot *snapshot)
{
    for (int m = 0; m < GP_HOST__COUNT; m++) {
        snapshot->host[m] = a->driver_host[m];
        if (a->driver_host[m].status != GP_STATUS_OK || gp_metric_table[m].type != GP_TYPE_TEXT)
            continue;
        snapshot->host[m].s = gp_arena_strdup(&snapshot->arena, a->driver_host[m].s);
        if (!snapshot->host[m].s)
            return false;
    }
    return true;
}

int gp_assembler_prepare(struct gp_assembler *a, struct gp_err *err)
{
    int r = gp_shared_state_update(&a->shared);
    return r < 0 ? gp_err_set(err, r, "out of memory") : 0;
}

int gp_assembler_start(struct gp_assembler *a, size_t slots, unsigned gpu_count, struct gp_err *err)
{
    drop_taken(a);
    gp_snapshot_free(a->snapshot);
    a->gpu_count = gpu_count;
    a->snapshot = gp_snapshot_new();
    a->taken = gp_arena_alloc(&a->scratch, slots, sizeof(*a->taken));
    if (!a->snapshot || !a->taken || !copy_driver_host(a, a->snapshot))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    a->snapshot->columns = a->columns;
    a->snapshot->mono_ns = gp_clock_mono_ns();
    a->snapshot->wall_ns = gp_clock_wall_ns();
    return 0;
}

void gp_assembler_take(struct gp_assembler *a, const struct gp_slot *slot, enum gp_status status,
                       double silent_s, const char *text)
{
    struct gp_taken *t = &a->taken[a->taken_count++];
    *t = (struct gp_taken){
        .index = slot->index,
        .latest = slot->latest ? gp_reading_ref(slot->latest) : NULL,
        .good = slot->good ? gp_reading_ref(slot->good) : NULL,
        .status = status,
        .silent_s = silent_s,
    };
    if (status == GP_STATUS_OK) {
        t->status = slot->latest->status;
        t->driver_code = slot->latest->driver_code;
        t->refused = slot->latest->refused;
        text = slot->latest->status_text;
    }
    if (a->shared.suspended.count > 0)
        t->uuid = gp_arena_strdup(&a->snapshot->arena, slot->uuid);
    /* It may quote a path or a system message. */
    struct gp_strbuf safe = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&safe, text, strlen(text), 400);
    text = gp_arena_strdup(&a->snapshot->arena, safe.buf);
    t->text = text ? text : "";
    gp_strbuf_fini(&safe);
}

/* ---- devices ---- */

static bool is_static(enum gp_metric m)
{
    return gp_metric_table[m].tier == GP_TIER_STATIC;
}

/* Turns a value of a reading into one of the snapshot. It gets its own copy of the text, because
 * the reading may be freed. */
static void own(struct gp_assembler *a, enum gp_metric m, struct gp_value *v)
{
    if (gp_metric_table[m].type != GP_TYPE_TEXT || !gp_value_is_present(v))
        return;
    v->s = gp_arena_strdup(&a->snapshot->arena, v->s);
    if (!v->s)
        gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", gp_value_time_ns(v));
}

/* One requested value of a GPU. If the GPU responded, it is fresh. Otherwise it is a permanent
 * value (identity), the last number marked as stale while the GPU is silent, or the reason why it
 * is missing. */
static void fill_value(struct gp_assembler *a, struct gp_device *device, const struct gp_taken *t,
                       enum gp_metric m)
{
    struct gp_value *v = gp_device_value(device->values, m);
    const struct gp_value *latest = t->latest ? &t->latest->values[m - GP_DEVICE__FIRST] : NULL;
    const struct gp_value *good = t->good ? &t->good->values[m - GP_DEVICE__FIRST] : NULL;
    if (t->status == GP_STATUS_OK && latest) {
        *v = *latest;
    } else if (latest && latest->status == GP_STATUS_OK && is_static(m)) {
        *v = *latest; /* the name of a sleeping GPU */
    } else if (good && good->status == GP_STATUS_OK &&
               (is_static(m) || t->status == GP_STATUS_TIMEOUT)) {
        *v = *good;
        if (!is_static(m))
            v->status = GP_STATUS_STALE;
    } else {
        gp_value_set_absent(v, device->status,
                            device->status == GP_STATUS_ERROR ? device->status_text : NULL, 0);
    }
    own(a, m, v);
}

static void fill_common(const struct gp_assembler *a, struct gp_device *device, uint64_t time_ns)
{
    struct gp_value *index = gp_device_value(device->values, GP_INDEX);
    struct gp_value *status = gp_device_value(device->values, GP_STATUS);
    struct gp_value *text = gp_device_value(device->values, GP_STATUS_TEXT);
    const char *word = gp_device_state(device->status);
    gp_value_set_int(index, device->index, time_ns);
    if (gp_metric_set_has(&a->want.metrics, GP_STATUS))
        gp_value_set_text(status, word, time_ns);
    if (gp_metric_set_has(&a->want.metrics, GP_STATUS_TEXT))
        gp_value_set_text(text, device->status == GP_STATUS_OK ? word : device->status_text,
                          time_ns);
}

static void fill_gpu(struct gp_assembler *a, const struct gp_taken *t, struct gp_device *device)
{
    struct gp_snapshot *snapshot = a->snapshot;
    *device = (struct gp_device){
        .index = t->index,
        .status = t->status,
        .status_text = t->text,
        .driver_code = t->driver_code,
        .refused = t->refused,
        .silent_s = t->silent_s,
        .processes_status = t->status,
    };
    if (t->status == GP_STATUS_OK && t->latest)
        device->processes_status = t->latest->processes_status;
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        device->list_status[i] =
            t->status == GP_STATUS_OK && t->latest ? t->latest->lists[i].status : t->status;
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        if (gp_metric_set_has(&a->internal.metrics, (enum gp_metric)m))
            fill_value(a, device, t, (enum gp_metric)m);
    /* Shows the location of a GPU that does not respond, even if it was not requested. */
    if (device->status != GP_STATUS_OK)
        fill_value(a, device, t, GP_PCI_BUS_ID);
    fill_common(a, device, snapshot->mono_ns);
}

static void fill_mig(struct gp_assembler *a, const struct gp_device *gpu,
                     const struct gp_mig_reading *mig, struct gp_device *device)
{
    *device = *gpu;
    device->is_mig = true;
    device->mig_index = mig->index;
    memcpy(device->values, mig->values, sizeof(device->values));
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++) {
        struct gp_value *v = gp_device_value(device->values, (enum gp_metric)m);
        if (gpu->status != GP_STATUS_OK && v->status == GP_STATUS_OK &&
            !is_static((enum gp_metric)m))
            v->status = GP_STATUS_STALE;
        own(a, (enum gp_metric)m, v);
    }
    /* The driver reports neither the bus id nor the GPU of an instance. */
    *gp_device_value(device->values, GP_PCI_BUS_ID) = gpu->values[GP_PCI_BUS_ID - GP_DEVICE__FIRST];
    if (gp_metric_set_has(&a->want.metrics, GP_MIG_GPU_UUID))
        *gp_device_value(device->values, GP_MIG_GPU_UUID) = gpu->values[GP_UUID - GP_DEVICE__FIRST];
    fill_common(a, device, a->snapshot->mono_ns);
}

static const char *text_or_null(const struct gp_value *values, enum gp_metric m)
{
    const struct gp_value *v = &values[m - GP_DEVICE__FIRST];
    return gp_value_is_present(v) ? v->s : NULL;
}

/* A MIG instance is selected with its GPU, or by its own UUID or
 * number; all other terms select GPUs. */
static bool is_chosen(struct gp_assembler *a, unsigned index, const struct gp_value *values,
                      bool is_mig)
{
    const struct gp_value *instance = &values[GP_MIG_INDEX - GP_DEVICE__FIRST];
    struct gp_identity identity = {
        .uuid = text_or_null(values, GP_UUID), .is_mig = is_mig, .gpu = index};
    if (is_mig && gp_value_is_present(instance))
        identity.mig_index = (unsigned)instance->i;
    if (!is_mig) {
        identity.bus_id = text_or_null(values, GP_PCI_BUS_ID);
        identity.serial = text_or_null(values, GP_SERIAL);
        identity.name = text_or_null(values, GP_NAME);
    }
    return gp_selection_matches(a->selection, index, &identity);
}

bool gp_assembler_chooses(struct gp_assembler *a, const struct gp_slot *slot)
{
    bool chosen = is_chosen(a, slot->index, slot->good->values, false);
    for (size_t i = 0; i < slot->good->mig_count; i++)
        chosen = is_chosen(a, slot->index, slot->good->mig[i].values, true) || chosen;
    return chosen;
}

static bool wants_list(const struct gp_assembler *a, size_t list)
{
    return (a->want.lists | a->more_lists) >> list & 1;
}

static bool is_failure(enum gp_status status)
{
    return status == GP_STATUS_ERROR || status == GP_STATUS_NO_PERMISSION;
}

static bool is_incomplete(const struct gp_assembler *a, const struct gp_device *device)
{
    if (device->status != GP_STATUS_OK)
        return device->status != GP_STATUS_ASLEEP && device->status != GP_STATUS_RELEASED;
    bool incomplete = a->want.processes && is_failure(device->processes_status);
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        incomplete = incomplete || (wants_list(a, i) && is_failure(device->list_status[i]));
    return incomplete;
}

/* Adds a GPU and its MIG instances if they are selected. */
static void add_rows(struct gp_assembler *a, const struct gp_taken *t)
{
    struct gp_snapshot *snapshot = a->snapshot;
    const struct gp_reading *shown = gp_taken_shown(t);
    struct gp_device *gpu = &snapshot->devices[snapshot->device_count];
    fill_gpu(a, t, gpu);
    const struct gp_device parent = *gpu;
    /* A GPU whose name or instances are unknown may be a selected one, and is kept. */
    bool silent = t->status != GP_STATUS_OK;
    bool nameless = silent && !text_or_null(parent.values, GP_NAME);
    bool bare = silent && (!shown || shown->mig_count == 0);
    bool gpu_chosen = is_chosen(a, t->index, parent.values, false) ||
                      (nameless && gp_selection_names_models(a->selection)) ||
                      (bare && gp_selection_names_mig(a->selection));
    bool any = gpu_chosen;
    snapshot->device_count += gpu_chosen;
    for (size_t k = 0; a->want.mig && shown && k < shown->mig_count; k++) {
        struct gp_device *mig = &snapshot->devices[snapshot->device_count];
        fill_mig(a, &parent, &shown->mig[k], mig);
        bool chosen = is_chosen(a, t->index, mig->values, true) || gpu_chosen;
        snapshot->device_count += chosen;
        any = any || chosen;
    }
    snapshot->partial = snapshot->partial || (any && is_incomplete(a, &parent));
}

static int build_devices(struct gp_assembler *a)
{
    struct gp_snapshot *snapshot = a->snapshot;
    size_t most = 1;
    for (size_t i = 0; i < a->taken_count; i++) {
        const struct gp_reading *shown = gp_taken_shown(&a->taken[i]);
        most += 1 + (shown ? shown->mig_count : 0);
    }
    snapshot->devices = gp_arena_alloc(&snapshot->arena, most, sizeof(*snapshot->devices));
    if (!snapshot->devices)
        return GP_ENOMEM;
    for (size_t i = 0; i < a->taken_count; i++)
        add_rows(a, &a->taken[i]);
    return 0;
}

/* ---- memory ---- */

/* The memory of the processes of a row; for a GPU including those of its instances, whose rows
 * follow. False if the memory of a process is unknown. */
static bool sum_processes(const struct gp_snapshot *snapshot, const struct gp_device *device,
                          int64_t *ret_bytes)
{
    const struct gp_device *end = &snapshot->devices[snapshot->device_count];
    *ret_bytes = 0;
    for (const struct gp_device *d = device; d < end && d->index == device->index; d++) {
        for (size_t i = 0; i < d->process_count; i++) {
            const struct gp_process *p = &snapshot->processes[d->first_process + i];
            const struct gp_value *v = gp_process_value(p, GP_PROCESS_MEMORY);
            if (!gp_value_is_present(v))
                return false;
            *ret_bytes += v->i;
        }
        if (device->is_mig)
            break;
    }
    return true;
}

/* Splits the used memory into memory of processes and unattributed memory. The latter is at least
 * 0: a process may have appeared between the two reads. */
static void account_memory(const struct gp_snapshot *snapshot, struct gp_device *device)
{
    struct gp_value *sum = gp_device_value(device->values, GP_MEMORY_PROCESSES);
    struct gp_value *rest = gp_device_value(device->values, GP_MEMORY_UNATTRIBUTED);
    const struct gp_value *used = gp_device_value(device->values, GP_MEMORY_USED);
    int64_t bytes;
    bool placed = !device->is_mig ||
                  (gp_value_is_present(gp_device_value(device->values, GP_MIG_GPU_INSTANCE)) &&
                   gp_value_is_present(gp_device_value(device->values, GP_MIG_COMPUTE_INSTANCE)));
    if (device->processes_status != GP_STATUS_OK) {
        gp_value_set_absent(sum, device->processes_status, NULL, snapshot->mono_ns);
    } else if (!placed) {
        gp_value_set_absent(sum, GP_STATUS_UNSUPPORTED, "the processes in it are unknown",
                            snapshot->mono_ns);
    } else if (!sum_processes(snapshot, device, &bytes)) {
        gp_value_set_absent(sum, GP_STATUS_UNSUPPORTED, "the memory of a process is unknown",
                            snapshot->mono_ns);
    } else {
        gp_value_set_int(sum, bytes, snapshot->mono_ns);
    }
    *rest = gp_value_is_present(sum) ? *used : *sum;
    if (gp_value_is_present(sum) && gp_value_is_present(used))
        rest->i = used->i > sum->i ? used->i - sum->i : 0;
}

/* ---- lists ---- */

/* The values of a list: those of the reading; or of an earlier one, marked as stale unless they are
 * permanent; or one row of absent values. *ret_rows is the number of rows. */
static const struct gp_value *list_values(struct gp_assembler *a, const struct gp_device *device,
                                          const struct gp_taken *t, enum gp_scope scope,
                                          size_t *ret_rows)
{
    const struct gp_reading *shown = gp_taken_shown(t);
    const struct gp_list *list = shown ? &shown->lists[gp_list_index(scope)] : NULL;
    bool known = list && list->status == GP_STATUS_OK;
    size_t width = gp_scope_width(scope);
    *ret_rows = known ? list->count : 1;
    struct gp_value *values =
        gp_arena_alloc(&a->snapshot->arena, *ret_rows * width + 1, sizeof(*values));
    for (size_t i = 0; values && i < *ret_rows * width; i++) {
        enum gp_metric m = (enum gp_metric)(gp_scope_table[scope].first + i % width);
        if (known) {
            values[i] = list->values[i];
            if (t->status != GP_STATUS_OK && values[i].status == GP_STATUS_OK && !is_static(m))
                values[i].status = GP_STATUS_STALE;
            own(a, m, &values[i]);
        } else {
            bool of_list = t->status == GP_STATUS_OK && list;
            const char *words = of_list                             ? list->words
                                : device->status == GP_STATUS_ERROR ? device->status_text
                                                                    : NULL;
            gp_value_set_absent(&values[i], of_list ? list->status : device->status, words, 0);
        }
    }
    return values;
}

static int build_list(struct gp_assembler *a, enum gp_scope scope)
{
    struct gp_snapshot *snapshot = a->snapshot;
    struct gp_entries *entries = &snapshot->lists[gp_list_index(scope)];
    size_t most = snapshot->device_count;
    for (size_t i = 0; i < a->taken_count; i++) {
        const struct gp_reading *shown = gp_taken_shown(&a->taken[i]);
        most += shown ? shown->lists[gp_list_index(scope)].count : 0;
    }
    entries->entries = gp_arena_alloc(&snapshot->arena, most + 1, sizeof(*entries->entries));
    if (!entries->entries)
        return GP_ENOMEM;
    for (size_t d = 0; d < snapshot->device_count; d++) {
        const struct gp_device *device = &snapshot->devices[d];
        const struct gp_taken *t = gp_taken_of(a, device);
        size_t rows = 0;
        if (device->is_mig || !t)
            continue;
        const struct gp_value *values = list_values(a, device, t, scope, &rows);
        if (!values && rows > 0)
            return GP_ENOMEM;
        for (size_t i = 0; i < rows; i++)
            entries->entries[entries->count++] =
                (struct gp_entry){.device = d, .values = values + i * gp_scope_width(scope)};
    }
    return 0;
}

static int build_lists(struct gp_assembler *a)
{
    int r = 0;
    for (int scope = GP_SCOPE_LIST__FIRST; r == 0 && scope < GP_SCOPE__COUNT; scope++)
        if (wants_list(a, gp_list_index((enum gp_scope)scope)))
            r = build_list(a, (enum gp_scope)scope);
    return r;
}

/* ---- host ---- */

static const struct {
    enum gp_metric metric;
    unsigned part; /* enum gp_proc_host_part */
} host_parts[] = {
    {GP_HOST_CPU, GP_PROC_HOST_CPU},
    {GP_HOST_CPU_COUNT, GP_PROC_HOST_CPU_COUNT},
    {GP_HOST_LOAD, GP_PROC_HOST_LOAD},
    {GP_HOST_MEMORY_TOTAL, GP_PROC_HOST_MEMORY},
    {GP_HOST_MEMORY_AVAILABLE, GP_PROC_HOST_MEMORY},
    {GP_HOST_SWAP_TOTAL, GP_PROC_HOST_SWAP},
    {GP_HOST_SWAP_USED, GP_PROC_HOST_SWAP},
    {GP_HOST_UPTIME, GP_PROC_HOST_UPTIME},
};

/* The values of the machine from /proc. */
static void fill_host(struct gp_assembler *a)
{
    struct gp_proc_host info;
    unsigned want = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(host_parts); i++)
        if (gp_metric_set_has(&a->want.metrics, host_parts[i].metric))
            want |= host_parts[i].part;
    if (want == 0)
        return;
    gp_proc_read_host(a->proc, want, &info);
    struct gp_value *host = a->snapshot->host;
    uint64_t now = a->snapshot->mono_ns;
    gp_value_set_real(&host[GP_HOST_CPU], info.cpu_pct, now);
    gp_value_set_int(&host[GP_HOST_CPU_COUNT], (int64_t)info.cpu_count, now);
    gp_value_set_real(&host[GP_HOST_LOAD], info.load_1m, now);
    gp_value_set_int(&host[GP_HOST_MEMORY_TOTAL], (int64_t)info.memory_total_bytes, now);
    gp_value_set_int(&host[GP_HOST_MEMORY_AVAILABLE], (int64_t)info.memory_available_bytes, now);
    gp_value_set_int(&host[GP_HOST_SWAP_TOTAL], (int64_t)info.swap_total_bytes, now);
    gp_value_set_int(&host[GP_HOST_SWAP_USED], (int64_t)info.swap_used_bytes, now);
    gp_value_set_int(&host[GP_HOST_UPTIME], (int64_t)info.uptime_s, now);
    for (size_t i = 0; i < GP_ARRAY_LEN(host_parts); i++)
        if (!(info.known & host_parts[i].part))
            gp_value_set_absent(&host[host_parts[i].metric],
                                want & host_parts[i].part ? GP_STATUS_UNSUPPORTED : GP_STATUS_NONE,
                                NULL, now);
}

static int build_host(struct gp_assembler *a)
{
    struct gp_snapshot *snapshot = a->snapshot;
    uint64_t now = snapshot->mono_ns;
    struct gp_value *host = snapshot->host;
    char name[256];
    char time[GP_RFC3339_SIZE];
    gp_proc_host_name(a->proc, name, sizeof(name));
    gp_clock_rfc3339(snapshot->wall_ns, time);
    gp_value_set_text(&host[GP_TIMESTAMP], gp_arena_strdup(&snapshot->arena, time), now);
    char room[256] = "";
    struct gp_strbuf safe = GP_STRBUF_ON(room, 4096);
    gp_utf8_add_safe(&safe, name, strlen(name), sizeof(name));
    gp_value_set_text(&host[GP_HOST_NAME],
                      safe.error ? NULL : gp_arena_strdup(&snapshot->arena, safe.buf), now);
    gp_strbuf_fini(&safe);
    gp_value_set_int(&host[GP_COUNT], a->gpu_count, now);
    fill_host(a);
    return host[GP_TIMESTAMP].s && host[GP_HOST_NAME].s ? 0 : GP_ENOMEM;
}

/* Checks that every term of the selection has matched. A GPU that has not been identified yet may
 * still match. */
static int check_selection(const struct gp_assembler *a, struct gp_err *err)
{
    int r = gp_selection_check(a->selection, a->gpu_count, err);
    for (size_t i = 0; r < 0 && i < a->taken_count; i++) {
        const struct gp_taken *t = &a->taken[i];
        if (t->status != GP_STATUS_OK && (!t->good || gp_selection_names_mig(a->selection)))
            return gp_err_set(err, GP_EPARTIAL,
                              "cannot resolve --id: GPU %u has not been identified: %s", t->index,
                              t->text);
    }
    return r;
}

int gp_assembler_finish(struct gp_assembler *a, struct gp_snapshot **ret, struct gp_err *err)
{
    int r = build_devices(a);
    if (r == 0)
        gp_assemble_reservations(a);
    if (r == 0 && a->internal.processes)
        r = gp_assemble_processes(a);
    for (size_t i = 0; r == 0 && wants_memory_account(a) && i < a->snapshot->device_count; i++)
        account_memory(a->snapshot, &a->snapshot->devices[i]);
    if (r == 0)
        r = build_lists(a);
    if (r == 0)
        r = build_host(a);
    if (r < 0)
        return gp_err_set(err, r, "out of memory for the snapshot");
    if (!a->want.host_only)
        r = check_selection(a, err);
    if (r < 0)
        return r;
    drop_taken(a);
    *ret = a->snapshot;
    a->snapshot = NULL;
    return 0;
}
