/* What a GPU has several of: the entries of the requested lists. */
#include "base/err.h"
#include "model/snapshot.h"
#include "sample/assemble_internal.h"

/* The values of a list: those of the reading; or of an earlier one, marked as stale unless they are
 * permanent; or one row of absent values. *ret_rows is the number of rows. */
static const struct gp_value *list_values(struct gp_assembler *a, const struct gp_device *device,
                                          const struct gp_taken *t, enum gp_scope scope,
                                          size_t *ret_rows)
{
    const struct gp_reading *shown = gp_taken_shown(t);
    const struct gp_list *list = shown ? &shown->lists[gp_list_index(scope)] : NULL;
    bool known = list && list->status == GP_STATUS_OK && t->status != GP_STATUS_LOST;
    size_t width = gp_scope_width(scope);
    *ret_rows = known ? list->count : 1;
    struct gp_value *values =
        gp_arena_alloc(&a->snapshot->arena, *ret_rows * width + 1, sizeof(*values));
    for (size_t i = 0; values && i < *ret_rows * width; i++) {
        enum gp_metric m = (enum gp_metric)(gp_scope_table[scope].first + i % width);
        if (known) {
            values[i] = list->values[i];
            if (t->status != GP_STATUS_OK && values[i].status == GP_STATUS_OK &&
                !gp_is_permanent(m))
                values[i].status = GP_STATUS_STALE;
            gp_assemble_own(a, m, &values[i]);
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

int gp_assemble_lists(struct gp_assembler *a)
{
    int r = 0;
    for (int scope = GP_SCOPE_LIST__FIRST; r == 0 && scope < GP_SCOPE__COUNT; scope++)
        if (gp_wants_list(a, gp_list_index((enum gp_scope)scope)))
            r = build_list(a, (enum gp_scope)scope);
    return r;
}
