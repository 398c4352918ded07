/* gpulse queue: GPU reservations and the waiting line. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/pick.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "out/procs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct queue_options {
    const char *format;
};

static const struct gp_opt options[] = {
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json",
     .offset = offsetof(struct queue_options, format), .help = "output format (default table)"},
    GP_OPT_END,
};

/* "0-3", "1:0", as in gpulse ps; GPUs that no longer exist are left out. */
static struct gp_proc_row gpus_of(const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    struct gp_proc_row row = {.pid = lease->pid};
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (gp_lease_has_gpu(lease, gp_device_text(&snapshot->devices[i], GP_UUID, "")))
            gp_proc_row_add_gpu(&row, &snapshot->devices[i]);
    return row;
}

static struct gp_amount age_of(const struct gp_lease *lease, uint64_t wall_ns)
{
    bool known = wall_ns > lease->since_wall_ns;
    return (struct gp_amount){known ? (double)(wall_ns - lease->since_wall_ns) / 1e9 : 0, known,
                              false};
}

static const char *state_of(const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    if (lease->state != GP_LEASE_HELD)
        return "waiting";
    return gp_pick_is_suspended(snapshot, lease) ? "suspended" : "running";
}

/* "waiting 2": the second in the line. */
static void add_row(struct gp_strbuf *sb, const struct gp_leases *leases,
                    const struct gp_lease *lease, const struct gp_snapshot *snapshot)
{
    char user[64];
    char state[32];
    size_t position = gp_lease_position(leases, lease);
    char memory[32] = "all";
    char wanted[48];
    const struct gp_proc_row row = gpus_of(lease, snapshot);
    bool held = lease->state == GP_LEASE_HELD;
    (void)gp_lease_user(lease, user, sizeof(user));
    if (lease->bytes && lease->is_shared)
        (void)snprintf(memory, sizeof(memory), "%.1fG", (double)lease->bytes / 0x1p30);
    if (held)
        (void)snprintf(wanted, sizeof(wanted), "%s", row.gpus);
    else
        (void)snprintf(wanted, sizeof(wanted), "%u of %s", lease->wanted, row.gpus);
    if (position > 0)
        (void)snprintf(state, sizeof(state), "waiting %zu", position);
    else
        (void)snprintf(state, sizeof(state), "%s", state_of(lease, snapshot));
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&line, "%-9s  %-9.9s  %7u  %-9s  %-6s  ", state, user, lease->pid, wanted,
                   memory);
    gp_proc_format_amount(&line, GP_PROC_TIME_COLUMN, age_of(lease, snapshot->wall_ns));
    gp_strbuf_addf(&line, "  %s", lease->name[0] ? lease->name : lease->command);
    gp_utf8_add_line(sb, line.buf, line.len, gp_io_columns());
    gp_strbuf_fini(&line);
}

static json_t *lease_object(const struct gp_leases *leases, const struct gp_lease *lease,
                            const struct gp_snapshot *snapshot)
{
    char user[64];
    const size_t position = gp_lease_position(leases, lease);
    const struct gp_proc_row row = gpus_of(lease, snapshot);
    const bool is_suspended = gp_pick_is_suspended(snapshot, lease);
    json_t *gpus = json_array();
    (void)gp_lease_user(lease, user, sizeof(user));
    for (size_t i = 0; i < lease->gpu_count; i++)
        (void)json_array_append_new(gpus, json_string(lease->gpus[i]));
    return json_pack("{s:s, s:o, s:b, s:s, s:I, s:s, s:o, s:i, s:b, s:I, s:I, s:s, s:s}", "state",
                     lease->state == GP_LEASE_HELD ? "held" : "waiting", "position",
                     position > 0 ? json_integer((json_int_t)position) : json_null(), "suspended",
                     (int)is_suspended, "user", user, "pid", (json_int_t)lease->pid, "gpus",
                     row.gpus, "uuids", gpus, "wanted", (int)lease->wanted, "shared",
                     (int)lease->is_shared, "memory", (json_int_t)lease->bytes, "ticket",
                     (json_int_t)lease->ticket, "name", lease->name, "command", lease->command);
}

static void add_json(struct gp_strbuf *sb, const struct gp_leases *leases,
                     const struct gp_snapshot *snapshot)
{
    json_t *document = gp_json_document(snapshot, "gpulse.queue/1");
    json_t *list = json_array();
    for (size_t i = 0; i < leases->count; i++)
        (void)json_array_append_new(list, lease_object(leases, &leases->items[i], snapshot));
    (void)json_object_set_new(document, "leases", list);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

static int print(const struct gp_leases *leases, const struct gp_snapshot *snapshot,
                 const char *format, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    bool is_json = strcmp(format, "json") == 0;
    if (is_json)
        add_json(&sb, leases, snapshot);
    else if (leases->count == 0)
        (void)fprintf(stderr, "gpulse: no reservations; gpulse run starts a job with one\n");
    else
        gp_strbuf_addf(&sb, "%-9s  %-9s  %7s  %-9s  %-6s  %6s  %s\n", "STATE", "USER", "PID",
                       "GPUS", "MEM", "SINCE", "COMMAND");
    for (size_t i = 0; !is_json && i < leases->count; i++)
        add_row(&sb, leases, &leases->items[i], snapshot);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int queue_main(int argc, char **argv, struct gp_err *err)
{
    struct queue_options o = {.format = "table"};
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = {.mig = true, .processes = true, .ancestors = true};
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot = NULL;
    struct gp_leases leases = {.items = NULL};
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_queue, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(err, GP_EUSAGE, "queue takes no arguments");
    r = gp_job_check_place(false, err);
    if (r < 0)
        return r;
    gp_metric_set_add(&want.metrics, GP_UUID);
    gp_metric_set_add(&want.metrics, GP_PID);
    gp_metric_set_add(&want.metrics, GP_PROCESS_PPID);
    gp_metric_set_add(&want.metrics, GP_PROCESS_SUSPENDED);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = gp_leases_read_settled(&leases, err);
    if (r == 0)
        r = print(&leases, snapshot, o.format, err);
    gp_leases_fini(&leases);
    gp_snapshot_free(snapshot);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_queue = {
    .name = "queue",
    .summary = "show GPU reservations and the waiting line",
    .usage = "[options]",
    .description =
        "Lists the jobs of gpulse run that have reserved GPUs or wait for them, in the order of "
        "their requests. waiting N is the Nth in line. GPUS are the reserved GPUs; for a waiting "
        "job, how many it needs, and of which. MEM is the memory reserved on each GPU, or all if "
        "the job does not share. A suspended job keeps its reservation: its memory must fit "
        "again when it is resumed. To see why a GPU is not free: gpulse pick --explain.",
    .examples = "gpulse queue\tall reservations\n"
                "gpulse queue -f json\tfor scripts\n",
    .options = options,
    .no_loop = true,
    .run = queue_main,
};
