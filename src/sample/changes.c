#include "sample/changes.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "sample/changes_internal.h"
#include "sample/waiter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void gp_changes_init(struct gp_changes *c, gp_event_kinds kinds)
{
    *c = (struct gp_changes){.kinds = kinds | gp_event_group_kinds(GP_EVENT_GROUP_STREAM)};
}

void gp_changes_fini(struct gp_changes *c)
{
    for (size_t i = 0; i < c->seen_count; i++) {
        free(c->seen[i].migs);
        free(c->seen[i].processes);
    }
    free(c->seen);
    free(c->out.items);
    free(c->pending.items);
    free(c->held.items);
    free(c->found.items);
    *c = (struct gp_changes){0};
}

/* ---- events about the stream ---- */

static struct gp_event of_stream(enum gp_event_kind kind)
{
    return (struct gp_event){
        .kind = kind,
        .wall_ns = gp_clock_wall_ns(),
        .mono_ns = gp_clock_mono_ns(),
        .gpu_instance = GP_EVENT_NO_INSTANCE,
        .compute_instance = GP_EVENT_NO_INSTANCE,
    };
}

void gp_changes_note(struct gp_changes *c, enum gp_event_kind kind, uint64_t number,
                     const char *text)
{
    struct gp_event event = of_stream(kind);
    event.number = number;
    gp_changes_say(&event, "%s", text);
    (void)gp_changes_append(c, &c->out, &event);
}

void gp_changes_gap(struct gp_changes *c, const struct gp_waiter_gap *gap)
{
    char from[GP_RFC3339_SIZE];
    char to[GP_RFC3339_SIZE];
    char whose[32];
    struct gp_event event = of_stream(GP_EVENT_MISSED);
    if (!(c->kinds & gap->kinds))
        return;
    event.from_ns = gp_clock_wall_at(gap->from_ns);
    event.to_ns = gp_clock_wall_at(gap->to_ns);
    gp_clock_plain(event.from_ns, from);
    gp_clock_plain(event.to_ns, to);
    if (gap->devices == 1)
        (void)snprintf(whose, sizeof(whose), "GPU %u", gap->name);
    else
        (void)snprintf(whose, sizeof(whose), "%u GPUs", gap->devices);
    gp_changes_say(&event, "driver events of %s from %s to %s may be missing: %s", whose, from, to,
                   gap->why);
    (void)gp_changes_append(c, &c->out, &event);
}

/* ---- driver reports ---- */

static void say_xid(struct gp_event *event)
{
    const struct gp_xid_info *xid = gp_xid_find(event->number);
    if (!xid)
        gp_changes_say(event, "Xid %" PRIu64 "%s", event->number,
                       event->number ? ": not in the catalog; see the kernel log"
                                     : ": unknown number");
    else
        gp_changes_say(event, "Xid %" PRIu64 ": %s (%s)%s%s", event->number, xid->words, xid->fault,
                       *xid->advice ? "; " : "", xid->advice);
}

static struct gp_seen *find_seen(const struct gp_changes *c, unsigned index)
{
    for (size_t i = 0; i < c->seen_count; i++)
        if (c->seen[i].event.index == index)
            return &c->seen[i];
    return NULL;
}

/* The text of a report without an explaining difference. */
static const char *bare_words(enum gp_event_kind kind)
{
    switch (kind) {
    case GP_EVENT_ECC_CORRECTED:
        return "a memory error was corrected";
    case GP_EVENT_ECC_UNCORRECTED:
        return "an uncorrectable memory error occurred";
    default:
        return gp_event_table[kind].help;
    }
}

