#include "tape/queue.h"

#include "model/event.h"
#include "model/snapshot.h"
#include "tape/moments.h"
#include "tape/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- items ---- */

static struct gp_tape_item *new_item(enum gp_tape_item_kind kind,
                                     const int64_t numbers[GP_TAPE_ITEM_NUMBERS],
                                     const char *const texts[GP_TAPE_ITEM_TEXTS], const void *data,
                                     size_t size)
{
    size_t room = size;
    for (size_t i = 0; texts && i < GP_TAPE_ITEM_TEXTS; i++)
        room += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct gp_tape_item *item = malloc(sizeof(*item) + room);
    if (!item)
        return NULL;
    *item = (struct gp_tape_item){.kind = kind, .size = size, .bytes = sizeof(*item) + room};
    memcpy(item->numbers, numbers, sizeof(item->numbers));
    char *at = item->room;
    for (size_t i = 0; texts && i < GP_TAPE_ITEM_TEXTS; i++) {
        if (!texts[i])
            continue;
        const size_t len = strlen(texts[i]) + 1;
        item->texts[i] = memcpy(at, texts[i], len);
        at += len;
    }
    if (size)
        item->data = memcpy(at, data, size);
    return item;
}

struct gp_tape_item *gp_tape_item_frame(int64_t t, int64_t base, const void *frame, size_t size)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {t, base};
    return new_item(GP_TAPE_ITEM_FRAME, numbers, NULL, frame, size);
}

struct gp_tape_item *gp_tape_item_gpu(uint64_t id, const char *uuid, const struct gp_device *device,
                                      int64_t t)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {
        (int64_t)id, device->index, device->is_mig ? (int64_t)device->mig_index : -1, t};
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {uuid, gp_device_text(device, GP_NAME, NULL),
                                                   gp_device_text(device, GP_PCI_BUS_ID, NULL)};
    return new_item(GP_TAPE_ITEM_GPU, numbers, texts, NULL, 0);
}

static const char *text_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) ? v->s : NULL;
}

struct gp_tape_item *gp_tape_item_process(uint64_t id, const struct gp_process *process,
                                          uint32_t pid, uint64_t start_ns, int64_t t)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {(int64_t)id, pid, (int64_t)start_ns, t,
                                                   process->owner};
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {
        text_of(process, GP_PROCESS_USER),
        text_of(process, GP_PROCESS_NAME),
        text_of(process, GP_PROCESS_PATH),
        text_of(process, GP_PROCESS_COMMAND),
        text_of(process, GP_PROCESS_CWD),
        text_of(process, GP_PROCESS_CONTAINER),
        text_of(process, GP_PROCESS_CONTAINER_NAME),
        text_of(process, GP_PROCESS_ORIGIN),
    };
    return new_item(GP_TAPE_ITEM_PROCESS, numbers, texts, NULL, 0);
}

struct gp_tape_item *gp_tape_item_mark(const struct gp_axis_mark *mark)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {mark->t, mark->ahead_us, mark->boottime_us};
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {mark->boot};
    return new_item(GP_TAPE_ITEM_MARK, numbers, texts, NULL, 0);
}

struct gp_tape_item *gp_tape_item_event(int64_t t, uint64_t gpu, const struct gp_event *event)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {t, (int64_t)gpu, (int64_t)event->number,
                                                   event->from_driver};
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {gp_event_table[event->kind].name, event->was,
                                                   event->now, event->text};
    return new_item(GP_TAPE_ITEM_EVENT, numbers, texts, NULL, 0);
}

struct gp_tape_item *gp_tape_item_hole(const struct gp_tape_hole *hole)
{
    char words[96];
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {hole->from, 0, (int64_t)hole->samples};
    (void)snprintf(words, sizeof(words), "%llu samples over %.0f s could not be stored",
                   (unsigned long long)hole->samples, (double)(hole->to - hole->from) / 1e6);
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {"hole", NULL, NULL, words};
    return hole->samples ? new_item(GP_TAPE_ITEM_HOLE, numbers, texts, NULL, 0) : NULL;
}

struct gp_tape_item *gp_tape_item_wait(const struct gp_wait *wait)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {wait->id, (int64_t)wait->request, wait->gpus,
                                                   wait->first, wait->last};
    const char *const texts[GP_TAPE_ITEM_TEXTS] = {wait->user, wait->job};
    return new_item(GP_TAPE_ITEM_WAIT, numbers, texts, NULL, 0);
}

struct gp_tape_item *gp_tape_item_moments(int64_t first, int64_t end, unsigned count,
                                          const void *chunk, size_t size)
{
    const int64_t numbers[GP_TAPE_ITEM_NUMBERS] = {GP_MOMENT_STEP_US, first, end, count};
    return new_item(GP_TAPE_ITEM_MOMENTS, numbers, NULL, chunk, size);
}

void gp_tape_items_free(struct gp_tape_item *items)
{
    while (items) {
        struct gp_tape_item *next = items->next;
        free(items);
        items = next;
    }
}

/* ---- the queue ---- */

void gp_tape_queue_add(struct gp_tape_queue *queue, struct gp_tape_item *item)
{
    if (!item)
        return;
    if (!queue->first)
        queue->end = &queue->first;
    *queue->end = item;
    queue->end = &item->next;
    queue->bytes += item->bytes;
    queue->samples += item->kind == GP_TAPE_ITEM_FRAME;
}

struct gp_tape_item *gp_tape_queue_take(struct gp_tape_queue *queue)
{
    struct gp_tape_item *items = queue->first;
    *queue = (struct gp_tape_queue){0};
    return items;
}

void gp_tape_queue_put_back(struct gp_tape_queue *queue, struct gp_tape_item *items,
                            uint64_t samples)
{
    struct gp_tape_item **end = &items;
    if (!items)
        return;
    for (; *end; end = &(*end)->next)
        queue->bytes += (*end)->bytes;
    *end = queue->first;
    if (!queue->first)
        queue->end = end;
    queue->first = items;
    queue->samples += samples;
}

struct gp_tape_hole gp_tape_queue_drop(struct gp_tape_queue *queue, bool processes)
{
    struct gp_tape_hole hole = {0};
    struct gp_tape_item *item = gp_tape_queue_take(queue);
    while (item) {
        struct gp_tape_item *next = item->next;
        const bool is_many = item->kind == GP_TAPE_ITEM_PROCESS || item->kind == GP_TAPE_ITEM_WAIT;
        const bool goes = item->kind == GP_TAPE_ITEM_FRAME || (processes && is_many);
        item->next = NULL;
        if (item->kind == GP_TAPE_ITEM_FRAME) {
            hole.from = hole.samples ? hole.from : item->numbers[0];
            hole.to = item->numbers[0];
            hole.samples++;
        }
        if (goes)
            gp_tape_items_free(item);
        else
            gp_tape_queue_add(queue, item);
        item = next;
    }
    return hole;
}
