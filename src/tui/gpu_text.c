#include "tui/gpu_text.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/graph.h"
#include "tui/words.h"

#include <math.h>
#include <string.h>

static const struct gp_value *value_of(const struct gp_device *device, enum gp_metric m)
{
    return &device->values[m - GP_DEVICE__FIRST];
}

void gp_gpu_add_number(struct gp_strbuf *sb, const struct gp_device *device, enum gp_metric m,
                       const char *unit)
{
    double n;
    if (!gp_device_number(device, m, &n)) {
        gp_strbuf_adds(sb, "--");
        return;
    }
    gp_add_whole(sb, n);
    gp_strbuf_adds(sb, unit);
}

const char *gp_gpu_short_name(const struct gp_device *device)
{
    static const char *const heads[] = {"NVIDIA ", "GeForce "};
    const char *name = gp_device_text(device, device->is_mig ? GP_MIG_PROFILE : GP_NAME, "?");
    for (size_t i = 0; i < GP_ARRAY_LEN(heads); i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0)
            name += strlen(heads[i]);
    return name;
}

size_t gp_gpu_name_fit(const char *name, int w)
{
    size_t fit = 0;
    for (size_t i = 0, columns = 0; (int)columns <= w; columns++) {
        uint32_t cp;
        if (!name[i] || name[i] == ' ' || name[i] == '-')
            fit = i;
        if (!name[i])
            break;
        i += gp_utf8_decode(name + i, strlen(name + i), &cp);
        columns += gp_utf8_columns(cp) == 2;
    }
    return fit;
}

void gp_gpu_add_index(struct gp_strbuf *sb, const struct gp_device *device)
{
    if (device->is_mig)
        gp_strbuf_adds(sb, "└");
    gp_strbuf_add_int(sb, device->is_mig ? device->mig_index : device->index);
}

void gp_gpu_add_gib(struct gp_strbuf *sb, double bytes)
{
    const double gib = bytes / (1024.0 * 1024 * 1024);
    if (bytes > 0 && gib < 0.1) {
        gp_add_whole(sb, bytes / (1024.0 * 1024));
        gp_strbuf_addc(sb, 'M');
        return;
    }
    if (gib < 99.95)
        gp_add_tenths(sb, gib);
    else
        gp_add_whole(sb, gib);
    gp_strbuf_addc(sb, 'G');
}

void gp_gpu_add_memory(struct gp_strbuf *sb, const struct gp_device *device)
{
    double used;
    double total;
    const double gib = 1024.0 * 1024 * 1024;
    if (!gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total)) {
        gp_strbuf_adds(sb, "--");
        return;
    }
    gp_add_tenths(sb, used / gib);
    gp_strbuf_addc(sb, '/');
    if (total < 100 * gib)
        gp_add_tenths(sb, total / gib);
    else
        gp_add_whole(sb, total / gib);
    gp_strbuf_addc(sb, 'G');
}

void gp_gpu_add_power(struct gp_strbuf *sb, const struct gp_device *device)
{
    double draw;
    double limit;
    gp_gpu_add_number(sb, device, GP_POWER_DRAW, "");
    if (gp_device_number(device, GP_POWER_DRAW, &draw) &&
        gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &limit)) {
        gp_strbuf_addc(sb, '/');
        gp_add_whole(sb, limit);
    }
}

/* Appends the blanks that a number lacks to take as many columns. */
static void add_pad(struct gp_strbuf *sb, double n, int columns)
{
    double least = 1; /* with one more digit */
    for (int i = 1; i < columns; i++)
        if (n < (least *= 10))
            gp_strbuf_addc(sb, ' ');
}

void gp_gpu_add_clocks(struct gp_strbuf *sb, const struct gp_device *device, bool both)
{
    enum { DIGITS = 4 };
    double sm;
    double memory;
    if (!gp_device_number(device, GP_CLOCK_SM, &sm))
        return;
    both = both && gp_device_number(device, GP_CLOCK_MEMORY, &memory);
    gp_strbuf_adds(sb, "SM ");
    gp_add_whole(sb, sm);
    if (both) {
        gp_strbuf_adds(sb, " · MEM ");
        gp_add_whole(sb, memory);
    }
    gp_strbuf_adds(sb, " MHz");
    add_pad(sb, sm, DIGITS);
    if (both)
        add_pad(sb, memory, DIGITS);
}

void gp_gpu_add_watts(struct gp_strbuf *sb, const struct gp_device *device)
{
    double limit;
    GP_GPU_TEXT(text);
    GP_GPU_TEXT(digits);
    gp_gpu_add_power(&text, device);
    if (gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &limit))
        gp_add_whole(&digits, limit);
    for (size_t i = text.len; digits.len > 0 && i < 2 * digits.len + 1; i++)
        gp_strbuf_addc(sb, ' ');
    gp_strbuf_adds(sb, text.buf);
    gp_strbuf_adds(sb, " W");
}

/* Of a temperature that slows the GPU down from a limit on, or from `usual` if it has none. */
static enum gp_ink heat_ink(const struct gp_device *device, enum gp_metric now,
                            enum gp_metric limit, double usual)
{
    double n;
    double from;
    if (!gp_device_number(device, now, &n))
        return GP_INK_STALE;
    if (!gp_device_number(device, limit, &from))
        from = usual;
    return n >= from ? GP_INK_CRITICAL : n >= from - 5 ? GP_INK_HIGH : GP_INK_PLAIN;
}

