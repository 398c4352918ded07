/* Compares a GPU with what it was in the previous snapshot. */
#include "sample/changes_internal.h"

#include "model/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How values of a metric are compared and formatted. */
enum form {
    TEXT,    /* "persistence mode Enabled → Disabled" */
    NUMBER,  /* "PCIe width 16 → 8" */
    COUNTER, /* "3 corrected memory errors"; a decrease is a reset, and not an event */
    REASONS, /* bits of the clocks event reasons */
};

static const struct row {
    enum gp_event_kind kind;
    enum gp_metric metric;
    enum form form;
    const char *words;
} rows[] = {
    {GP_EVENT_RECOVERY, GP_RECOVERY_ACTION, TEXT, "recovery action"},
    {GP_EVENT_ECC_CORRECTED, GP_ECC_CORRECTED_VOLATILE, COUNTER, "corrected memory error"},
    {GP_EVENT_ECC_UNCORRECTED, GP_ECC_UNCORRECTED_VOLATILE, COUNTER, "uncorrectable memory error"},
    {GP_EVENT_RETIREMENT, GP_RETIRED_PENDING, TEXT, "memory pages pending retirement:"},
    {GP_EVENT_RETIREMENT, GP_REMAPPED_PENDING, TEXT, "memory rows pending remapping:"},
    {GP_EVENT_RETIREMENT, GP_REMAPPED_FAILURE, TEXT, "memory rows that failed to be remapped:"},
    {GP_EVENT_PSTATE, GP_PSTATE, TEXT, "performance state"},
    {GP_EVENT_THROTTLE, GP_REASONS_ACTIVE, REASONS, "clocks limited by"},
    {GP_EVENT_PCIE, GP_PCIE_GEN, NUMBER, "PCIe generation"},
    {GP_EVENT_PCIE, GP_PCIE_WIDTH, NUMBER, "PCIe width"},
    {GP_EVENT_MIG, GP_MIG_MODE, TEXT, "MIG mode"},
    {GP_EVENT_PERSISTENCE, GP_PERSISTENCE_MODE, TEXT, "persistence mode"},
    {GP_EVENT_ECC_MODE, GP_ECC_MODE, TEXT, "ECC mode"},
};

enum { ROWS = GP_ARRAY_LEN(rows), MIGS_MAX = 64 };

_Static_assert(GP_ARRAY_LEN(rows) <= GP_SEEN_VALUES, "room for the last value of each row");

gp_event_kinds gp_changes_kinds(void)
{
    gp_event_kinds kinds = gp_event_group_kinds(GP_EVENT_GROUP_PROCESS) |
                           gp_event_bit(GP_EVENT_LOST) | gp_event_bit(GP_EVENT_SILENT) |
                           gp_event_bit(GP_EVENT_BACK) | gp_event_bit(GP_EVENT_ASLEEP) |
                           gp_event_bit(GP_EVENT_AWAKE) | gp_event_bit(GP_EVENT_RELEASED);
    for (size_t i = 0; i < ROWS; i++)
        kinds |= gp_event_bit(rows[i].kind);
    return kinds;
}

void gp_changes_want(gp_event_kinds kinds, struct gp_want *want)
{
    static const enum gp_metric always[] = {GP_UUID, GP_PCI_BUS_ID};
    static const enum gp_metric process[] = {GP_PID, GP_PROCESS_NAME, GP_PROCESS_USER};
    for (size_t i = 0; i < GP_ARRAY_LEN(always); i++)
        gp_metric_set_add(&want->metrics, always[i]);
    bool asks = false;
    for (size_t i = 0; i < ROWS; i++)
        if (kinds & gp_event_bit(rows[i].kind)) {
            gp_metric_set_add(&want->metrics, rows[i].metric);
            asks = true;
        }
    if (!asks) /* the state of a GPU only shows when it is queried */
        gp_metric_set_add(&want->metrics, GP_STATUS);
    if (kinds & gp_event_bit(GP_EVENT_MIG)) {
        want->mig = true;
        gp_metric_set_add(&want->metrics, GP_MIG_PROFILE);
    }
    want->processes = kinds & gp_event_group_kinds(GP_EVENT_GROUP_PROCESS);
    for (size_t i = 0; want->processes && i < GP_ARRAY_LEN(process); i++)
        gp_metric_set_add(&want->metrics, process[i]);
    want->fresh = true;
}

