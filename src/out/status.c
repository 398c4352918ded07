#include "out/status.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"
#include "out/procs.h"
#include "out/reservation.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1024 * 1024, JOB_COLUMNS = 20 /* of the name of a reserved GPU's job */ };

/* gpustat's colors. */
#define CYAN "\033[36m"
#define BLUE "\033[34m"
#define RED "\033[31m"
#define BOLD_RED "\033[1;31m"
#define GREEN "\033[32m"
#define BOLD_GREEN "\033[1;32m"
#define MAGENTA "\033[35m"
#define BOLD_MAGENTA "\033[1;35m"
#define YELLOW "\033[33m"
#define BOLD_YELLOW "\033[1;33m"
#define BOLD_CYAN "\033[1;36m"
#define RESET "\033[0m"

/* Columns of a line, not counting colors. */
static size_t width_of(const char *line, size_t n)
{
    struct gp_strbuf plain = GP_STRBUF_INIT(1 << 20);
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "m");
        else
            gp_strbuf_addc(&plain, line[i]);
    }
    size_t width = plain.error ? 0 : gp_utf8_width(plain.buf);
    gp_strbuf_fini(&plain);
    return width;
}

void gp_status_want(struct gp_metric_set *metrics, const struct gp_status_view *view, bool json)
{
    const struct {
        enum gp_metric metric;
        bool wanted;
    } wants[] = {
        {GP_NAME, true},
        {GP_TEMPERATURE_GPU, true},
        {GP_UTILIZATION_GPU, true},
        {GP_MEMORY_USED, true},
        {GP_MEMORY_TOTAL, true},
        {GP_MEMORY_PROCESSES, !view->no_processes && !json},
        {GP_MIG_PROFILE, true},
        {GP_RESERVATION_USER, !view->no_processes || json},
        {GP_RESERVATION_NAME, !view->no_processes || json},
        {GP_RESERVATION_SINCE, json},
        {GP_UUID, json},
        {GP_FAN_SPEED, view->fan || json},
        {GP_UTILIZATION_ENCODER, view->encoder || json},
        {GP_UTILIZATION_DECODER, view->decoder || json},
        {GP_POWER_DRAW, view->draw || json},
        {GP_POWER_LIMIT_ENFORCED, view->draw || view->limit || json},
        {GP_MEMORY_UNATTRIBUTED, !view->no_processes},
        {GP_PID, !view->no_processes},
        {GP_PROCESS_MEMORY, !view->no_processes},
        {GP_PROCESS_SUSPENDED, !view->no_processes},
        {GP_PROCESS_USER, (view->user || json) && !view->no_processes},
        {GP_PROCESS_NAME, (view->command || json) && !view->no_processes},
        {GP_PROCESS_COMMAND, (view->full_command || json) && !view->no_processes},
        {GP_PROCESS_CPU, (view->full_command || json) && !view->no_processes},
        {GP_PROCESS_RSS, (view->full_command || json) && !view->no_processes},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(wants); i++)
        if (wants[i].wanted)
            gp_metric_set_add(metrics, wants[i].metric);
}

static const struct gp_value *device_value(const struct gp_device *device, enum gp_metric m)
{
    return &device->values[m - GP_DEVICE__FIRST];
}

/* MiB rounded up, as nvidia-smi does: a process that holds one byte does not show 0 MiB. */
static long long to_mib(int64_t bytes)
{
    return (bytes + MIB - 1) / MIB;
}

/* To the nearest integer, half away from zero. */
static long long to_whole(enum gp_metric m, const struct gp_value *v)
{
    double number = gp_metric_number(m, v);
    return (long long)(number < 0 ? number - 0.5 : number + 0.5);
}

/* Column widths, by content. */
struct layout {
    size_t name; /* columns; 0: no names */
    int index_digits;
    int memory_digits;
    bool has_fan; /* at least one GPU */
};

/* A number right-aligned in `width` columns, "??" if it is unknown, bold from `bright` on. */
struct cell {
    int width;
    const char *color;
    const char *bright_color;
    double bright;
};

