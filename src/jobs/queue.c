#include "jobs/queue.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/pick.h"
#include "model/snapshot.h"
#include "out/columns.h"
#include "out/json.h"
#include "out/procs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDENT "                "

enum { GPUS_SIZE = 128, TIME_SIZE = 32 };

/* What it is called in the table. */
static const char *title(const struct gp_lease *lease)
{
    return lease->name[0] ? lease->name : lease->command;
}

/* ---- the GPUs of a lease ---- */

/* A GPU that has not responded yet: its UUID is unknown. */
static bool is_unidentified(const struct gp_device *device)
{
    return !*gp_device_text(device, GP_UUID, "") && device->status != GP_STATUS_OK;
}

static size_t count_unidentified(const struct gp_snapshot *snapshot)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->device_count; i++)
        count += is_unidentified(&snapshot->devices[i]);
    return count;
}

/* Whether the lease has GPUs that no responding one is. */
static bool has_others(const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    size_t found = 0;
    for (size_t i = 0; i < snapshot->device_count; i++)
        found += gp_lease_has_gpu(lease, gp_device_text(&snapshot->devices[i], GP_UUID, ""));
    return found < lease->gpu_count;
}

/* If only one GPU is unidentified, it is the one that is missing. */
static bool has_gpu(const struct gp_lease *lease, const struct gp_snapshot *snapshot,
                    const struct gp_device *device)
{
    return gp_lease_has_gpu(lease, gp_device_text(device, GP_UUID, "")) ||
           (is_unidentified(device) && count_unidentified(snapshot) == 1 &&
            has_others(lease, snapshot));
}

/* "0-3", "1:0", as in gpulse ps; "0,?" if it has one of several GPUs that have not responded. GPUs
 * that no longer exist are left out. */
static struct gp_proc_row gpus_of(const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    struct gp_proc_row row = {.pid = lease->pid};
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (has_gpu(lease, snapshot, &snapshot->devices[i]))
            gp_proc_row_add_gpu(&row, &snapshot->devices[i]);
    const size_t n = strlen(row.gpus);
    if (count_unidentified(snapshot) > 1 && has_others(lease, snapshot))
        (void)snprintf(row.gpus + n, sizeof(row.gpus) - n, "%s", n > 0 ? ",?" : "?");
    return row;
}

/* Whether it has or could get a selected GPU. */
static bool concerns(const struct gp_lease *lease, const struct gp_snapshot *snapshot,
                     struct gp_selection *selection)
{
    bool any = !selection;
    for (size_t i = 0; selection && i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const bool is_possible = is_unidentified(device) && has_others(lease, snapshot);
        any = any || (gp_pick_matches(selection, device) &&
                      (is_possible || has_gpu(lease, snapshot, device)));
    }
    return any;
}

/* ---- rows ---- */

static struct gp_amount age_of(const struct gp_lease *lease, uint64_t wall_ns)
{
    bool known = wall_ns > lease->since_wall_ns;
    return (struct gp_amount){known ? (double)(wall_ns - lease->since_wall_ns) / 1e9 : 0, known,
                              false};
}

/* When its command will be terminated; 0: it does not run, or has no limit. */
static uint64_t end_of(const struct gp_lease *lease)
{
    return lease->state == GP_LEASE_HELD && lease->limit_ns > 0
               ? lease->since_wall_ns + lease->limit_ns
               : 0;
}

static struct gp_amount left_of(const struct gp_lease *lease, uint64_t wall_ns)
{
    const uint64_t end_ns = end_of(lease);
    const uint64_t left_ns = end_ns > wall_ns ? end_ns - wall_ns : 0;
    return (struct gp_amount){(double)left_ns / 1e9, end_ns > 0, false};
}

static const char *state_of(const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    if (lease->state != GP_LEASE_HELD)
        return "waiting";
    return gp_pick_is_suspended(snapshot, lease) ? "suspended" : "running";
}

