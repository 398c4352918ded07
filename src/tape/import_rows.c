#include "tape/import_rows.h"

#include "base/err.h"
#include "base/utf8.h"
#include "source/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { GPUS_MAX = 1024, SAMPLE_US = 500000 };
#define STEP_US INT64_C(3600000000) /* more is a pause */

static const char unsaid[] = "not in the imported file";

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct gp_import_rows *rows = ctx;
    *ret = rows->clocks;
}

void gp_import_rows_init(struct gp_import_rows *rows, const struct gp_import_config *config,
                         struct gp_import_result *result)
{
    *rows = (struct gp_import_rows){.config = config, .result = result};
    rows->clocks.boot = "import";
}

/* The time up to the next sample is the interval, unless that is given. */
static int open_recorder(struct gp_import_rows *rows, int64_t next_us, struct gp_err *err)
{
    const int64_t step_us = next_us - rows->clocks.wall_us;
    const struct gp_recorder_config config = {
        .path = rows->config->to,
        .interval_ns = rows->config->interval_ns          ? rows->config->interval_ns
                       : step_us > 0 && step_us < STEP_US ? (uint64_t)step_us * GP_NS_PER_US
                                                          : GP_NS_PER_S,
        .size_max = rows->config->size_max,
        .clocks = read_clocks,
        .ctx = rows,
    };
    return gp_recorder_open(&config, &rows->recorder, err);
}

/* ---- samples ---- */

static void clear(struct gp_device *device)
{
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        if (m != GP_INDEX)
            gp_value_set_absent(gp_device_value(device->values, (enum gp_metric)m),
                                GP_STATUS_UNSUPPORTED, unsaid, 1);
}

/* Records the sample, and empties it. next_us: the time of the next one; 0: there is none. */
static int end_sample(struct gp_import_rows *rows, int64_t next_us, struct gp_err *err)
{
    if (!rows->has_sample)
        return 0;
    if (!rows->recorder) {
        int r = open_recorder(rows, next_us, err);
        if (r < 0)
            return r;
    }
    gp_value_set_int(&rows->snapshot.host[GP_COUNT], (int64_t)rows->snapshot.device_count, 1);
    gp_recorder_wait(rows->recorder);
    int r = gp_recorder_sample(rows->recorder, &rows->snapshot, err);
    rows->result->samples += r == 0;
    rows->has_sample = false;
    gp_arena_reset(&rows->snapshot.arena);
    for (size_t i = 0; i < rows->snapshot.device_count; i++) {
        rows->gpus[i].is_in_sample = false;
        clear(&rows->snapshot.devices[i]);
    }
    return r;
}

static int add_gpu(struct gp_import_rows *rows, const char *key, int index, struct gp_err *err)
{
    const size_t count = rows->snapshot.device_count;
    if (count == GPUS_MAX)
        return gp_import_fail(rows, "there are too many GPUs", err);
    if (count == rows->room) {
        const size_t room = rows->room ? 2 * rows->room : 8;
        struct gp_device *devices = realloc(rows->snapshot.devices, room * sizeof(*devices));
        if (devices)
            rows->snapshot.devices = devices;
        struct gp_import_gpu *gpus = realloc(rows->gpus, room * sizeof(*gpus));
        if (gpus)
            rows->gpus = gpus;
        if (!devices || !gpus)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        rows->room = room;
    }
    struct gp_device *device = &rows->snapshot.devices[count];
    *device = (struct gp_device){.index = index >= 0 ? (unsigned)index : (unsigned)count,
                                 .status = GP_STATUS_OK,
                                 .status_text = "",
                                 .processes_status = GP_STATUS_UNSUPPORTED};
    clear(device);
    gp_value_set_int(gp_device_value(device->values, GP_INDEX), device->index, 1);
    rows->gpus[count] = (struct gp_import_gpu){.is_in_sample = false};
    (void)snprintf(rows->gpus[count].key, sizeof(rows->gpus[count].key), "%s", key);
    rows->snapshot.device_count++;
    rows->result->gpus++;
    return 0;
}

