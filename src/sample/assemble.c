#include "sample/assemble.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/proc.h"
#include "sample/assemble_internal.h"

#include <string.h>

enum {
    FOR_JOBS = GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_ANCESTORS,
    FOR_ANCESTORS = FOR_JOBS | GP_PROC_USER,
};

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

/* Selects the process columns, and the values that the assembler computes itself. */
static void choose_columns(struct gp_assembler *a)
{
    static const enum gp_metric own[] = {GP_PID, GP_PROCESS_TYPE, GP_PROCESS_MEMORY};
    static const enum gp_metric of_ancestors[] = {
        GP_PROCESS_NAME, GP_PROCESS_USER,  GP_PROCESS_COMMAND, GP_PROCESS_CPU,   GP_PROCESS_RSS,
        GP_PROCESS_PPID, GP_PROCESS_STATE, GP_PROCESS_THREADS, GP_PROCESS_START,
    };
    struct gp_metric_set metrics = a->want.metrics;
    gp_metric_set_join(&metrics, &a->want.more);
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
    if (gp_wants_memory_account(&want->metrics)) {
        gp_metric_set_add(need, GP_MEMORY_USED);
        a->internal.processes = true;
    }
    a->internal.process_names = want->process_names ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_NAME) ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_PATH) ||
                                gp_metric_set_has(&want->metrics, GP_PROCESS_COMMAND);
    a->internal.processes = a->internal.processes || want->ancestors;
    a->proc_want = proc_want(&want->metrics);
    a->shows_ancestors = want->ancestors;
    if (want->ancestors)
        a->proc_want |= FOR_ANCESTORS;
    if (want->jobs)
        a->proc_want |= FOR_JOBS;
    if (want->owners)
        a->proc_want |= GP_PROC_OWNER;
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
    a->shows_ancestors = wanted;
    if (wanted)
        a->proc_want |= FOR_ANCESTORS;
    else if (!a->want.jobs)
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
    if (!a->snapshot || !a->taken || !gp_assemble_driver_host(a, a->snapshot))
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
    int r = gp_assemble_devices(a);
    if (r == 0)
        gp_assemble_reservations(a);
    if (r == 0 && a->internal.processes)
        r = gp_assemble_processes(a);
    if (r == 0)
        gp_assemble_memory_account(a);
    if (r == 0)
        r = gp_assemble_lists(a);
    if (r == 0)
        r = gp_assemble_host(a);
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