static void add_cell(struct gp_strbuf *sb, const struct gp_status_view *view, struct cell cell,
                     enum gp_metric m, const struct gp_value *v)
{
    char text[32] = "??";
    bool known = gp_value_is_present(v);
    if (known && gp_metric_table[m].unit == GP_UNIT_BYTES)
        (void)snprintf(text, sizeof(text), "%lld", to_mib(v->i));
    else if (known)
        (void)snprintf(text, sizeof(text), "%lld", to_whole(m, v));
    if (!view->color || !*cell.color) {
        gp_strbuf_addf(sb, "%*s", cell.width, text);
        return;
    }
    const char *color =
        known && gp_metric_number(m, v) >= cell.bright ? cell.bright_color : cell.color;
    gp_strbuf_addf(sb, "%s%*s%s", color, cell.width, text, RESET);
}

static void add_colored(struct gp_strbuf *sb, const struct gp_status_view *view, const char *color,
                        const char *text)
{
    if (view->color)
        gp_strbuf_addf(sb, "%s%s%s", color, text, RESET);
    else
        gp_strbuf_adds(sb, text);
}

static void add_codec(struct gp_strbuf *sb, const struct gp_status_view *view,
                      const struct gp_device *device)
{
    const struct cell cell = {3, GREEN, BOLD_GREEN, 50};
    if (!view->encoder && !view->decoder)
        return;
    gp_strbuf_adds(sb, " (");
    if (view->encoder) {
        gp_strbuf_adds(sb, "E: ");
        add_cell(sb, view, cell, GP_UTILIZATION_ENCODER,
                 device_value(device, GP_UTILIZATION_ENCODER));
        gp_strbuf_adds(sb, view->decoder ? " %  " : " %");
    }
    if (view->decoder) {
        gp_strbuf_adds(sb, "D: ");
        add_cell(sb, view, cell, GP_UTILIZATION_DECODER,
                 device_value(device, GP_UTILIZATION_DECODER));
        gp_strbuf_adds(sb, " %");
    }
    gp_strbuf_adds(sb, ")");
}

static void add_power(struct gp_strbuf *sb, const struct gp_status_view *view,
                      const struct gp_device *device)
{
    const struct gp_value *limit = device_value(device, GP_POWER_LIMIT_ENFORCED);
    double bright = gp_value_is_present(limit) ? 0.4 * limit->f : 1e9;
    const struct cell draw_cell = {3, MAGENTA, BOLD_MAGENTA, bright};
    const struct cell limit_cell = {3, MAGENTA, MAGENTA, 0};
    if (!view->draw && !view->limit)
        return;
    gp_strbuf_adds(sb, ",  ");
    if (view->draw)
        add_cell(sb, view, draw_cell, GP_POWER_DRAW, device_value(device, GP_POWER_DRAW));
    if (view->draw && view->limit)
        gp_strbuf_adds(sb, " / ");
    if (view->limit)
        add_cell(sb, view, limit_cell, GP_POWER_LIMIT_ENFORCED, limit);
    gp_strbuf_adds(sb, " W");
}

/* The memory in use; on a GPU without such a counter (GB10), the sum over its processes. Without
 * processes it is unknown: they may be hidden. */
static const struct gp_value *memory_used(const struct gp_device *device)
{
    const struct gp_value *used = device_value(device, GP_MEMORY_USED);
    const struct gp_value *sum = device_value(device, GP_MEMORY_PROCESSES);
    bool sums = used->status == GP_STATUS_UNSUPPORTED && gp_value_is_present(sum) && sum->i > 0;
    return sums ? sum : used;
}

static void add_memory(struct gp_strbuf *sb, const struct gp_status_view *view,
                       const struct layout *layout, const struct gp_device *device)
{
    const struct cell used = {layout->memory_digits, BOLD_YELLOW, BOLD_YELLOW, 0};
    const struct cell total = {layout->memory_digits, YELLOW, YELLOW, 0};
    gp_strbuf_adds(sb, " | ");
    add_cell(sb, view, used, GP_MEMORY_USED, memory_used(device));
    gp_strbuf_adds(sb, " / ");
    add_cell(sb, view, total, GP_MEMORY_TOTAL, device_value(device, GP_MEMORY_TOTAL));
    gp_strbuf_adds(sb, " MiB");
}

