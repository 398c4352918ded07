/* Tags of processes: a signal goes to all that are tagged. */
#include "tui/screen.h"

static bool is_tagged(const struct gp_ui *ui, int64_t pid)
{
    return gp_procs_has_pid(ui->tags, ui->tag_count, pid);
}

static void tag(struct gp_ui *ui, int64_t pid)
{
    if (pid && !is_tagged(ui, pid) && ui->tag_count < GP_UI_TAGS)
        ui->tags[ui->tag_count++] = pid;
}

/* Tags the processes below the row of a group. */
static void tag_group(struct gp_ui *ui)
{
    const struct gp_rows_below below = gp_rows_below(&ui->procs, ui->chosen);
    for (size_t i = 0; i < below.count; i++)
        if (gp_proc_row_uses_any(&below.first[i]))
            tag(ui, below.first[i].pid);
    gp_ui_choose(ui, gp_row_end(&ui->procs, ui->chosen));
}

void gp_tags_turn(struct gp_ui *ui)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    size_t kept = 0;
    if (row && row->members)
        tag_group(ui);
    if (!row || row->members)
        return;
    bool was = is_tagged(ui, row->pid);
    for (size_t i = 0; i < ui->tag_count; i++)
        if (ui->tags[i] != row->pid)
            ui->tags[kept++] = ui->tags[i];
    ui->tag_count = kept;
    if (!was)
        tag(ui, row->pid);
    gp_ui_choose(ui, ui->chosen + 1);
}

void gp_tags_add_children(struct gp_ui *ui)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    const size_t count = ui->procs.count + ui->procs.closed + ui->procs.folded;
    if (!row)
        return;
    tag(ui, row->pid);
    for (size_t before = 0; before != ui->tag_count;) {
        before = ui->tag_count;
        for (size_t i = 0; i < count; i++)
            if (ui->procs.rows[i].ppid && is_tagged(ui, ui->procs.rows[i].ppid))
                tag(ui, ui->procs.rows[i].pid);
    }
}
