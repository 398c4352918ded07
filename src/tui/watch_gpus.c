#include "tui/watch_gpus.h"

#include "model/snapshot.h"
#include "tui/gpu_text.h"
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

bool gp_watch_is_silent(const struct gp_ui *ui, int gpu)
{
    const struct gp_snapshot *s = ui->snapshot;
    for (size_t i = 0; i < s->device_count; i++) {
        const bool is_meant =
            gpu < 0 ? s->process_count == 0 : gp_device_is(&s->devices[i], gpu, -1);
        if (is_meant && gp_gpu_is_ill(&s->devices[i]))
            return true;
    }
    return false;
}

void gp_watch_choose_gpu(struct gp_ui *ui, int gpu)
{
    ui->gpu = gpu;
    ui->mig = -1;
    ui->tab_gpu = -1;
}

void gp_watch_choose(struct gp_ui *ui, const struct gp_device *device)
{
    gp_watch_choose_gpu(ui, device ? (int)device->index : -1);
    if (device && device->is_mig)
        ui->mig = (int)device->mig_index;
}

/* Selects what is at this place of an order; there is one at least. */
static void choose_place(struct gp_ui *ui, long place)
{
    const long last = (long)ui->gpu_order.count - 1;
    const size_t at = place < 0 ? 0 : (size_t)(place > last ? last : place);
    gp_watch_choose(ui, &ui->snapshot->devices[gp_gpu_order_row(&ui->gpu_order, at)]);
    gp_ui_build_rows(ui);
}

/* Orders the GPUs as they are on the screen. */
static void set_order(struct gp_ui *ui)
{
    const enum gp_gpu_order_by by = (enum gp_gpu_order_by)ui->prefs.gpu_order;
    gp_gpu_order_set(&ui->gpu_order, ui->snapshot,
                     by == GP_ORDER_AUTO && ui->is_full_grid ? GP_ORDER_GRID : by);
}

/* Orders the GPUs of the newest snapshot. Returns whether there are any. */
static bool has_places(struct gp_ui *ui)
{
    if (ui->snapshot)
        set_order(ui);
    return ui->snapshot && ui->gpu_order.count > 0;
}

void gp_watch_move_gpu(struct gp_ui *ui, long step)
{
    if (!has_places(ui))
        return;
    const size_t place = gp_gpu_order_place(&ui->gpu_order, gp_watch_gpu_row(ui));
    if (place < ui->gpu_order.count)
        choose_place(ui, (long)place + step);
    else
        choose_place(ui, step > 0 ? 0 : (long)ui->gpu_order.count);
}

void gp_watch_focus(struct gp_ui *ui, bool to_gpus)
{
    ui->gpus_have_focus = to_gpus;
    if (!to_gpus && ui->gpu >= 0 && ui->gpu == ui->tab_gpu) {
        gp_watch_choose_gpu(ui, -1);
        gp_ui_build_rows(ui);
    }
}

void gp_watch_focus_shown(struct gp_ui *ui)
{
    gp_watch_focus(ui, ui->gpus_have_focus ? ui->prefs.gpus : !ui->prefs.processes);
}

bool gp_watch_may_turn(const struct gp_ui *ui)
{
    return ui->gpus_have_focus ? ui->prefs.processes : ui->prefs.gpus;
}

void gp_watch_turn_pane(struct gp_ui *ui)
{
    const bool to_gpus = !ui->gpus_have_focus;
    if (!gp_watch_may_turn(ui))
        return;
    gp_watch_focus(ui, to_gpus);
    if (to_gpus && ui->gpu < 0 && has_places(ui)) {
        choose_place(ui, (long)ui->first_gpu);
        ui->tab_gpu = ui->gpu;
    }
}

/* Makes a place visible, if it is one. */
static void scroll_to(struct gp_ui *ui, size_t place, size_t shown)
{
    if (place >= ui->gpu_order.count || shown == 0)
        return;
    if (place < ui->first_gpu)
        ui->first_gpu = place;
    if (place >= ui->first_gpu + shown)
        ui->first_gpu = place - shown + 1;
}

void gp_watch_reorder(struct gp_ui *ui)
{
    gp_ui_say(ui, "GPUs by %s", gp_gpu_order_words[ui->prefs.gpu_order]);
    ui->first_gpu = 0;
    if (!has_places(ui))
        return;
    if (ui->gpus_have_focus && ui->gpu == ui->tab_gpu) {
        choose_place(ui, 0);
        ui->tab_gpu = ui->gpu;
    }
    scroll_to(ui, gp_gpu_order_place(&ui->gpu_order, gp_watch_gpu_row(ui)), ui->gpu_page);
}

/* Keeps a selected GPU within the visible ones, if keys move it. */
static void scroll(struct gp_ui *ui, const struct gp_layout *l, size_t chosen)
{
    const size_t shown = (size_t)l->shown;
    if (ui->gpus_have_focus || ui->digit_typed)
        scroll_to(ui, gp_gpu_order_place(&ui->gpu_order, chosen), shown);
    size_t most = ui->gpu_order.count - shown;
    ui->first_gpu = ui->first_gpu > most ? most : ui->first_gpu;
}

struct gp_layout gp_watch_arrange(struct gp_ui *ui, const struct gp_box *box, bool host)
{
    const size_t chosen = gp_watch_gpu_row(ui);
    set_order(ui);
    struct gp_layout l = gp_layout_of(&(struct gp_layout_options){
        .w = box->w,
        .h = box->h,
        .gpus = (int)ui->gpu_order.count,
        .flat = gp_gpus_flat(ui->snapshot, &ui->gpu_order),
        .density = (enum gp_density)ui->prefs.view,
        .host = host,
        .no_gpus = !ui->prefs.gpus,
        .no_processes = !ui->prefs.processes,
        .no_graphs = !ui->prefs.graphs,
        .processes_first = ui->prefs.first,
    });
    const bool is_full_grid = l.density == GP_DENSITY_GRID && (size_t)l.shown < ui->gpu_order.count;
    if (is_full_grid != ui->is_full_grid) { /* the layout does not depend on the order */
        ui->is_full_grid = is_full_grid;
        set_order(ui);
    }
    ui->gpu_page = (size_t)l.shown;
    scroll(ui, &l, chosen);
    return l;
}
