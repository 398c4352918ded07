#include "tui/mig.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/gpu_text.h"
#include "tui/graph.h"

#define GIB (1024.0 * 1024 * 1024)

enum {
    WALL_LEFT = 0x2595, /* ▕ */
    WALL = 0x258f,      /* ▏ */
    LEAST = 3,          /* columns per instance */
};

/* The instances follow their GPU. */
static size_t count_instances(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    const struct gp_device *end = snapshot->devices + snapshot->device_count;
    size_t count = 0;
    for (const struct gp_device *d = device + 1; !device->is_mig && d < end && d->is_mig; d++)
        count++;
    return count;
}

bool gp_mig_is_split(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    return count_instances(snapshot, device) > 0;
}

void gp_mig_add_ids(struct gp_strbuf *sb, const struct gp_device *device)
{
    double id;
    gp_strbuf_adds(sb,
                   gp_device_number(device, GP_MIG_GPU_INSTANCE, &id) && id < 10 ? "GI  " : "GI ");
    gp_gpu_add_number(sb, device, GP_MIG_GPU_INSTANCE, "");
    gp_strbuf_adds(sb, " CI ");
    gp_gpu_add_number(sb, device, GP_MIG_COMPUTE_INSTANCE, "");
}

void gp_mig_add_share(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_device *device)
{
    double part;
    double whole;
    const struct gp_device *gpu = device;
    while (gpu->is_mig && gpu > snapshot->devices)
        gpu--;
    if (!gp_device_number(device, GP_MEMORY_TOTAL, &part) ||
        !gp_device_number(gpu, GP_MEMORY_TOTAL, &whole) || whole <= 0)
        return;
    const int percent = (int)(100 * part / whole + 0.5);
    gp_strbuf_addf(sb, "%2d%% of memory", percent);
}

static double total_of(const struct gp_device *device)
{
    double total;
    return gp_device_number(device, GP_MEMORY_TOTAL, &total) ? total : 0;
}

/* One instance between two walls. */
static void draw_instance(const struct gp_box *box, int x, int y, int w,
                          const struct gp_device *device)
{
    GP_GPU_TEXT(text);
    double used;
    int permille = gp_series_permille(device, GP_SERIES_MEMORY);
    if (gp_device_number(device, GP_MEMORY_USED, &used) && used < GIB / 20)
        gp_strbuf_addc(&text, '0');
    else if (gp_device_number(device, GP_MEMORY_USED, &used))
        gp_add_tenths(&text, used / GIB);
    else
        gp_strbuf_adds(&text, "--");
    gp_draw_bar(box, x, y, w, gp_load_ink(GP_SERIES_MEMORY, permille), permille);
    if ((int)gp_utf8_width(text.buf) <= w)
        gp_draw_right(box, x, y, w, GP_INK_PLAIN, text.buf);
}

bool gp_draw_mig_strip(const struct gp_box *box, int x, int y, int w,
                       const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    size_t count = count_instances(snapshot, device);
    double whole = total_of(device);
    double sum = 0;
    for (size_t i = 1; i <= count; i++)
        sum += total_of(&device[i]);
    whole = sum > whole ? sum : whole;
    if (count == 0 || whole <= 0 || w <= LEAST * (int)count)
        return false;
    gp_draw_fill(box, x, y, 1, GP_INK_DIM, WALL_LEFT);
    sum = 0;
    for (size_t i = 1; i <= count; i++) {
        int from = (int)(sum / whole * (w - 1) + 0.5);
        sum += total_of(&device[i]);
        int to = (int)(sum / whole * (w - 1) + 0.5); /* the wall is in the last column */
        draw_instance(box, x + 1 + from, y, to - from - 1, &device[i]);
        gp_draw_fill(box, x + to, y, 1, GP_INK_DIM, WALL);
    }
    return true;
}
