#include "tui/alerts.h"

#include "model/event.h"
#include "model/snapshot.h"
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
    IDLE_STEPS = 60,
    XID_S = 3600,
};

#define GIB (1024.0 * 1024 * 1024)

struct finder {
    struct gp_alert *ret;
    size_t max, count;
};

static void GP_PRINTF(3, 4) tell(struct finder *f, enum gp_ink ink, const char *fmt, ...)
{
    struct gp_alert alert = {.ink = ink};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(alert.text, sizeof(alert.text), fmt, args);
    va_end(args);
    size_t at = f->count++;
    if (ink == GP_INK_CRITICAL) /* before less severe ones */
        for (at = 0; at < f->count - 1 && at < f->max && f->ret[at].ink == GP_INK_CRITICAL;)
            at++;
    if (at >= f->max)
        return;
    size_t behind = (f->count < f->max ? f->count : f->max) - at - 1;
    memmove(&f->ret[at + 1], &f->ret[at], behind * sizeof(alert));
    f->ret[at] = alert;
}

/* ---- health ---- */

static void look_at_health(struct finder *f, const struct gp_device *device)
{
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "");
    double n;
    if (gp_gpu_is_ill(device))
        tell(f, GP_INK_CRITICAL, "GPU %u: %s", device->index, gp_gpu_trouble(device));
    if (*action && strcmp(action, "None") != 0)
        tell(f, GP_INK_CRITICAL, "GPU %u: the driver requests: %s", device->index, action);
    if (gp_device_number_now(device, GP_ECC_UNCORRECTED_VOLATILE, &n) && n > 0)
        tell(f, GP_INK_CRITICAL, "GPU %u: %.0f uncorrected memory errors", device->index, n);
    if (strcmp(gp_device_text(device, GP_REMAPPED_FAILURE, ""), "Yes") == 0)
        tell(f, GP_INK_CRITICAL, "GPU %u: row remapping failed", device->index);
    if (strcmp(gp_device_text(device, GP_REMAPPED_PENDING, ""), "Yes") == 0 ||
        strcmp(gp_device_text(device, GP_RETIRED_PENDING, ""), "Yes") == 0)
        tell(f, GP_INK_HIGH, "GPU %u: memory repair pending; reset the GPU", device->index);
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
            tell(f, GP_INK_CRITICAL, "GPU %u: %s%.0f°C, slows down at %.0f°C", device->index,
                 sensors[i].what, now, limit);
    uint64_t reasons = gp_device_number_now(device, GP_REASONS_ACTIVE, &now) ? (uint64_t)now : 0;
    if (reasons & (0x20 | 0x40))
        tell(f, GP_INK_HIGH, "GPU %u: slowed down by heat", device->index);
    if (reasons & 0x80)
        tell(f, GP_INK_HIGH, "GPU %u: slowed down by the power supply", device->index);
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
        tell(f, GP_INK_HIGH, "GPU %u: %.0f of %.0f PCIe lanes", device->index, width, most);
}

/* ---- memory ---- */

/* Whether the GPU did anything in a time of this length. */
static bool was_at_work(const struct gp_track *track, uint64_t now_ns)
{
    struct gp_track_facts load;
    return gp_track_look(track, GP_SERIES_GPU, now_ns, GP_GROWTH_STEPS * 5 * GP_NS_PER_S, &load) &&
           load.highest > 0;
}

/* A process is only named if nobody else can be meant. */
static void add_who(const struct gp_snapshot *snapshot, const struct gp_device *device, char *ret,
                    size_t size)
{
    const struct gp_process *p = &snapshot->processes[device->first_process];
    const struct gp_value *user =
        device->process_count == 1 ? gp_process_value(p, GP_PROCESS_USER) : NULL;
    ret[0] = '\0';
    if (user)
        (void)snprintf(ret, size, " · %lld %s", (long long)gp_process_value(p, GP_PID)->i,
                       gp_value_is_present(user) ? user->s : "");
}