/* "0-3"; for a waiting job: "2 (any of 0-7)". */
static void put_gpus(char *ret, size_t size, const struct gp_lease *lease,
                     const struct gp_snapshot *snapshot)
{
    const struct gp_proc_row row = gpus_of(lease, snapshot);
    if (lease->state == GP_LEASE_HELD || lease->wanted == lease->gpu_count)
        (void)snprintf(ret, size, "%s", row.gpus);
    else
        (void)snprintf(ret, size, "%u (any of %s)", lease->wanted, row.gpus);
}

/* ---- what a waiting job waits for ---- */

typedef void add_reason(void *context, const struct gp_device *const *devices, size_t count,
                        const char *why);

/* Nothing for a running job, or if memory is exhausted. */
static void for_each_reason(const struct gp_leases *leases, const struct gp_lease *lease,
                            const struct gp_snapshot *snapshot, add_reason *add, void *context)
{
    struct gp_pick pick;
    if (lease->state == GP_LEASE_HELD || gp_pick_make_waiting(snapshot, leases, lease, &pick) < 0)
        return;
    const struct gp_device **devices = calloc(pick.count + 1, sizeof(*devices));
    const struct gp_pick_unit *unit;
    size_t at = 0;
    size_t count;
    while (devices && (unit = gp_pick_next_obstacle(&pick, &at, devices, &count)))
        add(context, devices, count, unit->why);
    free(devices);
    gp_pick_fini(&pick);
}

enum { STATE, LINE, USER, PID, GPUS, MEM, FOR, LEFT, JOB, COLUMN_COUNT };

static const struct gp_text_column usual_columns[COLUMN_COUNT] = {
    [STATE] = {"STATE", 9, .is_left = true},
    [LINE] = {"LINE", 4, .drop = 2},
    [USER] = {"USER", 9, .drop = 5, .is_left = true},
    [PID] = {"PID", 7},
    [GPUS] = {"GPUS", 9, .is_left = true},
    [MEM] = {"MEM", 6, .drop = 4, .is_left = true},
    [FOR] = {"FOR", 6, .drop = 3},
    [LEFT] = {"LEFT", 6, .drop = 1},
    [JOB] = {"JOB", 12, .is_left = true},
};

struct table {
    struct gp_strbuf *sb;
    const struct gp_leases *leases;
    const struct gp_snapshot *snapshot;
    size_t room;
    struct gp_text_column columns[COLUMN_COUNT];
    uint32_t shown;           /* of them */
    struct gp_strbuf reasons; /* why the last waiting job does not run */
};

/* Lines of text, and their width. */
struct words {
    struct gp_strbuf *sb;
    size_t room;
};

static bool shares_memory(const struct gp_lease *lease)
{
    return lease->bytes && lease->is_shared;
}

/* A line for each group of GPUs. */
static void add_words(void *context, const struct gp_device *const *devices, size_t count,
                      const char *why)
{
    const struct words *words = context;
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&line, INDENT);
    gp_pick_add_gpus(&line, devices, count);
    gp_strbuf_addf(&line, ": %s", why);
    gp_utf8_add_line(words->sb, line.buf, line.len, words->room);
    gp_strbuf_fini(&line);
}

/* Below a waiting job, unless the one above waits for the same. */
static void add_reasons(struct table *table, const struct gp_lease *lease)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct words words = {&sb, table->room};
    for_each_reason(table->leases, lease, table->snapshot, add_words, &words);
    const bool is_same =
        sb.len > 0 && table->reasons.len == sb.len && strcmp(table->reasons.buf, sb.buf) == 0;
    gp_strbuf_adds(table->sb, is_same ? INDENT "as above\n" : sb.buf ? sb.buf : "");
    gp_strbuf_fini(&table->reasons);
    table->reasons = sb;
}

static void add_object(void *context, const struct gp_device *const *devices, size_t count,
                       const char *why)
{
    struct gp_proc_row row = {.pid = 0};
    for (size_t i = 0; i < count; i++)
        gp_proc_row_add_gpu(&row, devices[i]);
    (void)json_array_append_new(context, json_pack("{s:s, s:s}", "gpus", row.gpus, "reason", why));
}

static void put_time(char ret[TIME_SIZE], struct gp_amount seconds)
{
    struct gp_strbuf text = GP_STRBUF_INIT(64);
    gp_proc_format_amount(&text, GP_PROC_TIME_COLUMN, seconds);
    (void)snprintf(ret, TIME_SIZE, "%s", text.buf ? text.buf : "");
    gp_strbuf_fini(&text);
}