/* "alice:python/4711(1024MiB)"; "?" for unknown parts. */
static void add_process(struct gp_strbuf *sb, const struct gp_status_view *view,
                        const struct gp_process *process)
{
    const struct gp_value *user = gp_process_value(process, GP_PROCESS_USER);
    const struct gp_value *name = gp_process_value(process, GP_PROCESS_NAME);
    const struct gp_value *memory = gp_process_value(process, GP_PROCESS_MEMORY);
    const struct gp_value *suspended = gp_process_value(process, GP_PROCESS_SUSPENDED);
    /* If /proc does not show the process, the driver's name for it is used. */
    bool named = gp_value_is_present(name);
    bool show_name = view->command || (!gp_value_is_present(user) && named);
    gp_strbuf_addc(sb, ' ');
    if (view->user)
        add_colored(sb, view, "\033[1m", gp_value_is_present(user) ? user->s : "?");
    if (view->user && show_name)
        gp_strbuf_addc(sb, ':');
    if (show_name)
        add_colored(sb, view, CYAN, named ? name->s : "?");
    if (view->pid || (!gp_value_is_present(user) && !named))
        gp_strbuf_addf(sb, "/%lld", (long long)gp_process_value(process, GP_PID)->i);
    gp_strbuf_addc(sb, '(');
    const struct cell cell = {0, YELLOW, YELLOW, 0};
    if (gp_value_is_present(memory))
        add_cell(sb, view, cell, GP_PROCESS_MEMORY, memory);
    else
        gp_strbuf_addc(sb, '?');
    gp_strbuf_adds(sb, "MiB");
    if (gp_value_is_present(suspended))
        gp_strbuf_addf(sb, ", %lldMiB suspended", (long long)to_mib(suspended->i));
    gp_strbuf_addc(sb, ')');
}

/* Memory that no listed process accounts for. */
static void add_unattributed(struct gp_strbuf *sb, const struct gp_status_view *view,
                             const struct gp_device *device)
{
    const struct gp_value *rest = device_value(device, GP_MEMORY_UNATTRIBUTED);
    if (!gp_value_is_present(rest) || rest->i < GP_PROC_UNATTRIBUTED_LEAST)
        return;
    gp_strbuf_adds(sb, " unattributed(");
    add_cell(sb, view, (struct cell){0, YELLOW, YELLOW, 0}, GP_MEMORY_UNATTRIBUTED, rest);
    gp_strbuf_adds(sb, "MiB)");
}

/* The processes as far as they fit behind `line`, the start of the line; at least one. */
static void add_fitting(struct gp_strbuf *sb, const struct gp_status_view *view, size_t line,
                        const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    enum { MORE = 7 }; /* " …, +12" */
    for (size_t i = 0; i < device->process_count; i++) {
        size_t before = sb->len;
        size_t room = view->room - (i + 1 < device->process_count && view->room > MORE ? MORE : 0);
        add_process(sb, view, &snapshot->processes[device->first_process + i]);
        if (i == 0 || view->room == 0 || sb->error ||
            width_of(sb->buf + line, sb->len - line) <= room)
            continue;
        gp_strbuf_truncate(sb, before);
        gp_strbuf_addf(sb, " …, +%zu", device->process_count - i);
        return;
    }
}

static void add_processes(struct gp_strbuf *sb, const struct gp_status_view *view, size_t line,
                          const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    if (view->no_processes)
        return;
    gp_strbuf_adds(sb, " |");
    if (device->processes_status == GP_STATUS_UNSUPPORTED)
        gp_strbuf_adds(sb, " (Not Supported)");
    else if (device->processes_status == GP_STATUS_NO_PERMISSION)
        gp_strbuf_adds(sb, " (processes: no permission)");
    else if (device->processes_status == GP_STATUS_ERROR)
        gp_strbuf_adds(sb, " (processes: driver error)");
    add_fitting(sb, view, line, snapshot, device);
    add_unattributed(sb, view, device);
    if (device->process_count == 0 && gp_is_reserved(device)) {
        gp_strbuf_addc(sb, ' ');
        gp_reservation_add(sb, device, JOB_COLUMNS);
    }
}

