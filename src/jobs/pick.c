#include "jobs/pick.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory in use without a process that makes a GPU count as busy: more than displays and contexts
 * use. */
enum {
    UNLISTED_LEAST = 1 << 30,
    ANCESTORS_MAX = 64,
    OWNER_SIZE = 100,
    COMMAND_SIZE = 81,
    GROUP_MOST = 8,
};

/* How close two GPUs are. */
enum nearness { FAR, SAME_NODE, SAME_SWITCH, LINKED };

struct picking {
    const struct gp_snapshot *snapshot;
    const struct gp_leases *leases;
    const struct gp_pick_request *request;
    struct gp_pick *pick;
};

void gp_pick_want(struct gp_want *want, bool several)
{
    static const enum gp_metric metrics[] = {
        GP_UUID,
        GP_NAME,
        GP_PCI_BUS_ID,
        GP_SERIAL,
        GP_MEMORY_TOTAL,
        GP_MEMORY_USED,
        GP_MEMORY_FREE,
        GP_MEMORY_UNATTRIBUTED,
        GP_UTILIZATION_GPU,
        GP_TEMPERATURE_GPU,
        GP_COMPUTE_MODE,
        GP_MIG_MODE,
        GP_DISPLAY_ACTIVE,
        GP_RECOVERY_ACTION,
        GP_REMAPPED_FAILURE,
        GP_REMAPPED_PENDING,
        GP_PID,
        GP_PROCESS_TYPE,
        GP_PROCESS_MEMORY,
        GP_PROCESS_USER,
        GP_PROCESS_COMMAND,
        GP_PROCESS_PPID,
        GP_PROCESS_START,
        GP_PROCESS_SUSPENDED,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want->metrics, metrics[i]);
    want->mig = true;
    want->processes = true;
    want->process_names = true;
    want->ancestors = true;
    if (!several)
        return;
    want->lists |= 1U << gp_list_index(GP_SCOPE_PEER);
    gp_metric_set_add(&want->metrics, GP_PEER_NUMBER);
    gp_metric_set_add(&want->metrics, GP_PEER_LEVEL);
    gp_metric_set_add(&want->metrics, GP_PEER_LINKS);
}

/* ---- the owner of a process ---- */

static int64_t parent_of(const struct gp_snapshot *snapshot, int64_t pid)
{
    const struct {
        const struct gp_process *list;
        size_t count;
    } lists[] = {{snapshot->processes, snapshot->process_count},
                 {snapshot->ancestors, snapshot->ancestor_count}};
    for (size_t l = 0; l < GP_ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l].count; i++)
            if (gp_process_value(&lists[l].list[i], GP_PID)->i == pid) {
                const struct gp_value *parent =
                    gp_process_value(&lists[l].list[i], GP_PROCESS_PPID);
                return gp_value_is_present(parent) ? parent->i : 0;
            }
    return 0;
}

bool gp_pick_comes_from(const struct gp_snapshot *snapshot, int64_t pid, int64_t from)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        if (pid == from)
            return true;
        pid = parent_of(snapshot, pid);
    }
    return false;
}

static bool is_local(const struct gp_lease *lease)
{
    return lease->pid && lease->ns == gp_proc_own_ns(); /* otherwise its pids mean other processes
                                                           here */
}

bool gp_pick_is_suspended(const struct gp_snapshot *snapshot, const struct gp_lease *lease)
{
    for (size_t i = 0; is_local(lease) && i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        if (gp_value_is_present(gp_process_value(p, GP_PROCESS_SUSPENDED)) &&
            gp_pick_comes_from(snapshot, gp_process_value(p, GP_PID)->i, lease->pid))
            return true;
    }
    return false;
}

bool gp_pick_observed(const struct gp_snapshot *snapshot, const struct gp_device *device,
                      const struct gp_lease *lease, double *ret_bytes)
{
    *ret_bytes = 0;
    if (!is_local(lease))
        return false;
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        if (!gp_pick_comes_from(snapshot, gp_process_value(p, GP_PID)->i, lease->pid))
            continue;
        if (!gp_value_is_present(memory))
            return false;
        *ret_bytes += (double)memory->i;
    }
    return true;
}

