#include "jobs/request.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/visible.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "proc/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ANCESTORS_MAX = 256, IDS_SIZE = 1 << 16, TICK_MS = 500 };

/* ---- sampling ---- */

void gp_job_want(const struct gp_pick_request *request, struct gp_want *want)
{
    gp_pick_want(want, request->is_all || request->count > 1);
}

int gp_job_tick_without_lists(struct gp_sampler *sampler, uint32_t lists, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    gp_snapshot_free(snapshot);
    gp_sampler_add_lists(sampler, lists);
    return 0;
}

/* ---- the decision ---- */

static bool is_own_ancestor(uint32_t pid)
{
    struct gp_proc_stat stat;
    uint32_t at = (uint32_t)getpid();
    bool found = false;
    for (int i = 0; i < ANCESTORS_MAX && at > 1 && !found && gp_proc_stat_of(at, &stat); i++) {
        at = stat.ppid;
        found = at == pid;
    }
    return found;
}

/* The leases of this process's own job do not count. */
static void drop_own(struct gp_leases *leases)
{
    size_t kept = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (!gp_lease_is_local(&leases->items[i]) || !is_own_ancestor(leases->items[i].pid))
            leases->items[kept++] = leases->items[i];
    leases->count = kept;
}

static unsigned gpu_count(const struct gp_snapshot *snapshot)
{
    unsigned count = 0;
    for (size_t i = 0; i < snapshot->device_count; i++)
        count += !snapshot->devices[i].is_mig;
    return count;
}

int gp_job_check_selection(struct gp_selection *selection, const struct gp_snapshot *snapshot,
                           struct gp_err *err)
{
    for (size_t i = 0; selection && i < snapshot->device_count; i++)
        (void)gp_pick_matches(selection, &snapshot->devices[i]);
    return selection ? gp_selection_check(selection, gpu_count(snapshot), err) : 0;
}

/* All named GPUs must exist; a request for none counts as one missing. */
static int count_all(const struct gp_snapshot *snapshot, struct gp_pick_request *request,
                     struct gp_err *err)
{
    unsigned count = gp_pick_count_all(snapshot, request);
    if (count > GP_LEASE_GPUS)
        return gp_err_set(err, GP_EUSAGE, "--gpus selects %u GPUs, but at most %d can be used",
                          count, (int)GP_LEASE_GPUS);
    request->count = count ? count : 1;
    if (request->no_mig) /* a partitioned GPU exists, though it does not count */
        return gp_job_check_selection(request->only, snapshot, err);
    return request->only ? gp_selection_check(request->only, gpu_count(snapshot), err) : 0;
}

static int decide(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                  struct gp_pick_request *request, struct gp_pick *ret, struct gp_err *err)
{
    int r = request->is_all ? count_all(snapshot, request, err) : 0;
    if (r < 0)
        return r;
    drop_own(leases);
    if (gp_pick_make(snapshot, leases, request, ret) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const struct gp_selection *named[] = {request->only, request->prefer, request->avoid};
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(named); i++)
        if (named[i] && !request->visible)
            r = gp_selection_check(named[i], gpu_count(snapshot), err);
    if (r < 0)
        gp_pick_fini(ret);
    return r;
}

int gp_job_decide(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                  struct gp_pick_request *request, bool ignore_mask, struct gp_pick *ret,
                  struct gp_err *err)
{
    const char *mask = ignore_mask ? NULL : getenv("CUDA_VISIBLE_DEVICES");
    const struct gp_device *visible[GP_VISIBLE_MAX];
    request->visible = mask ? visible : NULL;
    request->visible_count = mask ? gp_visible_rows(snapshot, mask, visible) : 0;
    int r = decide(snapshot, leases, request, ret, err);
    request->visible = NULL;
    return r;
}

int gp_job_refuse(enum gp_pick_state state, const char *why, bool has_waited, struct gp_err *err)
{
    if (state == GP_PICK_NEVER)
        return gp_err_set(err, GP_ENEVER, "%s", why);
    return has_waited ? gp_err_set(err, GP_EEXPIRED, "gave up waiting: %s", why)
                      : gp_err_set(err, GP_EBUSY, "%s", why);
}

/* Of the counts from request->count to at_most, the highest that fits. */
static int decide_most(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                       const struct gp_job_choice *choice, struct gp_pick *ret, struct gp_err *err)
{
    struct gp_pick_request *request = choice->request;
    const unsigned least = request->count;
    int r;
    for (request->count = choice->at_most > least ? choice->at_most : least;; request->count--) {
        r = gp_job_decide(snapshot, leases, request, choice->ignore_mask, ret, err);
        if (r < 0 || ret->state == GP_PICK_FITS || request->count == least || request->is_all)
            break;
        gp_pick_fini(ret);
    }
    request->count = least;
    return r;
}