static size_t find(const struct gp_import_rows *rows, const char *key)
{
    size_t i = 0;
    while (i < rows->snapshot.device_count && strcmp(rows->gpus[i].key, key) != 0)
        i++;
    return i;
}

/* The clock of the file goes on with the axis; where it went back, the axis does not. */
static void set_clocks(struct gp_import_rows *rows, int64_t wall_us)
{
    const int64_t passed_us = wall_us - rows->clocks.wall_us;
    rows->clocks.boottime_us += passed_us > 0 ? passed_us : 1;
    rows->clocks.wall_us = wall_us;
    rows->snapshot.wall_ns = (uint64_t)wall_us * GP_NS_PER_US;
}

int gp_import_row(struct gp_import_rows *rows, int64_t wall_us, const char *key, int index,
                  struct gp_device **ret, struct gp_err *err)
{
    size_t i = find(rows, key);
    int r = 0;
    if (rows->has_sample &&
        ((i < rows->snapshot.device_count && rows->gpus[i].is_in_sample) ||
         wall_us - rows->clocks.wall_us > SAMPLE_US || wall_us < rows->clocks.wall_us - SAMPLE_US))
        r = end_sample(rows, wall_us, err);
    if (r == 0 && i == rows->snapshot.device_count)
        r = add_gpu(rows, key, index, err);
    if (r < 0)
        return r;
    if (!rows->has_sample)
        set_clocks(rows, wall_us);
    rows->has_sample = true;
    rows->gpus[i].is_in_sample = true;
    *ret = &rows->snapshot.devices[i];
    if (strncmp(key, "GPU-", 4) == 0 || strncmp(key, "MIG-", 4) == 0)
        gp_value_set_text(gp_device_value((*ret)->values, GP_UUID),
                          gp_arena_strdup(&rows->snapshot.arena, rows->gpus[i].key), 1);
    return 0;
}

int gp_import_count_time(struct gp_import_rows *rows, const char *key, int64_t *ret_wall_us,
                         struct gp_err *err)
{
    const uint64_t step_ns = rows->config->interval_ns ? rows->config->interval_ns : GP_NS_PER_S;
    if (!rows->config->start_ns)
        return gp_err_set(err, GP_EUSAGE,
                          "'%.200s' has no times: say with --start when it begins, and with "
                          "--interval how often a sample was taken",
                          rows->config->from);
    if (!rows->counted_us) {
        rows->counted_us = (int64_t)(rows->config->start_ns / GP_NS_PER_US);
        (void)snprintf(rows->first_key, sizeof(rows->first_key), "%s", key);
    } else if (strcmp(key, rows->first_key) == 0) {
        rows->counted_us += (int64_t)(step_ns / GP_NS_PER_US);
    }
    *ret_wall_us = rows->counted_us;
    return 0;
}

int gp_import_rows_close(struct gp_import_rows *rows, int r, struct gp_err *err)
{
    struct gp_err close_err = {0};
    if (r == 0)
        r = end_sample(rows, 0, err);
    int closed = rows->recorder ? gp_recorder_close(rows->recorder, &close_err) : 0;
    gp_arena_fini(&rows->snapshot.arena);
    free(rows->snapshot.devices);
    free(rows->gpus);
    return r == 0 && closed < 0 ? gp_err_copy(err, &close_err) : r;
}

/* ---- values ---- */

/* The unit of a text in those of the metrics; 0: unknown. */
static double factor_of(const char *unit)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        {"", 1},        {"%", 1},        {"percent", 1},  {"C", 1},          {"°C", 1},
        {"celsius", 1}, {"W", 1},        {"watts", 1},    {"mW", 1e-3},      {"MHz", 1},
        {"mhz", 1},     {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"KiB", 0x1p10},   {"B", 1},
        {"bytes", 1},   {"MB", 0x1p20},  {"J", 1},        {"joules", 1},     {"mJ", 1e-3},
        {"us", 1},      {"ms", 1},       {"s", 1},        {"seconds", 1},    {"bytes/s", 1},
        {"B/s", 1},     {"KB/s", 1e3},   {"MB/s", 1e6},   {"MiB/s", 0x1p20}, {"GB/s", 1e9},
        {"kW", 1e3},    {"errs", 1},     {"bool", 1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(units); i++)
        if (strcmp(units[i].unit, unit) == 0)
            return units[i].factor;
    return 0;
}