bool gp_changes_is_compared(enum gp_event_kind kind)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind == kind)
            return true;
    return false;
}

/* ---- values ---- */

static void add_reasons(char *out, size_t size, uint64_t mask)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {0x2, "a clock setting"},  {0x4, "the power limit"},       {0x8, "hardware slowdown"},
        {0x10, "sync boost"},      {0x20, "temperature (driver)"}, {0x40, "temperature (hardware)"},
        {0x80, "the power brake"}, {0x100, "display clocks"},
    };
    out[0] = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        size_t len = strlen(out);
        if (mask & names[i].bit)
            (void)snprintf(out + len, size - len, "%s%s", len ? ", " : "", names[i].name);
    }
}

static void say_change(struct gp_event *event, const struct row *row,
                       const struct gp_last_value *was, const struct gp_last_value *now)
{
    static const uint64_t idle = 1; /* an idle GPU is not limited */
    event->numeric = row->form == NUMBER || row->form == COUNTER;
    if (row->form == REASONS) {
        char words[160];
        add_reasons(words, sizeof(words), (uint64_t)now->number & ~idle);
        gp_changes_say(event, "%s", *words ? "" : "clocks no longer limited");
        if (*words)
            gp_changes_say(event, "%s %s", row->words, words);
        (void)snprintf(event->was, sizeof(event->was), "0x%016" PRIx64, (uint64_t)was->number);
        (void)snprintf(event->now, sizeof(event->now), "0x%016" PRIx64, (uint64_t)now->number);
        return;
    }
    (void)snprintf(event->was, sizeof(event->was), "%s", was->text);
    (void)snprintf(event->now, sizeof(event->now), "%s", now->text);
    int64_t more = now->number - was->number;
    if (row->form == COUNTER)
        gp_changes_say(event, "%" PRId64 " %s%s (%s since the driver was loaded)", more, row->words,
                       more == 1 ? "" : "s", now->text);
    else
        gp_changes_say(event, "%s %s → %s", row->words, was->text, now->text);
}

static bool differs(const struct row *row, const struct gp_last_value *was,
                    const struct gp_last_value *now)
{
    switch (row->form) {
    case TEXT:
        return strcmp(was->text, now->text) != 0;
    case NUMBER:
        return was->number != now->number;
    case COUNTER:
        return was->number < now->number;
    case REASONS:
        return was->number >> 1 != now->number >> 1;
    }
    return false;
}

static void compare_row(const struct gp_changes_round *r, size_t i, const struct gp_device *device)
{
    const struct gp_value *v = &device->values[rows[i].metric - GP_DEVICE__FIRST];
    struct gp_last_value *last = &r->seen->last[i];
    if (v->status != GP_STATUS_OK)
        return; /* the next value is compared with the last known one */
    struct gp_last_value now = {.known = true};
    if (rows[i].form == TEXT) {
        (void)snprintf(now.text, sizeof(now.text), "%s", v->s);
    } else {
        now.number = v->i;
        (void)snprintf(now.text, sizeof(now.text), "%" PRId64, v->i);
    }
    if (last->known && differs(&rows[i], last, &now)) {
        struct gp_event event = gp_changes_noticed(r, rows[i].kind);
        say_change(&event, &rows[i], last, &now);
        gp_changes_found(r, &event);
    }
    *last = now;
}

/* ---- lost, silent, asleep ---- */

static enum gp_event_kind status_kind(enum gp_status was, enum gp_status now)
{
    if (now == GP_STATUS_OK)
        return was == GP_STATUS_ASLEEP ? GP_EVENT_AWAKE : GP_EVENT_BACK;
    if (now == GP_STATUS_ASLEEP)
        return GP_EVENT_ASLEEP;
    if (now == GP_STATUS_RELEASED)
        return GP_EVENT_RELEASED;
    return now == GP_STATUS_TIMEOUT ? GP_EVENT_SILENT : GP_EVENT_LOST;
}

