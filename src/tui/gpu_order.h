/* The order of the GPUs on the screen. MIG instances stay below their GPU. */
#ifndef GP_TUI_GPU_ORDER_H
#define GP_TUI_GPU_ORDER_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

/* In the order of GP_GPU_ORDER_WORDS. */
enum gp_gpu_order_by {
    GP_ORDER_AUTO,  /* GP_ORDER_GRID in a grid without room for all, otherwise GP_ORDER_INDEX */
    GP_ORDER_INDEX, /* the driver's order */
    GP_ORDER_LOAD,
    GP_ORDER_IDLE, /* least load first */
    GP_ORDER_FREE, /* most free memory first */
    GP_ORDER_TEMPERATURE,
    GP_ORDER_TROUBLE,
    GP_ORDER_GRID, /* like GP_ORDER_TROUBLE, but idle GPUs stay where they are */
    GP_ORDER__COUNT,
};

#define GP_GPU_ORDER_WORDS "auto index load idle free temperature trouble"

/* By enum gp_gpu_order_by, for people. */
extern const char *const gp_gpu_order_words[GP_ORDER__COUNT];

struct gp_gpu_order {
    enum gp_gpu_order_by by;
    struct gp_gpu_order_entry {
        uint32_t row, before; /* of the device at this place, now and the last time */
        int key;              /* of the device in this row */
        bool is_placed;       /* as well */
    } * entries;              /* owned */
    size_t count;             /* of places, those of a snapshot's devices */
    size_t before;            /* the last time; 0: the order is a new one */
    size_t room;
};

/* Sorts by the values that are shown. After that, so that GPUs do not change places all the time,
 * one is not above another that has more by more than a few: load 3 %, memory 0.5 GiB,
 * temperature 1 °C. GPUs with problems come first, but last where free ones are looked for. Without
 * memory there are no places. */
void gp_gpu_order_set(struct gp_gpu_order *order, const struct gp_snapshot *snapshot,
                      enum gp_gpu_order_by by);

/* Appends the words and what the GPUs are sorted by, if that was asked for. */
void gp_gpu_order_add(struct gp_strbuf *sb, const struct gp_gpu_order *order, const char *words);

/* Whether this is how the driver orders all of them. */
bool gp_gpu_order_is_index(const struct gp_gpu_order *order);

/* The row at a place. */
size_t gp_gpu_order_row(const struct gp_gpu_order *order, size_t place);

/* The place of a row; the number of places if it has none. */
size_t gp_gpu_order_place(const struct gp_gpu_order *order, size_t row);

void gp_gpu_order_fini(struct gp_gpu_order *order);

#endif
