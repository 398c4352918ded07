/* Whether a job can have one GPU: each check names the obstacle that it finds. */
#include "base/utf8.h"
#include "jobs/pick_internal.h"
#include "model/select.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Memory in use without a process that makes a GPU count as busy: more than displays and
     * contexts use. */
    UNLISTED_LEAST = 1 << 30,
    OWNER_SIZE = 100,
    COMMAND_SIZE = 81,
};

static bool set_why(struct gp_pick_unit *unit, enum gp_pick_obstacle obstacle, const char *fmt, ...)
    GP_PRINTF(3, 4);

/* Always false, so that a check can return it. */
static bool set_why(struct gp_pick_unit *unit, enum gp_pick_obstacle obstacle, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(unit->why, sizeof(unit->why), fmt, args);
    va_end(args);
    unit->obstacle = obstacle;
    unit->state = obstacle < GP_PICK_TOO_SMALL ? GP_PICK_LATER : GP_PICK_NEVER;
    return false;
}

static bool is_word(const struct gp_device *device, enum gp_metric m, const char *word)
{
    return strcmp(gp_device_text(device, m, ""), word) == 0;
}

static bool is_exclusive(const struct gp_device *device)
{
    return is_word(device, GP_COMPUTE_MODE, "Exclusive_Process");
}

bool gp_pick_matches(struct gp_selection *selection, const struct gp_device *device)
{
    const struct gp_identity identity = {
        .uuid = gp_device_text(device, GP_UUID, NULL),
        .bus_id = gp_device_text(device, GP_PCI_BUS_ID, NULL),
        .serial = gp_device_text(device, GP_SERIAL, NULL),
        .name = gp_device_text(device, GP_NAME, NULL),
        .is_mig = device->is_mig,
        .gpu = device->index,
        .mig_index = device->mig_index,
    };
    return gp_selection_matches(selection, device->index, &identity);
}

bool gp_pick_is_visible(const struct gp_pick_request *request, const struct gp_device *device)
{
    for (size_t i = 0; request->visible && i < request->visible_count; i++)
        if (request->visible[i] == device)
            return true;
    return !request->visible;
}

/* Obstacles that waiting cannot remove. */
static bool can_ever(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    const struct gp_pick_request *request = p->request;
    double total = 0;
    if ((request->only && !gp_pick_matches(request->only, device)) ||
        (request->avoid && gp_pick_matches(request->avoid, device)))
        return set_why(unit, GP_PICK_NOT_REQUESTED, "not requested");
    if (!gp_pick_is_visible(request, device))
        return set_why(unit, GP_PICK_HIDDEN, "hidden by CUDA_VISIBLE_DEVICES (see --ignore-mask)");
    if (is_word(device, GP_COMPUTE_MODE, "Prohibited"))
        return set_why(unit, GP_PICK_PROHIBITED, "its compute mode is Prohibited");
    if (request->no_display && is_word(device, GP_DISPLAY_ACTIVE, "Enabled"))
        return set_why(unit, GP_PICK_DISPLAY, "it drives a display");
    if (is_word(device, GP_REMAPPED_FAILURE, "Yes"))
        return set_why(unit, GP_PICK_FAILED, "its memory has failed: a row could not be remapped");
    if (device->is_mig && request->no_mig)
        return set_why(unit, GP_PICK_MIG, "it is a MIG instance, and whole GPUs are requested");
    if (device->is_mig && request->count > 1)
        return set_why(unit, GP_PICK_MIG, "a program can use only one MIG instance");
    uint64_t least = request->bytes > request->total_bytes ? request->bytes : request->total_bytes;
    if (gp_device_number(device, GP_MEMORY_TOTAL, &total) && total < (double)least)
        return set_why(unit, GP_PICK_TOO_SMALL, "%.1f GiB per GPU, %.1f GiB requested",
                       total / 0x1p30, (double)least / 0x1p30);
    return true;
}

static bool is_healthy(struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    if (device->status != GP_STATUS_OK)
        return set_why(unit, GP_PICK_SICK, "%s%s",
                       device->status == GP_STATUS_LOST ? "" : "it does not respond: ",
                       gp_device_trouble(device));
    if (strcmp(action, "None") != 0)
        return set_why(unit, GP_PICK_SICK, "the driver requests: %s", action);
    if (is_word(device, GP_REMAPPED_PENDING, "Yes"))
        return set_why(unit, GP_PICK_SICK, "needs a GPU reset to remap a faulty memory row");
    return true;
}

/* "train.py (alice)", or "(alice, suspended)", "(uid 1000)". */
static const char *owner_text(const struct gp_picking *p, const struct gp_lease *lease,
                              char room[OWNER_SIZE])
{
    char name[44];
    char user[40];
    char user_safe[40];
    gp_utf8_copy_safe(name, sizeof(name), lease->name[0] ? lease->name : lease->command);
    if (!gp_lease_user(lease, user, sizeof(user)))
        (void)snprintf(user, sizeof(user), "uid %u", lease->uid);
    gp_utf8_copy_safe(user_safe, sizeof(user_safe), user);
    (void)snprintf(room, OWNER_SIZE, "%s (%s%s)", name, user_safe,
                   gp_pick_is_suspended(p->snapshot, lease) ? ", suspended" : "");
    return room;
}