static void compare_status(const struct gp_changes_round *r, const struct gp_device *device)
{
    enum gp_status was = r->seen->status;
    r->seen->status = device->status;
    if (was == device->status)
        return;
    enum gp_event_kind kind = status_kind(was, device->status);
    struct gp_event event = gp_changes_noticed(r, kind);
    if (kind == GP_EVENT_BACK || kind == GP_EVENT_AWAKE)
        gp_changes_say(&event, "%s", kind == GP_EVENT_BACK ? "responds again" : "awake again");
    else
        gp_changes_say(&event, "%s", device->status_text);
    gp_changes_found(r, &event);
}

/* ---- MIG instances ---- */

static int number_or_none(const struct gp_device *device, enum gp_metric m)
{
    const struct gp_value *v = &device->values[m - GP_DEVICE__FIRST];
    return gp_value_is_present(v) ? (int)v->i : GP_EVENT_NO_INSTANCE;
}

static const char *text_or_empty(const struct gp_value *v)
{
    return gp_value_is_present(v) ? v->s : "";
}

static const char *device_text(const struct gp_device *device, enum gp_metric m)
{
    return text_or_empty(&device->values[m - GP_DEVICE__FIRST]);
}

static bool has_mig(const struct gp_seen_mig *migs, size_t count, const char *uuid)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(migs[i].uuid, uuid) == 0)
            return true;
    return false;
}

static void found_mig(const struct gp_changes_round *r, const struct gp_seen_mig *mig,
                      const char *what)
{
    struct gp_event event = gp_changes_noticed(r, GP_EVENT_MIG);
    event.gpu_instance = mig->gpu_instance;
    event.compute_instance = mig->compute_instance;
    gp_changes_say(&event, "MIG instance %s%s%s, %s", mig->profile, *mig->profile ? " " : "", what,
                   mig->uuid);
    gp_changes_found(r, &event);
}

/* first: the first row of the GPU; its instances follow. */
static void compare_migs(const struct gp_changes_round *r, size_t first)
{
    struct gp_seen *seen = r->seen;
    const struct gp_device *devices = r->snapshot->devices;
    struct gp_seen_mig *now = calloc(MIGS_MAX, sizeof(*now));
    size_t count = 0;
    if (!now) {
        r->c->no_memory = true;
        return;
    }
    for (size_t i = first; i < r->snapshot->device_count && count < MIGS_MAX; i++) {
        if (devices[i].index != devices[first].index)
            break;
        if (!devices[i].is_mig)
            continue;
        struct gp_seen_mig *mig = &now[count++];
        (void)snprintf(mig->uuid, sizeof(mig->uuid), "%s", device_text(&devices[i], GP_UUID));
        (void)snprintf(mig->profile, sizeof(mig->profile), "%s",
                       device_text(&devices[i], GP_MIG_PROFILE));
        mig->gpu_instance = number_or_none(&devices[i], GP_MIG_GPU_INSTANCE);
        mig->compute_instance = number_or_none(&devices[i], GP_MIG_COMPUTE_INSTANCE);
    }
    for (size_t i = 0; seen->migs_known && i < seen->mig_count; i++)
        if (!has_mig(now, count, seen->migs[i].uuid))
            found_mig(r, &seen->migs[i], "removed");
    for (size_t i = 0; seen->migs_known && i < count; i++)
        if (!has_mig(seen->migs, seen->mig_count, now[i].uuid))
            found_mig(r, &now[i], "created");
    free(seen->migs);
    seen->migs = now;
    seen->mig_count = count;
    seen->migs_known = true;
}

/* ---- processes ---- */

static int by_pid(const void *a, const void *b)
{
    const struct gp_seen_process *pa = a;
    const struct gp_seen_process *pb = b;
    return (pa->pid > pb->pid) - (pa->pid < pb->pid);
}

