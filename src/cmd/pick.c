/* gpulse pick: chooses free GPUs and prints their ids. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 500 };

struct pick_options {
    struct gp_job_options job;
    uint64_t at_most;
    uint64_t wait_ns;
    const char *format;
    bool explain;
};

#define OPT(field) offsetof(struct pick_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct pick_options, job),
    {0, "at-most", NULL, GP_OPT_U64, "N", .offset = OPT(at_most),
     .help = "pick up to N free GPUs, but at least --gpus"},
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .offset = OPT(wait_ns),
     .help = "wait for free GPUs, up to TIME if given (default: do not wait)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "list export json",
     .offset = OPT(format),
     .help = "output format: list (2,5), export (a line for the shell) or json (with all reasons) "
             "(default list)"},
    {0, "explain", NULL, GP_OPT_FLAG, .offset = OPT(explain),
     .help = "print for each GPU whether it is free, or why not"},
    GP_OPT_END,
};

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

static void add_name(struct gp_strbuf *sb, const struct gp_device *device)
{
    gp_strbuf_addf(sb, "GPU %u", device->index);
    if (device->is_mig)
        gp_strbuf_addf(sb, ":%u", device->mig_index);
}

/* Suspended processes without a reservation: they need the GPU when they are resumed. */
static double suspended_on(const struct gp_snapshot *snapshot, const struct gp_device *device,
                           struct gp_strbuf *pids)
{
    double bytes = 0;
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *v = gp_process_value(p, GP_PROCESS_SUSPENDED);
        if (!gp_value_is_present(v))
            continue;
        bytes += (double)v->i;
        gp_strbuf_addf(pids, "%s%lld", pids->len > 0 ? ", " : "",
                       (long long)gp_process_value(p, GP_PID)->i);
    }
    return bytes;
}

static void add_suspended(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                          const struct gp_device *device)
{
    struct gp_strbuf pids = GP_STRBUF_INIT(1 << 16);
    double bytes = suspended_on(snapshot, device, &pids);
    if (pids.len > 0)
        gp_strbuf_addf(sb, "; %.1f GiB suspended of pid%s %s", bytes / 0x1p30,
                       strchr(pids.buf, ',') ? "s" : "", pids.buf);
    gp_strbuf_fini(&pids);
}