/* What stands for a missing value; NONE: the text is a value. */
static enum gp_status status_of(const char *text)
{
    static const struct {
        const char *text;
        enum gp_status status;
    } words[] = {
        {"", GP_STATUS_UNSUPPORTED},
        {"-", GP_STATUS_UNSUPPORTED},
        {"N/A", GP_STATUS_UNSUPPORTED},
        {"[N/A]", GP_STATUS_UNSUPPORTED},
        {"[Not Supported]", GP_STATUS_UNSUPPORTED},
        {"[Insufficient Permissions]", GP_STATUS_NO_PERMISSION},
        {"[GPU is lost]", GP_STATUS_LOST},
        {"[Unknown Error]", GP_STATUS_ERROR},
        {"[Timeout]", GP_STATUS_TIMEOUT},
        {"[Asleep]", GP_STATUS_ASLEEP},
        {"[Released]", GP_STATUS_RELEASED},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcasecmp(words[i].text, text) == 0)
            return words[i].status;
    return GP_STATUS_NONE;
}

void gp_import_set_number(struct gp_import_rows *rows, struct gp_device *device, enum gp_metric m,
                          double number)
{
    struct gp_value *v = gp_device_value(device->values, m);
    if (gp_metric_table[m].type == GP_TYPE_TEXT || m == GP_INDEX || !isfinite(number) ||
        fabs(number) > 9e15)
        return;
    if (gp_metric_table[m].type == GP_TYPE_REAL)
        gp_value_set_real(v, number, 1);
    else
        gp_value_set_int(v, llround(number), 1);
    rows->result->values++;
}

static void set_text(struct gp_import_rows *rows, struct gp_device *device, enum gp_metric m,
                     const char *text)
{
    char safe[256];
    gp_utf8_copy_safe(safe, sizeof(safe), text);
    const char *copy = gp_arena_strdup(&rows->snapshot.arena, safe);
    if (!copy)
        return;
    gp_value_set_text(gp_device_value(device->values, m), copy, 1);
    rows->result->values++;
}

void gp_import_set(struct gp_import_rows *rows, struct gp_device *device, enum gp_metric m,
                   const char *text, const char *unit)
{
    const enum gp_status status = status_of(text);
    char *end;
    if (status != GP_STATUS_NONE) {
        gp_value_set_absent(gp_device_value(device->values, m), status, NULL, 1);
        return;
    }
    if (gp_metric_table[m].type == GP_TYPE_TEXT) {
        set_text(rows, device, m, text);
        return;
    }
    const double number = strtod(text, &end); /* the locale is "C": see gpulse-record's main() */
    const char *own = end + strspn(end, " ");
    const double factor = factor_of(*own ? own : unit);
    if (end != text && factor > 0)
        gp_import_set_number(rows, device, m, number * factor);
}

/* ---- messages ---- */

void gp_import_skip(struct gp_import_rows *rows, const char *name)
{
    char *unknown = rows->result->unknown;
    const size_t room = sizeof(rows->result->unknown);
    const size_t len = strlen(unknown);
    char safe[64];
    gp_utf8_copy_safe(safe, sizeof(safe), name);
    if (!strstr(unknown, safe) && len + strlen(safe) + 3 < room)
        (void)snprintf(unknown + len, room - len, "%s%s", len ? ", " : "", safe);
}

int gp_import_fail(const struct gp_import_rows *rows, const char *what, struct gp_err *err)
{
    return gp_err_set(err, GP_EFORMAT, "'%.200s', line %lu: %s", rows->config->from, rows->line,
                      what);
}
