/* Reads the lists of a GPU and caches them. */
#include "source/nvml/lists.h"

#include "base/clock.h"
#include "source/nvml/readers.h"

#include <stdlib.h>
#include <string.h>

static const nvml_list_fn list_readers[GP_LIST__COUNT] = {
    [GP_SCOPE_CLOCK - GP_SCOPE_LIST__FIRST] = nvml_list_clocks,
    [GP_SCOPE_PAGE - GP_SCOPE_LIST__FIRST] = nvml_list_pages,
    [GP_SCOPE_APP - GP_SCOPE_LIST__FIRST] = nvml_list_apps,
    [GP_SCOPE_FAN - GP_SCOPE_LIST__FIRST] = nvml_list_fans,
    [GP_SCOPE_ENCODING - GP_SCOPE_LIST__FIRST] = nvml_list_encoders,
    [GP_SCOPE_CAPTURE - GP_SCOPE_LIST__FIRST] = nvml_list_captures,
    [GP_SCOPE_LINK - GP_SCOPE_LIST__FIRST] = nvml_list_links,
    [GP_SCOPE_PEER - GP_SCOPE_LIST__FIRST] = nvml_list_peers,
    [GP_SCOPE_PROFILE - GP_SCOPE_LIST__FIRST] = nvml_list_profiles,
    [GP_SCOPE_SERIES - GP_SCOPE_LIST__FIRST] = nvml_list_samples,
    [GP_SCOPE_GI - GP_SCOPE_LIST__FIRST] = nvml_list_gpu_instances,
    [GP_SCOPE_CI - GP_SCOPE_LIST__FIRST] = nvml_list_compute_instances,
    [GP_SCOPE_CIP - GP_SCOPE_LIST__FIRST] = nvml_list_compute_profiles,
};

static void forget(struct nvml_list *kept)
{
    free(kept->list.values);
    gp_arena_fini(&kept->arena);
}

void nvml_forget_lists(struct nvml_device *device)
{
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        forget(&device->lists[i]);
}

static bool is_due(const struct nvml_list *kept, enum gp_scope scope, uint64_t now_ns)
{
    bool lasts = gp_metric_table[gp_scope_table[scope].first].tier == GP_TIER_STATIC;
    return !(kept->done && lasts) && now_ns >= kept->next_ns;
}

/* Reads from the driver. Returns NVML_SUCCESS, or the code that ended the session. */
static nvmlReturn_t refresh(struct nvml_device *device, const struct gp_want *want,
                            enum gp_scope scope, uint64_t now_ns)
{
    struct nvml_list *kept = &device->lists[gp_list_index(scope)];
    struct nvml_list fresh = {0};
    struct nvml_rows rows = {
        .device = device,
        .want = &want->metrics,
        .scope = scope,
        .now_ns = now_ns,
        .before = &kept->list,
        .arena = &fresh.arena,
    };
    nvmlReturn_t rc = list_readers[gp_list_index(scope)](&rows);
    fresh.list = rows.list;
    fresh.list.status = rc == NVML_ERROR_NOT_FOUND ? GP_STATUS_OK : nvml_return_status(rc);
    fresh.done = fresh.list.status == GP_STATUS_OK && !rows.is_partial;
    if (fresh.list.status != GP_STATUS_OK)
        fresh.list.count = 0;
    if (fresh.list.status == GP_STATUS_ERROR && !fresh.list.words)
        fresh.list.words = nvml_return_text(rc);
    fresh.next_ns = nvml_ask_again_ns(fresh.list.status,
                                      gp_metric_table[gp_scope_table[scope].first].tier, now_ns);
    forget(kept);
    *kept = fresh;
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

/* Copies a list and its texts for the reading. */
static void publish(const struct gp_list *kept, enum gp_scope scope, struct gp_arena *arena,
                    struct gp_list *ret)
{
    size_t width = gp_scope_width(scope);
    size_t cells = kept->count * width;
    struct gp_value *values = gp_arena_alloc(arena, cells + 1, sizeof(*values));
    bool ok = values != NULL;
    for (size_t i = 0; ok && i < cells; i++) {
        values[i] = kept->values[i];
        bool text = gp_metric_table[gp_scope_table[scope].first + i % width].type == GP_TYPE_TEXT;
        if (text && values[i].status == GP_STATUS_OK)
            ok = (values[i].s = gp_arena_strdup(arena, kept->values[i].s)) != NULL;
    }
    if (ok)
        *ret = (struct gp_list){kept->status, kept->words, kept->count, values};
    else
        *ret = (struct gp_list){.status = GP_STATUS_ERROR, .words = "out of memory"};
}

nvmlReturn_t nvml_read_lists(struct nvml_device *device, const struct gp_want *want,
                             struct gp_reading *reading)
{
    for (int i = 0; i < GP_LIST__COUNT; i++) {
        enum gp_scope scope = (enum gp_scope)(GP_SCOPE_LIST__FIRST + i);
        nvmlReturn_t rc = NVML_SUCCESS;
        if (!(want->lists >> i & 1))
            continue;
        if (is_due(&device->lists[i], scope, want->fresh ? UINT64_MAX : reading->time_ns))
            rc = refresh(device, want, scope, reading->time_ns);
        if (rc != NVML_SUCCESS)
            return rc;
        publish(&device->lists[i].list, scope, &reading->arena, &reading->lists[i]);
    }
    return NVML_SUCCESS;
}
