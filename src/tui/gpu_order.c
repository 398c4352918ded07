#include "tui/gpu_order.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_text.h"
#include "tui/history.h"

#include <stdlib.h>

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
    if (gp_gpu_is_ill(device))
        return 3;
    if (gp_fault_has(GP_FAULT_RECOVERY, device))
        return 2;
    return gp_fault_has(GP_FAULT_HEAT, device) || gp_fault_has(GP_FAULT_SLOWED, device);
}

static int key_of_load(const struct gp_device *device)
{
    const int permille = gp_series_permille(device, GP_SERIES_GPU);
    return gp_gpu_is_ill(device) ? FIRST : permille < 0 ? -1 : (permille + 5) / 10;
}

static int key_of_idle(const struct gp_device *device)
{
    const int load = key_of_load(device);
    return gp_gpu_is_ill(device) ? -FIRST : load < 0 ? -101 : -load;
}

static int key_of_free(const struct gp_device *device)
{
    double used;
    double total;
    if (gp_gpu_is_ill(device) || !gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total))
        return -1;
    return (int)(10 * (total - used) / GIB);
}

static int key_of_temperature(const struct gp_device *device)
{
    double celsius;
    if (gp_gpu_is_ill(device))
        return FIRST;
    return gp_device_number(device, GP_TEMPERATURE_GPU, &celsius) ? (int)celsius : -1;
}

static const struct {
    int (*key)(const struct gp_device *device);
    int slack; /* GPUs keep their places while their keys differ by no more */
} orders[GP_ORDER__COUNT] = {
    [GP_ORDER_AUTO] = {key_of_index, 0},
    [GP_ORDER_INDEX] = {key_of_index, 0},
    [GP_ORDER_LOAD] = {key_of_load, 3}, /* percent */
    [GP_ORDER_IDLE] = {key_of_idle, 3},
    [GP_ORDER_FREE] = {key_of_free, 5},               /* tenths of GiB */
    [GP_ORDER_TEMPERATURE] = {key_of_temperature, 1}, /* °C */
    [GP_ORDER_TROUBLE] = {key_of_trouble, 0},
    [GP_ORDER_GRID] = {key_of_trouble, 0},
};

const char *const gp_gpu_order_words[GP_ORDER__COUNT] = {
    [GP_ORDER_AUTO] = "index; problems first where not all fit",
    [GP_ORDER_INDEX] = "index",
    [GP_ORDER_LOAD] = "load",
    [GP_ORDER_IDLE] = "least load",
    [GP_ORDER_FREE] = "free memory",
    [GP_ORDER_TEMPERATURE] = "temperature",
    [GP_ORDER_TROUBLE] = "trouble",
    [GP_ORDER_GRID] = "trouble",
};

/* ---- sorting ---- */

/* Forgets the places if it is another order or another number of devices. In a grid, GPUs without
 * problems are always by index. */
static bool begin(struct gp_gpu_order *order, enum gp_gpu_order_by by, size_t count)
{
    const bool is_other = order->by != by || order->count != count || by == GP_ORDER_GRID;
    order->before = is_other ? 0 : count;
    order->by = by;
    order->count = 0;
    if (count > order->room) {
        struct gp_gpu_order_entry *grown = realloc(order->entries, count * sizeof(*grown));
        if (!grown)
            return false;
        order->entries = grown;
        order->room = count;
    }
    for (size_t i = 0; i < count; i++) {
        order->entries[i].before = order->entries[i].row;
        order->entries[i].is_placed = false;
    }
    return true;
}

/* Puts a GPU and its instances before the first one that has less, by more than the slack. */
static void insert(struct gp_gpu_order *order, size_t row, size_t rows)
{
    struct gp_gpu_order_entry *e = order->entries;
    const int slack = order->before ? orders[order->by].slack : 0;
    size_t at = 0;
    while (at < order->count && e[e[at].row].key + slack >= e[row].key)
        at++;
    for (size_t i = order->count; i > at; i--)
        e[i - 1 + rows].row = e[i - 1].row;
    for (size_t i = 0; i < rows; i++)
        e[at + i].row = (uint32_t)(row + i);
    order->count += rows;
    e[row].is_placed = true;
}

/* Whether it is an instance below its GPU, or below another instance of that. The GPU itself need
 * not be shown. */
static bool is_below(const struct gp_snapshot *snapshot, size_t row)
{
    const struct gp_device *device = &snapshot->devices[row];
    return row > 0 && device->is_mig && device[-1].index == device->index;
}

/* A GPU and its instances, if they have no places yet. */
static void place(struct gp_gpu_order *order, const struct gp_snapshot *snapshot, size_t row)
{
    size_t rows = 1;
    if (is_below(snapshot, row) || order->entries[row].is_placed)
        return;
    while (row + rows < snapshot->device_count && is_below(snapshot, row + rows))
        rows++;
    insert(order, row, rows);
}

void gp_gpu_order_set(struct gp_gpu_order *order, const struct gp_snapshot *snapshot,
                      enum gp_gpu_order_by by)
{
    const size_t count = snapshot->device_count;
    if (!begin(order, by, count))
        return;
    for (size_t row = 0; row < count; row++) /* instances have the key of their GPU */
        order->entries[row].key = is_below(snapshot, row) ? order->entries[row - 1].key
                                                          : orders[by].key(&snapshot->devices[row]);
    for (size_t i = 0; i < order->before; i++)
        place(order, snapshot, order->entries[i].before);
    for (size_t row = 0; row < count; row++)
        place(order, snapshot, row);
}

bool gp_gpu_order_is_index(const struct gp_gpu_order *order)
{
    size_t i = 0;
    while (i < order->count && order->entries[i].row == i)
        i++;
    return i == order->count;
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
    return order->entries[place].row;
}

size_t gp_gpu_order_place(const struct gp_gpu_order *order, size_t row)
{
    size_t place = 0;
    while (place < order->count && gp_gpu_order_row(order, place) != row)
        place++;
    return place;
}

void gp_gpu_order_fini(struct gp_gpu_order *order)
{
    free(order->entries);
    *order = (struct gp_gpu_order){.entries = NULL};
}
