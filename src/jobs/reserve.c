#include "jobs/reserve.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SETTLE_MS = 1500,  /* keep retrying: requests made at the same moment get their GPUs within this
                          time */
    PASSING_MS = 1000, /* an earlier request younger than this may be about to get its GPUs */
    NAP_MS = 2,
    LOOK_S = 2, /* how often a waiting request looks for processes without a lease */
};

/* ---- the lease ---- */

static void describe(struct gp_reserve *gpus, char *const *argv, int argc)
{
    size_t n = 0;
    for (int i = 0; i < argc && n < sizeof(gpus->lease.command); i++)
        n += (size_t)snprintf(gpus->lease.command + n, sizeof(gpus->lease.command) - n, "%s%s",
                              i > 0 ? " " : "", argv[i]);
    (void)snprintf(gpus->lease.name, sizeof(gpus->lease.name), "%s",
                   gpus->plan->name ? gpus->plan->name : "");
    gpus->lease.id = gp_io_random();
    gpus->lease.pid = (uint32_t)getpid();
    gpus->lease.ns = gp_proc_own_ns();
    gpus->lease.is_shared = gpus->request.is_shared;
    gpus->lease.bytes = gpus->request.bytes;
    gpus->lease.limit_ns = gpus->request.limit_ns = gpus->plan->limit_ns;
}

/* The GPUs that it has, or that it could get one day. */
static void list_gpus(struct gp_lease *lease, const struct gp_pick *pick)
{
    lease->gpu_count = 0;
    for (size_t i = 0; i < pick->count && lease->gpu_count < GP_LEASE_GPUS; i++)
        if (pick->state == GP_PICK_FITS ? pick->units[i].is_chosen
                                        : pick->units[i].state != GP_PICK_NEVER)
            (void)snprintf(lease->gpus[lease->gpu_count++], GP_LEASE_UUID_SIZE, "%s",
                           gp_device_text(pick->units[i].device, GP_UUID, ""));
}

/* Copies a text that fits, and frees the buffer. Returns the error of the buffer. */
static int keep_text(char *ret, size_t size, struct gp_strbuf *sb)
{
    const int error = sb->error;
    (void)snprintf(ret, size, "%s", sb->buf);
    gp_strbuf_fini(sb);
    return error;
}

int gp_reserve_note(struct gp_reserve *gpus, const struct gp_snapshot *snapshot,
                    const struct gp_pick *pick, struct gp_err *err)
{
    struct gp_strbuf mask = GP_STRBUF_INIT(sizeof(gpus->mask) - 1);
    struct gp_strbuf ids = GP_STRBUF_INIT(sizeof(gpus->ids) - 1);
    struct gp_strbuf place = GP_STRBUF_INIT(sizeof(gpus->place) - 1);
    gp_job_add_mask(&mask, snapshot, pick, gpus->plan->uuid);
    int r = keep_text(gpus->mask, sizeof(gpus->mask), &mask);
    gp_job_add_ids(&ids, pick);
    gp_job_add_place(&place, pick, gpus->mask);
    const int of_ids = keep_text(gpus->ids, sizeof(gpus->ids), &ids);
    const int of_place = keep_text(gpus->place, sizeof(gpus->place), &place);
    r = r < 0 ? r : of_ids < 0 ? of_ids : of_place;
    if (r < 0)
        return gp_err_set(err, r, "%s", gp_err_text(r));
    for (size_t i = 0; gpus->plan->on_grant && i < pick->chosen_count; i++)
        gpus->plan->on_grant(gpus->plan->context, pick->units[pick->chosen[i]].device);
    return 0;
}

static int pick(struct gp_reserve *gpus, const struct gp_snapshot *snapshot,
                struct gp_leases *leases, uint64_t ticket, struct gp_pick *ret, struct gp_err *err)
{
    gpus->request.ticket = ticket;
    return gp_job_decide(snapshot, leases, &gpus->request, gpus->plan->ignore_mask, ret, err);
}

