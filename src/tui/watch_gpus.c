#include "tui/watch_gpus.h"

#include "model/snapshot.h"
#include "tui/gpus.h"
#include "tui/screen.h"

bool gp_device_is(const struct gp_device *device, int gpu, int mig)
{
    return (int)device->index == gpu && (device->is_mig ? (int)device->mig_index : -1) == mig;
}

size_t gp_watch_gpu_row(const struct gp_ui *ui)
{
    size_t i = 0;
    while (i < ui->snapshot->device_count &&
           !gp_device_is(&ui->snapshot->devices[i], ui->gpu, ui->mig))
        i++;
    return i;
}

void gp_watch_choose(struct gp_ui *ui, const struct gp_device *device)
{
    ui->gpu = device ? (int)device->index : -1;
    ui->mig = device && device->is_mig ? (int)device->mig_index : -1;
}

void gp_watch_move_gpu(struct gp_ui *ui, int step)
{
    const struct gp_snapshot *s = ui->snapshot;
    if (!s || s->device_count == 0)
        return;
    const size_t chosen = gp_watch_gpu_row(ui);
    gp_gpu_order_set(&ui->gpu_order, s, ui->gpu_order.by, chosen);
    const size_t count = ui->gpu_order.count;
    size_t place = gp_gpu_order_place(&ui->gpu_order, chosen);
    if (place >= count)
        place = step > 0 ? count - 1 : 0; /* from the other end */
    for (size_t i = 0; i < count; i++) {
        place = (place + (step > 0 ? 1 : count - 1)) % count;
        const struct gp_device *device = &s->devices[gp_gpu_order_row(&ui->gpu_order, place)];
        bool is_end = step > 0 ? place == 0 : place == count - 1;
        if (chosen < s->device_count && is_end)
            return;
        gp_watch_choose(ui, device);
        gp_ui_build_rows(ui);
        return;
    }
}

/* Keeps a selected GPU within the visible ones, if keys move it. */
static void scroll(struct gp_ui *ui, const struct gp_layout *l, size_t chosen)
{
    const size_t count = gp_gpu_order_places(&ui->gpu_order);
    const size_t place = gp_gpu_order_place(&ui->gpu_order, chosen);
    const size_t shown = (size_t)l->shown;
    if ((ui->gpus_have_focus || ui->digit_typed) && place < ui->gpu_order.count && shown > 0) {
        if (place < ui->first_gpu)
            ui->first_gpu = place;
        if (place >= ui->first_gpu + shown)
            ui->first_gpu = place - shown + 1;
    }
    size_t most = count - shown;
    ui->first_gpu = ui->first_gpu > most ? most : ui->first_gpu;
}

struct gp_layout gp_watch_arrange(struct gp_ui *ui, const struct gp_box *box, bool host)
{
    const enum gp_gpu_order_by by = (enum gp_gpu_order_by)ui->prefs.gpu_order;
    const size_t chosen = gp_watch_gpu_row(ui);
    gp_gpu_order_set(&ui->gpu_order, ui->snapshot, by, chosen);
    struct gp_layout l = gp_layout_of(&(struct gp_layout_options){
        .w = box->w,
        .h = box->h,
        .gpus = (int)gp_gpu_order_places(&ui->gpu_order),
        .flat = gp_gpus_flat(ui->snapshot, &ui->gpu_order),
        .density = (enum gp_density)ui->prefs.view,
        .host = host,
        .no_gpus = !ui->prefs.gpus,
        .no_processes = !ui->prefs.processes,
        .no_graphs = !ui->prefs.graphs,
        .processes_first = ui->prefs.first,
    });
    if (by == GP_ORDER_AUTO && l.density == GP_DENSITY_GRID &&
        (size_t)l.shown < gp_gpu_order_places(&ui->gpu_order))
        gp_gpu_order_set(&ui->gpu_order, ui->snapshot, GP_ORDER_GRID, chosen);
    scroll(ui, &l, chosen);
    return l;
}