static bool has_gpu(const struct gp_lease *lease, const struct gp_device *device)
{
    return gp_lease_has_gpu(lease, gp_device_text(device, GP_UUID, ""));
}

/* Whether a process on this GPU belongs to a job that has reserved it. A job's process on any other
 * GPU counts as foreign. */
static bool is_leased(const struct picking *p, const struct gp_device *device, int64_t pid)
{
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state == GP_LEASE_HELD && is_local(lease) && has_gpu(lease, device) &&
            gp_pick_comes_from(p->snapshot, pid, lease->pid))
            return true;
    }
    return false;
}

/* ---- obstacles ---- */

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

static bool is_visible(const struct gp_pick_request *request, const struct gp_device *device)
{
    for (size_t i = 0; request->visible && i < request->visible_count; i++)
        if (request->visible[i] == device)
            return true;
    return !request->visible;
}

/* Obstacles that waiting cannot remove. */
static bool can_ever(const struct picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    const struct gp_pick_request *request = p->request;
    double total = 0;
    if ((request->only && !gp_pick_matches(request->only, device)) ||
        (request->avoid && gp_pick_matches(request->avoid, device)))
        return set_why(unit, GP_PICK_NOT_REQUESTED, "not requested");
    if (!is_visible(request, device))
        return set_why(unit, GP_PICK_HIDDEN, "hidden by CUDA_VISIBLE_DEVICES (see --ignore-mask)");
    if (is_word(device, GP_COMPUTE_MODE, "Prohibited"))
        return set_why(unit, GP_PICK_PROHIBITED, "its compute mode is Prohibited");
    if (request->no_display && is_word(device, GP_DISPLAY_ACTIVE, "Enabled"))
        return set_why(unit, GP_PICK_DISPLAY, "it drives a display");
    if (is_word(device, GP_REMAPPED_FAILURE, "Yes"))
        return set_why(unit, GP_PICK_FAILED, "its memory has failed: a row could not be remapped");
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
static const char *owner_text(const struct picking *p, const struct gp_lease *lease,
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
static const struct gp_process *foreigner(const struct picking *p, const struct gp_device *device)
{
    bool exclusive = is_exclusive(device);
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *process = &p->snapshot->processes[device->first_process + i];
        const struct gp_value *type = gp_process_value(process, GP_PROCESS_TYPE);
        if (gp_value_is_present(type) && strpbrk(type->s, "CM") &&
            (exclusive || !is_leased(p, device, gp_process_value(process, GP_PID)->i)))
            return process;
    }
    return NULL;
}

/* Whether a waiting request surely cannot have this GPU now. */
static bool is_out_of_reach(const struct picking *p, const struct gp_lease *waiting,
                            const struct gp_device *device)
{
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state != GP_LEASE_WAITING && has_gpu(lease, device) &&
            !(lease->is_shared && waiting->is_shared))
            return true;
    }
    return device->status != GP_STATUS_OK || (!waiting->is_shared && foreigner(p, device));
}

/* Whether an earlier request keeps a GPU from this one: not if it could not start even with that
 * GPU, and this one may overtake it. */
static bool goes_first(const struct picking *p, const struct gp_lease *earlier)
{
    size_t within_reach = 0;
    if (earlier->ticket >= p->request->ticket || earlier->is_stopped)
        return false;
    if (!gp_lease_may_overtake(earlier, p->request->limit_ns, p->snapshot->wall_ns))
        return true;
    for (size_t i = 0; i < p->snapshot->device_count; i++)
        within_reach += has_gpu(earlier, &p->snapshot->devices[i]) &&
                        !is_out_of_reach(p, earlier, &p->snapshot->devices[i]);
    return within_reach >= earlier->wanted;
}