static void add_full_commands(struct gp_strbuf *sb, const struct gp_status_view *view,
                              const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    for (size_t i = 0; view->full_command && !view->no_processes && i < device->process_count;
         i++) {
        const struct gp_process *process = &snapshot->processes[device->first_process + i];
        const struct gp_value *command = gp_process_value(process, GP_PROCESS_COMMAND);
        const struct gp_value *cpu = gp_process_value(process, GP_PROCESS_CPU);
        const struct gp_value *rss = gp_process_value(process, GP_PROCESS_RSS);
        const struct gp_field rss_field = {.metric = GP_PROCESS_RSS};
        gp_strbuf_addf(sb, "%s %s─ %6lld (", device->is_mig ? "   " : "",
                       i + 1 == device->process_count ? "└" : "├",
                       (long long)gp_process_value(process, GP_PID)->i);
        add_cell(sb, view, (struct cell){4, "", "", 0}, GP_PROCESS_CPU, cpu);
        gp_strbuf_adds(sb, "%, ");
        if (gp_value_is_present(rss))
            gp_field_format(sb, &rss_field, rss, GP_STYLE_HUMAN);
        else
            gp_strbuf_adds(sb, "??");
        gp_strbuf_addf(sb, "): %s\n", gp_value_is_present(command) ? command->s : "?");
    }
}

static const char *device_name(const struct gp_device *device)
{
    const struct gp_value *name = device_value(device, GP_NAME);
    return gp_value_is_present(name) ? name->s : "?";
}

/* MIG instances follow their GPU. */
static bool is_divided(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    const struct gp_device *next = device + 1;
    return next < snapshot->devices + snapshot->device_count && next->is_mig &&
           !gp_value_is_present(device_value(device, GP_UTILIZATION_GPU));
}

static void add_gpu(struct gp_strbuf *sb, const struct gp_status_view *view,
                    const struct layout *layout, const struct gp_snapshot *snapshot,
                    const struct gp_device *device)
{
    const size_t line = sb->len;
    char index[24];
    (void)snprintf(index, sizeof(index), "[%u]", device->index);
    add_colored(sb, view, CYAN, index);
    gp_strbuf_fill(sb, ' ', (size_t)layout->index_digits + 3 - strlen(index));
    if (layout->name > 0) {
        if (view->color)
            gp_strbuf_adds(sb, device->status == GP_STATUS_OK ? BLUE : RED);
        gp_utf8_add_padded(sb, device_name(device), layout->name, true);
        gp_strbuf_adds(sb, view->color ? RESET " |" : " |");
    }
    if (device->status != GP_STATUS_OK) {
        gp_strbuf_addc(sb, ' ');
        add_colored(sb, view, BOLD_RED, gp_device_trouble(device));
        if (!gp_value_is_present(device_value(device, GP_MEMORY_USED))) {
            gp_strbuf_addc(sb, '\n');
            return;
        }
        gp_strbuf_adds(sb, "; last seen:");
    }
    add_cell(sb, view, (struct cell){3, RED, BOLD_RED, 50}, GP_TEMPERATURE_GPU,
             device_value(device, GP_TEMPERATURE_GPU));
    gp_strbuf_adds(sb, "°C, ");
    if (view->fan && layout->has_fan) {
        add_cell(sb, view, (struct cell){3, CYAN, BOLD_CYAN, 30}, GP_FAN_SPEED,
                 device_value(device, GP_FAN_SPEED));
        gp_strbuf_adds(sb, " %, ");
    }
    if (is_divided(snapshot, device)) {
        gp_strbuf_adds(sb, "  MIG"); /* the driver reports no utilization of it */
    } else {
        add_cell(sb, view, (struct cell){3, GREEN, BOLD_GREEN, 30}, GP_UTILIZATION_GPU,
                 device_value(device, GP_UTILIZATION_GPU));
        gp_strbuf_adds(sb, " %");
    }
    add_codec(sb, view, device);
    add_power(sb, view, device);
    add_memory(sb, view, layout, device);
    add_processes(sb, view, line, snapshot, device);
    gp_strbuf_addc(sb, '\n');
    add_full_commands(sb, view, snapshot, device);
}

static void add_mig(struct gp_strbuf *sb, const struct gp_status_view *view,
                    const struct layout *layout, const struct gp_snapshot *snapshot,
                    const struct gp_device *device)
{
    const struct gp_value *profile = device_value(device, GP_MIG_PROFILE);
    const size_t line = sb->len;
    gp_strbuf_addf(sb, "    MIG %u %-8s%s", device->mig_index,
                   gp_value_is_present(profile) ? profile->s : "?",
                   device->status == GP_STATUS_OK ? "" : " last seen:");
    add_memory(sb, view, layout, device);
    add_processes(sb, view, line, snapshot, device);
    gp_strbuf_addc(sb, '\n');
    add_full_commands(sb, view, snapshot, device);
}

static int digits(long long number)
{
    return snprintf(NULL, 0, "%lld", number);
}