static void say_wait(const struct gp_job_choice *choice, const char *why,
                     char said[GP_PICK_WHY_SIZE])
{
    if (choice->on_wait && strcmp(why, said) != 0)
        choice->on_wait(choice->context, why);
    (void)snprintf(said, GP_PICK_WHY_SIZE, "%s", why);
}

int gp_job_choose(struct gp_sampler *sampler, const struct gp_job_choice *choice,
                  struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    const uint64_t until_ns = gp_clock_mono_ns() + choice->wait_ns;
    char said[GP_PICK_WHY_SIZE] = "";
    for (;;) {
        struct gp_snapshot *snapshot = NULL;
        struct gp_leases leases = {.items = NULL};
        struct gp_pick pick = {.units = NULL};
        const bool is_last = gp_clock_mono_ns() >= until_ns;
        int r = gp_sampler_tick(sampler, &snapshot, err);
        if (r == 0)
            r = gp_leases_read(&leases, err);
        if (r == 0)
            r = decide_most(snapshot, &leases, choice, &pick, err);
        const bool fits =
            pick.state == GP_PICK_FITS || (pick.state == GP_PICK_LATER && choice->accepts_later);
        const bool is_over = r < 0 || is_last || fits || pick.state == GP_PICK_NEVER;
        if (r == 0 && is_over && (fits || choice->explains))
            r = choice->show(choice->context, snapshot, &pick, err);
        if (choice->is_brief)
            pick.why[strcspn(pick.why, ";")] = '\0';
        if (r == 0 && is_over && !fits)
            r = gp_job_refuse(pick.state, pick.why, choice->wait_ns > 0, err);
        else if (!is_over)
            say_wait(choice, pick.why, said);
        gp_pick_fini(&pick); /* points into the leases and the snapshot */
        gp_leases_fini(&leases);
        gp_snapshot_free(snapshot);
        if (is_over)
            return r;
        if (choice->is_cancelled && choice->is_cancelled(choice->context))
            return gp_err_set(err, GP_EINTR, "interrupted");
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- the chosen GPUs as text ---- */

void gp_job_add_mask(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_pick *pick, bool uuid)
{
    for (size_t i = 0; i < pick->chosen_count; i++) {
        const struct gp_device *device = pick->units[pick->chosen[i]].device;
        int index = gp_visible_index(snapshot, device);
        gp_strbuf_adds(sb, i > 0 ? "," : "");
        if (uuid || index < 0)
            gp_strbuf_adds(sb, gp_device_text(device, GP_UUID, ""));
        else
            gp_strbuf_addf(sb, "%d", index);
    }
}

void gp_job_add_ids(struct gp_strbuf *sb, const struct gp_pick *pick)
{
    for (size_t i = 0; i < pick->chosen_count; i++) {
        char label[GP_DEVICE_LABEL_SIZE];
        gp_device_label(pick->units[pick->chosen[i]].device, label);
        gp_strbuf_addf(sb, "%s%s", i > 0 ? "," : "", label);
    }
}

void gp_job_add_place(struct gp_strbuf *sb, const struct gp_pick *pick, const char *mask)
{
    const struct gp_device *devices[GP_LEASE_GPUS];
    struct gp_strbuf ids = GP_STRBUF_INIT(IDS_SIZE);
    size_t count = 0;
    for (; count < pick->chosen_count && count < GP_ARRAY_LEN(devices); count++)
        devices[count] = pick->units[pick->chosen[count]].device;
    gp_job_add_ids(&ids, pick);
    gp_pick_add_gpus(sb, devices, count);
    if (strcmp(ids.buf, mask) != 0)
        gp_strbuf_addf(sb, " (CUDA_VISIBLE_DEVICES=%s)", mask);
    gp_strbuf_fini(&ids);
}

/* ---- all GPUs ---- */

static const char *const states[] = {
    [GP_PICK_FITS] = "free",
    [GP_PICK_LATER] = "busy",
    [GP_PICK_NEVER] = "unsuitable",
};

/* A GPU that is lost, or needs a reset, may recover, but nothing computes on it. */
static const char *state_of(const struct gp_pick_unit *unit)
{
    return unit->obstacle == GP_PICK_SICK ? "unavailable" : states[unit->state];
}

/* Suspended processes without a reservation: they need the GPU when they are resumed. */
static void add_suspended(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                          const struct gp_device *device)
{
    struct gp_strbuf pids = GP_STRBUF_INIT(IDS_SIZE);
    double bytes = 0;
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *v = gp_process_value(p, GP_PROCESS_SUSPENDED);
        if (!gp_value_is_present(v))
            continue;
        bytes += (double)v->i;
        gp_strbuf_addf(&pids, "%s%lld", pids.len > 0 ? ", " : "",
                       (long long)gp_process_value(p, GP_PID)->i);
    }
    if (pids.len > 0)
        gp_strbuf_addf(sb, "; %.1f GiB suspended of pid%s %s", bytes / 0x1p30,
                       strchr(pids.buf, ',') ? "s" : "", pids.buf);
    gp_strbuf_fini(&pids);
}

void gp_job_add_units(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_pick *pick, size_t room)
{
    for (size_t i = 0; i < pick->count; i++) {
        char label[GP_DEVICE_LABEL_SIZE];
        const struct gp_pick_unit *unit = &pick->units[i];
        if (unit->obstacle == GP_PICK_NOT_REQUESTED)
            continue;
        struct gp_strbuf line = GP_STRBUF_INIT(1 << 12);
        gp_device_label(unit->device, label);
        if (unit->state == GP_PICK_FITS)
            gp_strbuf_addf(&line, "GPU %s: %s (%.1f GiB)", label,
                           unit->is_chosen ? "selected" : "free", unit->free / 0x1p30);
        else
            gp_strbuf_addf(&line, "GPU %s: %s: %s", label, state_of(unit), unit->why);
        if (unit->state == GP_PICK_FITS)
            add_suspended(&line, snapshot, unit->device);
        gp_utf8_add_line(sb, line.buf, line.len, room);
        gp_strbuf_fini(&line);
    }
}

static json_t *lease_object(const struct gp_snapshot *snapshot, const struct gp_lease *lease)
{
    char user[64];
    if (!lease)
        return json_null();
    (void)gp_lease_user(lease, user, sizeof(user));
    return json_pack("{s:s, s:s, s:i, s:I, s:b, s:s}", "user", user, "name",
                     lease->name[0] ? lease->name : lease->command, "uid", (int)lease->uid, "pid",
                     (json_int_t)lease->pid, "suspended", gp_pick_is_suspended(snapshot, lease),
                     "file", lease->path);
}

static json_t *unit_object(const struct gp_snapshot *snapshot, const struct gp_pick_unit *unit)
{
    return json_pack("{s:i, s:s, s:b, s:s, s:s, s:o, s:I}", "gpu", (int)unit->device->index, "uuid",
                     gp_device_text(unit->device, GP_UUID, ""), "selected", (int)unit->is_chosen,
                     "state", state_of(unit), "reason", unit->why, "reservation",
                     lease_object(snapshot, unit->lease), "free",
                     (json_int_t)(unit->free > 0 ? unit->free : 0));
}

void gp_job_add_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_pick *pick, const char *mask)
{
    json_t *document = gp_json_document(snapshot, "gpulse.pick/1");
    json_t *gpus = json_array();
    for (size_t i = 0; i < pick->count; i++)
        (void)json_array_append_new(gpus, unit_object(snapshot, &pick->units[i]));
    (void)json_object_set_new(document, "state", json_string(states[pick->state]));
    (void)json_object_set_new(document, "reason", json_string(pick->why));
    (void)json_object_set_new(document, "visible_devices", json_string(mask));
    (void)json_object_set_new(document, "gpus", gpus);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

static const struct gp_device *find_silent(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].status == GP_STATUS_TIMEOUT)
            return &snapshot->devices[i];
    return NULL;
}

void gp_job_add_mask_note(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                          const struct gp_pick *pick, const char *mask)
{
    struct gp_strbuf ids = GP_STRBUF_INIT(IDS_SIZE);
    const struct gp_device *silent = find_silent(snapshot);
    const bool is_mig = pick->units[pick->chosen[0]].device->is_mig;
    gp_job_add_ids(&ids, pick);
    if (!is_mig && silent)
        gp_strbuf_addf(sb,
                       "UUIDs instead of indices, because GPU %u does not respond, and CUDA may or "
                       "may not count it",
                       silent->index);
    else if (!is_mig && strcmp(ids.buf, mask) != 0) {
        gp_job_add_place(sb, pick, mask);
        gp_strbuf_adds(sb, ": CUDA does not count GPUs that do not respond");
    }
    gp_strbuf_fini(&ids);
}
