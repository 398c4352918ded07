#include "out/event.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/event.h"
#include "out/json.h"
#include "sample/changes.h"
#include "sample/event_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "GPU 3", "GPU 3 GI 1", "GPU 3 GI 1 CI 0", "-" */
static void name_gpu(const struct gp_event *event, char *out, size_t size)
{
    char instance[48] = "";
    if (event->compute_instance != GP_EVENT_NO_INSTANCE)
        (void)snprintf(instance, sizeof(instance), " GI %d CI %d", event->gpu_instance,
                       event->compute_instance);
    else if (event->gpu_instance != GP_EVENT_NO_INSTANCE)
        (void)snprintf(instance, sizeof(instance), " GI %d", event->gpu_instance);
    if (event->has_gpu)
        (void)snprintf(out, size, "GPU %u%s", event->index, instance);
    else
        (void)snprintf(out, size, "-");
}

void gp_event_add_text(struct gp_strbuf *sb, const struct gp_event *event)
{
    char time[GP_RFC3339_SIZE];
    char gpu[80];
    gp_clock_plain(event->wall_ns, time);
    name_gpu(event, gpu, sizeof(gpu));
    gp_strbuf_addf(sb, "%s  %-6s  %-15s  ", time, gpu, gp_event_table[event->kind].name);
    gp_utf8_add_safe(sb, event->text, strlen(event->text), sizeof(event->text));
    gp_strbuf_addc(sb, '\n');
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (*text)
        (void)json_object_set_new(object, key, json_string(text));
}

/* A value before or after a change, as a number where possible. */
static void set_value(json_t *object, const char *key, const struct gp_event *event,
                      const char *text)
{
    if (*text && event->numeric)
        (void)json_object_set_new(object, key, json_integer(strtoll(text, NULL, 10)));
    else
        set_text(object, key, text);
}

static void set_time(json_t *object, const char *key, uint64_t wall_ns)
{
    char time[GP_RFC3339_SIZE];
    if (!wall_ns)
        return;
    gp_clock_rfc3339(wall_ns, time);
    (void)json_object_set_new(object, key, json_string(time));
}

static void set_gpu(json_t *object, const struct gp_event *event)
{
    if (!event->has_gpu)
        return;
    (void)json_object_set_new(object, "gpu", json_integer(event->index));
    set_text(object, "uuid", event->uuid);
    set_text(object, "pci.bus_id", event->pci);
    if (event->gpu_instance != GP_EVENT_NO_INSTANCE)
        (void)json_object_set_new(object, "gpu_instance", json_integer(event->gpu_instance));
    if (event->compute_instance != GP_EVENT_NO_INSTANCE)
        (void)json_object_set_new(object, "compute_instance",
                                  json_integer(event->compute_instance));
}

