#include "tui/alerts.h"

#include "base/utf8.h"
#include "model/event.h"
#include "model/snapshot.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_text.h"
#include "tui/growth.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FULL_SOON_S = 600,
    FULL_VERY_SOON_S = 60,
    FULL_PERCENT = 95,
    IDLE_S = 600, /* no work for this long while memory is held */
    XID_S = 3600,
};

#define GIB (1024.0 * 1024 * 1024)

/* The first sentence says what it means, the next ones what helps. */
#define HEAT_HELPS " Look at its fans, the air in front of it, and its power limit."

enum { ADDS_GPU = 1 }; /* " -i 3", to the command */

/* What to do next. */
static const struct {
    const char *next, *about;
    int flags;
} rules[GP_FAULT__COUNT] = {
    [GP_FAULT_SILENT] =
        {"gpulse doctor",
         "The driver gives no values of this GPU. Programs that use it may hang or fail. The "
         "kernel log says more: gpulse doctor reads it. If it does not answer again, end what "
         "runs on it, then reset it or reboot.",
         0},
    [GP_FAULT_LOST] =
        {"gpulse doctor",
         "The driver cannot reach this GPU any more. Programs on it have failed or will. It "
         "comes back by a reset or a reboot; gpulse doctor says what the kernel log knows.",
         0},
    [GP_FAULT_RECOVERY] =
        {"gpulse doctor",
         "The driver asks for this after an error. Until then the GPU may give wrong "
         "results or none. End what runs on it, then do what it asks for.",
         0},
    [GP_FAULT_ERRORS] =
        {"gpulse doctor",
         "Memory has lost data, and a program has been stopped or has computed with wrong "
         "values. Reset the GPU; if it happens again, have it replaced.",
         0},
    [GP_FAULT_BROKEN] = {"have it replaced",
                         "Memory rows are broken and there are no spare ones left for them.", 0},
    [GP_FAULT_REPAIR] =
        {"reset it when idle",
         "Broken memory will be replaced by spare memory at the next reset of the GPU.", 0},
    [GP_FAULT_HOT] =
        {"check its cooling",
         "At this temperature it slows down, and somewhat above it turns off." HEAT_HELPS, 0},
    [GP_FAULT_HEAT] = {"check its cooling", "Its clocks are low because it is too hot." HEAT_HELPS,
                       0},
    [GP_FAULT_SUPPLY] =
        {"check its power cables",
         "Its clocks are low because the power supply demands it: it is overloaded, "
         "or a cable is loose.",
         0},
    [GP_FAULT_SLOWED] =
        {"gpulse doctor",
         "Its clocks are at half or less: it may be too hot, or its power supply overloaded.", 0},
    [GP_FAULT_LANES] =
        {"reseat it",
         "Copies between host and GPU are slower than on others like it. The card or its riser "
         "may be loose, or the slot shared with another device.",
         0},
    [GP_FAULT_FULL_SOON] =
        {"",
         "Used memory has been growing steadily. When it is full, the next program that "
         "asks for memory fails, which need not be the one that grows.",
         0},
    [GP_FAULT_FULL] = {"gpulse mem", "The next program that asks for memory may fail.", ADDS_GPU},
    [GP_FAULT_ORPHANS] =
        {"gpulse reclaim",
         "No process that can be seen holds this memory: it may be one in another container "
         "or one that has ended without giving it back. gpulse reclaim finds and frees it.",
         0},
    [GP_FAULT_IDLE] =
        {"",
         "Nothing has run on this GPU, and others cannot use what is held. Ask its owner, or "
         "end the process with k.",
         0},
    [GP_FAULT_XID] = {"gpulse explain xid", "", 0},
};

struct finder {
    struct gp_alert *ret;
    size_t max, count;
};

static bool is_worse(const struct gp_alert *a, const struct gp_alert *b)
{
    return a->ink != b->ink ? a->ink == GP_INK_CRITICAL : a->rule < b->rule;
}

/* Adds an alert, before less severe ones. */
static void add(struct finder *f, const struct gp_alert *alert)
{
    const size_t kept = f->count < f->max ? f->count : f->max;
    size_t at = 0;
    f->count++;
    while (at < kept && !is_worse(alert, &f->ret[at]))
        at++;
    if (at >= f->max)
        return;
    const size_t behind = (kept < f->max ? kept : f->max - 1) - at;
    memmove(&f->ret[at + 1], &f->ret[at], behind * sizeof(*alert));
    f->ret[at] = *alert;
}

