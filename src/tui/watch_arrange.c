#include "tui/watch_arrange.h"

#include "tui/choices.h"
#include "tui/gpu_text.h"
#include "tui/presets.h"
#include "tui/screen.h"
#include "tui/watch_gpus.h"

/* ---- presets ---- */

static struct gp_preset now_of(const struct gp_prefs *prefs)
{
    return (struct gp_preset){
        .gpus = prefs->gpus,
        .graphs = prefs->graphs,
        .processes = prefs->processes,
        .host = prefs->host,
        .first = prefs->first,
        .view = prefs->view,
        .gpu_order = prefs->gpu_order,
    };
}

static void take_preset(struct gp_ui *ui, int at)
{
    struct gp_prefs *prefs = &ui->prefs;
    const int count = gp_choices_count(prefs->presets);
    struct gp_preset preset;
    if (count == 0) {
        gp_ui_say(ui, "there are no presets; C sets them");
        return;
    }
    if (!gp_preset_get(prefs->presets, at, &preset)) {
        gp_ui_say(ui, "there is no preset %d; there are %d", at + 1, count);
        return;
    }
    prefs->gpus = preset.gpus;
    prefs->graphs = preset.graphs;
    prefs->processes = preset.processes;
    prefs->host = preset.host;
    prefs->first = preset.first;
    prefs->view = preset.view;
    prefs->gpu_order = preset.gpu_order;
    gp_watch_focus_shown(ui);
    ui->preset = at;
    GP_GPU_TEXT(words);
    gp_preset_add_words(&words, &preset);
    gp_ui_say(ui, "preset %d of %d: %s", at + 1, count, words.buf);
}

/* The one after that on the screen, or after the last one that was taken. */
static void next_preset(struct gp_ui *ui)
{
    const struct gp_preset now = now_of(&ui->prefs);
    const int count = gp_choices_count(ui->prefs.presets);
    const int at = gp_preset_find(ui->prefs.presets, &now);
    const int next = (at >= 0 ? at : ui->preset) + 1;
    take_preset(ui, count > 0 ? next % count : 0);
}

/* ---- regions ---- */

/* Cycles through: both areas, only the GPUs, only the processes. */
static void expand(struct gp_prefs *prefs)
{
    bool both = prefs->gpus && prefs->processes;
    bool gpus_only = prefs->gpus && !prefs->processes;
    prefs->gpus = both || !gpus_only;
    prefs->processes = !both;
}

/* One of the GPUs and the processes stays. */
static void turn(struct gp_ui *ui, bool *region, bool *other)
{
    if (*region && !*other) {
        *other = true;
        gp_ui_say(ui, "one of GPUs (D) and processes (L) stays");
    }
    *region = !*region;
    gp_watch_focus_shown(ui);
}

bool gp_watch_arrange_key(struct gp_ui *ui, enum gp_action action, int key)
{
    struct gp_prefs *prefs = &ui->prefs;
    if (action == GP_ACTION_DIGIT && ui->preset_typed && key > '0') {
        take_preset(ui, key - '1');
        return true;
    }
    switch (action) {
    case GP_ACTION_PRESET:
        next_preset(ui);
        return true;
    case GP_ACTION_EXPAND:
        expand(prefs);
        gp_watch_focus_shown(ui);
        return true;
    case GP_ACTION_SHOW_GPUS:
        turn(ui, &prefs->gpus, &prefs->processes);
        return true;
    case GP_ACTION_SHOW_PROCESSES:
        turn(ui, &prefs->processes, &prefs->gpus);
        return true;
    case GP_ACTION_SHOW_GRAPHS:
        prefs->graphs = !prefs->graphs;
        return true;
    case GP_ACTION_HOST:
        prefs->host = prefs->host == GP_HOST_YES ? GP_HOST_NO : GP_HOST_YES;
        return true;
    default:
        return false;
    }
}
