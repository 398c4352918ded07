#include "tui/gpu_graphs.h"

#include "model/snapshot.h"
#include "tui/gpus.h"
#include "tui/mig.h"

enum { PAIR_FROM = 40 }; /* columns for two graphs side by side */

bool gp_gpu_has_load(const struct gp_device *device, const struct gp_gpus_view *view)
{
    return !device->is_mig && (!gp_mig_is_split(view->snapshot, device) ||
                               gp_series_permille(device, GP_SERIES_GPU) >= 0);
}

struct gp_box gp_gpu_half(const struct gp_box *box, bool is_right)
{
    const int w = box->w / 2;
    return gp_box_part(box, is_right ? box->w - w : 0, 0, w, box->h);
}

static int count_graphs(int lines)
{
    enum { LINES = 8 };
    return lines / LINES < 1 ? 1 : lines / LINES;
}

bool gp_gpu_graphs_gauge(const struct gp_gpus_view *view)
{
    return view->series == GP_SERIES_MEMORY || view->series == GP_SERIES_GPU;
}

static void draw_graph(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view, enum gp_series series)
{
    const struct gp_track *track = gp_history_find(view->history, device);
    const struct gp_panel panel = {
        .plot = {track, (int)series, gp_track_max(track, device, series), series},
        .title = gp_series_titles[series],
        .unit = gp_series_units[series],
        .label = gp_series_labels[series],
        .now_ns = view->snapshot->mono_ns,
        .blocks = view->blocks,
        .is_absent = gp_series_is_absent(device, series),
    };
    gp_draw_panel(box, &panel, &view->span);
}

void gp_draw_gpu_graphs(const struct gp_box *box, const struct gp_device *device,
                        const struct gp_gpus_view *view)
{
    const int count = count_graphs(box->h);
    int series = (int)view->series;
    series += series == GP_SERIES_GPU && !gp_gpu_has_load(device, view);
    if (count == 1 && series == GP_SERIES_GPU && box->w >= PAIR_FROM) {
        for (int i = 0; i < 2; i++) {
            const struct gp_box half = gp_gpu_half(box, i > 0);
            const struct gp_box part = gp_box_part(&half, 0, 0, half.w - 1, half.h);
            draw_graph(&part, device, view, i > 0 ? GP_SERIES_MEMORY : GP_SERIES_GPU);
        }
        return;
    }
    for (int i = 0, left = GP_SERIES__COUNT; i < count && left > 0; left--, series++) {
        const enum gp_series at = (enum gp_series)(series % GP_SERIES__COUNT);
        if (i > 0 && gp_series_is_absent(device, at))
            continue;
        const int y = box->h * i / count;
        const struct gp_box part = gp_box_part(box, 0, y, box->w - 1, box->h * ++i / count - y);
        draw_graph(&part, device, view, at);
    }
}