static struct layout measure(const struct gp_status_view *view, const struct gp_snapshot *snapshot)
{
    struct layout layout = {.memory_digits = 5};
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const struct gp_value *total = device_value(device, GP_MEMORY_TOTAL);
        size_t name = device->is_mig ? 0 : gp_utf8_width(device_name(device));
        int memory = gp_value_is_present(total) ? digits(to_mib(total->i)) : 0;
        int index = digits(device->index);
        layout.has_fan =
            layout.has_fan || device_value(device, GP_FAN_SPEED)->status != GP_STATUS_UNSUPPORTED;
        layout.name = name > layout.name ? name : layout.name;
        layout.memory_digits = memory > layout.memory_digits ? memory : layout.memory_digits;
        layout.index_digits = index > layout.index_digits ? index : layout.index_digits;
    }
    if (view->name_width != GP_STATUS_NAME_AUTO)
        layout.name = view->name_width < 256 ? (size_t)view->name_width : 256;
    return layout;
}

static void add_header(struct gp_strbuf *sb, const struct gp_status_view *view,
                       const struct gp_snapshot *snapshot)
{
    const struct gp_value *driver = &snapshot->host[GP_DRIVER_VERSION];
    /* date and time to the second: "2026-11-20T15:04:05.123+01:00" */
    const char *time = snapshot->host[GP_TIMESTAMP].s;
    gp_strbuf_addf(sb, "%s  %.10s %.8s  driver %s", snapshot->host[GP_HOST_NAME].s, time, time + 11,
                   gp_value_is_present(driver) ? driver->s : "unknown");
    if (view->machine) {
        gp_strbuf_adds(sb, "  (simulated: ");
        gp_utf8_add_safe(sb, view->machine, strlen(view->machine), 200);
        gp_strbuf_addc(sb, ')');
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_status_text(struct gp_strbuf *sb, const struct gp_status_view *view,
                    const struct gp_snapshot *snapshot)
{
    const struct layout layout = measure(view, snapshot);
    if (!view->no_header)
        add_header(sb, view, snapshot);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (device->is_mig)
            add_mig(sb, view, &layout, snapshot, device);
        else
            add_gpu(sb, view, &layout, snapshot, device);
    }
}

/* ---- JSON ---- */

static json_t *json_mib(const struct gp_value *v)
{
    return gp_value_is_present(v) ? json_integer(to_mib(v->i)) : json_null();
}

static json_t *json_whole(enum gp_metric m, const struct gp_value *v)
{
    return gp_value_is_present(v) ? json_integer(to_whole(m, v)) : json_null();
}

static json_t *json_text(const struct gp_value *v)
{
    return gp_value_is_present(v) ? json_string(v->s) : json_null();
}

static json_t *process_json(const struct gp_process *process)
{
    const struct gp_value *cpu = gp_process_value(process, GP_PROCESS_CPU);
    const struct gp_value *rss = gp_process_value(process, GP_PROCESS_RSS);
    const struct gp_value *suspended = gp_process_value(process, GP_PROCESS_SUSPENDED);
    json_t *object = json_object();
    (void)json_object_set_new(object, "username",
                              json_text(gp_process_value(process, GP_PROCESS_USER)));
    (void)json_object_set_new(object, "command",
                              json_text(gp_process_value(process, GP_PROCESS_NAME)));
    (void)json_object_set_new(object, "full_command",
                              json_text(gp_process_value(process, GP_PROCESS_COMMAND)));
    (void)json_object_set_new(object, "gpu_memory_usage",
                              json_mib(gp_process_value(process, GP_PROCESS_MEMORY)));
    (void)json_object_set_new(object, "cpu_percent",
                              gp_value_is_present(cpu) ? json_real(cpu->f) : json_null());
    (void)json_object_set_new(object, "cpu_memory_usage",
                              gp_value_is_present(rss) ? json_integer(rss->i) : json_null());
    (void)json_object_set_new(object, "pid", json_integer(gp_process_value(process, GP_PID)->i));
    /* a process that is not suspended has only gpustat's keys */
    if (gp_value_is_present(suspended))
        (void)json_object_set_new(object, "gpu_memory_suspended", json_mib(suspended));
    return object;
}

static json_t *device_json(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    static const struct {
        const char *key;
        enum gp_metric metric;
    } numbers[] = {
        {"temperature.gpu", GP_TEMPERATURE_GPU},
        {"fan.speed", GP_FAN_SPEED},
        {"utilization.gpu", GP_UTILIZATION_GPU},
        {"utilization.enc", GP_UTILIZATION_ENCODER},
        {"utilization.dec", GP_UTILIZATION_DECODER},
        {"power.draw", GP_POWER_DRAW},
        {"enforced.power.limit", GP_POWER_LIMIT_ENFORCED},
    };
    json_t *object = json_object();
    (void)json_object_set_new(object, "index", json_integer(device->index));
    if (device->is_mig)
        (void)json_object_set_new(object, "mig_index", json_integer(device->mig_index));
    (void)json_object_set_new(object, "name", json_text(device_value(device, GP_NAME)));
    (void)json_object_set_new(object, "uuid", json_text(device_value(device, GP_UUID)));
    /* a healthy GPU that is not reserved has only gpustat's keys */
    if (device->status != GP_STATUS_OK) {
        (void)json_object_set_new(object, "status", json_string(gp_device_state(device->status)));
        (void)json_object_set_new(object, "status.text", json_string(device->status_text));
    }
    if (gp_is_reserved(device))
        (void)json_object_set_new(object, "reservation", gp_reservation_object(device));
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        (void)json_object_set_new(
            object, numbers[i].key,
            json_whole(numbers[i].metric, device_value(device, numbers[i].metric)));
    (void)json_object_set_new(object, "memory.used",
                              json_mib(device_value(device, GP_MEMORY_USED)));
    (void)json_object_set_new(object, "memory.total",
                              json_mib(device_value(device, GP_MEMORY_TOTAL)));
    json_t *processes = device->processes_status == GP_STATUS_OK ? json_array() : json_null();
    for (size_t i = 0; i < device->process_count; i++)
        (void)json_array_append_new(processes,
                                    process_json(&snapshot->processes[device->first_process + i]));
    (void)json_object_set_new(object, "processes", processes);
    return object;
}

void gp_status_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot)
{
    json_t *document = gp_json_document(snapshot, "gpulse.status/1");
    json_t *gpus = json_array();
    (void)json_object_set_new(document, "hostname", json_text(&snapshot->host[GP_HOST_NAME]));
    (void)json_object_set_new(document, "driver_version",
                              json_text(&snapshot->host[GP_DRIVER_VERSION]));
    (void)json_object_set_new(document, "query_time", json_text(&snapshot->host[GP_TIMESTAMP]));
    for (size_t i = 0; i < snapshot->device_count; i++)
        (void)json_array_append_new(gpus, device_json(snapshot, &snapshot->devices[i]));
    (void)json_object_set_new(document, "gpus", gpus);
    gp_json_add(sb, document, 4);
    gp_strbuf_addc(sb, '\n');
}

