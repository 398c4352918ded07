#include "sample/activity.h"

#include "base/err.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct gp_activity_entry *x = a;
    const struct gp_activity_entry *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

int gp_activity_begin(struct gp_activity *activity, size_t most)
{
    activity->next_count = activity->most = 0;
    if (activity->next_room <= most) {
        struct gp_activity_entry *grown =
            realloc(activity->next, (most + 1) * sizeof(*activity->next));
        if (!grown)
            return GP_ENOMEM;
        activity->next = grown;
        activity->next_room = most + 1;
    }
    activity->most = most;
    return 0;
}

struct gp_activity_entry gp_activity_see(struct gp_activity *activity, unsigned gpu, uint32_t pid,
                                         bool is_active, uint64_t from_ns, uint64_t now_ns)
{
    struct gp_activity_entry entry = {.gpu = gpu, .pid = pid, .since_ns = from_ns};
    const struct gp_activity_entry *known =
        activity->count > 0
            ? bsearch(&entry, activity->items, activity->count, sizeof(entry), compare)
            : NULL;
    if (known)
        entry = *known;
    if (is_active)
        entry.active_ns = now_ns;
    if (activity->next_count < activity->most)
        activity->next[activity->next_count++] = entry;
    return entry;
}

void gp_activity_end(struct gp_activity *activity)
{
    const struct gp_activity before = *activity;
    activity->items = before.next;
    activity->room = before.next_room;
    activity->next = before.items;
    activity->next_room = before.room;
    activity->count = before.next_count;
    activity->next_count = activity->most = 0;
    if (activity->count > 0)
        qsort(activity->items, activity->count, sizeof(*activity->items), compare);
}

void gp_activity_fini(struct gp_activity *activity)
{
    free(activity->items);
    free(activity->next);
    *activity = (struct gp_activity){.items = NULL};
}
