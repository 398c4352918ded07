#include "tui/gpu_order.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/gpu_text.h"
#include "tui/history.h"

#include <stdlib.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

enum { FIRST = 1 << 20 }; /* above all other keys */

/* ---- keys: the highest comes first ---- */

static int key_of_index(const struct gp_device *device)
{
    (void)device;
    return 0;
}

static int key_of_trouble(const struct gp_device *device)
{
    const char *limit = gp_gpu_limit(device);
    if (gp_gpu_is_ill(device))
        return 3;
    if (strcmp(gp_device_text(device, GP_RECOVERY_ACTION, "None"), "None") != 0)
        return 2;
    return limit && strcmp(limit, "temperature") == 0;
}

static int key_of_load(const struct gp_device *device)
{
    return gp_gpu_is_ill(device) ? FIRST : gp_series_permille(device, GP_SERIES_GPU) / 100;
}

static int key_of_free(const struct gp_device *device)
{
    double used;
    double total;
    if (gp_gpu_is_ill(device) || !gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total))
        return -1;
    return (int)((total - used) / GIB);
}

static int key_of_temperature(const struct gp_device *device)
{
    double celsius;
    if (gp_gpu_is_ill(device))
        return FIRST;
    return gp_device_number(device, GP_TEMPERATURE_GPU, &celsius) ? (int)celsius / 5 : -1;
}

static const struct {
    int (*key)(const struct gp_device *device);
    bool folds; /* idle GPUs are last */
} orders[GP_ORDER__COUNT] = {
    [GP_ORDER_AUTO] = {key_of_index, false},
    [GP_ORDER_INDEX] = {key_of_index, false},
    [GP_ORDER_LOAD] = {key_of_load, true},
    [GP_ORDER_FREE] = {key_of_free, false},
    [GP_ORDER_TEMPERATURE] = {key_of_temperature, true},
    [GP_ORDER_TROUBLE] = {key_of_trouble, true},
    [GP_ORDER_GRID] = {key_of_trouble, false},
};

const char *const gp_gpu_order_words[GP_ORDER__COUNT] = {
    [GP_ORDER_AUTO] = "index, in a grid those with problems first",
    [GP_ORDER_INDEX] = "index",
    [GP_ORDER_LOAD] = "load",
    [GP_ORDER_FREE] = "free memory",
    [GP_ORDER_TEMPERATURE] = "temperature",
    [GP_ORDER_TROUBLE] = "trouble",
    [GP_ORDER_GRID] = "trouble",
};

/* Nobody uses it, and it does nothing. A GPU with instances is not idle: nobody knows. */
static bool is_idle(const struct gp_device *device)
{
    return !device->is_mig && device->status == GP_STATUS_OK && device->process_count == 0 &&
           key_of_trouble(device) == 0 && !gp_device_text(device, GP_RESERVATION_USER, NULL) &&
           gp_series_permille(device, GP_SERIES_GPU) == 0 &&
           gp_series_permille(device, GP_SERIES_MEMORY) < 50;
}

/* ---- sorting ---- */

static bool make_room(struct gp_gpu_order *order, size_t count)
{
    if (count <= order->room)
        return true;
    uint64_t *grown = realloc(order->entries, count * sizeof(*grown));
    if (!grown)
        return false;
    order->entries = grown;
    order->room = count;
    return true;
}

/* By insertion: they are few, mostly in order already, and qsort() may allocate. */
static void insert(struct gp_gpu_order *order, uint64_t entry)
{
    size_t at = order->count++;
    for (; at > 0 && order->entries[at - 1] > entry; at--)
        order->entries[at] = order->entries[at - 1];
    order->entries[at] = entry;
}

void gp_gpu_order_set(struct gp_gpu_order *order, const struct gp_snapshot *snapshot,
                      enum gp_gpu_order_by by, size_t chosen)
{
    const size_t count = snapshot->device_count;
    const bool folds = orders[by].folds && count >= GP_ORDER_FOLDS_FROM;
    int key = 0;
    order->by = by;
    order->count = 0;
    order->idle = 0;
    order->of = 0;
    if (!make_room(order, count))
        return;
    order->of = count;
    for (size_t row = 0; row < count; row++) {
        const struct gp_device *device = &snapshot->devices[row];
        if (!device->is_mig) /* instances have the key of their GPU */
            key = orders[by].key(device);
        if (folds && row != chosen && is_idle(device))
            order->idle++;
        else
            insert(order, (uint64_t)(uint32_t)(FIRST - key) << 32 | row);
    }
}

void gp_gpu_order_add(struct gp_strbuf *sb, const struct gp_gpu_order *order, const char *words)
{
    if (order->by < GP_ORDER_LOAD || order->by == GP_ORDER_GRID)
        return;
    gp_strbuf_adds(sb, words);
    gp_strbuf_adds(sb, gp_gpu_order_words[order->by]);
}

size_t gp_gpu_order_row(const struct gp_gpu_order *order, size_t place)
{
    return place < order->count ? (size_t)(order->entries[place] & UINT32_MAX) : order->of;
}

size_t gp_gpu_order_place(const struct gp_gpu_order *order, size_t row)
{
    size_t place = 0;
    while (place < order->count && gp_gpu_order_row(order, place) != row)
        place++;
    return place;
}

size_t gp_gpu_order_places(const struct gp_gpu_order *order)
{
    return order->count + (order->idle > 0);
}

void gp_gpu_order_fini(struct gp_gpu_order *order)
{
    free(order->entries);
    *order = (struct gp_gpu_order){.entries = NULL};
}