/* ---- frames ---- */

/* Lines that do not fit are cut, as their last column shows. */
void gp_status_add_frame(struct gp_strbuf *sb, const struct gp_status_view *view,
                         const struct gp_snapshot *snapshot, size_t rows, size_t cols,
                         bool is_first)
{
    struct gp_strbuf text = GP_STRBUF_INIT(16 << 20);
    gp_status_text(&text, view, snapshot);
    gp_strbuf_adds(sb, is_first ? "\033[2J\033[H\033[?7l" : "\033[H\033[?7l");
    size_t lines = 0;
    for (const char *p = text.buf; *p; p++)
        lines += *p == '\n';
    /* The last row is reserved for the cursor. */
    size_t room = rows > 2 ? rows - 1 : 1;
    size_t shown = lines <= room ? lines : room - 1;
    const char *p = text.buf;
    for (size_t i = 0; i < shown; i++) {
        size_t n = strcspn(p, "\n");
        gp_strbuf_add(sb, p, n);
        size_t width = width_of(p, n);
        if (width > cols)
            gp_strbuf_addf(sb, "\033[%zuG\033[m…", cols);
        /* after a full line the cursor is on its last column, and would erase that */
        gp_strbuf_adds(sb, width < cols ? "\033[K\n" : "\n");
        p += n + 1;
    }
    if (shown < lines)
        gp_strbuf_addf(sb, "… %zu more lines; select GPUs with --id\033[K\n", lines - shown);
    if (text.error && !sb->error)
        sb->error = text.error;
    gp_strbuf_adds(sb, "\033[J\033[?7h");
    gp_strbuf_fini(&text);
}