/* cells: NULL for the titles. */
static void add_line(const struct table *table, const char *const *cells)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    gp_text_columns_add(&line, table->columns, COLUMN_COUNT, table->shown, cells);
    gp_utf8_add_line(table->sb, line.buf, line.len, table->room);
    gp_strbuf_fini(&line);
}

static void add_row(struct table *table, const struct gp_lease *lease)
{
    const size_t position = gp_lease_position(table->leases, lease);
    const uint64_t now_ns = table->snapshot->wall_ns;
    char place[24] = "-";
    char memory[32] = "all";
    char user[10], pid[16], gpus[GPUS_SIZE], age[TIME_SIZE], left[TIME_SIZE];
    if (shares_memory(lease))
        (void)snprintf(memory, sizeof(memory), "%.1fG", (double)lease->bytes / 0x1p30);
    if (position > 0)
        (void)snprintf(place, sizeof(place), "%zu", position);
    (void)snprintf(user, sizeof(user), "%.9s", lease->user);
    (void)snprintf(pid, sizeof(pid), "%u", lease->pid);
    put_gpus(gpus, sizeof(gpus), lease, table->snapshot);
    put_time(age, age_of(lease, now_ns));
    put_time(left, left_of(lease, now_ns));
    const char *const cells[COLUMN_COUNT] = {
        [STATE] = state_of(lease, table->snapshot),
        [LINE] = place,
        [USER] = user,
        [PID] = pid,
        [GPUS] = gpus,
        [MEM] = memory,
        [FOR] = age,
        [LEFT] = left,
        [JOB] = title(lease),
    };
    add_line(table, cells);
    add_reasons(table, lease);
}

static json_t *lease_object(const struct gp_leases *leases, const struct gp_lease *lease,
                            const struct gp_snapshot *snapshot)
{
    const size_t position = gp_lease_position(leases, lease);
    const struct gp_proc_row row = gpus_of(lease, snapshot);
    const bool is_suspended = gp_pick_is_suspended(snapshot, lease);
    json_t *gpus = json_array();
    json_t *reasons = json_array();
    for_each_reason(leases, lease, snapshot, add_object, reasons);
    const uint64_t end_ns = end_of(lease);
    char since[GP_RFC3339_SIZE];
    char until[GP_RFC3339_SIZE];
    gp_clock_rfc3339(lease->since_wall_ns, since);
    gp_clock_rfc3339(end_ns, until);
    for (size_t i = 0; i < lease->gpu_count; i++)
        (void)json_array_append_new(gpus, json_string(lease->gpus[i]));
    return json_pack("{s:s, s:o, s:b, s:s, s:I, s:s, s:o, s:i, s:b, s:I, s:I, s:s, s:s, s:o, s:s, "
                     "s:s?}",
                     "state", lease->state == GP_LEASE_HELD ? "held" : "waiting", "position",
                     position > 0 ? json_integer((json_int_t)position) : json_null(), "suspended",
                     (int)is_suspended, "user", lease->user, "pid", (json_int_t)lease->pid, "gpus",
                     row.gpus, "uuids", gpus, "wanted", (int)lease->wanted, "shared",
                     (int)lease->is_shared, "memory", (json_int_t)lease->bytes, "ticket",
                     (json_int_t)lease->ticket, "name", lease->name, "command", lease->command,
                     "waits_for", reasons, "since", since, "until", end_ns > 0 ? until : NULL);
}

