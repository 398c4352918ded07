#include "tui/header.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/gpu_text.h"
#include "tui/graph.h"

#define GIB (1024.0 * 1024 * 1024)

static const char *host_text(const struct gp_snapshot *snapshot, enum gp_metric m,
                             const char *other)
{
    const struct gp_value *v = &snapshot->host[m];
    return gp_value_is_present(v) ? v->s : other;
}

/* · 376/637 GiB", " · 3.1/5.6 kW": as short as possible. */
static void add_share(struct gp_strbuf *sb, double part, double whole, const char *unit)
{
    void (*add)(struct gp_strbuf *, double) = whole < 100 ? gp_add_tenths : gp_add_whole;
    gp_strbuf_adds(sb, " · ");
    add(sb, part);
    gp_strbuf_addc(sb, '/');
    add(sb, whole);
    gp_strbuf_addc(sb, ' ');
    gp_strbuf_adds(sb, unit);
}

/* Whether the totals are about it: a GPU that answers, and no MIG instance, whose memory is that of
 * its GPU. */
static bool counts(const struct gp_device *device)
{
    return !device->is_mig && !gp_gpu_is_ill(device);
}

/* The sums over the GPUs that report both. */
static void sum(const struct gp_snapshot *snapshot, enum gp_metric part, enum gp_metric whole,
                double ret[2])
{
    double n[2];
    ret[0] = ret[1] = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (!counts(device) || !gp_device_number(device, part, &n[0]) ||
            !gp_device_number(device, whole, &n[1]))
            continue;
        ret[0] += n[0];
        ret[1] += n[1];
    }
}

enum { TOTAL_GPUS, TOTAL_POWER, TOTAL_MEMORY, TOTAL__COUNT };

struct total {
    char room[64];
    struct gp_strbuf text;
};

/* "8 GPU", " · 3.1/5.6 kW", " · 376/637 GiB", of those that answer. Returns whether no GPU has a
 * problem. */
static bool set_totals(struct total totals[TOTAL__COUNT], const struct gp_snapshot *snapshot)
{
    size_t gpus = 0;
    size_t well = 0;
    for (int i = 0; i < TOTAL__COUNT; i++) {
        totals[i].room[0] = '\0';
        totals[i].text = (struct gp_strbuf)GP_STRBUF_ON(totals[i].room, sizeof(totals[i].room) - 1);
    }
    for (size_t i = 0; i < snapshot->device_count; i++) {
        gpus += !snapshot->devices[i].is_mig;
        well += counts(&snapshot->devices[i]);
    }
    double power[2];
    double memory[2];
    sum(snapshot, GP_POWER_DRAW, GP_POWER_LIMIT_ENFORCED, power);
    sum(snapshot, GP_MEMORY_USED, GP_MEMORY_TOTAL, memory);
    const double scale = power[1] < 1000 ? 1 : 1000;
    struct gp_strbuf *sb = &totals[TOTAL_GPUS].text;
    if (well < gpus)
        gp_strbuf_addf(sb, "%zu of ", well);
    gp_strbuf_add_int(sb, (long)gpus);
    gp_strbuf_adds(sb, gpus == 1 ? " GPU" : " GPUs");
    if (power[1] > 0)
        add_share(&totals[TOTAL_POWER].text, power[0] / scale, power[1] / scale,
                  power[1] < 1000 ? "W" : "kW");
    if (memory[1] > 0)
        add_share(&totals[TOTAL_MEMORY].text, memory[0] / GIB, memory[1] / GIB, "GiB");
    return well == gpus;
}

static int width_of(const struct total totals[TOTAL__COUNT])
{
    int w = 0;
    for (int i = 0; i < TOTAL__COUNT; i++)
        w += (int)gp_utf8_width(totals[i].text.buf);
    return w;
}

/* If there is not enough room, the versions are dropped, then power, then memory: a number is never
 * cut. */