static bool foretell(struct finder *f, const struct gp_snapshot *snapshot,
                     const struct gp_device *device, const struct gp_track *track, double total)
{
    const uint64_t now_ns = snapshot->mono_ns;
    struct gp_growth growth;
    float values[GP_GROWTH_S];
    char who[80];
    gp_track_read(track, GP_SERIES_MEMORY, now_ns, GP_NS_PER_S, values, GP_GROWTH_LATEST_S);
    if (!gp_growth_is_possible(values))
        return false;
    gp_track_read(track, GP_SERIES_MEMORY, now_ns, GP_NS_PER_S, values, GP_ARRAY_LEN(values));
    if (!gp_growth_find(values, GP_ARRAY_LEN(values), total / GIB, was_at_work(track, now_ns),
                        &growth) ||
        growth.full_s > FULL_SOON_S)
        return false;
    add_who(snapshot, device, who, sizeof(who));
    tell(f, growth.full_s < FULL_VERY_SOON_S ? GP_INK_CRITICAL : GP_INK_HIGH,
         growth.full_s < 120 ? "GPU %u: memory full in ~%.0f s%s +%.0f MiB/s for %u min"
                             : "GPU %u: memory full in ~%.0f min%s +%.0f MiB/s for %u min",
         device->index, growth.full_s < 120 ? growth.full_s : growth.full_s / 60, who,
         growth.per_s * 1024, growth.for_s / 60);
    return true;
}

/* Whether nothing ran during the whole period, with no gap in the samples. */
static bool is_idle(const struct gp_track *track, uint64_t now_ns)
{
    float values[IDLE_STEPS];
    gp_track_read(track, GP_SERIES_GPU, now_ns, IDLE_S * GP_NS_PER_S / IDLE_STEPS, values,
                  IDLE_STEPS);
    for (int i = 0; i < IDLE_STEPS; i++)
        if (values[i] < 0 || values[i] > 0)
            return false;
    return true;
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
        tell(f, GP_INK_HIGH, "GPU %u: memory %.0f%% full", device->index, 100 * used / total);
    double rest;
    if (gp_device_number_now(device, GP_MEMORY_UNATTRIBUTED, &rest) && rest >= GIB)
        tell(f, GP_INK_HIGH, "GPU %u: no listed process accounts for %.1f GiB", device->index,
             rest / GIB);
    double load;
    if (used >= GIB && gp_device_number_now(device, GP_UTILIZATION_GPU, &load) && load <= 0 &&
        is_idle(track, snapshot->mono_ns))
        tell(f, GP_INK_HIGH, "GPU %u: %.1f GiB held, idle for ten minutes", device->index,
             used / GIB);
}

/* ---- errors of the driver ---- */

void gp_xids_add(struct gp_xids *xids, struct gp_xid xid)
{
    xids->list[xids->count++ % GP_XIDS_MAX] = xid;
}

/* The errors of the last hour, the newest first. Errors caused by a program are less severe. */
static void look_at_xids(struct finder *f, const struct gp_xids *xids, uint64_t wall_ns)
{
    size_t kept = xids->count < GP_XIDS_MAX ? xids->count : GP_XIDS_MAX;
    for (size_t i = 0; i < kept; i++) {
        const struct gp_xid *xid = &xids->list[(xids->count - 1 - i) % GP_XIDS_MAX];
        const struct gp_xid_info *info = gp_xid_find(xid->number);
        uint64_t age_s = wall_ns > xid->wall_ns ? (wall_ns - xid->wall_ns) / GP_NS_PER_S : 0;
        bool by_program = info && strcmp(info->fault, "application") == 0;
        if (age_s < XID_S)
            tell(f, by_program ? GP_INK_HIGH : GP_INK_CRITICAL,
                 "GPU %u: Xid %llu, %s, %llu min ago", xid->gpu, (unsigned long long)xid->number,
                 info ? info->words : "unknown error", (unsigned long long)(age_s / 60));
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
        look_at_health(&f, device);
        look_at_heat(&f, device);
        look_at_link(&f, snapshot, history, device);
        look_at_memory(&f, snapshot, device, gp_history_find(history, device));
    }
    return f.count;
}