static struct gp_alert alert_of(enum gp_fault rule, unsigned gpu)
{
    struct gp_alert alert = {gp_fault_ink(rule), rule, gpu, 0, 0, rules[rule].about, "", "", ""};
    (void)snprintf(alert.brief, sizeof(alert.brief), "%s", gp_fault_words[rule]);
    (void)snprintf(alert.next, sizeof(alert.next), rules[rule].flags & ADDS_GPU ? "%s -i %u" : "%s",
                   rules[rule].next, gpu);
    return alert;
}

/* "GPU 3 memory nearly full", and what follows that. */
static void GP_PRINTF(2, 3) word(struct gp_alert *alert, const char *fmt, ...)
{
    va_list args;
    int n = snprintf(alert->text, sizeof(alert->text), "GPU %u %s", alert->gpu, alert->brief);
    va_start(args, fmt);
    (void)vsnprintf(alert->text + n, sizeof(alert->text) - (size_t)n, fmt, args);
    va_end(args);
}

/* What an alert says of a GPU, after the words of its fault. */
#define TELL(f, rule, device, ...)                                                                 \
    do {                                                                                           \
        struct gp_alert told = alert_of(rule, (device)->index);                                    \
        word(&told, __VA_ARGS__);                                                                  \
        add(f, &told);                                                                             \
    } while (0)

/* ---- health ---- */

/* What a sample tells. */
static void look_at_sample(struct finder *f, const struct gp_device *device)
{
    for (enum gp_fault fault = 0; fault < GP_FAULT__COUNT; fault++) {
        GP_GPU_TEXT(words);
        struct gp_alert alert;
        if (!gp_fault_add(&words, fault, device))
            continue;
        alert = alert_of(fault, device->index);
        (void)snprintf(alert.text, sizeof(alert.text), "GPU %u %.100s", alert.gpu, words.buf);
        add(f, &alert);
    }
}

static void look_at_heat(struct finder *f, const struct gp_device *device)
{
    double now;
    double limit;
    const struct {
        enum gp_metric now, limit;
        const char *what;
    } sensors[] = {{GP_TEMPERATURE_GPU, GP_THRESHOLD_SLOWDOWN, ""},
                   {GP_TEMPERATURE_MEMORY, GP_THRESHOLD_MEMORY_MAX, "memory "}};
    for (size_t i = 0; i < GP_ARRAY_LEN(sensors); i++)
        if (gp_device_number_now(device, sensors[i].now, &now) &&
            gp_device_number_now(device, sensors[i].limit, &limit) && now >= limit)
            TELL(f, GP_FAULT_HOT, device, " (%s%.0f°C, slows down at %.0f°C)", sensors[i].what, now,
                 limit);
}

/* The most lanes that this GPU, or another one of its model, has or had: many slots, and all
 * laptops, are wired with fewer than a GPU could use, which is no trouble. */
static double most_lanes(const struct gp_snapshot *snapshot, const struct gp_history *history,
                         const struct gp_device *device)
{
    const char *name = gp_device_text(device, GP_NAME, "");
    double most = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *other = &snapshot->devices[i];
        const struct gp_track *track = gp_history_find(history, other);
        double lanes;
        if (other->is_mig || strcmp(gp_device_text(other, GP_NAME, "?"), name) != 0)
            continue;
        if (gp_device_number_now(other, GP_PCIE_WIDTH, &lanes) && lanes > most)
            most = lanes;
        if (track && track->lanes_most > most)
            most = track->lanes_most;
    }
    return most;
}

static void look_at_link(struct finder *f, const struct gp_snapshot *snapshot,
                         const struct gp_history *history, const struct gp_device *device)
{
    double width;
    double possible;
    if (!gp_device_number_now(device, GP_PCIE_WIDTH, &width) ||
        !gp_device_number_now(device, GP_PCIE_WIDTH_MAX, &possible) || width >= possible)
        return;
    const double most = most_lanes(snapshot, history, device);
    if (width < most)
        TELL(f, GP_FAULT_LANES, device, " (%.0f of %.0f lanes)", width, most);
}

/* ---- memory ---- */