void gp_queue_add_json(struct gp_strbuf *sb, const struct gp_leases *leases,
                       const struct gp_snapshot *snapshot, struct gp_selection *selection)
{
    json_t *document = gp_json_document(snapshot, "gpulse.queue/1");
    json_t *list = json_array();
    for (size_t i = 0; i < leases->count; i++)
        if (concerns(&leases->items[i], snapshot, selection))
            (void)json_array_append_new(list, lease_object(leases, &leases->items[i], snapshot));
    (void)json_object_set_new(document, "leases", list);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

/* MEM and LEFT are shown if a row needs them, and the GPUs have the width that the rows need; if
 * not all columns fit, no more. Returns the number of rows. */
static size_t choose_columns(struct table *table, struct gp_selection *selection)
{
    uint32_t wanted = (UINT32_C(1) << COLUMN_COUNT) - 1;
    size_t gpus_width = strlen(usual_columns[GPUS].title);
    size_t count = 0;
    bool has_memory = false;
    bool has_limits = false;
    memcpy(table->columns, usual_columns, sizeof(usual_columns));
    for (size_t i = 0; i < table->leases->count; i++) {
        const struct gp_lease *lease = &table->leases->items[i];
        char gpus[GPUS_SIZE];
        if (!concerns(lease, table->snapshot, selection))
            continue;
        put_gpus(gpus, sizeof(gpus), lease, table->snapshot);
        gpus_width = strlen(gpus) > gpus_width ? strlen(gpus) : gpus_width;
        has_memory = has_memory || shares_memory(lease);
        has_limits = has_limits || end_of(lease) > 0;
        count++;
    }
    wanted &= ~(has_memory ? 0 : UINT32_C(1) << MEM) & ~(has_limits ? 0 : UINT32_C(1) << LEFT);
    if (gpus_width > table->columns[GPUS].width)
        table->columns[GPUS].width = gpus_width;
    table->shown = gp_text_columns_fit(table->columns, COLUMN_COUNT, wanted, 0, table->room);
    if (table->shown == wanted)
        return count;
    table->columns[GPUS].width = gpus_width;
    table->shown = gp_text_columns_fit(table->columns, COLUMN_COUNT, wanted, 0, table->room);
    return count;
}

size_t gp_queue_add(struct gp_strbuf *sb, const struct gp_leases *leases,
                    const struct gp_snapshot *snapshot, struct gp_selection *selection, size_t room)
{
    struct table table = {sb, leases, snapshot, .room = room, .reasons = GP_STRBUF_INIT(1 << 20)};
    const size_t shown = choose_columns(&table, selection);
    if (shown == 0)
        return 0;
    add_line(&table, NULL);
    for (int waits = 0; waits < 2; waits++) /* those that wait come last, in their order */
        for (size_t i = 0; i < leases->count; i++)
            if ((leases->items[i].state != GP_LEASE_HELD) == waits &&
                concerns(&leases->items[i], snapshot, selection))
                add_row(&table, &leases->items[i]);
    gp_strbuf_fini(&table.reasons);
    return shown;
}

/* ---- a job by its name ---- */

int gp_queue_find(const struct gp_leases *leases, const char *name, uint32_t *ret_pid,
                  struct gp_err *err)
{
    enum { OWN, OWN_IN_PART, OTHERS, OTHERS_IN_PART, KINDS };
    const struct gp_lease *found[KINDS] = {NULL};
    size_t counts[KINDS] = {0};
    unsigned kind = OWN;
    for (size_t i = 0; i < leases->count; i++) {
        const struct gp_lease *lease = &leases->items[i];
        kind = lease->uid == getuid() ? OWN : OTHERS;
        kind += strcmp(title(lease), name) != 0;
        if (!strstr(title(lease), name))
            continue;
        found[kind] = lease;
        counts[kind]++;
    }
    for (kind = OWN; kind + 1 < KINDS && !found[kind];)
        kind++;
    const struct gp_lease *lease = found[kind];
    if (!lease)
        return gp_err_set(
            err, GP_ENODEV,
            "no job is called '%.80s'; gpulse queue lists the jobs of gpulse run, and GPUs "
            "are selected with -i",
            name);
    if (counts[kind] > 1)
        return gp_err_set(err, GP_EFAIL,
                          "%zu jobs match '%.80s'; give the PID of one: gpulse queue", counts[kind],
                          name);
    if (lease->state != GP_LEASE_HELD)
        return gp_err_set(err, GP_EFAIL, "the job '%.80s' still waits for GPUs: gpulse queue",
                          name);
    if (!gp_lease_is_visible(lease))
        return gp_err_set(err, GP_EFAIL,
                          "the job '%.80s' runs in another container, and its processes are not "
                          "known here",
                          name);
    *ret_pid = lease->pid;
    return 0;
}
