/* What waits to be stored in a recording, in its order. */
#ifndef GP_TAPE_QUEUE_H
#define GP_TAPE_QUEUE_H

#include "tape/axis.h"

struct gp_device;
struct gp_event;
struct gp_process;
struct gp_wait;

enum gp_tape_item_kind {
    GP_TAPE_ITEM_FRAME,
    GP_TAPE_ITEM_GPU,
    GP_TAPE_ITEM_PROCESS,
    GP_TAPE_ITEM_MARK,
    GP_TAPE_ITEM_EVENT,
    GP_TAPE_ITEM_HOLE,
    GP_TAPE_ITEM_WAIT,
    GP_TAPE_ITEM_MOMENTS,
};

enum { GP_TAPE_ITEM_NUMBERS = 5, GP_TAPE_ITEM_TEXTS = 8 };

/* Texts of a process. */
enum {
    GP_TAPE_PROCESS_USER,
    GP_TAPE_PROCESS_NAME,
    GP_TAPE_PROCESS_PATH,
    GP_TAPE_PROCESS_COMMAND,
    GP_TAPE_PROCESS_CWD,
    GP_TAPE_PROCESS_CONTAINER,
    GP_TAPE_PROCESS_CONTAINER_NAME,
    GP_TAPE_PROCESS_ORIGIN,
};

/* The parameters of the statement that stores it: numbers first, then texts (NULL: none). */
struct gp_tape_item {
    struct gp_tape_item *next;
    enum gp_tape_item_kind kind;
    int64_t numbers[GP_TAPE_ITEM_NUMBERS];
    const char *texts[GP_TAPE_ITEM_TEXTS]; /* in `room` */
    const void *data;                      /* of a frame or a chunk, likewise */
    size_t size;
    size_t bytes; /* of all of it */
    char room[];
};

/* A time of which samples were dropped. */
struct gp_tape_hole {
    int64_t from, to;
    uint64_t samples;
};

/* New items; NULL without memory. */
struct gp_tape_item *gp_tape_item_frame(int64_t t, int64_t base, const void *frame, size_t size);
struct gp_tape_item *gp_tape_item_gpu(uint64_t id, const char *uuid, const struct gp_device *device,
                                      int64_t t);
struct gp_tape_item *gp_tape_item_process(uint64_t id, const struct gp_process *process,
                                          uint32_t pid, uint64_t start_ns, int64_t t);
struct gp_tape_item *gp_tape_item_mark(const struct gp_axis_mark *mark);
struct gp_tape_item *gp_tape_item_event(int64_t t, uint64_t gpu, const struct gp_event *event);
struct gp_tape_item *gp_tape_item_hole(const struct gp_tape_hole *hole);
struct gp_tape_item *gp_tape_item_wait(const struct gp_wait *wait);
/* The samples of an incident, see moments.h: the place of the first, that after the last, and a
 * stored chunk. */
struct gp_tape_item *gp_tape_item_moments(int64_t first, int64_t end, unsigned count,
                                          const void *chunk, size_t size);

/* Frees an item and those after it. */
void gp_tape_items_free(struct gp_tape_item *items);

struct gp_tape_queue {
    struct gp_tape_item *first, **end; /* end: where the next one goes; NULL while it is empty */
    uint64_t bytes, samples;
};

/* Appends an item; NULL is ignored. */
void gp_tape_queue_add(struct gp_tape_queue *queue, struct gp_tape_item *item);

/* Takes all. */
struct gp_tape_item *gp_tape_queue_take(struct gp_tape_queue *queue);

/* Puts items that were taken before all others. */
void gp_tape_queue_put_back(struct gp_tape_queue *queue, struct gp_tape_item *items,
                            uint64_t samples);

/* Drops all samples; and, `processes`, what was to be stored of processes and waiting jobs. */
struct gp_tape_hole gp_tape_queue_drop(struct gp_tape_queue *queue, bool processes);

#endif