/* A compute process without a lease or, in exclusive mode, any compute process; NULL: none. */
static const struct gp_process *foreigner(const struct gp_picking *p,
                                          const struct gp_device *device)
{
    bool exclusive = is_exclusive(device);
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *process = &p->snapshot->processes[device->first_process + i];
        if (gp_process_computes(process) &&
            (exclusive || !gp_pick_is_leased(p, device, gp_process_value(process, GP_PID)->i)))
            return process;
    }
    return NULL;
}

/* Whether a waiting request surely cannot have this GPU now. */
static bool is_out_of_reach(const struct gp_picking *p, const struct gp_lease *waiting,
                            const struct gp_device *device)
{
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state != GP_LEASE_WAITING && gp_pick_has_gpu(lease, device) &&
            !(lease->is_shared && waiting->is_shared))
            return true;
    }
    return device->status != GP_STATUS_OK || (!waiting->is_shared && foreigner(p, device));
}

/* Whether an earlier request keeps a GPU from this one: not if it could not start even with that
 * GPU, and this one may overtake it. */
static bool goes_first(const struct gp_picking *p, const struct gp_lease *earlier)
{
    size_t within_reach = 0;
    if (earlier->ticket >= p->request->ticket || earlier->is_stopped)
        return false;
    if (!gp_lease_may_overtake(earlier, p->request->limit_ns, p->snapshot->wall_ns))
        return true;
    for (size_t i = 0; i < p->snapshot->device_count; i++)
        within_reach += gp_pick_has_gpu(earlier, &p->snapshot->devices[i]) &&
                        !is_out_of_reach(p, earlier, &p->snapshot->devices[i]);
    return within_reach >= earlier->wanted;
}

/* Subtracts memory that is reserved but not in use yet; an exclusive lease has the whole GPU. */
static bool is_unreserved(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    char room[OWNER_SIZE];
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        double observed;
        if (!gp_pick_has_gpu(lease, device) || lease->state == GP_LEASE_WAITING)
            continue;
        unit->lease = lease;
        if (!lease->is_shared || !p->request->is_shared || is_exclusive(device))
            return set_why(unit, GP_PICK_RESERVED, "reserved by %s", owner_text(p, lease, room));
        (void)gp_pick_observed(p->snapshot, device, lease, &observed);
        if ((double)lease->bytes > observed)
            unit->free -= (double)lease->bytes - observed;
    }
    unit->lease = NULL;
    return true;
}

static bool is_next(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    char room[OWNER_SIZE];
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state != GP_LEASE_WAITING || !gp_pick_has_gpu(lease, unit->device) ||
            !goes_first(p, lease))
            continue;
        unit->lease = lease;
        return set_why(unit, GP_PICK_LINE, "%s has waited for it longer",
                       owner_text(p, lease, room));
    }
    return true;
}

static const char *text_of(const struct gp_process *process, enum gp_metric m, const char *other)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) ? v->s : other;
}

/* An exclusive request needs an empty GPU; in exclusive mode the driver accepts only one
 * process. */
static bool is_unused(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    const struct gp_process *other =
        is_exclusive(device) || !p->request->is_shared ? foreigner(p, device) : NULL;
    double unlisted = 0;
    if (other) {
        const struct gp_value *memory = gp_process_value(other, GP_PROCESS_MEMORY);
        const char *user = text_of(other, GP_PROCESS_USER, "");
        char command[COMMAND_SIZE];
        gp_utf8_copy_safe(command, sizeof(command), text_of(other, GP_PROCESS_COMMAND, "?"));
        return set_why(unit, GP_PICK_IN_USE, "pid %lld%s%s%s, %.1f GiB: %s",
                       (long long)gp_process_value(other, GP_PID)->i, *user ? " (" : "", user,
                       *user ? ")" : "",
                       gp_value_is_present(memory) ? (double)memory->i / 0x1p30 : 0, command);
    }
    if (!p->request->is_shared && gp_device_number(device, GP_MEMORY_UNATTRIBUTED, &unlisted) &&
        unlisted > UNLISTED_LEAST)
        return set_why(unit, GP_PICK_IN_USE,
                       "%.1f GiB in use by processes not listed: gpulse ps --explain -i %u",
                       unlisted / 0x1p30, device->index);
    return true;
}

static bool has_room(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    const struct gp_pick_request *request = p->request;
    if (unit->free < (double)request->bytes)
        return set_why(unit, GP_PICK_MEMORY, "%.1f GiB free, %.1f GiB requested",
                       (unit->free > 0 ? unit->free : 0) / 0x1p30, (double)request->bytes / 0x1p30);
    if (request->most_load >= 0 && unit->load > request->most_load)
        return set_why(unit, GP_PICK_TOO_BUSY, "its utilization is %.0f %%", unit->load);
    if (request->most_celsius >= 0 && unit->celsius > request->most_celsius)
        return set_why(unit, GP_PICK_TOO_BUSY, "its temperature is %.0f °C", unit->celsius);
    return true;
}

void gp_pick_judge(const struct gp_picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    (void)gp_device_number_now(device, GP_MEMORY_FREE, &unit->free);
    (void)gp_device_number_now(device, GP_UTILIZATION_GPU, &unit->load);
    (void)gp_device_number_now(device, GP_TEMPERATURE_GPU, &unit->celsius);
    unit->processes = device->process_count;
    unit->preferred = p->request->prefer && gp_pick_matches(p->request->prefer, device);
    (void)(can_ever(p, unit) && is_healthy(unit) && is_unreserved(p, unit) && is_unused(p, unit) &&
           has_room(p, unit) && is_next(p, unit));
}