enum gp_ink gp_gpu_temperature_ink(const struct gp_device *device)
{
    return heat_ink(device, GP_TEMPERATURE_GPU, GP_THRESHOLD_SLOWDOWN, 90);
}

static enum gp_ink memory_temperature_ink(const struct gp_device *device)
{
    return heat_ink(device, GP_TEMPERATURE_MEMORY, GP_THRESHOLD_MEMORY_MAX, HUGE_VAL);
}

/* Appends a label, a number in as many columns as it can need, and a unit, if they fit into w
 * columns. */
static void add_sensor(struct gp_words *words, const char *label, const struct gp_device *device,
                       enum gp_metric m, const char *unit, int columns, enum gp_ink ink, int w)
{
    GP_GPU_TEXT(number);
    double n;
    if (!gp_device_number(device, m, &n))
        return;
    gp_add_whole(&number, n);
    gp_strbuf_adds(&number, unit);
    const size_t end = number.len;
    add_pad(&number, n, columns);
    if ((int)(gp_utf8_width(words->text.buf) + strlen(label) + gp_utf8_width(number.buf)) > w)
        return;
    gp_strbuf_adds(&words->text, label);
    gp_words_end(words, GP_INK_PLAIN);
    gp_strbuf_add(&words->text, number.buf, end);
    gp_words_end(words, ink);
    gp_strbuf_adds(&words->text, number.buf + end);
}

void gp_gpu_add_temperatures(struct gp_words *words, const struct gp_device *device, int w)
{
    gp_gpu_add_number(&words->text, device, GP_TEMPERATURE_GPU, "°C");
    gp_words_end(words, gp_gpu_temperature_ink(device));
    add_sensor(words, " mem ", device, GP_TEMPERATURE_MEMORY, "°C", 2,
               memory_temperature_ink(device), w);
    add_sensor(words, " fan ", device, GP_FAN_SPEED, "%", 3, GP_INK_PLAIN, w);
}

enum gp_ink gp_gpu_memory_ink(const struct gp_device *device, const struct gp_track *track,
                              uint64_t now_ns)
{
    enum { HELD_S = 30, HELD_PERMILLE = 100 };
    const int permille = gp_series_permille(device, GP_SERIES_MEMORY);
    const enum gp_ink ink = gp_load_ink(GP_SERIES_MEMORY, permille);
    struct gp_track_facts load;
    double bytes;
    if (ink != GP_INK_MEMORY || permille < HELD_PERMILLE ||
        !gp_device_number_now(device, GP_MEMORY_USED, &bytes) || bytes < (double)(1 << 30) ||
        !gp_track_look(track, GP_SERIES_GPU, now_ns, HELD_S * GP_NS_PER_S, &load))
        return ink;
    return load.highest > 0 ? ink : GP_INK_MEDIUM;
}

bool gp_gpu_has_orphans(const struct gp_device *device, double *ret_bytes)
{
    return gp_device_number_now(device, GP_MEMORY_UNATTRIBUTED, ret_bytes) &&
           *ret_bytes >= (double)(1 << 30);
}

const char *gp_gpu_trouble(const struct gp_device *device)
{
    static const enum gp_metric told[] = {GP_UTILIZATION_GPU, GP_MEMORY_USED, GP_TEMPERATURE_GPU,
                                          GP_POWER_DRAW};
    double n;
    enum gp_status why = GP_STATUS_NONE;
    if (device->status == GP_STATUS_LOST)
        return "lost: reset or reboot needed";
    if (device->status != GP_STATUS_OK)
        return device->status_text;
    for (size_t i = 0; i < GP_ARRAY_LEN(told); i++) {
        enum gp_status status = value_of(device, told[i])->status;
        if (gp_device_number(device, told[i], &n) || status == GP_STATUS_NONE)
            return NULL;
        why = status != GP_STATUS_UNSUPPORTED ? status : why;
    }
    return why == GP_STATUS_NONE ? NULL : gp_device_state(why);
}

size_t gp_gpu_trouble_words(const char *trouble)
{
    const char *call = strstr(trouble, " (");
    return call ? (size_t)(call - trouble) : strlen(trouble);
}

bool gp_gpu_is_ill(const struct gp_device *device)
{
    return gp_gpu_trouble(device) && device->status != GP_STATUS_ASLEEP &&
           device->status != GP_STATUS_RELEASED;
}

void gp_gpu_draw_trouble(const struct gp_box *box, int x, int y, int w, enum gp_ink ink,
                         const struct gp_device *device, bool whole)
{
    static const char *const ends[] = {" (", ";", ":"};
    static const char next[] = " · gpulse doctor";
    const char *reason = gp_gpu_trouble(device);
    const size_t words = gp_gpu_trouble_words(reason);
    GP_GPU_TEXT(text);
    gp_strbuf_add(&text, reason, whole ? strlen(reason) : words);
    if (!whole && gp_gpu_is_ill(device) &&
        (int)(gp_utf8_width(text.buf) + gp_utf8_width(next)) <= w)
        gp_strbuf_adds(&text, next);
    for (size_t i = 0; i < GP_ARRAY_LEN(ends) && (int)gp_utf8_width(text.buf) > w; i++) {
        const char *end = strstr(text.buf, ends[i]);
        if (end)
            gp_strbuf_truncate(&text, (size_t)(end - text.buf));
    }
    gp_draw_left(box, x, y, w, ink, text.buf);
}

bool gp_gpu_is_flat(const struct gp_device *device)
{
    return device->is_mig || device->status == GP_STATUS_ASLEEP;
}