static void found_process(const struct gp_changes_round *r, const struct gp_seen_process *p,
                          enum gp_event_kind kind)
{
    struct gp_event event = gp_changes_noticed(r, kind);
    event.number = p->pid;
    gp_changes_say(&event, "process %" PRIu32 " %s%s%s%s%s", p->pid,
                   kind == GP_EVENT_PROCESS_START ? "started" : "ended", *p->name ? ": " : "",
                   p->name, *p->user ? " of " : "", p->user);
    gp_changes_found(r, &event);
}

/* The processes of a GPU and of its instances, without duplicates, sorted. */
static struct gp_seen_process *list_processes(const struct gp_snapshot *snapshot, unsigned index,
                                              size_t *ret_count)
{
    struct gp_seen_process *list = calloc(snapshot->process_count + 1, sizeof(*list));
    size_t count = 0;
    for (size_t i = 0; list && i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        if (snapshot->devices[p->device].index != index)
            continue;
        struct gp_seen_process *to = &list[count++];
        to->pid = (uint32_t)gp_process_value(p, GP_PID)->i;
        (void)snprintf(to->name, sizeof(to->name), "%s",
                       text_or_empty(gp_process_value(p, GP_PROCESS_NAME)));
        (void)snprintf(to->user, sizeof(to->user), "%s",
                       text_or_empty(gp_process_value(p, GP_PROCESS_USER)));
    }
    if (list)
        qsort(list, count, sizeof(*list), by_pid);
    size_t kept = 0;
    for (size_t i = 0; list && i < count; i++)
        if (kept == 0 || list[kept - 1].pid != list[i].pid)
            list[kept++] = list[i];
    *ret_count = kept;
    return list;
}

/* A driver lists a process slightly longer than the system knows its name and user. */
static void remember_who(struct gp_seen_process *now, const struct gp_seen_process *was)
{
    if (!*now->name)
        memcpy(now->name, was->name, sizeof(now->name));
    if (!*now->user)
        memcpy(now->user, was->user, sizeof(now->user));
}

/* Both lists are sorted, so one pass finds what is only in one of them. */
static void compare_processes(const struct gp_changes_round *r)
{
    struct gp_seen *seen = r->seen;
    size_t count = 0;
    struct gp_seen_process *now = list_processes(r->snapshot, seen->event.index, &count);
    if (!now) {
        r->c->no_memory = true;
        return;
    }
    const struct gp_seen_process *was = seen->processes;
    size_t a = 0;
    size_t b = 0;
    while (seen->processes_known && (a < seen->process_count || b < count)) {
        if (b == count || (a < seen->process_count && was[a].pid < now[b].pid)) {
            found_process(r, &was[a++], GP_EVENT_PROCESS_END);
        } else if (a == seen->process_count || now[b].pid < was[a].pid) {
            found_process(r, &now[b++], GP_EVENT_PROCESS_START);
        } else {
            remember_who(&now[b++], &was[a++]);
        }
    }
    free(seen->processes);
    seen->processes = now;
    seen->process_count = count;
    seen->processes_known = true;
}

/* ---- a GPU ---- */

static void remember_identity(struct gp_seen *seen, const struct gp_device *device)
{
    const char *uuid = device->is_mig ? "" : device_text(device, GP_UUID);
    const char *pci = device_text(device, GP_PCI_BUS_ID);
    if (*uuid)
        (void)snprintf(seen->event.uuid, sizeof(seen->event.uuid), "%s", uuid);
    if (*pci)
        (void)snprintf(seen->event.pci, sizeof(seen->event.pci), "%s", pci);
}

void gp_changes_compare_gpu(struct gp_changes_round *r, size_t first)
{
    const struct gp_device *device = &r->snapshot->devices[first];
    remember_identity(r->seen, device);
    compare_status(r, device);
    if (device->status != GP_STATUS_OK)
        return;
    for (size_t i = 0; !device->is_mig && i < ROWS; i++)
        compare_row(r, i, device);
    if (gp_changes_wants(r->c, GP_EVENT_MIG))
        compare_migs(r, first);
    if (r->c->kinds & gp_event_group_kinds(GP_EVENT_GROUP_PROCESS) &&
        device->processes_status == GP_STATUS_OK)
        compare_processes(r);
}