void gp_draw_header(const struct gp_box *box, const struct gp_snapshot *snapshot,
                    const struct gp_words *right)
{
    static const int dropped[] = {TOTAL_POWER, TOTAL_MEMORY, TOTAL_GPUS};
    const struct {
        const char *before;
        enum gp_metric metric;
    } versions[] = {{" · ", GP_DRIVER_VERSION}, {" · CUDA ", GP_CUDA_VERSION}};
    int end = box->w - 1 - (int)gp_utf8_width(right->text.buf);
    (void)gp_words_draw(box, end, 0, right);
    struct gp_box left = gp_box_part(box, 0, 0, end - 1, 1);
    if (!snapshot) {
        (void)gp_draw(&left, 1, 0, GP_INK_STRONG, "gpulse");
        return;
    }
    struct total totals[TOTAL__COUNT];
    bool all_well = set_totals(totals, snapshot);
    int x = gp_draw(&left, 1, 0, GP_INK_STRONG, host_text(snapshot, GP_HOST_NAME, "?"));
    for (size_t i = 0; i < GP_ARRAY_LEN(dropped); i++)
        if (x + 2 + width_of(totals) > left.w)
            gp_strbuf_reset(&totals[dropped[i]].text);
    for (size_t i = 0; i < GP_ARRAY_LEN(versions); i++) {
        GP_GPU_TEXT(text);
        gp_strbuf_adds(&text, versions[i].before);
        const char *version = host_text(snapshot, versions[i].metric, NULL);
        if (!version)
            continue;
        gp_strbuf_adds(&text, version);
        if (x + (int)gp_utf8_width(text.buf) + 2 + width_of(totals) > left.w)
            break;
        x = gp_draw(&left, x, 0, GP_INK_PLAIN, text.buf);
    }
    x += 2;
    for (int i = 0; i < TOTAL__COUNT; i++)
        x = gp_draw(&left, x, 0, i == TOTAL_GPUS && !all_well ? GP_INK_HIGH : GP_INK_PLAIN,
                    totals[i].text.buf);
}

/* ---- the host ---- */

static bool host_number(const struct gp_snapshot *snapshot, enum gp_metric m, double *ret)
{
    const struct gp_value *v = &snapshot->host[m];
    if (!gp_value_is_present(v))
        return false;
    *ret = gp_metric_number(m, v);
    return true;
}

/* "RAM ███··· 120.0/512.0 GiB". Returns the column after it. */
static int draw_load(const struct gp_box *box, int x, const char *label, enum gp_series like,
                     double part, double whole, const char *words)
{
    enum {
        BAR = 10,
        STEP = 1000 / BAR / 2
    }; /* half a cell: finer ones would change all the time */
    int permille = whole > 0 ? (int)(1000 * part / whole + 0.5) : 0;
    x = gp_draw(box, x, 0, GP_INK_DIM, label) + 1;
    gp_draw_bar(box, x, 0, BAR, gp_load_ink(like, permille), (permille + STEP / 2) / STEP * STEP);
    return gp_draw(box, x + BAR + 1, 0, GP_INK_PLAIN, words) + 2;
}

static int draw_bytes(const struct gp_box *box, int x, const char *label, double used, double total)
{
    GP_GPU_TEXT(words);
    gp_add_tenths(&words, used / GIB);
    gp_strbuf_addc(&words, '/');
    gp_add_tenths(&words, total / GIB);
    gp_strbuf_adds(&words, " GiB");
    return draw_load(box, x, label, GP_SERIES_MEMORY, used, total, words.buf);
}

void gp_draw_host(const struct gp_box *box, const struct gp_snapshot *snapshot)
{
    GP_GPU_TEXT(words);
    double n;
    double total;
    int x = 1;
    if (host_number(snapshot, GP_HOST_CPU, &n)) {
        gp_add_whole(&words, n);
        gp_strbuf_addc(&words, '%');
        x = draw_load(box, x, "CPU", GP_SERIES_GPU, n, 100, words.buf);
    }
    if (host_number(snapshot, GP_HOST_MEMORY_TOTAL, &total) &&
        host_number(snapshot, GP_HOST_MEMORY_AVAILABLE, &n))
        x = draw_bytes(box, x, "RAM", total - n, total);
    if (host_number(snapshot, GP_HOST_SWAP_TOTAL, &total) && total > 0 &&
        host_number(snapshot, GP_HOST_SWAP_USED, &n))
        x = draw_bytes(box, x, "swap", n, total);
    gp_strbuf_reset(&words);
    if (host_number(snapshot, GP_HOST_LOAD, &n)) {
        gp_strbuf_adds(&words, "load ");
        gp_add_tenths(&words, n);
    }
    if (host_number(snapshot, GP_HOST_CPU_COUNT, &n)) {
        gp_strbuf_adds(&words, " of ");
        gp_add_whole(&words, n);
        gp_strbuf_adds(&words, " CPUs");
    }
    (void)gp_draw(box, x, 0, GP_INK_PLAIN, words.buf);
}
