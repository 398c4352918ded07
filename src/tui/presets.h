/* Presets: arrangements of the main screen, written as "gpus:line:load,processes,host". */
#ifndef GP_TUI_PRESETS_H
#define GP_TUI_PRESETS_H

#include "tui/gpu_order.h"
#include "tui/layout.h"

struct gp_err;
struct gp_strbuf;

enum { GP_PRESETS_MAX = 9 };

#define GP_PRESETS_USUAL                                                                           \
    "gpus,graphs,processes,host:auto gpus:line,processes gpus,graphs,host "                        \
    "processes,gpus:bar gpus:grid:trouble,graphs,processes"

struct gp_preset {
    bool gpus, graphs, processes;
    int host;      /* enum gp_host_pref */
    int first;     /* 1: the processes are above the GPUs */
    int view;      /* enum gp_density */
    int gpu_order; /* enum gp_gpu_order_by */
};

/* Checks a list of presets, separated by blanks. GP_EUSAGE says what is wrong with which one. */
int gp_presets_check(const char *text, struct gp_err *err) GP_MUST_CHECK;

/* The preset at this index of a valid list; false: there is none. */
bool gp_preset_get(const char *text, int at, struct gp_preset *ret);

/* Appends "GPUs as a grid by trouble, graphs, processes". */
void gp_preset_add_words(struct gp_strbuf *sb, const struct gp_preset *preset);

/* The index of the preset that is like this; −1: none. */
int gp_preset_find(const char *text, const struct gp_preset *preset);

#endif