static void add_explanation(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                            const struct gp_pick *pick)
{
    for (size_t i = 0; i < pick->count; i++) {
        const struct gp_pick_unit *unit = &pick->units[i];
        if (unit->obstacle == GP_PICK_NOT_REQUESTED)
            continue;
        struct gp_strbuf line = GP_STRBUF_INIT(1 << 12);
        add_name(&line, unit->device);
        if (unit->state == GP_PICK_FITS)
            gp_strbuf_addf(&line, ": %s (%.1f GiB)", unit->is_chosen ? "selected" : "free",
                           unit->free / 0x1p30);
        else
            gp_strbuf_addf(&line, ": %s: %s", state_of(unit), unit->why);
        if (unit->state == GP_PICK_FITS)
            add_suspended(&line, snapshot, unit->device);
        gp_utf8_add_line(sb, line.buf, line.len, gp_io_columns());
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

static void add_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
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

/* CUDA does not count GPUs that the driver cannot use, and numbers the others without gaps. */
static void note_numbers(const struct gp_snapshot *snapshot, const struct gp_pick *pick,
                         const char *mask)
{
    struct gp_strbuf note = GP_STRBUF_INIT(1 << 16);
    struct gp_strbuf ids = GP_STRBUF_INIT(1 << 16);
    const struct gp_device *silent = find_silent(snapshot);
    const bool is_mig = pick->units[pick->chosen[0]].device->is_mig;
    gp_job_add_ids(&ids, pick);
    if (!is_mig && silent)
        gp_strbuf_addf(&note,
                       "UUIDs instead of indices, because GPU %u does not respond, and CUDA may or "
                       "may not count it",
                       silent->index);
    else if (!is_mig && strcmp(ids.buf, mask) != 0) {
        gp_job_add_place(&note, pick, mask);
        gp_strbuf_adds(&note, ": CUDA does not count GPUs that do not respond");
    }
    if (note.len > 0)
        gp_io_print_note("gpulse", note.buf);
    gp_strbuf_fini(&note);
    gp_strbuf_fini(&ids);
}

static int print(const struct pick_options *o, const struct gp_snapshot *snapshot,
                 const struct gp_pick *pick, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_strbuf mask = GP_STRBUF_INIT(1 << 16);
    bool fits = pick->state == GP_PICK_FITS;
    gp_job_add_mask(&mask, snapshot, pick, o->job.uuid);
    if (strcmp(o->format, "json") == 0)
        add_json(&sb, snapshot, pick, mask.buf);
    else if (o->explain)
        add_explanation(&sb, snapshot, pick);
    else if (fits && strcmp(o->format, "export") == 0)
        gp_strbuf_addf(&sb, "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%s\n",
                       mask.buf);
    else if (fits)
        gp_strbuf_addf(&sb, "%s\n", mask.buf);
    if (fits && !o->job.uuid && !o->explain && strcmp(o->format, "json") != 0)
        note_numbers(snapshot, pick, mask.buf);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    gp_strbuf_fini(&mask);
    return r;
}

/* As many as are free, between --gpus and --at-most. */
static int decide(const struct pick_options *o, const struct gp_snapshot *snapshot,
                  struct gp_leases *leases, struct gp_pick_request *request, struct gp_pick *ret,
                  struct gp_err *err)
{
    unsigned least = request->count;
    unsigned most = o->at_most > least ? (unsigned)o->at_most : least;
    int r = 0;
    for (request->count = most; r == 0; request->count--) {
        r = gp_job_decide(snapshot, leases, request, o->job.ignore_mask, ret, err);
        if (r < 0 || ret->state == GP_PICK_FITS || request->count == least || request->is_all)
            break;
        gp_pick_fini(ret);
    }
    request->count = least;
    return r;
}

static int pick_once(struct gp_sampler *sampler, const struct pick_options *o,
                     struct gp_pick_request *request, bool is_last, bool *ret_fits,
                     struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    struct gp_leases leases = {.items = NULL};
    struct gp_pick pick;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    r = gp_leases_read(&leases, err);
    if (r == 0)
        r = decide(o, snapshot, &leases, request, &pick, err);
    if (r == 0) {
        *ret_fits = pick.state == GP_PICK_FITS;
        if (*ret_fits || is_last || pick.state == GP_PICK_NEVER)
            r = print(o, snapshot, &pick, err);
        if (o->explain)
            pick.why[strcspn(pick.why, ";")] = '\0'; /* the reasons are printed already */
        if (r == 0 && !*ret_fits && (is_last || pick.state == GP_PICK_NEVER))
            r = gp_job_refuse(pick.state, pick.why, o->wait_ns > 0, err);
        gp_pick_fini(&pick);
    }
    gp_leases_fini(&leases);
    gp_snapshot_free(snapshot);
    return r;
}

static int pick_main(int argc, char **argv, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    struct pick_options o = {.job = GP_JOB_DEFAULTS, .format = "list"};
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    int positional;
    bool done;
    bool fits = false;
    int r = gp_app_parse(&gp_cmd_pick, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(
            err, GP_EUSAGE,
            "pick takes no arguments; for two GPUs: -g 2; to run a command: gpulse run");
    if (o.at_most > GP_LEASE_GPUS)
        return gp_err_set(err, GP_EUSAGE, "--at-most takes at most %d", (int)GP_LEASE_GPUS);
    r = gp_job_request(&o.job, &request, err);
    if (r == 0 && request.is_all && o.at_most)
        r = gp_err_set(err, GP_EUSAGE, "--at-most needs --gpus with a number of GPUs");
    if (r == 0)
        r = gp_job_check_place(false, err);
    if (r == 0)
        r = gp_job_open(&request, NULL, &sampler, err);
    if (r < 0)
        return r;
    uint64_t until_ns = gp_clock_mono_ns() + o.wait_ns;
    while (r == 0 && !fits) {
        r = pick_once(sampler, &o, &request, gp_clock_mono_ns() >= until_ns, &fits, err);
        if (r == 0 && !fits)
            (void)nanosleep(&pause, NULL);
    }
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_pick = {
    .name = "pick",
    .summary = "pick free GPUs and print their ids",
    .usage = "[options]",
    .description =
        "Prints the ids of free GPUs in the format of CUDA_VISIBLE_DEVICES (with "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID): by default one GPU without compute processes. CUDA does "
        "not count lost GPUs, so its numbers may differ from those of gpulse; then a message says "
        "so. While a GPU hangs, CUDA's numbers are unknown, and pick prints UUIDs. It leaves out "
        "GPUs that do not respond, need a reset, have failed memory rows, are in compute mode "
        "Prohibited, or are reserved by gpulse run. -i limits the choice to these GPUs; --gpu-ids "
        "asks for exactly these. On a GPU in MIG mode, it picks an instance.\n"
        "\n"
        "Several GPUs are picked as close to each other as possible: connected by NVLink, "
        "otherwise on one NUMA node. If a GPU does not respond, its connections count as unknown. "
        "Of equally good GPUs, the last on the bus is picked, because many programs use the first "
        "GPU by default.\n"
        "\n"
        "Another job may start on these GPUs before yours does; gpulse run reserves them.\n"
        "\n"
        "Exit status: 69 if too few GPUs are free, 75 if --wait ran out, 78 if the request can "
        "never be met.",
    .examples = "CUDA_VISIBLE_DEVICES=$(gpulse pick) python train.py\ta free GPU\n"
                "eval \"$(gpulse pick -g 2 --mem 40GiB -f export)\"\ttwo with 40 GiB free each\n"
                "gpulse pick --share --mem 8GiB\ta GPU with 8 GiB free, even if others use it\n"
                "gpulse pick -g 4 --explain\twhy each GPU is free or busy\n"
                "gpulse pick --avoid 0 --wait 1h\twait up to an hour for a GPU other than 0\n",
    .options = options,
    .no_loop = true,
    .run = pick_main,
};