/* Subtracts memory that is reserved but not in use yet; an exclusive lease has the whole GPU. */
static bool is_unreserved(const struct picking *p, struct gp_pick_unit *unit)
{
    const struct gp_device *device = unit->device;
    char room[OWNER_SIZE];
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        double observed;
        if (!has_gpu(lease, device) || lease->state == GP_LEASE_WAITING)
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

static bool is_next(const struct picking *p, struct gp_pick_unit *unit)
{
    char room[OWNER_SIZE];
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state != GP_LEASE_WAITING || !has_gpu(lease, unit->device) ||
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
static bool is_unused(const struct picking *p, struct gp_pick_unit *unit)
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

static bool has_room(const struct picking *p, struct gp_pick_unit *unit)
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

static void judge(const struct picking *p, struct gp_pick_unit *unit)
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

/* ---- choosing the best ---- */

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_units(const void *a, const void *b, void *ctx)
{
    const struct picking *p = ctx;
    const struct gp_pick_unit *x = &p->pick->units[*(const size_t *)a];
    const struct gp_pick_unit *y = &p->pick->units[*(const size_t *)b];
    int by_processes = compare_numbers((double)x->processes, (double)y->processes);
    int by_free = compare_numbers(y->free, x->free);
    const int orders[GP_PICK__COUNT] = {
        [GP_PICK_DEFAULT] = by_processes ? by_processes : by_free,
        [GP_PICK_FREE] = by_free,
        [GP_PICK_LOAD] = compare_numbers(x->load, y->load),
        [GP_PICK_COOL] = compare_numbers(x->celsius, y->celsius),
        [GP_PICK_INDEX] = compare_numbers((double)*(const size_t *)a, (double)*(const size_t *)b),
    };
    if (x->preferred != y->preferred)
        return y->preferred - x->preferred;
    int order = orders[p->request->order];
    return order ? order : compare_numbers((double)*(const size_t *)b, (double)*(const size_t *)a);
}

static enum nearness level_of(const struct gp_value *level)
{
    static const struct {
        const char *word;
        enum nearness nearness;
    } levels[] = {
        {"PIX", SAME_SWITCH}, {"PXB", SAME_SWITCH}, {"PHB", SAME_NODE}, {"NODE", SAME_NODE}};
    for (size_t i = 0; gp_value_is_present(level) && i < GP_ARRAY_LEN(levels); i++)
        if (strcmp(levels[i].word, level->s) == 0)
            return levels[i].nearness;
    return FAR;
}

static enum nearness nearness_of(const struct gp_snapshot *snapshot, const struct gp_device *a,
                                 const struct gp_device *b)
{
    const struct gp_entries *peers = &snapshot->lists[gp_list_index(GP_SCOPE_PEER)];
    for (size_t i = 0; i < peers->count; i++) {
        const struct gp_value *values = peers->entries[i].values;
        const struct gp_value *number = &values[GP_PEER_NUMBER - GP_PEER__FIRST];
        const struct gp_value *links = &values[GP_PEER_LINKS - GP_PEER__FIRST];
        if (&snapshot->devices[peers->entries[i].device] != a || !gp_value_is_present(number) ||
            number->i != (int64_t)b->index)
            continue;
        return gp_value_is_present(links) && links->i > 0
                   ? LINKED
                   : level_of(&values[GP_PEER_LEVEL - GP_PEER__FIRST]);
    }
    return FAR;
}

/* The set of closest GPUs that contains this one: each step adds the GPU that is closest to all
 * that are in it. *ret_nearness is that of the two that are farthest apart. */
static void grow_set(const struct picking *p, const size_t *fitting, size_t count, size_t seed,
                     size_t *set, enum nearness *ret_nearness)
{
    size_t size = 1;
    set[0] = fitting[seed];
    *ret_nearness = LINKED;
    while (size < p->request->count) {
        size_t best = SIZE_MAX;
        enum nearness best_nearness = FAR;
        for (size_t i = 0; i < count; i++) {
            enum nearness nearness = LINKED;
            bool is_in = false;
            for (size_t k = 0; k < size; k++) {
                enum nearness n = nearness_of(p->snapshot, p->pick->units[set[k]].device,
                                              p->pick->units[fitting[i]].device);
                nearness = n < nearness ? n : nearness;
                is_in = is_in || set[k] == fitting[i];
            }
            if (!is_in && (best == SIZE_MAX || nearness > best_nearness)) {
                best = fitting[i];
                best_nearness = nearness;
            }
        }
        set[size++] = best;
        *ret_nearness = best_nearness < *ret_nearness ? best_nearness : *ret_nearness;
    }
}

/* Several GPUs that work together should be close to each other; ties are decided by the order. */
static enum nearness choose_set(const struct picking *p, const size_t *fitting, size_t count,
                                size_t *set)
{
    size_t *chosen = p->pick->chosen;
    enum nearness best = FAR;
    for (size_t seed = 0; seed < count && (seed == 0 || best < LINKED); seed++) {
        enum nearness nearness;
        grow_set(p, fitting, count, seed, set, &nearness);
        if (seed == 0 || nearness > best) {
            memcpy(chosen, set, p->request->count * sizeof(*set));
            best = nearness;
        }
    }
    return best;
}

/* ---- the whole choice ---- */

/* The obstacle to report: the first in the enum and, of several GPUs with it, the one with most
 * free memory. NULL: no GPU in this state. */
static const struct gp_pick_unit *main_obstacle(const struct gp_pick *pick,
                                                enum gp_pick_state state)
{
    const struct gp_pick_unit *best = NULL;
    for (size_t i = 0; i < pick->count; i++) {
        const struct gp_pick_unit *unit = &pick->units[i];
        if (unit->state == state && (!best || unit->obstacle < best->obstacle ||
                                     (unit->obstacle == best->obstacle && unit->free > best->free)))
            best = unit;
    }
    return best;
}

/* The number of devices at the start of the list that are shown as one range, or 1. */
static size_t range_of(const struct gp_device *const *devices, size_t count)
{
    size_t n = 1;
    while (n < count && !devices[0]->is_mig && !devices[n]->is_mig &&
           devices[n]->index == devices[0]->index + n)
        n++;
    return n > 2 ? n : 1;
}

void gp_pick_add_gpus(struct gp_strbuf *sb, const struct gp_device *const *devices, size_t count)
{
    size_t parts = 0;
    size_t said = 0;
    for (size_t i = 0; i < count; i += range_of(devices + i, count - i))
        parts++;
    gp_strbuf_adds(sb, count == 1 ? "GPU " : "GPUs ");
    for (size_t i = 0; i < count && said < GROUP_MOST; said++) {
        const size_t n = range_of(devices + i, count - i);
        gp_strbuf_addf(sb, "%s%u",
                       said == 0           ? ""
                       : said + 1 == parts ? " and "
                                           : ", ",
                       devices[i]->index);
        if (devices[i]->is_mig)
            gp_strbuf_addf(sb, ":%u", devices[i]->mig_index);
        if (n > 1)
            gp_strbuf_addf(sb, "-%u", devices[i + n - 1]->index);
        i += n;
    }
    gp_strbuf_adds(sb, said < parts ? ", …" : "");
}

static bool has_reason(const struct gp_pick *pick, const struct gp_pick_unit *unit, size_t i)
{
    return pick->units[i].state == unit->state && strcmp(pick->units[i].why, unit->why) == 0;
}

/* The GPUs that have the same reason as this one. */
static size_t list_group(const struct gp_pick *pick, const struct gp_pick_unit *unit,
                         const struct gp_device **devices)
{
    size_t count = 0;
    for (size_t i = 0; i < pick->count; i++)
        if (has_reason(pick, unit, i))
            devices[count++] = pick->units[i].device;
    return count;
}

const struct gp_pick_unit *gp_pick_next_obstacle(const struct gp_pick *pick, size_t *at,
                                                 const struct gp_device **devices,
                                                 size_t *ret_count)
{
    while (*at < pick->count) {
        const struct gp_pick_unit *unit = &pick->units[(*at)++];
        size_t first = 0;
        while (!has_reason(pick, unit, first))
            first++;
        if (unit->state == GP_PICK_LATER && unit == &pick->units[first]) {
            *ret_count = list_group(pick, unit, devices);
            return unit;
        }
    }
    return NULL;
}

/* The GPUs that are in this state for other reasons; ret_reason: NULL if there are several. */
static size_t list_others(const struct gp_pick *pick, const struct gp_pick_unit *unit,
                          const struct gp_device **devices, const char **ret_reason)
{
    const struct gp_pick_unit *first = NULL;
    size_t count = 0;
    bool is_one = true;
    for (size_t i = 0; i < pick->count; i++)
        if (pick->units[i].state == unit->state && !has_reason(pick, unit, i) &&
            pick->units[i].obstacle != GP_PICK_NOT_REQUESTED) {
            first = first ? first : &pick->units[i];
            is_one = is_one && has_reason(pick, first, i);
            devices[count++] = pick->units[i].device;
        }
    *ret_reason = first && is_one ? first->why : NULL;
    return count;
}

/* "; GPUs 6 and 7: reserved by …; GPU 4: …", or "; for GPUs 2-4, see gpulse pick --explain" */
static void add_obstacle(struct gp_strbuf *sb, const struct gp_pick *pick, enum gp_pick_state state)
{
    const struct gp_pick_unit *shown = main_obstacle(pick, state);
    const struct gp_device **devices = shown ? calloc(pick->count, sizeof(*devices)) : NULL;
    if (devices) {
        gp_strbuf_adds(sb, "; ");
        gp_pick_add_gpus(sb, devices, list_group(pick, shown, devices));
        gp_strbuf_addf(sb, ": %s", shown->why);
        const char *reason;
        const size_t others = list_others(pick, shown, devices, &reason);
        if (others > 0) {
            gp_strbuf_adds(sb, reason ? "; " : "; for ");
            gp_pick_add_gpus(sb, devices, others);
            gp_strbuf_adds(sb, reason ? ": " : ", see gpulse pick --explain");
            gp_strbuf_adds(sb, reason ? reason : "");
        }
    }
    free(devices);
}

/* One sentence that says why the request is not met. */
static void explain(const struct picking *p, size_t possible, size_t fitting)
{
    struct gp_pick *pick = p->pick;
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(pick->why) - 1);
    const unsigned wanted = p->request->count;
    if (pick->state == GP_PICK_LATER && wanted == 1)
        gp_strbuf_adds(&sb, p->request->only ? "no requested GPU is free" : "no GPU is free");
    else if (pick->state == GP_PICK_LATER)
        gp_strbuf_addf(&sb, "%zu of the %u requested GPUs %s free", fitting, wanted,
                       fitting == 1 ? "is" : "are");
    else if (wanted > pick->count)
        gp_strbuf_addf(&sb, "%u GPU%s requested, but this machine has %zu", wanted,
                       wanted == 1 ? "" : "s", pick->count);
    else if (possible == 0)
        gp_strbuf_addf(&sb, "%u GPU%s requested, but no GPU of this machine meets the request",
                       wanted, wanted == 1 ? "" : "s");
    else
        gp_strbuf_addf(&sb, "%u GPUs requested, but only %zu of %zu can ever be used", wanted,
                       possible, pick->count);
    add_obstacle(&sb, pick, pick->state);
    (void)snprintf(pick->why, sizeof(pick->why), "%s", sb.buf);
    gp_strbuf_fini(&sb);
}

static int compare_indices(const void *a, const void *b)
{
    const size_t *x = a;
    const size_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void choose(const struct picking *p, size_t *fitting, size_t *set)
{
    struct gp_pick *pick = p->pick;
    size_t wanted = p->request->count;
    size_t count = 0;
    size_t possible = 0;
    for (size_t i = 0; i < pick->count; i++) {
        possible += pick->units[i].state != GP_PICK_NEVER;
        if (pick->units[i].state == GP_PICK_FITS)
            fitting[count++] = i;
    }
    pick->state = possible < wanted ? GP_PICK_NEVER : count < wanted ? GP_PICK_LATER : GP_PICK_FITS;
    if (pick->state != GP_PICK_FITS) {
        explain(p, possible, count);
        return;
    }
    qsort_r(fitting, count, sizeof(*fitting), compare_units, (void *)(uintptr_t)p);
    if (wanted < 2) {
        memcpy(pick->chosen, fitting, wanted * sizeof(*fitting));
    } else {
        enum nearness nearness = choose_set(p, fitting, count, set);
        if ((p->request->nvlink && nearness < LINKED) ||
            (p->request->same_node && nearness < SAME_NODE)) {
            pick->state = count == possible ? GP_PICK_NEVER : GP_PICK_LATER;
            (void)snprintf(pick->why, sizeof(pick->why), "no %u free GPUs are %s",
                           p->request->count,
                           p->request->nvlink ? "connected by NVLink" : "on one NUMA node");
            return;
        }
    }
    if (p->request->is_all) /* the order in which they were added does not matter */
        memcpy(pick->chosen, fitting, wanted * sizeof(*fitting));
    pick->chosen_count = wanted;
    if (p->request->is_ascending)
        qsort(pick->chosen, wanted, sizeof(*pick->chosen), compare_indices);
    for (size_t i = 0; i < wanted; i++)
        pick->units[pick->chosen[i]].is_chosen = true;
}

/* A partitioned GPU is represented by its instances. */
static bool is_unit(const struct gp_device *device)
{
    return device->is_mig || !is_word(device, GP_MIG_MODE, "Enabled");
}

unsigned gp_pick_count_all(const struct gp_snapshot *snapshot,
                           const struct gp_pick_request *request)
{
    unsigned count = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        bool is_meant = is_unit(device) && (request->only ? gp_pick_matches(request->only, device)
                                                          : is_visible(request, device));
        count += is_meant && !(request->avoid && gp_pick_matches(request->avoid, device));
    }
    return count;
}

int gp_pick_make(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                 const struct gp_pick_request *request, struct gp_pick *ret)
{
    size_t most = snapshot->device_count + request->count + 1;
    const struct picking p = {snapshot, leases, request, ret};
    size_t *fitting = calloc(most, sizeof(*fitting));
    size_t *set = calloc(most, sizeof(*set));
    *ret = (struct gp_pick){.units = calloc(most, sizeof(*ret->units)),
                            .chosen = calloc(most, sizeof(*ret->chosen))};
    bool ok = fitting && set && ret->units && ret->chosen;
    for (size_t i = 0; ok && i < snapshot->device_count; i++)
        if (is_unit(&snapshot->devices[i])) {
            ret->units[ret->count].device = &snapshot->devices[i];
            judge(&p, &ret->units[ret->count++]);
        }
    if (ok)
        choose(&p, fitting, set);
    free(fitting);
    free(set);
    if (!ok)
        gp_pick_fini(ret);
    return ok ? 0 : GP_ENOMEM;
}

int gp_pick_make_waiting(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                         const struct gp_lease *waiting, struct gp_pick *ret)
{
    const struct gp_device **candidates = calloc(snapshot->device_count + 1, sizeof(*candidates));
    struct gp_pick_request request = {
        .count = waiting->wanted,
        .is_shared = waiting->is_shared,
        .bytes = waiting->bytes,
        .most_load = -1,
        .most_celsius = -1,
        .visible = candidates,
        .ticket = waiting->ticket,
        .limit_ns = waiting->limit_ns,
    };
    if (!candidates)
        return GP_ENOMEM;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (has_gpu(waiting, &snapshot->devices[i]))
            candidates[request.visible_count++] = &snapshot->devices[i];
    int r = gp_pick_make(snapshot, leases, &request, ret);
    free(candidates);
    return r;
}

void gp_pick_fini(struct gp_pick *pick)
{
    free(pick->units);
    free(pick->chosen);
    *pick = (struct gp_pick){.units = NULL};
}