bool gp_changes_report(struct gp_changes *c, const struct gp_source_event *report)
{
    const struct gp_seen *seen = find_seen(c, report->device);
    if (!seen || !gp_changes_wants(c, report->kind))
        return false;
    struct gp_event event = gp_changes_event(seen, report->kind);
    event.from_driver = true;
    event.wall_ns = report->wall_ns;
    event.mono_ns = report->mono_ns;
    event.number = report->number;
    event.gpu_instance = report->gpu_instance;
    event.compute_instance = report->compute_instance;
    if (event.kind == GP_EVENT_XID)
        say_xid(&event);
    else
        gp_changes_say(&event, "%s", *report->words ? report->words : bare_words(event.kind));
    bool compared = gp_changes_is_compared(event.kind);
    (void)gp_changes_append(c, compared ? &c->pending : &c->out, &event);
    return compared;
}

/* ---- a snapshot ---- */

static struct gp_seen *add_seen(struct gp_changes *c, unsigned index)
{
    struct gp_seen *grown = realloc(c->seen, (c->seen_count + 1) * sizeof(*grown));
    if (!grown) {
        c->no_memory = true;
        return NULL;
    }
    c->seen = grown;
    struct gp_seen *seen = &c->seen[c->seen_count++];
    *seen = (struct gp_seen){.event = {.has_gpu = true, .index = index}, .status = GP_STATUS_OK};
    return seen;
}

/* Removes the differences that the report explains from the list. */
static bool explain(struct gp_changes *c, struct gp_event_list *list, const struct gp_event *report)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct gp_event *difference = &list->items[i];
        if (!gp_changes_is_same(report, difference)) {
            list->items[kept++] = *difference;
            continue;
        }
        difference->from_driver = true;
        difference->wall_ns = report->wall_ns;
        difference->mono_ns = report->mono_ns;
        (void)gp_changes_append(c, &c->out, difference);
    }
    bool explained = kept < list->count;
    list->count = kept;
    return explained;
}

/* Passes a report on, merged with the differences that explain it, or on its own. One that comes
 * right after its difference was passed on says nothing new. */
static void settle_report(struct gp_changes *c, const struct gp_event *report)
{
    bool held = explain(c, &c->held, report);
    bool found_now = explain(c, &c->found, report);
    struct gp_seen *seen = find_seen(c, report->index);
    if (held || found_now)
        return;
    if (seen && seen->passed[report->kind] && seen->passed[report->kind] + 1 >= c->round) {
        seen->passed[report->kind] = 0;
        return;
    }
    if (seen)
        seen->told[report->kind] = c->round;
    (void)gp_changes_append(c, &c->out, report);
}

void gp_changes_compare(struct gp_changes *c, const struct gp_snapshot *snapshot,
                        gp_event_kinds (*delivered)(void *ctx, unsigned index), void *ctx)
{
    struct gp_changes_round r = {.c = c, .snapshot = snapshot};
    c->round++;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        unsigned index = snapshot->devices[i].index;
        if (i > 0 && snapshot->devices[i - 1].index == index)
            continue;
        r.seen = find_seen(c, index);
        if (!r.seen)
            r.seen = add_seen(c, index);
        if (!r.seen)
            continue;
        r.delivered = delivered(ctx, index);
        gp_changes_compare_gpu(&r, i);
    }
    for (size_t i = 0; i < c->pending.count; i++)
        settle_report(c, &c->pending.items[i]);
    c->pending.count = 0;
    /* Differences that waited in vain are passed on without a report; new ones wait now. */
    for (size_t i = 0; i < c->held.count; i++) {
        struct gp_seen *seen = find_seen(c, c->held.items[i].index);
        if (seen)
            seen->passed[c->held.items[i].kind] = c->round;
        (void)gp_changes_append(c, &c->out, &c->held.items[i]);
    }
    struct gp_event_list empty = c->held;
    empty.count = 0;
    c->held = c->found;
    c->found = empty;
}

unsigned gp_changes_gpu(const struct gp_changes *c, size_t i)
{
    return c->seen[i].event.index;
}

bool gp_changes_is_holding(const struct gp_changes *c)
{
    return c->held.count > 0;
}