/* Whether the GPU did anything in a time of this length. */
static bool was_at_work(const struct gp_track *track, uint64_t now_ns)
{
    struct gp_track_facts load;
    return gp_track_look(track, GP_SERIES_GPU, now_ns, GP_GROWTH_STEPS * 5 * GP_NS_PER_S, &load) &&
           load.highest > 0;
}

/* " · 10874 carol": a process is only named if nobody else can be meant. Returns its pid, or 0. */
static int64_t add_who(const struct gp_snapshot *snapshot, const struct gp_device *device,
                       char *ret, size_t size)
{
    const struct gp_process *p = &snapshot->processes[device->first_process];
    const struct gp_value *user =
        device->process_count == 1 ? gp_process_value(p, GP_PROCESS_USER) : NULL;
    ret[0] = '\0';
    if (!user)
        return 0;
    const int64_t pid = gp_process_value(p, GP_PID)->i;
    (void)snprintf(ret, size, " · %lld %s", (long long)pid,
                   gp_value_is_present(user) ? user->s : "");
    return pid;
}

static bool foretell(struct finder *f, const struct gp_snapshot *snapshot,
                     const struct gp_device *device, const struct gp_track *track, double total)
{
    const uint64_t now_ns = snapshot->mono_ns;
    struct gp_growth growth;
    float values[GP_GROWTH_S];
    char who[80];
    if (!track || now_ns > track->memory_rose_ns + GP_GROWTH_LATEST_S * GP_NS_PER_S)
        return false;
    gp_track_read(track, GP_SERIES_MEMORY, now_ns, GP_NS_PER_S, values, GP_GROWTH_LATEST_S);
    if (!gp_growth_is_possible(values))
        return false;
    gp_track_read(track, GP_SERIES_MEMORY, now_ns, GP_NS_PER_S, values, GP_ARRAY_LEN(values));
    if (!gp_growth_find(values, GP_ARRAY_LEN(values), total / GIB, was_at_work(track, now_ns),
                        &growth) ||
        growth.full_s > FULL_SOON_S)
        return false;
    struct gp_alert alert = alert_of(GP_FAULT_FULL_SOON, device->index);
    alert.pid = add_who(snapshot, device, who, sizeof(who));
    alert.ink = growth.full_s < FULL_VERY_SOON_S ? GP_INK_CRITICAL : GP_INK_HIGH;
    (void)snprintf(alert.brief, sizeof(alert.brief),
                   growth.full_s < 120 ? "memory full in ~%.0f s" : "memory full in ~%.0f min",
                   growth.full_s < 120 ? growth.full_s : growth.full_s / 60);
    word(&alert, "%s +%.0f MiB/s", *who ? who : " ·", growth.per_s * 1024);
    (void)snprintf(alert.next, sizeof(alert.next), "for %u min", growth.for_s / 60);
    add(f, &alert);
    return true;
}

static void tell_of_idle(struct finder *f, const struct gp_snapshot *snapshot,
                         const struct gp_device *device, double used)
{
    char who[80];
    struct gp_alert alert = alert_of(GP_FAULT_IDLE, device->index);
    alert.pid = add_who(snapshot, device, who, sizeof(who));
    word(&alert, " (%.1fG, ten minutes)%s", used / GIB, who);
    add(f, &alert);
}

static void look_at_memory(struct finder *f, const struct gp_snapshot *snapshot,
                           const struct gp_device *device, const struct gp_track *track)
{
    double used;
    double total;
    if (!gp_device_number_now(device, GP_MEMORY_USED, &used) ||
        !gp_device_number_now(device, GP_MEMORY_TOTAL, &total) || total <= 0)
        return;
    if (!foretell(f, snapshot, device, track, total) && 100 * used >= FULL_PERCENT * total)
        TELL(f, GP_FAULT_FULL, device, " (%.0f%%)", 100 * used / total);
    double load;
    if (used >= GIB && gp_device_number_now(device, GP_UTILIZATION_GPU, &load) && load <= 0 &&
        gp_track_is_idle(track, snapshot->mono_ns, IDLE_S * GP_NS_PER_S))
        tell_of_idle(f, snapshot, device, used);
}

/* ---- errors of the driver ---- */

void gp_xids_add(struct gp_xids *xids, struct gp_xid xid)
{
    xids->list[xids->count++ % GP_XIDS_MAX] = xid;
}