/* Who waits also counts reservations whose files were removed since it has seen them. */
static int read_leases(struct gp_reserve *gpus, struct gp_leases *ret, struct gp_err *err)
{
    return gp_leases_read_kept(ret, gpus->plan->wait_ns > 0 ? &gpus->kept : NULL, err);
}

static int write_lease(struct gp_reserve *gpus, enum gp_lease_state state,
                       const struct gp_pick *pick, struct gp_err *err)
{
    list_gpus(&gpus->lease, pick);
    gpus->lease.state = state;
    gpus->lease.wanted = gpus->request.count;
    gpus->lease.since_wall_ns = gp_clock_wall_ns();
    return gp_lease_write(state == GP_LEASE_WAITING ? &gpus->line : &gpus->held, &gpus->lease, err);
}

/* Claims the chosen GPUs, then reads all leases again. If another request has claimed one of them
 * as well, it steps back; of two, at least the later one does. */
static int claim(struct gp_reserve *gpus, const struct gp_snapshot *snapshot,
                 const struct gp_pick *chosen, bool *ret_won, struct gp_err *err)
{
    struct gp_leases leases;
    struct gp_pick again;
    *ret_won = false;
    int r = write_lease(gpus, GP_LEASE_CLAIMED, chosen, err);
    if (r == 0)
        r = read_leases(gpus, &leases, err);
    if (r < 0)
        return r;
    gp_leases_leave_out(&leases, gpus->lease.id);
    r = pick(gpus, snapshot, &leases, 0, &again, err);
    gp_leases_fini(&leases);
    if (r < 0)
        return r;
    *ret_won = true;
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->units[i].is_chosen && again.units[i].state != GP_PICK_FITS)
            *ret_won = false;
    gp_pick_fini(&again);
    if (*ret_won)
        r = gp_lease_confirm(&gpus->held, err);
    if (r < 0 && !gp_lease_was_removed(&gpus->held))
        return r;
    if (r < 0 || !*ret_won) { /* another reader may take a claim for one that was just dropped */
        *ret_won = false;
        gp_lease_drop(&gpus->held);
        return 0;
    }
    gpus->lease.state = GP_LEASE_HELD;
    gp_lease_drop(&gpus->line);
    return gp_reserve_note(gpus, snapshot, chosen, err);
}

/* Whether an earlier request has just arrived, and may get its GPUs in a moment. */
static bool is_one_passing(const struct gp_leases *leases, uint64_t ticket)
{
    uint64_t now_ns = gp_clock_wall_ns();
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].state == GP_LEASE_WAITING && leases->items[i].ticket < ticket &&
            leases->items[i].ticket + PASSING_MS * GP_NS_PER_MS > now_ns)
            return true;
    return false;
}

/* Reads the leases once and acts on them: the request may enter the waiting line, or get its GPUs.
 * *ret_again: retrying soon may have another result. */
static int step(struct gp_reserve *gpus, const struct gp_snapshot *snapshot, bool waits,
                struct gp_pick *ret, bool *ret_again, struct gp_err *err)
{
    struct gp_leases leases;
    bool won = true;
    int r = read_leases(gpus, &leases, err);
    if (r < 0)
        return r;
    const struct gp_lease *own = gp_leases_find(&leases, gpus->lease.id, GP_LEASE_WAITING);
    const bool stands = own;
    const uint64_t ticket = own ? own->ticket : UINT64_MAX;
    *ret_again = is_one_passing(&leases, ticket);
    r = pick(gpus, snapshot, &leases, ticket, ret, err);
    gp_leases_fini(&leases);
    if (r < 0)
        return r;
    if (!stands && (ret->state == GP_PICK_FITS || (ret->state == GP_PICK_LATER && waits))) {
        r = write_lease(gpus, GP_LEASE_WAITING, ret, err);
        *ret_again = true;
        won = false;
    } else if (ret->state == GP_PICK_FITS) {
        r = claim(gpus, snapshot, ret, &won, err);
        *ret_again = !won;
    }
    if (ret->state == GP_PICK_FITS && !won) {
        ret->state = GP_PICK_LATER;
        (void)snprintf(ret->why, sizeof(ret->why), "other jobs keep claiming the same GPUs");
    }
    if (r < 0)
        gp_pick_fini(ret);
    return r;
}