static void set_number(json_t *object, const struct gp_event *event)
{
    static const struct {
        enum gp_event_kind kind;
        const char *key;
    } keys[] = {
        {GP_EVENT_XID, "xid"},
        {GP_EVENT_MISSED, "missed"},
        {GP_EVENT_PROCESS_START, "pid"},
        {GP_EVENT_PROCESS_END, "pid"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
        if (keys[i].kind == event->kind && !event->from_ns)
            (void)json_object_set_new(object, keys[i].key, json_integer((json_int_t)event->number));
    const struct gp_xid_info *xid = event->kind == GP_EVENT_XID ? gp_xid_find(event->number) : NULL;
    if (xid) {
        set_text(object, "fault", xid->fault);
        set_text(object, "advice", xid->advice);
    }
}

json_t *gp_event_object(const struct gp_event *event, const char *host)
{
    static const char *const origins[] = {"poll", "driver"};
    struct gp_strbuf text = GP_STRBUF_INIT(4 * sizeof(event->text));
    json_t *object = json_object();
    gp_utf8_add_safe(&text, event->text, strlen(event->text), sizeof(event->text));
    (void)json_object_set_new(object, "schema", json_string("gpulse.event/1"));
    set_time(object, "time", event->wall_ns);
    (void)json_object_set_new(object, "monotonic", json_real((double)event->mono_ns / 1e9));
    (void)json_object_set_new(object, "host", json_string(host));
    (void)json_object_set_new(object, "kind", json_string(gp_event_table[event->kind].name));
    set_gpu(object, event);
    if (event->has_gpu)
        (void)json_object_set_new(object, "origin", json_string(origins[event->from_driver]));
    set_number(object, event);
    set_time(object, "from", event->from_ns);
    set_time(object, "to", event->to_ns);
    set_value(object, "old", event, event->was);
    set_value(object, "new", event, event->now);
    (void)json_object_set_new(object, "text", json_string(text.buf));
    gp_strbuf_fini(&text);
    return object;
}

void gp_event_add_json(struct gp_strbuf *sb, const struct gp_event *event, const char *host)
{
    gp_json_add(sb, gp_event_object(event, host), 0);
    gp_strbuf_addc(sb, '\n');
}

/* ---- the list of kinds ---- */

struct sources {
    const struct gp_event_source *items; /* a GPU each */
    size_t count;
    size_t room;
};

static const char *reporter(gp_event_kinds driver, enum gp_event_kind kind)
{
    bool reported = driver & gp_event_bit(kind);
    bool compared = gp_changes_kinds() & gp_event_bit(kind);
    if (gp_event_table[kind].group == GP_EVENT_GROUP_STREAM)
        return "gpulse";
    return reported ? "driver" : compared ? "poll" : "-";
}

static bool all_equal(const struct sources *s)
{
    size_t i = 1;
    while (i < s->count && s->items[i].kinds == s->items[0].kinds)
        i++;
    return i >= s->count;
}

/* The first GPU with the same sources: GPUs share a column if space is limited, or if all are
 * equal. */
static size_t column_of(const struct sources *s, size_t i)
{
    size_t first = s->room > 0 || all_equal(s) ? 0 : i;
    while (s->items[first].kinds != s->items[i].kinds)
        first++;
    return first;
}

static size_t size_of(const struct sources *s, size_t column)
{
    size_t count = 0;
    for (size_t i = column; i < s->count; i++)
        count += column_of(s, i) == column;
    return count;
}

/* "GPU 2", "GPUs 0-1,3-7", or "GPUs" for all of several. */
static void add_title(struct gp_strbuf *sb, const struct sources *s, size_t column)
{
    const size_t all = s->count, count = size_of(s, column);
    gp_strbuf_adds(sb, count > 1 ? "GPUs" : "GPU");
    for (size_t i = column, last, said = 0; i < all && (count < all || all == 1); i = last + 1) {
        last = i;
        if (column_of(s, i) != column)
            continue;
        while (last + 1 < all && column_of(s, last + 1) == column)
            last++;
        gp_strbuf_addf(sb, "%c%u", said++ ? ',' : ' ', s->items[i].index);
        if (last > i)
            gp_strbuf_addf(sb, "-%u", s->items[last].index);
    }
}

/* The line of a kind, or the heading (GP_EVENT__COUNT). */
static void add_kind(struct gp_strbuf *sb, const struct sources *s, int kind)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    bool is_head = kind == GP_EVENT__COUNT;
    const struct gp_event_info *info = is_head ? NULL : &gp_event_table[kind];
    gp_strbuf_addf(&line, "%-16s %-8s", info ? info->name : "KIND",
                   info ? gp_event_group_names[info->group] : "GROUP");
    for (size_t i = 0; i < s->count; i++) {
        struct gp_strbuf title = GP_STRBUF_INIT(1 << 16);
        if (column_of(s, i) != i)
            continue;
        add_title(&title, s, i);
        gp_strbuf_addf(&line, " %-*s", title.len > 7 ? (int)title.len : 7,
                       is_head ? title.buf : reporter(s->items[i].kinds, (enum gp_event_kind)kind));
        gp_strbuf_fini(&title);
    }
    gp_strbuf_addf(&line, " %s", info ? info->help : "WHAT");
    gp_utf8_add_line(sb, line.buf, line.len, s->room);
    gp_strbuf_fini(&line);
}

void gp_event_add_kinds(struct gp_strbuf *sb, const struct gp_event_source *sources, size_t count,
                        size_t room)
{
    static const char note[] =
        "driver: reported at once; poll: found by comparing readings; gpulse: about the recording "
        "itself; -: not reported for this GPU";
    const struct sources s = {sources, count, room};
    add_kind(sb, &s, GP_EVENT__COUNT);
    for (int kind = 0; kind < GP_EVENT__COUNT; kind++)
        add_kind(sb, &s, kind);
    gp_utf8_add_wrapped(sb, note, strlen(note), 0, room);
}