static uint64_t age_s_of(const struct gp_xid *xid, uint64_t wall_ns)
{
    return wall_ns > xid->wall_ns ? (wall_ns - xid->wall_ns) / GP_NS_PER_S : 0;
}

/* The i-th newest of those that are kept. */
static const struct gp_xid *newest(const struct gp_xids *xids, size_t i)
{
    return &xids->list[(xids->count - 1 - i) % GP_XIDS_MAX];
}

/* The i-th of the last hour, the newest first; NULL: it is older, or was overwritten. */
static const struct gp_xid *xid_at(const struct gp_xids *xids, size_t i, uint64_t wall_ns)
{
    const size_t kept = xids->count < GP_XIDS_MAX ? xids->count : GP_XIDS_MAX;
    const struct gp_xid *xid = i < kept ? newest(xids, i) : NULL;
    return xid && age_s_of(xid, wall_ns) < XID_S ? xid : NULL;
}

enum gp_ink gp_xid_ink(const struct gp_xid *xid)
{
    const struct gp_xid_info *info = gp_xid_find(xid->number);
    return info && strcmp(info->fault, "application") == 0 ? GP_INK_HIGH : GP_INK_CRITICAL;
}

const struct gp_xid *gp_xid_worst(const struct gp_xids *xids, unsigned gpu, uint64_t wall_ns)
{
    const struct gp_xid *worst = NULL;
    const struct gp_xid *xid;
    for (size_t i = 0; (xid = xid_at(xids, i, wall_ns)); i++) {
        if (xid->gpu != gpu)
            continue;
        if (gp_xid_ink(xid) == GP_INK_CRITICAL)
            return xid;
        worst = worst ? worst : xid;
    }
    return worst;
}

const char *gp_xid_age(const struct gp_xid *xid, uint64_t wall_ns, char ret[GP_XID_AGE_SIZE])
{
    const unsigned min = (unsigned)(age_s_of(xid, wall_ns) / 60);
    (void)snprintf(ret, GP_XID_AGE_SIZE, min ? "%u min ago" : "just now", min);
    return ret;
}

/* Whether the i-th one has come again since. */
static bool is_repeated(const struct gp_xids *xids, size_t i, const struct gp_xid *xid)
{
    while (i-- > 0) {
        const struct gp_xid *newer = newest(xids, i);
        if (newer->gpu == xid->gpu && newer->number == xid->number)
            return true;
    }
    return false;
}

static void look_at_xids(struct finder *f, const struct gp_xids *xids, uint64_t wall_ns)
{
    const struct gp_xid *xid;
    for (size_t i = 0; (xid = xid_at(xids, i, wall_ns)); i++) {
        const struct gp_xid_info *info = gp_xid_find(xid->number);
        struct gp_alert alert = alert_of(GP_FAULT_XID, xid->gpu);
        if (is_repeated(xids, i, xid))
            continue;
        char age[GP_XID_AGE_SIZE];
        (void)gp_xid_age(xid, wall_ns, age);
        alert.ink = gp_xid_ink(xid);
        alert.number = xid->number;
        alert.about = info ? info->advice : "This number is in none of our tables.";
        const char *words = info ? info->words : "unknown error";
        (void)snprintf(alert.brief, sizeof(alert.brief), "%s %llu", gp_fault_words[GP_FAULT_XID],
                       (unsigned long long)xid->number);
        word(&alert, ", %.*s · %s", (int)strcspn(words, ":;"), words, age);
        (void)snprintf(alert.next, sizeof(alert.next), "%s %llu", rules[GP_FAULT_XID].next,
                       (unsigned long long)xid->number);
        add(f, &alert);
    }
}

size_t gp_alerts_find(const struct gp_snapshot *snapshot, const struct gp_history *history,
                      const struct gp_xids *xids, struct gp_alert *ret, size_t max)
{
    struct finder f = {ret, max, 0};
    look_at_xids(&f, xids, snapshot->wall_ns);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (device->is_mig)
            continue;
        look_at_sample(&f, device);
        look_at_heat(&f, device);
        look_at_link(&f, snapshot, history, device);
        look_at_memory(&f, snapshot, device, gp_history_find(history, device));
    }
    return f.count;
}

bool gp_alert_is(const struct gp_alert *a, const struct gp_alert *b)
{
    return a->rule == b->rule && a->gpu == b->gpu && a->number == b->number && a->pid == b->pid;
}