static int decide(struct gp_reserve *gpus, const struct gp_snapshot *snapshot, bool waits,
                  enum gp_pick_state *ret_state, char why[GP_PICK_WHY_SIZE], struct gp_err *err)
{
    const struct timespec nap = gp_clock_timespec(NAP_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + SETTLE_MS * GP_NS_PER_MS;
    for (bool again = true; again;) {
        struct gp_pick pick;
        bool was_standing = gpus->line.fd >= 0;
        int r = step(gpus, snapshot, waits, &pick, &again, err);
        if (r < 0)
            return r;
        *ret_state = pick.state;
        (void)snprintf(why, GP_PICK_WHY_SIZE, "%s", pick.why);
        bool has_entered = !was_standing && gpus->line.fd >= 0; /* and has not tried to claim yet */
        again =
            again && pick.state == GP_PICK_LATER && (has_entered || gp_clock_mono_ns() < until_ns);
        gp_pick_fini(&pick);
        if (again && was_standing)
            (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* The leases show what others reserved while the GPUs were sampled. */
static int look_and_decide(struct gp_reserve *gpus, bool waits, enum gp_pick_state *ret_state,
                           char why[GP_PICK_WHY_SIZE], struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(gpus->sampler, &snapshot, err);
    if (r < 0)
        return r;
    r = decide(gpus, snapshot, waits, ret_state, why, err);
    gp_snapshot_free(snapshot);
    return r;
}

/* Most waiting requests wait for other waiting requests: they need not query the driver. */
static bool is_behind(const struct gp_reserve *gpus)
{
    struct gp_leases leases;
    if (gp_leases_read(&leases, NULL) < 0)
        return false;
    const struct gp_lease *own = gp_leases_find(&leases, gpus->lease.id, GP_LEASE_WAITING);
    bool behind = own && gp_lease_is_behind(&leases, own, gp_clock_wall_ns());
    gp_leases_fini(&leases);
    return behind;
}

static bool is_cancelled(const struct gp_reserve_plan *plan)
{
    return plan->is_cancelled && plan->is_cancelled(plan->context);
}

/* Waits until a lease changes, until this time, or some seconds: processes without a lease are
 * visible only through the driver. A minimum delay keeps frequent file changes from using the CPU.
 */
static void await_news(const struct gp_reserve *gpus, int watch, uint64_t end_ns)
{
    const struct timespec nap = gp_clock_timespec(10 * NAP_MS * GP_NS_PER_MS);
    const uint64_t look_ns = gp_clock_mono_ns() + LOOK_S * GP_NS_PER_S;
    const uint64_t until_ns = end_ns < look_ns ? end_ns : look_ns;
    uint64_t now_ns;
    bool changed = false;
    (void)nanosleep(&nap, NULL);
    while (!changed && !is_cancelled(gpus->plan) && (now_ns = gp_clock_mono_ns()) < until_ns) {
        struct pollfd fd = {watch, POLLIN, 0};
        if (poll(&fd, 1, (int)((until_ns - now_ns) / GP_NS_PER_MS) + 1) > 0)
            changed = gp_statedirs_changed(watch);
    }
}

/* "; third in line (gpulse queue shows it)" */
static void put_place(const struct gp_reserve *gpus, char ret[80])
{
    static const char *const words[] = {"", "first", "second", "third"};
    struct gp_leases leases;
    char word[32];
    ret[0] = '\0';
    if (gp_leases_read(&leases, NULL) < 0)
        return;
    const struct gp_lease *own = gp_leases_find(&leases, gpus->lease.id, GP_LEASE_WAITING);
    const size_t position = own ? gp_lease_position(&leases, own) : 0;
    if (position < GP_ARRAY_LEN(words))
        (void)snprintf(word, sizeof(word), "%s", words[position]);
    else
        (void)snprintf(word, sizeof(word), "number %zu", position);
    if (position > 0)
        (void)snprintf(ret, 80, "; %s in line (gpulse queue shows it)", word);
    gp_leases_fini(&leases);
}

static int acquire(struct gp_reserve *gpus, struct gp_err *err)
{
    const struct gp_reserve_plan *o = gpus->plan;
    uint64_t until_ns = gp_clock_mono_ns() + o->wait_ns;
    enum gp_pick_state state = GP_PICK_LATER;
    char why[GP_PICK_WHY_SIZE] = "";
    char said[GP_PICK_WHY_SIZE] = "";
    int watch = -1; /* closed only at the end: close() takes the kernel 10 ms */
    int r = look_and_decide(gpus, o->wait_ns > 0, &state, why, err);
    while (r == 0 && state == GP_PICK_LATER && o->wait_ns && gp_clock_mono_ns() < until_ns) {
        if (o->on_wait && strcmp(why, said) != 0) {
            char place[80];
            char reason[GP_PICK_WHY_SIZE + sizeof(place)];
            put_place(gpus, place);
            (void)snprintf(reason, sizeof(reason), "%s%s", why, place);
            o->on_wait(o->context, reason);
        }
        (void)snprintf(said, sizeof(said), "%s", why);
        bool is_watched = watch >= 0;
        gp_statedirs_watch(NULL, &watch);
        if (is_watched || watch < 0) /* otherwise it may have changed before it was watched */
            await_news(gpus, watch, until_ns);
        if (is_cancelled(o))
            r = gp_err_set(err, GP_EINTR, "interrupted");
        else if (!is_behind(gpus))
            r = look_and_decide(gpus, true, &state, why, err);
    }
    if (watch >= 0)
        (void)close(watch);
    gp_leases_kept_fini(&gpus->kept);
    if (r < 0 || state == GP_PICK_FITS)
        return r;
    gp_lease_drop(&gpus->line);
    return gp_job_refuse(state, why, o->wait_ns > 0, err);
}

void gp_reserve_init(struct gp_reserve *gpus)
{
    gpus->line = gpus->held = GP_LEASE_NO_NOTE;
}

int gp_reserve_open(struct gp_reserve *gpus, const struct gp_reserve_plan *plan,
                    struct gp_sampler *sampler, char *const *argv, int argc, struct gp_err *err)
{
    gpus->plan = plan;
    gpus->request = plan->request;
    gpus->sampler = sampler;
    describe(gpus, argv, argc);
    return acquire(gpus, err);
}

/* ---- while it is held ---- */

/* Some systems remove files below /dev/shm at logout. Who comes before the reservation is written
 * again can be granted the same GPUs. */
bool gp_reserve_keep(struct gp_reserve *gpus, char why[GP_RESERVE_WHY_SIZE])
{
    struct gp_err err;
    struct gp_leases leases;
    char user[sizeof(gpus->lease.user)];
    if (gp_lease_was_removed(&gpus->held)) {
        gpus->is_lost = gp_lease_write(&gpus->held, &gpus->lease, &err) < 0;
        gpus->was_removed = true;
    }
    if (gpus->is_lost)
        (void)snprintf(why, GP_RESERVE_WHY_SIZE,
                       "the reservation of %s was removed, and cannot be restored: %s", gpus->place,
                       err.text);
    if (gpus->is_lost || !gpus->was_removed || gp_leases_read(&leases, NULL) < 0)
        return !gpus->is_lost;
    const struct gp_lease *rival = gp_leases_rival(&leases, &gpus->lease);
    gpus->was_removed = rival;
    if (rival) {
        (void)gp_lease_user(rival, user, sizeof(user));
        (void)snprintf(
            why, GP_RESERVE_WHY_SIZE,
            "the reservation of %s was removed, and user %s has reserved the same GPU since",
            gpus->place, user);
    }
    gp_leases_fini(&leases);
    return !gpus->was_removed;
}

void gp_reserve_close(struct gp_reserve *gpus)
{
    gp_lease_drop(&gpus->line);
    gp_lease_drop(&gpus->held);
}
