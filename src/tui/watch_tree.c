#include "tui/watch_tree.h"

#include "tui/screen.h"

/* A cursor that an unfolded row may take elsewhere stays on this one. */
void gp_watch_turn_branch(struct gp_ui *ui)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    if (!row || !(row->closed || gp_row_is_open(&ui->procs, ui->chosen)))
        return;
    gp_ui_choose(ui, ui->chosen);
    gp_closed_turn(gp_ui_closed(ui), row);
    gp_ui_build_rows(ui);
}

/* Returns false if it has no parent. */
static bool go_to_parent(struct gp_ui *ui)
{
    const struct gp_proc_row *rows = ui->procs.rows;
    size_t i = ui->chosen;
    while (i > 0 && rows[i].depth >= rows[ui->chosen].depth)
        i--;
    const bool has_parent = rows[i].depth < rows[ui->chosen].depth;
    if (has_parent)
        gp_ui_choose(ui, i);
    return has_parent;
}

static bool is_below(const struct gp_procs *procs, size_t row, int64_t pid)
{
    const struct gp_rows_below below = gp_rows_below(procs, row);
    for (size_t i = 0; i < below.count; i++)
        if (below.first[i].pid == pid)
            return true;
    return false;
}

/* As long as a row is open, all are folded; then all are unfolded. The process that is followed
 * stays on the screen, so what it is below stays open. */
static void turn_all(struct gp_ui *ui)
{
    const struct gp_procs *procs = &ui->procs;
    bool any = false;
    if (ui->prefs.tree == GP_TREE_NO) {
        gp_ui_say(ui, "nothing to fold in a flat list; t: tree, groups");
        return;
    }
    for (size_t i = 0; !any && i < procs->count; i++)
        any = gp_row_is_open(procs, i) && !(ui->followed && is_below(procs, i, ui->followed));
    gp_closed_turn_all(gp_ui_closed(ui), any);
    gp_ui_build_rows(ui);
    (void)gp_ui_go_to_process(ui, ui->followed);
}

bool gp_watch_tree_key(struct gp_ui *ui, enum gp_action action)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    if (action == GP_ACTION_FOLD_ALL) {
        turn_all(ui);
        return true;
    }
    if (!row || ui->gpus_have_focus || ui->scroll > 0)
        return false;
    const bool is_open = gp_row_is_open(&ui->procs, ui->chosen);
    if ((action == GP_ACTION_RIGHT && row->closed) || (action == GP_ACTION_LEFT && is_open)) {
        gp_watch_turn_branch(ui);
        return true;
    }
    return action == GP_ACTION_LEFT && go_to_parent(ui);
}
